/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"

/*
 * Results of probes that a reflector answers (STAMP, TWAMP), by interval of the sending time, for three lanes: there,
 * back, and the round trip (its class is "round-trip", or "CLASS/round-trip").
 *
 *     T1 -> T2                there, by both clocks
 *     T3 -> T4                back, by both clocks
 *     (T4 - T1) - (T3 - T2)   round trip, without the clocks' offsets
 *
 * If a reflector numbers its own replies ("stateful"), the numbers show in which direction a probe was lost: from the
 * reply before to the reply after some probes without reply, its numbers increase by those that arrived. If both
 * directions lost some, in probes of more than one interval, or if the numbers do not fit, the direction stays
 * undecided (`pending` of a final result). With a stateless reflector it is always undecided. The sender skips the
 * number OW_PROBES_SKIPPED, so that the first replies show which kind a reflector is.
 *
 * Probes are a sample of what the network does to packets in the interval: all values are estimates, with Student's
 * interval for the mean, and without quantiles that the probes do not bound.
 */
struct ow_probes;

enum ow_probes_lane { OW_PROBES_THERE, OW_PROBES_BACK, OW_PROBES_ROUND, OW_PROBES_LANES };

#define OW_PROBES_SKIPPED    1u           /* the number that is skipped */
#define OW_PROBES_WINDOW_MAX (1u << 20)   /* most probes that are remembered */
#define OW_PROBES_OPEN_MAX   4096         /* most intervals that are not final */
#define OW_PROBES_ROUND_NAME "round-trip" /* class of the round trips */

typedef void (*ow_probes_sink)(void *arg, const struct ow_interval_result *result);

struct ow_probes_options {
	const char *segment, *class_name, *from, *to;
	const char *method; /* for `synopsis`: "STAMP" */
	int64_t length_ns, wait_ns;
	uint32_t window; /* probes that are remembered: at least those of an interval and the waiting time */
	ow_probes_sink sink;
	void *arg;
};

/* -EINVAL: beyond the limits above; -ENAMETOOLONG; -ENOMEM. */
int ow_probes_create(const struct ow_probes_options *options, struct ow_probes **ret_probes);
void ow_probes_free(struct ow_probes *probes);

/* The sequence number of the next probe. */
uint32_t ow_probes_next(const struct ow_probes *probes);
/* Adds a probe that was sent. bytes: of the IP packet. -ENOBUFS: too many are remembered, it must not be sent. */
int ow_probes_room(const struct ow_probes *probes);
void ow_probes_sent(struct ow_probes *probes, int64_t sent_ns, uint32_t bytes);
/* Sets a more exact time of a probe that was sent. */
void ow_probes_stamped(struct ow_probes *probes, uint32_t sequence, int64_t sent_ns);
/* The time when it was sent; false: it is not remembered (any more). */
bool ow_probes_find(const struct ow_probes *probes, uint32_t sequence, int64_t *ret_sent_ns);

struct ow_probes_reply {
	uint32_t sequence, number; /* of the probe, of the reflector */
	int64_t t2_ns, t3_ns, t4_ns;
	bool timed; /* false: the reflector's times are invalid */
	uint32_t bytes;
	struct ow_clock_state far; /* the reflector's clock, according to the reply */
};

enum ow_probes_verdict {
	OW_PROBES_ANSWER,
	OW_PROBES_DUPLICATE, /* answered already */
	OW_PROBES_LATE,      /* after the waiting time, or after the clock was set */
	OW_PROBES_UNASKED,   /* does not belong to a probe that was sent */
	OW_PROBES_VERDICTS,
};
enum ow_probes_verdict ow_probes_reply(struct ow_probes *probes, const struct ow_probes_reply *reply);

/* Closes intervals: reports what is final at now_ns to the sink. near: this host's clock. */
void ow_probes_work(struct ow_probes *probes, int64_t now_ns, const struct ow_clock_state *near);
/* The clock was set, or the run ends: makes everything final. Probes that may still be answered stay undecided. */
void ow_probes_close(struct ow_probes *probes, int64_t now_ns, const struct ow_clock_state *near, const char *why);

/* The totals of the run so far. */
void ow_probes_total(const struct ow_probes *probes, enum ow_probes_lane lane, struct ow_interval_result *ret_total);
