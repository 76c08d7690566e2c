/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/sample_overlap.h"

#include "base/line.h"
#include "base/sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COPIES_MAX        64                      /* of an id, in a sample that is full */
#define MAKE_ROOM         (OW_SAMPLE_MAX / 4 * 3) /* with more packets than this, a full sample is reduced */
#define BUCKET_BITS       14                      /* of an id: as many buckets sort a sample */
#define BUCKETS           ((size_t)1 << BUCKET_BITS)
#define BUCKET_FEW        32
#define HOPS_LEAST        8  /* packets that routers forwarded in either direction */
#define HOPS_MOST         64 /* of a path: a larger difference of TTLs is that of a device that sets them */
#define DRIFT_STRETCHES   32
#define DRIFT_SAMPLES     4    /* of each stretch, at least */
#define DRIFT_MOST        5e-4 /* quartz clocks are better than 500 ppm */
#define DRIFT_UNEXPLAINED 0.05 /* spread of the medians around the line, as a share of its rise */

int ow_sample_init(struct ow_identity_sample *sample)
{
	*sample = (struct ow_identity_sample){.below = UINT64_MAX};
	sample->packet = malloc(OW_SAMPLE_MAX * sizeof *sample->packet);
	return sample->packet ? 0 : -ENOMEM;
}

void ow_sample_done(struct ow_identity_sample *sample)
{
	free(sample->packet);
	sample->packet = NULL;
}

/* By id, identical packets by time. */
static int by_id(const void *x, const void *y)
{
	const struct ow_sampled *a = x, *b = y;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* Sorts packets that are in the right bucket each: few, unless a flood of one id is among them. */
static void sort_bucket(struct ow_sampled *packet, size_t count)
{
	if (count > BUCKET_FEW) {
		qsort(packet, count, sizeof *packet, by_id);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct ow_sampled kept = packet[i];
		size_t k = i;
		for (; k > 0 && by_id(&packet[k - 1], &kept) > 0; k--)
			packet[k] = packet[k - 1];
		packet[k] = kept;
	}
}

/* Ids are evenly distributed below the limit: their upper bits nearly sort them. False: out of memory. */
static bool sort_by_buckets(struct ow_identity_sample *s)
{
	struct ow_sampled *from = malloc(s->packets * sizeof *from);
	uint32_t *end = calloc(BUCKETS + 1, sizeof *end);
	bool done = from && end;
	int shift = 64 - BUCKET_BITS - __builtin_clzll(s->below | 1);
	shift = shift > 0 ? shift : 0;
	for (size_t i = 0; done && i < s->packets; i++) {
		from[i] = s->packet[i];
		end[(from[i].id >> shift) + 1]++;
	}
	for (size_t b = 0; done && b < BUCKETS; b++)
		end[b + 1] += end[b];
	for (size_t i = 0; done && i < s->packets; i++)
		s->packet[end[from[i].id >> shift]++] = from[i];
	for (size_t b = 0; done && b < BUCKETS; b++) {
		size_t first = b ? end[b - 1] : 0;
		sort_bucket(s->packet + first, end[b] - first);
	}
	free(from);
	free(end);
	return done;
}

static void sort_packets(struct ow_identity_sample *s)
{
	if (s->packets && !sort_by_buckets(s))
		qsort(s->packet, s->packets, sizeof *s->packet, by_id);
}

void ow_sample_sort(struct ow_identity_sample *s)
{
	size_t sorted = 1;
	while (sorted < s->packets && by_id(&s->packet[sorted - 1], &s->packet[sorted]) <= 0)
		sorted++;
	if (sorted < s->packets)
		sort_packets(s);
}

/* A flood of identical packets must not displace others. */
static void limit_copies(struct ow_identity_sample *s)
{
	size_t kept = 0, copies = 0;
	sort_packets(s);
	for (size_t i = 0; i < s->packets; i++) {
		copies = kept && s->packet[kept - 1].id == s->packet[i].id ? copies + 1 : 1;
		if (copies <= COPIES_MAX)
			s->packet[kept++] = s->packet[i];
	}
	s->packets = kept;
}

static void thin(struct ow_identity_sample *s, uint64_t below)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->packets; i++) {
		if (s->packet[i].id < below)
			s->packet[kept++] = s->packet[i];
	}
	s->packets = kept;
	s->below = below;
}

