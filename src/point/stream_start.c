/* SPDX-License-Identifier: Apache-2.0 */
#include "point/stream_start.h"

#include "base/clock.h"
#include "base/sort.h"
#include "base/time.h"
#include "point/stream_identity.h"
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

struct sight {
	uint64_t id;
	const struct ow_frame *frame;
};

/* -- what was gathered --------------------------------------------------------------------------------------------- */

/* The frames of a point that were gathered, one part after the other. */
struct frames {
	struct ow_frame_list list[2];
	int64_t *arrived_ns[2];
};

static void frames_done(struct frames *f)
{
	for (int side = 0; side < 2; side++) {
		free(f->list[side].frame);
		free(f->arrived_ns[side]);
	}
}

static const struct ow_streams *streams_of(const struct ow_stream_start_options *o, int side)
{
	return side ? o->to : o->from;
}

static const char *name_of(const struct ow_stream_start_options *o, int side)
{
	return side ? o->to_name : o->from_name;
}

static int list_frames(const struct ow_streams *streams, const size_t *count, struct ow_frame_list *ret_list,
                       int64_t **ret_arrived_ns)
{
	size_t all = 0;
	for (unsigned i = 0; i < streams->parts; i++)
		all += count[i];
	ret_list->frame = malloc((all + 1) * sizeof *ret_list->frame);
	*ret_arrived_ns = malloc((all + 1) * sizeof **ret_arrived_ns);
	if (!ret_list->frame || !*ret_arrived_ns)
		return -ENOMEM;
	for (unsigned i = 0; i < streams->parts; i++) {
		for (size_t k = 0; k < count[i]; k++, ret_list->count++)
			ret_list->frame[ret_list->count] =
				ow_stream_gathered(streams->part[i], k, &(*ret_arrived_ns)[ret_list->count]);
	}
	return 0;
}

/* The smallest of all parts; 0 = all bytes. */
static uint32_t snaplen_of(const struct ow_streams *streams)
{
	uint32_t least = 0;
	for (unsigned i = 0; i < streams->parts; i++) {
		uint32_t snaplen = ow_stream_snaplen(streams->part[i]);
		least = !least || (snaplen && snaplen < least) ? snaplen : least;
	}
	return least;
}

/* -- how far the clocks are apart ----------------------------------------------------------------------------------- */

