/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that counters determine exactly, in systems that are written down. */
#include "flows/flows_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define FLOWS 4u
#define ROWS  6u
#define SLOTS 2u

/* Flow f has f + 1 packets of 100 (f + 1) ns each. Two banks of three counters. */
struct scene {
	struct ow_flows data;
	struct ow_flow_load flow[FLOWS];
	struct ow_flow_system system;
	struct ow_flow_entry entry[FLOWS * SLOTS];
	double packets[FLOWS], sum[ROWS], noise[ROWS];
	struct ow_flow_mean mean[FLOWS];
	bool exact[FLOWS];
};

static void scene_make(struct scene *s, const uint32_t row[FLOWS][SLOTS])
{
	memset(s, 0, sizeof *s);
	s->data.params.unit_ns = 1;
	s->data.params.layers = 1;
	s->data.layer[0].layer.last = OW_COLATE_SHARE;
	s->data.flow = s->flow;
	s->system = (struct ow_flow_system){.data = &s->data,
	                                    .flows = FLOWS,
	                                    .packets = s->packets,
	                                    .slots = SLOTS,
	                                    .entry = s->entry,
	                                    .rows = ROWS,
	                                    .sum = s->sum,
	                                    .noise = s->noise};
	for (uint32_t f = 0; f < FLOWS; f++) {
		s->packets[f] = f + 1;
		s->data.layer[0].packets[0] += f + 1;
		s->data.layer[0].packets[1] += f + 1;
		s->flow[f].whole = true;
		for (uint32_t j = 0; j < SLOTS; j++) {
			s->entry[f * SLOTS + j] = (struct ow_flow_entry){.row = row[f][j], .load = f + 1};
			s->sum[row[f][j]] += (f + 1) * 100.0 * (f + 1);
		}
	}
}

static void expect(struct scene *s, const bool exact[FLOWS])
{
	assert_int_equal(ow_flows_peel(&s->system, s->mean, s->exact), 0);
	for (uint32_t f = 0; f < FLOWS; f++) {
		assert_int_equal(s->exact[f], exact[f]);
		assert_true(s->mean[f].mean == (exact[f] ? 100.0 * (f + 1) : 0) && s->mean[f].var == 0);
	}
}

/* 0 is alone in row 0; without it 1 is alone in row 3, then 2 in row 1, then 3 in row 5. */
static const uint32_t chain[FLOWS][SLOTS] = {{0, 3}, {1, 3}, {1, 5}, {2, 5}};

static void one_after_the_other(void **state)
{
	(void)state;
	struct scene s;
	scene_make(&s, chain);
	expect(&s, (bool[]){true, true, true, true});
}

static void a_circle_stays(void **state)
{
	(void)state;
	struct scene s;
	scene_make(&s, (const uint32_t[FLOWS][SLOTS]){{0, 3}, {1, 4}, {1, 5}, {1, 4}});
	/* 0 and 2 are alone in a row; 1 and 3 share both of theirs. */
	expect(&s, (bool[]){true, false, true, false});
}

/* Where a packet of an unknown flow may be in a sum, nothing is exact. */
static void only_where_all_is_known(void **state)
{
	(void)state;
	static const bool none[FLOWS];
	struct scene s;
	scene_make(&s, chain);
	s.data.params.unit_ns = 8;
	expect(&s, none);
	scene_make(&s, chain);
	s.data.layer[0].packets[1]++;
	expect(&s, none);
	scene_make(&s, chain);
	s.flow[0].whole = false;
	/* Row 3 holds flow 0, too; row 2 has flow 3 alone, and from there it goes back to 2 and 1. */
	expect(&s, (bool[]){false, true, true, true});
	scene_make(&s, chain);
	s.entry[0].load = s.entry[1].load = 0.5;
	expect(&s, (bool[]){false, true, true, true});
	/* A packet was taken out of row 0, and its time is not known exactly. */
	scene_make(&s, chain);
	s.noise[0] = s.noise[3] = 1;
	expect(&s, (bool[]){false, true, true, true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(a_circle_stays),
		cmocka_unit_test(only_where_all_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
