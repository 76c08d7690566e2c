/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flow_hops.h"

#include "base/format.h"
#include "base/time.h"
#include "report/flow_name.h"
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

static const char *name_of(const struct ow_flow_hops_report *r, unsigned point, char text[NAME_BYTES])
{
	ow_format_clean(r->path->point[point].name, false, text, NAME_BYTES);
	return text;
}

static void put_flow(FILE *out, const struct ow_flow_hops_report *r, const struct ow_flow_on_path *flow, int hop,
                     enum ow_look look)
{
	const char *left = look == OW_LOOK_MARKED ? OW_MARK_LEFT : "";
	char key[OW_FLOW_SELECTED_TEXT], clean[OW_FLOW_SELECTED_TEXT], from[NAME_BYTES], to[NAME_BYTES];
	const struct ow_flow_hop *h = &flow->hop[hop];
	ow_flow_select_key_text(r->select, &flow->key, key);
	ow_format_clean(key, false, clean, sizeof clean);
	fprintf(out, "%s%s > %s  %s%s\n", left, name_of(r, h->from, from), name_of(r, h->to, to), left, clean);
}

static void put_title(FILE *out, unsigned direction, const char *text, enum ow_look look)
{
	fprintf(out, "\n%s%s, %s%s\n", look ? "\033[1m" : "", direction ? "B to A" : "A to B", text,
	        look ? "\033[0m" : "");
}

static void put_numbers(FILE *out, const char *first, const char *second, const char *third, enum ow_look look)
{
	const char *right = look == OW_LOOK_MARKED ? OW_MARK_RIGHT : "";
	fprintf(out, "  %s%10s %s%10s %s%12s  ", right, first, right, second, right, third);
}

static void put_lossy(FILE *out, const struct ow_flow_hops_report *r, unsigned direction, size_t top, uint64_t least,
                      enum ow_look look)
{
	char lost[OW_FORMAT], all[OW_FORMAT], sent[OW_FORMAT];
	size_t shown = 0;
	for (size_t i = 0; i < r->flows && shown < top; i++) {
		const struct ow_flow_on_path *flow = &r->flow[i];
		if (flow->direction != direction || flow->lossy < 0 || flow->sent - flow->lost < least)
			continue;
		if (!shown++)
			put_title(out, direction, "flows that lost most: lost, of that on the worst hop, sent", look);
		put_numbers(out, ow_format_count(flow->lost, all), ow_format_count(flow->hop[flow->lossy].lost, lost),
		            ow_format_count(flow->sent, sent), look);
		put_flow(out, r, flow, flow->lossy, look);
	}
}

static const struct ow_flow_on_path *slower(const struct ow_flow_on_path *a, const struct ow_flow_on_path *b)
{
	return !a || b->hop[b->slow].mean_ns > a->hop[a->slow].mean_ns ? b : a;
}

/* The slowest after those that were shown. */
static const struct ow_flow_on_path *next_slow(const struct ow_flow_hops_report *r, unsigned direction, uint64_t least,
                                               const struct ow_flow_on_path *last)
{
	const struct ow_flow_on_path *next = NULL;
	for (const struct ow_flow_on_path *flow = r->flow; flow < r->flow + r->flows; flow++) {
		bool wanted = flow->direction == direction && flow->slow >= 0 && flow->sent - flow->lost >= least;
		if (!wanted || flow == last)
			continue;
		double mean_ns = flow->hop[flow->slow].mean_ns, last_ns = last ? last->hop[last->slow].mean_ns : 0;
		if (!last || mean_ns < last_ns || (mean_ns == last_ns && flow > last))
			next = slower(next, flow);
	}
	return next;
}

static void put_slow(FILE *out, const struct ow_flow_hops_report *r, unsigned direction, size_t top, uint64_t least,
                     enum ow_look look)
{
	char mean[OW_DURATION_TEXT], most[OW_DURATION_TEXT], sent[OW_FORMAT];
	const struct ow_flow_on_path *flow = NULL;
	for (size_t shown = 0; shown < top && (flow = next_slow(r, direction, least, flow)); shown++) {
		const struct ow_flow_hop *hop = &flow->hop[flow->slow];
		if (!shown)
			put_title(out, direction, "flows with the slowest hops: mean, longest, sent", look);
		ow_duration_text(hop->mean_ns, mean);
		ow_duration_text((double)hop->max_ns, most);
		put_numbers(out, mean, most, ow_format_count(flow->sent, sent), look);
		put_flow(out, r, flow, flow->slow, look);
	}
}

void ow_report_flow_hops_text(FILE *out, const struct ow_flow_hops_report *r, size_t top, uint64_t least,
                              enum ow_look look)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		put_lossy(out, r, d, top, least, look);
		put_slow(out, r, d, top, least, look);
	}
	char count[OW_FORMAT];
	if (r->omitted)
		fprintf(out, "\n%s packets belong to further flows, which are not among these\n",
		        ow_format_count(r->omitted, count));
}

static void put_hop_name(struct ow_json *json, const char *name, const struct ow_flow_hops_report *r,
                         const struct ow_flow_on_path *flow, int hop)
{
	if (hop < 0) {
		ow_json_null(json, name);
		return;
	}
	ow_json_object(json, name);
	ow_json_string(json, "from", r->path->point[flow->hop[hop].from].name);
	ow_json_string(json, "to", r->path->point[flow->hop[hop].to].name);
	ow_json_end(json);
}

void ow_report_flow_hops_json(struct ow_json *json, const struct ow_flow_hops_report *r)
{
	static const char *const way[] = {"a_to_b", "b_to_a"};
	ow_json_rows(json, "flow_hops");
	for (size_t i = 0; i < r->flows; i++) {
		const struct ow_flow_on_path *flow = &r->flow[i];
		ow_json_row(json);
		ow_flow_name_json(json, "flow", r->select, &flow->key);
		ow_json_string(json, "direction", way[flow->direction]);
		ow_json_count(json, "sent", flow->sent);
		ow_json_count(json, "lost", flow->lost);
		put_hop_name(json, "loss_hop", r, flow, flow->lossy);
		put_hop_name(json, "delay_hop", r, flow, flow->slow);
		ow_json_array(json, "hops");
		for (unsigned k = 0; k < flow->hops; k++) {
			const struct ow_flow_hop *hop = &flow->hop[k];
			ow_json_object(json, NULL);
			ow_json_string(json, "from", r->path->point[hop->from].name);
			ow_json_string(json, "to", r->path->point[hop->to].name);
			ow_json_count(json, "sent", hop->sent);
			ow_json_count(json, "lost", hop->lost);
			ow_json_count(json, "samples", hop->delays);
			if (hop->delays) {
				ow_json_number(json, "mean_ns", hop->mean_ns);
				ow_json_integer(json, "max_ns", hop->max_ns);
			} else {
				ow_json_null(json, "mean_ns");
				ow_json_null(json, "max_ns");
			}
			ow_json_end(json);
		}
		ow_json_end(json);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_count(json, "flow_hops_omitted", r->omitted);
}
