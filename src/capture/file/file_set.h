/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The files of a point: what an argument names. That is a file; a folder, whose capture files are taken; a pattern of
 * the shell; or several of these joined by +.
 */

/* Files of a set, at most: a file each second for a day. */
#define OW_FILE_SET_MAX 100000u
/* Parts of a sum, at most: links that share the traffic of a point. */
#define OW_FILE_SET_PARTS 64u

struct ow_file_set {
	struct ow_file_set_file {
		char *path;
		bool of_folder; /* another kind of file in a folder is ignored; one that was named is an error */
		unsigned part;  /* of the sum, from 0 on */
	} * file;
	size_t count, room;
	unsigned parts;
};

/* Whether the argument names one file, or nothing that exists. */
bool ow_file_set_is_file(const char *argument);
/*
 * The parts of a sum; one if it is none. An argument that exists, or is a pattern of files that exist, is no sum. The texts are
 * behind the pointers: free() frees both.
 */
int ow_file_set_split(const char *argument, char ***ret_parts, unsigned *ret_count, struct ow_error *err);
/* Finds the files, each one once. The caller frees the set with ow_file_set_done, also after an error. */
int ow_file_set_find(const char *argument, struct ow_file_set *ret_set, struct ow_error *err);
/* The same of one part, which may have a + in its name. */
int ow_file_set_find_part(const char *part, struct ow_file_set *ret_set, struct ow_error *err);
/* Whether a file that is written at this path becomes one of the set, if it is a capture. */
bool ow_file_set_takes(const char *argument, const char *path);
void ow_file_set_done(struct ow_file_set *set);
