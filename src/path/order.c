/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of the path are the two points that are farthest apart, first by routers, then by time. The others are sorted
 * by their distance from the end that comes first among the arguments, or where all traffic comes from. Where the
 * distances do not show which of two points is nearer, they keep the order of the arguments.
 */
#include "path/order.h"

#include "base/sort.h"
#include "capture/file/reader.h"
#include "match/survey.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define GLANCE_FRAMES   20000             /* frames of each point that are looked at, if these have packets in common */
#define COMMON_LEAST    8                 /* packets in common: fewer show nothing */
#define PARTIAL_LEAST   4                 /* packets that pass a point unseen: fewer may be drops of its capture .. */
#define PARTIAL_SHARE   0.005             /* .. and so may a smaller share */
#define COMPARED        4096              /* packets of samples that are compared first .. */
#define COMPARED_LEAST  256               /* .. which is enough, if these have so many in common */
#define COPY_NS         INT64_C(10000000) /* copies of a mirror port or of all interfaces come within this */
#define TTLS            256
#define HOPS_SAME_SHARE 0.9 /* of the packets show the same number of routers */

/* What two points show of each other. */
struct distance {
	size_t common;
	bool hops_known;
	int hops;        /* routers between them */
	int way;         /* they show that packets go from the first to the second: 1, the other way: -1, else 0 */
	bool both;       /* both directions are seen: time_ns is of a round trip */
	int64_t time_ns; /* usual least time there and back, or one way (later at the second point) */
	enum ow_variant variant;
};

struct finder {
	unsigned points;
	struct ow_reader *reader[OW_PATH_POINTS];
	struct ow_outlook outlook[OW_PATH_POINTS];
	uint32_t limit[OW_VARIANTS];
	uint64_t seed;
	enum ow_selection which;
	struct ow_survey survey[OW_PATH_POINTS];
	unsigned surveys;
	struct distance distance[OW_PATH_POINTS][OW_PATH_POINTS];
};

static size_t next_id(const struct ow_identity_sample *s, size_t i)
{
	uint64_t id = s->packet[i].id;
	while (i < s->packets && s->packet[i].id == id)
		i++;
	return i;
}

/* The TTL of n packets with one id, 0 if it is not the same. */
static int ttl_of(const struct ow_sampled *packet, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (packet[i].ttl != packet->ttl)
			return 0;
	}
	return packet->ttl;
}

/* Routers between two points: the difference that nearly all packets in common have in their TTL. */
static void find_hops(const struct ow_identity_sample *a, const struct ow_identity_sample *b, struct distance *d)
{
	size_t count[TTLS] = {0}, all = 0, forth = 0, back = 0;
	for (size_t i = 0, k = 0; i < a->packets && k < b->packets;) {
		const struct ow_sampled *x = &a->packet[i], *y = &b->packet[k];
		size_t next_i = next_id(a, i), next_k = next_id(b, k);
		int from = x->id == y->id ? ttl_of(x, next_i - i) : 0, to = from ? ttl_of(y, next_k - k) : 0;
		if (from && to) {
			size_t packets = next_i - i < next_k - k ? next_i - i : next_k - k;
			count[abs(from - to)] += packets;
			forth += from > to ? packets : 0;
			back += from < to ? packets : 0;
			all += packets;
		}
		bool i_first = x->id <= y->id, k_first = y->id <= x->id;
		i = i_first ? next_i : i;
		k = k_first ? next_k : k;
	}
	int most = 0;
	for (int i = 1; i < TTLS; i++)
		most = count[i] > count[most] ? i : most;
	d->hops_known = all >= COMMON_LEAST && (double)count[most] >= HOPS_SAME_SHARE * (double)all;
	d->hops = most;
	d->way = all < COMMON_LEAST                               ? 0
	         : (double)forth >= HOPS_SAME_SHARE * (double)all ? 1
	         : (double)back >= HOPS_SAME_SHARE * (double)all  ? -1
	                                                          : 0;
}

