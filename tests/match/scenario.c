/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define US INT64_C(1000)

static char directory[] = "/tmp/oneway-point-XXXXXX";

int scenario_setup(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

int scenario_teardown(void **state)
{
	(void)state;
	DIR *dir = opendir(directory);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	return rmdir(directory);
}

static const char *current;

int scenario_say(void **state)
{
	(void)state;
	if (current)
		print_message("in scenario: %s (seed 7)\n", current);
	current = NULL;
	return 0;
}

const char *scenario_path(const char *name)
{
	static char path[8][64];
	static unsigned next;
	char *text = path[next++ % 8];
	(void)snprintf(text, sizeof path[0], "%s/%s", directory, name);
	return text;
}

void scenario_init(struct scenario *s, const char *name)
{
	static char path[OW_SIDES][64];
	memset(s, 0, sizeof *s);
	s->name = current = name;
	ow_sim_defaults(&s->sim);
	s->sim.seed = 7;
	s->sim.packets = 20000;
	s->sim.flows = 200;
	s->sim.loss.ratio = 0.01;
	s->sim.base_delay_ns = 10 * US;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		(void)snprintf(path[side], sizeof path[side], "%s/%c.cap", directory, 'a' + (int)side);
		s->sim.side[side].path = path[side];
	}
	ow_match_defaults(&s->match);
	s->match.interval_ns = 50000 * US;
}

void scenario_simulate(struct scenario *s)
{
	if (ow_sim_run(&s->sim, &s->truth, &s->err) < 0)
		fail_msg("%s: simulate: %s", s->name, s->err.text);
}

/* -- events ------------------------------------------------------------------------------------------------------- */

/* What the events add up to. */
struct heard {
	struct ow_result direction[OW_DIRECTIONS];
	uint64_t unclassified[OW_SIDES], outside[OW_SIDES];
	double delay_sum[OW_DIRECTIONS];
};

static int on_packet(void *arg, const struct ow_packet_event *e)
{
	struct heard *h = arg;
	struct ow_result *r = &h->direction[e->direction == OW_B_TO_A];
	enum ow_side from = e->direction == OW_B_TO_A ? OW_SIDE_B : OW_SIDE_A;
	assert_true(e->packets > 0);
	assert_non_null(e->flow);
	switch (e->fate) {
	case OW_FATE_MATCHED:
		assert_true(e->number[OW_SIDE_A] > 0 && e->number[OW_SIDE_B] > 0);
		r->matched += e->packets;
		r->ambiguous += e->ambiguous ? e->packets : 0;
		assert_true(e->ambiguous || !e->estimated);
		if (!e->ambiguous || e->estimated)
			h->delay_sum[e->direction] += (double)(e->time_ns[!from] - e->time_ns[from]) * e->packets;
		return 0;
	case OW_FATE_LOST:
		assert_int_equal(e->side, from);
		r->lost += e->packets;
		break;
	case OW_FATE_DUPLICATED:
		r->duplicated += e->packets; /* fall through */
	case OW_FATE_EXTRA:
		assert_int_equal(e->side, !from);
		r->extra += e->packets;
		break;
	case OW_FATE_OUTSIDE:
		h->outside[e->side] += e->packets;
		break;
	default:
		h->unclassified[e->side] += e->packets;
	}
	assert_true(e->number[e->side] > 0);
	assert_int_equal(e->number[!e->side], 0);
	return 0;
}

static void check_events(const struct ow_match_report *report, const struct heard *h)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *r = &report->direction[d], *e = &h->direction[d];
		assert_int_equal(e->matched, r->matched);
		assert_int_equal(e->ambiguous, r->ambiguous);
		assert_int_equal(e->lost, r->lost);
		assert_int_equal(e->extra, r->extra);
		assert_int_equal(e->duplicated, r->duplicated);
		double sum = r->delay.samples ? r->delay.mean_ns * (double)r->delay.samples : 0;
		assert_true(fabs(h->delay_sum[d] - sum) <= 1e-9 * fabs(sum) + 1e-3);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_int_equal(h->outside[side], report->outside_overlap[side]);
		assert_int_equal(h->unclassified[side], report->unclassified[side]);
	}
}

