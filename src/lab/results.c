/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of a point; the result of each interval waits for the truth about it. */
#include "lab/lab.h"
#include "result/interval_result.h"
#include "result/json.h"
#include "result/result_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Intervals and directions that may wait for their result or truth: an hour of seconds. */
#define WAITING_MAX 8192
/* How the line about a whole run begins. */
#define SUMMARY "{\"summary\": "

struct entry {
	struct entry *next; /* by time, then direction */
	int64_t start_ns;
	enum ow_direction direction;
	bool has_measured, has_truth;
	struct ow_lab_measured measured;
	struct ow_wiretruth_report truth;
	double first_ready_ns;
};

struct ow_lab_results {
	ow_lab_row_sink sink;
	void *arg;
	struct entry *first;
	unsigned count;
	int64_t begin_ns; /* start of the first result: the truth before it has no counterpart */
	bool begun;
};

static int64_t extreme_of(const struct ow_value *value)
{
	return value->status == OW_VALUE_NONE ? INT64_MIN : llrint(value->value);
}

static void fill_delay(struct ow_lab_measured *measured, const struct ow_interval_result *r)
{
	struct ow_delay *delay = &measured->result.delay;
	delay->samples = r->samples;
	delay->mean_ns = ow_json_known(&r->mean_ns);
	delay->stddev_ns = ow_json_known(&r->stddev_ns);
	delay->min_ns = extreme_of(&r->min_ns);
	delay->max_ns = extreme_of(&r->max_ns);
	for (int i = 0; i < OW_QUANTILES; i++)
		delay->quantile_ns[i] = ow_json_known(&r->quantile_ns[i]);
	measured->has_delay = delay->samples > 0 && isfinite(delay->mean_ns);
}

static void fill_cost(struct ow_lab_cost *cost, const struct ow_result_cost *c)
{
	*cost = (struct ow_lab_cost){
		.bytes = c->bytes,
		.ready_ns = (double)c->ready_ns,
		.transmit_ns = (double)c->transmit_ns,
		.decode_ns = (double)c->decode_ns,
		.missing_ns = (double)c->missing_ns,
		.erase_ns = (double)c->erase_ns,
		.compute_ns = (double)c->compute_ns,
	};
}

static void fill(struct ow_lab_measured *measured, const struct ow_interval_result *r)
{
	struct ow_result *result = &measured->result;
	measured->direction = strcmp(r->from, "b") == 0 ? OW_B_TO_A : OW_A_TO_B;
	measured->start_ns = r->start_ns;
	measured->final = r->final;
	measured->unknown = r->status == OW_RESULT_UNKNOWN;
	snprintf(measured->cause, sizeof measured->cause, "%s", r->cause);
	result->sent = r->sent;
	result->matched = r->matched + r->late;
	result->lost = r->lost;
	result->extra = r->extra;
	result->duplicated = r->duplicated;
	result->ambiguous = r->ambiguous;
	result->reordered = r->reordered;
	result->received = result->matched + result->extra;
	result->exact = r->exact;
	measured->pending = r->pending;
	measured->bytes = r->bytes;
	measured->ring_drops = r->ring_drops_from + r->ring_drops_to;
	fill_delay(measured, r);
	fill_cost(&measured->cost, &r->cost);
}

int ow_lab_parse(const char *line, struct ow_lab_measured *ret_measured, struct ow_error *err)
{
	struct ow_interval_result result;
	struct ow_error why;
	size_t length = strcspn(line, "\n");
	/* {"summary": RESULT} */
	bool total = strncmp(line, SUMMARY, strlen(SUMMARY)) == 0 && line[length - 1] == '}';
	const char *text = total ? line + strlen(SUMMARY) : line;
	length -= total ? strlen(SUMMARY) + 1 : 0;
	int r = ow_result_json_read(text, length, &result, &why);
	if (r < 0)
		return ow_error_set(err, EPROTO, "a point wrote a line that is not a result: %s", why.text);
	if (r == 0)
		return OW_LAB_OTHER;
	*ret_measured = (struct ow_lab_measured){.text = strndup(text, length)};
	if (!ret_measured->text)
		return ow_error_set(err, ENOMEM, "out of memory");
	fill(ret_measured, &result);
	return total ? OW_LAB_TOTAL : OW_LAB_RESULT;
}

