/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_ERROR_H
#define ONEWAY_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One line for the user: what is wrong, with the file, offset, key or flag that it is about.
 * Functions that can fail return 0 or a negative errno, and fill the error (which may be NULL) on failure.
 */
struct ow_error {
	char text[512];
};

/* Formats the message and returns -code, so that `return ow_error_set(err, EINVAL, ...)` reads well. */
int ow_error_set(struct ow_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__
/* The analyser looks at one file at a time, and would otherwise assume a failure that returns 0. */
#define ow_error_set(err, code, ...) (ow_error_set(err, code, __VA_ARGS__), -(code))
#endif

#ifdef __cplusplus
}
#endif

#endif
