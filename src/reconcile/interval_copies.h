/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "reconcile/align.h"
#include "reconcile/plausible.h"
#include "reconcile/sent_lately.h"

/*
 * Identical packets in live measurements, where each interval is decided when it is over: which of those that arrived is
 * which of those that were sent in the interval, or before it and have not arrived yet (align.h). The last pairs of an
 * interval help to align those of the next one. For two points whose times can be compared: no packet arrives before it is
 * sent.
 */

struct ow_copies_pairs;

struct ow_interval_copies {
	struct ow_aligner *aligner;
	struct ow_plausible plausible; /* delays of other packets, .. */
	double others_ns;              /* .. and their sum */
	bool others_wait; /* other packets were sent, and none has arrived yet: nothing shows how long packets take */
	size_t aligned;   /* arrivals of this interval */
	unsigned calm;    /* intervals since the last with clear duplicates */
	/* The last pairs of each packet, of this interval and of the last one. */
	struct ow_copies_pairs *pairs[2];
	size_t count[2], room[2];
	struct ow_id_map by_id[2];
	struct ow_sent_lately lately;   /* which packets may be copies, although no interval has two */
	struct ow_sent_lately repeated; /* the same by name, for points (exchange/exchange_identical.c) */
	/* What is aligned. */
	int64_t *sent_ns, *received_ns;
	uint32_t *place;
	struct ow_align_arrival *arrival;
	size_t sent_room, place_room, received_room, arrival_room;
};

int ow_interval_copies_create(struct ow_interval_copies **ret_copies);
void ow_interval_copies_free(struct ow_interval_copies *copies);
/* An interval begins. */
void ow_interval_copies_begin(struct ow_interval_copies *copies);
/* The pairs of the last interval may be wrong: they do not help. */
void ow_interval_copies_forget(struct ow_interval_copies *copies);
/* The delay of another packet, which no one is identical to: in the interval, or shortly before it. */
void ow_interval_copies_learn(struct ow_interval_copies *copies, int64_t delay_ns);
/* Two clocks: if this is added to times of arrival, no packet arrives before it is sent. least_ns: of other packets' delays. Whole
 * steps keep pairs of the last interval valid, because what the clocks add to a delay changes from interval to interval. */
int64_t ow_interval_copies_lead(double least_ns);
/* All of them are known. */
void ow_interval_copies_learned(struct ow_interval_copies *copies);
/* One packet: all of its copies, in the order of time. */
struct ow_copy_times {
	uint64_t id;
	const int64_t *sent_ns, *received_ns;
	uint32_t waiting, sents,
		receiveds; /* sent_ns: first those that wait from earlier intervals; sents: all of them */
	int64_t start_ns;  /* of the interval */
	int64_t apart_ns;  /* time between the last two, if no interval has two of them; 0 = not known */
};

/* What one arrival is. */
struct ow_copy_fate {
	uint32_t sent;     /* a packet of this interval, the first one is 0; or OW_ALIGN_NONE */
	int64_t waited_ns; /* without one: which of those that wait, as sent_ns of struct ow_late_packets_interval */
	bool doubtful;     /* it may be another one, so its delay is not known */
};

struct ow_copy_counts {
	uint64_t duplicated; /* arrivals that are no first ones */
	uint64_t close;      /* arrivals of which it is not clear: late, or duplicated and as many more lost */
	bool odd;            /* they do not take as long as other packets: all are doubtful */
};

/*
 * If as many copies arrived as were sent, the n-th is the n-th. Otherwise they are aligned by their times; if it is not
 * clear which were sent before the interval, or copies is NULL (the times cannot be compared), or there are too many,
 * they are taken in turn (ow_late_packets_turns), and are doubtful where this may be wrong. ret_fate has room for
 * `receiveds`. 0 or -ENOMEM.
 */
int ow_interval_copies_pair(struct ow_interval_copies *copies, const struct ow_copy_times *of,
                            struct ow_copy_fate *ret_fate, struct ow_copy_counts *ret_counts);
