/* SPDX-License-Identifier: Apache-2.0 */
#include "report/match_details.h"

#include "base/format.h"
#include "base/time.h"
#include "base/word.h"
#include "packet/flow_select.h"
#include "report/flow_name.h"
#include "result/json.h"
#include <math.h>
#include <stdarg.h>

#define HANG      16 /* columns of the name of a line */
#define LINE_MOST 600

static const struct ow_flow_select by_five_tuple = {.by = OW_FLOW_BY_FIVE_TUPLE};

/* -- text --------------------------------------------------------------------------------------------------------- */

struct lines {
	FILE *out;
	int width;
	const char *mark; /* before the text of a line */
};

static void put_line(const struct lines *lines, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put_line(const struct lines *lines, const char *name, const char *format, ...)
{
	char text[LINE_MOST];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(lines->out, "  %-*s%s", HANG - 2, name, lines->mark);
	ow_format_wrap(lines->out, text, HANG, lines->width);
}

/* Quantiles of a variation, and their bounds if identical packets make them uncertain. */
static void put_variation(const struct lines *lines, const char *name, const struct ow_delay *v, const char *of)
{
	static const enum ow_quantile shown[] = {OW_Q50, OW_Q95, OW_Q99};
	char text[LINE_MOST] = "", value[OW_DURATION_TEXT], high[OW_DURATION_TEXT], count[OW_FORMAT];
	size_t used = 0;
	if (!v->samples) {
		put_line(lines, name, "no sample");
		return;
	}
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		ow_duration_text(v->quantile_ns[shown[i]], value);
		used += (size_t)snprintf(text + used, sizeof text - used, "p%g %s", 100 * ow_quantile_level[shown[i]],
		                         value);
		if (v->uncertain) {
			ow_duration_text(v->low.quantile_ns[shown[i]], value);
			ow_duration_text(v->high.quantile_ns[shown[i]], high);
			used += (size_t)snprintf(text + used, sizeof text - used, " (%s to %s)", value, high);
		}
		used += (size_t)snprintf(text + used, sizeof text - used, ", ");
	}
	ow_duration_text((double)v->max_ns, value);
	put_line(lines, name, "%smax %s, of %s %s", text, value, ow_format_count(v->samples, count), of);
}

static void put_jitter(const struct lines *lines, const struct ow_jitter *j)
{
	char mean[OW_DURATION_TEXT], max[OW_DURATION_TEXT], flow[OW_FLOW_SELECTED_TEXT], flows[OW_FORMAT],
		samples[OW_FORMAT], left[OW_FORMAT], omitted[OW_FORMAT + 40] = "";
	if (!j->samples) {
		put_line(lines, "jitter", "no flow with two packets of known delay (RFC 3550)");
		return;
	}
	ow_duration_text(j->mean_ns, mean);
	ow_duration_text(j->max_ns, max);
	ow_flow_select_key_text(&by_five_tuple, j->flow, flow);
	if (j->left_out)
		snprintf(omitted, sizeof omitted, ", without %s identical ones", ow_format_count(j->left_out, left));
	put_line(lines, "jitter", "mean %s, of %s packets in %s %s%s; at most %s, in %s (RFC 3550)", mean,
	         ow_format_count(j->samples, samples), ow_format_count(j->flows, flows),
	         ow_plural(j->flows, "flow", "flows"), omitted, max, flow);
}

static void put_losses(const struct lines *lines, const struct ow_loss_periods *l)
{
	char periods[OW_FORMAT], lost[OW_FORMAT], longest[OW_FORMAT], low[OW_FORMAT], high[OW_FORMAT],
		doubt[200] = "", distance[80] = "";
	if (!l->lost) {
		put_line(lines, "loss periods", "none (RFC 3357)");
		return;
	}
	if (l->uncertain)
		snprintf(doubt, sizeof doubt,
		         "; it is not certain which of identical packets were lost: %s to %s periods",
		         ow_format_count(l->least_periods, low), ow_format_count(l->most_periods, high));
	if (l->distance.samples)
		snprintf(distance, sizeof distance, ", distance p50 %.0f, mean %.4g packets",
		         l->distance.quantile[OW_Q50], l->distance.mean);
	put_line(lines, "loss periods", "%s of %s lost packets: length p50 %.0f, mean %.3g, longest %s%s%s (RFC 3357)",
	         ow_format_count(l->length.samples, periods), ow_format_count(l->lost, lost),
	         l->length.quantile[OW_Q50], l->length.mean, ow_format_count(l->length.max, longest), distance, doubt);
}

static void put_reordering(const struct lines *lines, const struct ow_reordering *r)
{
	char count[OW_FORMAT], share[OW_FORMAT], max[OW_FORMAT];
	if (!r->reordered) {
		put_line(lines, "reordering", "none (RFC 4737)");
		return;
	}
	put_line(lines, "reordering", "%s of %s: extent p50 %.0f, p95 %.0f, p99 %.0f, max %s%s packets (RFC 4737)",
	         ow_format_share(r->reordered, r->arrived, share), ow_format_count(r->arrived, count),
	         r->extent.quantile[OW_Q50], r->extent.quantile[OW_Q95], r->extent.quantile[OW_Q99],
	         r->beyond ? "at least " : "", ow_format_count(r->extent.max, max));
}

