/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes STAMP packets: RFC 8762 sections 4.2 to 4.6, RFC 4656 section 4.1.2 (error estimate), RFC 8186
 * (PTP timestamps). */
#include "active/stamp.h"

#include "base/bytes.h"
#include "base/time.h"
#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define COVERED       96          /* octets that the HMAC of the base covers */
#define NTP_UNIX      2208988800u /* seconds from 1900 to 1970 */
#define MULTIPLIER    0xffu
#define SCALE_MAX     63u
#define ERROR_UNKNOWN (SCALE_MAX << 8 | MULTIPLIER)

/* The offsets of the fields, by mode. */
static const struct layout {
	uint8_t base, sent, error, session, received, probe_sequence, probe_sent, probe_error, probe_ttl;
} layouts[2] = {
	{OW_STAMP_BASE, 4, 12, 14, 16, 24, 28, 36, 40},
	{OW_STAMP_BASE_KEYED, 16, 24, 26, 32, 48, 64, 72, 80},
};

static const struct layout *layout_of(const struct ow_stamp_key *key)
{
	return &layouts[key != NULL];
}

/* -- keys --------------------------------------------------------------------------------------------------------- */

int ow_stamp_key_copy(const struct ow_stamp_key *key, struct ow_stamp_key *ret_copy)
{
	*ret_copy = (struct ow_stamp_key){NULL, 0};
	if (!key)
		return 0;
	uint8_t *bytes = malloc(key->size);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, key->bytes, key->size);
	*ret_copy = (struct ow_stamp_key){bytes, key->size};
	return 0;
}

void ow_stamp_key_done(struct ow_stamp_key *copy)
{
	void *bytes = (void *)(uintptr_t)copy->bytes;
	if (bytes)
		explicit_bzero(bytes, copy->size);
	free(bytes);
}

/* -- HMAC --------------------------------------------------------------------------------------------------------- */

/* If the HMAC cannot be computed for lack of memory, no receiver accepts the packet. */
static void seal(uint8_t *packet, const struct ow_stamp_key *key)
{
	if (key)
		(void)ow_stamp_hmac(key, packet, COVERED, packet + COVERED);
}

static bool is_sealed(const uint8_t *packet, const struct ow_stamp_key *key)
{
	uint8_t hmac[OW_STAMP_HMAC];
	return !key ||
	       (ow_stamp_hmac(key, packet, COVERED, hmac) && CRYPTO_memcmp(hmac, packet + COVERED, sizeof hmac) == 0);
}

/* -- probes ------------------------------------------------------------------------------------------------------- */

void ow_stamp_probe_write(const struct ow_stamp_probe *probe, const struct ow_stamp_key *key, uint8_t *packet,
                          size_t size)
{
	const struct layout *at = layout_of(key);
	assert(size == at->base || (size >= (size_t)at->base + OW_STAMP_TLV_HEAD && size <= OW_STAMP_PACKET_MAX));
	memset(packet, 0, size);
	ow_store_be32(packet, probe->sequence);
	ow_store_be64(packet + at->sent, probe->sent);
	ow_store_be16(packet + at->error, probe->error);
	ow_store_be16(packet + at->session, probe->session);
	seal(packet, key);
	if (size == at->base)
		return;
	packet[at->base] = OW_STAMP_TLV_U;
	packet[at->base + 1] = OW_STAMP_TLV_PADDING;
	ow_store_be16(packet + at->base + 2, (uint16_t)(size - at->base - OW_STAMP_TLV_HEAD));
}

int ow_stamp_probe_read(const uint8_t *packet, size_t size, const struct ow_stamp_key *key,
                        struct ow_stamp_probe *ret_probe)
{
	const struct layout *at = layout_of(key);
	if (size < (key ? at->base : OW_STAMP_PROBE_MIN) || size > OW_STAMP_PACKET_MAX)
		return -EMSGSIZE;
	if (!is_sealed(packet, key))
		return -EBADMSG;
	*ret_probe = (struct ow_stamp_probe){
		.sequence = ow_load_be32(packet),
		.sent = ow_load_be64(packet + at->sent),
		.error = ow_load_be16(packet + at->error),
		/* The padding of a TWAMP sender can contain anything, so there is no session. */
		.session = size >= at->base ? ow_load_be16(packet + at->session) : 0,
	};
	return 0;
}

/* -- replies ------------------------------------------------------------------------------------------------------ */

int ow_stamp_reply_write(const uint8_t *request, size_t size, const struct ow_stamp_reply *reply,
                         const struct ow_stamp_key *key, uint8_t *packet)
{
	const struct layout *at = layout_of(key);
	uint8_t base[OW_STAMP_BASE_KEYED] = {0};
	if (size < (key ? at->base : OW_STAMP_REPLY_MIN) || size > OW_STAMP_PACKET_MAX)
		return -EMSGSIZE;
	ow_store_be32(base, reply->sequence);
	ow_store_be64(base + at->sent, reply->sent);
	ow_store_be16(base + at->error, reply->error);
	ow_store_be16(base + at->session, reply->session);
	ow_store_be64(base + at->received, reply->received);
	ow_store_be32(base + at->probe_sequence, reply->probe.sequence);
	ow_store_be64(base + at->probe_sent, reply->probe.sent);
	ow_store_be16(base + at->probe_error, reply->probe.error);
	base[at->probe_ttl] = reply->probe_ttl;
	seal(base, key);
	size_t head = size < at->base ? size : at->base;
	if (size > head)
		ow_stamp_tlvs_reflect(request + head, size - head, key, request, base, key != NULL, packet + head);
	memcpy(packet, base, head);
	return 0;
}