int scenario_match(struct scenario *s)
{
	struct heard heard = {0};
	if (!s->match.on_packet) {
		s->match.on_packet = on_packet;
		s->match.arg = &heard;
	}
	int r = ow_match_files(s->sim.side[OW_SIDE_A].path, s->sim.side[OW_SIDE_B].path, &s->match, &s->result,
	                       &s->err);
	if (r == 0) {
		s->report = ow_match_report(s->result);
		check_events(s->report, &heard);
	}
	s->match.on_packet = NULL;
	return r;
}

/* -- what always holds -------------------------------------------------------------------------------------------- */

static void check_result(const struct ow_result *r)
{
	assert_int_equal(r->sent, r->matched + r->lost);
	assert_int_equal(r->received, r->matched + r->extra);
	assert_true(r->duplicated <= r->extra);
	assert_true(r->ambiguous <= r->matched);
	assert_true(r->reordered <= r->matched);
	assert_true(r->exact);
	assert_true(r->delay.samples + r->ambiguous - r->delay.uncertain == r->matched);
	if (!r->delay.samples)
		return;
	const struct ow_delay *d = &r->delay;
	assert_true((double)d->min_ns <= d->mean_ns + 1e-6 && d->mean_ns <= (double)d->max_ns + 1e-6);
	double before = (double)d->min_ns;
	for (unsigned q = 0; q < OW_QUANTILES; q++) {
		assert_true(d->quantile_ns[q] >= before && d->quantile_ns[q] <= (double)d->max_ns);
		before = d->quantile_ns[q];
	}
}

static void check_intervals(const struct ow_match_report *report)
{
	for (unsigned d = 0; report->interval && d < OW_DIRECTIONS; d++) {
		struct ow_result sum = {0};
		double delay_sum = 0;
		for (size_t i = 0; i < report->intervals; i++) {
			const struct ow_result *r = &report->interval[i].direction[d];
			check_result(r);
			sum.sent += r->sent;
			sum.received += r->received;
			sum.matched += r->matched;
			sum.duplicated += r->duplicated;
			sum.ambiguous += r->ambiguous;
			sum.reordered += r->reordered;
			sum.delay.samples += r->delay.samples;
			delay_sum += r->delay.samples ? r->delay.mean_ns * (double)r->delay.samples : 0;
		}
		const struct ow_result *all = &report->direction[d];
		assert_int_equal(sum.sent, all->sent);
		assert_int_equal(sum.received, all->received);
		assert_int_equal(sum.matched, all->matched);
		assert_int_equal(sum.duplicated, all->duplicated);
		assert_int_equal(sum.reordered, all->reordered);
		assert_int_equal(sum.ambiguous, all->ambiguous);
		double total = all->delay.samples ? all->delay.mean_ns * (double)all->delay.samples : 0;
		assert_true(fabs(delay_sum - total) <= 1e-9 * fabs(total) + 1e-3);
	}
}

void scenario_conserved(const struct ow_match_report *report)
{
	const struct ow_result *ab = &report->direction[OW_A_TO_B], *ba = &report->direction[OW_B_TO_A];
	check_result(ab);
	check_result(ba);
	check_intervals(report);
	if (report->segments || report->fragments)
		return; /* a record may be several packets */
	assert_int_equal(report->capture[OW_SIDE_A].packets,
	                 report->skipped[OW_SIDE_A] + report->outside_overlap[OW_SIDE_A] +
	                         report->unclassified[OW_SIDE_A] + ab->sent + ba->received);
	assert_int_equal(report->capture[OW_SIDE_B].packets,
	                 report->skipped[OW_SIDE_B] + report->outside_overlap[OW_SIDE_B] +
	                         report->unclassified[OW_SIDE_B] + ab->received + ba->sent);
}

