/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/discover.h"

#include "base/array.h"
#include "base/state_file.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include "discovery/join.h"
#include "fleet/streams.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT "ow.s."
/* An epoch is settled when two points have sent a sample that is so many epochs later: one point with a wrong clock
 * must not end it for the others. */
#define LAG 3
/* Samples from the future, or older than the stream keeps them, are wrong. */
#define AHEAD_NS  (5 * OW_NS_PER_S)
#define BEHIND_NS (2 * 3600 * OW_NS_PER_S)
#define FOUND     "discovered"
#define FOUND_MAX (1u << 20)

/* -- the map -------------------------------------------------------------------------------------------------------- */

struct latest { /* the latest epoch of a point */
	char point[OW_SAMPLE_NAME];
	int64_t epoch;
};

struct vote { /* points whose last sample has epochs of this length */
	int64_t epoch_ns;
	uint64_t points;
};

struct reading {
	struct vote *vote;
	size_t votes, votes_room;
	struct ow_join *join;
	int64_t now_ns, epoch_ns, settled;
	struct latest first, second; /* of different points */
	uint64_t wrong;
	int failed;
};

/* Before all others, also less the lag. */
#define NO_EPOCH (INT64_MIN / 2)

static void note_epoch(struct reading *reading, const struct ow_vantage_sample *s)
{
	struct latest one = {.epoch = s->epoch};
	memcpy(one.point, s->point, sizeof one.point);
	if (strcmp(reading->first.point, s->point) == 0) {
		reading->first.epoch = s->epoch > reading->first.epoch ? s->epoch : reading->first.epoch;
	} else if (s->epoch > reading->first.epoch) {
		reading->second = reading->first;
		reading->first = one;
	} else if (s->epoch > reading->second.epoch) {
		reading->second = one;
	}
}

static int settle(struct reading *reading, int64_t epoch)
{
	if (reading->second.point[0] == 0 || epoch <= reading->settled)
		return 0;
	reading->settled = epoch;
	return ow_join_settle(reading->join, epoch);
}

/* Whether it is a sample of the point that the subject names, of about now. */
static bool is_right(const struct reading *reading, const char *subject, const struct ow_vantage_sample *s)
{
	return strncmp(subject, SUBJECT, strlen(SUBJECT)) == 0 && strcmp(subject + strlen(SUBJECT), s->point) == 0 &&
	       s->start_ns <= reading->now_ns + AHEAD_NS && s->end_ns >= reading->now_ns - BEHIND_NS;
}

static bool read_sample(struct reading *reading, const struct ow_bus_message *message,
                        struct ow_vantage_sample *ret_sample)
{
	if (message->status || ow_vantage_sample_decode(message->data, message->size, ret_sample, NULL) < 0)
		return false;
	if (is_right(reading, message->subject, ret_sample))
		return true;
	ow_vantage_sample_done(ret_sample);
	return false;
}

/* The last sample of each point: its length of epochs gets a vote. */
static void on_last(void *arg, const struct ow_bus_message *message)
{
	struct reading *reading = arg;
	struct ow_vantage_sample sample;
	size_t i = 0;
	if (reading->failed || !read_sample(reading, message, &sample))
		return;
	while (i < reading->votes && reading->vote[i].epoch_ns != sample.epoch_ns)
		i++;
	if (i == reading->votes && OW_GROW(reading->vote, reading->votes_room, i + 1) < 0) {
		reading->failed = -ENOMEM;
	} else {
		reading->vote[i] = (struct vote){sample.epoch_ns, i < reading->votes ? reading->vote[i].points + 1 : 1};
		reading->votes += i == reading->votes;
	}
	ow_vantage_sample_done(&sample);
}

/* Epochs are those of most points: one point must not decide it by being the first in the stream. */
static int choose_epochs(struct reading *reading, struct ow_bus *bus, struct ow_error *err)
{
	uint64_t most = 0;
	int r = ow_bus_each(bus, OW_STREAM_SAMPLES, SUBJECT ">", true, on_last, reading, err);
	for (size_t i = 0; r == 0 && i < reading->votes; i++) {
		if (reading->vote[i].points > most) {
			most = reading->vote[i].points;
			reading->epoch_ns = reading->vote[i].epoch_ns;
		}
	}
	free(reading->vote);
	reading->vote = NULL;
	if (r == 0 && reading->failed == 0 && most == 0)
		return ow_error_set(err, ENODATA, "the fleet has no samples: do its points have 'discovery'?");
	if (r == 0 && reading->failed == 0)
		reading->failed = ow_join_create(reading->epoch_ns, &reading->join);
	return r;
}

static void on_sample(void *arg, const struct ow_bus_message *message)
{
	struct reading *reading = arg;
	struct ow_vantage_sample sample;
	if (reading->failed)
		return;
	if (!read_sample(reading, message, &sample)) {
		reading->wrong++;
		return;
	}
	if (sample.epoch_ns != reading->epoch_ns) {
		reading->wrong++;
		ow_vantage_sample_done(&sample);
		return;
	}
	note_epoch(reading, &sample);
	reading->failed = settle(reading, reading->second.epoch - LAG);
	if (reading->failed == 0)
		reading->failed = ow_join_add(reading->join, &sample);
	ow_vantage_sample_done(&sample);
}