void ow_sample_add(struct ow_identity_sample *s, const struct ow_sampled *packet)
{
	if (packet->id >= s->below)
		return;
	if (s->packets == OW_SAMPLE_MAX) {
		limit_copies(s);
		while (s->packets > MAKE_ROOM)
			thin(s, s->below / 2);
	}
	if (packet->id < s->below)
		s->packet[s->packets++] = *packet;
}

/* B's time minus A's of one packet. */
struct difference {
	int64_t ns;
	int64_t b_ns; /* B's time */
	uint64_t hosts;
	int hops; /* see hops_of */
	bool reverse, b_to_a;
};

static int by_hosts(const void *x, const void *y)
{
	const struct difference *a = x, *b = y;
	if (a->hosts != b->hosts)
		return a->hosts < b->hosts ? -1 : 1;
	if (a->reverse != b->reverse)
		return a->reverse ? 1 : -1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static size_t run_length(const struct ow_identity_sample *s, size_t i)
{
	size_t n = 1;
	while (i + n < s->packets && s->packet[i + n].id == s->packet[i].id)
		n++;
	return n;
}

/*
 * Mean time between identical packets: n of them, in the order of time; only the first ones, which the limit did not
 * remove.
 */
static int64_t spacing(const struct ow_sampled *packet, size_t n)
{
	n = n < COPIES_MAX ? n : COPIES_MAX;
	return n > 1 ? (packet[n - 1].time_ns - packet[0].time_ns) / (int64_t)(n - 1) : 0;
}

/* Of the ids with the most copies at either side, the shortest: whatever the order of ids and of the captures. */
static void note_repeats(struct ow_sample_overlap *c, const struct ow_sampled *packet, size_t n, size_t *most)
{
	int64_t ns = spacing(packet, n);
	if (n < 2 || n < *most || (n == *most && ns >= c->repeats_ns))
		return;
	*most = n;
	c->repeats_ns = ns;
}

/* Routers decreased the TTL on the way to B: 1, to A: -1; 0: nothing shows that they did. */
static int hops_of(const struct ow_sampled *a, const struct ow_sampled *b)
{
	return abs(a->ttl - b->ttl) > HOPS_MOST ? 0 : (b->ttl < a->ttl) - (a->ttl < b->ttl);
}

static void compare_ttl(const struct ow_sampled *a, const struct ow_sampled *b, struct ow_sample_overlap *c)
{
	int hops = hops_of(a, b);
	c->lower_ttl[0] += hops > 0;
	c->lower_ttl[1] += hops < 0;
}

static struct difference difference_of(const struct ow_sampled *a, const struct ow_sampled *b)
{
	return (struct difference){
		.ns = b->time_ns - a->time_ns,
		.b_ns = b->time_ns,
		.hosts = a->hosts,
		.hops = hops_of(a, b),
		.reverse = a->reverse,
	};
}

/* Fills diff with the packets whose id is unique on both sides. */
static void intersect(const struct ow_identity_sample *a, const struct ow_identity_sample *b, struct difference *diff,
                      struct ow_sample_overlap *c)
{
	size_t common = 0, unique = 0, most = 1;
	for (size_t i = 0, j = 0; i < a->packets && j < b->packets;) {
		size_t n = run_length(a, i), m = run_length(b, j);
		uint64_t ida = a->packet[i].id, idb = b->packet[j].id;
		if (ida == idb) {
			size_t pairs = n < m ? n : m;
			common += pairs;
			c->squares += (double)pairs * (double)pairs;
			note_repeats(c, &a->packet[i], n, &most);
			note_repeats(c, &b->packet[j], m, &most);
			if (n == 1 && m == 1)
				compare_ttl(&a->packet[i], &b->packet[j], c);
			if (n == 1 && m == 1)
				diff[unique++] = difference_of(&a->packet[i], &b->packet[j]);
		}
		i += ida <= idb ? n : 0;
		j += idb <= ida ? m : 0;
	}
	c->unique = unique;
	c->common = common;
}

/* The way of packets that are not reverse, if the TTLs of all packets of two hosts agree on it: A to B: 1, B to A: -1. */
static int way_of_hops(const struct difference *diff, size_t n)
{
	size_t to_b = 0, to_a = 0;
	for (size_t i = 0; i < n; i++) {
		int way = diff[i].reverse ? -diff[i].hops : diff[i].hops;
		to_b += way > 0;
		to_a += way < 0;
	}
	return to_b && !to_a ? 1 : to_a && !to_b ? -1 : 0;
}

/* Whether some two hosts may show both directions: their hashes are compared without the lowest bit. name: room for n. */
static bool may_show_both(const struct difference *diff, size_t n, uint64_t *name)
{
	bool both = false;
	for (size_t i = 0; i < n; i++)
		name[i] = (diff[i].hosts & ~UINT64_C(1)) | diff[i].reverse;
	ow_sort_ids(name, n);
	for (size_t i = 1; i < n; i++)
		both |= (name[i - 1] ^ name[i]) == 1;
	return both;
}

/*
 * Whether these, sorted, are later than those, by most of three quantiles. Delays make each of them later; of a clock that was
 * set in the middle, the medians may be of before and after.
 */
static bool is_later(const struct difference *these, size_t n, const struct difference *those, size_t m)
{
	int later = 0;
	for (size_t q = 1; q <= 9; q += 4)
		later += these[n * q / 10].ns > those[m * q / 10].ns;
	return later >= 2;
}

/*
 * Between two hosts the direction that is later at B is A to B, whatever the clocks show: D1 + offset > -D2 + offset.
 * In joined captures each direction may have a clock of its own: there TTLs decide, if they agree.
 * Hosts with only one direction stay A to B here, and are ignored if others show both.
 */
static size_t split_directions(struct difference *diff, size_t n, bool joined, bool *ret_both)
{
	qsort(diff, n, sizeof *diff, by_hosts);
	size_t kept = 0;
	for (size_t i = 0; i < n;) {
		size_t forward = i, end;
		while (forward < n && diff[forward].hosts == diff[i].hosts && !diff[forward].reverse)
			forward++;
		for (end = forward; end < n && diff[end].hosts == diff[i].hosts; end++)
			;
		if (forward > i && end > forward) {
			int hops = joined ? way_of_hops(diff + i, end - i) : 0;
			bool back = hops ? hops < 0 : is_later(diff + forward, end - forward, diff + i, forward - i);
			for (size_t k = i; k < end; k++) {
				diff[k].b_to_a = (k < forward) == back;
				struct difference d = diff[k];
				diff[k] = diff[kept];
				diff[kept++] = d;
			}
		}
		i = end;
	}
	*ret_both = kept > 0;
	return kept ? kept : n;
}

/*
 * No pair of hosts shows both directions. If routers decreased the TTL of some packets on the way to B and of others on
 * the way to A, these show them. Returns the number of kept differences: those that show their direction.
 */
static size_t split_by_hops(struct difference *diff, size_t n, const size_t lower_ttl[2], bool *ret_both)
{
	size_t kept = 0;
	if (lower_ttl[0] < HOPS_LEAST || lower_ttl[1] < HOPS_LEAST)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (!diff[i].hops)
			continue;
		diff[kept] = diff[i];
		diff[kept].b_to_a = diff[i].hops < 0;
		kept++;
	}
	*ret_both = true;
	return kept;
}