void scenario_run(struct scenario *s)
{
	scenario_simulate(s);
	if (scenario_match(s) < 0)
		fail_msg("%s: match: %s", s->name, s->err.text);
	scenario_conserved(s->report);
}

/* -- against the truth -------------------------------------------------------------------------------------------- */

void scenario_check_counts(const struct ow_result *result, const struct ow_result *truth, bool order)
{
	/*
	 * Packets lost at the very end, after the last that arrived, are outside what B's file shows to be covered: as
	 * likely as a run of losses, so 10 of them do not happen.
	 */
	assert_in_range(result->lost, truth->lost > 10 ? truth->lost - 10 : 0, truth->lost);
	assert_int_equal(result->received, truth->received);
	assert_int_equal(result->matched, truth->matched);
	assert_int_equal(result->extra, truth->extra);
	assert_int_equal(result->duplicated, truth->duplicated);
	if (order)
		assert_int_equal(result->reordered, truth->reordered);
}

void scenario_check_delays(const struct ow_delay *result, const struct ow_delay *truth)
{
	assert_int_equal(result->samples, truth->samples);
	if (!truth->samples)
		return;
	assert_int_equal(result->min_ns, truth->min_ns);
	assert_int_equal(result->max_ns, truth->max_ns);
	assert_true(fabs(result->mean_ns - truth->mean_ns) <= 1e-9 * fabs(truth->mean_ns));
	assert_true(fabs(result->stddev_ns - truth->stddev_ns) <= 1e-9 * fabs(truth->stddev_ns) + 1e-6);
	for (unsigned q = 0; q < OW_QUANTILES; q++)
		assert_true(fabs(result->quantile_ns[q] - truth->quantile_ns[q]) <=
		            1e-3 * fabs(truth->quantile_ns[q]) + 1);
}

/* One line for each side by side when they differ, before the assertion stops. */
static void say_difference(const char *name, const struct ow_result *r, const struct ow_result *t)
{
	const uint64_t a[] = {r->lost, r->received, r->matched, r->extra, r->duplicated, r->reordered};
	const uint64_t b[] = {t->lost, t->received, t->matched, t->extra, t->duplicated, t->reordered};
	if (memcmp(a + 1, b + 1, sizeof a - sizeof *a) == 0)
		return;
	print_message("%s:\n", name);
	for (unsigned i = 0; i < 6; i++) {
		static const char *const names[] = {"lost", "received", "matched", "extra", "duplicated", "reordered"};
		print_message("  %-10s %8" PRIu64 "  truth %8" PRIu64 "\n", names[i], a[i], b[i]);
	}
}

void scenario_check(const struct scenario *s)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *r = &s->report->direction[d], *t = &s->truth.direction[d];
		say_difference(s->name, r, t);
		scenario_check_counts(r, t, true);
		assert_int_equal(r->ambiguous, 0);
		scenario_check_delays(&r->delay, &t->delay);
	}
	assert_int_equal(s->report->has_direction[OW_B_TO_A], s->truth.has_direction[OW_B_TO_A]);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_int_equal(s->report->capture[side].packets, s->truth.records[side]);
		const struct ow_result *r = &s->report->direction[side],
				       *t = &s->truth.direction[side]; /* what it sends */
		assert_int_equal(s->report->outside_overlap[side] + r->lost, s->truth.outside[side] + t->lost);
		assert_int_equal(s->report->unclassified[side], 0);
		assert_int_equal(s->report->skipped[side], 0);
	}
}

void scenario_exact(const char *name, void (*change)(struct scenario *s))
{
	struct scenario s;
	scenario_init(&s, name);
	if (change)
		change(&s);
	scenario_run(&s);
	scenario_check(&s);
	scenario_done(&s);
}

void scenario_done(struct scenario *s)
{
	ow_match_free(s->result);
	s->result = NULL;
	s->report = NULL;
	current = NULL;
}

bool scenario_warns(const struct ow_match_report *report, const char *text)
{
	for (size_t i = 0; i < report->warnings; i++) {
		if (strstr(report->warning[i], text))
			return true;
	}
	return false;
}
