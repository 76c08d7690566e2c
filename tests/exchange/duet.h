/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "exchange/exchange.h"

/*
 * Two exchanges of a lane with a wire in memory between them, and traffic with known truth: packets go through real
 * interval logs, frames over a wire that may delay, drop, duplicate, reorder or damage them.
 */
struct traffic {
	uint64_t packets;   /* of an interval */
	unsigned intervals; /* with traffic */
	int64_t length_ns;
	int64_t delay_ns, jitter_ns; /* least; plus exponential with this mean */
	double slow;                 /* share of packets that take slow_ns longer */
	int64_t slow_ns;
	double loss, duplicate;
	int64_t beat_ns; /* one more packet so often, which is the same each time and was sent already when the points begin; 0 = none */
	double identical; /* share of packets that have the id of one that was sent shortly before */
	unsigned
		blind_at; /* B sees nothing in this interval, in which the last fifth of the one before arrives; 0 = it sees all */
	int64_t mirrored_ns; /* A shows each packet again after this time: not in the truth; 0 = it does not */
	uint64_t seed;
	unsigned calm_from, calm; /* from this interval on only one in so many packets is sent; 0 = all always */
	size_t sightings_max[2];  /* of a page at A, at B; 0 = no limit */
	unsigned shift[2];        /* of the recorders, at first */
	uint64_t drops[2];        /* frames that the rings drop in each interval */
	bool trusted;             /* one clock */
	bool elsewhere;           /* the points' messages take another way than these packets */
};

struct duet;

struct line {
	/* Sees each frame before its addressee does. */
	void (*mischief)(struct duet *duet, int to, const uint8_t *frame, size_t size, int64_t now_ns);
	double drop, twice, damage, swap; /* share of the frames */
	int64_t delay_ns;                 /* of a frame */
	bool cut_at;                      /* the connection breaks in every third interval, what is under way is lost */
};

#define SHIFTS 6
struct truth {
	uint64_t sent, lost;                       /* of the packets sent in an interval */
	uint64_t sent_at[SHIFTS], lost_at[SHIFTS]; /* of those that a sample of this shift has */
	uint64_t arrived_late;                     /* in another interval than their own */
	double delay_sum, delay_sum2;              /* of those that arrived, first arrivals */
	int64_t min_ns, max_ns;
};

struct outcomes {
	struct ow_interval_result *provisional, *final; /* by interval */
	bool *has_provisional, *has_final;
	unsigned results;
	int64_t last_final;
	unsigned shift;
};

struct duet {
	struct traffic traffic;
	struct line line;
	struct ow_exchange *x[2]; /* A sends */
	struct outcomes got[2];
	struct truth *truth;
	unsigned intervals; /* that can have results */
	uint64_t bytes, frames, refused;
	struct ow_interval_result total[2];
	struct ow_identity identity;
};

/* The whole run. method and options' buckets and sample as the exchange takes them. */
void duet_run(struct duet *duet, const struct traffic *traffic, const struct line *line,
              const struct ow_exchange_options *options);
void duet_done(struct duet *duet);
