/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <stddef.h>

/*
 * The fields of struct ow_interval_result. JSON (writing and reading), the table of the store, the message between
 * points, sums over intervals, metrics and the counts in text are loops over this table. A new field is a member of the
 * struct, a row here, and its meaning in docs/json.md. `waiting` and `delay_bucket` have no row, because they stay
 * within the process.
 */
enum ow_field_type {
	OW_FIELD_NAME,      /* char[OW_RESULT_NAME]: part of the lane's name */
	OW_FIELD_TEXT,      /* char[] */
	OW_FIELD_INTEGER,   /* int64_t */
	OW_FIELD_FLAG,      /* bool */
	OW_FIELD_STATUS,    /* enum ow_result_status */
	OW_FIELD_COUNT,     /* uint64_t */
	OW_FIELD_SHIFT,     /* uint32_t, below 64 */
	OW_FIELD_NUMBER,    /* uint32_t */
	OW_FIELD_SHARE,     /* double, 0..1 */
	OW_FIELD_VALUE,     /* struct ow_value */
	OW_FIELD_QUANTILES, /* struct ow_value[OW_QUANTILES] */
	OW_FIELD_CLOCK,     /* struct ow_clock_state */
	OW_FIELD_HISTOGRAM, /* struct ow_delay_histogram */
	/* Members of JSON that are computed from the others. */
	OW_FIELD_CAUSE,    /* code of the cause */
	OW_FIELD_ERROR,    /* what the clocks may add to a delay */
	OW_FIELD_RATE,     /* of the sample */
	OW_FIELD_JITTER,   /* 0.95 quantile minus median */
	OW_FIELD_BOUNDS,   /* intervals of confidence of all values */
	OW_FIELD_REASONS,  /* why values are not known */
	OW_FIELD_WARNINGS, /* what the clocks mean for the delays */
};

/* How the results of two intervals are combined. */
enum ow_field_sum {
	OW_SUM_NONE,  /* computed from the distribution, or it has no meaning for a sum */
	OW_SUM_FIRST, /* that of the first interval */
	OW_SUM_LAST,
	OW_SUM_ADD,   /* a count; sums of a store have it as well */
	OW_SUM_COST,  /* added up; a store does not have it for unknown intervals */
	OW_SUM_MEAN,  /* added up, and divided by the number of intervals at the end */
	OW_SUM_MOST,  /* the larger number, or the less certain value */
	OW_SUM_ALL,   /* true if it is true for all */
	OW_SUM_WORSE, /* the less certain clock */
};

enum ow_field_flag {
	OW_FIELD_ALWAYS = 1,      /* JSON and metrics have it also for an unknown interval */
	OW_FIELD_OPTIONAL = 2,    /* not in JSON if false or empty */
	OW_FIELD_NOT_COUNTED = 4, /* may be OW_RESULT_NOT_COUNTED */
	OW_FIELD_OF_BYTES = 8,    /* a count of bytes, not of packets or frames */
	OW_FIELD_NO_BOUNDS = 16,  /* a value that is exact or not known */
	OW_FIELD_NOT_NULL = 32,   /* the store has it also for an unknown interval */
	OW_FIELD_OF_SAMPLE = 64,  /* a count of the packets of a sample by id, if there is one */
};

/* For Prometheus (docs/metrics.md). */
struct ow_field_metric {
	enum {
		OW_METRIC_NONE,
		OW_METRIC_COUNTER, /* the sum of final intervals */
		OW_METRIC_STAGE, /* the same, of nanoseconds: a part of the time that results took; no name of its own */
		OW_METRIC_GAUGE,   /* of the last final interval */
		OW_METRIC_SECONDS, /* the same, of nanoseconds */
	} kind;
	const char *name, *help;
};

struct ow_field {
	const char *json; /* the member; "object.member" for a member of an object */
	enum ow_field_type type;
	size_t offset, size; /* in struct ow_interval_result; size 0: it is computed from others */
	enum ow_field_sum sum;
	unsigned flags;
	unsigned wire;       /* its place in the message, from 1; 0: not in the message */
	const char *columns; /* columns in the store, separated by ", "; NULL: none */
	unsigned place;      /* place of these columns in the table of the store, from 1 */
	int since;           /* first version of the schema that has them */
	const char *meaning; /* of these columns, in the schema; may be NULL */
	struct ow_field_metric metric;
	const char *words; /* for a count: the text has a line "3 late: ..." unless it is 0. NULL: no such line */
};

extern const struct ow_field ow_fields[];
extern const size_t ow_field_count;

/*
 * The field at this place of the message or of the store's table; NULL if there is none. No place is above
 * ow_field_count.
 */
const struct ow_field *ow_field_wire(unsigned wire);
const struct ow_field *ow_field_place(unsigned place);

/* The name of the member within its object, and the name of that object, "" if there is none. */
const char *ow_field_name(const struct ow_field *field);
const char *ow_field_object(const struct ow_field *field, char ret_name[OW_RESULT_NAME]);

static inline void *ow_field_at(const struct ow_field *field, struct ow_interval_result *result)
{
	return (char *)result + field->offset;
}

static inline const void *ow_field_of(const struct ow_field *field, const struct ow_interval_result *result)
{
	return (const char *)result + field->offset;
}

/* Adds to a count, without overflow. If it is not counted in one, it is not counted in the sum. */
void ow_field_add_count(const struct ow_field *field, uint64_t *sum, uint64_t more);
/* Whether it is 0, false, or empty. */
bool ow_field_is_empty(const struct ow_field *field, const struct ow_interval_result *result);
/* Sets the value of a missing field, if the writer of the result did not know it: 0, or not counted. */
void ow_field_absent(const struct ow_field *field, struct ow_interval_result *result);
/* Adds the fields whose ow_field_sum is in `sums`, a bit for each, to *sum. */
void ow_fields_add(struct ow_interval_result *sum, const struct ow_interval_result *result, unsigned sums);
#define OW_SUM_BIT(sum) (1u << (sum))
/* Divides the fields that are means by the number of added intervals. */
void ow_fields_mean(struct ow_interval_result *sum, int64_t intervals);
