/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the lab: a row for each interval and direction with measured and true values, the summary, and the
 * plot.
 */
#include "base/word.h"
#include "base/sort.h"
#include "base/time.h"
#include "lab/lab.h"
#include "result/interval_result.h"
#include "result/json.h"
#include "base/format.h"
#include "base/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Without a terminal no columns are left out. */
#define WIDTH_CELLS   66 /* from here on the numbers of the run have room between them */
#define WIDTH_FILE    100
#define HEADING_EVERY 24
/* Results whose ready times are kept for the median; more than a day of seconds. */
#define READY_MAX 100000

enum { SENT, LOST, LOST_TRUE, MEAN, MEAN_ERROR, P99, P99_ERROR, COST, READY, BYTES, COLUMNS };
static const struct ow_table_column columns[COLUMNS] = {
	[SENT] = {"sent", 8, 1},       [LOST] = {"lost", 6, 0},        [LOST_TRUE] = {"truth", 6, 2},
	[MEAN] = {"mean", 8, 3},       [MEAN_ERROR] = {"error", 7, 4}, [P99] = {"p99", 8, 5},
	[P99_ERROR] = {"error", 7, 6}, [COST] = {"cost", 6, 7},        [READY] = {"ready", 6, 8},
	[BYTES] = {"bytes", 7, 9},
};
#define FRONT 7 /* seconds and direction */

static const char *const way_name[OW_DIRECTIONS] = {"A>B", "B>A"};
static const char *const way_words[OW_DIRECTIONS] = {"A to B", "B to A"};

/* The run so far, from the rows. */
struct sum {
	struct ow_result result;
	uint64_t rows, unknown, pending, bytes, traffic_bytes, ring_drops;
	double weight, mean, square; /* of the delays */
};

struct ow_lab_show {
	const struct ow_lab_options *options;
	FILE *out;
	bool colour;
	unsigned width, lines;
	int64_t start_ns;
	struct sum sum[OW_DIRECTIONS];
	struct ow_lab_plot *plot;
	double *ready_ns;
	size_t readies;
};

int ow_lab_show_create(const struct ow_lab_options *options, struct ow_lab_show **ret_show)
{
	struct ow_lab_show *show = calloc(1, sizeof *show);
	double *ready_ns = malloc(READY_MAX * sizeof *ready_ns);
	if (!show || !ready_ns) {
		free(show);
		free(ready_ns);
		return -ENOMEM;
	}
	show->options = options;
	show->out = options->out;
	show->ready_ns = ready_ns;
	show->colour = options->style.colour;
	show->width = options->style.terminal ? (unsigned)options->style.width : WIDTH_FILE;
	if (ow_lab_plot_create(&show->plot) < 0) {
		ow_lab_show_free(show);
		return -ENOMEM;
	}
	*ret_show = show;
	return 0;
}

void ow_lab_show_free(struct ow_lab_show *show)
{
	if (!show)
		return;
	ow_lab_plot_free(show->plot);
	free(show->ready_ns);
	free(show);
}

