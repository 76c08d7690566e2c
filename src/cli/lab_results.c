/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a point are read, and each interval's result waits for the truth about it. */
#include "base/time.h"
#include "cli/lab.h"
#include "result/interval_result.h"
#include "result/json_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Intervals and directions that may wait for their other side: an hour of seconds. */
#define WAITING_MAX 8192

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
	int64_t begin_ns; /* of the first result: what the wire says of the time before has no counterpart */
	bool begun;
};

static void read_delay(const json_t *object, struct ow_lab_measured *measured)
{
	struct ow_delay *delay = &measured->result.delay;
	const json_t *numbers = json_object_get(object, "delay_ns");
	const json_t *quantiles = json_object_get(numbers, "quantiles");
	double min = ow_json_get_number(numbers, "min"), max = ow_json_get_number(numbers, "max");
	delay->samples = ow_json_get_count(object, "samples");
	delay->mean_ns = ow_json_get_number(numbers, "mean");
	delay->stddev_ns = ow_json_get_number(numbers, "stddev");
	delay->min_ns = isfinite(min) ? llrint(min) : INT64_MIN;
	delay->max_ns = isfinite(max) ? llrint(max) : INT64_MIN;
	for (int i = 0; i < OW_QUANTILES; i++)
		delay->quantile_ns[i] = ow_json_get_number(quantiles, ow_quantile_name[i]);
	measured->has_delay = delay->samples > 0 && isfinite(delay->mean_ns);
}

static void read_cost(const json_t *object, struct ow_lab_cost *cost)
{
	const json_t *costs = json_object_get(object, "cost");
	*cost = (struct ow_lab_cost){
		.bytes = ow_json_get_count(costs, "bytes"),
		.ready_ns = ow_json_get_number(costs, "ready_ns"),
		.transmit_ns = ow_json_get_number(costs, "transmit_ns"),
		.decode_ns = ow_json_get_number(costs, "decode_ns"),
		.missing_ns = ow_json_get_number(costs, "missing_ns"),
		.erase_ns = ow_json_get_number(costs, "erase_ns"),
		.compute_ns = ow_json_get_number(costs, "compute_ns"),
	};
}

static void read_result(const json_t *object, struct ow_lab_measured *measured)
{
	struct ow_result *result = &measured->result;
	const json_t *drops = json_object_get(object, "ring_drops");
	const char *from = json_string_value(json_object_get(object, "from"));
	const char *status = json_string_value(json_object_get(object, "status"));
	const char *cause = json_string_value(json_object_get(object, "cause"));
	measured->direction = from && strcmp(from, "b") == 0 ? OW_B_TO_A : OW_A_TO_B;
	measured->start_ns = (int64_t)ow_json_get_count(object, "start_ns");
	measured->final = json_is_true(json_object_get(object, "final"));
	measured->unknown = status && strcmp(status, "unknown") == 0;
	snprintf(measured->cause, sizeof measured->cause, "%s", cause ? cause : "");
	uint64_t late = ow_json_get_count(object, "late");
	result->sent = ow_json_get_count(object, "sent");
	result->matched = ow_json_get_count(object, "matched") + late;
	result->lost = ow_json_get_count(object, "lost");
	result->extra = ow_json_get_count(object, "extra");
	result->duplicated = ow_json_get_count(object, "duplicated");
	result->ambiguous = ow_json_get_count(object, "ambiguous");
	/* null: the method does not see order */
	result->reordered = json_is_integer(json_object_get(object, "reordered"))
	                            ? ow_json_get_count(object, "reordered")
	                            : OW_RESULT_NOT_COUNTED;
	result->received = result->matched + result->extra;
	result->exact = json_is_true(json_object_get(object, "exact"));
	measured->pending = ow_json_get_count(object, "pending");
	measured->bytes = ow_json_get_count(object, "bytes");
	measured->ring_drops = ow_json_get_count(drops, "from") + ow_json_get_count(drops, "to");
	read_delay(object, measured);
	read_cost(object, &measured->cost);
}

int ow_lab_parse(const char *line, struct ow_lab_measured *ret_measured, struct ow_error *err)
{
	json_error_t why;
	json_t *object = json_loads(line, 0, &why);
	if (!object)
		return ow_error_set(err, EPROTO, "a point wrote what is no JSON: %s", why.text);
	const json_t *total = json_object_get(object, "summary");
	const json_t *result = total ? total : object;
	int kind = OW_LAB_OTHER;
	if (json_object_get(result, "from") && json_object_get(result, "sent")) {
		*ret_measured = (struct ow_lab_measured){.text = json_dumps(result, JSON_PRESERVE_ORDER)};
		if (!ret_measured->text) {
			json_decref(object);
			return ow_error_set(err, ENOMEM, "out of memory");
		}
		read_result(result, ret_measured);
		kind = total ? OW_LAB_TOTAL : OW_LAB_RESULT;
	}
	json_decref(object);
	return kind;
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

/* The entry of this interval and direction, made if it is not there; NULL = out of memory, or of patience. */
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

/* Rows come in order: what is complete at the front goes out, and what lies before the first result. */
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
