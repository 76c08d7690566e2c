/* SPDX-License-Identifier: Apache-2.0 */
#include "base/versioned.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static size_t size_of(const void *versioned)
{
	size_t size;
	memcpy(&size, versioned, sizeof size);
	return size;
}

static int check_size(size_t size, size_t least, const char *name, struct ow_error *err)
{
	if (size >= least)
		return 0;
	return ow_error_set(err, EINVAL, "struct %s: size is %zu, at least %zu is needed: set it, or call its defaults",
	                    name, size, least);
}

static bool all_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

void ow_versioned_init(void *ret, size_t size)
{
	memset(ret, 0, size);
	if (size >= sizeof size)
		memcpy(ret, &size, sizeof size);
}

int ow_versioned_take(void *ret, size_t known, const void *from, size_t least, const char *name, struct ow_error *err)
{
	size_t size = size_of(from);
	int r = check_size(size, least, name, err);
	if (r < 0)
		return r;
	if (size > known && !all_zero((const uint8_t *)from + known, size - known))
		return ow_error_set(err, E2BIG, "struct %s: has a member that liboneway %s does not know", name,
		                    ow_version());
	ow_versioned_init(ret, known);
	memcpy((uint8_t *)ret + sizeof size, (const uint8_t *)from + sizeof size,
	       (size < known ? size : known) - sizeof size);
	return 0;
}

int ow_versioned_give(void *ret, size_t least, const void *from, size_t known, const char *name, struct ow_error *err)
{
	size_t size = size_of(ret), filled = size < known ? size : known;
	int r = check_size(size, least, name, err);
	if (r < 0)
		return r;
	memset(ret, 0, size);
	memcpy(ret, from, filled);
	memcpy(ret, &filled, sizeof filled);
	return 0;
}
