/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct stage_record *entry_of(struct stage *s, enum ow_side side, const struct ow_record *record)
{
	assert_in_range(record->number, 1, s->count[side]);
	return &s->entry[side][record->number - 1];
}

static void note_pair(struct stage *s, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct stage_record *a = entry_of(s, OW_SIDE_A, pair->record[OW_SIDE_A]);
	struct stage_record *b = entry_of(s, OW_SIDE_B, pair->record[OW_SIDE_B]);
	assert_int_equal(a->end, STAGE_WAITS);
	assert_int_equal(b->end, STAGE_WAITS);
	assert_true(a->record.time_ns == pair->record[OW_SIDE_A]->time_ns &&
	            a->record.id == pair->record[OW_SIDE_A]->id);
	assert_true(b->record.time_ns == pair->record[OW_SIDE_B]->time_ns &&
	            b->record.id == pair->record[OW_SIDE_B]->id);
	a->end = b->end = STAGE_MATCHED;
	a->partner = (uint32_t)pair->record[OW_SIDE_B]->number - 1;
	b->partner = (uint32_t)pair->record[OW_SIDE_A]->number - 1;
	a->certainty = b->certainty = certainty;
	a->less_ns = b->less_ns = pair->less_ns;
	a->more_ns = b->more_ns = pair->more_ns;
	assert_true(pair->less_ns >= 0 && pair->more_ns >= 0);
	assert_int_equal(certainty == OW_UNCERTAIN, pair->less_ns > 0 || pair->more_ns > 0);
}

static void on_matched(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct stage *s = arg;
	assert_true(pair->record[OW_SIDE_A]->id == pair->record[OW_SIDE_B]->id);
	assert_int_equal(pair->record[OW_SIDE_A]->len, pair->record[OW_SIDE_B]->len);
	assert_int_equal(pair->record[OW_SIDE_A]->seq, pair->record[OW_SIDE_B]->seq);
	s->pairs++;
	s->open += certainty == OW_UNSETTLED;
	if (!s->pieces && certainty != OW_UNSETTLED)
		note_pair(s, pair, certainty);
	if (s->on_pair)
		s->on_pair(s, pair, certainty);
}

/* Late, but of records that are still on the stage. */
static void on_met(void *arg, const struct ow_meeting *meeting, size_t count)
{
	struct stage *s = arg;
	for (const struct ow_meeting *m = meeting; m < meeting + count; m++) {
		struct ow_record met[OW_SIDES];
		for (unsigned side = 0; side < OW_SIDES; side++) {
			assert_in_range(m->number[side], 1, s->count[side]);
			met[side] = s->entry[side][m->number[side] - 1].record;
			met[side].time_ns = m->time_ns[side];
			assert_int_equal(met[side].flow, m->flow[side]);
			assert_int_equal(met[side].len, 0);
		}
		assert_int_equal(m->untimed, met[OW_SIDE_A].untimed | met[OW_SIDE_B].untimed);
		on_matched(s, &(struct ow_pair){.record = {&met[OW_SIDE_A], &met[OW_SIDE_B]}}, OW_CERTAIN);
		s->met++;
	}
}

static void on_settled(void *arg, const struct ow_pair *pair, enum ow_certainty certainty)
{
	struct stage *s = arg;
	assert_int_not_equal(certainty, OW_UNSETTLED);
	assert_true(s->open > 0);
	s->open--;
	assert_false(s->pieces); /* byte ranges are decided at once */
	note_pair(s, pair, certainty);
}

static void on_unmatched(void *arg, enum ow_side side, const struct ow_record *record, bool copy)
{
	struct stage *s = arg;
	struct stage_record *e = entry_of(s, side, record);
	s->unmatched[side]++;
	if (!s->pieces) {
		assert_int_equal(e->end, STAGE_WAITS);
		e->end = STAGE_UNMATCHED;
		e->copy = copy;
	}
	if (s->on_single)
		s->on_single(s, side, record, copy);
}

static enum ow_direction on_direction(void *arg, enum ow_side side, uint32_t flow)
{
	const struct stage *s = arg;
	(void)side;
	(void)flow;
	return s->way;
}

static void open_stage(struct stage *s, int64_t window_ns, enum ow_direction way, bool at_once)
{
	memset(s, 0, sizeof *s);
	s->window_ns = window_ns;
	s->way = way;
	const struct ow_matcher_calls calls = {
		at_once ? NULL : on_met, on_matched, on_settled, on_unmatched, on_direction, s};
	assert_int_equal(ow_matcher_create(window_ns, &calls, &s->matcher), 0);
}

void stage_open(struct stage *s, int64_t window_ns, enum ow_direction way)
{
	open_stage(s, window_ns, way, true);
}

void stage_open_late(struct stage *s, int64_t window_ns, enum ow_direction way)
{
	open_stage(s, window_ns, way, false);
}

void stage_close(struct stage *s)
{
	ow_matcher_free(s->matcher);
	s->matcher = NULL;
}

void stage_clear(struct stage *s)
{
	s->count[OW_SIDE_A] = s->count[OW_SIDE_B] = 0;
	s->pairs = s->unmatched[OW_SIDE_A] = s->unmatched[OW_SIDE_B] = 0;
}

struct stage_record *stage_put(struct stage *s, enum ow_side side, uint64_t id, int64_t time_ns, uint64_t truth)
{
	assert_true(s->count[side] < STAGE_MAX);
	struct stage_record *e = &s->entry[side][s->count[side]++];
	memset(e, 0, sizeof *e);
	e->record.id = id;
	e->record.time_ns = time_ns;
	e->record.number = s->count[side];
	e->truth = truth;
	return e;
}

void stage_play(struct stage *s, int64_t end_ns)
{
	uint32_t next[OW_SIDES] = {0, 0};
	for (;;) {
		int64_t t[OW_SIDES];
		for (unsigned side = 0; side < OW_SIDES; side++)
			t[side] = next[side] < s->count[side] ? s->entry[side][next[side]].record.time_ns : end_ns;
		if (next[OW_SIDE_A] == s->count[OW_SIDE_A] && next[OW_SIDE_B] == s->count[OW_SIDE_B])
			return;
		bool b = next[OW_SIDE_A] == s->count[OW_SIDE_A] ||
		         (next[OW_SIDE_B] < s->count[OW_SIDE_B] && t[OW_SIDE_B] < t[OW_SIDE_A]);
		enum ow_side side = b ? OW_SIDE_B : OW_SIDE_A;
		const struct ow_record *record = &s->entry[side][next[side]++].record;
		ow_matcher_prefetch(s->matcher, record, 1);
		ow_matcher_prefetch_waiters(s->matcher, record, 1);
		assert_int_equal(ow_matcher_push(s->matcher, side, record, t[!side]), 0);
	}
}

void stage_finish(struct stage *s)
{
	assert_int_equal(ow_matcher_finish(s->matcher), 0);
}

void stage_check(const struct stage *s)
{
	assert_int_equal(s->open, 0);
	for (unsigned side = 0; side < OW_SIDES && !s->pieces; side++) {
		uint32_t matched = 0, unmatched = 0;
		for (uint32_t i = 0; i < s->count[side]; i++) {
			const struct stage_record *e = &s->entry[side][i];
			matched += e->end == STAGE_MATCHED;
			unmatched += e->end == STAGE_UNMATCHED;
			if (e->end == STAGE_MATCHED)
				assert_int_not_equal(e->certainty, OW_UNSETTLED);
		}
		assert_int_equal(matched, s->pairs);
		assert_int_equal(unmatched, s->unmatched[side]);
		assert_int_equal(matched + unmatched, s->count[side]);
	}
}
