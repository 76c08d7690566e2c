/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>

/*
 * Structs of the public interface whose first member is `size_t size`: the sizeof that the program was compiled with.
 * New members are only appended. So a program and a library of different versions work together: members that the
 * program does not have are 0, and members that the library does not know must be 0.
 */

/* Sets all members to 0 and sets the size member, if `size` bytes can hold it. */
void ow_versioned_init(void *ret, size_t size);

/*
 * Copies a struct of the program to one of the library, which has `known` bytes. least: bytes of the first version.
 * name: for errors. -EINVAL: the size is less than `least`; -E2BIG: a member that the library does not know is not 0.
 */
int ow_versioned_take(void *ret, size_t known, const void *from, size_t least, const char *name, struct ow_error *err);

/*
 * Copies a struct of the library to one of the program, whose size is set. Afterwards its size covers the members that
 * the library filled; the others are 0. -EINVAL as above.
 */
int ow_versioned_give(void *ret, size_t least, const void *from, size_t known, const char *name, struct ow_error *err);
