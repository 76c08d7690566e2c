/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact matching of two capture files: a plan and a pass, and further passes with what was learned (more truncation,
 * superframes, directions, the exact clock offset), until nothing changes; then, if events or intervals are wanted, a
 * last pass that reports them. Every pass reads the files as streams; memory depends on the waiting packets and the
 * flows.
 */
#include "match/match_private.h"

#include "base/side.h"
#include "match/capture_time_range.h"
#include "match/match_options.h"
#include "match/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* -- progress ----------------------------------------------------------------------------------------------------- */

static void on_progress(void *arg)
{
	struct ow_match *m = arg;
	double done = 0, size = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		struct ow_reader *reader = m->pass.input[side].reader;
		done += (double)m->pass.position[side];
		size += (double)ow_reader_info(reader)->size_bytes;
	}
	double expected = m->options.on_packet || m->options.interval_ns || m->options.details ? 2 : 1;
	if (m->passes + 1 > expected)
		expected = m->passes + 1;
	m->options.on_progress(m->options.arg, size > 0 ? (m->passes + done / size) / expected : 0);
}

static int run_until_settled(struct ow_match *m, struct ow_error *err)
{
	int r = ow_match_settle(m, err);
	if (r == 0)
		r = ow_match_leave_copies_out(m, err);
	if (r < 0 || m->options.segments == OW_OFF || m->pass.plan.identity.level == OW_LEVEL_FRAME)
		return r;
	r = ow_match_try_identities(m, err);
	if (r == 0)
		r = ow_match_leave_copies_out(m, err);
	/* superframes that were cut since may show more about the clocks */
	m->clock_settled = m->drift_settled = false;
	return r < 0 ? r : ow_match_improve(m, err);
}

/* The time when the first packet with a time passed either point. */
static int64_t first_time(const struct ow_match_pass *p)
{
	const struct ow_record_reader_facts *a = &p->input[OW_SIDE_A].facts, *b = &p->input[OW_SIDE_B].facts;
	int64_t a_ns = a->first_ns, b_ns = b->first_ns + p->plan.offset_ns;
	bool only_b = a->untimed == a->packets, only_a = b->untimed == b->packets;
	return only_b || (!only_a && b_ns < a_ns) ? b_ns : a_ns;
}

/* -- details ------------------------------------------------------------------------------------------------------ */

static void end_details(struct ow_match *m)
{
	for (unsigned i = 0; i < OW_DIRECTIONS; i++) {
		ow_details_tally_free(m->pass.details[i]);
		ow_tcp_headers_free(m->pass.input[i].headers);
		m->pass.details[i] = NULL;
		m->pass.input[i].headers = NULL;
	}
}

