/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics as text, in the format of Prometheus or as OpenMetrics. Both formats need one family of samples after the
 * other. An unknown number has no sample.
 */
#include "report/metrics.h"

#include "result/fields.h"
#include "report/metrics_parts.h"
#include "result/json.h"
#include <inttypes.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const ow_metrics_type[] = {
	"text/plain; version=0.0.4; charset=utf-8",
	"application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct page {
	FILE *out;
	bool open; /* OpenMetrics */
	const struct ow_metrics *metrics;
};

/* OpenMetrics names the family of a counter or info without the suffix of its sample. */
static void put_head(const struct page *page, const char *name, const char *type, const char *help)
{
	size_t length = strlen(name);
	if (page->open && strcmp(type, "counter") == 0)
		length -= strlen("_total");
	if (page->open && strcmp(type, "info") == 0)
		length -= strlen("_info");
	if (!page->open && strcmp(type, "info") == 0)
		type = "gauge";
	fprintf(page->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)length, name, help, (int)length, name, type);
}

static void put_count(const struct page *page, const char *name, const char *labels, uint64_t value)
{
	fprintf(page->out, "%s{%s} %" PRIu64 "\n", name, labels, value);
}

/* Prints nanoseconds as seconds, with every digit. */
static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

/* Counters. */

static void put_counters(const struct page *page)
{
	const struct ow_metrics *m = page->metrics;
	for (size_t f = 0; f < ow_field_count; f++) {
		const struct ow_field_metric *metric = &ow_fields[f].metric;
		if (metric->kind != OW_METRIC_COUNTER)
			continue;
		put_head(page, metric->name, "counter", metric->help);
		for (unsigned i = 0; i < m->lanes; i++) {
			bool counted = !(ow_fields[f].flags & OW_FIELD_NOT_COUNTED) ||
			               m->lane[i]->count[f] != OW_RESULT_NOT_COUNTED;
			if (counted)
				put_count(page, metric->name, m->lane[i]->labels, m->lane[i]->count[f]);
		}
	}
}

static void put_compared(const struct page *page)
{
	static const char name[] = "oneway_packets_compared_total";
	put_head(page, name, "counter",
	         "Packets sent whose fate is known: arrived or lost. Fewer than sent where packets are sampled or "
	         "undecided; loss over time is lost divided by this.");
	for (unsigned i = 0; i < page->metrics->lanes; i++)
		put_count(page, name, page->metrics->lane[i]->labels, page->metrics->lane[i]->compared);
}

static void put_intervals(const struct page *page)
{
	static const char name[] = "oneway_intervals_total";
	put_head(page, name, "counter",
	         "Intervals by what is known of them: measured, partial (a part of the packets) or unknown.");
	for (unsigned i = 0; i < page->metrics->lanes; i++) {
		const struct ow_metrics_lane *lane = page->metrics->lane[i];
		for (unsigned s = 0; s < 3; s++)
			fprintf(page->out, "%s{%s,status=\"%s\"} %" PRIu64 "\n", name, lane->labels,
			        ow_result_status_name[s], lane->intervals[s]);
	}
}

static void put_side(const struct page *page, const char *name, const struct ow_metrics_lane *lane, unsigned side)
{
	fprintf(page->out, "%s{%s,side=\"%s\",point=\"%s\"} ", name, lane->labels, side ? "to" : "from",
	        side ? lane->to : lane->from);
}

static void put_ring_drops(const struct page *page)
{
	static const char name[] = "oneway_ring_drops_total";
	put_head(page, name, "counter",
	         "Frames that a point itself missed because its ring was full, charged to every lane of the interface. "
	         "Not packet loss.");
	for (unsigned i = 0; i < page->metrics->lanes; i++) {
		for (unsigned side = 0; side < 2; side++) {
			put_side(page, name, page->metrics->lane[i], side);
			fprintf(page->out, "%" PRIu64 "\n", page->metrics->lane[i]->ring_drops[side]);
		}
	}
}

static void put_stages(const struct page *page)
{
	static const char name[] = "oneway_stage_seconds_total";
	put_head(page, name, "counter", "Time spent on results by stage of the comparison.");
	for (unsigned i = 0; i < page->metrics->lanes; i++) {
		const struct ow_metrics_lane *lane = page->metrics->lane[i];
		for (size_t f = 0; f < ow_field_count; f++) {
			const char *stage = ow_field_name(&ow_fields[f]);
			if (ow_fields[f].metric.kind != OW_METRIC_STAGE)
				continue;
			fprintf(page->out, "%s{%s,stage=\"%.*s\"} ", name, lane->labels, (int)strcspn(stage, "_"),
			        stage);
			put_seconds(page->out, lane->count[f]);
		}
	}
}

