/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/colate.h"
#include "synopsis/flow_counts.h"

/*
 * An epoch: what a point recorded of the packets of flows over a time, and its encoding. All epochs of one recording
 * have the same description; only epochs with the same description can be added up or compared. docs/epochs.md
 * describes the bytes.
 */

/* How packets were selected, recorded and counted. */
struct ow_epoch_info {
	struct ow_colate_params params;
	struct ow_flow_select select;
	enum ow_level level; /* ip, nat or frame */
	bool inner;          /* tunnels were entered */
	bool any_ip_id;      /* the IPv4 identification is not part of the id */
	uint32_t id_bytes;   /* bytes from the IP header on that enter the id; UINT32_MAX = all */
	int64_t interval_ns; /* epochs end at multiples of it; 0 = by threshold or at the end. Only for display */
	bool counts;         /* there are flow counts */
};

/* 0, or -EINVAL with an error that names the invalid or different value (interval and counts may differ). */
int ow_epoch_info_check(const struct ow_epoch_info *info, struct ow_error *err);
int ow_epoch_info_comparable(const struct ow_epoch_info *a, const struct ow_epoch_info *b, struct ow_error *err);

/* Why an epoch may not be what passed. */
enum ow_epoch_flaw {
	OW_EPOCH_MISSED = 1,    /* packets were not recorded: a ring or memory was full, or an interface was away */
	OW_EPOCH_CLOCK_SET = 2, /* times before and after are of two clocks */
};
#define OW_EPOCH_FLAWS (OW_EPOCH_MISSED | OW_EPOCH_CLOCK_SET)

struct ow_epoch {
	/* The time of the epoch: multiples of the interval, or from its first packet to just after its last. */
	int64_t begin_ns, end_ns;
	uint32_t epochs;               /* number of epochs that were added up; 1 for a single one */
	uint8_t flaws;                 /* of any of them */
	struct ow_colate *colate;      /* with first and last time */
	struct ow_flow_counts *counts; /* NULL = there are none */
};

#define OW_EPOCH_INFO_BYTES_MAX 8192u
/* Times are within this of 1970, as those of frames: sums and differences of two do not overflow. */
#define OW_EPOCH_TIME_MAX ((INT64_C(1) << 62) - 1)
/* The largest encoding of an epoch. */
#define OW_EPOCH_BYTES_MAX UINT32_MAX

/* The caller frees *ret_bytes. -ENOMEM. */
int ow_epoch_info_encode(const struct ow_epoch_info *info, uint8_t **ret_bytes, size_t *ret_size);
int ow_epoch_info_decode(const uint8_t *bytes, size_t size, struct ow_epoch_info *ret_info, struct ow_error *err);

/* The bits of counters and those of flow counts. Either may be NULL. */
struct ow_epoch_cost {
	size_t counter_bytes, count_bytes;
};
int ow_epoch_encode(const struct ow_epoch *epoch, uint8_t **ret_bytes, size_t *ret_size,
                    struct ow_epoch_cost *ret_cost);
/*
 * Decodes an epoch and adds it to the given one, which must have been initialised with the same info: time range,
 * epochs, counters and counts are added up. Any bytes give an epoch or an error; after an error the sum is not usable.
 * An epoch with epochs = 0 is an empty sum.
 */
int ow_epoch_decode_add(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size, struct ow_epoch *sum,
                        struct ow_error *err);
/* Adds only the table of lost packets of an epoch, which must have one. */
int ow_epoch_decode_repair(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size,
                           struct ow_repair_cell *sum, struct ow_error *err);
/*
 * Initialises an empty sum, and frees it. flows_max: of its flow counts, up to OW_FLOW_COUNTS_MAX; 0 ignores flow counts. To
 * decode more flows is -ENOSPC.
 */
int ow_epoch_init(const struct ow_epoch_info *info, size_t flows_max, struct ow_epoch *ret_epoch, struct ow_error *err);
void ow_epoch_done(struct ow_epoch *epoch);
