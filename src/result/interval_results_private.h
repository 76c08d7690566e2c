/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/pool.h"
#include "result/interval_results.h"
#include "result/run_total.h"
#include "reconcile/late_packets.h"

/*
 * Private to the files of this module: interval_results.c (intervals in order), interval_doubt.c (whether packets may
 * have arrived unseen), interval_finish.c (the result of an interval). run_total.h: the sum of a run.
 */

/* Why a packet stays undecided. */
enum ow_doubt {
	OW_DOUBT_NONE,
	OW_DOUBT_UNKNOWN,
	OW_DOUBT_INCOMPLETE,
	OW_DOUBT_DROPS,
	OW_DOUBT_SAMPLED,
	OW_DOUBT_BEGUN,
	OW_DOUBT_ENDED,
	OW_DOUBT_MEMORY,
	OW_DOUBT_CHANGED,
};

struct ow_interval_results_open {
	struct ow_interval_result result;
	struct ow_interval_result *estimate; /* used instead of it; or NULL */
	bool quiet, unknown;
	bool incomplete; /* not all of several receivers told what they got */
	bool full;       /* all delays are in the histogram; otherwise only the late ones, and */
	int64_t *sample; /* a sample of the others */
	size_t samples;
	struct ow_delays *delays; /* kept when the slot of the ring is reused */
	uint64_t late, late_received;
	uint64_t
		unplaced; /* received packets that may have been sent in an earlier interval that is unknown, or before the first */
	bool coarser;     /* has a larger sample shift than the interval before */
	uint64_t alike;   /* late packets whose delay is uncertain */
	int64_t shift_ns; /* of the receiver's interval */
	int64_t matched_ns; /* sending time of its last packet that has arrived: INT64_MIN = none has; INT64_MAX = not known */
	uint64_t in_turn;   /* identical packets, sent or received late, that may be lost instead */
	uint64_t close;     /* identical packets that may be late or duplicates */
	bool amid;          /* identical packets were on their way when the first interval began */
	uint64_t twice;     /* packets that count as lost, and may be copies that the capture made */
	uint64_t reordered; /* late packets that were sent before packets that had arrived */
	bool unordered;     /* of a late packet that is not known */
	struct ow_scope_flow *flow;
	uint8_t *in_scope; /* of each flow; NULL = all are */
	size_t flows;
	uint64_t strange;        /* received, of flows that have no matched packet */
	uint64_t changed;        /* of them, possibly packets of the sender that were changed on the way */
	int64_t newest_extra_ns; /* when the last of the others arrived that no packet matches */
	uint64_t absent, unsure, whole, unlisted; /* of the packets whose waiting time is over */
};

/* Packets of the last second: duplicates, other extra ones, lost ones. */
struct ow_interval_results_recent {
	double duplicated, others, lost;
};

/* See ow_interval_results_missed. */
struct ow_interval_results_missed {
	int64_t interval;
	uint64_t missed, of; /* of 0: not known */
};

struct ow_interval_results {
	uint32_t horizon;
	ow_interval_results_sink sink;
	void *arg;
	struct ow_late_packets *late_packets;
	struct ow_scope_verdict *scope; /* NULL: everything must pass */
	bool one_of_several;            /* what the receiver did not get may have gone to another one */
	ow_flow_event_sink event_sink;
	struct ow_flow_event_limit event_limit;
	struct ow_flow_event event; /* names; start_ns and scope.interval are those of the newest interval */
	int64_t event_length_ns;    /* of an interval */
	int64_t noted;              /* the newest interval whose flows it knows */
	int64_t shared_ns;          /* end of the last final interval that had shared packets; INT64_MIN = none had */
	uint64_t unshared;          /* packets sent since then */
	struct ow_interval_results_recent recent;
	struct ow_interval_results_open *open;     /* ring of horizon + 1, by number */
	struct ow_interval_results_missed *missed; /* ring of twice as many, by interval */
	uint64_t first, next;                      /* numbers as in late_packets: from 1, without gaps */
	bool started;
	int64_t begun_ns;                  /* start of the first interval */
	bool changed;                      /* until the end of this run, packets may have been changed on the way */
	int64_t last_interval, end_ns;     /* of the newest */
	uint64_t blind;                    /* number of open intervals that may have missed arrivals, */
	uint64_t coarser;                  /* and of those with a larger shift than the one before */
	unsigned last_shift, before_shift; /* of the newest interval, and of the last that was closed */
	int64_t newest_ns;                 /* sending time of the latest packet that has arrived; INT64_MIN = none */
	int64_t reach_ns;                  /* a packet should arrive within this time; -1 = not known yet */
	int64_t ahead_ns;                  /* a packet may arrive this much before it was sent; -1 = not known yet */
	int64_t shown_ns;                  /* the same, if packets contradict the clocks; otherwise 0 */
	enum ow_doubt before;              /* why arrivals before the oldest open interval may have been missed */
	const struct ow_interval_results_input *input; /* during a step */
	/* during a step: packets that arrived until this time since its start may be of an unknown interval */
	int64_t unplaced_ns;
	enum ow_doubt doubt; /* why packets of the interval that is being decided stay undecided, */
	int64_t doubted;     /* and the interval that causes it */
	int64_t shift_ns;    /* of the receiver's newest interval */
	int64_t delay_ns[OW_INTERVAL_RESULTS_DELAYS]; /* of the last step */
	size_t delays, lates;                         /* first those of late packets */
	bool hasty; /* of those in time, as many or more were not there yet: these took less than most */
	struct ow_pool *scratch;
	struct ow_run_total *total;
};