/* The same text in both formats, so that a series does not depend on the client. */
static void put_bound(FILE *out, unsigned bucket)
{
	if (bucket == OW_BUCKETS)
		fputs("+Inf", out);
	else if (ow_bucket_ns[bucket] % 1000000000 == 0)
		fprintf(out, "%" PRId64 ".0", ow_bucket_ns[bucket] / 1000000000);
	else
		fprintf(out, "%g", (double)ow_bucket_ns[bucket] / 1e9);
}

static void put_histogram(const struct page *page)
{
	static const char name[] = "oneway_delay_seconds";
	put_head(page, name, "histogram",
	         "One-way delay of compared packets that arrived, at the point that sends. Counts are exact within "
	         "0.05 % "
	         "of a bound where all delays are known, else a uniform sample weighted to the packets. Bucket 0 is "
	         "negative delay: clocks that are apart. The sum leaves out intervals whose mean is negative.");
	for (unsigned i = 0; i < page->metrics->lanes; i++) {
		const struct ow_metrics_lane *lane = page->metrics->lane[i];
		uint64_t below = 0;
		for (unsigned b = 0; lane->has_buckets && b <= OW_BUCKETS; b++) {
			if (__builtin_add_overflow(below, lane->bucket[b], &below))
				below = UINT64_MAX;
			fprintf(page->out, "%s_bucket{%s,le=\"", name, lane->labels);
			put_bound(page->out, b);
			fprintf(page->out, "\"} %" PRIu64 "\n", below);
		}
		if (lane->has_buckets) {
			fprintf(page->out, "%s_sum{%s} %.15g\n", name, lane->labels, lane->delay_sum_ns / 1e9);
			fprintf(page->out, "%s_count{%s} %" PRIu64 "\n", name, lane->labels, below);
		}
	}
}

/* Gauges of the last final interval. NAN = not known. */

static double gauge_of(const struct ow_field *field, const struct ow_interval_result *r)
{
	const void *member = ow_field_of(field, r);
	switch (field->type) {
	case OW_FIELD_VALUE:
		return ow_json_known(member);
	case OW_FIELD_SHARE:
		return *(const double *)member;
	case OW_FIELD_RATE:
		return ldexp(1, -(int)r->sample_shift);
	default: /* a count */
		return *(const uint64_t *)member == OW_RESULT_NOT_COUNTED ? NAN : (double)*(const uint64_t *)member;
	}
}

/* The last final result, if it has numbers. */
static const struct ow_interval_result *last_of(const struct ow_metrics_lane *lane)
{
	return lane->has_last && lane->last.status != OW_RESULT_UNKNOWN ? &lane->last : NULL;
}

static void put_gauges(const struct page *page)
{
	for (size_t f = 0; f < ow_field_count; f++) {
		const struct ow_field_metric *metric = &ow_fields[f].metric;
		if (metric->kind != OW_METRIC_GAUGE && metric->kind != OW_METRIC_SECONDS)
			continue;
		put_head(page, metric->name, "gauge", metric->help);
		for (unsigned i = 0; i < page->metrics->lanes; i++) {
			const struct ow_interval_result *last = last_of(page->metrics->lane[i]);
			double value = last ? gauge_of(&ow_fields[f], last) : NAN;
			if (!isnan(value))
				fprintf(page->out, "%s{%s} %.12g\n", metric->name, page->metrics->lane[i]->labels,
				        metric->kind == OW_METRIC_SECONDS ? value / 1e9 : value);
		}
	}
}

static void put_quantiles(const struct page *page)
{
	static const char name[] = "oneway_delay_quantile_seconds";
	put_head(page, name, "gauge", "Quantiles q of the one-way delay in the last final interval.");
	for (unsigned i = 0; i < page->metrics->lanes; i++) {
		const struct ow_interval_result *last = last_of(page->metrics->lane[i]);
		for (int q = 0; last && q < OW_QUANTILES; q++) {
			double value = ow_json_known(&last->quantile_ns[q]);
			if (!isnan(value))
				fprintf(page->out, "%s{%s,q=\"%s\"} %.12g\n", name, page->metrics->lane[i]->labels,
				        ow_quantile_name[q], value / 1e9);
		}
	}
}

