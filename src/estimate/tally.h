/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "estimate/spacing.h"
#include <oneway/match.h>

#define OW_TALLY_BUFFER 256

enum ow_uncertain { OW_UNCERTAIN_ESTIMATE, OW_UNCERTAIN_LEAST, OW_UNCERTAIN_MOST, OW_UNCERTAINS };

/* Summarises delays, some of which are uncertain (uncertain[] may be all NULL), with bounds. 0 or -ENOMEM. */
int ow_delays_bounded(const struct ow_delays *certain, struct ow_delays *const uncertain[OW_UNCERTAINS],
                      struct ow_delay *ret_delay);

/* Fills in these percentiles of the same delays; nothing without samples. 0 or -ENOMEM. */
int ow_delays_percentiles(const struct ow_delays *certain, struct ow_delays *const uncertain[OW_UNCERTAINS],
                          struct ow_percentile *percentile, unsigned count);

/* Counts what happens to the packets of one direction, and computes the result. */
struct ow_tally {
	uint64_t matched, lost, extra, duplicated, ambiguous, reordered;
	uint64_t newest_sent; /* highest number of a sent packet that has arrived */
	/* Of matched packets; INT64_MAX and INT64_MIN before the first. last_sent_ns: of packets whose position is
	 * known. */
	int64_t first_sent_ns, last_sent_ns;
	int64_t first_received_ns, last_received_ns; /* the same for arrivals */
	struct ow_delays *delays;
	/* Uncertain delays: the estimates, the shortest and the longest; NULL if there are none. */
	struct ow_delays *uncertain[OW_UNCERTAINS];
	int64_t period_ns; /* most uncertain delays are ambiguous by multiples of this: a candidate, and its votes */
	int64_t period_votes;
	uint64_t period_samples;
	struct ow_spacing spacing;       /* of packets whose position is known, and that arrived one after the other */
	int64_t reorder_ns;              /* the most by which a packet took longer than those that overtook it */
	int64_t sample[OW_TALLY_BUFFER]; /* buffer in front of `delays`; ow_tally_flush empties it */
	unsigned samples;
};

int ow_tally_init(struct ow_tally *tally);
void ow_tally_done(struct ow_tally *tally);
void ow_tally_reset(struct ow_tally *tally);

/* Adds a packet that arrived, in order of arrival. number: its position among the sent ones, or OW_TALLY_UNPLACED. */
#define OW_TALLY_UNPLACED UINT64_MAX
static inline void ow_tally_match(struct ow_tally *t, uint64_t number, int64_t sent_ns, int64_t received_ns,
                                  uint32_t packets)
{
	/* Without branches, because reordering is unpredictable. */
	t->first_sent_ns = sent_ns < t->first_sent_ns ? sent_ns : t->first_sent_ns;
	int64_t before_ns = t->last_received_ns;
	t->first_received_ns = received_ns < t->first_received_ns ? received_ns : t->first_received_ns;
	t->last_received_ns = received_ns > t->last_received_ns ? received_ns : t->last_received_ns;
	t->matched += packets;
	if (number == OW_TALLY_UNPLACED)
		return;
	ow_spacing_note(&t->spacing, (int64_t)((uint64_t)sent_ns - (uint64_t)t->last_sent_ns), packets);
	t->last_sent_ns = sent_ns > t->last_sent_ns ? sent_ns : t->last_sent_ns;
	/* RFC 4737 section 3.3: a packet is reordered if one that was sent later has arrived before it. */
	bool late = number < t->newest_sent;
	/* Of packets that are not late it has no meaning, and may overflow. */
	uint64_t longer_ns =
		((uint64_t)t->last_sent_ns - (uint64_t)sent_ns) + ((uint64_t)received_ns - (uint64_t)before_ns);
	int64_t overtaken_ns = (int64_t)(longer_ns & -(uint64_t)late);
	t->reorder_ns = overtaken_ns > t->reorder_ns ? overtaken_ns : t->reorder_ns;
	t->reordered += late ? packets : 0;
	t->newest_sent = late ? t->newest_sent : number;
}

void ow_tally_flush(struct ow_tally *tally);

/* Adds the delay of a packet that arrived. */
static inline void ow_tally_sample(struct ow_tally *t, int64_t delay_ns, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		t->sample[t->samples++] = delay_ns;
		if (t->samples == OW_TALLY_BUFFER)
			ow_tally_flush(t);
	}
}

/*
 * Adds an uncertain delay, which may be shorter by less_ns or longer by more_ns; step_ns: the distance to the nearest
 * other plausible delay. Counts as ambiguous. Returns 0 or -ENOMEM.
 */
int ow_tally_uncertain(struct ow_tally *tally, int64_t delay_ns, int64_t less_ns, int64_t more_ns, int64_t step_ns,
                       uint32_t packets);

/* Summarises the delays, with bounds; if out of memory, as if there were none. */
void ow_tally_summary(const struct ow_tally *tally, struct ow_delay *ret_delay);
/* All delays, the uncertain ones as estimated; NULL if out of memory. The caller returns them before the tally changes. */
const struct ow_delays *ow_tally_borrow(const struct ow_tally *tally);
void ow_tally_return(const struct ow_tally *tally, const struct ow_delays *delays);

/* Fills in the delays of these percentiles, after ow_tally_flush; nothing without samples. 0 or -ENOMEM. */
int ow_tally_percentiles(const struct ow_tally *tally, struct ow_percentile *percentile, unsigned count);

/* The counts and delays as a result, after ow_tally_flush. 0 or -ENOMEM. */
int ow_tally_result(const struct ow_tally *tally, struct ow_result *ret_result);
