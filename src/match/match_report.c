/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the report of a match from the results of the passes. */
#include "match/match_private.h"

#include <errno.h>
#include <math.h>

/* The offsets that the packets allow: no delay is negative. Timestamps are truncated to their resolution. */
static void fill_clock(struct ow_match *m)
{
	struct ow_match_report *report = &m->report;
	const struct ow_match_pass *p = &m->pass;
	bool unlike = p->floor[OW_A_TO_B].samples || p->floor[OW_B_TO_A].samples;
	int64_t ab, ba, tick_a = report->capture[OW_SIDE_A].resolution_ns,
			tick_b = report->capture[OW_SIDE_B].resolution_ns;
	int64_t tick = tick_a > tick_b ? tick_a : tick_b;
	bool has_ab = unlike && ow_match_floor(p, OW_A_TO_B, &ab), has_ba = unlike && ow_match_floor(p, OW_B_TO_A, &ba);
	/* If the last pass shows packets that are too fast for the offset, they are left out as outliers. */
	if (m->options.clock == OW_CLOCK_ESTIMATED && has_ab && has_ba && ab + ba >= 0) {
		ab = ab > 0 ? ab : 0;
		ba = ba > 0 ? ba : 0;
	}
	report->offset_low_ns = has_ab ? report->offset_ns - ab - tick : INT64_MIN;
	report->offset_high_ns = has_ba ? report->offset_ns + ba + tick : INT64_MAX;
	report->offset_error_ns = -1;
	if (m->options.clock == OW_CLOCK_ESTIMATED && has_ab && has_ba &&
	    report->offset_low_ns <= report->offset_high_ns)
		report->offset_error_ns = (ab > ba ? ab : ba) + tick;
}

static void fill_holes(struct ow_match *m, enum ow_side side)
{
	const struct ow_match_pass *p = &m->pass;
	int64_t shown = side == OW_SIDE_B ? p->plan.offset_ns - p->plan.shift_ns : 0;
	for (unsigned i = 0; i < p->gaps[side]; i++) {
		const struct ow_gap *gap = &p->gap[side][i];
		if (gap->verdict >= OW_HOLE_OR_OUTAGE)
			m->hole[m->report.holes++] = (struct ow_hole){
				.side = side,
				.start_ns = gap->silence.from_ns + shown,
				.length_ns = gap->silence.to_ns - gap->silence.from_ns,
				.packets = gap->packets,
				.certain = gap->verdict == OW_HOLE,
			};
	}
}

/* Whether the times are those of a capture device, in the frames. */
static bool uses_device(const struct ow_match *m, enum ow_side side)
{
	return m->options.stamps != OW_STAMPS_CAPTURE && m->pass.input[side].device.device != OW_DEVICE_NONE;
}

/* What the file says, or what its timestamps show. */
static int64_t resolution_of(const struct ow_match *m, enum ow_side side)
{
	int64_t says = ow_reader_info(m->pass.input[side].reader)->resolution_ns,
		shows = m->planner.outlook[side].tick_ns;
	return shows > says && !uses_device(m, side) ? shows : says;
}

int ow_match_fill_report(struct ow_match *m)
{
	struct ow_match_report *report = &m->report;
	struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader_facts *facts = &p->input[side].facts;
		const struct ow_reader_info *info = ow_reader_info(p->input[side].reader);
		report->capture[side] = (struct ow_capture_info){
			.path = info->path,
			.packets = facts->packets,
			.first_ns = facts->first_ns,
			.last_ns = facts->last_ns,
			.linktype = facts->mixed_links ? "mixed" : ow_linktype_name(info->linktype),
			.resolution_ns = resolution_of(m, side),
		};
		report->files[side] = info->files;
		report->unclassified[side] = p->unclassified[side];
		report->outside_overlap[side] = p->outside[side];
		report->dropped[side] = info->dropped;
		report->filtered[side] = facts->filtered;
		report->stamps[side] = uses_device(m, side) ? ow_device_name(p->input[side].device.device) : "capture";
		report->skipped[side] = ow_record_reader_skipped(facts) - p->resent[side];
	}
	report->size = sizeof *report;
	report->level = p->plan.identity.level;
	report->inner = p->plan.identity.inner;
	report->ip_id = !p->plan.identity.any_ip_id;
	report->tcp_numbers = p->plan.identity.tcp != OW_TCP_ANY_NUMBERS;
	report->tcp_options = p->plan.identity.tcp == OW_TCP_EXACT;
	report->segments = p->plan.identity.segments || m->cuts_datagrams;
	report->fragments = p->plan.identity.cut != NULL;
	report->clock = m->options.clock;
	/* At B's first packet. */
	report->offset_ns = p->plan.offset_ns;
	if (p->plan.drift != 0)
		report->offset_ns +=
			llrint(p->plan.drift * (double)(p->input[OW_SIDE_B].facts.first_ns - p->plan.drift_from_ns));
	report->drift_ppb = -p->plan.drift * 1e9;
	report->window_ns = p->plan.window_ns;
	fill_clock(m);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (ow_tally_result(&p->tally[d], &report->direction[d]) < 0)
			return -ENOMEM;
		report->has_direction[d] = report->direction[d].sent + report->direction[d].received > 0;
		if (report->percentiles &&
		    ow_tally_percentiles(&p->tally[d], report->percentile[d], report->percentiles) < 0)
			return -ENOMEM;
	}
	report->has_direction[OW_A_TO_B] = true;
	for (unsigned i = 0; i < OW_CLASSES_MAX; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++)
			report->class_reordered[i][d] = p->class_order[i][d].reordered;
	}
	report->holes = 0;
	for (unsigned side = 0; side < OW_SIDES; side++)
		fill_holes(m, side);
	report->hole = m->hole;
	return 0;
}
