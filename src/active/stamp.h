/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Packets of STAMP, the Simple Two-way Active Measurement Protocol (RFC 8762, with the session identifier and the TLVs
 * of RFC 8972). In unauthenticated mode they are also those of TWAMP Light (RFC 5357, appendix I). Big-endian, octets:
 *
 *     probe   unauthenticated          44    authenticated                112
 *             0 sequence               4     0 sequence                    4
 *             4 time sent (T1)         8     4 zero                       12
 *            12 error estimate         2    16 time sent (T1)              8
 *            14 session id             2    24 error estimate              2
 *            16 zero                  28    26 session id                  2
 *                                           28 zero                       68
 *                                           96 HMAC                       16
 *     reply   unauthenticated          44    authenticated                112
 *             0 sequence, reflector's  4     0 sequence, reflector's       4
 *             4 time sent (T3)         8     4 zero                       12
 *            12 error estimate         2    16 time sent (T3)              8
 *            14 session id             2    24 error estimate              2
 *            16 time received (T2)     8    26 session id                  2
 *            24 sequence of the probe  4    28 zero                        4
 *            28 T1 of the probe        8    32 time received (T2)          8
 *            36 its error estimate     2    40 zero                        8
 *            38 zero                   2    48 sequence of the probe       4
 *            40 its TTL                1    52 zero                       12
 *            41 zero                   3    64 T1 of the probe             8
 *                                           72 its error estimate          2
 *                                           74 zero                        6
 *                                           80 its TTL                     1
 *                                           81 zero                       15
 *                                           96 HMAC                       16
 *
 * HMAC: SHA-256 of the first 96 octets, cut to 16. TLVs follow the base: flags (1), type (1), length (2), value. The
 * flags: 0x80 U not understood (probes: set), 0x40 M malformed, 0x20 I integrity. The TLV of type 8 is an HMAC of the
 * sequence number and all TLVs before it; only padding (type 1) may follow it.
 */
#define OW_STAMP_PORT       "862"
#define OW_STAMP_BASE       44
#define OW_STAMP_BASE_KEYED 112
#define OW_STAMP_PACKET_MAX 9216
/* TWAMP Light: a probe without padding, and a reply up to the last field. */
#define OW_STAMP_PROBE_MIN 14
#define OW_STAMP_REPLY_MIN 41

#define OW_STAMP_TLV_HEAD    4
#define OW_STAMP_TLV_PADDING 1
#define OW_STAMP_TLV_HMAC    8
#define OW_STAMP_TLV_U       0x80
#define OW_STAMP_TLV_M       0x40
#define OW_STAMP_TLV_I       0x20

#define OW_STAMP_HMAC 16

/* The shared secret, which makes the mode authenticated. NULL: unauthenticated. */
struct ow_stamp_key {
	const uint8_t *bytes;
	size_t size;
};
/* key: may be NULL. Done also erases the bytes. */
int ow_stamp_key_copy(const struct ow_stamp_key *key, struct ow_stamp_key *ret_copy);
void ow_stamp_key_done(struct ow_stamp_key *copy);

struct ow_stamp_probe {
	uint32_t sequence;
	uint64_t sent; /* 64 bits as on the wire; the error estimate says which format they have */
	uint16_t error;
	uint16_t session;
};

struct ow_stamp_reply {
	uint32_t sequence; /* the reflector's own; a stateless reflector repeats the probe's */
	uint64_t sent, received;
	uint16_t error;
	uint16_t session;
	struct ow_stamp_probe probe; /* as it arrived; a reply contains the session once */
	uint8_t probe_ttl;           /* TTL or hop limit of the probe when it arrived */
};

/* Writes a probe of `size` octets: OW_STAMP_BASE[_KEYED], or at least OW_STAMP_TLV_HEAD more (padding, in a TLV). */
void ow_stamp_probe_write(const struct ow_stamp_probe *probe, const struct ow_stamp_key *key, uint8_t *packet,
                          size_t size);
/* -EMSGSIZE: too short (or longer than OW_STAMP_PACKET_MAX), -EBADMSG: the HMAC does not match the key. */
int ow_stamp_probe_read(const uint8_t *packet, size_t size, const struct ow_stamp_key *key,
                        struct ow_stamp_probe *ret_probe);

/*
 * Writes the reply to a request that ow_stamp_probe_read has accepted, into `packet`, which is as long as the request.
 * What follows the base is copied, TLVs with their new flags. -EMSGSIZE, and nothing is written: the request is shorter
 * than a reply, which would be an amplification.
 */
int ow_stamp_reply_write(const uint8_t *request, size_t size, const struct ow_stamp_reply *reply,
                         const struct ow_stamp_key *key, uint8_t *packet);
/*
 * Whether a packet that ow_stamp_probe_read has accepted looks like a reply: where a probe has zeros or padding, it has
 * an arrival time within OW_STAMP_TURN_S of its sending time. A reflector must not answer it, because two reflectors
 * would answer each other for ever. Random padding looks like this once in 2 * 10^8 probes.
 */
#define OW_STAMP_TURN_S 10
bool ow_stamp_is_reply(const uint8_t *packet, size_t size, const struct ow_stamp_key *key);
/* As ow_stamp_probe_read. */
int ow_stamp_reply_read(const uint8_t *packet, size_t size, const struct ow_stamp_key *key,
                        struct ow_stamp_reply *ret_reply);

/* -- times ----------------------------------------------------------------------------------------------------------
 *
 * NTP: seconds since 1900 and 2^-32 s; PTP: seconds since 1970 and nanoseconds, in TAI, which is ahead of UTC by
 * tai_s seconds (37 since 2017). Both wrap: the time meant is the one nearest to near_ns.
 */
uint64_t ow_stamp_time_write(int64_t unix_ns, bool ptp, int tai_s);
/* -ERANGE: not a valid time (10^9 nanoseconds or more). */
int ow_stamp_time_read(uint64_t time, bool ptp, int tai_s, int64_t near_ns, int64_t *ret_unix_ns);

/* The error estimate: 0x8000 S synchronised to UTC, 0x4000 Z times are PTP's, 6 bits scale, 8 bits multiplier; the
 * error is multiplier * 2^(scale - 32) s. Writing rounds up. Reading gives OW_CLOCK_UNKNOWN without S, or with
 * multiplier 0. */
#define OW_STAMP_ERROR_S 0x8000u
#define OW_STAMP_ERROR_Z 0x4000u
uint16_t ow_stamp_error_write(const struct ow_clock_state *clock, bool ptp);
void ow_stamp_error_read(uint16_t error, struct ow_clock_state *ret_clock);
static inline bool ow_stamp_error_ptp(uint16_t error)
{
	return error & OW_STAMP_ERROR_Z;
}

/* For stamp.c and stamp_tlv.c only. */

/* false: it could not be computed, and is all zeros. */
bool ow_stamp_hmac(const struct ow_stamp_key *key, const uint8_t *bytes, size_t size, uint8_t ret_hmac[OW_STAMP_HMAC]);
/* Copies what follows the base of a request (`size` octets) into a reply, TLVs with their flags. sequence: those of the
 * request's and of the reply's base, 4 octets each. */
void ow_stamp_tlvs_reflect(const uint8_t *tlvs, size_t size, const struct ow_stamp_key *key, const uint8_t *request,
                           const uint8_t *reply, bool base_keyed, uint8_t *ret_tlvs);
