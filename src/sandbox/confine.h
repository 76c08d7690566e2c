/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>

/*
 * The sandbox of a process that parses untrusted data. A seccomp filter allows the system calls that measuring needs
 * (threads, internet sockets, opening files) and kills the process at any other. Landlock restricts the process to the
 * folders in the options. Both apply to the calling thread and to threads that it starts later, so call this before
 * other threads exist, and after ow_privileges_drop.
 */
enum ow_sandbox {
	OW_SANDBOX_ON,
	OW_SANDBOX_OFF,
	OW_SANDBOX_LOG, /* the kernel logs and allows the calls that seccomp would kill the process for */
};

#define OW_CONFINE_PATHS 65

struct ow_confine_options {
	enum ow_sandbox sandbox;
	/* Folders to read from, and folders to create, write and remove files in. NULL ends the lists. */
	const char *read[OW_CONFINE_PATHS], *write[OW_CONFINE_PATHS];
	/* Single files to read; those that do not exist now cannot be read later. NULLs are skipped. */
	const char *file[OW_CONFINE_PATHS];
	/* A client of PostgreSQL: it may use local sockets, and look up the name of its user. */
	bool database;
};

/* What is in force: "seccomp, landlock", "no seccomp: ..." */
#define OW_CONFINE_TEXT 200

/*
 * If the kernel or the build lacks a part, the rest is done and ret_text says what is missing. *ret_whole: everything
 * that was asked for is in force. Returns a negative errno only if the kernel has the feature but the call fails.
 */
int ow_confine(const struct ow_confine_options *options, char ret_text[OW_CONFINE_TEXT], bool *ret_whole,
               struct ow_error *err);

/* The folder of a file, as with dirname(3). */
#define OW_CONFINE_FOLDER 4096
void ow_confine_folder(const char *path, char ret_folder[OW_CONFINE_FOLDER]);
