/* SPDX-License-Identifier: Apache-2.0 */
#include "point/stream_start.h"

#include "base/clock.h"
#include "base/sort.h"
#include "base/time.h"
#include "match/plan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define GATHER_MS 20
/* The first look for common packets after both have begun; the next ones after twice the time. */
#define LOOK_NS (300 * OW_NS_PER_MS)
/* So many common packets tell how far the clocks are apart. */
#define ENOUGH 16
/* Without packets for this long, a line says whom we wait for. */
#define WORD_NS (5 * OW_NS_PER_S)
/* Link layer and two tags, in front of the bytes that a snapshot length leaves. */
#define BEFORE_IP 22u

struct sight {
	uint64_t id;
	const struct ow_frame *frame;
};

/* -- what enters the id -------------------------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Bytes of every packet that the capture has, as far as it shows. */
static uint32_t available(const struct ow_stream_start_options *o, const struct ow_iface *live, size_t count)
{
	uint32_t snaplen = ow_stream_snaplen(live);
	uint32_t bytes = snaplen > BEFORE_IP ? snaplen - BEFORE_IP : UINT32_MAX;
	for (size_t i = 0; i < count; i++) {
		struct ow_packet packet;
		int64_t arrived_ns;
		const struct ow_frame *frame = ow_stream_gathered(live, i, &arrived_ns);
		if (ow_packet_decode(frame, o->identity.inner, &packet) == OW_DECODE_IP)
			bytes = least(bytes, ow_identity_available(&packet, o->identity.tcp));
	}
	return bytes < OW_PLAN_LIMIT_FLOOR ? OW_PLAN_LIMIT_FLOOR : bytes;
}

/* -- how far the clocks are apart ----------------------------------------------------------------------------------- */

static int by_id(const void *x, const void *y)
{
	const struct sight *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

/* The ids of the packets, sorted; those that occur once. */
static size_t list(const struct ow_identity *identity, const struct ow_iface *live, size_t count, struct sight *ret)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct ow_packet packet;
		struct ow_packet_id id;
		int64_t arrived_ns;
		const struct ow_frame *frame = ow_stream_gathered(live, i, &arrived_ns);
		if (ow_packet_decode(frame, identity->inner, &packet) == OW_DECODE_IP &&
		    ow_identity_of_packet(identity, &packet, &id) == 0)
			ret[n++] = (struct sight){id.id, frame};
	}
	qsort(ret, n, sizeof *ret, by_id);
	for (size_t i = 0; i < n; i++) {
		bool repeated = (i && ret[i - 1].id == ret[i].id) || (i + 1 < n && ret[i + 1].id == ret[i].id);
		struct sight sight = ret[i];
		if (!repeated)
			ret[kept++] = sight;
	}
	return kept;
}

/* The packets that both have. */
static size_t join(const struct sight *a, size_t as, const struct sight *b, size_t bs, struct ow_common_packet *ret)
{
	size_t n = 0;
	for (size_t i = 0, k = 0; i < as && k < bs;) {
		if (a[i].id == b[k].id)
			ret[n++] = (struct ow_common_packet){a[i++].frame, b[k++].frame};
		else if (a[i].id < b[k].id)
			i++;
		else
			k++;
	}
	return n;
}

/* Times at `to` less those at `from`, without the twentieth at each end. */
static void differences(const struct ow_common_packet *common, size_t n, int64_t *d, int64_t *ret_low_ns,
                        int64_t *ret_high_ns)
{
	for (size_t i = 0; i < n; i++)
		d[i] = common[i].b->time_ns - common[i].a->time_ns;
	ow_sort_times(d, n);
	*ret_low_ns = n ? d[n / 20] : 0;
	*ret_high_ns = n ? d[n - 1 - n / 20] : 0;
}

/* Finds the packets that both have, and what they show. */
static int compare(const struct ow_stream_start_options *o, const struct ow_identity *identity, const size_t count[2],
                   struct ow_stream_start *start, int64_t *ret_low_ns, int64_t *ret_high_ns)
{
	struct sight *a = malloc((count[0] + 1) * sizeof *a), *b = malloc((count[1] + 1) * sizeof *b);
	struct ow_common_packet *common = malloc((count[0] + 1) * sizeof *common);
	int64_t *d = malloc((count[0] + 1) * sizeof *d);
	int r = a && b && common && d ? 0 : -ENOMEM;
	if (r == 0) {
		start->common =
			join(a, list(identity, o->from, count[0], a), b, list(identity, o->to, count[1], b), common);
		differences(common, start->common, d, ret_low_ns, ret_high_ns);
		if (o->sides && ow_stream_sides(common, start->common, &start->sides) == -ENOMEM)
			r = -ENOMEM;
	}
	free(a);
	free(b);
	free(common);
	free(d);
	return r;
}

