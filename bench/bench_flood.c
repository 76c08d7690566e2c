/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of packets that an attacker has chosen: bench_flood. The same number of packets goes from bytes
 * through the interval log, the matching and a fold that is peeled. There are three kinds: any packets; packets that
 * would collide in every table under a seed that is not in use; and one packet again and again. All kinds run in turns,
 * and the result is checked. Fails if the second kind costs more than twice the first. For comparison, it shows the
 * cost of the second kind in the table of copies if its seed is the one in use.
 */
#include "base/clock.h"
#include "../tests/match/flood.h"
#include "record/interval_log.h"
#include "reconcile/id_pairing.h"
#include "reconcile/fold_peel.h"
#include "synopsis/fold.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PACKETS   50000
#define ROUNDS    9
#define LOST      100 /* one packet in this many does not arrive */
#define KNOWN     UINT64_C(1)
#define LENGTH_NS INT64_C(1000000000)

enum kind { ANY, CHOSEN, SAME, KINDS };
static const char *const kind_name[KINDS] = {"any packets", "chosen for another key", "the same packet"};

static uint64_t number[KINDS][PACKETS];

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "bench_flood: %s\n", what);
	exit(1);
}

/* The interval packets of a kind; one packet in `leave` is missing, 0 = none. */
static struct ow_interval_packets *make_page(enum kind kind, const struct ow_identity *identity, unsigned leave)
{
	static struct {
		struct ow_chunk chunk;
		struct ow_sighting stamp[4096];
	} c;
	struct ow_interval_log_options options = {
		.identity = *identity, .length_ns = LENGTH_NS, .sightings_max = 4 * PACKETS, .open_max = 4};
	struct ow_interval_log *ledger;
	if (ow_interval_log_create(&options, &ledger) < 0)
		fail("memory");
	for (size_t i = 0; i < PACKETS;) {
		memset(&c.chunk, 0, sizeof c.chunk);
		for (; i < PACKETS && c.chunk.count < 4096; i++) {
			if (leave && i % leave == 0)
				continue;
			c.chunk.sighting[c.chunk.count++] =
				(struct ow_sighting){flood_id(identity, number[kind][i]), (int64_t)i * 1000};
		}
		c.chunk.packets = c.chunk.count;
		if (ow_interval_log_add(ledger, &c.chunk) < 0)
			fail("memory");
	}
	struct ow_interval_packets *page = ow_interval_log_next(ledger, LENGTH_NS);
	ow_interval_log_free(ledger);
	if (!page)
		fail("no page");
	return page;
}

static void check_pairs(const struct ow_interval_packets *a, const struct ow_interval_packets *b)
{
	uint32_t *of_a = malloc((a->count + 1) * sizeof *of_a), *of_b = malloc((b->count + 1) * sizeof *of_b);
	size_t pairs = 0;
	if (!of_a || !of_b || ow_pairing(a->sighting, a->count, b->sighting, b->count, of_a, of_b) < 0)
		fail("memory");
	for (size_t i = 0; i < a->count; i++)
		pairs += of_a[i] != OW_PAIRING_NONE;
	if (pairs != b->count)
		fail("not every packet that arrived was found");
	free(of_a);
	free(of_b);
}

static void check_fold(const struct ow_interval_packets *a, const struct ow_interval_packets *b)
{
	struct ow_fold_params params = {OW_FOLD_BANKS_MAX, ow_fold_cells_for(OW_FOLD_BANKS_MAX, 2.0 * PACKETS / LOST),
	                                0, false};
	struct ow_synopsis *mine, *theirs;
	struct ow_fold_difference difference = {0};
	if (ow_fold_create(&params, 5, &mine) < 0 || ow_fold_create(&params, 5, &theirs) < 0)
		fail("memory");
	mine->ops->add(mine, a->sighting, a->count);
	theirs->ops->add(theirs, b->sighting, b->count);
	if (ow_synopsis_subtract(mine, theirs, NULL) < 0 || ow_fold_peel(mine, NULL, &difference) < 0)
		fail("fold");
	if (!difference.complete || difference.as - difference.bs != a->count - b->count)
		fail("the fold does not show what is lost");
	ow_fold_difference_done(&difference);
	ow_synopsis_free(mine);
	ow_synopsis_free(theirs);
}

/* CPU time, so that other programs do not count. */
static int64_t spent_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static double run(enum kind kind, const struct ow_identity *identity)
{
	int64_t begin = spent_ns();
	struct ow_interval_packets *a = make_page(kind, identity, 0), *b = make_page(kind, identity, LOST);
	check_pairs(a, b);
	check_fold(a, b);
	double ns = (double)(spent_ns() - begin) / PACKETS;
	ow_interval_packets_free(a);
	ow_interval_packets_free(b);
	return ns;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The slots of the table of copies that are read for a packet. */
static double probes(enum kind kind, const struct ow_identity *identity)
{
	static struct ow_sighting stamp[PACKETS];
	struct ow_copies copies;
	ow_copies_init(&copies);
	if (ow_copies_reserve(&copies, PACKETS) < 0)
		fail("memory");
	for (size_t i = 0; i < PACKETS; i++)
		stamp[i] = (struct ow_sighting){flood_id(identity, number[kind][i]), 0};
	ow_copies_name(&copies, stamp, PACKETS);
	double each = (double)flood_probes(&copies) / PACKETS;
	ow_copies_done(&copies);
	return each;
}

int main(void)
{
	static double ns[KINDS][ROUNDS];
	struct ow_identity known = flood_identity(KNOWN),
			   secret = flood_identity(ow_mix64((uint64_t)ow_clock_steady_ns()));
	for (size_t i = 0; i < PACKETS; i++)
		number[ANY][i] = i;
	flood_choose(&known, number[CHOSEN], PACKETS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (enum kind kind = 0; kind < KINDS; kind++)
			ns[kind][round] = run(kind, &secret);
	}
	printf("%d packets, %d rounds: bytes, interval log, matching, fold; both points\n", PACKETS, ROUNDS);
	printf("%-24s %10s %10s %8s\n", "", "best", "median", "ratio");
	for (enum kind kind = 0; kind < KINDS; kind++) {
		qsort(ns[kind], ROUNDS, sizeof **ns, by_size);
		printf("%-24s %7.0f ns %7.0f ns %8.2f\n", kind_name[kind], ns[kind][0], ns[kind][ROUNDS / 2],
		       ns[kind][ROUNDS / 2] / ns[ANY][ROUNDS / 2]);
	}
	printf("slots of the table of copies looked at for a packet: %.2f, chosen %.2f, chosen for this key %.0f\n",
	       probes(ANY, &secret), probes(CHOSEN, &secret), probes(CHOSEN, &known));
	return ns[CHOSEN][ROUNDS / 2] > 2 * ns[ANY][ROUNDS / 2];
}