/* The first packet of a sample whose id is not below this one. */
static size_t place_of(const struct ow_identity_sample *s, uint64_t id)
{
	size_t low = 0, high = s->packets;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->packet[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The packets of a sample with the smallest ids are a smaller sample. It is sorted by id. */
static struct ow_identity_sample first_of(const struct ow_identity_sample *s, uint64_t below)
{
	struct ow_identity_sample first = *s;
	first.packets = place_of(s, below);
	first.below = below;
	return first;
}

/* What two samples have in common; a part of large ones is enough, if that has enough in common. */
static int find_overlap(struct ow_identity_sample *x, struct ow_identity_sample *y,
                        struct ow_sample_overlap *ret_common)
{
	uint64_t below = x->below < y->below ? x->below : y->below;
	if (x->packets > COMPARED && x->packet[COMPARED].id < below)
		below = x->packet[COMPARED].id;
	struct ow_identity_sample a = first_of(x, below), b = first_of(y, below);
	int r = ow_sample_overlap_find(&a, &b, false, ret_common);
	return r == 0 && ret_common->unique < COMPARED_LEAST ? ow_sample_overlap_find(x, y, false, ret_common) : r;
}

static int compare_points(struct finder *f, unsigned a, unsigned b)
{
	struct distance best = {0};
	for (enum ow_variant v = 0; v < OW_VARIANTS; v++) {
		struct ow_identity_sample *x = &f->survey[a].sample[v], *y = &f->survey[b].sample[v];
		struct ow_sample_overlap common;
		size_t most = x->packets < y->packets ? x->packets : y->packets;
		if (!ow_variant_among(v, f->which) || most < 2 * best.common)
			continue;
		int r = find_overlap(x, y, &common);
		if (r < 0)
			return r;
		/* Level frame does not see a TTL, and later variants must find clearly more. */
		if (common.common < COMMON_LEAST || common.common < 2 * best.common)
			continue;
		struct distance found = {.common = common.common, .both = common.both_directions, .variant = v};
		find_hops(x, y, &found);
		/* Of identical packets it is not known which is which: the TTL alone shows how far they went. */
		if (common.unique < COMMON_LEAST && (!found.hops_known || !found.hops))
			continue;
		if (common.unique < COMMON_LEAST)
			found.both = false;
		else
			found.time_ns =
				common.both_directions ? common.low_ns[0] - common.high_ns[1] : common.median_ns[0];
		best = found;
	}
	f->distance[a][b] = f->distance[b][a] = best;
	f->distance[b][a].way = -best.way;
	if (!best.both)
		f->distance[b][a].time_ns = -best.time_ns;
	return 0;
}

/* Whether every point is joined to the first one by packets in common. */
static bool connected(const struct finder *f)
{
	uint32_t reached = 1, before = 0;
	while (reached != before) {
		before = reached;
		for (unsigned a = 0; a < f->points; a++) {
			for (unsigned b = 0; b < f->points; b++) {
				if (reached >> a & 1 && f->distance[a][b].common)
					reached |= UINT32_C(1) << b;
			}
		}
	}
	return reached == (UINT32_C(1) << f->points) - 1;
}

static void drop_surveys(struct finder *f)
{
	while (f->surveys)
		ow_survey_done(&f->survey[--f->surveys]);
}

static int compare_all(struct finder *f)
{
	int r = 0;
	for (unsigned a = 0; a < f->points && r == 0; a++) {
		for (unsigned b = a + 1; b < f->points && r == 0; b++)
			r = compare_points(f, a, b);
	}
	return r;
}

/* Of packets with one id in close succession, only the first: a capture that shows packets twice has no unique ones. */
static void leave_copies_out(struct ow_identity_sample *s)
{
	size_t kept = 0;
	int64_t last_ns = 0;
	for (size_t i = 0; i < s->packets; i++) {
		struct ow_sampled p = s->packet[i];
		if (!kept || s->packet[kept - 1].id != p.id || p.time_ns - last_ns > COPY_NS)
			s->packet[kept++] = p;
		last_ns = p.time_ns;
	}
	s->packets = kept;
}

static int compare_without_copies(struct finder *f)
{
	for (unsigned i = 0; i < f->surveys; i++) {
		for (enum ow_variant v = 0; v < OW_VARIANTS; v++) {
			if (ow_variant_among(v, f->which))
				leave_copies_out(&f->survey[i].sample[v]);
		}
	}
	return compare_all(f);
}

static int survey(struct finder *f, enum ow_selection which, bool whole, struct ow_error *err)
{
	int64_t from = INT64_MIN;
	int r = 0;
	drop_surveys(f);
	f->which = which;
	for (unsigned i = 0; i < f->points && !whole; i++)
		from = f->outlook[i].first_ns > from ? f->outlook[i].first_ns : from;
	for (unsigned i = 0; i < f->points && r == 0; i++) {
		r = ow_survey_init(&f->survey[i], which);
		if (r < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
		f->surveys++;
		r = ow_survey_read(&f->survey[i], f->reader[i], f->limit, which, from,
		                   whole ? UINT64_MAX : GLANCE_FRAMES, f->seed, err);
	}
	for (unsigned i = 0; i < f->surveys && r == 0; i++) {
		for (enum ow_variant v = 0; v < OW_VARIANTS; v++) {
			if (ow_variant_among(v, which))
				ow_sample_sort(&f->survey[i].sample[v]);
		}
	}
	if (r == 0)
		r = compare_all(f);
	return r == 0 && !connected(f) ? compare_without_copies(f) : r;
}

/* -- the order ---------------------------------------------------------------------------------------------------- */

static int sign_of(int64_t ns)
{
	return (ns > 0) - (ns < 0);
}

/* Whether the points of b are farther apart than those of a: 1, -1, or 0 if that is not known. */
static int farther(const struct distance *a, const struct distance *b, bool trusted)
{
	if (!a->common || !b->common)
		return 0;
	if (a->hops_known && b->hops_known && a->hops != b->hops)
		return b->hops > a->hops ? 1 : -1;
	if (a->both != b->both || (!a->both && !trusted))
		return 0;
	int64_t x = a->both ? a->time_ns : llabs(a->time_ns), y = b->both ? b->time_ns : llabs(b->time_ns);
	return sign_of(y - x);
}

/* Times from a to b of packets that come from e, and of those that go there: routers between them show which. */
struct passages {
	int64_t *ns[2];
	size_t count[2];
};

/* The packet with this id, if there is only one. */
static const struct ow_sampled *find_once(const struct ow_identity_sample *s, uint64_t id)
{
	size_t at = place_of(s, id);
	return at < s->packets && s->packet[at].id == id && next_id(s, at) == at + 1 ? &s->packet[at] : NULL;
}

static void find_passages(const struct finder *f, unsigned e, unsigned a, unsigned b, struct passages *ret)
{
	enum ow_variant v = f->distance[a][b].variant;
	const struct ow_identity_sample *from = &f->survey[a].sample[v];
	for (size_t i = 0; i < from->packets; i = next_id(from, i)) {
		const struct ow_sampled *x = find_once(from, from->packet[i].id);
		const struct ow_sampled *y = x ? find_once(&f->survey[b].sample[v], x->id) : NULL;
		const struct ow_sampled *z = y ? find_once(&f->survey[e].sample[v], x->id) : NULL;
		if (!z || !z->ttl || !x->ttl || z->ttl == x->ttl)
			continue;
		bool back = z->ttl < x->ttl;
		ret->ns[back][ret->count[back]++] = y->time_ns - x->time_ns;
	}
}

/*
 * Whether packets that come from e pass b after a: 1, before it: -1, 0 if that is not known. What the clocks add is the
 * same for those that go to e, so that it does not count where there are both.
 */
static int passes_later(const struct finder *f, unsigned e, unsigned a, unsigned b, bool trusted)
{
	struct passages p = {0};
	int64_t median[2] = {0};
	size_t most = f->survey[a].sample[f->distance[a][b].variant].packets + 1;
	for (unsigned i = 0; i < 2; i++)
		p.ns[i] = calloc(most, sizeof *p.ns[i]);
	if (p.ns[0] && p.ns[1])
		find_passages(f, e, a, b, &p);
	for (unsigned i = 0; i < 2; i++) {
		ow_sort_times(p.ns[i], p.count[i]);
		median[i] = p.count[i] ? p.ns[i][p.count[i] / 2] : 0;
	}
	bool both = p.count[0] >= COMMON_LEAST && p.count[1] >= COMMON_LEAST;
	bool one = trusted && (p.count[0] >= COMMON_LEAST || p.count[1] >= COMMON_LEAST);
	free(p.ns[0]);
	free(p.ns[1]);
	return both || one ? sign_of(median[0] - median[1]) : 0;
}

/* Whether b is farther than a from e: 1, -1, or 0 if that is not known. Points that share no packets are side by side. */
static int farther_from(const struct finder *f, unsigned e, unsigned a, unsigned b, bool trusted)
{
	const struct distance *x = &f->distance[e][a], *y = &f->distance[e][b], *between = &f->distance[a][b];
	if (x->common && y->common && x->hops_known && y->hops_known && x->hops != y->hops)
		return y->hops > x->hops ? 1 : -1;
	if (!between->common)
		return 0;
	int later = passes_later(f, e, a, b, trusted);
	if (later)
		return later;
	/* All traffic goes one way: past e, a and b, or the other way round. */
	if (!between->both && !x->both)
		return trusted ? sign_of(between->time_ns) * sign_of(x->time_ns) : 0;
	/* Without routers: times must differ by about as much as between the two. */
	return llabs(llabs(y->time_ns) - llabs(x->time_ns)) < llabs(between->time_ns) / 2 ? 0 : farther(x, y, trusted);
}

/* Whether these two are farther apart than the ends so far. */
static bool are_farther(const struct finder *f, const unsigned end[2], unsigned a, unsigned b, bool trusted)
{
	if (!f->distance[end[0]][end[1]].common)
		return f->distance[a][b].common > 0; /* points side by side are no ends */
	for (unsigned i = 0; i < 2; i++) {
		if (end[i] == a || end[i] == b)
			return farther_from(f, end[i], end[!i], end[i] == a ? b : a, trusted) > 0;
	}
	return farther(&f->distance[end[0]][end[1]], &f->distance[a][b], trusted) > 0;
}

static void find_ends(const struct finder *f, bool trusted, unsigned end[2])
{
	end[0] = 0;
	end[1] = f->points - 1;
	for (unsigned a = 0; a < f->points; a++) {
		for (unsigned b = a + 1; b < f->points; b++) {
			if (are_farther(f, end, a, b, trusted)) {
				end[0] = a;
				end[1] = b;
			}
		}
	}
}

/* Whether b comes before a on the way from one end to the other: clearly so, seen from either end. */
static bool misplaced(const struct finder *f, const unsigned end[2], unsigned a, unsigned b, bool trusted)
{
	return farther_from(f, end[0], a, b, trusted) + farther_from(f, end[1], b, a, trusted) < 0;
}

static void sort(const struct finder *f, bool trusted, struct ow_order_found *found)
{
	unsigned end[2], inner = 0;
	find_ends(f, trusted, end);
	for (unsigned i = 0; i < f->points; i++) {
		if (i != end[0] && i != end[1])
			found->place[1 + inner++] = i;
	}
	found->place[0] = end[0];
	found->place[f->points - 1] = end[1];
	for (unsigned i = 1; i <= inner; i++) {
		for (unsigned k = i; k > 1 && misplaced(f, end, found->place[k - 1], found->place[k], trusted); k--) {
			unsigned kept = found->place[k];
			found->place[k] = found->place[k - 1];
			found->place[k - 1] = kept;
		}
	}
}

static void find_lone(const struct finder *f, struct ow_order_found *found)
{
	for (unsigned a = 0; a < f->points; a++) {
		size_t common = 0;
		for (unsigned b = 0; b < f->points; b++)
			common += f->distance[a][b].common;
		found->lone[a] = !common;
	}
}

/* If all traffic goes one way, the path begins where it comes from. */
static void turn(const struct finder *f, bool trusted, struct ow_order_found *found)
{
	const struct distance *ends = &f->distance[found->place[0]][found->place[f->points - 1]];
	int way = ends->way || !trusted ? ends->way : sign_of(ends->time_ns);
	if (!ends->common || ends->both || way >= 0)
		return;
	for (unsigned i = 0, k = f->points - 1; i < k; i++, k--) {
		unsigned kept = found->place[i];
		found->place[i] = found->place[k];
		found->place[k] = kept;
	}
}

/* How many routers are between two points at most, as others show that have packets in common with both. */
static int most_hops(const struct finder *f, unsigned a, unsigned b)
{
	int most = INT_MAX;
	for (unsigned m = 0; m < f->points; m++) {
		const struct distance *x = &f->distance[a][m], *y = &f->distance[m][b];
		bool known = x->hops_known && y->hops_known && x->hops && y->hops; /* 0: times show the order */
		int hops = known ? x->hops + y->hops : INT_MAX;
		most = hops < most ? hops : most;
	}
	return most;
}

/*
 * Points that share no time have nothing in common, and are not side by side for that: they may be farther apart than the ends, or
 * nothing shows which of them is nearer to one.
 */
static bool is_apart(const struct finder *f, const struct ow_order_found *found, unsigned a, unsigned b)
{
	unsigned first = found->place[0], last = found->place[f->points - 1];
	const struct ow_survey *x = &f->survey[a], *y = &f->survey[b];
	if (f->distance[a][b].common || found->lone[a] || found->lone[b] ||
	    (x->first_ns <= y->last_ns && y->first_ns <= x->last_ns))
		return false;
	bool inner = a != first && a != last && b != first && b != last;
	return most_hops(f, a, b) > f->distance[first][last].hops || (inner && !farther_from(f, first, a, b, false));
}

static void find_apart(const struct finder *f, struct ow_order_found *found)
{
	for (unsigned a = 0; a < f->points; a++) {
		for (unsigned b = a + 1; b < f->points; b++)
			found->apart |= is_apart(f, found, a, b);
	}
}

/* How neighbours of the order are told apart. */
static enum ow_path_order evidence(const struct finder *f, const struct ow_order_found *found, bool trusted)
{
	enum ow_path_order by = OW_ORDER_HOPS;
	if (!connected(f) || found->apart)
		return OW_ORDER_UNKNOWN;
	for (unsigned i = 0; i + 1 < f->points; i++) {
		const struct distance *d = &f->distance[found->place[i]][found->place[i + 1]];
		if (!d->common)
			continue; /* side by side */
		if (d->hops_known && d->hops)
			continue;
		/* Two copies of one capture have no time between them. */
		if ((!d->both && !trusted) || !d->time_ns)
			return OW_ORDER_UNKNOWN;
		by = OW_ORDER_TIMES;
	}
	return by;
}

/* -- points that see a part of the traffic ------------------------------------------------------------------------ */

/* at: a place before it, if there is one; it is moved on. The ids that are asked for ascend. */
static bool has_id(const struct ow_identity_sample *s, size_t *at, uint64_t id)
{
	while (*at < s->packets && s->packet[*at].id < id)
		++*at;
	return *at < s->packets && s->packet[*at].id == id;
}

/* Whether packets that two points have in common pass a third one that does not show them, though it covers the time. */
static bool passed_unseen(const struct finder *f, unsigned a, unsigned b, unsigned middle)
{
	enum ow_variant v = f->distance[a][b].variant;
	const struct ow_identity_sample *x = &f->survey[a].sample[v], *y = &f->survey[b].sample[v],
					*m = &f->survey[middle].sample[v];
	int64_t first = f->survey[middle].first_ns, last = f->survey[middle].last_ns, margin = (last - first) / 8;
	size_t seen = 0, unseen = 0, at_y = 0, at_m = 0;
	if (!f->distance[a][b].common || !f->distance[a][middle].common || f->distance[a][middle].variant != v)
		return false;
	for (size_t i = 0; i < x->packets; i = next_id(x, i)) {
		const struct ow_sampled *p = &x->packet[i];
		if (p->id >= m->below || p->time_ns < first + margin || p->time_ns > last - margin ||
		    !has_id(y, &at_y, p->id))
			continue;
		bool shown = has_id(m, &at_m, p->id);
		seen += shown;
		unseen += !shown;
	}
	return unseen >= PARTIAL_LEAST && (double)unseen >= PARTIAL_SHARE * (double)(seen + unseen);
}

static void find_partial(const struct finder *f, struct ow_order_found *found)
{
	const unsigned *place = found->place;
	for (unsigned i = 1; i + 1 < f->points; i++) {
		for (unsigned a = 0; a < i; a++) {
			for (unsigned b = i + 1; b < f->points; b++)
				found->partial[place[i]] |= passed_unseen(f, place[a], place[b], place[i]);
		}
		/* Points side by side have nothing in common. */
		found->partial[place[i]] |=
			!f->distance[place[i]][place[i - 1]].common || !f->distance[place[i]][place[i + 1]].common;
	}
}

/* ----------------------------------------------------------------------------------------------------------------- */

/* Times of a capture device show the order better than those of the host that captured its frames. */
static int prefer_stamps(struct ow_reader *reader, struct ow_error *err)
{
	struct ow_device_format format;
	int r = ow_reader_find_stamps(reader, &format, err);
	if (r == 0 && format.device != OW_DEVICE_NONE)
		ow_reader_use_stamps(reader, &format);
	return r;
}

static int open_all(struct finder *f, const struct ow_path_point *point, struct ow_error *err)
{
	memset(f->limit, 0xff, sizeof f->limit);
	for (unsigned i = 0; i < f->points; i++) {
		int r = ow_reader_open(point[i].path, &f->reader[i], err);
		if (r == 0)
			r = prefer_stamps(f->reader[i], err);
		if (r == 0)
			r = ow_outlook_take(f->reader[i], &f->outlook[i], err);
		if (r == 0 && f->outlook[i].empty)
			r = ow_error_set(err, ENOMSG, "%s: no packets", point[i].path);
		if (r < 0)
			return r;
		for (unsigned v = 0; v < OW_VARIANTS; v++)
			f->limit[v] = f->outlook[i].limit[v] < f->limit[v] ? f->outlook[i].limit[v] : f->limit[v];
	}
	return 0;
}

int ow_path_find_order(const struct ow_path_point *point, unsigned points, bool trusted, uint64_t seed,
                       struct ow_order_found *ret_found, struct ow_error *err)
{
	static const struct {
		enum ow_selection which;
		bool whole;
	} attempt[] = {
		{OW_SELECT_FIRST, false}, {OW_SELECT_USUAL, false}, {OW_SELECT_USUAL, true}, {OW_SELECT_LOOSE, true}};
	struct finder *f = calloc(1, sizeof *f);
	if (!f)
		return ow_error_set(err, ENOMEM, "out of memory");
	f->points = points;
	f->seed = seed;
	int r = open_all(f, point, err);
	for (size_t i = 0; i < sizeof attempt / sizeof *attempt && r == 0; i++) {
		r = survey(f, attempt[i].which, attempt[i].whole, err);
		if (r == 0 && connected(f))
			break;
	}
	if (r == 0) {
		*ret_found = (struct ow_order_found){0};
		sort(f, trusted, ret_found);
		turn(f, trusted, ret_found);
		find_lone(f, ret_found);
		find_apart(f, ret_found);
		ret_found->by = evidence(f, ret_found, trusted);
		find_partial(f, ret_found);
	}
	drop_surveys(f);
	for (unsigned i = 0; i < points; i++)
		ow_reader_close(f->reader[i]);
	free(f);
	return r;
}
