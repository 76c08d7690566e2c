/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of times of flows, from captures: flow_measure.h. */
#include "flows/flow_measure.h"

#include "base/sort.h"
#include "capture/file/reader.h"
#include "flows/flow_decoder.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PROGRESS_EVERY 256 /* batches */

/* One capture, interval by interval: packets in flow_counts, and the sums of times. */
struct sums {
	const struct ow_flow_measure_options *options;
	struct ow_flow_counts *counts;
	double *sum;
	size_t room;
	/* start of the interval; without intervals, that of the first capture, also for the second one */
	int64_t start_ns;
	bool started;
	double interval_sum;
	/* Totals of all intervals. */
	struct ow_flow_measure measure;
	int64_t first_ns, last_ns;
};

static void close_interval(struct sums *sums)
{
	struct ow_flow_measure *measure = &sums->measure;
	for (size_t i = 0; i < ow_flow_counts_flows(sums->counts); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(sums->counts, i, &count);
		measure->t_max = fmax(measure->t_max, sums->sum[i]);
		measure->flows++;
		if (count.packets < sums->options->packets_min)
			continue;
		measure->t_min = measure->large++ ? fmin(measure->t_min, sums->sum[i]) : sums->sum[i];
	}
	measure->t_sum = fmax(measure->t_sum, sums->interval_sum);
	sums->interval_sum = 0;
}

static void begin_interval(struct sums *sums, int64_t time_ns)
{
	int64_t length = sums->options->info->interval_ns;
	if (sums->started) {
		close_interval(sums);
		ow_flow_counts_reset(sums->counts);
	}
	sums->start_ns = length ? time_ns - time_ns % length : time_ns;
	sums->started = true;
}

static int make_room(struct sums *sums, size_t flows)
{
	return flows ? OW_GROW(sums->sum, sums->room, flows) : 0;
}

static int add_one(struct sums *sums, const struct ow_flow_sighting *sighting, const struct ow_flow_key *key)
{
	int64_t length = sums->options->info->interval_ns;
	if (!sums->started || (length && sighting->time_ns >= sums->start_ns + length))
		begin_interval(sums, sighting->time_ns);
	size_t before = ow_flow_counts_flows(sums->counts);
	ow_flow_counts_add(sums->counts, sighting, &key, 1);
	ptrdiff_t at = ow_flow_counts_find(sums->counts, sighting->flow);
	if (at < 0 || make_room(sums, (size_t)at + 1) < 0)
		return -ENOMEM;
	if ((size_t)at >= before)
		sums->sum[at] = 0;
	double time = fmax(0, (double)(sighting->time_ns - sums->start_ns) / sums->options->info->params.unit_ns);
	sums->sum[at] += time;
	sums->interval_sum += time;
	if (!sums->measure.packets++)
		sums->first_ns = sums->last_ns = sighting->time_ns;
	sums->last_ns = sighting->time_ns > sums->last_ns ? sighting->time_ns : sums->last_ns;
	return 0;
}

static int read_stamps(struct sums *sums, struct ow_flow_decoder *decoder, struct ow_error *err)
{
	for (;;) {
		struct ow_flow_sightings sightings;
		int r = ow_flow_decoder_next(decoder, &sightings, err);
		if (r < 0 || !sightings.count)
			return r;
		for (size_t i = 0; i < sightings.count; i++) {
			r = add_one(sums, &sightings.sighting[i], sightings.key[i]);
			if (r < 0)
				return ow_error_set(err, -r, "not enough memory for the sums of flows");
		}
	}
}

