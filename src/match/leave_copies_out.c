/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that show packets twice. */
#include "match/match_private.h"

#include "base/hash.h"
#include "base/side.h"

#include <errno.h>

/* Below these shares of the matches, captures do not show packets twice. */
#define COPIES_SHARE 0.001 /* copies without counterpart */
#define ALIKE_SHARE  0.1   /* identical packets: both captures may show all of them twice */

/* Adds a capture's packets to the sample. */
static int sample_copies(struct ow_match *m, enum ow_side side, struct ow_duplicate_capture_sample *sample,
                         struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	struct ow_record_reader *input = &p->input[side];
	struct ow_record record[OW_RECORD_READER_BATCH];
	struct ow_time_base base = ow_match_pass_time_base(p, side);
	int n, r = ow_record_reader_start(input, &p->plan.identity, err);
	if (r < 0)
		return r;
	while ((n = ow_record_reader_read(input, record, err)) > 0) {
		for (int i = 0; i < n; i++) {
			const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, record[i].flow);
			/* A superframe and its first segment begin with the same byte. */
			uint64_t id = record[i].len ? ow_mix64(record[i].id ^ record[i].seq) : record[i].id;
			if (!e)
				return ow_error_set(err, ENOMEM, "out of memory");
			ow_duplicate_capture_sample_add(
				sample, &(struct ow_frame_sighting){id, ow_time_base_common(&base, record[i].time_ns),
			                                            (uint8_t)side, e->direction});
		}
	}
	return n;
}

/* The shortest round trip, or twice the smallest delay of the only direction. */
static int64_t least_round_trip(const struct ow_match_pass *p)
{
	int64_t ab = 0, ba = 0;
	bool has_ab = ow_match_floor(p, OW_A_TO_B, &ab), has_ba = ow_match_floor(p, OW_B_TO_A, &ba);
	int64_t trip = has_ab && has_ba ? ab + ba : 2 * (has_ab ? ab : ba);
	return trip > 0 ? trip : INT64_MAX;
}

/* At least one, because what was not seen yet may happen. */
static double most_lost(const struct ow_tally *sent)
{
	return (double)(sent->lost + 1) / (double)(sent->lost + sent->matched + 1);
}

static int judge_copies(struct ow_match *m, struct ow_duplicate_capture_verdict verdict[OW_SIDES], struct ow_error *err)
{
	const struct ow_match_pass *p = &m->pass;
	struct ow_duplicate_capture_sample *sample = ow_duplicate_capture_sample_create();
	struct ow_duplicate_capture_facts facts = {.round_trip_ns = least_round_trip(p)};
	int r = sample ? 0 : ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		facts.first_ns[side] = p->first_ns[side];
		facts.last_ns[side] = p->last_ns[side];
		facts.most_lost[side] = most_lost(&p->tally[ow_sent_by(side)]);
		r = sample_copies(m, side, sample, err);
	}
	if (r == 0)
		ow_duplicate_capture_judge(sample, &facts, verdict);
	ow_duplicate_capture_sample_free(sample);
	return r;
}

/* Packets of a side without a counterpart that are identical to one with a counterpart; and those that it sent. */
static uint64_t count_copies(struct ow_match *m, enum ow_side side, uint64_t *ret_sent)
{
	uint64_t all = 0, sent = 0;
	uint8_t sends = ow_sent_by(side);
	uint32_t flows = ow_flow_table_count(m->pass.input[side].flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct ow_flow_evidence *e = ow_directions_flow(m->pass.directions, side, i);
		uint64_t copies = e ? ow_directions_repeats(m->pass.directions, side, i)->copies : 0;
		all += copies;
		sent += e && e->direction == sends ? copies : 0;
	}
	*ret_sent = sent;
	return all;
}

/* Whether everything that this side sent and that did not arrive is identical to packets that did. */
static bool loses_only_copies(struct ow_match *m, enum ow_side side)
{
	uint64_t lost = m->pass.tally[ow_sent_by(side)].lost, copies;
	count_copies(m, side, &copies);
	return lost && copies >= lost;
}

/* Copies of superframes wait together, and are not recognised. */
static bool copies_likely(struct ow_match *m)
{
	if (m->pass.plan.identity.segments &&
	    (m->pass.unmatched_frames[OW_SIDE_A] || m->pass.unmatched_frames[OW_SIDE_B]))
		return true;
	/* Copies that come after the first ones met do not wait together, but are in the samples. */
	const struct ow_sample_overlap *c = &m->planner.common[m->planner.variant];
	if ((double)(c->common - c->unique) > ALIKE_SHARE * (double)c->common)
		return true;
	uint64_t alike = m->pass.repeats[OW_A_TO_B] + m->pass.repeats[OW_B_TO_A];
	uint64_t sent, copies = count_copies(m, OW_SIDE_A, &sent) + count_copies(m, OW_SIDE_B, &sent);
	return (double)copies > COPIES_SHARE * (double)ow_match_matched(&m->pass) ||
	       (double)alike > ALIKE_SHARE * (double)ow_match_matched(&m->pass);
}

/* If a capture shows packets twice, its copies are ignored. */
int ow_match_leave_copies_out(struct ow_match *m, struct ow_error *err)
{
	struct ow_duplicate_capture_verdict verdict[OW_SIDES] = {0};
	if (m->options.dedup_ns || m->pass.plan.untimed || !copies_likely(m))
		return 0;
	int r = judge_copies(m, verdict, err);
	if (r < 0)
		return r;
	bool twice = false;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		twice |= verdict[side].twice;
		verdict[side].unsure |= !verdict[side].twice && loses_only_copies(m, side);
		if (verdict[side].twice || !m->twice[side].twice)
			m->twice[side] = verdict[side];
	}
	for (unsigned side = 0; side < OW_SIDES && twice; side++) {
		if (ow_record_reader_dedup(&m->pass.input[side], &m->twice[side].rule) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
	}
	if (!twice)
		return 0;
	ow_directions_forget(m->pass.directions);
	m->clock_settled = m->drift_settled = false;
	return ow_match_settle(m, err);
}
