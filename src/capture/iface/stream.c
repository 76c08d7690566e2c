/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a capture that is still being written.
 *
 * A stream is in order, so it is complete up to its last frame. Behind that nothing is known: there may be no packets, or
 * they are on the way. The time now is the steady clock less base_ns, the least that the steady clock was ahead of a
 * timestamp, of this stream or of the other one. What is older than that by the lag is given up. The bytes of files wait for us, so that a file is late only
 * by the time in which it has not grown.
 */
#include "capture/iface/stream.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "capture/file/capture_decoder.h"
#include "capture/iface/iface_ops.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256
/*
 * How often a feed is asked that has no descriptor, and how soon after its last bytes a silence is noted. Also how long
 * bytes without a frame are read before the time and the request to end are looked at.
 */
#define LOOK_NS (50 * OW_NS_PER_MS)
/* The timestamps of a host that jump by this much were made by a clock that was set. */
#define STEP_NS OW_NS_PER_S

/* Whether frames may be missing before this one, and why. */
struct gap {
	bool is;
	const char *why;
};

struct gathered {
	struct ow_frame frame;
	int64_t arrived_ns;
	struct gap before;
	uint64_t dropped; /* packets that the captures lost until then, as they say */
};

struct stream {
	struct ow_iface live;
	struct ow_feed *feed;
	struct ow_capture_decoder *decoder;
	int64_t lag_ns, shift_ns;
	_Atomic int64_t latest_ns; /* timestamp of the frames returned; INT64_MIN: none */
	int64_t base_ns;           /* least steady time less timestamp; INT64_MAX: none */
	int64_t heard_ns;          /* steady time of the last bytes, */
	int64_t first_ns;          /* and of the first frame; INT64_MAX: none */
	int64_t given_ns;          /* earlier times are given up */
	struct gap gap;            /* before the next frame */
	bool ended;
	uint64_t dropped; /* packets that the captures before this one lost, as they say, */
	uint64_t counted; /* and those that are in live.counts */
	uint32_t snaplen; /* smallest so far */
	_Atomic uint32_t longest;
	struct gathered *gathered;
	size_t gathers, gather_room, gather_next, gather_bytes;
};

/* Packets that the captures lost so far, as they say. */
static uint64_t dropped_so_far(const struct stream *s)
{
	return s->dropped + ow_capture_decoder_info(s->decoder)->dropped;
}

/* -- bytes --------------------------------------------------------------------------------------------------------- */

/* Another capture begins. */
static int begin_capture(struct stream *s, struct ow_error *err)
{
	if (s->decoder)
		s->dropped += ow_capture_decoder_info(s->decoder)->dropped;
	ow_capture_decoder_free(s->decoder);
	s->decoder = NULL;
	int r = ow_capture_decoder_create(s->live.name, &s->decoder);
	return r < 0 ? ow_error_set(err, -r, "%s: out of memory", s->live.name) : 0;
}

static int no_more(struct stream *s, struct ow_error *err)
{
	struct ow_error why = {""};
	s->ended = true;
	(void)ow_capture_decoder_ends_whole(s->decoder, &why);
	return ow_error_set(err, ENODATA, "%s", why.text);
}

/* Takes bytes of the feed. Returns 1; 0 if there are none now; negative: the end (-ENODATA) or an error. */
static int take_bytes(struct stream *s, struct ow_error *err)
{
	struct ow_error why = {""};
	size_t room;
	uint8_t *to = ow_capture_decoder_room(s->decoder, &room);
	/* The bytes that came before are not unpacked yet. */
	if (!room && !s->ended)
		return 1;
	int got = s->ended ? OW_FEED_ENDED : s->feed->ops->read(s->feed, to, room, &why);
	if (got > 0) {
		ow_capture_decoder_fill(s->decoder, (size_t)got);
		s->heard_ns = ow_clock_steady_ns();
		return 1;
	}
	switch (got) {
	case 0:
		return 0;
	case OW_FEED_ENDED:
		return no_more(s, err);
	case OW_FEED_CUT:
		s->gap = (struct gap){true, s->feed->ops->why(s->feed)};
		return begin_capture(s, err);
	case OW_FEED_NEXT:
		if (!ow_capture_decoder_ends_whole(s->decoder, &why))
			s->gap = (struct gap){true, "was cut off"};
		got = begin_capture(s, err);
		return got < 0 ? got : 1;
	default:
		return ow_error_set(err, -got, "%s: %s", s->live.name, why.text);
	}
}

