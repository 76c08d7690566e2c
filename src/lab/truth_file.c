/* SPDX-License-Identifier: Apache-2.0 */
/* The truth as JSON: docs/web.md describes it. */
#include "lab/truth_file.h"

#include "base/json_writer.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS 2

struct interval {
	int64_t start_ns, length_ns;
	uint64_t sent, lost, samples;
	double mean_ns, min_ns, max_ns;
};

struct way {
	uint64_t sent, lost, samples;
	double sum_ns, min_ns, max_ns;
	size_t count; /* intervals so far; the newest are kept */
	struct interval interval[OW_TRUTH_FILE_INTERVALS];
};

struct ow_truth_file {
	char path[4096], fresh[4096 + 8];
	struct way way[WAYS];
};

int ow_truth_file_create(const char *folder, struct ow_truth_file **ret_file, struct ow_error *err)
{
	struct ow_truth_file *file = calloc(1, sizeof *file);
	if (!file)
		return ow_error_set(err, ENOMEM, "not enough memory");
	for (int i = 0; i < WAYS; i++)
		file->way[i].min_ns = file->way[i].max_ns = NAN;
	snprintf(file->path, sizeof file->path, "%s/truth.json", folder);
	snprintf(file->fresh, sizeof file->fresh, "%s.new", file->path);
	*ret_file = file;
	return 0;
}

void ow_truth_file_free(struct ow_truth_file *file)
{
	free(file);
}

static void add(struct way *way, const struct ow_wiretruth_report *report)
{
	const struct ow_result *r = &report->result;
	bool known = r->delay.samples > 0;
	struct interval i = {.start_ns = report->start_ns,
	                     .length_ns = report->length_ns,
	                     .sent = r->sent,
	                     .lost = r->lost,
	                     .samples = r->delay.samples,
	                     .mean_ns = known ? r->delay.mean_ns : NAN,
	                     .min_ns = known ? (double)r->delay.min_ns : NAN,
	                     .max_ns = known ? (double)r->delay.max_ns : NAN};
	way->interval[way->count++ % OW_TRUTH_FILE_INTERVALS] = i;
	way->sent += i.sent;
	way->lost += i.lost;
	way->samples += i.samples;
	way->sum_ns += known ? i.mean_ns * (double)i.samples : 0;
	way->min_ns = fmin(way->min_ns, i.min_ns);
	way->max_ns = fmax(way->max_ns, i.max_ns);
}

static void put_delay(struct ow_json *json, double mean, double min, double max)
{
	ow_json_object(json, "delay_ns");
	ow_json_number(json, "mean", mean);
	ow_json_number(json, "min", min);
	ow_json_number(json, "max", max);
	ow_json_end(json);
}

static void put_way(struct ow_json *json, const struct way *way, bool a_to_b)
{
	size_t kept = way->count < OW_TRUTH_FILE_INTERVALS ? way->count : OW_TRUTH_FILE_INTERVALS;
	ow_json_object(json, NULL);
	ow_json_string(json, "segment", "wire");
	ow_json_string(json, "from", a_to_b ? "a" : "b");
	ow_json_string(json, "to", a_to_b ? "b" : "a");
	ow_json_count(json, "sent", way->sent);
	ow_json_count(json, "lost", way->lost);
	put_delay(json, way->samples ? way->sum_ns / (double)way->samples : NAN, way->min_ns, way->max_ns);
	ow_json_array(json, "intervals");
	for (size_t k = way->count - kept; k < way->count; k++) {
		const struct interval *i = &way->interval[k % OW_TRUTH_FILE_INTERVALS];
		ow_json_object(json, NULL);
		ow_json_integer(json, "start_ns", i->start_ns);
		ow_json_integer(json, "length_ns", i->length_ns);
		ow_json_count(json, "sent", i->sent);
		ow_json_count(json, "lost", i->lost);
		put_delay(json, i->mean_ns, i->min_ns, i->max_ns);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
}

void ow_truth_file_add(struct ow_truth_file *file, int direction, const struct ow_wiretruth_report *report)
{
	add(&file->way[direction], report);
	FILE *out = fopen(file->fresh, "we");
	if (!out)
		return;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_array(&json, "segments");
	for (int i = 0; i < WAYS; i++)
		put_way(&json, &file->way[i], i == 0);
	ow_json_end(&json);
	ow_json_end(&json);
	if (fclose(out) == 0)
		(void)rename(file->fresh, file->path);
}