static int by_id(const void *x, const void *y)
{
	const struct sight *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

/* The ids of the packets, sorted; those that occur once. */
static size_t list(const struct ow_identity *identity, const struct ow_frame_list *frames, struct sight *ret)
{
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < frames->count; i++) {
		struct ow_packet packet;
		struct ow_packet_id id;
		if (ow_packet_decode(frames->frame[i], identity->inner, &packet) == OW_DECODE_IP &&
		    ow_identity_of_packet(identity, &packet, &id) == 0)
			ret[n++] = (struct sight){id.id, frames->frame[i]};
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
static int compare(const struct ow_stream_start_options *o, const struct ow_frame_list lists[2],
                   struct ow_stream_start *start, int64_t *ret_low_ns, int64_t *ret_high_ns)
{
	struct sight *a = malloc((lists[0].count + 1) * sizeof *a), *b = malloc((lists[1].count + 1) * sizeof *b);
	struct ow_common_packet *common = malloc((lists[0].count + 1) * sizeof *common);
	int64_t *d = malloc((lists[0].count + 1) * sizeof *d);
	int r = a && b && common && d ? 0 : -ENOMEM;
	if (r == 0) {
		start->common =
			join(a, list(&start->identity, &lists[0], a), b, list(&start->identity, &lists[1], b), common);
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

/* The frames of several parts are not in order. */
static struct arrival arrival_of(const struct frames *f, int side)
{
	int64_t base_ns = INT64_MAX, first_ns = INT64_MAX, last_ns = INT64_MIN, from_ns = INT64_MAX, to_ns = INT64_MIN;
	for (size_t i = 0; i < f->list[side].count; i++) {
		int64_t time_ns = f->list[side].frame[i]->time_ns, arrived_ns = f->arrived_ns[side][i];
		base_ns = arrived_ns - time_ns < base_ns ? arrived_ns - time_ns : base_ns;
		first_ns = time_ns < first_ns ? time_ns : first_ns;
		last_ns = time_ns > last_ns ? time_ns : last_ns;
		from_ns = arrived_ns < from_ns ? arrived_ns : from_ns;
		to_ns = arrived_ns > to_ns ? arrived_ns : to_ns;
	}
	return (struct arrival){base_ns, last_ns - first_ns < 2 * (to_ns - from_ns) + OW_NS_PER_S};
}

/* How far `to` is ahead by the times at which packets came, which may have been late: to within the lag. */
static int64_t ahead_by_arrival(const struct frames *f)
{
	return arrival_of(f, 0).base_ns - arrival_of(f, 1).base_ns;
}

static void say(const struct ow_stream_start_options *o, const char *line)
{
	if (o->say)
		o->say(o->arg, line);
}

/* Both are late or in time by one measure: that of the one that comes sooner. */
static void expect(const struct ow_stream_start_options *o, int64_t shift_ns, const struct frames *f)
{
	struct arrival from = arrival_of(f, 0), to = arrival_of(f, 1);
	to.base_ns -= shift_ns;
	int64_t late_ns = llabs(to.base_ns - from.base_ns),
		least_ns = from.base_ns < to.base_ns ? from.base_ns : to.base_ns;
	char lag[OW_DURATION_TEXT], late[OW_DURATION_TEXT], line[300];
	if (!from.live || !to.live)
		return;
	for (int side = 0; side < 2; side++) {
		for (unsigned i = 0; i < streams_of(o, side)->parts; i++)
			ow_stream_expect(streams_of(o, side)->part[i], least_ns);
	}
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
                        int64_t high_ns, const struct frames *f)
{
	char text[OW_DURATION_TEXT], line[300];
	bool known = start->met;
	int64_t ahead_ns = known ? low_ns + (high_ns - low_ns) / 2 : ahead_by_arrival(f);
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
	snprintf(line, sizeof line,
	         "%s: on the side of %.60s; %s: on that of %.60s; other hosts are left out (or give --forward)",
	         start->sides.hosts[0], o->from_name, start->sides.hosts[1], o->to_name);
	say(o, line);
	return 0;
}

/* -- what is the same packet --------------------------------------------------------------------------------------- */

/* Finds the identity. Inside of tunnels, addresses are others than those by which the direction is told. */
static int choose(const struct ow_stream_start_options *o, const struct ow_frame_list lists[2],
                  struct ow_stream_start *start, struct ow_identity_decision *ret_decision)
{
	uint32_t limit[2], snaplen[2] = {snaplen_of(o->from), snaplen_of(o->to)};
	enum ow_variant now = ow_identity_variant(o->identity.level, o->identity.inner, o->identity.any_ip_id);
	ow_stream_identity_limits(lists, o->identity.tcp, snaplen, limit);
	*ret_decision = (struct ow_identity_decision){.variant = now, .share = 1};
	int r = o->identities ? ow_stream_identity_choose(lists, &o->identity, o->identities, limit, ret_decision) : 0;
	start->identity = o->identity;
	ow_stream_identity_set(&start->identity, ret_decision->variant, limit);
	return r;
}

static int tell_identity(const struct ow_stream_start_options *o, const struct ow_identity_decision *d,
                         struct ow_error *err)
{
	enum ow_variant now = ow_identity_variant(o->identity.level, o->identity.inner, o->identity.any_ip_id);
	char text[OW_DECISION_TEXT];
	if (d->variant == now)
		return 0;
	if (ow_variant_inner(d->variant) && !o->identity.inner && !o->any_way)
		return ow_error_set(
			err, EINVAL,
			"%.0f %% of the first packets are the same inside of tunnels, %.0f %% outside: say that "
			"tunnels are entered (--inner), and give a --forward FILTER that fits both points",
			100 * d->share, 100 * d->share_before);
	ow_identity_decision_text(d, now, text);
	say(o, text);
	return 0;
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

struct wait {
	size_t count[2][OW_STREAM_PARTS];
	int64_t began_ns; /* steady time when all had begun; 0 = not yet */
	int64_t since_ns;
	bool said;
};

/* The first capture without packets, or NULL. */
static const struct ow_iface *silent(const struct ow_stream_start_options *o, const struct wait *w)
{
	for (int side = 0; side < 2; side++) {
		for (unsigned i = 0; i < streams_of(o, side)->parts; i++) {
			if (!w->count[side][i])
				return streams_of(o, side)->part[i];
		}
	}
	return NULL;
}

static bool has_any(const size_t *count, unsigned parts)
{
	for (unsigned i = 0; i < parts; i++) {
		if (count[i])
			return true;
	}
	return false;
}

/* Both points, or the capture. */
static void say_waiting(const struct ow_stream_start_options *o, const struct wait *w, const struct ow_iface *for_whom)
{
	char line[300];
	bool none = !has_any(w->count[0], o->from->parts) && !has_any(w->count[1], o->to->parts);
	snprintf(line, sizeof line, "waiting for packets of %.140s%s%.60s",
	         none ? o->from_name : ow_iface_name(for_whom), none ? " and " : "", none ? o->to_name : "");
	say(o, line);
}

/* Gathers for a moment. */
static int gather(const struct ow_stream_start_options *o, struct wait *w, struct ow_error *err)
{
	for (int side = 0; side < 2; side++) {
		for (unsigned i = 0; i < streams_of(o, side)->parts; i++) {
			struct ow_iface *live = streams_of(o, side)->part[i];
			int n = ow_stream_gather(live, i || ow_stream_is_gathered(live) ? 0 : GATHER_MS, err);
			if (n == -ENODATA && !*err->text)
				return ow_error_set(err, EINVAL, "%.200s: has no packets", name_of(o, side));
			if (n < 0)
				return n == -ENODATA ? -EINVAL : n;
			w->count[side][i] = (size_t)n;
		}
	}
	int64_t now_ns = ow_clock_steady_ns();
	const struct ow_iface *missing = silent(o, w);
	if (!missing && !w->began_ns)
		w->began_ns = now_ns;
	if (missing && !w->said && now_ns - w->since_ns > WORD_NS) {
		w->said = true;
		say_waiting(o, w, missing);
	}
	if (missing && now_ns - w->since_ns > o->most_ns)
		return ow_error_set(err, ENODATA, "no packets of %.140s", ow_iface_name(missing));
	return 0;
}

static bool are_gathered(const struct ow_stream_start_options *o)
{
	for (int side = 0; side < 2; side++) {
		for (unsigned i = 0; i < streams_of(o, side)->parts; i++) {
			if (!ow_stream_is_gathered(streams_of(o, side)->part[i]))
				return false;
		}
	}
	return true;
}

/* When the last part of a point has begun. */
static int64_t first_of(const struct ow_streams *streams)
{
	int64_t latest_ns = INT64_MIN, arrived_ns;
	for (unsigned i = 0; i < streams->parts; i++) {
		int64_t first_ns = ow_stream_gathered(streams->part[i], 0, &arrived_ns)->time_ns;
		latest_ns = first_ns > latest_ns ? first_ns : latest_ns;
	}
	return latest_ns;
}

/* What the packets show that were gathered. */
struct look {
	struct frames frames;
	struct ow_identity_decision decision;
	int64_t low_ns, high_ns;
};

static int take_look(const struct ow_stream_start_options *o, const struct wait *w, struct look *look,
                     struct ow_stream_start *start)
{
	struct frames *f = &look->frames;
	frames_done(f);
	*look = (struct look){0};
	int r = 0;
	for (int side = 0; r == 0 && side < 2; side++)
		r = list_frames(streams_of(o, side), w->count[side], &f->list[side], &f->arrived_ns[side]);
	if (r == 0)
		r = choose(o, f->list, start, &look->decision);
	return r < 0 ? r : compare(o, f->list, start, &look->low_ns, &look->high_ns);
}

/* Whether more packets would not show more. Another identity than the usual one needs more evidence. */
static bool is_clear(const struct ow_stream_start_options *o, const struct look *look,
                     const struct ow_stream_start *start)
{
	enum ow_variant now = ow_identity_variant(o->identity.level, o->identity.inner, o->identity.any_ip_id);
	return start->common >= ENOUGH && (!o->sides || *start->sides.hosts[0]) &&
	       (look->decision.variant == now || look->decision.share >= OW_IDENTITY_ENOUGH);
}

static int wait_and_look(const struct ow_stream_start_options *o, struct look *look, struct ow_stream_start *start,
                         struct ow_error *err)
{
	struct wait w = {.since_ns = ow_clock_steady_ns()};
	int64_t look_ns = LOOK_NS;
	for (;;) {
		int r = gather(o, &w, err);
		if (r < 0)
			return r;
		int64_t waited_ns = w.began_ns ? ow_clock_steady_ns() - w.began_ns : 0;
		bool all = are_gathered(o);
		if (!w.began_ns || (waited_ns < look_ns && !all))
			continue;
		look_ns *= 2;
		if (take_look(o, &w, look, start) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		if (all || is_clear(o, look, start) || waited_ns >= o->lag_ns)
			return 0;
	}
}

int ow_stream_start(const struct ow_stream_start_options *o, struct ow_stream_start *ret_start, struct ow_error *err)
{
	struct ow_stream_start start = {0};
	struct look look = {0};
	int r = wait_and_look(o, &look, &start, err);
	if (r == 0)
		r = tell_identity(o, &look.decision, err);
	if (r == 0 && o->sides)
		r = tell_sides(o, &start, err);
	if (r == 0) {
		start.met = start.common >= ENOUGH / 2;
		start.shift_ns = shift_of(o, &start, look.low_ns, look.high_ns, &look.frames);
		int64_t from_ns = first_of(o->from), to_ns = first_of(o->to) + start.shift_ns;
		start.first_ns = from_ns > to_ns ? from_ns : to_ns;
		for (unsigned i = 0; i < o->to->parts; i++)
			ow_stream_shift(o->to->part[i], start.shift_ns);
		expect(o, start.shift_ns, &look.frames);
		*ret_start = start;
	}
	frames_done(&look.frames);
	return r;
}