static void put_clocks(const struct page *page)
{
	static const char error[] = "oneway_clock_error_seconds", good[] = "oneway_clock_synchronised";
	const struct ow_metrics *m = page->metrics;
	for (unsigned which = 0; which < 2; which++) {
		put_head(page, which ? good : error, "gauge",
		         which ? "Whether something disciplines the clock of the point: 1 or 0."
		               : "The kernel's bound on the error of the point's clock; absent if it is not "
		                 "synchronised.");
		for (unsigned k = 0; k < 2 * m->lanes; k++) {
			const struct ow_interval_result *last = last_of(m->lane[k / 2]);
			const struct ow_clock_state *clock = !last ? NULL : k % 2 ? &last->clock_to : &last->clock_from;
			if (!clock || (!which && clock->error_ns == OW_CLOCK_UNKNOWN))
				continue;
			put_side(page, which ? good : error, m->lane[k / 2], k % 2);
			fprintf(page->out, "%.12g\n", which ? clock->synchronised : (double)clock->error_ns / 1e9);
		}
	}
}

static void put_times(const struct page *page)
{
	static const char end[] = "oneway_interval_last_timestamp_seconds", ready[] = "oneway_result_ready_seconds";
	const struct ow_metrics *m = page->metrics;
	put_head(page, end, "gauge", "End of the last final interval with numbers, in seconds since 1970.");
	for (unsigned i = 0; i < m->lanes; i++) {
		if (m->lane[i]->measured_end_ns >= 0) {
			fprintf(page->out, "%s{%s} ", end, m->lane[i]->labels);
			put_seconds(page->out, (uint64_t)m->lane[i]->measured_end_ns);
		}
	}
	put_head(page, ready, "gauge", "From the end of the last interval to its provisional result.");
	for (unsigned i = 0; i < m->lanes; i++) {
		if (m->lane[i]->ready_ns != INT64_MIN)
			fprintf(page->out, "%s{%s} %.9f\n", ready, m->lane[i]->labels,
			        (double)m->lane[i]->ready_ns / 1e9);
	}
}

/* The point and its process. */

static void put_peers(const struct page *page)
{
	static const char up[] = "oneway_session_connected", made[] = "oneway_session_connections_total";
	const struct ow_metrics *m = page->metrics;
	put_head(page, up, "gauge", "Whether there is a connection with the peer: 1 or 0.");
	for (unsigned i = 0; i < m->peers; i++)
		fprintf(page->out, "%s{peer=\"%s\"} %d\n", up, m->peer[i]->label, m->peer[i]->connected);
	put_head(page, made, "counter", "Connections with the peer that were made.");
	for (unsigned i = 0; i < m->peers; i++)
		fprintf(page->out, "%s{peer=\"%s\"} %" PRIu64 "\n", made, m->peer[i]->label, m->peer[i]->connections);
}

static void put_refused(const struct page *page)
{
	static const char connections[] = "oneway_connections_refused_total";
	static const char messages[] = "oneway_messages_refused_total";
	static const char *const why[OW_METRICS_REFUSED] = {"identity", "protocol", "timeout", "closed", "busy"};
	const struct ow_metrics *m = page->metrics;
	put_head(page, connections, "counter",
	         "Connections that were refused: identity (certificate, key or name), protocol (not what a point "
	         "sends), "
	         "timeout, closed (gone before its name was proved), busy (too many at a time).");
	for (unsigned i = 0; i < OW_METRICS_REFUSED; i++)
		fprintf(page->out, "%s{reason=\"%s\"} %" PRIu64 "\n", connections, why[i], m->refused[i]);
	put_head(page, messages, "counter",
	         "Messages of the peer that were refused: out of range, or it may not send them.");
	for (unsigned i = 0; i < m->peers; i++)
		fprintf(page->out, "%s{peer=\"%s\"} %" PRIu64 "\n", messages, m->peer[i]->label,
		        m->peer[i]->messages_refused);
}