static int by_time(const void *x, const void *y)
{
	const struct difference *a = x, *b = y;
	if (a->b_ns != b->b_ns)
		return a->b_ns < b->b_ns ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns; /* not the order of ids, which is another in every run */
}

static int by_size(const void *x, const void *y)
{
	const struct difference *a = x, *b = y;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/*
 * The medians of time spans are on a line if the clocks drift by much more than packets take, whatever their directions
 * (which a drift hides). Smaller drifts do no harm here.
 */
static void find_drift(struct difference *diff, size_t n, struct ow_sample_overlap *c)
{
	double x[DRIFT_STRETCHES], y[DRIFT_STRETCHES], slope, spread;
	if (n < DRIFT_STRETCHES * DRIFT_SAMPLES)
		return;
	qsort(diff, n, sizeof *diff, by_time);
	c->drift_from_ns = diff[0].b_ns;
	for (size_t i = 0; i < DRIFT_STRETCHES; i++) {
		size_t first = i * n / DRIFT_STRETCHES, end = (i + 1) * n / DRIFT_STRETCHES;
		x[i] = (double)(diff[(first + end) / 2].b_ns - c->drift_from_ns);
		if (i && x[i] <= x[i - 1])
			return;
		qsort(diff + first, end - first, sizeof *diff, by_size);
		y[i] = (double)(diff[(first + end) / 2].ns - diff[0].ns);
	}
	ow_line_fit(x, y, DRIFT_STRETCHES, &slope, &spread);
	if (fabs(slope) > DRIFT_MOST || spread > DRIFT_UNEXPLAINED * fabs(slope) * (x[DRIFT_STRETCHES - 1] - x[0]))
		return;
	c->drift = slope;
	for (size_t i = 0; i < n; i++)
		diff[i].ns -= llrint(slope * (double)(diff[i].b_ns - c->drift_from_ns));
}

/* ns: room for as many. */
static void quantiles(const struct difference *diff, size_t count, unsigned direction, int64_t *ns,
                      struct ow_sample_overlap *c)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		ns[n] = diff[i].ns;
		n += diff[i].b_to_a == (direction == 1);
	}
	if (!n)
		return;
	ow_sort_times(ns, n);
	c->low_ns[direction] = ns[n / 50];
	c->median_ns[direction] = ns[n / 2];
	c->high_ns[direction] = ns[n - 1 - n / 50];
}

