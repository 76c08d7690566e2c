/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that only one point has are found from the tables of both: which they are, of which flow, and when they passed,
 * within what the variances say. Tables that are too small or hostile give a part, and say so.
 */
#include "base/random.h"
#include "base/sort.h"
#include "flows/lost_packets.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define SEED  11
#define FLOWS 2000
#define BEGIN INT64_C(1700000000000000000)

struct world {
	struct ow_colate_params params;
	struct ow_repair_cell *a, *b;
	uint64_t *flow; /* hashes, ascending */
	size_t packets, lost, extra;
	struct ow_lost_packet *truth; /* by hash */
};

static int by_hash(const void *a, const void *b)
{
	const struct ow_lost_packet *x = a, *y = b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static void add(struct world *w, struct ow_repair_cell *table, uint64_t flow, uint64_t hash, int64_t time_ns)
{
	uint64_t time = (uint64_t)time_ns;
	ow_repair_add(table, w->params.repair_cells, w->params.seed, w->params.repair_shift, &flow, &hash, &time, 1);
}

/* deviation_ns: of exponential delays above 80 us. */
static void make_world(struct world *w, size_t packets, double loss, double extra, uint64_t room, double deviation_ns,
                       struct ow_random *random)
{
	*w = (struct world){.packets = packets};
	w->params = (struct ow_colate_params){
		.unit_ns = 1, .seed = 77, .repair_cells = ow_repair_cells_for(room), .repair_shift = 4};
	size_t cells = OW_REPAIR_BANKS * (size_t)w->params.repair_cells;
	w->a = calloc(cells, sizeof *w->a);
	w->b = calloc(cells, sizeof *w->b);
	w->flow = calloc(FLOWS, sizeof *w->flow);
	w->truth = calloc(packets, sizeof *w->truth);
	for (size_t i = 0; i < FLOWS; i++)
		w->flow[i] = ow_random_u64(random);
	ow_sort_ids(w->flow, FLOWS);
	for (size_t i = 0; i < packets; i++) {
		uint64_t flow = w->flow[ow_random_below(random, FLOWS)], hash = ow_random_u64(random);
		int64_t sent = BEGIN + (int64_t)i * 4000;
		int64_t received = sent + 80000 + (int64_t)(-log(1 - ow_random_unit(random)) * deviation_ns);
		bool is_lost = ow_random_unit(random) < loss, is_extra = !is_lost && ow_random_unit(random) < extra;
		if (!is_extra)
			add(w, w->a, flow, hash, sent);
		if (!is_lost)
			add(w, w->b, flow, hash, received);
		if (is_lost || is_extra)
			w->truth[w->lost + w->extra] =
				(struct ow_lost_packet){flow, ow_repair_hash(ow_repair_key(hash)), is_lost ? 1 : -1,
			                                is_lost ? sent : received, 0};
		w->lost += is_lost;
		w->extra += is_extra;
	}
	qsort(w->truth, w->lost + w->extra, sizeof *w->truth, by_hash);
}

static void free_world(struct world *w)
{
	free(w->a);
	free(w->b);
	free(w->flow);
	free(w->truth);
}

static struct ow_lost_packets find(const struct world *w)
{
	int64_t around = BEGIN + (int64_t)w->packets * 2000;
	const struct ow_lost_search search = {&w->params, w->flow, FLOWS, {around, around}, {0}, 0};
	struct ow_lost_packets packets = {0};
	assert_int_equal(ow_lost_packets_find(&search, w->a, w->b, &packets), 0);
	assert_int_equal(packets.lost + packets.extra, packets.count);
	return packets;
}

/* Every found packet is one of the truth. Returns the mean square of errors over their variances. */
static double check(const struct world *w, const struct ow_lost_packets *packets)
{
	double squares = 0;
	for (size_t i = 0; i < packets->count; i++) {
		const struct ow_lost_packet *p = &packets->packet[i];
		const struct ow_lost_packet *t = bsearch(p, w->truth, w->lost + w->extra, sizeof *t, by_hash);
		assert_non_null(t);
		assert_true(t->flow == p->flow && t->sign == p->sign);
		double error = (double)(p->time - t->time);
		squares += error * error / p->var;
	}
	return packets->count ? squares / (double)packets->count : 0;
}

/*
 * With room for the expected number and three deviations more. The variances are those of a graph without cycles: near
 * the limit of a table they are larger or smaller by a part.
 */
static void test_found(void **state)
{
	(void)state;
	static const struct {
		size_t packets;
		double loss, extra, room;
	} cases[] = {
		{1000, 0.01, 0, 1},      {20000, 0.01, 0, 1},  {20000, 0.01, 0.005, 1}, {200000, 0.01, 0, 1},
		{200000, 0.01, 0, 1.5},  {200000, 0.01, 0, 3}, {200000, 0.1, 0, 1},     {200000, 0.001, 0.001, 1},
		{200000, 0.05, 0.05, 1}, {100000, 0.5, 0, 1},
	};
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world w;
		double expected = (double)cases[i].packets * (cases[i].loss + cases[i].extra);
		uint64_t room = (uint64_t)(cases[i].room * (expected + 3 * sqrt(expected)));
		make_world(&w, cases[i].packets, cases[i].loss, cases[i].extra, room, 20000, &random);
		struct ow_lost_packets packets = find(&w);
		assert_int_equal(packets.lost, w.lost);
		assert_int_equal(packets.extra, w.extra);
		assert_int_equal(packets.unread, 0);
		double fit = check(&w, &packets);
		assert_true(fit > 0 && (packets.count < 100 || (fit > 0.5 && fit < 2)));
		ow_lost_packets_done(&packets);
		free_world(&w);
	}
}

