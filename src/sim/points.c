/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of all places in one order of time: when a packet reaches a place, the point on its link stores it, and the
 * next hop decides when it reaches the next place. So every capture is in order, and queues get their packets in order.
 */
#include "sim/points.h"

#include "base/hash.h"
#include "base/time.h"
#include "estimate/delay.h"
#include "sim/check.h"
#include "sim/path.h"
#include "sim/points_rows.h"
#include "sim/rewrite.h"
#include "sim/rotation.h"
#include "sim/traffic.h"
#include "sim/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_ERROR 1e-9 /* of the sum of shares, by rounding */
#define ROUTERS_MAX 60   /* TTLs of the traffic are 64 */

/* A measurement point at work. */
struct tap {
	struct ow_sim_options options; /* of its view: its capture is side B */
	struct ow_sim_view *view;
	struct ow_rotation *file;
	struct ow_random random;
	int64_t from_ns, to_ns; /* the capture runs from .. to */
};

/* A direction of a hop, or of the whole path. */
struct count {
	struct ow_result result;
	struct ow_delays *delays;
	uint64_t latest; /* of the packets that arrived, the one that was sent last */
};

struct run {
	struct ow_sim_options options;
	const struct ow_sim_points *points;
	struct ow_sim_points_truth *truth;
	struct ow_wire_pool *pool;
	struct ow_traffic *traffic;
	struct ow_wire_heap heap;
	struct ow_sim_rows *rows;
	struct tap tap[OW_SIM_POINTS];
	struct ow_sim_options hop_options[OW_SIM_POINTS];
	struct ow_sim_path path[OW_SIM_POINTS][OW_DIRECTIONS];
	struct count hop[OW_SIM_POINTS][OW_DIRECTIONS], ends[OW_DIRECTIONS];
	uint64_t order[OW_SIM_POINTS][OW_DIRECTIONS]; /* packets that entered a hop */
};

/* -- what is given ------------------------------------------------------------------------------------------------ */

static int check_names(const struct ow_sim_points *points, struct ow_error *err)
{
	for (unsigned i = 0; i < points->points; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(points->point[i].name, points->point[k].name) == 0)
				return ow_error_set(err, EINVAL, "--point: two points are called %s",
				                    points->point[i].name);
			if (strcmp(points->point[i].path, points->point[k].path) == 0)
				return ow_error_set(err, EINVAL, "--point: %s and %s have the same file",
				                    points->point[k].name, points->point[i].name);
		}
	}
	return 0;
}

/* Points without a share divide among them what the others of their place leave. */
static int share_place(struct ow_sim_points *points, unsigned place, struct ow_error *err)
{
	double given = 0;
	unsigned open = 0, count = 0;
	for (unsigned i = 0; i < points->points; i++) {
		if (points->point[i].place != place)
			continue;
		count++;
		given += points->point[i].share < 0 ? 0 : points->point[i].share;
		open += points->point[i].share < 0;
	}
	if (!count)
		return ow_error_set(err, EINVAL, "--hop: there is no --point %s it", place ? "behind" : "before");
	if (given > 1 + SHARE_ERROR || (open && given >= 1))
		return ow_error_set(err, EINVAL, "--point: the shares of links in parallel are more than 1");
	for (unsigned i = 0; i < points->points; i++) {
		if (points->point[i].place == place && points->point[i].share < 0)
			points->point[i].share = (1 - given) / open;
	}
	return 0;
}

static int check_hops(const struct ow_sim_points *points, struct ow_error *err)
{
	uint32_t routers = 0, nats = 0;
	for (unsigned i = 0; i < points->hops; i++) {
		routers += points->hop[i].routers;
		nats += points->hop[i].nat;
		if (points->hop[i].routers > ROUTERS_MAX || routers > ROUTERS_MAX)
			return ow_error_set(err, EINVAL, "--hop: more than %d routers", ROUTERS_MAX);
	}
	return nats > 1 ? ow_error_set(err, EINVAL, "--hop: more than one NAT") : 0;
}