static int start_details(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	int64_t keep_ns = OW_DETAILS_WINDOWS * p->plan.window_ns;
	for (unsigned i = 0; i < OW_DIRECTIONS; i++) {
		if (ow_details_tally_create(keep_ns, &p->details[i]) < 0 ||
		    ow_tcp_headers_create(keep_ns, &p->input[i].headers) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int get_jitters(struct ow_match *m, enum ow_direction d)
{
	const struct ow_flow_table *flows = m->pass.input[ow_sender_of(d)].flows;
	size_t count = (size_t)m->details[d].jitter.flows, i = 0;
	free(m->flow_jitter[d]);
	struct ow_flow_jitter *jitter = m->flow_jitter[d] = malloc((count + 1) * sizeof *jitter);
	if (!jitter)
		return -ENOMEM;
	for (uint32_t flow = 0; i < count && ow_details_tally_jitter(m->pass.details[d], &flow, &jitter[i]); flow++)
		jitter[i++].flow = ow_flow_table_key(flows, flow);
	m->details[d].flow_jitter = jitter;
	return 0;
}

static int get_details(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		struct ow_result result;
		uint32_t flow = 0;
		if (ow_tally_result(&p->tally[d], &result) < 0 ||
		    ow_details_tally_finish(p->details[d], &result, &m->details[d], &flow) < 0)
			return -ENOMEM;
		if (m->details[d].jitter.samples)
			m->details[d].jitter.flow = ow_flow_table_key(p->input[ow_sender_of(d)].flows, flow);
		if (get_jitters(m, d) < 0)
			return -ENOMEM;
		if (p->misjudged)
			m->details[d].reason = "packets near the start of the captures were judged in two ways";
	}
	return 0;
}

static void leave_out_details(struct ow_match *m, const char *reason)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		m->details[d] = (struct ow_details){.size = sizeof m->details[d], .reason = reason};
}

static int tell_events(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	bool details = m->options.details && !p->plan.untimed;
	if (m->options.details && !details)
		leave_out_details(m, "a capture has no times");
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		m->report.details[d] = m->options.details ? &m->details[d] : NULL;
	if (!m->options.on_packet && !m->options.interval_ns && !details)
		return 0;
	if (details && start_details(m) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	p->events = m->options.on_packet != NULL;
	if (m->options.interval_ns > 0) {
		int r = ow_intervals_create(m->options.interval_ns, p->plan.window_ns, first_time(p), &m->intervals);
		if (r == 0)
			r = ow_intervals_want(m->intervals, m->options.percentile, m->options.percentiles);
		if (r < 0)
			return ow_error_set(err, -r, "out of memory");
		p->intervals = m->intervals;
	}
	int r = ow_match_run(m, err);
	if (r == 0 && m->intervals)
		r = ow_intervals_finish(m->intervals, &m->report.interval, &m->report.intervals);
	if (r == 0 && m->intervals)
		m->report.interval_percentile = ow_intervals_percentiles(m->intervals);
	if (r == 0 && details && get_details(m) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	end_details(m);
	return r;
}

/* Says so if the filter or the times leave nothing of a capture; otherwise returns 0. */
static int refuse_choice(const struct ow_match *m, struct ow_error *err)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader_facts *f = &m->pass.input[side].facts;
		const char *path = ow_reader_info(m->pass.input[side].reader)->path;
		if (f->packets == 0 && (m->options.since_ns || m->options.until_ns))
			return ow_error_set(err, ENOMSG, "%.200s: no packet of the time that was asked for", path);
		if (f->packets && f->packets == f->filtered)
			return ow_error_set(err, ENOMSG, "%.200s: the filter accepts no packet (--filter, --flow)",
			                    path);
	}
	return 0;
}

static int refuse_no_matches(struct ow_match *m, struct ow_error *err)
{
	int r = refuse_choice(m, err);
	if (r < 0)
		return r;
	if (m->planner.strangers)
		return ow_plan_refuse(&m->planner, m->pass.input, err);
	char text[OW_DURATION_TEXT];
	ow_duration_text((double)m->pass.plan.window_ns, text);
	return ow_error_set(err, ENOMSG, "nothing in common: no packet of %s was in %s within %s of its time",
	                    m->report.capture[OW_SIDE_A].path, m->report.capture[OW_SIDE_B].path, text);
}

/* Checks the order of a capture. */
static int check_order(struct ow_reader *reader, int64_t window_ns, struct ow_error *err)
{
	struct ow_frame frame[OW_RECORD_READER_BATCH];
	struct ow_order order;
	int n, r = ow_reader_rewind(reader, err);
	if (r < 0)
		return r;
	ow_order_init(&order, window_ns);
	while ((n = ow_reader_read(reader, frame, OW_RECORD_READER_BATCH, err)) > 0) {
		for (int i = 0; i < n; i++)
			ow_order_add(&order, &frame[i]);
	}
	return n < 0 ? n : ow_order_check(&order, ow_reader_info(reader)->path, err);
}

/* Captures that are not in the order of time are refused. If they have nothing in common, that may be the reason. */
static int check_orders(struct ow_match *m, int result, struct ow_error *err)
{
	int64_t window_ns = m->pass.plan.window_ns ? m->pass.plan.window_ns : 2 * OW_NS_PER_S;
	if (result < 0 && result != -ENOMSG)
		return result;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader *input = &m->pass.input[side];
		struct ow_error why;
		if (result == 0 && input->facts.behind_most_ns <= window_ns)
			continue;
		int r = check_order(input->reader, window_ns, &why);
		if (r < 0)
			return ow_error_set(err, -r, "%s", why.text);
	}
	return result;
}

/* The frames of a side to look at, by its own clock. */
static struct ow_frame_choice choice_of(const struct ow_match_options *options, enum ow_side side)
{
	int64_t offset = side == OW_SIDE_B && options->clock == OW_CLOCK_GIVEN ? options->offset_ns : 0;
	return (struct ow_frame_choice){
		.filter = options->filter,
		.since_ns = options->since_ns ? options->since_ns - offset : INT64_MIN,
		.until_ns = options->until_ns ? options->until_ns - offset : INT64_MAX,
		.class_filter = options->class_filter,
		.classes = options->classes,
		.class_by = options->class_by,
		.stamps = options->stamps,
	};
}

