/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a vantage saw in an epoch, and its message. A vantage is a point, an interface and a direction. The sample has
 * the packets with the smallest ids (trajectory sampling, RFC 5475): all vantages of a fleet use the same key, so they
 * choose the same packets. Whoever joins the samples (discovery/join.h) sees where each of these packets passed.
 *
 * The message (little-endian; a varint has 7 bits a byte, lowest first, the top bit set on all bytes but the last):
 *    0  "OWS", version (1)
 *    4  kind (1), generation of the fleet's key (4), generation of the clock (8)
 *   17  varints: length of an epoch in ms, epoch, start and end of what was seen in ns from the start of the epoch,
 *       error of the clock in ns + 1 (0 = not known), packets, frames that the capture dropped, records
 *       TAU (8): every id below it that passed is in the sample
 *       name of the point, name of the interface: length (2), UTF-8
 *       for each record, by rising id: varint of the id less the one before, time since the start of the epoch in
 *       units of 4 ns (4), hash of the flow (4), TTL (1), copies seen (1; at most 127; the top bit: in a tunnel), and
 *       only inside a tunnel the outer TTL (1)
 * A header has about 60 bytes, a record 16 to 18.
 */
#define OW_SAMPLE_VERSION      1
#define OW_SAMPLE_NAME         64 /* bytes of a name, with the terminating 0 */
#define OW_SAMPLE_RECORDS_MAX  4096
#define OW_SAMPLE_BYTES_MAX    (300 + OW_SAMPLE_RECORDS_MAX * 21)
#define OW_SAMPLE_EPOCH_NS     INT64_C(10000000000) /* the usual length of an epoch */
#define OW_SAMPLE_EPOCH_MIN_NS INT64_C(100000000)
#define OW_SAMPLE_EPOCH_MAX_NS INT64_C(17000000000) /* 2^32 units of 4 ns */
#define OW_SAMPLE_COPIES_MAX   127

/* The direction of the packets with regard to the host: leaving it, arriving, or unknown (taps, captures). */
enum ow_vantage_kind { OW_VANTAGE_OUT, OW_VANTAGE_IN, OW_VANTAGE_TAP, OW_VANTAGE_KINDS };
extern const char *const ow_vantage_kind_name[OW_VANTAGE_KINDS]; /* "out", "in", "tap" */

struct ow_sample_record {
	uint64_t id;
	int64_t time_ns; /* of the first copy */
	uint32_t flow;   /* keyed hash; NAT changes it */
	uint8_t ttl;
	uint8_t outer_ttl; /* 0: not in a tunnel */
	uint8_t copies;    /* packets with this id, at most OW_SAMPLE_COPIES_MAX */
};

struct ow_vantage_sample {
	char point[OW_SAMPLE_NAME], interface[OW_SAMPLE_NAME];
	enum ow_vantage_kind kind;
	uint32_t key_generation;
	uint64_t clock_generation;       /* another one: the clock was set, or the point was started anew */
	int64_t epoch, epoch_ns;         /* the epoch begins at epoch * epoch_ns of the point's clock */
	int64_t start_ns, end_ns;        /* what was seen: the whole epoch, or less when the point started in it */
	int64_t clock_error_ns;          /* as the point knows it; -1 = not known */
	uint64_t packets, drops;         /* drops: frames that the capture missed, of either direction */
	uint64_t tau;                    /* UINT64_MAX: all packets are in the sample */
	uint32_t count;                  /* of records */
	struct ow_sample_record *record; /* by rising id */
};

void ow_vantage_sample_done(struct ow_vantage_sample *sample);
/* Whether it covers its whole epoch. */
bool ow_vantage_sample_complete(const struct ow_vantage_sample *sample);

/* *ret_bytes: to be freed. -EINVAL for a sample that breaks the rules above. */
int ow_vantage_sample_encode(const struct ow_vantage_sample *sample, uint8_t **ret_bytes, size_t *ret_size,
                             struct ow_error *err);
/* Takes any bytes. -EPROTO with an error line; -ENOMEM. */
int ow_vantage_sample_decode(const uint8_t *bytes, size_t size, struct ow_vantage_sample *ret_sample,
                             struct ow_error *err);