static inline struct ow_interval_results_open *ow_interval_results_open_of(const struct ow_interval_results *results,
                                                                           uint64_t number)
{
	return results->open + number % (results->horizon + 1);
}

static inline struct ow_interval_results_missed *
ow_interval_results_missed_of(const struct ow_interval_results *results, int64_t interval)
{
	return results->missed + (uint64_t)interval % (2 * (results->horizon + UINT64_C(1)));
}

static inline bool ow_interval_results_is_blind(const struct ow_interval_results_open *open)
{
	return open->unknown || open->incomplete || open->result.ring_drops_to;
}

/* -- interval_doubt.c */

/* A packet with this delay was seen: others may take twice as long, or be as early. */
void ow_interval_results_raise_reach(struct ow_interval_results *results, int64_t delay_ns);
void ow_interval_results_raise_ahead(struct ow_interval_results *results, int64_t delay_ns);
/*
 * Detects clocks that differ by more than their error bounds: then many delays are negative. The limit is a quarter of
 * them, because identical packets that were confused cause a few as well.
 */
void ow_interval_results_learn_shown(struct ow_interval_results *results, const struct ow_interval_results_input *in);
/*
 * How long before its own interval a packet can arrive: by as much as the clocks can make it arrive before it was sent, by
 * their error bounds or, if packets show more, by that; and by the shift of the receiver's intervals.
 */
int64_t ow_interval_results_early(const struct ow_interval_results *results, const struct ow_interval_result *r,
                                  int64_t shift_ns);
/* Whether a packet of the oldest interval may have arrived unseen. A callback of reconcile/late_packets. */
bool ow_interval_results_on_undecided(void *arg, int64_t sent_ns);
/*
 * The time, since its start, until which an interval receives packets of an unknown interval before it, or of the time
 * before the first one; 0 = there is none.
 */
int64_t ow_interval_results_unplaced_until(const struct ow_interval_results *results,
                                           const struct ow_interval_results_input *in);
/* Whether a packet may have been sent in an unknown interval before this one. */
bool ow_interval_results_is_unplaced(const struct ow_interval_results *results, const struct ow_sighting *arrival);

/* -- interval_scope.c: without effect where everything must pass. */

/* The flows of an interval, until it is final. 0 or -ENOMEM. */
int ow_interval_results_keep_flows(const struct ow_interval_results *results,
                                   const struct ow_interval_results_input *in, struct ow_interval_results_open *open);
/* Which packets of the newest interval matched, unless it is noted already: to be called when all late ones are. And
 * that a packet of this flow did in a later interval; flow: its number, or 0. */
void ow_interval_results_note_flows(struct ow_interval_results *results);
void ow_interval_results_note_late(struct ow_interval_results *results, const struct ow_interval_results_open *sender,
                                   uint32_t flow, int64_t sent_ns);
/* Reports what happened to flows. newest: the interval that was added, NULL at the end. */
void ow_interval_results_tell_events(struct ow_interval_results *results, const struct ow_interval_result *newest);
/* Lost packets that the capture of the receiver may have missed are undecided. */
void ow_interval_results_explain_missed(const struct ow_interval_results *results,
                                        const struct ow_interval_results_open *open, struct ow_interval_result *result);
/* A final result of which nothing is shared, and has not been for a while, is unknown. */
void ow_interval_results_explain_changed(struct ow_interval_results *results,
                                         const struct ow_interval_results_open *open,
                                         struct ow_interval_result *result);
void ow_interval_results_explain_in_turn(const struct ow_interval_results_open *open,
                                         struct ow_interval_result *result);
void ow_interval_results_explain_unshared(struct ow_interval_results *results, struct ow_interval_result *result);
/* Whether the packets of the oldest interval that were not received are lost. A callback of reconcile/late_packets. */
int ow_interval_results_on_judge(void *arg, const struct ow_scope_packet *packets, size_t count, uint8_t *ret_fates);

/* -- interval_finish.c */

/*
 * The current result of an interval. Waiting packets are pending unless account decides otherwise (NULL = nothing
 * decided yet).
 */
void ow_interval_results_make_result(struct ow_interval_results *results, const struct ow_interval_results_open *open,
                                     const struct ow_late_packets_account *account,
                                     struct ow_interval_result *ret_result);
/* Frames that rings lost. */
void ow_interval_results_explain_drops(struct ow_interval_result *result);
/* Packets of flows that were not listed: it is not known whether they are lost. */
void ow_interval_results_explain_unlisted(const struct ow_interval_results_open *open,
                                          struct ow_interval_result *result);
/* For the interval that is being decided. */
void ow_interval_results_explain_undecided(const struct ow_interval_results *results,
                                           struct ow_interval_result *result);