static void test_nothing_lost(void **state)
{
	(void)state;
	struct ow_random random;
	struct world w;
	ow_random_seed(&random, SEED);
	make_world(&w, 5000, 0, 0, 100, 20000, &random);
	struct ow_lost_packets packets = find(&w);
	assert_int_equal(packets.count, 0);
	assert_int_equal(packets.unread, 0);
	ow_lost_packets_done(&packets);
	free_world(&w);
}

/* More packets differ than the table holds: what is found is true, and the rest is said. */
static void test_too_small(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (uint64_t room = 1; room <= 1000; room *= 10) {
		struct world w;
		make_world(&w, 100000, 0.02, 0.001, room, 20000, &random);
		struct ow_lost_packets packets = find(&w);
		assert_true(packets.unread > 0);
		assert_true(packets.count < w.lost + w.extra);
		check(&w, &packets);
		ow_lost_packets_done(&packets);
		free_world(&w);
	}
}

/* A packet that A saw twice more than B cannot be read, and does not hide the others. */
static void test_twice(void **state)
{
	(void)state;
	struct ow_random random;
	struct world w;
	ow_random_seed(&random, SEED);
	make_world(&w, 20000, 0.005, 0, 400, 20000, &random);
	for (int i = 0; i < 2; i++)
		add(&w, w.a, w.flow[7], UINT64_C(0x123456789abcdef0), BEGIN + 1000 * i);
	struct ow_lost_packets packets = find(&w);
	assert_true(packets.unread > 0);
	assert_true(packets.count > w.lost * 9 / 10);
	check(&w, &packets);
	ow_lost_packets_done(&packets);
	free_world(&w);
}

/* Any cells end. */
static void test_hostile(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int run = 0; run < 50; run++) {
		struct world w;
		make_world(&w, 2000, 0.01, 0, 50, 20000, &random);
		size_t cells = OW_REPAIR_BANKS * (size_t)w.params.repair_cells;
		for (size_t i = 0; i < cells; i++) {
			if (run % 2)
				w.a[i].packet = (ow_random_u64(&random) & ~UINT64_C(0xffff)) | 1;
			else
				w.a[i] = (struct ow_repair_cell){ow_random_u64(&random), ow_random_u64(&random)};
		}
		struct ow_lost_packets packets = find(&w);
		assert_true(packets.count <= cells);
		ow_lost_packets_done(&packets);
		free_world(&w);
	}
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(ow_repair_cells_for(0), 0);
	for (uint64_t packets = 1; packets < 5000000; packets = packets * 3 / 2 + 1) {
		uint32_t cells = ow_repair_cells_for(packets);
		assert_true(OW_REPAIR_BANKS * (double)cells >= 1.222 * (double)packets);
	}
	assert_int_equal(ow_repair_cells_for(UINT64_MAX), OW_REPAIR_CELLS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found), cmocka_unit_test(test_nothing_lost), cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_twice), cmocka_unit_test(test_hostile),      cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