int ow_sim_points_check(struct ow_sim_points *points, const struct ow_sim_options *options, struct ow_error *err)
{
	int r = ow_sim_check_traffic(options, err);
	const struct ow_sim_side *side = options->side;
	if (r >= 0 && (points->points < 2 || !points->hops))
		r = ow_error_set(err, EINVAL, "--point: a path has two points or more, with a --hop between them");
	if (r >= 0 && (side[0].superframes || side[1].superframes || options->duplicate > 0 || options->interval_ns ||
	               side[0].zero_timestamps || side[1].zero_timestamps || options->backwards > 0))
		r = ow_error_set(err, EINVAL,
		                 "--point does not go with --superframes, --duplicate, --reorder-tuple, --backwards "
		                 "or --zero-timestamps");
	if (r >= 0)
		r = check_names(points, err);
	if (r >= 0)
		r = check_hops(points, err);
	for (unsigned place = 0; r >= 0 && place <= points->hops; place++)
		r = share_place(points, place, err);
	return r;
}

void ow_sim_points_done(struct ow_sim_points *points)
{
	for (unsigned i = 0; i < points->points; i++)
		free(points->point[i].path);
	points->points = 0;
}

/* -- a point ------------------------------------------------------------------------------------------------------ */

static bool behind_nat(const struct ow_sim_points *points, unsigned place)
{
	for (unsigned i = 0; i < place; i++) {
		if (points->hop[i].nat)
			return true;
	}
	return false;
}