static int match(struct ow_match *m, const char *const path[OW_SIDES], struct ow_error *err)
{
	/* The hash key is random, so that a crafted capture cannot force collisions. */
	m->planner.seed = m->options.seed;
	if (m->planner.seed == 0 &&
	    getrandom(&m->planner.seed, sizeof m->planner.seed, 0) != (ssize_t)sizeof m->planner.seed)
		return ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	for (unsigned side = 0; side < OW_SIDES; side++) {
		struct ow_frame_choice choice = choice_of(&m->options, side);
		choice.like = side == OW_SIDE_B ? &m->pass.input[OW_SIDE_A] : NULL;
		int r = ow_record_reader_open(&m->pass.input[side], path[side], m->host.reader[side], &choice,
		                              m->options.dedup_ns, ~m->planner.seed, err);
		if (r < 0)
			return r;
	}
	int r = ow_plan_make(&m->planner, m->pass.input, &m->pass.plan, err);
	if (r == 0)
		r = run_until_settled(m, err);
	if (r == 0 && ow_record_readers_share(m->pass.input))
		r = run_until_settled(m, err);
	r = check_orders(m, r, err);
	if (r == 0)
		r = ow_match_find_holes(m, err);
	if (r == 0)
		r = ow_match_settle_direction(m, err);
	if (r == 0)
		r = tell_events(m, err);
	if (r < 0)
		return r;
	r = ow_match_fill_report(m);
	if (r < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (!m->report.direction[OW_A_TO_B].matched && !m->report.direction[OW_B_TO_A].matched)
		return check_orders(m, refuse_no_matches(m, err), err);
	return ow_match_warn(m);
}

int ow_match_files(const char *path_a, const char *path_b, const struct ow_match_options *options,
                   struct ow_match **ret_match, struct ow_error *err)
{
	return ow_match_files_hosted(path_a, path_b, options, &(struct ow_match_host){.arg = NULL}, ret_match, err);
}

int ow_match_refresh(struct ow_match *m)
{
	return ow_match_fill_report(m);
}

int ow_match_leave_host(struct ow_match *m, struct ow_error *err)
{
	int r = 0;
	m->host = (struct ow_match_host){.arg = NULL};
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++)
		r = ow_record_reader_own(&m->pass.input[side], err);
	return r;
}

int ow_match_files_hosted(const char *path_a, const char *path_b, const struct ow_match_options *options,
                          const struct ow_match_host *host, struct ow_match **ret_match, struct ow_error *err)
{
	const char *const path[OW_SIDES] = {path_a, path_b};
	struct ow_match_options taken;
	int r = ow_match_options_take(options, &taken, err);
	if (r < 0)
		return r;
	struct ow_match *m = calloc(1, sizeof *m);
	if (!m || (m->options = taken, ow_match_pass_init(&m->pass, &m->options)) < 0) {
		ow_match_free(m);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	m->planner.options = &m->options;
	m->host = *host;
	m->report.percentiles = taken.percentiles;
	for (unsigned i = 0; i < taken.percentiles; i++)
		m->report.percentile[OW_A_TO_B][i].percent = m->report.percentile[OW_B_TO_A][i].percent =
			taken.percentile[i];
	if (taken.on_progress) {
		m->pass.progress = on_progress;
		m->pass.progress_arg = m;
	}
	r = match(m, path, err);
	if (r < 0) {
		ow_match_free(m);
		return r;
	}
	*ret_match = m;
	return 0;
}

int ow_match_tell(struct ow_match *m, int (*on_packet)(void *arg, const struct ow_packet_event *event), void *arg,
                  struct ow_error *err)
{
	m->options.on_packet = on_packet;
	m->options.arg = arg;
	m->pass.events = true;
	m->pass.intervals = NULL;
	m->pass.progress = NULL;
	int r = ow_match_run(m, err);
	if (r == 0 && ow_match_fill_report(m) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	return r;
}

const struct ow_match_report *ow_match_report(const struct ow_match *match)
{
	return &match->report;
}

void ow_match_free(struct ow_match *match)
{
	if (!match)
		return;
	end_details(match);
	ow_match_pass_done(&match->pass);
	ow_intervals_free(match->intervals);
	free(match->cut);
	free(match->flow_jitter[OW_A_TO_B]);
	free(match->flow_jitter[OW_B_TO_A]);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_datagrams_free(match->datagrams[side]);
	for (size_t i = 0; i < match->warnings; i++)
		free(match->warning[i]);
	free(match);
}
