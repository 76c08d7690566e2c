/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>

/*
 * Shared libraries that are loaded when they are used first. A library that only some commands use, and that brings many
 * others along, would delay the start of every command.
 */
struct ow_library_function {
	const char *name;
	void *place; /* of a pointer to the function */
};

/* Sets the pointers. The library stays loaded. Calling it again does nothing new. Returns 0 or a negative errno. */
int ow_library_load(const char *file, const struct ow_library_function *functions, size_t count, struct ow_error *err);
