/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * The packets that two points have in common, in the order of their arrival at the second one. The receiver knows the
 * order; the sender finds it from all times, and assumes that packets of one time arrived as they were sent. A check of
 * the order shows whether this is true.
 */
struct ow_arrival {
	int64_t time_ns; /* at the receiver */
	uint32_t place;  /* at the point that makes the list; decides between equal times */
	uint32_t number; /* of the packet; the same at both points */
};

void ow_arrivals_sort(struct ow_arrival *arrival, size_t count);
uint64_t ow_arrivals_check(const struct ow_arrival *arrival, size_t count);

/* In the order of arrivals: counts reordered packets (RFC 4737, 3.3: sent earlier than one that has arrived before). */
struct ow_arrivals_newest {
	int64_t sent_ns; /* INT64_MIN = none has arrived */
	uint32_t place;
	uint64_t reordered;
};
/* sent_ns, place: of the next arrival at the sender; the place decides between packets of one time. */
void ow_arrivals_next(struct ow_arrivals_newest *newest, int64_t sent_ns, uint32_t place);