static int read_capture(const char *path, struct sums *sums, struct ow_error *err)
{
	const struct ow_flow_measure_options *options = sums->options;
	const struct ow_flow_decoder_options stamping = {.info = options->info, .filter = options->filter};
	struct ow_frame frame[OW_FLOW_SIGHTINGS];
	struct ow_flow_decoder *decoder = NULL;
	struct ow_reader *reader = NULL;
	int count, r = ow_reader_open(path, &reader, err);
	if (r == 0)
		r = ow_flow_decoder_create(path, &stamping, &decoder, err);
	for (unsigned batches = 0; r == 0; batches++) {
		count = ow_reader_read(reader, frame, OW_FLOW_SIGHTINGS, err);
		if (count <= 0) {
			r = count;
			break;
		}
		r = ow_flow_decoder_load(decoder, frame, (size_t)count, err);
		if (r == 0)
			r = read_stamps(sums, decoder, err);
		uint64_t size = ow_reader_info(reader)->size_bytes;
		if (options->progress && batches % PROGRESS_EVERY == 0 && size)
			options->progress(options->arg, (double)ow_reader_position(reader) / (double)size);
	}
	ow_flow_decoder_free(decoder);
	ow_reader_close(reader);
	if (r == 0 && !sums->measure.packets)
		r = ow_error_set(err, ENODATA, "%.200s: contains no packet to measure", path);
	return r;
}

/*
 * Equation 12 for the flows that both captures have completely, with the first capture's start as the origin of both.
 */
static int compare(const struct sums *a, const struct sums *b, struct ow_flow_measure *measure)
{
	size_t flows = ow_flow_counts_flows(a->counts), compared = 0;
	double *ratio = malloc((flows ? flows : 1) * sizeof *ratio);
	if (!ratio)
		return -ENOMEM;
	for (size_t i = 0; i < flows; i++) {
		struct ow_flow_count x, y;
		ow_flow_counts_get(a->counts, i, &x);
		ptrdiff_t at = ow_flow_counts_find(b->counts, x.flow);
		if (at < 0 || x.packets < a->options->packets_min)
			continue;
		ow_flow_counts_get(b->counts, (size_t)at, &y);
		if (x.packets == y.packets && a->sum[i] + b->sum[at] > 0)
			ratio[compared++] = (b->sum[at] - a->sum[i]) / (b->sum[at] + a->sum[i]);
	}
	ow_sort_doubles(ratio, compared);
	measure->compared = compared;
	if (compared) {
		measure->ratio_median = ratio[compared / 2];
		measure->ratio_low = ratio[compared / 20];
	}
	free(ratio);
	return 0;
}

static int open_sums(struct sums *sums, const struct ow_flow_measure_options *options, struct ow_error *err)
{
	*sums = (struct sums){.options = options};
	if (ow_flow_counts_create(&options->info->params, 0, &sums->counts) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory for the sums of flows");
	return 0;
}

static void close_sums(struct sums *sums)
{
	ow_flow_counts_free(sums->counts);
	free(sums->sum);
}

/* Reads the whole first capture again, as one interval, and the second one. */
static int measure_ratio(const char *path, const char *path_b, const struct ow_flow_measure_options *options,
                         struct ow_flow_measure *measure, struct ow_error *err)
{
	struct ow_epoch_info info = *options->info;
	struct ow_flow_measure_options whole = *options;
	struct sums a = {0}, b = {0};
	info.interval_ns = 0;
	whole.info = &info;
	int r = open_sums(&a, &whole, err);
	if (r == 0)
		r = open_sums(&b, &whole, err);
	if (r == 0)
		r = read_capture(path, &a, err);
	if (r == 0) {
		b.start_ns = a.start_ns;
		b.started = true;
		r = read_capture(path_b, &b, err);
	}
	if (r == 0 && compare(&a, &b, measure) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory to compare flows");
	close_sums(&a);
	close_sums(&b);
	return r;
}

int ow_flow_measure(const char *path, const char *path_b, const struct ow_flow_measure_options *options,
                    struct ow_flow_measure *ret_measure, struct ow_error *err)
{
	struct sums sums;
	int r = open_sums(&sums, options, err);
	if (r == 0)
		r = read_capture(path, &sums, err);
	if (r == 0) {
		close_interval(&sums);
		struct ow_flow_measure *measure = &sums.measure;
		measure->length = (double)(sums.last_ns - sums.first_ns) / options->info->params.unit_ns;
		measure->ratio_median = measure->ratio_low = NAN;
		if (path_b)
			r = measure_ratio(path, path_b, options, measure, err);
		if (r == 0)
			*ret_measure = *measure;
	}
	close_sums(&sums);
	return r;
}
