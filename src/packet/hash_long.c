/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3 of long inputs with the library's code for this processor (AVX2, AVX-512, NEON). It is 5 times as fast as
 * inlined code that is compiled for SSE2 only. Separate from identity.c, which inlines XXH3 for short inputs.
 */
#include "packet/hash_long.h"

#ifdef OW_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

uint64_t ow_hash_long(const void *bytes, size_t size, const void *secret, size_t secret_size)
{
	return XXH3_64bits_withSecret(bytes, size, secret, secret_size);
}
