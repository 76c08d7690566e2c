/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "path/path.h"

/*
 * Points as arguments: FILE, or NAME=FILE, where FILE is anything that a capture is read from. An argument that is an
 * existing file has no name, also with a = in it. A point without a name is called by its file.
 */
#define OW_POINT_NAME 256
#define OW_POINT_PATH 1024

struct ow_point_arguments {
	struct ow_path_point point[OW_PATH_POINTS]; /* each has a name */
	const char *given[OW_PATH_POINTS];          /* NULL if none was given */
	char name[OW_PATH_POINTS][OW_POINT_NAME];
	char path[OW_PATH_POINTS][OW_POINT_PATH]; /* of ports */
	unsigned count;
};

/* The result points into the arguments. */
int ow_point_arguments(char *const *argument, unsigned count, struct ow_point_arguments *ret, struct ow_error *err);

/* The ports of a capture device in one file, by their stamps, as points: in the order of their numbers. */
int ow_point_ports(const char *path, struct ow_point_arguments *ret, struct ow_error *err);