static int start_tap(struct run *run, unsigned i, int linktype, int64_t end_ns, struct ow_error *err)
{
	struct tap *tap = &run->tap[i];
	const struct ow_sim_point *point = &run->points->point[i];
	struct ow_sim_side side = run->options.side[OW_SIDE_A];
	bool gzip;
	enum ow_file_format format;
	ow_writer_options_of_name(point->path, &format, &gzip);
	tap->options = run->options;
	tap->options.nat = behind_nat(run->points, point->place);
	tap->options.router = false;
	tap->options.side[OW_SIDE_B] = side;
	tap->from_ns = point->skip_ns ? run->options.start_ns + point->skip_ns : INT64_MIN;
	tap->to_ns = point->early_ns ? end_ns - point->early_ns : INT64_MAX;
	ow_random_seed(&tap->random, ow_mix64(run->options.seed ^ ow_mix64(OW_STREAM_STAMP_B + 1 + i)));
	if (ow_view_create(&tap->options, OW_SIDE_B, &tap->view) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_writer_options file = {
		.format = format == OW_FILE_PCAPNG ? format : side.format,
		.linktype = linktype >= 0 ? (uint16_t)linktype : ow_link_linktype(side.link),
		.snaplen = point->snaplen ? point->snaplen : side.snaplen,
		.nanoseconds = !side.microseconds,
		.big_endian = side.big_endian,
		.gzip = side.gzip || gzip,
	};
	return ow_rotation_open(point->path, &file, run->options.rotate_ns, run->options.start_ns, &tap->file, err);
}

static int64_t stamp(const struct run *run, unsigned i, int64_t time_ns)
{
	const struct ow_sim_point *point = &run->points->point[i];
	double since = (double)(time_ns - run->options.start_ns);
	int64_t stored = time_ns + point->offset_ns + llrint(point->drift_ppb * 1e-9 * since);
	if (run->options.side[OW_SIDE_A].microseconds)
		stored -= ((stored % OW_NS_PER_US) + OW_NS_PER_US) % OW_NS_PER_US;
	return stored;
}

/* The point whose link a packet takes at a place: the same for all packets of a flow, at all places, unless sprayed. */
static unsigned choose_point(const struct run *run, const struct ow_wire *wire)
{
	bool spray = wire->stage > 0 && run->points->hop[wire->stage - 1].spray;
	uint64_t what = spray ? wire->number ^ (uint64_t)wire->stage << 56 : (uint64_t)wire->flow << 1 | 1;
	double u = (double)(ow_mix64(what ^ ow_mix64(run->options.seed)) >> 11) * 0x1p-53;
	for (unsigned i = 0; i < run->points->points; i++) {
		const struct ow_sim_point *point = &run->points->point[i];
		if (point->place != wire->stage)
			continue;
		if (u < point->share)
			return i;
		u -= point->share;
	}
	return OW_SIM_NO_POINT;
}

/* The point on the packet's link stores it. */
static int show(struct run *run, const struct ow_wire *wire, struct ow_error *err)
{
	unsigned i = choose_point(run, wire);
	struct ow_sim_row *row = ow_sim_rows_of(run->rows, wire);
	if (i == OW_SIM_NO_POINT)
		return 0;
	struct tap *tap = &run->tap[i];
	double drop = run->points->point[i].drop;
	row->point[wire->stage] = (uint8_t)i;
	row->time_ns[wire->stage] = wire->time_ns;
	if (wire->time_ns < tap->from_ns || wire->time_ns > tap->to_ns ||
	    (drop > 0 && ow_random_unit(&tap->random) < drop))
		return 0;
	row->record[wire->stage] = ++run->truth->records[i];
	struct ow_frame frame = {.time_ns = stamp(run, i, wire->time_ns)};
	ow_view_frame(tap->view, wire, false, &frame.data, &frame.caplen);
	frame.len = frame.caplen + wire->missing;
	return ow_rotation_write(tap->file, &frame, err);
}

/* -- the way of a packet ------------------------------------------------------------------------------------------ */

static void count_arrival(struct count *count, uint64_t order, int64_t delay_ns)
{
	count->result.matched++;
	count->result.reordered += order < count->latest;
	count->latest = order > count->latest ? order : count->latest;
	ow_delays_add(count->delays, delay_ns, 1);
}

static bool is_last(const struct run *run, const struct ow_wire *wire)
{
	return wire->stage == (wire->direction == OW_A_TO_B ? run->points->hops : 0);
}

static void end_way(struct run *run, struct ow_wire *wire)
{
	ow_sim_rows_end(run->rows, wire);
	ow_wire_put(run->pool, wire);
}

/* From the place where it is to the next. */
static int pass_hop(struct run *run, struct ow_wire *wire, struct ow_error *err)
{
	unsigned d = wire->direction, h = d == OW_A_TO_B ? wire->stage : wire->stage - 1u;
	struct ow_passage passage;
	ow_sim_path_pass(&run->path[h][d], wire, &passage);
	wire->order = ++run->order[h][d];
	if (passage.lost) {
		run->hop[h][d].result.lost++;
		run->ends[d].result.lost++;
		ow_sim_rows_of(run->rows, wire)->lost_hop = (uint8_t)(h + 1);
		end_way(run, wire);
		return 0;
	}
	struct ow_rewrite packet = {wire->head, wire->head_len, wire->l4, wire->proto};
	for (unsigned i = 0; i < run->points->hop[h].routers && !wire->frame; i++)
		ow_rewrite_hop(&packet);
	wire->stamp_ns = wire->time_ns;
	wire->time_ns = passage.arrival_ns;
	wire->stage = (uint8_t)(d == OW_A_TO_B ? wire->stage + 1 : wire->stage - 1);
	return ow_wire_heap_push(&run->heap, wire) < 0
	               ? ow_error_set(err, ENOMEM, "out of memory for packets on their way")
	               : 0;
}

static int arrive(struct run *run, struct ow_wire *wire, struct ow_error *err)
{
	unsigned d = wire->direction, h = d == OW_A_TO_B ? wire->stage - 1u : wire->stage;
	count_arrival(&run->hop[h][d], wire->order, wire->time_ns - wire->stamp_ns);
	int r = show(run, wire, err);
	if (r < 0 || !is_last(run, wire))
		return r < 0 ? r : pass_hop(run, wire, err);
	count_arrival(&run->ends[d], wire->number, wire->time_ns - ow_sim_rows_of(run->rows, wire)->sent_ns);
	end_way(run, wire);
	return 0;
}

static int advance(struct run *run, int64_t now_ns, struct ow_error *err)
{
	struct ow_wire *wire;
	int r = 0;
	while (r >= 0 && (wire = ow_wire_heap_pop(&run->heap, now_ns)))
		r = arrive(run, wire, err);
	return r;
}

static int send_packet(void *arg, struct ow_wire *wire, struct ow_error *err)
{
	struct run *run = arg;
	int r = advance(run, wire->time_ns, err);
	if (r < 0)
		return r;
	if (!run->truth->last_ns)
		run->truth->first_ns = wire->time_ns;
	run->truth->last_ns = wire->time_ns;
	wire->stage = (uint8_t)(wire->direction == OW_A_TO_B ? 0 : run->points->hops);
	if (!ow_sim_rows_begin(run->rows, wire))
		return ow_error_set(err, ENOMEM, "out of memory");
	r = show(run, wire, err);
	return r < 0 ? r : pass_hop(run, wire, err);
}

/* -- the run ------------------------------------------------------------------------------------------------------ */

static int start_hop(struct run *run, unsigned h)
{
	const struct ow_sim_hop *hop = &run->points->hop[h];
	struct ow_sim_options *options = &run->hop_options[h];
	*options = run->options;
	options->seed = ow_mix64(run->options.seed + ow_mix64(h + 1));
	options->delay = hop->delay;
	options->loss = hop->loss;
	options->base_delay_ns = hop->base_delay_ns;
	options->in_order = hop->in_order;
	options->ecn_mark = options->duplicate = 0;
	int r = 0;
	for (unsigned d = 0; d < OW_DIRECTIONS && r >= 0; d++) {
		r = ow_sim_path_init(&run->path[h][d], options, d);
		if (r >= 0)
			r = ow_delays_create(&run->hop[h][d].delays);
	}
	return r;
}

static int start(struct run *run, const char *packets, struct ow_error *err)
{
	int linktype;
	int64_t end_ns;
	for (unsigned i = 0; i < run->points->points; i++)
		run->options.side[OW_SIDE_A].early_ns |= run->points->point[i].early_ns;
	for (unsigned h = 0; h < run->points->hops; h++)
		run->options.router |= run->points->hop[h].routers > 0 || run->points->hop[h].nat;
	int r = ow_sim_resolve(&run->options, &linktype, &end_ns, err);
	if (r < 0)
		return r;
	r = ow_wire_pool_create(&run->pool);
	for (unsigned h = 0; r >= 0 && h < run->points->hops; h++)
		r = start_hop(run, h);
	for (unsigned d = 0; r >= 0 && d < OW_DIRECTIONS; d++)
		r = ow_delays_create(&run->ends[d].delays);
	if (r < 0)
		return ow_error_set(err, -r, "out of memory");
	r = ow_traffic_create(&run->options, run->pool, &run->traffic, err);
	if (r >= 0)
		r = ow_sim_rows_open(packets, run->points, &run->rows, err);
	for (unsigned i = 0; r >= 0 && i < run->points->points; i++)
		r = start_tap(run, i, linktype, end_ns, err);
	return r;
}

static int run_all(struct run *run, struct ow_error *err)
{
	int r = ow_traffic_run(run->traffic, send_packet, run, err);
	return r < 0 ? r : advance(run, INT64_MAX, err);
}

static int close_all(struct run *run, struct ow_error *err)
{
	int r = ow_sim_rows_close(run->rows, err);
	run->rows = NULL;
	for (unsigned i = 0; r >= 0 && i < run->points->points; i++) {
		run->truth->files[i] = ow_rotation_files(run->tap[i].file);
		r = ow_rotation_close(run->tap[i].file, err);
		run->tap[i].file = NULL;
	}
	return r;
}

static void fill_truth(struct count count[OW_DIRECTIONS], struct ow_sim_hop_truth *truth)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		struct ow_result *result = &truth->direction[d];
		*result = count[d].result;
		result->sent = result->matched + result->lost;
		result->received = result->matched;
		result->exact = true;
		truth->has_direction[d] = result->sent > 0;
		ow_delays_summary(count[d].delays, &result->delay);
	}
}