/* "+120 ns" in at most seven columns. */
static const char *difference(double ns, char text[OW_FORMAT])
{
	static const struct {
		double unit;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	size_t i = 0;
	if (!isfinite(ns)) {
		snprintf(text, OW_FORMAT, "-");
		return text;
	}
	while (i < 3 && fabs(ns) < units[i].unit * 0.9995)
		i++;
	double value = ns / units[i].unit;
	int places = units[i].unit == 1 || fabs(value) >= 99.95 ? 0 : 1;
	snprintf(text, OW_FORMAT, "%+.*f%s", places, value, units[i].name);
	return text;
}

static double mean_of(const struct ow_lab_measured *measured)
{
	return measured->has_delay ? measured->result.delay.mean_ns : NAN;
}

static double p99_of(const struct ow_lab_measured *measured)
{
	return measured->has_delay ? measured->result.delay.quantile_ns[OW_Q99] : NAN;
}

static double true_mean(const struct ow_wiretruth_report *truth)
{
	return truth && truth->result.delay.samples ? truth->result.delay.mean_ns : NAN;
}

static double true_p99(const struct ow_wiretruth_report *truth)
{
	return truth && truth->result.delay.samples ? truth->result.delay.quantile_ns[OW_Q99] : NAN;
}

static void add(struct sum *sum, const struct ow_lab_row *row)
{
	const struct ow_result *result = &row->measured->result;
	const struct ow_delay *delay = &result->delay;
	sum->rows++;
	sum->unknown += row->measured->unknown;
	sum->result.sent += result->sent;
	sum->result.received += result->received;
	sum->result.matched += result->matched;
	sum->result.lost += result->lost;
	sum->result.extra += result->extra;
	sum->result.duplicated += result->duplicated;
	sum->result.ambiguous += result->ambiguous;
	if (result->reordered == OW_RESULT_NOT_COUNTED || sum->result.reordered == OW_RESULT_NOT_COUNTED)
		sum->result.reordered = OW_RESULT_NOT_COUNTED;
	else
		sum->result.reordered += result->reordered;
	sum->pending += row->measured->pending;
	sum->bytes += row->measured->cost.bytes;
	sum->traffic_bytes += row->measured->bytes;
	sum->ring_drops += row->measured->ring_drops;
	if (!row->measured->has_delay)
		return;
	double n = (double)delay->samples;
	sum->result.delay.samples += delay->samples;
	sum->weight += n;
	sum->mean += n * delay->mean_ns;
	sum->square += n * (delay->mean_ns * delay->mean_ns + delay->stddev_ns * delay->stddev_ns);
}

static void put_json(const struct ow_lab_show *show, const struct ow_lab_row *row)
{
	struct ow_json json = {.out = show->out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "direction", row->direction ? "b_to_a" : "a_to_b");
	ow_json_raw(&json, "result", row->measured->text);
	if (row->truth)
		ow_json_result(&json, "truth", &row->truth->result);
	else
		ow_json_null(&json, "truth");
	ow_json_end(&json);
}

static void fill_cells(const struct ow_lab_row *row, ow_table_cells cell)
{
	const struct ow_lab_measured *m = row->measured;
	const struct ow_wiretruth_report *truth = row->truth;
	for (unsigned i = 0; i < COLUMNS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	if (truth)
		ow_format_short(truth->result.lost, 6, cell[LOST_TRUE]);
	if (m->unknown)
		return;
	ow_format_short(m->result.sent, 8, cell[SENT]);
	ow_format_short(m->result.lost, 6, cell[LOST]);
	ow_duration_cell(mean_of(m), cell[MEAN]);
	difference(mean_of(m) - true_mean(truth), cell[MEAN_ERROR]);
	ow_duration_cell(p99_of(m), cell[P99]);
	difference(p99_of(m) - true_p99(truth), cell[P99_ERROR]);
	ow_format_short(m->cost.bytes, 7, cell[BYTES]);
	if (m->bytes)
		ow_format_percent((double)m->cost.bytes / (double)m->bytes, cell[COST]);
	if (isfinite(row->first_ready_ns))
		snprintf(cell[READY], OW_TABLE_CELL, "%.0f ms", row->first_ready_ns / 1e6);
}

static void put_row(struct ow_lab_show *show, const struct ow_lab_row *row)
{
	struct ow_table table = {show->out, columns, COLUMNS, .colour = show->colour};
	ow_table_cells cell;
	ow_table_fit(&table, show->width - FRONT);
	if (show->lines++ % HEADING_EVERY == 0) {
		ow_table_bold(&table);
		fprintf(show->out, "%3s %3s", "s", "");
		ow_table_titles(&table);
	}
	/* Seconds since the traffic's first whole interval; fractions only where the intervals have them. */
	double at = (double)(row->measured->start_ns - show->start_ns) / 1e9;
	fprintf(show->out, "%3.*f %s", show->options->interval_ns % OW_NS_PER_S ? 1 : 0, at, way_name[row->direction]);
	bool wrong = row->truth && row->truth->result.lost != row->measured->result.lost;
	fill_cells(row, cell);
	ow_table_row(&table, cell, wrong ? 1u << LOST : 0);
	if (*row->measured->cause)
		fprintf(show->out, "        %s\n", row->measured->cause);
}

void ow_lab_show_start(struct ow_lab_show *show, int64_t start_ns)
{
	const struct ow_lab_options *options = show->options;
	uint64_t streams = options->tcp + options->tcp_reverse;
	char rate[OW_FORMAT], length[OW_FORMAT], wait[OW_FORMAT];
	show->start_ns = start_ns;
	if (options->json)
		return;
	fputs("Traffic: ", show->out);
	if (options->rate_pps > 0)
		fprintf(show->out, "%s UDP packets a second%s", ow_format_count((uint64_t)options->rate_pps, rate),
		        streams ? " and " : "");
	if (streams)
		fprintf(show->out, "%" PRIu64 " TCP stream%s", streams, ow_plural(streams, "", "s"));
	fprintf(show->out, " for %s. Rows follow when they are final, %s after their interval.\n\n",
	        ow_duration_cell((double)options->length_ns, length), ow_duration_cell((double)options->wait_ns, wait));
	fflush(show->out);
}

void ow_lab_show_row(void *arg, const struct ow_lab_row *row)
{
	struct ow_lab_show *show = arg;
	bool empty = !row->measured->unknown && !row->measured->result.sent && !row->measured->result.received &&
	             (!row->truth || !row->truth->result.sent);
	add(&show->sum[row->direction], row);
	if (!empty)
		(void)ow_lab_plot_add(show->plot, row, show->start_ns);
	if (isfinite(row->first_ready_ns) && !empty && show->readies < READY_MAX)
		show->ready_ns[show->readies++] = row->first_ready_ns;
	if (show->options->json) {
		put_json(show, row);
		fflush(show->out);
		return;
	}
	/* True before the traffic, after it, and in a direction without traffic. */
	if (empty)
		return;
	put_row(show, row);
	fflush(show->out);
}

/* The points' own summary of the run. If it did not arrive: the sum of the rows, without quantiles. */
static void total_of(const struct ow_lab_show *show, const struct ow_lab_end *end, int way, struct ow_result *ret_total)
{
	const struct sum *sum = &show->sum[way];
	*ret_total = sum->result;
	if (sum->weight > 0) {
		struct ow_delay *delay = &ret_total->delay;
		delay->mean_ns = sum->mean / sum->weight;
		double variance = sum->square / sum->weight - delay->mean_ns * delay->mean_ns;
		delay->stddev_ns = isnan(variance) ? NAN : sqrt(fmax(0, variance)); /* NAN: one is not known */
		delay->min_ns = delay->max_ns = INT64_MIN;
		for (int i = 0; i < OW_QUANTILES; i++)
			delay->quantile_ns[i] = NAN;
	}
	if (end->measured[way] && end->measured[way]->has_delay)
		ret_total->delay = end->measured[way]->result.delay;
}

/* Median and maximum; NAN without any. */
static void ready_times(struct ow_lab_show *show, double *ret_median, double *ret_max)
{
	*ret_median = *ret_max = NAN;
	if (!show->readies)
		return;
	ow_sort_doubles(show->ready_ns, show->readies);
	*ret_median = show->ready_ns[show->readies / 2];
	*ret_max = show->ready_ns[show->readies - 1];
}

/* Columns of a number in the table of the run. */
static int cell_of(const struct ow_lab_show *show)
{
	return show->width < WIDTH_CELLS ? 10 : 14;
}

static void put_counts(const struct ow_lab_show *show, const struct ow_result *measured, const struct ow_result *truth)
{
	const struct {
		const char *name;
		uint64_t measured, truth;
	} rows[] = {
		{"sent", measured->sent, truth->sent},
		{"received", measured->received, truth->received},
		{"lost", measured->lost, truth->lost},
		{"extra", measured->extra, truth->extra},
	};
	char a[OW_FORMAT], b[OW_FORMAT];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(show->out, "  %-12s %*s %*s   %s\n", rows[i].name, cell_of(show),
		        ow_format_count(rows[i].measured, a), cell_of(show), ow_format_count(rows[i].truth, b),
		        rows[i].measured == rows[i].truth ? "=" : "DIFFERS");
}

static void put_delays(const struct ow_lab_show *show, const struct ow_delay *measured, const struct ow_delay *truth)
{
	const struct {
		const char *name;
		double measured, truth;
	} rows[] = {
		{"mean", measured->mean_ns, truth->mean_ns},
		{"stddev", measured->stddev_ns, truth->stddev_ns},
		{"median", measured->quantile_ns[OW_Q50], truth->quantile_ns[OW_Q50]},
		{"p99", measured->quantile_ns[OW_Q99], truth->quantile_ns[OW_Q99]},
		{"p99.9", measured->quantile_ns[OW_Q999], truth->quantile_ns[OW_Q999]},
	};
	char a[OW_FORMAT], b[OW_FORMAT], c[OW_FORMAT];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!isfinite(rows[i].measured))
			continue;
		double off = rows[i].measured - rows[i].truth;
		fprintf(show->out, "  %-12s %*s %*s   %s, %+.3f %%\n", rows[i].name, cell_of(show),
		        ow_duration_cell(rows[i].measured, a), cell_of(show), ow_duration_cell(rows[i].truth, b),
		        difference(off, c), 100 * off / rows[i].truth);
	}
}