/* When packets came. */
struct arrival {
	int64_t base_ns; /* the steady clock less the time of the packet that came soonest */
	bool live;       /* they came as they were captured, not faster */
};

static struct arrival arrival_of(const struct ow_iface *live, size_t count)
{
	int64_t base_ns = INT64_MAX, first_ns = 0, last_ns = 0, from_ns = 0, to_ns = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t arrived_ns;
		const struct ow_frame *frame = ow_stream_gathered(live, i, &arrived_ns);
		base_ns = arrived_ns - frame->time_ns < base_ns ? arrived_ns - frame->time_ns : base_ns;
		first_ns = i ? first_ns : frame->time_ns;
		last_ns = frame->time_ns;
		from_ns = i ? from_ns : arrived_ns;
		to_ns = arrived_ns;
	}
	return (struct arrival){base_ns, last_ns - first_ns < 2 * (to_ns - from_ns) + OW_NS_PER_S};
}

/* How far `to` is ahead by the times at which packets came, which may have been late: to within the lag. */
static int64_t ahead_by_arrival(const struct ow_stream_start_options *o, const size_t count[2])
{
	return arrival_of(o->from, count[0]).base_ns - arrival_of(o->to, count[1]).base_ns;
}

static void say(const struct ow_stream_start_options *o, const char *line)
{
	if (o->say)
		o->say(o->arg, line);
}

/* Both are late or in time by one measure: that of the one that comes sooner. */
static void expect(const struct ow_stream_start_options *o, int64_t shift_ns, const size_t count[2])
{
	struct arrival from = arrival_of(o->from, count[0]), to = arrival_of(o->to, count[1]);
	to.base_ns -= shift_ns;
	int64_t late_ns = llabs(to.base_ns - from.base_ns),
		least_ns = from.base_ns < to.base_ns ? from.base_ns : to.base_ns;
	char lag[OW_DURATION_TEXT], late[OW_DURATION_TEXT], line[300];
	if (!from.live || !to.live)
		return;
	ow_stream_expect(o->from, least_ns);
	ow_stream_expect(o->to, least_ns);
	if (late_ns <= o->lag_ns)
		return;
	ow_duration_text((double)o->lag_ns, lag);
	ow_duration_text((double)late_ns, late);
	snprintf(line, sizeof line, "packets of %.60s come %s later than those of %.60s: results need a --lag above %s",
	         to.base_ns > from.base_ns ? o->to_name : o->from_name, late,
	         to.base_ns > from.base_ns ? o->from_name : o->to_name, lag);
	say(o, line);
}

/* Decides how to move the times of `to`. */
static int64_t shift_of(const struct ow_stream_start_options *o, const struct ow_stream_start *start, int64_t low_ns,
                        int64_t high_ns, const size_t count[2])
{
	char text[OW_DURATION_TEXT], line[300];
	bool known = start->met;
	int64_t ahead_ns = known ? low_ns + (high_ns - low_ns) / 2 : ahead_by_arrival(o, count);
	/* The measurement itself follows clocks that are less apart; a delay may be as long, too. */
	int64_t early_ns = o->length_ns / 2 < o->wait_ns / 2 ? o->length_ns / 2 : o->wait_ns / 2;
	bool apart = known ? ahead_ns < -early_ns || ahead_ns > o->wait_ns / 2 : llabs(ahead_ns) > o->lag_ns;
	if (o->keep_times || !apart)
		return 0;
	ow_duration_text((double)llabs(ahead_ns), text);
	snprintf(line, sizeof line,
	         "the clock of %.60s is %s%s %s that of %.60s: its times are moved by that, and delays are relative",
	         o->to_name, known ? "" : "about ", text, ahead_ns > 0 ? "ahead of" : "behind", o->from_name);
	say(o, line);
	return -ahead_ns;
}

