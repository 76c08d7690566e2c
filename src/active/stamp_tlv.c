/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reflector does with the TLVs of a probe (RFC 8972 section 4). It copies all of them. TLVs that it does not
 * know, here all but padding and HMAC, get the flag U. A TLV that does not fit gets M and ends the processing. All get
 * I if the HMAC of the TLVs is wrong.
 *
 * After the base a TWAMP Light sender has padding, zeros or random bytes. Probes have U set in each TLV: if the first
 * one has not, it is padding, and is copied unchanged.
 */
#include "active/stamp.h"

#include "base/bytes.h"
#include <openssl/crypto.h>

#define FLAGS (OW_STAMP_TLV_U | OW_STAMP_TLV_M | OW_STAMP_TLV_I)

struct tlvs {
	const uint8_t *bytes;
	size_t size;
	const struct ow_stamp_key *key;
};

/* Whether there is a complete TLV at `at`. */
static bool fits(const struct tlvs *tlvs, size_t at)
{
	return tlvs->size - at >= OW_STAMP_TLV_HEAD &&
	       tlvs->size - at - OW_STAMP_TLV_HEAD >= ow_load_be16(tlvs->bytes + at + 2);
}

static bool is_known(const struct tlvs *tlvs, uint8_t type)
{
	return type == OW_STAMP_TLV_PADDING || (type == OW_STAMP_TLV_HMAC && tlvs->key);
}

static bool is_malformed(const struct tlvs *tlvs, size_t at)
{
	return !fits(tlvs, at) || (tlvs->bytes[at + 1] == OW_STAMP_TLV_HMAC && tlvs->key &&
	                           ow_load_be16(tlvs->bytes + at + 2) != OW_STAMP_HMAC);
}

static size_t length_at(const uint8_t *bytes, size_t at)
{
	return OW_STAMP_TLV_HEAD + (size_t)ow_load_be16(bytes + at + 2);
}

/* The HMAC of the sequence number and the TLVs up to `size`. */
static bool hmac_of(const struct ow_stamp_key *key, const uint8_t *sequence, const uint8_t *tlvs, size_t size,
                    uint8_t hmac[OW_STAMP_HMAC])
{
	uint8_t text[4 + OW_STAMP_PACKET_MAX];
	memcpy(text, sequence, 4);
	memcpy(text + 4, tlvs, size);
	return ow_stamp_hmac(key, text, 4 + size, hmac);
}

/* Whether an HMAC is needed and is missing or wrong. *ret_hmac: where a valid one is, or `size`. */
static bool is_broken(const struct tlvs *tlvs, const uint8_t *sequence, bool needed, size_t *ret_hmac)
{
	bool others = false;
	*ret_hmac = tlvs->size;
	for (size_t at = 0; tlvs->size - at >= OW_STAMP_TLV_HEAD; at += length_at(tlvs->bytes, at)) {
		if (is_malformed(tlvs, at))
			return false; /* M says so; nothing after it is checked */
		uint8_t type = tlvs->bytes[at + 1], hmac[OW_STAMP_HMAC];
		if (*ret_hmac < tlvs->size && type != OW_STAMP_TLV_PADDING)
			return true; /* a TLV after the HMAC */
		others |= type != OW_STAMP_TLV_PADDING;
		if (type != OW_STAMP_TLV_HMAC)
			continue;
		if (!hmac_of(tlvs->key, sequence, tlvs->bytes, at, hmac) ||
		    CRYPTO_memcmp(hmac, tlvs->bytes + at + OW_STAMP_TLV_HEAD, sizeof hmac) != 0)
			return true;
		*ret_hmac = at;
	}
	return needed && others && *ret_hmac == tlvs->size;
}

void ow_stamp_tlvs_reflect(const uint8_t *bytes, size_t size, const struct ow_stamp_key *key, const uint8_t *request,
                           const uint8_t *reply, bool base_keyed, uint8_t *ret_tlvs)
{
	const struct tlvs tlvs = {bytes, size, key};
	size_t hmac = size;
	memcpy(ret_tlvs, bytes, size);
	if (size < OW_STAMP_TLV_HEAD || !(bytes[0] & OW_STAMP_TLV_U))
		return;
	bool broken = key && is_broken(&tlvs, request, base_keyed, &hmac);
	for (size_t at = 0; size - at >= OW_STAMP_TLV_HEAD; at += length_at(bytes, at)) {
		bool malformed = is_malformed(&tlvs, at);
		ret_tlvs[at] = (uint8_t)((bytes[at] & ~FLAGS) | (is_known(&tlvs, bytes[at + 1]) ? 0 : OW_STAMP_TLV_U) |
		                         (malformed ? OW_STAMP_TLV_M : 0) | (broken ? OW_STAMP_TLV_I : 0));
		if (malformed)
			break;
	}
	/* Computed over the reply, flags included. */
	if (!broken && hmac < size)
		(void)hmac_of(key, reply, ret_tlvs, hmac, ret_tlvs + hmac + OW_STAMP_TLV_HEAD);
}