static void put_cost(struct ow_lab_show *show)
{
	FILE *out = show->out;
	uint64_t bytes = show->sum[0].bytes + show->sum[1].bytes;
	uint64_t traffic = show->sum[0].traffic_bytes + show->sum[1].traffic_bytes;
	double median, longest;
	char a[OW_FORMAT], b[OW_FORMAT], c[OW_FORMAT];
	if (traffic)
		fprintf(out, "\nThe points exchanged %s bytes, %s of the %s bytes of traffic.\n",
		        ow_format_count(bytes, a), ow_format_percent((double)bytes / (double)traffic, b),
		        ow_format_count(traffic, c));
	ready_times(show, &median, &longest);
	if (isfinite(median))
		fprintf(out, "Results came %s after the end of their interval (median; longest %s).\n",
		        ow_duration_cell(median, a), ow_duration_cell(longest, b));
}

static void put_faults(const struct ow_lab_show *show, const struct ow_lab_end *end)
{
	FILE *out = show->out;
	char a[OW_FORMAT];
	uint64_t missed = end->total[0].missed + end->total[1].missed;
	uint64_t rings = show->sum[0].ring_drops + show->sum[1].ring_drops;
	uint64_t unknown = show->sum[0].unknown + show->sum[1].unknown;
	if (missed)
		fprintf(out, "The wire missed %s %s itself: this machine is too slow for the traffic.\n",
		        ow_format_count(missed, a), ow_plural(missed, "frame", "frames"));
	if (end->kernel_drops)
		fprintf(out, "The kernel dropped %s %s beside the wire: this machine is too slow for the traffic.\n",
		        ow_format_count(end->kernel_drops, a), ow_plural(end->kernel_drops, "frame", "frames"));
	if (end->capture_drops)
		fprintf(out, "The captures lack %s %s that tcpdump did not take in time.\n",
		        ow_format_count(end->capture_drops, a), ow_plural(end->capture_drops, "frame", "frames"));
	if (rings)
		fprintf(out, "The points' own rings lost %s %s.\n", ow_format_count(rings, a),
		        ow_plural(rings, "frame", "frames"));
	if (unknown)
		fprintf(out, "%s %s unknown.\n", ow_format_count(unknown, a),
		        ow_plural(unknown, "result is", "results are"));
}