static int tell_sides(const struct ow_stream_start_options *o, const struct ow_stream_start *start,
                      struct ow_error *err)
{
	char line[400];
	if (!*start->sides.hosts[0] || !*start->sides.hosts[1])
		return ow_error_set(
			err, EINVAL,
			"the first packets do not tell which of them go from %.60s to %.60s: give --forward "
			"FILTER",
			o->from_name, o->to_name);
	snprintf(line, sizeof line, "%s: on the side of %.60s; %s: on that of %.60s (or give --forward)",
	         start->sides.hosts[0], o->from_name, start->sides.hosts[1], o->to_name);
	say(o, line);
	return 0;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

struct wait {
	size_t count[2];
	int64_t began_ns; /* steady time when both had begun; 0 = not yet */
	int64_t since_ns;
	bool said;
};

/* Gathers for a moment. */
static int gather(const struct ow_stream_start_options *o, struct wait *w, struct ow_error *err)
{
	for (int i = 0; i < 2; i++) {
		struct ow_iface *live = i ? o->to : o->from;
		int n = ow_stream_gather(live, ow_stream_is_gathered(live) ? 0 : GATHER_MS, err);
		if (n == -ENODATA && !*err->text)
			return ow_error_set(err, EINVAL, "%.200s: has no packets", i ? o->to_name : o->from_name);
		if (n < 0)
			return n == -ENODATA ? -EINVAL : n;
		w->count[i] = (size_t)n;
	}
	int64_t now_ns = ow_clock_steady_ns();
	bool both = w->count[0] && w->count[1];
	if (both && !w->began_ns)
		w->began_ns = now_ns;
	if (!both && !w->said && now_ns - w->since_ns > WORD_NS) {
		char line[200];
		w->said = true;
		snprintf(line, sizeof line, "waiting for packets of %.60s%s%.60s",
		         w->count[0] ? o->to_name : o->from_name, !w->count[0] && !w->count[1] ? " and " : "",
		         !w->count[0] && !w->count[1] ? o->to_name : "");
		say(o, line);
	}
	if (!both && now_ns - w->since_ns > o->most_ns)
		return ow_error_set(err, ENODATA, "no packets of %.100s", w->count[0] ? o->to_name : o->from_name);
	return 0;
}

static int64_t first_of(const struct ow_iface *live)
{
	int64_t arrived_ns;
	return ow_stream_gathered(live, 0, &arrived_ns)->time_ns;
}

int ow_stream_start(const struct ow_stream_start_options *o, struct ow_stream_start *ret_start, struct ow_error *err)
{
	struct ow_stream_start start = {0};
	struct wait w = {.since_ns = ow_clock_steady_ns()};
	int64_t look_ns = LOOK_NS, low_ns = 0, high_ns = 0;
	for (bool done = false; !done;) {
		int r = gather(o, &w, err);
		if (r < 0)
			return r;
		int64_t waited_ns = w.began_ns ? ow_clock_steady_ns() - w.began_ns : 0;
		bool all = ow_stream_is_gathered(o->from) && ow_stream_is_gathered(o->to);
		if (!w.began_ns || (waited_ns < look_ns && !all))
			continue;
		look_ns *= 2;
		struct ow_identity identity = o->identity;
		start.hash_limit = least(available(o, o->from, w.count[0]), available(o, o->to, w.count[1]));
		identity.hash_limit = start.hash_limit;
		r = compare(o, &identity, w.count, &start, &low_ns, &high_ns);
		if (r < 0)
			return ow_error_set(err, -r, "out of memory");
		bool known = start.common >= ENOUGH && (!o->sides || *start.sides.hosts[0]);
		done = all || known || waited_ns >= o->lag_ns;
	}
	int told = o->sides ? tell_sides(o, &start, err) : 0;
	if (told < 0)
		return told;
	start.met = start.common >= ENOUGH / 2;
	start.shift_ns = shift_of(o, &start, low_ns, high_ns, w.count);
	int64_t from_ns = first_of(o->from), to_ns = first_of(o->to) + start.shift_ns;
	start.first_ns = from_ns > to_ns ? from_ns : to_ns;
	ow_stream_shift(o->to, start.shift_ns);
	expect(o, start.shift_ns, w.count);
	*ret_start = start;
	return 0;
}