static void finish(struct run *run)
{
	ow_sim_rows_abort(run->rows);
	for (unsigned i = 0; i < run->points->points; i++) {
		ow_rotation_abort(run->tap[i].file);
		ow_view_free(run->tap[i].view);
	}
	for (unsigned h = 0; h < run->points->hops; h++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			ow_sim_path_done(&run->path[h][d]);
			ow_delays_free(run->hop[h][d].delays);
		}
	}
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		ow_delays_free(run->ends[d].delays);
	ow_traffic_free(run->traffic);
	ow_wire_heap_done(&run->heap, run->pool);
	ow_wire_pool_free(run->pool);
	free(run);
}

int ow_sim_points_run(const struct ow_sim_points *points, const struct ow_sim_options *options, const char *packets,
                      struct ow_sim_points_truth *ret_truth, struct ow_error *err)
{
	struct run *run = calloc(1, sizeof *run);
	if (!run)
		return ow_error_set(err, ENOMEM, "out of memory");
	*ret_truth = (struct ow_sim_points_truth){0};
	run->options = *options;
	run->points = points;
	run->truth = ret_truth;
	int r = start(run, packets, err);
	if (r >= 0)
		r = run_all(run, err);
	if (r >= 0)
		r = close_all(run, err);
	if (r >= 0) {
		fill_truth(run->ends, &ret_truth->ends);
		for (unsigned h = 0; h < points->hops; h++)
			fill_truth(run->hop[h], &ret_truth->hop[h]);
	}
	finish(run);
	return r;
}