static void put_point(const struct page *page)
{
	const struct ow_metrics *m = page->metrics;
	put_head(page, "oneway_build_info", "info", "Version of the program and name of the point; always 1.");
	fprintf(page->out, "oneway_build_info{version=\"%s\",point=\"%s\"} 1\n", ow_version(), m->point);
	put_head(page, "oneway_store_lost_total", "counter", "Intervals that could not be stored.");
	fprintf(page->out, "oneway_store_lost_total %" PRIu64 "\n", m->store_lost);
	put_head(page, "oneway_store_waiting", "gauge", "Results that wait to be stored.");
	fprintf(page->out, "oneway_store_waiting %" PRIu64 "\n", m->store_waiting);
	put_head(page, "oneway_metrics_left_out_total", "counter",
	         "Results that are not in these metrics, because there are too many lanes, by the peer that has them.");
	for (unsigned i = 0; i < m->peers; i++)
		fprintf(page->out, "oneway_metrics_left_out_total{peer=\"%s\"} %" PRIu64 "\n", m->peer[i]->label,
		        m->peer[i]->left_out);
	if (m->others.left_out)
		fprintf(page->out, "oneway_metrics_left_out_total{peer=\"\"} %" PRIu64 "\n", m->others.left_out);
	put_head(page, "oneway_metrics_lanes_dropped_total", "counter",
	         "Lanes that are not in these metrics any more: they were replaced by those of other peers, or had "
	         "ended.");
	fprintf(page->out, "oneway_metrics_lanes_dropped_total %" PRIu64 "\n", m->dropped);
	if (m->certificate_expiry_s == INT64_MAX)
		return;
	put_head(page, "oneway_certificate_expiry_timestamp_seconds", "gauge",
	         "When the certificate of this point, or a CA above it, expires, since 1970.");
	fprintf(page->out, "oneway_certificate_expiry_timestamp_seconds %" PRId64 "\n", m->certificate_expiry_s);
}

static void put_process(const struct page *page, const struct ow_metrics_process *p)
{
	const struct {
		const char *name, *type, *help;
		double value;
	} facts[] = {
		{"process_cpu_seconds_total", "counter", "Processor time of the process.", p->cpu_seconds},
		{"process_start_time_seconds", "gauge", "When the process started, since 1970.", p->start_seconds},
		{"process_resident_memory_bytes", "gauge", "Resident memory of the process.",
	         (double)p->resident_bytes},
		{"process_virtual_memory_bytes", "gauge", "Address space of the process.", (double)p->virtual_bytes},
		{"process_open_fds", "gauge", "File descriptors that are open.", (double)p->open_fds},
		{"process_max_fds", "gauge", "File descriptors that may be open.", (double)p->max_fds},
		{"oneway_memory_allocated_bytes", "gauge", "Memory that the program has allocated and not freed.",
	         (double)p->allocated_bytes},
	};
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
		if (facts[i].value < 0)
			continue;
		put_head(page, facts[i].name, facts[i].type, facts[i].help);
		fprintf(page->out, "%s %.15g\n", facts[i].name, facts[i].value);
	}
}

void ow_metrics_render(const struct ow_metrics *metrics, const struct ow_metrics_process *process,
                       enum ow_metrics_format format, FILE *out)
{
	const struct page page = {out, format == OW_METRICS_OPEN, metrics};
	put_counters(&page);
	put_compared(&page);
	put_intervals(&page);
	put_ring_drops(&page);
	put_histogram(&page);
	put_gauges(&page);
	put_quantiles(&page);
	put_clocks(&page);
	put_times(&page);
	put_stages(&page);
	put_peers(&page);
	put_refused(&page);
	put_point(&page);
	if (process)
		put_process(&page, process);
	if (page.open)
		fputs("# EOF\n", out);
}

/* The header Accept. */

/* The parameter q of a media range that ends before `end`; 1 if it has none. */
static double weight_of(const char *range, const char *end)
{
	for (const char *p = range; p < end; p++) {
		if (*p != ';')
			continue;
		const char *name = p + 1 + strspn(p + 1, " \t");
		if (name + 1 < end && (*name == 'q' || *name == 'Q') && name[1] == '=')
			return strtod(name + 2, NULL);
	}
	return 1;
}

enum ow_metrics_format ow_metrics_format(const char *accept)
{
	static const char open_type[] = "application/openmetrics-text", text_type[] = "text/plain";
	double open = 0, text = 0;
	for (const char *range = accept; range && *range;) {
		range += strspn(range, " \t,");
		const char *end = range + strcspn(range, ",");
		size_t length = strcspn(range, " \t;,");
		double weight = weight_of(range, end);
		if (length == strlen(open_type) && strncasecmp(range, open_type, length) == 0)
			open = fmax(open, weight);
		if (length == strlen(text_type) && strncasecmp(range, text_type, length) == 0)
			text = fmax(text, weight);
		range = end;
	}
	return open > 0 && open >= text ? OW_METRICS_OPEN : OW_METRICS_TEXT;
}