/* Whole frames as they are. Returns their number, or as take_bytes; 0 also if the bytes of LOOK_NS had none. */
static int take_frames(struct stream *s, struct ow_frame *frames, size_t room, struct ow_error *err)
{
	int64_t until_ns = ow_clock_steady_ns() + LOOK_NS;
	do {
		int n = ow_capture_decoder_read(s->decoder, frames, room, err);
		if (n != 0) {
			uint32_t snaplen = ow_capture_decoder_info(s->decoder)->snaplen;
			s->snaplen = !s->snaplen || (snaplen && snaplen < s->snaplen) ? snaplen : s->snaplen;
			return n;
		}
		int r = take_bytes(s, err);
		if (r <= 0)
			return r;
	} while (ow_clock_steady_ns() < until_ns);
	return 0;
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

/* From the latest frame on nothing is known. */
static void lose(struct stream *s, const char *why)
{
	if (s->latest_ns != INT64_MIN)
		ow_iface_pass(&s->live, s->latest_ns - OW_IFACE_SLACK_NS);
	ow_iface_lose(&s->live, why);
}

/* Gives up what is older than the lag. */
static void give_up(struct stream *s)
{
	int64_t now_ns = ow_clock_steady_ns(), latest_ns = s->latest_ns;
	if (latest_ns == INT64_MIN || s->ended || s->gather_next < s->gathers)
		return;
	int64_t until_ns = (s->feed->waits ? latest_ns + (now_ns - s->heard_ns) : now_ns - s->base_ns) - s->lag_ns;
	if (until_ns <= latest_ns || until_ns <= s->live.passed_ns)
		return;
	if (!s->live.away)
		lose(s, s->gap.is ? s->gap.why : s->feed->ops->why(s->feed));
	s->given_ns = s->live.known_ns = until_ns;
	ow_iface_pass(&s->live, until_ns);
}

/* A frame has come: what was given up, or is missing, ends here. */
static void regain(struct stream *s, int64_t time_ns)
{
	if (s->gap.is && !s->live.away)
		lose(s, s->gap.why);
	if (!s->live.away)
		return;
	s->live.away = false;
	s->live.back_ns = s->gap.is ? time_ns : s->given_ns;
	s->gap.is = false;
}

/*
 * Whether the clock that made the timestamps was set: they jump, against each other or against the time that has passed. In
 * the beginning they also jump if the pipe was full before it was read; then packets are missing.
 */
static bool has_jumped(struct stream *s, int64_t time_ns, int64_t arrived_ns)
{
	int64_t latest_ns = s->latest_ns;
	if (s->feed->waits || latest_ns == INT64_MIN)
		return false;
	if (time_ns < latest_ns - STEP_NS)
		return true;
	if (time_ns <= latest_ns + STEP_NS || arrived_ns - time_ns >= s->base_ns - STEP_NS)
		return false;
	if (arrived_ns - s->first_ns >= s->lag_ns)
		return true;
	s->gap = (struct gap){true, "was late or silent"};
	return false;
}

/* The place of a frame has passed: nothing is known up to the latest one. */
static void out_of_order(struct stream *s)
{
	if (!s->live.away)
		lose(s, "was out of order");
	s->live.away = false;
	s->live.back_ns = s->latest_ns;
}

/* Whether the frame is used. */
static bool accept_frame(struct stream *s, int64_t time_ns, int64_t arrived_ns)
{
	if (arrived_ns - time_ns < s->base_ns)
		s->base_ns = arrived_ns - time_ns;
	if (arrived_ns < s->first_ns)
		s->first_ns = arrived_ns;
	if (time_ns < s->live.passed_ns) {
		if (time_ns >= s->given_ns)
			out_of_order(s);
		return false;
	}
	regain(s, time_ns);
	if (time_ns > s->latest_ns)
		s->latest_ns = time_ns;
	return true;
}

static void note_length(struct stream *s, uint32_t length)
{
	if (length > atomic_load_explicit(&s->longest, memory_order_relaxed))
		atomic_store_explicit(&s->longest, length, memory_order_relaxed);
}

/* Returns the frames that are used, or an error. */
static int accept_frames(struct stream *s, const struct ow_frame *from, size_t count, int64_t arrived_ns,
                         struct ow_iface_frame *to, struct ow_error *err)
{
	int n = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t time_ns = from[i].time_ns + s->shift_ns;
		if (has_jumped(s, time_ns, arrived_ns)) {
			char step[OW_DURATION_TEXT];
			ow_duration_text((double)llabs(time_ns - s->latest_ns), step);
			return ow_error_set(
				err, EIO,
				"%s: the times of its packets jump %s by %s: its clock was set, or this host slept",
				s->live.name, time_ns < s->latest_ns ? "back" : "forward", step);
		}
		if (!accept_frame(s, time_ns, arrived_ns))
			continue;
		to[n] = (struct ow_iface_frame){.frame = from[i], .stamped_by = OW_STAMPED_BY_FILE};
		to[n].frame.time_ns = time_ns;
		to[n].frame.number = ++s->live.counts.frames;
		note_length(s, from[i].len);
		n++;
	}
	s->live.counts.stamped[OW_STAMPED_BY_FILE] += (uint64_t)n;
	if (n)
		ow_iface_pass(&s->live, s->latest_ns - OW_IFACE_SLACK_NS);
	return n;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static int read_gathered(struct stream *s, struct ow_iface_frame *frames, size_t room, struct ow_error *err)
{
	int n = 0;
	while ((size_t)n < room && s->gather_next < s->gathers) {
		const struct gathered *g = &s->gathered[s->gather_next++];
		struct gap later = s->gap;
		s->gap = g->before;
		int r = accept_frames(s, &g->frame, 1, g->arrived_ns, frames + n, err);
		/* If the frame was not used, the gap is before the next one. */
		if (s->gap.is && s->gather_next < s->gathers)
			s->gathered[s->gather_next].before = s->gap;
		else if (s->gap.is)
			later = s->gap;
		s->gap = later;
		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

static void forget_gathered(struct stream *s)
{
	for (size_t i = 0; i < s->gathers; i++)
		free((void *)s->gathered[i].frame.data);
	free(s->gathered);
	s->gathered = NULL;
	s->gathers = s->gather_room = s->gather_next = 0;
}

/* Returns the number of frames; 0 if there are none now, or none of LOOK_NS is used; or an error. */
static int read_some(struct stream *s, struct ow_iface_frame *frames, size_t room, struct ow_error *err)
{
	struct ow_frame batch[BATCH];
	int n = read_gathered(s, frames, room, err);
	if (n != 0)
		return n;
	if (s->gathered)
		forget_gathered(s);
	int64_t until_ns = ow_clock_steady_ns() + LOOK_NS;
	do {
		n = take_frames(s, batch, room < BATCH ? room : BATCH, err);
		if (n <= 0)
			break;
		n = accept_frames(s, batch, (size_t)n, ow_clock_steady_ns(), frames, err);
	} while (n == 0 && ow_clock_steady_ns() < until_ns);
	if (n == -ENODATA && s->latest_ns != INT64_MIN)
		ow_iface_pass(&s->live, s->latest_ns + 1);
	return n;
}

static int wait_for_feed(struct stream *s, int64_t until_ns)
{
	int fd = s->feed->ops->fd(s->feed);
	int64_t look_ns = ow_clock_steady_ns() + LOOK_NS;
	int r = ow_iface_wait(&s->live, fd, look_ns < until_ns ? look_ns : until_ns);
	return r < 0 ? r : 0;
}

static int stream_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                       struct ow_error *err)
{
	struct stream *s = (struct stream *)live;
	int64_t until_ns = ow_iface_deadline(timeout_ms);
	for (;;) {
		int r = read_some(s, frames, room, err);
		/* The bytes of a pipe can be too late though they come all the time. */
		if (r == 0 || (r > 0 && !s->feed->waits))
			give_up(s);
		if (r != 0)
			return r;
		if (ow_clock_steady_ns() >= until_ns)
			return 0;
		r = wait_for_feed(s, until_ns);
		if (r < 0)
			return r;
	}
}

static int64_t stream_now(const struct ow_iface *live)
{
	return ((const struct stream *)live)->latest_ns;
}

static void stream_count(struct ow_iface *live)
{
	struct stream *s = (struct stream *)live;
	/* Frames that wait were decoded before anybody asked: what was dropped between them belongs to their time. */
	uint64_t dropped = s->gather_next == s->gathers ? dropped_so_far(s)
	                   : s->gather_next             ? s->gathered[s->gather_next - 1].dropped
	                                                : 0;
	live->counts.dropped += dropped - s->counted;
	s->counted = dropped;
}

static void stream_free(struct ow_iface *live)
{
	struct stream *s = (struct stream *)live;
	forget_gathered(s);
	ow_capture_decoder_free(s->decoder);
	if (s->feed)
		s->feed->ops->free(s->feed);
	ow_iface_done(live);
	free(s);
}

int ow_stream_open(const struct ow_stream_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	static const struct ow_iface_ops ops = {.name = "stream",
	                                        .read = stream_read,
	                                        .now_ns = stream_now,
	                                        .count = stream_count,
	                                        .free = stream_free};
	struct stream *s = calloc(1, sizeof *s);
	if (!s) {
		options->feed->ops->free(options->feed);
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->name);
	}
	s->feed = options->feed;
	s->lag_ns = options->lag_ns;
	s->latest_ns = s->given_ns = INT64_MIN;
	s->base_ns = s->first_ns = INT64_MAX;
	s->heard_ns = ow_clock_steady_ns();
	int r = ow_iface_init(&s->live, &ops, options->name, err);
	/* A pipe that is filled as fast as it is read must not run away from the other one. */
	s->live.lead_ns = s->feed->waits ? INT64_MAX : 2 * s->lag_ns;
	if (r == 0)
		r = begin_capture(s, err);
	if (r < 0) {
		stream_free(&s->live);
		return r;
	}
	*ret_live = &s->live;
	return 0;
}

/* -- before it is read --------------------------------------------------------------------------------------------- */

static int keep(struct stream *s, const struct ow_frame *frame, struct ow_error *err)
{
	uint8_t *data = malloc(frame->caplen + 1);
	if (!data || OW_GROW(s->gathered, s->gather_room, s->gathers + 1) < 0) {
		free(data);
		return ow_error_set(err, ENOMEM, "%s: out of memory", s->live.name);
	}
	memcpy(data, frame->data, frame->caplen);
	s->gathered[s->gathers] = (struct gathered){
		.frame = *frame, .arrived_ns = s->heard_ns, .before = s->gap, .dropped = dropped_so_far(s)};
	s->gap.is = false;
	s->gathered[s->gathers++].frame.data = data;
	s->gather_bytes += frame->caplen;
	s->live.linktype = s->gathered[0].frame.linktype;
	return 0;
}

bool ow_stream_is_gathered(const struct ow_iface *live)
{
	const struct stream *s = (const struct stream *)live;
	return s->ended || s->gathers >= OW_STREAM_GATHER || s->gather_bytes >= OW_STREAM_GATHER_BYTES;
}

int ow_stream_gather(struct ow_iface *live, int timeout_ms, struct ow_error *err)
{
	struct stream *s = (struct stream *)live;
	struct ow_frame frame;
	int64_t until_ns = ow_iface_deadline(timeout_ms);
	while (!ow_stream_is_gathered(live)) {
		int r = take_frames(s, &frame, 1, err);
		if (r == 1)
			r = keep(s, &frame, err);
		else if (r == 0 && ow_clock_steady_ns() >= until_ns)
			break;
		else if (r == 0)
			r = wait_for_feed(s, until_ns);
		/* An end is reported when the frames before it have been read. */
		if (r == -ENODATA && s->gathers)
			break;
		if (r < 0)
			return r;
	}
	return (int)s->gathers;
}

const struct ow_frame *ow_stream_gathered(const struct ow_iface *live, size_t index, int64_t *ret_arrived_ns)
{
	const struct stream *s = (const struct stream *)live;
	*ret_arrived_ns = s->gathered[index].arrived_ns;
	return &s->gathered[index].frame;
}

void ow_stream_shift(struct ow_iface *live, int64_t shift_ns)
{
	((struct stream *)live)->shift_ns = shift_ns;
}

void ow_stream_expect(struct ow_iface *live, int64_t base_ns)
{
	((struct stream *)live)->base_ns = base_ns;
}

uint32_t ow_stream_snaplen(const struct ow_iface *live)
{
	return ((const struct stream *)live)->snaplen;
}

uint32_t ow_streams_longest(const struct ow_streams *streams)
{
	uint32_t longest = 0;
	for (unsigned i = 0; i < streams->parts; i++) {
		const struct stream *s = (const struct stream *)streams->part[i];
		uint32_t its = atomic_load_explicit(&s->longest, memory_order_relaxed);
		longest = its > longest ? its : longest;
	}
	return longest;
}

void ow_streams_close(const struct ow_streams *streams)
{
	for (unsigned i = 0; i < streams->parts; i++)
		ow_iface_close(streams->part[i]);
}