static void put_tcp(const struct lines *lines, const struct ow_tcp_data *t)
{
	char packets[OW_FORMAT], resent[OW_FORMAT], repairs[OW_FORMAT], needless[OW_FORMAT], undecided[OW_FORMAT],
		lost[OW_FORMAT], again[OW_FORMAT], omitted[OW_FORMAT + 60] = "";
	if (!t->packets && !t->left_out)
		return;
	if (t->left_out)
		snprintf(omitted, sizeof omitted, "; %s more are of flows that are not kept apart",
		         ow_format_count(t->left_out, packets));
	put_line(lines, "TCP",
	         "%s retransmissions among %s packets with data: %s repair a loss between the points, %s are needless "
	         "there, of %s it is not known%s",
	         ow_format_count(t->retransmissions, resent), ow_format_count(t->packets, packets),
	         ow_format_count(t->repairs, repairs), ow_format_count(t->needless, needless),
	         ow_format_count(t->undecided, undecided), omitted);
	put_line(lines, "", "%s with data lost, of which %s were sent again", ow_format_count(t->lost, lost),
	         ow_format_count(t->lost_resent, again));
}

void ow_report_match_details_text(FILE *out, const struct ow_details *d, int width, enum ow_look look)
{
	const struct lines lines = {out, width, look == OW_LOOK_MARKED ? OW_MARK_LEFT : ""};
	if (d->reason) {
		put_line(&lines, "details", "not known: %s", d->reason);
		return;
	}
	put_variation(&lines, "|ipdv|", &d->ipdv_size, "pairs of packets sent one after the other (RFC 5481)");
	put_variation(&lines, "pdv", &d->pdv, "packets, above the minimum (RFC 5481)");
	put_jitter(&lines, &d->jitter);
	put_losses(&lines, &d->loss);
	put_reordering(&lines, &d->reordering);
	put_tcp(&lines, &d->tcp);
}

/* -- JSON --------------------------------------------------------------------------------------------------------- */

static void put_spread_json(struct ow_json *json, const char *name, const struct ow_count_spread *s)
{
	bool known = s->samples > 0;
	ow_json_object(json, name);
	ow_json_count(json, "samples", s->samples);
	ow_json_number(json, "mean", known ? s->mean : NAN);
	ow_json_count_if(json, "min", known, s->min);
	ow_json_count_if(json, "max", known, s->max);
	ow_json_quantiles(json, "quantiles", known ? s->quantile : NULL);
	ow_json_end(json);
}

static void put_range(struct ow_json *json, const char *name, uint64_t low, uint64_t high)
{
	ow_json_array(json, name);
	ow_json_count(json, NULL, low);
	ow_json_count(json, NULL, high);
	ow_json_end(json);
}

static void put_losses_json(struct ow_json *json, const struct ow_loss_periods *l)
{
	ow_json_object(json, "loss_periods");
	ow_json_count(json, "periods", l->length.samples);
	ow_json_count(json, "lost", l->lost);
	put_spread_json(json, "length", &l->length);
	put_spread_json(json, "distance", &l->distance);
	ow_json_count(json, "uncertain", l->uncertain);
	if (l->uncertain) {
		put_range(json, "periods_bounds", l->least_periods, l->most_periods);
		put_range(json, "longest_bounds", l->least_longest, l->most_longest);
	}
	ow_json_end(json);
}

static void put_jitter_json(struct ow_json *json, const struct ow_jitter *j)
{
	bool known = j->samples > 0;
	ow_json_object(json, "jitter");
	ow_json_count(json, "flows", j->flows);
	ow_json_count(json, "samples", j->samples);
	ow_json_number(json, "mean_ns", known ? j->mean_ns : NAN);
	ow_json_number(json, "max_ns", known ? j->max_ns : NAN);
	if (known)
		ow_flow_name_json(json, "flow", &by_five_tuple, j->flow);
	else
		ow_json_null(json, "flow");
	ow_json_number(json, "flow_last_ns", known ? j->final_ns : NAN);
	ow_json_count_if(json, "flow_samples", known, j->flow_samples);
	ow_json_count(json, "left_out", j->left_out);
	ow_json_end(json);
}

static void put_tcp_json(struct ow_json *json, const struct ow_tcp_data *t)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {
		{"packets", t->packets},           {"lost", t->lost},
		{"lost_resent", t->lost_resent},   {"retransmissions", t->retransmissions},
		{"repairs", t->repairs},           {"needless", t->needless},
		{"undecided", t->undecided},       {"retransmissions_lost", t->retransmissions_lost},
		{"out_of_order", t->out_of_order}, {"keep_alives", t->keep_alives},
		{"left_out", t->left_out},
	};
	ow_json_object(json, "tcp");
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		ow_json_count(json, counts[i].name, counts[i].count);
	ow_json_end(json);
}

void ow_report_match_details_json(struct ow_json *json, const struct ow_details *d)
{
	ow_json_object(json, "details");
	ow_json_style(json, OW_JSON_LINES);
	ow_json_string(json, "reason", d->reason);
	if (!d->reason) {
		ow_json_count(json, "packets", d->packets);
		ow_json_delay(json, "ipdv_ns", &d->ipdv);
		ow_json_delay(json, "ipdv_size_ns", &d->ipdv_size);
		ow_json_delay(json, "pdv_ns", &d->pdv);
		put_jitter_json(json, &d->jitter);
		put_losses_json(json, &d->loss);
		ow_json_object(json, "reordering");
		ow_json_count(json, "reordered", d->reordering.reordered);
		ow_json_count(json, "arrived", d->reordering.arrived);
		ow_json_count(json, "beyond", d->reordering.beyond);
		put_spread_json(json, "extent", &d->reordering.extent);
		ow_json_end(json);
		put_tcp_json(json, &d->tcp);
	}
	ow_json_end(json);
}
