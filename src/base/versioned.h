/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_VERSIONED_H
#define OW_BASE_VERSIONED_H

#include <oneway/error.h>
#include <stddef.h>

/*
 * Structs of the public interface whose first member is `size_t size`: the sizeof that the program was compiled with.
 * New members are appended only. So a program and a library of different versions understand each other: members
 * that the program does not have are 0, and members that the library does not know must be 0.
 */

/* All members 0, and the size, as far as `size` bytes hold it. */
void ow_versioned_init(void *ret, size_t size);

/*
 * Copies a struct of the program to one of the library, of `known` bytes. least: bytes of the first version. name: for
 * errors. -EINVAL: the size is less; -E2BIG: a member that the library does not know is not 0.
 */
int ow_versioned_take(void *ret, size_t known, const void *from, size_t least, const char *name, struct ow_error *err);

/*
 * Copies a struct of the library to one of the program, whose size is set. Then its size is that of the members that
 * the library filled; the others are 0. -EINVAL as above.
 */
int ow_versioned_give(void *ret, size_t least, const void *from, size_t known, const char *name, struct ow_error *err);

#endif
