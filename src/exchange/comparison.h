/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/forecast.h"
#include "estimate/reconciled.h"
#include "exchange/exchange_private.h"
#include "reconcile/scope_keys.h"

/* One interval at the sender, which compares. The methods (method.h) keep their own data behind it. */

/* What it waits for. From OW_STAGE_NAMED on it knows which packets only the sender has. */
enum ow_stage {
	OW_STAGE_OPEN,     /* its own packets, or the other point's counts */
	OW_STAGE_AGAIN,    /* the same for fewer packets */
	OW_STAGE_SYNOPSIS, /* the further synopsis that the method has asked for */
	OW_STAGE_TURN,     /* the comparison of the intervals before */
	OW_STAGE_NAMED,    /* times and sums */
	OW_STAGE_READY,    /* nothing: it is compared */
	OW_STAGE_UNKNOWN,
};

struct ow_outcome {
	struct ow_interval_result result;
	struct ow_sighting *only_a, *only_b; /* by the names of the method */
	size_t only_as, only_bs;
	/* Arrivals of packets that both points have, and that may be confused with identical ones: their times were asked
	 * for. And for each of only_b, once they are aligned, as in struct ow_interval_results_input; as `close`. */
	struct ow_sighting *copy;
	size_t copies;
	int64_t *only_b_sent_ns;
	uint64_t close;
	uint64_t twice; /* as in struct ow_interval_results_input */
	bool odd;       /* some do not take as long as other packets */
	struct ow_reconciled_delay delay;
	size_t identical; /* the last so many of them, and .. */
	bool begun_amid;  /* .. as in struct ow_interval_results_input */
	/* As in struct ow_interval_results_input; NULL if the order of arrival is not known. */
	int64_t *newest_ns;
	int64_t newest_at_end_ns;
	struct ow_clock_sample *sample; /* delays with times, as many as the clocks need */
	size_t samples;
	struct ow_clock_floor floor;
	uint64_t differences;
	bool estimated; /* packets were not identified: the result is used unchanged */
};

struct ow_missing;

struct ow_comparison {
	struct ow_slot slot;
	struct ow_exchange *x;
	const struct ow_missing *missing; /* of all intervals (exchange_identical.h) */
	struct ow_forecast *forecast;     /* from all intervals before */
	enum ow_stage stage;
	bool pushed;                       /* the other point's counts have arrived: */
	struct ow_message_synopsis theirs; /* without the synopsis itself, */
	size_t held;                       /* which took this many bytes */
	struct ow_message_ask ask;         /* the last one */
	uint8_t *request;                  /* the last request, to be sent again */
	size_t request_size;
	int64_t requested_ns; /* steady */
	struct ow_result_cost cost;
	/* Scope (exchange_scope.h): the receiver's answer, the flows of the packets that are compared, and the packets of the
	 * others. */
	struct ow_scope_answer answer;
	bool confirmed;
	uint8_t *in_scope;
	struct ow_sighting *aside;
	size_t asides;
	struct ow_outcome outcome;
};

/* Sends a request, and keeps it. `stage` waits for the answer. Returns 0 or a negative errno. */
int ow_comparison_request(struct ow_comparison *c, enum ow_stage stage, struct ow_message *message);
/* The same for another synopsis. */
int ow_comparison_ask(struct ow_comparison *c, enum ow_stage stage, const struct ow_message_ask *ask);
/* The counts of both points and the cost so far. */
void ow_comparison_result(const struct ow_comparison *c, struct ow_interval_result *ret_result);
/* Every packet is identified, and listed in the outcome: a result with these numbers. */
void ow_comparison_measured(struct ow_comparison *c, const struct ow_estimate *estimate);
/* Not every packet is identified: a result that is used unchanged. */
void ow_comparison_estimated(struct ow_comparison *c, const struct ow_estimate *estimate, const char *cause);
void ow_comparison_unknown(struct ow_comparison *c, const char *cause);
/* The id of the first copy of a packet of the interval. */
uint64_t ow_comparison_base(const struct ow_comparison *c, uint64_t id);
/* Whether such times can be within the interval, or times from these on that are less than step_ns later. */
bool ow_comparison_within(const struct ow_comparison *c, const int64_t *time_ns, uint32_t count, int64_t step_ns);
/* The delays that packets of the interval can have. */
struct ow_delay_window ow_comparison_window(const struct ow_comparison *c);
/* Asks for what the clocks do to the delays, and takes it off the numbers; times stay as they are. */
void ow_comparison_correct(struct ow_comparison *c);
/* Samples that the clocks need of an interval. */
#define OW_COMPARISON_SAMPLES 1024
void ow_comparison_done(struct ow_comparison *c);
