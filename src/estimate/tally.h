/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_TALLY_H
#define OW_ESTIMATE_TALLY_H

#include "estimate/delay.h"

#define OW_TALLY_BUFFER 256

enum ow_uncertain { OW_UNCERTAIN_ESTIMATE, OW_UNCERTAIN_LEAST, OW_UNCERTAIN_MOST, OW_UNCERTAINS };

/* Sums up delays of which some are uncertain (uncertain[] may be all NULL), with bounds. 0 or -ENOMEM. */
int ow_delays_bounded(const struct ow_delays *certain, struct ow_delays *const uncertain[OW_UNCERTAINS],
                      struct ow_delay *ret_delay);

/* Counts what becomes of the packets of one direction, and makes the result of it. */
struct ow_tally {
	uint64_t matched, lost, extra, duplicated, ambiguous, reordered;
	uint64_t newest_sent; /* highest number of a sent packet that has arrived */
	/* Of matched packets; INT64_MAX and INT64_MIN before the first. last_sent_ns: of those whose place is known. */
	int64_t first_sent_ns, last_sent_ns;
	int64_t first_received_ns, last_received_ns; /* likewise */
	struct ow_delays *delays;
	/* Of uncertain delays: the estimates, the shortest and the longest; NULL while there are none. */
	struct ow_delays *uncertain[OW_UNCERTAINS];
	int64_t period_ns; /* most uncertain delays are open by multiples of this: a candidate, and the votes for it */
	int64_t period_votes;
	uint64_t period_samples;
	int64_t reorder_ns; /* the longest time by which a packet that was sent later arrived before another */
	int64_t sample[OW_TALLY_BUFFER]; /* delays on their way to `delays`; ow_tally_flush brings the last ones there
	                                  */
	unsigned samples;
};

int ow_tally_init(struct ow_tally *tally);
void ow_tally_done(struct ow_tally *tally);
void ow_tally_reset(struct ow_tally *tally);

/* A packet arrived. number: its place among the sent ones, or OW_TALLY_UNPLACED. In order of arrival. */
#define OW_TALLY_UNPLACED UINT64_MAX
static inline void ow_tally_match(struct ow_tally *t, uint64_t number, int64_t sent_ns, int64_t received_ns,
                                  uint32_t packets)
{
	/* No branches: where there is reordering, there is no telling. */
	t->first_sent_ns = sent_ns < t->first_sent_ns ? sent_ns : t->first_sent_ns;
	t->first_received_ns = received_ns < t->first_received_ns ? received_ns : t->first_received_ns;
	t->last_received_ns = received_ns > t->last_received_ns ? received_ns : t->last_received_ns;
	t->matched += packets;
	if (number == OW_TALLY_UNPLACED)
		return;
	t->last_sent_ns = sent_ns > t->last_sent_ns ? sent_ns : t->last_sent_ns;
	/* RFC 4737 section 3.3: reordered when a packet that was sent later has arrived before. */
	bool late = number < t->newest_sent;
	int64_t overtaken_ns = late ? t->last_sent_ns - sent_ns : 0;
	t->reorder_ns = overtaken_ns > t->reorder_ns ? overtaken_ns : t->reorder_ns;
	t->reordered += late ? packets : 0;
	t->newest_sent = late ? t->newest_sent : number;
}

void ow_tally_flush(struct ow_tally *tally);

/* The delay of a packet that arrived. */
static inline void ow_tally_sample(struct ow_tally *t, int64_t delay_ns, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		t->sample[t->samples++] = delay_ns;
		if (t->samples == OW_TALLY_BUFFER)
			ow_tally_flush(t);
	}
}

/*
 * An uncertain delay, which may be shorter by less_ns or longer by more_ns; step_ns: the distance of the nearest other
 * delay that is plausible. Counts as ambiguous. Returns 0 or -ENOMEM.
 */
int ow_tally_uncertain(struct ow_tally *tally, int64_t delay_ns, int64_t less_ns, int64_t more_ns, int64_t step_ns,
                       uint32_t packets);

/* The delays summed up, with bounds; as if there were none when out of memory. */
void ow_tally_summary(const struct ow_tally *tally, struct ow_delay *ret_delay);
/* All delays, the uncertain ones as estimated; the caller frees them. 0 or -ENOMEM. */
int ow_tally_delays(const struct ow_tally *tally, struct ow_delays **ret_delays);

/* The counts and delays as a result, after ow_tally_flush. 0 or -ENOMEM. */
int ow_tally_result(const struct ow_tally *tally, struct ow_result *ret_result);

#endif