static void put_summary(struct ow_lab_show *show, const struct ow_lab_end *end)
{
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		const struct ow_result *truth = &end->total[i].truth.result;
		struct ow_result total;
		total_of(show, end, i, &total);
		if (!truth->sent && !total.sent)
			continue;
		fprintf(show->out, "\n%-14s %*s %*s   error\n", way_words[i], cell_of(show), "measured", cell_of(show),
		        "truth");
		put_counts(show, &total, truth);
		if (total.delay.samples && truth->delay.samples)
			put_delays(show, &total.delay, &truth->delay);
	}
	if (!show->options->plot)
		ow_lab_plot_sparks(show->plot, show->out, show->width,
		                   show->options->style.terminal && show->options->style.utf8);
	put_cost(show);
	put_faults(show, end);
}

static void json_pair(struct ow_json *json, const struct ow_lab_show *show, const struct ow_lab_end *end, int way)
{
	struct ow_result total;
	total_of(show, end, way, &total);
	ow_json_result_partly(json, "result", &total, total.delay.min_ns != INT64_MIN, total.delay.max_ns != INT64_MIN);
	ow_json_result(json, "truth", &end->total[way].truth.result);
}

static void json_cost(struct ow_json *json, struct ow_lab_show *show)
{
	double median, longest;
	ready_times(show, &median, &longest);
	ow_json_object(json, "cost");
	ow_json_count(json, "bytes", show->sum[0].bytes + show->sum[1].bytes);
	ow_json_count(json, "traffic_bytes", show->sum[0].traffic_bytes + show->sum[1].traffic_bytes);
	ow_json_number(json, "ready_median_ns", median);
	ow_json_number(json, "ready_max_ns", longest);
	ow_json_end(json);
}

