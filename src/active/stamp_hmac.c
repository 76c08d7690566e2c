/* SPDX-License-Identifier: Apache-2.0 */
/* The HMAC of STAMP: the first 16 octets of HMAC-SHA-256 (RFC 8762, section 4.4). */
#include "active/stamp.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

bool ow_stamp_hmac(const struct ow_stamp_key *key, const uint8_t *bytes, size_t size, uint8_t ret_hmac[OW_STAMP_HMAC])
{
	uint8_t whole[EVP_MAX_MD_SIZE] = {0};
	unsigned length = 0;
	bool done = HMAC(EVP_sha256(), key->bytes, (int)key->size, bytes, size, whole, &length) != NULL;
	memcpy(ret_hmac, whole, OW_STAMP_HMAC);
	return done;
}