int ow_fleet_map(struct ow_bus *bus, int64_t now_ns, struct ow_map *ret_map, uint64_t *ret_wrong, struct ow_error *err)
{
	struct reading reading = {
		.now_ns = now_ns, .settled = NO_EPOCH, .first.epoch = NO_EPOCH, .second.epoch = NO_EPOCH};
	int r = choose_epochs(&reading, bus, err);
	if (r == 0 && reading.failed == 0)
		r = ow_bus_each(bus, OW_STREAM_SAMPLES, SUBJECT ">", false, on_sample, &reading, err);
	if (r == 0 && reading.failed == 0) {
		bool apart = reading.first.epoch - reading.second.epoch > LAG;
		reading.failed = settle(&reading, apart ? reading.second.epoch : reading.first.epoch);
	}
	if (r == 0 && reading.failed == 0)
		reading.failed = ow_join_map(reading.join, ret_map);
	if (r == 0 && reading.failed < 0)
		r = ow_error_set(err, -reading.failed, "samples cannot be joined: %s", strerror(-reading.failed));
	*ret_wrong = reading.wrong;
	ow_join_free(reading.join);
	return r;
}

/* -- segments ------------------------------------------------------------------------------------------------------- */

#define SEPARATOR "/" /* no name of an interface has one */

/* "left/right" or, if they face away, "<left/right". */
static bool read_end(const char *text, struct ow_discovered_end *end)
{
	end->away = *text == '<';
	text += end->away;
	end->interfaces = 0;
	while (*text) {
		size_t length = strcspn(text, SEPARATOR);
		if (length == 0 || length >= OW_SAMPLE_NAME || end->interfaces == OW_DISCOVERED_INTERFACES)
			return false;
		snprintf(end->interface[end->interfaces++], OW_SAMPLE_NAME, "%.*s", (int)length, text);
		text += length;
		text += *text != 0;
	}
	return end->interfaces > 0;
}

static void write_end(FILE *out, const struct ow_discovered_end *end)
{
	putc(' ', out);
	if (end->away)
		putc('<', out);
	for (unsigned i = 0; i < end->interfaces; i++)
		fprintf(out, "%s%s", i ? SEPARATOR : "", end->interface[i]);
}

/* Lines "a b interfaces_of_a interfaces_of_b share without". Names have no spaces. A line that is damaged is left out. */
static int read_found(const char *path, struct ow_discovered_segment **ret_list, size_t *ret_count,
                      struct ow_error *err)
{
	char *text = NULL, *rest = NULL;
	size_t size, count = 0, room = 0;
	struct ow_discovered_segment *list = NULL;
	int r = ow_state_read(path, FOUND_MAX, &text, &size, err);
	if (r == -ENOENT) {
		*ret_list = NULL;
		*ret_count = 0;
		return 0;
	}
	for (char *line = r == 0 ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		struct ow_discovered_segment s = {.share = 0};
		char ends[2][OW_DISCOVERED_INTERFACES * OW_SAMPLE_NAME + 1];
		if (sscanf(line, "%63s %63s %1024s %1024s %lf %u", s.a.point, s.b.point, ends[0], ends[1], &s.share,
		           &s.without) != 6 ||
		    !read_end(ends[0], &s.a) || !read_end(ends[1], &s.b))
			continue;
		if (OW_GROW(list, room, count + 1) < 0) {
			r = ow_error_set(err, ENOMEM, "not enough memory");
			break;
		}
		list[count++] = s;
	}
	free(text);
	if (r < 0) {
		free(list);
		return r;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static int write_found(const char *path, const struct ow_discovered_segment *list, size_t count, struct ow_error *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	for (size_t i = 0; out && i < count; i++) {
		fprintf(out, "%s %s", list[i].a.point, list[i].b.point);
		write_end(out, &list[i].a);
		write_end(out, &list[i].b);
		fprintf(out, " %.6f %u\n", list[i].share, list[i].without);
	}
	int r = out && fclose(out) == 0 ? ow_state_write(path, text, size, err)
	                                : ow_error_set(err, ENOMEM, "not enough memory");
	free(text);
	return r;
}

/* By the map: what was found before, and what is new. */
static int find_segments(struct ow_bus *bus, int64_t now_ns, struct ow_discovered_segment **list, size_t *count,
                         struct ow_error *err)
{
	struct ow_map map;
	struct ow_point_map points;
	struct ow_discovered_segment *next = NULL;
	struct ow_discover_limits limits = OW_DISCOVER_LIMITS;
	uint64_t wrong;
	size_t next_count = 0;
	int r = ow_fleet_map(bus, now_ns, &map, &wrong, err);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	r = ow_point_map_make(&map, &points);
	if (r == 0) {
		r = ow_discover_segments(&points, &limits, *list, *count, &next, &next_count);
		ow_point_map_done(&points);
	}
	ow_map_done(&map);
	if (r < 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	free(*list);
	*list = next;
	*count = next_count;
	return 0;
}

int ow_fleet_discover(const struct ow_fleet *fleet, struct ow_bus *bus, int64_t now_ns, bool dry,
                      struct ow_discovered_segment **ret_list, size_t *ret_count, struct ow_error *err)
{
	struct ow_discovered_segment *list = NULL;
	size_t count = 0;
	char *path = ow_state_path(fleet->path, FOUND);
	int r = path ? read_found(path, &list, &count, err) : ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = find_segments(bus, now_ns, &list, &count, err);
	if (r == 0 && !dry)
		r = write_found(path, list, count, err);
	free(path);
	if (r < 0) {
		free(list);
		return r;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}
