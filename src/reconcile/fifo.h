/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A path that keeps the order of packets. Unique packets that passed it are marks: what arrived between two of them was
 * sent between them. This tells identical packets apart. Not every packet becomes a mark, so that the marks of the last
 * two waiting times fit into a ring of fixed size.
 */
struct ow_fifo_mark {
	int64_t sent_ns, received_ns;
};

struct ow_fifo {
	struct ow_fifo_mark *mark; /* a ring; NULL: the path is not known to keep order */
	uint64_t marks;            /* number of marks ever noted */
	int64_t spacing_ns;        /* smallest distance of marks, at one end of the path */
	int64_t slack_ns;          /* largest error of timestamps */
};

/* Returns 0 or -ENOMEM. */
int ow_fifo_init(struct ow_fifo *fifo, int64_t window_ns, int64_t slack_ns);
void ow_fifo_done(struct ow_fifo *fifo);
/* A unique packet. Ignored if it is out of order. */
void ow_fifo_note(struct ow_fifo *fifo, int64_t sent_ns, int64_t received_ns);
/* The packet that was received then is not unique. */
void ow_fifo_forget(struct ow_fifo *fifo, int64_t received_ns);
/* The time when a packet that arrived then was sent: not before .. not after. INT64_MIN, INT64_MAX: not known. */
void ow_fifo_sent(const struct ow_fifo *fifo, int64_t received_ns, int64_t *ret_not_before_ns,
                  int64_t *ret_not_after_ns);
