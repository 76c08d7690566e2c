/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of a recorder: reads a source, passes its frames to a lane recorder (lane_recorder.c) and to recordings of
 * flows, and hands over chunks by a list under a mutex, which it locks once for many chunks, and an event descriptor.
 *
 * If the reader is too slow, the thread waits: the ring of its interface fills, and the kernel counts what it drops.
 * Files wait for their reader early, and so for each other: few intervals are open at a time however fast they are
 * read.
 */
#include "record/recorder_private.h"

#include "base/clock.h"
#include "base/time.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* How long a thread waits for a frame before it checks the time, because results must come soon after the end of an
 * interval. */
#define WAIT_MS          OW_IFACE_BLOCK_MS
#define SIGHTINGS_MAX    (UINT64_C(4) << 20) /* sightings that wait to be taken: 64 MB */
#define REPLAY_INTERVALS 4                   /* a file may be this many intervals ahead of the last take */
#define REPLAY_LEAD_NS   OW_NS_PER_S         /* the same without lanes */

/*
 * -- handing over ---------------------------------------------------------------------------------------------------
 */

void ow_recorder_signal(struct ow_recorder *recorder)
{
	static const uint64_t one = 1;
	/* The write fails only if the counter is full; then the descriptor is readable, too. */
	while (write(recorder->event_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static uint64_t stamps_of(const struct ow_chunk *chunk)
{
	uint64_t sightings = 0;
	for (; chunk; chunk = chunk->next)
		sightings += chunk->count + 1; /* an empty one needs memory, too */
	return sightings;
}

/*
 * Whether a file is too far ahead of the last take. The file that is behind continues as soon as its time was taken, so
 * that files in one recorder stay together.
 */
static bool ahead(const struct ow_recorder_member *member)
{
	int64_t heard_ns = member->recorder->heard_ns;
	return member->passed_ns != INT64_MAX && heard_ns < INT64_MAX / 2 &&
	       member->passed_ns > heard_ns + member->lead_ns;
}

static bool must_wait(const struct ow_recorder_member *member)
{
	const struct ow_recorder *recorder = member->recorder;
	if (atomic_load_explicit(&recorder->stop, memory_order_relaxed))
		return false;
	if (member->file && (!recorder->started || ahead(member)))
		return true;
	return recorder->sightings > SIGHTINGS_MAX;
}

/* Hands over the finished chunks, and the time up to which they are complete; wakes the reader if there is news. */
static void hand_on(struct ow_recorder_member *member, int64_t passed_ns, bool news)
{
	struct ow_recorder *recorder = member->recorder;
	struct ow_chunk *last, *first = ow_lane_recorder_take(member->lane_recorder, &last);
	uint64_t sightings = stamps_of(first);
	bool wake = false;
	member->told_ns = passed_ns;
	pthread_mutex_lock(&recorder->lock);
	if (first) {
		*recorder->end = first;
		recorder->end = &last->next;
		recorder->sightings += sightings;
	}
	/* A thread that does not know yet that the clock was set reports times of the old clock. */
	bool known = member->epoch == atomic_load_explicit(&recorder->epoch, memory_order_relaxed);
	if (passed_ns > member->passed_ns && (known || passed_ns == INT64_MAX))
		member->passed_ns = passed_ns;
	if (first || news || must_wait(member)) {
		wake = !recorder->signalled;
		recorder->signalled = true;
	}
	pthread_mutex_unlock(&recorder->lock);
	if (wake)
		ow_recorder_signal(recorder);
	pthread_mutex_lock(&recorder->lock);
	while (must_wait(member))
		pthread_cond_wait(&recorder->taken, &recorder->lock);
	pthread_mutex_unlock(&recorder->lock);
}

void ow_drops_join(struct ow_drops *sum, const struct ow_drops *more)
{
	if (more->frames == 0)
		return;
	if (sum->frames == 0 || more->from_ns < sum->from_ns)
		sum->from_ns = more->from_ns;
	if (sum->frames == 0 || more->until_ns > sum->until_ns)
		sum->until_ns = more->until_ns;
	sum->frames += more->frames;
}

void ow_outage_join(struct ow_outage *sum, const struct ow_outage *more)
{
	struct ow_outage first = *sum;
	*sum = *more;
	sum->from_ns = first.from_ns < more->from_ns ? first.from_ns : more->from_ns;
	sum->until_ns = first.until_ns > more->until_ns ? first.until_ns : more->until_ns;
}

/* To be called before the passed time is reported. */
static void note_outage(struct ow_recorder_member *member, const struct ow_outage *outage)
{
	pthread_mutex_lock(&member->recorder->lock);
	if (member->was_away)
		ow_outage_join(&member->outage, outage);
	else
		member->outage = *outage;
	member->was_away = true;
	pthread_mutex_unlock(&member->recorder->lock);
}

/*
 * Determines when frames were dropped. The kernel dropped them between the last query and now, which may be long after
 * the frames that are being read. Frames dropped because memory ran out are among those read since then.
 */
static void note_drops(struct ow_recorder_member *member, uint64_t dropped, int64_t began_ns, int64_t passed_ns)
{
	int64_t now_ns = ow_iface_now_ns(member->live);
	struct ow_drops drops = {
		.frames = dropped - member->counted, .from_ns = member->counted_ns, .until_ns = now_ns};
	if (member->sure_ns < drops.from_ns)
		drops.from_ns = member->sure_ns;
	/* The clock was set back. */
	if (drops.from_ns > now_ns)
		drops.from_ns = now_ns;
	member->counted = dropped;
	member->counted_ns = began_ns;
	member->sure_ns = passed_ns;
	if (drops.frames == 0)
		return;
	pthread_mutex_lock(&member->recorder->lock);
	ow_drops_join(&member->drops, &drops);
	pthread_mutex_unlock(&member->recorder->lock);
}

/* passed_ns: the lane recorder has all frames before it; for a file these are not all that were read. */
static void tell_counts(struct ow_recorder_member *member, int64_t passed_ns)
{
	struct ow_iface_counts live;
	const struct ow_lane_recorder_counts *recorded = ow_lane_recorder_counts(member->lane_recorder);
	int64_t began_ns = ow_iface_now_ns(member->live);
	ow_iface_counts(member->live, &live);
	note_drops(member, live.dropped + recorded->lost, began_ns, passed_ns);
	atomic_store_explicit(&member->frames, live.frames - member->filtered, memory_order_relaxed);
	atomic_store_explicit(&member->dropped, live.dropped + recorded->lost, memory_order_relaxed);
	for (int i = 0; i < OW_STAMPERS; i++)
		atomic_store_explicit(&member->stamped[i], live.stamped[i], memory_order_relaxed);
	atomic_store_explicit(&member->not_ip, recorded->not_ip, memory_order_relaxed);
	atomic_store_explicit(&member->unclaimed, recorded->unclaimed, memory_order_relaxed);
}

/*
 * The lane recorder has all frames before passed_ns. At the end of an interval, and otherwise after a while, hands over
 * all chunks and this time: whoever stops in the middle of an interval has all packets until then. In between it hands
 * over full chunks.
 */
static void advance(struct ow_recorder_member *member, int64_t passed_ns)
{
	bool ended = passed_ns >= member->boundary_ns;
	int64_t now_ns = ow_clock_steady_ns();
	bool due = now_ns - member->handed_ns >= OW_CHUNK_MS * OW_NS_PER_MS;
	if (!ended && !due) {
		if (ow_lane_recorder_ready(member->lane_recorder))
			hand_on(member, member->told_ns, false);
		return;
	}
	ow_lane_recorder_finish(member->lane_recorder, INT64_MAX);
	member->handed_ns = now_ns;
	/* Includes losses because memory just ran out: they must be reported before the interval counts as complete. */
	tell_counts(member, passed_ns);
	if (ended)
		member->boundary_ns = ow_lane_recorder_boundary(member->lane_recorder, passed_ns);
	hand_on(member, passed_ns, ended);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* frames: number of frames that were read and not recorded yet. */
static void take_up_lanes(struct ow_recorder_member *member, unsigned frames)
{
	struct ow_recorder *recorder = member->recorder;
	const struct ow_lane_table *table = atomic_load_explicit(&recorder->lanes.newest, memory_order_acquire);
	if (table->generation == member->generation)
		return;
	if (ow_lane_recorder_take_up(member->lane_recorder, table) < 0) {
		/* Out of memory: keeps the previous table, and tries again with the next frames. New lanes miss these
		 * frames. */
		ow_lane_recorder_miss(member->lane_recorder, frames);
		tell_counts(member, member->sure_ns);
		return;
	}
	member->generation = table->generation;
	member->boundary_ns = ow_lane_recorder_boundary(member->lane_recorder, member->told_ns);
	member->lead_ns = table->count ? REPLAY_INTERVALS * OW_INTERVAL_MAX_NS : REPLAY_LEAD_NS;
	for (uint32_t i = 0; i < table->count; i++) {
		int64_t lead_ns = REPLAY_INTERVALS * table->entry[i].lane->length_ns;
		member->lead_ns = lead_ns < member->lead_ns ? lead_ns : member->lead_ns;
	}
	if (ow_iface_lead_ns(member->live) != INT64_MAX)
		member->lead_ns = ow_iface_lead_ns(member->live);
	atomic_store_explicit(&member->using, table->generation, memory_order_release);
}

/*
 * Records frames of a file, which may span many intervals: reports the end of each interval as soon as no frame before
 * it is left.
 */
static void record_file(struct ow_recorder_member *member, unsigned count, int64_t passed_ns)
{
	int64_t earliest_ns[OW_RECORDER_BATCH];
	for (unsigned i = count; i-- > 0;) {
		int64_t time_ns = member->frame[i].frame.time_ns;
		earliest_ns[i] = time_ns < passed_ns ? time_ns : passed_ns;
		passed_ns = earliest_ns[i];
	}
	unsigned from = 0;
	for (unsigned i = 0; i < count; i++) {
		if (earliest_ns[i] < member->boundary_ns)
			continue;
		ow_lane_recorder_frames(member->lane_recorder, &member->frame[from], i - from);
		from = i;
		advance(member, earliest_ns[i]);
	}
	ow_lane_recorder_frames(member->lane_recorder, &member->frame[from], count - from);
}

/* Handles that the source has ended or failed. */
static void finish(struct ow_recorder_member *member, int result, const struct ow_error *err)
{
	struct ow_recorder *recorder = member->recorder;
	int64_t passed_ns = ow_iface_passed_ns(member->live);
	ow_lane_recorder_finish(member->lane_recorder, INT64_MAX);
	tell_counts(member, passed_ns);
	/* A file that was replayed has passed all times. */
	bool more = passed_ns != INT64_MAX && passed_ns > member->told_ns;
	struct ow_outage outage = {.from_ns = more ? passed_ns : member->told_ns, .until_ns = INT64_MAX};
	snprintf(outage.cause, sizeof outage.cause, "%.48s %s", recorder->name[member->source],
	         result == -ENODATA ? "has ended" : "cannot be read any more");
	note_outage(member, &outage);
	pthread_mutex_lock(&recorder->lock);
	member->ended = true;
	/* If a file is truncated or damaged, err says so at its end. */
	if (result != -ENODATA || err->text[0]) {
		member->failed = result == -ENODATA ? -EIO : result;
		member->err = *err;
	}
	pthread_mutex_unlock(&recorder->lock);
	hand_on(member, INT64_MAX, true);
}

/* To be called before reading: then what is read is by the clock of this generation, or is known to be older. */
static void note_epoch(struct ow_recorder_member *member)
{
	uint64_t epoch = atomic_load_explicit(&member->recorder->epoch, memory_order_acquire);
	if (epoch == member->epoch)
		return;
	member->epoch = epoch;
	member->told_ns = INT64_MIN;
	member->boundary_ns = ow_lane_recorder_boundary(member->lane_recorder, INT64_MIN);
}

/* An epoch must know what happened to it before it ends. Drops are read from the kernel then, because that takes a call. */
static void tell_flaws(struct ow_recorder_member *member, size_t count, int64_t passed_ns)
{
	struct ow_iface_counts live;
	bool due = false;
	if (count && member->frame[count - 1].frame.time_ns > passed_ns)
		passed_ns = member->frame[count - 1].frame.time_ns;
	for (unsigned i = 0; i < member->taps; i++)
		due = due || ow_flow_thread_due(member->tap[i], passed_ns);
	if (member->tap_epoch != member->epoch)
		member->tap_flaws |= OW_EPOCH_CLOCK_SET;
	member->tap_epoch = member->epoch;
	if (due) {
		ow_iface_counts(member->live, &live);
		member->tap_flaws |= live.dropped != member->tap_dropped ? OW_EPOCH_MISSED : 0;
		member->tap_dropped = live.dropped;
	}
	for (unsigned i = 0; member->tap_flaws && i < member->taps; i++)
		ow_flow_thread_flaw(member->tap[i], member->tap_flaws);
	member->tap_flaws = 0;
}

static void record_flows(struct ow_recorder_member *member, size_t count, int64_t passed_ns)
{
	if (member->sampler) {
		ow_sampler_clock(member->sampler, member->epoch);
		ow_sampler_frames(member->sampler, member->frame, count);
		ow_sampler_pass(member->sampler, passed_ns,
		                atomic_load_explicit(&member->dropped, memory_order_relaxed));
	}
	if (member->taps)
		tell_flaws(member, count, passed_ns);
	for (unsigned i = 0; i < member->taps; i++) {
		ow_flow_thread_frames(member->tap[i], member->frame, count);
		ow_flow_thread_pass(member->tap[i], passed_ns);
	}
}

/* Keeps the frames that match the source's filter. Returns how many. */
static int filter_frames(struct ow_recorder_member *member, int count)
{
	int kept = 0;
	if (!member->filter.program.bf_insns)
		return count;
	for (int i = 0; i < count; i++) {
		if (!ow_packet_filter_takes(&member->filter, &member->frame[i].frame))
			continue;
		if (kept < i)
			member->frame[kept] = member->frame[i];
		kept++;
	}
	member->filtered += (uint64_t)(count > kept ? count - kept : 0);
	return kept;
}

void *ow_recorder_run(void *arg)
{
	struct ow_recorder_member *member = arg;
	struct ow_recorder *recorder = member->recorder;
	struct ow_error err = {{0}};
	struct ow_outage outage;
	pthread_mutex_lock(&recorder->lock);
	while (must_wait(member))
		pthread_cond_wait(&recorder->taken, &recorder->lock);
	pthread_mutex_unlock(&recorder->lock);
	member->handed_ns = ow_clock_steady_ns();
	while (!atomic_load_explicit(&recorder->stop, memory_order_relaxed)) {
		note_epoch(member);
		int n = ow_iface_read(member->live, WAIT_MS, member->frame, OW_RECORDER_BATCH, &err);
		if (ow_iface_outage(member->live, &outage)) {
			note_outage(member, &outage);
			member->tap_flaws |= OW_EPOCH_MISSED;
		}
		if (n > 0)
			n = filter_frames(member, n);
		/* After reading, so that a lane does not miss a frame that was timestamped after the lane was added. */
		take_up_lanes(member, n > 0 ? (unsigned)n : 0);
		/* Lanes that were added after the clock was set do not get what was read before. */
		if (n == -EINTR ||
		    (n >= 0 && member->epoch != atomic_load_explicit(&recorder->epoch, memory_order_acquire)))
			continue;
		if (n < 0) {
			finish(member, n, &err);
			break;
		}
		int64_t passed_ns = ow_iface_passed_ns(member->live);
		record_flows(member, (size_t)n, passed_ns);
		if (member->file)
			record_file(member, (unsigned)n, passed_ns);
		else
			ow_lane_recorder_frames(member->lane_recorder, member->frame, (size_t)n);
		advance(member, passed_ns);
	}
	record_flows(member, 0, INT64_MAX);
	/* Free it here, because the tables that it uses may be freed now. */
	ow_lane_recorder_free(member->lane_recorder);
	member->lane_recorder = NULL;
	atomic_store_explicit(&member->using, UINT64_MAX, memory_order_release);
	return NULL;
}
