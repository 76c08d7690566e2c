/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "store/stored.h"

/*
 * Sums of stored results, or of minutes, hours or days. Counts add up, those of samples as the packets that each stands
 * for; means are weighted by them; the standard deviation is that of all packets, pooled from those of the intervals.
 * Quantiles are those of the sum of histograms.
 */

/* The extremes of a number and their intervals. count 0: there are none. */
struct ow_stored_extreme {
	uint64_t count; /* intervals in which it is known */
	double low, high;
	int64_t low_ns, high_ns; /* their starts */
};

/* The largest number of fields that are added up (OW_SUM_ADD). */
#define OW_STORED_COUNTS 32

struct ow_stored_sum {
	size_t lane;               /* its index in ow_stored_lanes; for a segment that of the first one */
	int64_t start_ns;          /* of the hour, day or bin; otherwise of the first interval */
	int64_t end_ns;            /* the same for the end; otherwise of the last interval */
	int64_t first_ns, last_ns; /* from the start of its first interval to the end of its last */
	uint64_t intervals;        /* in the store: measured + partial + unknown */
	uint64_t measured, partial, unknown;
	uint64_t provisional;             /* of these, not final */
	uint64_t missing;                 /* absent in the store, between others */
	uint64_t sampled;                 /* of these, with counts of a sample */
	uint64_t count[OW_STORED_COUNTS]; /* see ow_stored_sum_counts */
	uint64_t samples;                 /* packets whose delay is in the mean */
	double decided, decided_lost;     /* weighted by the packets that a packet of a sample stands for */
	double weight, mean_ns, m2;       /* packets with a delay, their mean, sum of squared deviations */
	struct ow_delay_histogram delays; /* of these, where they are known */
	bool active;                      /* some are probes */
	uint64_t rows;                    /* with a delay: intervals, minutes, hours or days */
	struct ow_stored_extreme min_ns, max_ns, mean, p99_ns, loss; /* of these */
	uint64_t above_p99; /* those of them whose p99 is above the given limit */
	uint64_t clock_unknown;
	int64_t clock_error_ns; /* the worst sum of both clocks' bounds; -1: none known */
	char clock_method[16];  /* of the last row; "": not known */
};

/* Intervals without a full result, by cause; runs of digits become N. */
#define OW_STORED_CAUSES 64
struct ow_stored_cause {
	char text[OW_RESULT_CAUSE];
	enum ow_result_status status;
	uint64_t intervals;
	int64_t first_ns, last_ns;
};

enum ow_stored_group { OW_STORED_LANE, OW_STORED_SEGMENT, OW_STORED_HOUR, OW_STORED_DAY, OW_STORED_BIN };

struct ow_stored_sums {
	struct ow_stored_sum *sum; /* in the order of time, then of their first result */
	size_t count, room;
	struct ow_stored_cause cause[OW_STORED_CAUSES + 1]; /* the last: all others */
	size_t causes;
	uint64_t intervals;
};

/* What a row says besides numbers. */
struct ow_stored_notice {
	size_t lane; /* its index in ow_stored_lanes */
	enum ow_result_status status;
	const char *cause, *clock_event; /* "": none */
	int64_t start_ns, end_ns;
	uint64_t intervals; /* partial and unknown ones */
};

struct ow_stored_sum_options {
	enum ow_stored_group group;
	int64_t bin_ns;       /* OW_STORED_BIN */
	int64_t p99_limit_ns; /* for above_p99 */
	/* What to read (ow_stored_divide); the period of the selection is then its longest. NULL: the selected period. */
	const struct ow_stored_division *division;
	/* If not NULL: called for each row that was not or not fully measured, or has an event of the clocks. */
	void (*on_notice)(void *arg, const struct ow_stored_notice *notice);
	void *arg;
	bool notices_only; /* other rows are not read: there are no numbers */
};

/* Hours and days are those of the local time zone. */
int ow_stored_summarise(struct ow_stored *stored, const struct ow_stored_sum_options *options,
                        struct ow_stored_sums *ret_sums, struct ow_error *err);
/*
 * The same from the longest periods that give it, up to `most`, and shorter ones at the ends of the selected time: every
 * interval counts once (ow_stored_divide).
 */
int ow_stored_summarise_any(struct ow_stored *stored, const struct ow_stored_sum_options *options, enum ow_period most,
                            struct ow_stored_sums *ret_sums, struct ow_error *err);
/* The query that is run for it, for EXPLAIN. */
char *ow_stored_sum_sql(const struct ow_stored *stored);
void ow_stored_sums_done(struct ow_stored_sums *sums);

/* Sets the counts of *result: those of the sum. Not counted somewhere is not counted. `samples` is that of the sum. */
void ow_stored_sum_counts(const struct ow_stored_sum *sum, struct ow_interval_result *result);
/* lost of those whose fate is decided; NaN: none is. */
double ow_stored_sum_loss(const struct ow_stored_sum *sum);
/* NaN: no delay is known. */
double ow_stored_sum_mean(const struct ow_stored_sum *sum);
double ow_stored_sum_stddev(const struct ow_stored_sum *sum);
/* The least and the greatest delay. NaN: not those of all packets are known. */
double ow_stored_sum_min(const struct ow_stored_sum *sum);
double ow_stored_sum_max(const struct ow_stored_sum *sum);
/* Without the error of the clocks. NONE: the delays of too many packets are not in a histogram. */
struct ow_value ow_stored_sum_quantile(const struct ow_stored_sum *sum, double q);
/* Measured intervals as a share of all, those that are missing included. NaN: there are none. */
double ow_stored_sum_availability(const struct ow_stored_sum *sum);

/* For people and machines: one block for a lane or segment, one line for an hour or day. width: columns, 0 = any. */
struct ow_stored_show {
	FILE *out;
	unsigned width;
	bool colour;
};
void ow_stored_show(const struct ow_stored_show *show, const struct ow_stored *stored,
                    const struct ow_stored_sums *sums, enum ow_stored_group group);
/* The members of a sum, and of a cause, for an object that is open. */
void ow_stored_sum_json(struct ow_json *json, const struct ow_stored *stored, const struct ow_stored_sum *sum,
                        enum ow_stored_group group);
void ow_stored_cause_json(struct ow_json *json, const struct ow_stored_cause *cause);
void ow_stored_json(FILE *out, const struct ow_stored *stored, const struct ow_stored_sums *sums,
                    enum ow_stored_group group);
/* Delay and loss over time as a picture; sums are those of bins. */
int ow_stored_plot(const char *path, const struct ow_stored *stored, const struct ow_stored_sums *sums,
                   struct ow_error *err);
#define OW_STORED_PLOT_LANES 12
