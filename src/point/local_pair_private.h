/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_LOCAL_PAIR_PRIVATE_H
#define OW_POINT_LOCAL_PAIR_PRIVATE_H

#include "base/steps.h"
#include "base/time.h"
#include "point/local_pair.h"
#include "record/interval_log.h"

/* The parts of point/both, for its own files: both.c (intervals, work), both_open.c (setting up), both_clock.c (a clock
 * that is set). */

/* Lanes are set up before the first interval begins. */
#define OW_BOTH_SETUP_NS (20 * OW_NS_PER_MS)

enum { OW_BOTH_FROM, OW_BOTH_TO, OW_BOTH_SIDES }; /* sources */
enum { OW_BOTH_SENDER, OW_BOTH_RECEIVER };        /* ledgers of a lane */

struct ow_both_book {
	uint32_t lane; /* of the recorder */
	struct ow_ledger *ledger;
	struct ow_page *page; /* closed, not compared yet */
	uint64_t misplaced;   /* told so far */
	unsigned source;
};

struct ow_both_lane {
	struct ow_live_result names;
	struct ow_both_book book[2];
	struct ow_settle *settle;
	struct ow_page *before; /* what arrived in the interval before */
	bool link_filter;       /* the filter of the class names the link layer, */
	bool met;               /* and has taken packets at both interfaces */
};

struct ow_both {
	struct ow_both_options options;
	struct ow_recorder *recorder;
	struct ow_both_lane *lane;
	size_t lanes;
	uint32_t *owner; /* of the recorder's lanes: 2 * lane + ledger */
	uint32_t owners;
	bool files;
	struct ow_steps steps;
	int64_t t0_ns;                   /* of interval 0, by the clock as it is now */
	int64_t base;                    /* the interval with which the ledgers begin: 0, or since the clock was set */
	int64_t lead;                    /* intervals before the first that counts */
	int64_t next;                    /* the interval that is compared next */
	int64_t split;                   /* 1 when an interval was split where the run ends: later ones count on */
	int64_t end_ns;                  /* nothing that was sent from here on counts, */
	int64_t stop_ns;                 /* and from here on nothing is looked at; INT64_MAX = open */
	uint64_t untimed[OW_BOTH_SIDES]; /* frames of a file without a time */
	int64_t over_ns[OW_BOTH_SIDES];  /* where a file ends: nothing is seen from here on; INT64_MAX = open */
	bool stopped;                    /* in the middle of things */
	int64_t since_ns;                /* when, by the steady clock */
	int64_t passed_ns;               /* up to where the recorder is complete */
	struct ow_live_result *held;     /* results of the end, to be told in the order of their intervals */
	size_t helds, held_room;
	bool holding;
	struct ow_outage outage[OW_BOTH_SIDES]; /* the last one */
	int failed;                             /* a source did: its errno, */
	struct ow_error err;
	bool done;
};

static inline int64_t ow_both_floor(int64_t time_ns, int64_t step_ns)
{
	int64_t rest = time_ns % step_ns;
	return time_ns - (rest < 0 ? rest + step_ns : rest);
}

static inline int64_t ow_both_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t ow_both_start_of(const struct ow_both *both, int64_t interval)
{
	return both->t0_ns + interval * both->options.length_ns;
}

/* both_open.c: lanes of the recorder for the lane of this index, and a ledger for each, from the interval both->base
 * on. */
int ow_both_add_books(struct ow_both *both, size_t index, struct ow_error *err);

/* both.c */
void ow_both_on_result(void *arg, const struct ow_live_result *result); /* the sink of all lanes */
/* Tells of what was held back: interval by interval, within each in the order of the lanes. */
void ow_both_release(struct ow_both *both);
/* Fills in what cannot be told by the packets themselves. */
void ow_both_complete(struct ow_both *both, struct ow_both_lane *lane, struct ow_live_result *r);

/* both_clock.c: begins anew where the clock was set; then the run may be done. */
int ow_both_look_at_clock(struct ow_both *both, struct ow_error *err);

#endif
