/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SANDBOX_CONFINE_H
#define OW_SANDBOX_CONFINE_H

#include <oneway/error.h>
#include <stdbool.h>

/*
 * The sandbox of a process that parses what strangers send: a seccomp filter that allows what measuring needs (threads,
 * sockets of the internet, files that landlock lets it open) and kills the process at anything else, and landlock,
 * which leaves it the folders that it was told to leave. For the calling thread and those that it starts later: to be
 * called before there are others, and after ow_privileges_drop.
 */
enum ow_sandbox {
	OW_SANDBOX_ON,
	OW_SANDBOX_OFF,
	OW_SANDBOX_LOG, /* what seccomp would kill for goes to the kernel's log and is done */
};

#define OW_CONFINE_PATHS 16

struct ow_confine_options {
	enum ow_sandbox sandbox;
	/* Folders: what is read, and where files are made, written and removed. NULL ends the lists. */
	const char *read[OW_CONFINE_PATHS], *write[OW_CONFINE_PATHS];
};

/* What is in force, in words: "seccomp, landlock", "no seccomp: ..." */
#define OW_CONFINE_TEXT 200

/*
 * Where the kernel, or the build, has no such thing the rest is done and ret_text says what is missing; *ret_whole
 * tells whether everything asked for is in force. A negative errno only when the kernel has it and refuses.
 */
int ow_confine(const struct ow_confine_options *options, char ret_text[OW_CONFINE_TEXT], bool *ret_whole,
               struct ow_error *err);

/* The folder of a file, as for dirname(3). */
#define OW_CONFINE_FOLDER 4096
void ow_confine_folder(const char *path, char ret_folder[OW_CONFINE_FOLDER]);

#endif
