/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture file as a live source. Frames are returned when they are due, relative to the first one, or as fast as they
 * are read. The clock of the file starts when it is opened.
 *
 * Frames without a time (0) are skipped.
 *
 * Files do not contain the direction of a frame, nor how a superframe was cut; a superframe counts as one packet here.
 */
#include "base/clock.h"
#include "base/time.h"
#include "capture/iface/iface_ops.h"
#include "capture/file/reader.h"
#include <errno.h>
#include <stdlib.h>

#define BATCH 256
/* Precision of the replay: one wait for all frames of a millisecond, not one for each. */
#define TICK_NS   OW_NS_PER_MS
#define SPEED_MAX 1e9

struct replay {
	struct ow_iface live;
	struct ow_reader *reader;
	struct ow_frame batch[BATCH];
	int next, count; /* in the batch */
	bool ended;
	uint32_t snaplen;
	double speed;
	int64_t first_ns, start_ns; /* timestamp of the first frame; steady time when it was due */
	_Atomic int64_t latest_ns;  /* timestamp of the frames returned */
};

/* Returns whether there is a frame. Reads on if the batch is used up, which invalidates its frames. */
static int look_ahead(struct replay *r, struct ow_error *err)
{
	while (r->next == r->count && !r->ended) {
		r->next = r->count = 0;
		int n = ow_reader_read(r->reader, r->batch, BATCH, err);
		if (n < 0)
			return n;
		r->ended = n == 0;
		/* A frame without a time (0) is never due. */
		for (int i = 0; i < n; i++) {
			if (r->batch[i].time_ns != 0)
				r->batch[r->count++] = r->batch[i];
		}
		/* Gigabytes of such frames can follow, so check for an interrupt. */
		if (n && r->count == 0 && (n = ow_iface_wait(&r->live, -1, 0)) < 0)
			return n;
	}
	return r->next < r->count;
}

/* The position of the replay; any thread may call it. */
static int64_t replay_now(const struct ow_iface *live)
{
	const struct replay *r = (const struct replay *)live;
	if (r->speed == 0)
		return r->latest_ns;
	double passed = (double)(ow_clock_steady_ns() - r->start_ns) * r->speed;
	return passed < (double)(INT64_MAX / 4) ? r->first_ns + (int64_t)passed : INT64_MAX / 2;
}

/* The steady time at which a frame with this timestamp is due. */
static int64_t due_ns(const struct replay *r, int64_t stamp_ns)
{
	double wait = (double)(stamp_ns - r->first_ns) / r->speed;
	return wait < (double)(INT64_MAX / 4) ? r->start_ns + (int64_t)wait : INT64_MAX / 2;
}

/* Returns the frames of the batch that are due. */
static int take(struct replay *r, struct ow_iface_frame *frames, size_t room)
{
	int64_t now = r->speed == 0 ? INT64_MAX : replay_now(&r->live), latest = r->latest_ns;
	int n = 0;
	while ((size_t)n < room && r->next < r->count && r->batch[r->next].time_ns <= now) {
		const struct ow_frame *frame = &r->batch[r->next++];
		if (frame->time_ns > latest)
			latest = frame->time_ns;
		frames[n] = (struct ow_iface_frame){.frame = *frame, .stamped_by = OW_STAMPED_BY_FILE};
		frames[n].frame.number = ++r->live.counts.frames;
		if (r->snaplen && frames[n].frame.caplen > r->snaplen)
			frames[n].frame.caplen = r->snaplen;
		n++;
	}
	r->live.counts.stamped[OW_STAMPED_BY_FILE] += (uint64_t)n;
	r->latest_ns = latest;
	if (latest != INT64_MIN)
		ow_iface_pass(&r->live, latest - OW_IFACE_SLACK_NS);
	return n;
}

/* At the end, err is empty, or says that the file is truncated or damaged. */
static int end(struct replay *r, struct ow_error *err)
{
	const char *damage = ow_reader_damage(r->reader);
	r->live.passed_ns = INT64_MAX;
	return ow_error_set(err, ENODATA, "%s", damage ? damage : "");
}

static int replay_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                       struct ow_error *err)
{
	struct replay *r = (struct replay *)live;
	int64_t until = ow_iface_deadline(timeout_ms);
	for (;;) {
		int result = look_ahead(r, err);
		if (result < 0)
			return result;
		if (result == 0)
			return end(r, err);
		result = take(r, frames, room);
		if (result > 0)
			return result;
		int64_t now = replay_now(live), stamp = r->batch[r->next].time_ns, due = due_ns(r, stamp);
		ow_iface_pass(live, (now < stamp ? now : stamp) - OW_IFACE_SLACK_NS);
		if (ow_clock_steady_ns() >= until)
			return 0;
		int64_t tick = ow_clock_steady_ns() + TICK_NS;
		due = due > tick ? due : tick;
		result = ow_iface_wait(live, -1, due < until ? due : until);
		if (result < 0)
			return result;
	}
}

static void replay_free(struct ow_iface *live)
{
	struct replay *r = (struct replay *)live;
	ow_reader_close(r->reader);
	ow_iface_done(live);
	free(r);
}

static int start(struct replay *r, const struct ow_iface_options *options, struct ow_error *err)
{
	if (!(options->speed >= 0 && options->speed <= SPEED_MAX))
		return ow_error_set(err, EINVAL, "%s: speed %g is not 0 .. %g", options->name, options->speed,
		                    SPEED_MAX);
	r->speed = options->speed;
	r->snaplen = options->snaplen;
	int result = ow_reader_open(options->name, &r->reader, err);
	if (result < 0)
		return result;
	r->live.linktype = ow_reader_info(r->reader)->linktype;
	result = look_ahead(r, err);
	if (result < 0)
		return result;
	r->first_ns = r->count ? r->batch[0].time_ns : 0;
	r->latest_ns = r->count ? r->first_ns : INT64_MIN;
	r->start_ns = ow_clock_steady_ns();
	return 0;
}

int ow_iface_open_file(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	static const struct ow_iface_ops ops = {
		.name = "file",
		.read = replay_read,
		.now_ns = replay_now,
		.free = replay_free,
	};
	struct replay *r = calloc(1, sizeof *r);
	if (!r)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->name);
	int result = ow_iface_init(&r->live, &ops, options->name, err);
	r->live.lead_ns = INT64_MAX;
	if (result == 0)
		result = start(r, options, err);
	if (result < 0) {
		replay_free(&r->live);
		return result;
	}
	*ret_live = &r->live;
	return 0;
}
