/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

/* A directory of its own for a test, removed with its files afterwards. */
struct scratch;

int scratch_setup(void **state);
int scratch_teardown(void **state);
/* The path of a file in it; lives as long as the scratch. */
const char *scratch_path(struct scratch *scratch, const char *name);
/* Writes a file and returns its path. */
const char *scratch_save(struct scratch *scratch, const char *name, const void *bytes, size_t size);
/* Reads a file; the caller frees it. */
uint8_t *scratch_load(struct scratch *scratch, const char *name, size_t *ret_size);