bool ow_stamp_is_reply(const uint8_t *packet, size_t size, const struct ow_stamp_key *key)
{
	const struct layout *at = layout_of(key);
	if (size < (key ? at->base : OW_STAMP_REPLY_MIN))
		return false;
	uint64_t received = ow_load_be64(packet + at->received), sent = ow_load_be64(packet + at->sent);
	uint32_t later_s = (uint32_t)(sent >> 32) - (uint32_t)(received >> 32);
	return received != 0 && later_s + OW_STAMP_TURN_S <= 2 * OW_STAMP_TURN_S;
}

int ow_stamp_reply_read(const uint8_t *packet, size_t size, const struct ow_stamp_key *key,
                        struct ow_stamp_reply *ret_reply)
{
	const struct layout *at = layout_of(key);
	if (size < (key ? at->base : OW_STAMP_REPLY_MIN) || size > OW_STAMP_PACKET_MAX)
		return -EMSGSIZE;
	if (!is_sealed(packet, key))
		return -EBADMSG;
	uint16_t session = ow_load_be16(packet + at->session);
	*ret_reply = (struct ow_stamp_reply){
		.sequence = ow_load_be32(packet),
		.sent = ow_load_be64(packet + at->sent),
		.error = ow_load_be16(packet + at->error),
		.session = session,
		.received = ow_load_be64(packet + at->received),
		.probe = {.sequence = ow_load_be32(packet + at->probe_sequence),
	                  .sent = ow_load_be64(packet + at->probe_sent),
	                  .error = ow_load_be16(packet + at->probe_error),
	                  .session = session},
		.probe_ttl = packet[at->probe_ttl],
	};
	return 0;
}

/* -- times -------------------------------------------------------------------------------------------------------- */

uint64_t ow_stamp_time_write(int64_t unix_ns, bool ptp, int tai_s)
{
	int64_t seconds = ow_floor_div(unix_ns, OW_NS_PER_S);
	uint64_t ns = (uint64_t)(unix_ns - seconds * OW_NS_PER_S);
	if (ptp)
		return (uint64_t)(uint32_t)(seconds + tai_s) << 32 | ns;
	/* Rounded to the nearest, so that reading gives the same nanosecond: 2^-32 s is less than a nanosecond. */
	uint64_t fraction = ((ns << 32) + OW_NS_PER_S / 2) / OW_NS_PER_S;
	return ((uint64_t)(uint32_t)(seconds + NTP_UNIX) << 32) + fraction;
}

int ow_stamp_time_read(uint64_t time, bool ptp, int tai_s, int64_t near_ns, int64_t *ret_unix_ns)
{
	uint32_t field = (uint32_t)(time >> 32), low = (uint32_t)time;
	if (ptp && low >= OW_NS_PER_S)
		return -ERANGE;
	int64_t ns = ptp ? low : (int64_t)(((uint64_t)low * OW_NS_PER_S + (UINT64_C(1) << 31)) >> 32);
	/* The difference from near_ns, in seconds, is a signed 32-bit number. */
	int64_t near = ow_floor_div(near_ns, OW_NS_PER_S);
	uint32_t near_field = (uint32_t)(ptp ? near + tai_s : near + NTP_UNIX);
	int64_t seconds = near + (int32_t)(field - near_field);
	if (seconds > INT64_MAX / OW_NS_PER_S - 2 || seconds < INT64_MIN / OW_NS_PER_S + 2)
		return -ERANGE;
	*ret_unix_ns = seconds * OW_NS_PER_S + ns;
	return 0;
}

uint16_t ow_stamp_error_write(const struct ow_clock_state *clock, bool ptp)
{
	uint16_t z = ptp ? OW_STAMP_ERROR_Z : 0;
	if (!clock->synchronised || clock->error_ns == OW_CLOCK_UNKNOWN || clock->error_ns < 0)
		return (uint16_t)(z | ERROR_UNKNOWN);
	/* In units of 2^-32 s, rounded up at each step. */
	unsigned __int128 units =
		(((unsigned __int128)(uint64_t)clock->error_ns << 32) + OW_NS_PER_S - 1) / OW_NS_PER_S;
	unsigned scale = 0;
	for (; units > MULTIPLIER; scale++)
		units = (units + 1) / 2;
	return (uint16_t)(OW_STAMP_ERROR_S | z | scale << 8 | (units ? (unsigned)units : 1));
}

void ow_stamp_error_read(uint16_t error, struct ow_clock_state *ret_clock)
{
	uint64_t units = error & MULTIPLIER;
	unsigned scale = error >> 8 & SCALE_MAX;
	*ret_clock = (struct ow_clock_state){.synchronised = false, .error_ns = OW_CLOCK_UNKNOWN};
	if (!(error & OW_STAMP_ERROR_S) || !units)
		return;
	unsigned __int128 ns = ((((unsigned __int128)units << scale) * OW_NS_PER_S) + UINT32_MAX) >> 32;
	/* A clock with an error of centuries counts as unknown. */
	if (ns < INT64_MAX)
		*ret_clock = (struct ow_clock_state){.synchronised = true, .error_ns = (int64_t)ns};
}
