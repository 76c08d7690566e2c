/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_TALLY_H
#define OW_ESTIMATE_TALLY_H

#include "estimate/delay.h"

#define OW_TALLY_BUFFER 256

/* Counts what becomes of the packets of one direction, and makes the result of it. */
struct ow_tally {
	uint64_t matched, lost, extra, duplicated, ambiguous, reordered;
	uint64_t newest_sent;                        /* highest number of a sent packet that has arrived */
	int64_t first_sent_ns, last_sent_ns;         /* of matched packets; INT64_MAX and INT64_MIN before the first */
	int64_t first_received_ns, last_received_ns; /* likewise */
	struct ow_delays *delays;
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
	t->last_sent_ns = sent_ns > t->last_sent_ns ? sent_ns : t->last_sent_ns;
	t->first_received_ns = received_ns < t->first_received_ns ? received_ns : t->first_received_ns;
	t->last_received_ns = received_ns > t->last_received_ns ? received_ns : t->last_received_ns;
	t->matched += packets;
	if (number == OW_TALLY_UNPLACED)
		return;
	/* RFC 4737 section 3.3: reordered when a packet that was sent later has arrived before. */
	bool late = number < t->newest_sent;
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

/* The counts and delays as a result, after ow_tally_flush. */
void ow_tally_result(const struct ow_tally *tally, struct ow_result *ret_result);

#endif
