/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the hops that explain changed places. If a segment of several hops has changed, other places over the same hops
 * show which hop it is. Each hop gets votes: the changed places over it against the unchanged places over it.
 */
#include "plane/monitor_private.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A place that has a result now. */
struct located {
	const struct place *place;
	const struct ow_plane_watch *watch;
	bool explained; /* by a hop that was chosen */
};

struct hop {
	const char *text;
	size_t length;
	uint32_t place; /* index in `located` */
};

struct hops {
	struct located *located;
	uint32_t places;
	struct hop *hop;
	size_t count, room;
};

static int add(struct hops *hops, const char *text, size_t length, uint32_t place)
{
	if (OW_GROW(hops->hop, hops->room, hops->count + 1) < 0)
		return -ENOMEM;
	hops->hop[hops->count++] = (struct hop){text, length, place};
	return 0;
}

/* "F>E>D" has the hops F>E and E>D; the inside of a router is one hop. */
static int add_hops(struct hops *hops, const char *name, uint32_t place)
{
	if (strchr(name, '['))
		return add(hops, name, strlen(name), place);
	const char *from = name, *middle = strchr(name, '>');
	while (middle) {
		const char *end = middle + 1 + strcspn(middle + 1, ">");
		if (add(hops, from, (size_t)(end - from), place) < 0)
			return -ENOMEM;
		from = middle + 1;
		middle = *end ? end : NULL;
	}
	return 0;
}

static int by_text(const void *pa, const void *pb)
{
	const struct hop *a = pa, *b = pb;
	size_t least = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->text, b->text, least);
	if (order == 0)
		order = (a->length > b->length) - (a->length < b->length);
	return order ? order : (a->place > b->place) - (a->place < b->place);
}

static bool same(const struct hop *a, const struct hop *b)
{
	return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* A place on a path counts only if the verdict on the path names it: small changes are not located. */
static bool is_changed(const struct located *located)
{
	const struct ow_plane_watch *watch = located->watch;
	return (watch->delay.changed || watch->loss.changed) && (located->place->named || !located->place->on_paths);
}

/*
 * True if the place is clearly as usual. A place that is neither changed nor as usual may be about to change, and has
 * no vote.
 */
static bool is_usual(const struct ow_monitor *monitor, const struct located *located)
{
	double level = monitor->threshold / 4;
	return located->watch->delay.sum < level && located->watch->loss.sum < level && !is_changed(located);
}

/* The number of changed places in this run of equal hops that no hop explains yet; 0 if one place in it is as usual. */
static uint32_t explains(const struct ow_monitor *monitor, const struct hops *hops, const struct hop *hop, size_t count)
{
	uint32_t votes = 0;
	for (size_t i = 0; i < count; i++) {
		const struct located *located = &hops->located[hop[i].place];
		if (is_usual(monitor, located))
			return 0;
		votes += is_changed(located) && !located->explained;
	}
	return votes;
}

static int put(char *text, size_t size, const struct hop *hop)
{
	size_t used = strlen(text);
	if (used + hop->length + 2 > size)
		return -ENOSPC;
	if (used)
		text[used++] = ' ';
	memcpy(text + used, hop->text, hop->length);
	text[used + hop->length] = 0;
	return 0;
}

/* Repeatedly takes the hop that explains most places, until no hop explains any. */
static void choose(const struct ow_monitor *monitor, struct hops *hops, char *text, size_t size)
{
	for (;;) {
		uint32_t most = 0;
		size_t best = 0, length = 0;
		for (size_t i = 0, next; i < hops->count; i = next) {
			for (next = i + 1; next < hops->count && same(&hops->hop[i], &hops->hop[next]); next++)
				;
			uint32_t votes = explains(monitor, hops, &hops->hop[i], next - i);
			if (votes > most) {
				most = votes;
				best = i;
				length = next - i;
			}
		}
		if (most == 0 || put(text, size, &hops->hop[best]) < 0)
			return;
		for (size_t i = best; i < best + length; i++)
			hops->located[hops->hop[i].place].explained = true;
	}
}

int ow_monitor_locate(struct ow_monitor *monitor, int64_t now_ns, char *ret_hops, size_t size, struct ow_error *err)
{
	struct hops hops = {.located = calloc((size_t)monitor->places + 1, sizeof(*hops.located))};
	int r = hops.located ? 0 : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < monitor->places; i++) {
		const struct place *place = monitor->place[i];
		const struct ow_plane_watch *watch = ow_monitor_watch_of(monitor, place, now_ns);
		if (!watch)
			continue;
		hops.located[hops.places] = (struct located){place, watch, false};
		r = add_hops(&hops, place->name, hops.places++);
	}
	if (r == 0) {
		ret_hops[0] = 0;
		if (hops.count)
			qsort(hops.hop, hops.count, sizeof(*hops.hop), by_text);
		choose(monitor, &hops, ret_hops, size);
	} else {
		ow_error_set(err, ENOMEM, "out of memory");
	}
	free(hops.hop);
	free(hops.located);
	return r;
}