int ow_lab_results_create(ow_lab_row_sink sink, void *arg, struct ow_lab_results **ret_results)
{
	struct ow_lab_results *results = calloc(1, sizeof *results);
	if (!results)
		return -ENOMEM;
	results->sink = sink;
	results->arg = arg;
	*ret_results = results;
	return 0;
}

static void entry_free(struct entry *entry)
{
	if (entry->has_measured)
		free(entry->measured.text);
	free(entry);
}

void ow_lab_results_free(struct ow_lab_results *results)
{
	if (!results)
		return;
	while (results->first) {
		struct entry *entry = results->first;
		results->first = entry->next;
		entry_free(entry);
	}
	free(results);
}

/* The entry of this interval and direction, made if it does not exist; NULL = out of memory, or too many entries. */
static struct entry *entry_of(struct ow_lab_results *results, int64_t start_ns, enum ow_direction direction)
{
	struct entry **at = &results->first;
	while (*at && ((*at)->start_ns < start_ns || ((*at)->start_ns == start_ns && (*at)->direction < direction)))
		at = &(*at)->next;
	struct entry *entry = *at;
	if (entry && entry->start_ns == start_ns && entry->direction == direction)
		return entry;
	entry = results->count < WAITING_MAX ? calloc(1, sizeof *entry) : NULL;
	if (!entry)
		return NULL;
	results->count++;
	entry->start_ns = start_ns;
	entry->direction = direction;
	entry->first_ready_ns = NAN;
	entry->next = *at;
	*at = entry;
	return entry;
}

static void tell(struct ow_lab_results *results, struct entry *entry)
{
	struct ow_lab_row row = {entry->direction, &entry->measured, entry->has_truth ? &entry->truth : NULL,
	                         entry->first_ready_ns};
	results->sink(results->arg, &row);
}

/* Rows are in order: reports the complete entries at the front, and those before the first result. */
static void advance(struct ow_lab_results *results)
{
	while (results->first) {
		struct entry *entry = results->first;
		bool complete = entry->has_measured && entry->measured.final && entry->has_truth;
		bool early = results->begun && !entry->has_measured && entry->start_ns < results->begin_ns;
		if (!complete && !early)
			return;
		if (complete)
			tell(results, entry);
		results->first = entry->next;
		results->count--;
		entry_free(entry);
	}
}

int ow_lab_results_measured(struct ow_lab_results *results, struct ow_lab_measured *measured)
{
	if (!results->begun) {
		results->begun = true;
		results->begin_ns = measured->start_ns;
	}
	struct entry *entry = entry_of(results, measured->start_ns, measured->direction);
	if (!entry) {
		free(measured->text);
		return -ENOMEM;
	}
	if (entry->has_measured)
		free(entry->measured.text);
	else
		entry->first_ready_ns = measured->cost.ready_ns;
	entry->measured = *measured;
	entry->has_measured = true;
	advance(results);
	return 0;
}

int ow_lab_results_truth(struct ow_lab_results *results, enum ow_direction direction,
                         const struct ow_wiretruth_report *truth)
{
	struct entry *entry = entry_of(results, truth->start_ns, direction);
	if (!entry)
		return -ENOMEM;
	entry->truth = *truth;
	entry->has_truth = true;
	advance(results);
	return 0;
}

void ow_lab_results_finish(struct ow_lab_results *results)
{
	while (results->first) {
		struct entry *entry = results->first;
		if (entry->has_measured)
			tell(results, entry);
		results->first = entry->next;
		results->count--;
		entry_free(entry);
	}
}