/* room: for n numbers. */
static void time_differences(struct difference *diff, size_t n, uint64_t *room, bool drifting, bool joined,
                             struct ow_sample_overlap *c)
{
	if (!n)
		return;
	if (drifting)
		find_drift(diff, n, c);
	c->min_ns = c->max_ns = diff[0].ns;
	for (size_t i = 1; i < n; i++) {
		c->min_ns = diff[i].ns < c->min_ns ? diff[i].ns : c->min_ns;
		c->max_ns = diff[i].ns > c->max_ns ? diff[i].ns : c->max_ns;
	}
	if (may_show_both(diff, n, room))
		n = split_directions(diff, n, joined, &c->both_directions);
	if (!c->both_directions)
		n = split_by_hops(diff, n, c->lower_ttl, &c->both_directions);
	quantiles(diff, n, 0, (int64_t *)room, c);
	quantiles(diff, n, 1, (int64_t *)room, c);
}

int ow_sample_overlap_find(struct ow_identity_sample *a, struct ow_identity_sample *b, bool drifting,
                           struct ow_sample_overlap *ret_common)
{
	uint64_t below = a->below < b->below ? a->below : b->below;
	thin(a, below);
	thin(b, below);
	ow_sample_sort(a);
	ow_sample_sort(b);
	size_t least = a->packets < b->packets ? a->packets : b->packets;
	struct difference *diff = malloc((least + 1) * sizeof *diff);
	uint64_t *room = malloc((least + 1) * sizeof *room);
	if (!diff || !room) {
		free(diff);
		free(room);
		return -ENOMEM;
	}
	struct ow_sample_overlap c = {0};
	intersect(a, b, diff, &c);
	c.share = least ? (double)c.common / (double)least : 0;
	c.rate = (double)below / (double)UINT64_MAX;
	c.packets = (double)c.common / c.rate;
	time_differences(diff, c.unique, room, drifting, a->joined || b->joined, &c);
	free(diff);
	free(room);
	*ret_common = c;
	return 0;
}