static void json_wire(struct ow_json *json, const struct ow_lab_end *end)
{
	ow_json_object(json, "wire");
	ow_json_count(json, "missed", end->total[0].missed + end->total[1].missed);
	ow_json_count(json, "refused", end->total[0].refused + end->total[1].refused);
	ow_json_count(json, "kernel_drops", end->kernel_drops);
	ow_json_count(json, "capture_drops", end->capture_drops);
	ow_json_object(json, "queue_full");
	ow_json_count(json, "a_to_b", end->total[0].truth.queue_full);
	ow_json_count(json, "b_to_a", end->total[1].truth.queue_full);
	ow_json_end(json);
	ow_json_end(json);
}

static void put_summary_json(struct ow_lab_show *show, const struct ow_lab_end *end)
{
	struct ow_json json = {.out = show->out};
	ow_json_object(&json, NULL);
	ow_json_object(&json, "summary");
	json_pair(&json, show, end, OW_A_TO_B);
	ow_json_object(&json, "b_to_a");
	json_pair(&json, show, end, OW_B_TO_A);
	ow_json_end(&json);
	json_cost(&json, show);
	json_wire(&json, end);
	ow_json_count(&json, "seed", show->options->seed);
	ow_json_flag(&json, "interrupted", end->interrupted);
	ow_json_end(&json);
	ow_json_end(&json);
}

int ow_lab_show_end(struct ow_lab_show *show, const struct ow_lab_end *end, struct ow_error *err)
{
	if (show->options->json)
		put_summary_json(show, end);
	else
		put_summary(show, end);
	if (!show->options->plot)
		return 0;
	int r = ow_lab_plot_write(show->plot, show->options->plot, err);
	if (r >= 0 && !show->options->json)
		fprintf(show->out, "\nDelay over time is drawn in %s.\n", show->options->plot);
	return r;
}
