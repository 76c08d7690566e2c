/* SPDX-License-Identifier: Apache-2.0 */
#include "scarce.h"

#include <stdlib.h>

static size_t calls, fails_at, failed;
static bool fails_on;

void scarce_from(size_t nth, bool forever)
{
	calls = failed = 0;
	fails_at = nth;
	fails_on = forever;
}

size_t scarce_failures(void)
{
	return failed;
}

static bool fails(void)
{
	if (fails_at == 0 || ++calls < fails_at || (calls > fails_at && !fails_on))
		return false;
	failed++;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	return fails() ? NULL : __real_realloc(block, size);
}
