/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * A queue in front of a link of a given rate: store and forward, first in first out. Its length is the unfinished work
 * in bytes: of the packet on the link only the remaining bytes count.
 */

/* RED: Floyd and Jacobson 1993, figures 2 and 17, with the parameters of the COLATE paper, section 6. Gentle is off. */
#define OW_RED_QUEUE_S    0.5        /* queue size: seconds at line rate */
#define OW_RED_MIN_TH     0.475      /* of the queue size */
#define OW_RED_MAX_TH     0.95       /* of the queue size */
#define OW_RED_WEIGHT     0.002      /* w_q */
#define OW_RED_MAX_P      (1.0 / 50) /* max_p */
#define OW_RED_IDLE_BYTES 500        /* typical packet whose transmission time ages the average while idle */

/* A queue without a limit holds this many seconds at line rate: no packet waits longer than a day. */
#define OW_QUEUE_MAX_S 86400.0

struct ow_queue {
	uint64_t rate_bps;
	double limit_bytes; /* at most OW_QUEUE_MAX_S at line rate */
	__int128 free_ps;   /* when the link will have sent everything, ps after the start */
	uint64_t remainder; /* and this / rate_bps of a ps more */
	/* RED only */
	bool red;
	double average_bytes;
	int64_t count; /* packets since the last drop; -1 = the average is below min_th */
};

/* limit_bytes 0 = no limit. */
void ow_queue_init_fifo(struct ow_queue *queue, double rate_bps, double limit_bytes);
void ow_queue_init_red(struct ow_queue *queue, double rate_bps);

/*
 * A packet of len bytes arrives now_ns after the start (not before the previous one). Returns its delay in ns, or -1 if
 * it is dropped.
 */
int64_t ow_queue_pass(struct ow_queue *queue, int64_t now_ns, uint32_t len, struct ow_random *random);
