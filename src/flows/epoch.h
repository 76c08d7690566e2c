/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_EPOCH_H
#define OW_FLOWS_EPOCH_H

#include "synopsis/colate.h"
#include "synopsis/flow_counts.h"

/*
 * An epoch: what a point recorded of its flows' packets for a while, and its bytes. All epochs of one recording share
 * one description; only epochs with the same one can be added up or compared. docs/epochs.md draws the bytes.
 */

/* How packets were taken, recorded and counted. */
struct ow_epoch_info {
	struct ow_colate_params params;
	struct ow_flow_select select;
	enum ow_level level; /* ip, nat or frame */
	bool inner;          /* tunnels were entered */
	bool any_ip_id;      /* the IPv4 identification is no part of the id */
	uint32_t id_bytes;   /* bytes from the IP header on that enter the id; UINT32_MAX = all */
	int64_t interval_ns; /* epochs end at multiples of it; 0 = by threshold or at the end. For people only */
	bool counts;         /* flow counts are there */
};

/* 0, or -EINVAL with a line that names what is wrong, or what differs (not: interval, counts). */
int ow_epoch_info_check(const struct ow_epoch_info *info, struct ow_error *err);
int ow_epoch_info_comparable(const struct ow_epoch_info *a, const struct ow_epoch_info *b, struct ow_error *err);

struct ow_epoch {
	/* The time that it stands for: multiples of the interval, or from its first packet to just after its last. */
	int64_t begin_ns, end_ns;
	uint32_t epochs;               /* how many were added up; 1 */
	struct ow_colate *colate;      /* with first and last time */
	struct ow_flow_counts *counts; /* NULL = not counted */
};

#define OW_EPOCH_INFO_BYTES_MAX 8192u
/* Of an epoch's encoding. */
#define OW_EPOCH_BYTES_MAX UINT32_MAX

/* *ret_bytes is the caller's to free. -ENOMEM. */
int ow_epoch_info_encode(const struct ow_epoch_info *info, uint8_t **ret_bytes, size_t *ret_size);
int ow_epoch_info_decode(const uint8_t *bytes, size_t size, struct ow_epoch_info *ret_info, struct ow_error *err);

/* Bits of counters and of flow counts are told apart: either may be NULL. */
struct ow_epoch_cost {
	size_t counter_bytes, count_bytes;
};
int ow_epoch_encode(const struct ow_epoch *epoch, uint8_t **ret_bytes, size_t *ret_size,
                    struct ow_epoch_cost *ret_cost);
/*
 * Adds the epoch that the bytes say to the one given, whose colate has info's parameters and whose counts, if wanted,
 * are there: span, epochs, counters and counts add up. Any bytes give an epoch or an error; after an error the sum is
 * of no use. An epoch with epochs = 0 is an empty sum.
 */
int ow_epoch_decode_add(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size, struct ow_epoch *sum,
                        struct ow_error *err);
/* An empty sum, and its end. with_counts: false leaves flow counts out, also where they are there. */
int ow_epoch_init(const struct ow_epoch_info *info, bool with_counts, struct ow_epoch *ret_epoch, struct ow_error *err);
void ow_epoch_done(struct ow_epoch *epoch);

#endif
