/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "record/interval_log.h"
#include <stdio.h>

/*
 * Random traffic with known truth, as two points with their own clocks see it. All times are since the start of the
 * run, the times of arrival by the receiving point's clock.
 */
#define WORLD_T0     INT64_C(1700000000000000000)
#define WORLD_SHIFTS 8

enum world_identical { WORLD_UNLIKE, WORLD_ALIKE, WORLD_PERIODIC };

struct world_options {
	uint64_t seed;
	unsigned intervals, tail; /* with traffic; after it */
	int64_t length_ns;
	uint32_t horizon;
	double packets; /* of an interval, about */
	bool bursts, boundaries;
	int64_t delay_ns, jitter_ns; /* least; exponential or, if wide, uniform */
	bool wide;
	double loss, duplicate;
	enum world_identical identical;
	bool identical_lost; /* identical packets can be lost */
	int64_t offset_ns;   /* of the receiving point's clock */
	bool under_way;      /* traffic until the very end, and from before the start */
	size_t sightings_max[2];
	double drops[2]; /* share of intervals in which a ring drops frames */
};

struct world_packet {
	uint64_t id;
	int64_t sent_ns, arrived_ns, again_ns; /* again: of a duplicate; INT64_MIN = none */
	bool lost;
	bool alike;   /* of identical ones */
	bool seen[3]; /* recorded: sent, arrived, again (a ring may have dropped it, or the run had not begun) */
};

struct world {
	struct world_options o;
	struct ow_identity identity;
	struct ow_random random;
	struct world_packet *packet; /* by time of sending */
	size_t packets;
	int64_t end_ns;
	uint64_t *dropped[2]; /* by interval */
	unsigned intervals;
};

/* What is true of the packets that were sent in an interval, of a sample. */
struct world_truth {
	uint64_t sent, received, matched, late, late_received, lost;
	uint64_t duplicated; /* further arrivals in the interval of the first one or the next, */
	uint64_t doubled;    /* and those in the interval in which the packet was sent and first arrived */
	uint64_t under_way;  /* neither lost nor seen */
	uint64_t unseen;     /* lost in a ring of the receiving point */
	uint64_t alike;      /* of sent */
	uint64_t delays;
	double sum, sum2;
	int64_t min_ns, max_ns;
	int64_t *delay_ns; /* sorted */
};

void world_random_options(struct world_options *o, uint64_t seed);
void world_print(const struct world_options *o, FILE *file);
void world_make(struct world *world, const struct world_options *o);
void world_done(struct world *world);

int64_t world_interval(const struct world *world, int64_t time_ns);
/* Of one interval, or of all (interval < 0): then late ones count as matched. */
void world_truth(const struct world *world, int64_t interval, unsigned shift, struct world_truth *ret_truth);
void world_truth_done(struct world_truth *truth);

/*
 * The interval log of a side, and the packets of all intervals: as chunks of several threads in random order make them.
 */
struct ow_interval_log *world_ledger(const struct world *world, int side);
void world_record(struct world *world, struct ow_interval_log *ledger, int side, int64_t interval, unsigned shift);
