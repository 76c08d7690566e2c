/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include <oneway/match.h>

/*
 * Two captures of UDP packets between two hosts, made packet by packet, so that the truth of each is known. Times are
 * those of A's clock since the start; B's clock is ahead by offset_ns and gains drift.
 */
struct pair_frame {
	int64_t time_ns; /* by the capture's own clock, since the start */
	uint8_t ip[36];
};

struct pair_maker {
	char path[OW_SIDES][64];
	struct pair_frame *frame[OW_SIDES];
	size_t frames[OW_SIDES], room[OW_SIDES];
	struct ow_random random;
	uint32_t made;
	int64_t offset_ns;
	double drift;
	uint8_t hops; /* routers between the points */
	struct ow_match *match;
};

#define PAIR_START_S INT64_C(1700000000)

void pair_init(struct pair_maker *pair, uint64_t seed);
void pair_done(struct pair_maker *pair);
/* A packet that no other is like. lost: the receiving point does not see it. */
void pair_send(struct pair_maker *pair, enum ow_direction way, int64_t sent_ns, int64_t delay_ns, bool lost);
/* A packet that is like all others of this kind and direction, as polls are. */
void pair_poll(struct pair_maker *pair, enum ow_direction way, uint8_t kind, int64_t sent_ns, int64_t delay_ns,
               bool lost);
/* The capture shows nothing from from_ns on until to_ns, by its own clock. Returns how many frames are left out. */
size_t pair_cut(struct pair_maker *pair, enum ow_side side, int64_t from_ns, int64_t to_ns);
/* The capture shows this frame. */
void pair_show(struct pair_maker *pair, enum ow_side side, const struct pair_frame *frame);
/* The capture shows this share of its frames once more, least_ns to most_ns later. Returns how many. */
size_t pair_mirror(struct pair_maker *pair, enum ow_side side, double share, int64_t least_ns, int64_t most_ns);
/* Uniform from least to most. */
int64_t pair_between(struct pair_maker *pair, int64_t least_ns, int64_t most_ns);
/* Exponential beyond a floor, as queues make it. */
int64_t pair_queue(struct pair_maker *pair, int64_t floor_ns, int64_t mean_ns);
bool pair_chance(struct pair_maker *pair, double probability);

/* Writes the captures and matches them; counts are conserved. options: NULL = the defaults. */
const struct ow_match_report *pair_match(struct pair_maker *pair, const struct ow_match_options *options);
bool pair_warns(const struct ow_match_report *report, const char *text);
