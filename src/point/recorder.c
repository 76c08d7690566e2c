/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a recorder, and how chunks come from them to the one that takes them: a list under a mutex, which a
 * thread locks once for many chunks, and an event descriptor. What a thread does with frames is in scribe.c.
 *
 * A thread that is not kept up with waits: the ring of its interface fills, and the kernel counts what it drops. Files
 * wait for their reader early, and so for each other: few intervals are open at a time however fast they are read.
 */
#include "point/recorder.h"

#include "base/clock.h"
#include "base/time.h"
#include "point/flow_tap.h"
#include "point/scribe.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define OW_RECORDER_BATCH 256 /* frames read at a time */
/* Results must come soon after the end of an interval: how long a thread waits for a frame before it looks at the time.
 */
#define OW_RECORDER_WAIT_MS     OW_LIVE_BLOCK_MS
#define OW_RECORDER_THREADS_MAX 64u /* of a source */
#define OW_RECORDER_MEMBERS_MAX (OW_SOURCES_MAX * OW_RECORDER_THREADS_MAX)
#define OW_RECORDER_STAMPS_MAX  (UINT64_C(4) << 20) /* that wait to be taken: 64 MB */
#define OW_REPLAY_INTERVALS     4                   /* by which a file may be ahead of what its reader knows */
#define OW_REPLAY_LEAD_NS       OW_NS_PER_S         /* the same without lanes */

struct member { /* one thread */
	struct ow_recorder *recorder;
	unsigned source;
	bool file;
	struct ow_live *live;
	pthread_t thread;
	bool runs;
	struct ow_live_frame frame[OW_RECORDER_BATCH];

	/* The thread's own. */
	struct ow_scribe *scribe;
	struct ow_flow_tap *tap[OW_RECORDER_TAPS_MAX];
	unsigned taps;
	uint64_t generation;
	uint64_t epoch;      /* of the clock when the frames at hand were read, or an earlier one */
	int64_t told_ns;     /* the time that was handed on last, by the clock of this epoch */
	int64_t boundary_ns; /* the end of some interval: there the reader must hear of the time */
	int64_t lead_ns;     /* files: how far it may be ahead */
	int64_t handed_ns;   /* when it last handed on, steady clock */
	int64_t counted_ns;  /* the source's clock before the kernel was last asked for drops */
	int64_t sure_ns;     /* the time that it had passed then */
	uint64_t counted;    /* drops until then */

	/* Under the recorder's lock. */
	int64_t passed_ns;
	struct ow_drops drops; /* not taken yet */
	int failed;            /* negative errno that was not told yet */
	struct ow_error err;

	_Atomic uint64_t using; /* generation of the table in use */
	_Atomic uint64_t frames, dropped, stamped[OW_STAMPERS], not_ip, unclaimed;
};

struct ow_recorder {
	unsigned sources, members;
	uint16_t linktype[OW_SOURCES_MAX];
	char *name[OW_SOURCES_MAX];
	struct member *member[OW_RECORDER_MEMBERS_MAX];
	struct ow_lanes lanes;
	int event_fd;
	atomic_bool stop;
	_Atomic uint64_t epoch; /* counts the times that the clock was set; changed under the lock */

	pthread_mutex_t lock;
	pthread_cond_t taken; /* or the end */
	bool started;         /* files wait for the first take, so that lanes can be there before */
	bool signalled;
	struct ow_chunk *first, **end;
	uint64_t stamps;  /* in the list */
	int64_t heard_ns; /* the time of the last take */
};

/* Handing on. */

static void signal_reader(struct ow_recorder *recorder)
{
	static const uint64_t one = 1;
	/* It fails only where the counter is full: readable as well. */
	while (write(recorder->event_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static uint64_t stamps_of(const struct ow_chunk *chunk)
{
	uint64_t stamps = 0;
	for (; chunk; chunk = chunk->next)
		stamps += chunk->count + 1; /* an empty one takes memory as well */
	return stamps;
}

/*
 * Is a file further than the reader knows by too much? The one that is last goes on as soon as it has been heard, so
 * that files in one recorder stay together, too.
 */
static bool ahead(const struct member *member)
{
	int64_t heard_ns = member->recorder->heard_ns;
	return member->passed_ns != INT64_MAX && heard_ns < INT64_MAX / 2 &&
	       member->passed_ns > heard_ns + member->lead_ns;
}

static bool must_wait(const struct member *member)
{
	const struct ow_recorder *recorder = member->recorder;
	if (atomic_load_explicit(&recorder->stop, memory_order_relaxed))
		return false;
	if (member->file && (!recorder->started || ahead(member)))
		return true;
	return recorder->stamps > OW_RECORDER_STAMPS_MAX;
}

/* Hands on what the scribe has put aside; then the time up to which that is all; wakes the reader if there is news. */
static void hand_on(struct member *member, int64_t passed_ns, bool news)
{
	struct ow_recorder *recorder = member->recorder;
	struct ow_chunk *last, *first = ow_scribe_take(member->scribe, &last);
	uint64_t stamps = stamps_of(first);
	bool wake = false;
	member->told_ns = passed_ns;
	pthread_mutex_lock(&recorder->lock);
	if (first) {
		*recorder->end = first;
		recorder->end = &last->next;
		recorder->stamps += stamps;
	}
	/* What a thread says that does not know yet that the clock was set is of the time before. */
	bool known = member->epoch == atomic_load_explicit(&recorder->epoch, memory_order_relaxed);
	if (passed_ns > member->passed_ns && (known || passed_ns == INT64_MAX))
		member->passed_ns = passed_ns;
	if (first || news || must_wait(member)) {
		wake = !recorder->signalled;
		recorder->signalled = true;
	}
	pthread_mutex_unlock(&recorder->lock);
	if (wake)
		signal_reader(recorder);
	pthread_mutex_lock(&recorder->lock);
	while (must_wait(member))
		pthread_cond_wait(&recorder->taken, &recorder->lock);
	pthread_mutex_unlock(&recorder->lock);
}

static void join_drops(struct ow_drops *sum, const struct ow_drops *more)
{
	if (more->frames == 0)
		return;
	if (sum->frames == 0 || more->from_ns < sum->from_ns)
		sum->from_ns = more->from_ns;
	if (sum->frames == 0 || more->until_ns > sum->until_ns)
		sum->until_ns = more->until_ns;
	sum->frames += more->frames;
}

/*
 * When they were dropped: by the kernel after it was last asked and until now, which may be long after the frames that
 * are being read; for want of memory among those that were read since then.
 */
static void note_drops(struct member *member, uint64_t dropped, int64_t began_ns, int64_t passed_ns)
{
	int64_t now_ns = ow_live_now_ns(member->live);
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
	join_drops(&member->drops, &drops);
	pthread_mutex_unlock(&member->recorder->lock);
}

/* passed_ns: all frames before are with the scribe, which of a file is not all that was read. */
static void tell_counts(struct member *member, int64_t passed_ns)
{
	struct ow_live_counts live;
	const struct ow_scribe_counts *scribe = ow_scribe_counts(member->scribe);
	int64_t began_ns = ow_live_now_ns(member->live);
	ow_live_counts(member->live, &live);
	note_drops(member, live.dropped + scribe->lost, began_ns, passed_ns);
	atomic_store_explicit(&member->frames, live.frames, memory_order_relaxed);
	atomic_store_explicit(&member->dropped, live.dropped + scribe->lost, memory_order_relaxed);
	for (int i = 0; i < OW_STAMPERS; i++)
		atomic_store_explicit(&member->stamped[i], live.stamped[i], memory_order_relaxed);
	atomic_store_explicit(&member->not_ip, scribe->not_ip, memory_order_relaxed);
	atomic_store_explicit(&member->unclaimed, scribe->unclaimed, memory_order_relaxed);
}

/* All frames before passed_ns are with the scribe: hands on what is complete, or has waited for long. */
static void advance(struct member *member, int64_t passed_ns)
{
	bool ended = passed_ns >= member->boundary_ns;
	int64_t now_ns = ow_clock_steady_ns();
	bool due = now_ns - member->handed_ns >= OW_CHUNK_MS * OW_NS_PER_MS;
	if (!ended && !due && !member->file && !ow_scribe_ready(member->scribe))
		return;
	if (ended)
		ow_scribe_finish(member->scribe, passed_ns);
	if (due) {
		ow_scribe_finish(member->scribe, INT64_MAX);
		member->handed_ns = now_ns;
	}
	/* With what there was no memory for just now: before anybody hears that the interval is complete. */
	if (due || ended)
		tell_counts(member, passed_ns);
	if (ended)
		member->boundary_ns = ow_scribe_boundary(member->scribe, passed_ns);
	hand_on(member, passed_ns, ended);
}

/* The thread. */

/* frames: that were read and not recorded yet. */
static void take_up_lanes(struct member *member, unsigned frames)
{
	struct ow_recorder *recorder = member->recorder;
	const struct ow_lane_table *table = atomic_load_explicit(&recorder->lanes.newest, memory_order_acquire);
	if (table->generation == member->generation)
		return;
	if (ow_scribe_take_up(member->scribe, table) < 0) {
		/* Out of memory: the one before, and again with the next frames. New lanes miss these. */
		ow_scribe_miss(member->scribe, frames);
		tell_counts(member, member->sure_ns);
		return;
	}
	member->generation = table->generation;
	member->boundary_ns = ow_scribe_boundary(member->scribe, member->told_ns);
	member->lead_ns = table->count ? OW_REPLAY_INTERVALS * OW_INTERVAL_MAX_NS : OW_REPLAY_LEAD_NS;
	for (uint32_t i = 0; i < table->count; i++) {
		int64_t lead_ns = OW_REPLAY_INTERVALS * table->entry[i].lane->length_ns;
		member->lead_ns = lead_ns < member->lead_ns ? lead_ns : member->lead_ns;
	}
	atomic_store_explicit(&member->using, table->generation, memory_order_release);
}

/*
 * Frames of a file, which may span many intervals: as soon as no frame before the end of an interval is left, the
 * reader hears of it.
 */
static void record_file(struct member *member, unsigned count, int64_t passed_ns)
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
		ow_scribe_frames(member->scribe, &member->frame[from], i - from);
		from = i;
		advance(member, earliest_ns[i]);
	}
	ow_scribe_frames(member->scribe, &member->frame[from], count - from);
}

/* The source has ended, or failed. */
static void finish(struct member *member, int result, const struct ow_error *err)
{
	struct ow_recorder *recorder = member->recorder;
	ow_scribe_finish(member->scribe, INT64_MAX);
	tell_counts(member, ow_live_passed_ns(member->live));
	/* A file that ends early says so at its end. */
	if (result != -ENODATA || err->text[0]) {
		pthread_mutex_lock(&recorder->lock);
		member->failed = result == -ENODATA ? -EIO : result;
		member->err = *err;
		pthread_mutex_unlock(&recorder->lock);
	}
	hand_on(member, INT64_MAX, true);
}

/* Before reading: then what is read is of the clock as it was set, or says that it is older. */
static void note_epoch(struct member *member)
{
	uint64_t epoch = atomic_load_explicit(&member->recorder->epoch, memory_order_acquire);
	if (epoch == member->epoch)
		return;
	member->epoch = epoch;
	member->told_ns = INT64_MIN;
	member->boundary_ns = ow_scribe_boundary(member->scribe, INT64_MIN);
}

static void record_flows(struct member *member, size_t count, int64_t passed_ns)
{
	for (unsigned i = 0; i < member->taps; i++) {
		ow_flow_tap_frames(member->tap[i], member->frame, count);
		ow_flow_tap_pass(member->tap[i], passed_ns);
	}
}

static void *run(void *arg)
{
	struct member *member = arg;
	struct ow_recorder *recorder = member->recorder;
	struct ow_error err = {{0}};
	pthread_mutex_lock(&recorder->lock);
	while (must_wait(member))
		pthread_cond_wait(&recorder->taken, &recorder->lock);
	pthread_mutex_unlock(&recorder->lock);
	member->handed_ns = ow_clock_steady_ns();
	while (!atomic_load_explicit(&recorder->stop, memory_order_relaxed)) {
		note_epoch(member);
		int n = ow_live_read(member->live, OW_RECORDER_WAIT_MS, member->frame, OW_RECORDER_BATCH, &err);
		/* After reading: a lane that was there before a frame was stamped does not miss it. */
		take_up_lanes(member, n > 0 ? (unsigned)n : 0);
		/* Lanes that came with another clock have none of what was read before. */
		if (n == -EINTR ||
		    (n >= 0 && member->epoch != atomic_load_explicit(&recorder->epoch, memory_order_acquire)))
			continue;
		if (n < 0) {
			finish(member, n, &err);
			break;
		}
		int64_t passed_ns = ow_live_passed_ns(member->live);
		record_flows(member, (size_t)n, passed_ns);
		if (member->file)
			record_file(member, (unsigned)n, passed_ns);
		else
			ow_scribe_frames(member->scribe, member->frame, (size_t)n);
		advance(member, passed_ns);
	}
	record_flows(member, 0, INT64_MAX);
	/* Here, because the tables that it knows may go now. */
	ow_scribe_free(member->scribe);
	member->scribe = NULL;
	atomic_store_explicit(&member->using, UINT64_MAX, memory_order_release);
	return NULL;
}

/* Control. */

static void member_free(struct member *member)
{
	if (!member)
		return;
	ow_scribe_free(member->scribe);
	for (unsigned i = 0; i < member->taps; i++)
		ow_flow_tap_free(member->tap[i]);
	ow_live_close(member->live);
	free(member);
}

void ow_recorder_free(struct ow_recorder *recorder)
{
	if (!recorder)
		return;
	pthread_mutex_lock(&recorder->lock);
	atomic_store(&recorder->stop, true);
	pthread_cond_broadcast(&recorder->taken);
	pthread_mutex_unlock(&recorder->lock);
	for (unsigned i = 0; i < recorder->members; i++) {
		if (!recorder->member[i]->runs)
			continue;
		ow_live_interrupt(recorder->member[i]->live);
		pthread_join(recorder->member[i]->thread, NULL);
	}
	for (unsigned i = 0; i < recorder->members; i++)
		member_free(recorder->member[i]);
	for (struct ow_chunk *chunk = recorder->first, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	ow_lanes_done(&recorder->lanes);
	for (unsigned i = 0; i < recorder->sources; i++)
		free(recorder->name[i]);
	if (recorder->event_fd >= 0)
		close(recorder->event_fd);
	pthread_cond_destroy(&recorder->taken);
	pthread_mutex_destroy(&recorder->lock);
	free(recorder);
}

/* Opens one more thread's share of a source. */
static int add_member(struct ow_recorder *recorder, const struct ow_live_options *options, unsigned source,
                      struct ow_error *err)
{
	struct member *member = calloc(1, sizeof *member);
	if (!member)
		return -ENOMEM;
	int r = ow_live_open(options, &member->live, err);
	if (r == 0)
		r = ow_scribe_create(source, ow_live_linktype(member->live), &member->scribe);
	if (r < 0) {
		member_free(member);
		return r;
	}
	member->recorder = recorder;
	member->source = source;
	member->file = strcmp(ow_live_kind_name(member->live), "file") == 0;
	member->generation = UINT64_MAX;
	member->boundary_ns = INT64_MAX;
	member->passed_ns = member->told_ns = INT64_MIN;
	/* Lanes come later. */
	member->counted_ns = member->sure_ns = ow_live_now_ns(member->live);
	recorder->member[recorder->members++] = member;
	return 0;
}

/* Sources that share an interface do so by a number that nobody else should have. */
static uint16_t fanout_number(void)
{
	uint16_t number = 0;
	while (number == 0) {
		if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
			number = (uint16_t)(getpid() | 1);
	}
	return number;
}

static int add_source(struct ow_recorder *recorder, const struct ow_source_options *options, struct ow_error *err)
{
	unsigned source = recorder->sources, threads = options->threads ? options->threads : 1;
	struct ow_live_options live = options->live;
	if (threads > OW_RECORDER_THREADS_MAX)
		return ow_error_set(err, EINVAL, "%s: %u threads are more than %u", live.name, threads,
		                    OW_RECORDER_THREADS_MAX);
	recorder->name[source] = strdup(live.name);
	if (!recorder->name[source])
		return -ENOMEM;
	recorder->sources++;
	if (threads > 1 && live.fanout == 0)
		live.fanout = fanout_number();
	for (unsigned i = 0; i < threads; i++) {
		int r = add_member(recorder, &live, source, err);
		if (r < 0)
			return r;
		if (recorder->member[recorder->members - 1]->file)
			break;
	}
	recorder->linktype[source] = ow_live_linktype(recorder->member[recorder->members - 1]->live);
	return 0;
}

/* Signals are for the other threads. */
static int start(struct ow_recorder *recorder)
{
	sigset_t all, before;
	int r = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (unsigned i = 0; i < recorder->members && r == 0; i++) {
		r = pthread_create(&recorder->member[i]->thread, NULL, run, recorder->member[i]);
		recorder->member[i]->runs = r == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int ow_recorder_open(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                     struct ow_error *err)
{
	if (count == 0 || count > OW_SOURCES_MAX)
		return ow_error_set(err, EINVAL, "a point has 1 to %d sources", OW_SOURCES_MAX);
	struct ow_recorder *recorder = calloc(1, sizeof *recorder);
	if (!recorder)
		return ow_error_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&recorder->lock, NULL);
	pthread_cond_init(&recorder->taken, NULL);
	recorder->end = &recorder->first;
	recorder->heard_ns = INT64_MIN;
	/* Readable from the start: the first take lets files go. */
	recorder->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	recorder->signalled = true;
	int r = 0;
	if (recorder->event_fd < 0)
		r = ow_error_set(err, errno, "cannot make an event descriptor: %s", strerror(errno));
	for (unsigned i = 0; i < count && r == 0; i++)
		r = add_source(recorder, &sources[i], err);
	if (r == 0)
		r = ow_lanes_init(&recorder->lanes, recorder->linktype, (const char *const *)recorder->name, count);
	if (r == -ENOMEM)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		ow_recorder_free(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

int ow_recorder_add_tap(struct ow_recorder *recorder, const struct ow_flow_tap_options *options, struct ow_error *err)
{
	for (unsigned i = 0; i < recorder->members; i++) {
		struct member *member = recorder->member[i];
		if (!(options->sources >> member->source & 1))
			continue;
		if (member->taps == OW_RECORDER_TAPS_MAX)
			return ow_error_set(err, EINVAL, "more than %d recordings of flows", OW_RECORDER_TAPS_MAX);
		int r = ow_flow_tap_create(recorder->name[member->source], recorder->linktype[member->source], options,
		                           &member->tap[member->taps], err);
		if (r < 0)
			return r;
		member->taps++;
	}
	return 0;
}

int ow_recorder_start(struct ow_recorder *recorder, struct ow_error *err)
{
	int r = start(recorder);
	return r < 0 ? ow_error_set(err, -r, "cannot start a thread: %s", strerror(-r)) : 0;
}

int ow_recorder_create(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                       struct ow_error *err)
{
	struct ow_recorder *recorder;
	int r = ow_recorder_open(sources, count, &recorder, err);
	if (r < 0)
		return r;
	r = ow_recorder_start(recorder, err);
	if (r < 0)
		ow_recorder_free(recorder);
	else
		*ret_recorder = recorder;
	return r;
}

/* Frees the tables of lanes that no thread uses any more. */
static void reclaim(struct ow_recorder *recorder)
{
	uint64_t oldest = UINT64_MAX;
	for (unsigned i = 0; i < recorder->members; i++) {
		uint64_t used = atomic_load_explicit(&recorder->member[i]->using, memory_order_acquire);
		oldest = used < oldest ? used : oldest;
	}
	ow_lanes_reclaim(&recorder->lanes, oldest);
}

int ow_recorder_add_lane(struct ow_recorder *recorder, const struct ow_lane_options *options, uint32_t *ret_lane,
                         struct ow_error *err)
{
	reclaim(recorder);
	return ow_lanes_add(&recorder->lanes, options, ret_lane, err);
}

void ow_recorder_remove_lane(struct ow_recorder *recorder, uint32_t lane)
{
	reclaim(recorder);
	/* Without memory the threads go on with it, to no effect: its chunks are not handed out. */
	(void)ow_lanes_remove(&recorder->lanes, lane);
}

void ow_recorder_set_shift(struct ow_recorder *recorder, uint32_t lane, unsigned sample_shift)
{
	reclaim(recorder);
	/* Without memory it stays; the ledger thins out what comes. */
	(void)ow_lanes_set_shift(&recorder->lanes, lane, sample_shift);
}

void ow_recorder_clock_set(struct ow_recorder *recorder)
{
	pthread_mutex_lock(&recorder->lock);
	atomic_fetch_add_explicit(&recorder->epoch, 1, memory_order_release);
	for (unsigned i = 0; i < recorder->members; i++) {
		if (recorder->member[i]->passed_ns != INT64_MAX)
			recorder->member[i]->passed_ns = INT64_MIN;
	}
	pthread_mutex_unlock(&recorder->lock);
}

int ow_recorder_fd(const struct ow_recorder *recorder)
{
	return recorder->event_fd;
}

/* An error that was not told yet; then more of them are news. */
static int take_failure(struct ow_recorder *recorder, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; i < recorder->members; i++) {
		struct member *member = recorder->member[i];
		if (member->failed && r) {
			signal_reader(recorder);
			break;
		}
		if (member->failed) {
			r = member->failed;
			member->failed = 0;
			if (err)
				*err = member->err;
		}
	}
	return r;
}

/* Leaves out chunks of lanes that were removed meanwhile. */
static struct ow_chunk *of_lanes(struct ow_recorder *recorder, struct ow_chunk *chunk)
{
	struct ow_chunk *first = NULL, **end = &first;
	for (struct ow_chunk *next; chunk; chunk = next) {
		next = chunk->next;
		if (!ow_lanes_has(&recorder->lanes, chunk->lane)) {
			free(chunk);
			continue;
		}
		*end = chunk;
		end = &chunk->next;
	}
	*end = NULL;
	return first;
}

int ow_recorder_take(struct ow_recorder *recorder, struct ow_chunk **ret_chunks, int64_t *ret_passed_ns,
                     struct ow_error *err)
{
	uint64_t value;
	while (read(recorder->event_fd, &value, sizeof value) < 0 && errno == EINTR)
		;
	int64_t passed_ns = INT64_MAX;
	pthread_mutex_lock(&recorder->lock);
	struct ow_chunk *chunks = recorder->first;
	recorder->first = NULL;
	recorder->end = &recorder->first;
	recorder->stamps = 0;
	recorder->signalled = false;
	recorder->started = true;
	for (unsigned i = 0; i < recorder->members; i++) {
		struct member *member = recorder->member[i];
		if (member->passed_ns < passed_ns)
			passed_ns = member->passed_ns;
	}
	recorder->heard_ns = passed_ns;
	int r = take_failure(recorder, err);
	pthread_cond_broadcast(&recorder->taken);
	pthread_mutex_unlock(&recorder->lock);
	reclaim(recorder);
	*ret_chunks = of_lanes(recorder, chunks);
	*ret_passed_ns = passed_ns;
	return r;
}

int64_t ow_recorder_now_ns(const struct ow_recorder *recorder)
{
	int64_t now_ns = INT64_MAX;
	for (unsigned i = 0; i < recorder->members; i++) {
		int64_t its_ns = ow_live_now_ns(recorder->member[i]->live);
		now_ns = its_ns < now_ns ? its_ns : now_ns;
	}
	return now_ns;
}

void ow_recorder_counts(const struct ow_recorder *recorder, uint32_t source, struct ow_recorder_counts *ret_counts)
{
	struct ow_recorder_counts sum = {0};
	for (unsigned i = 0; i < recorder->members; i++) {
		const struct member *member = recorder->member[i];
		if (source != UINT32_MAX && source != member->source)
			continue;
		sum.frames += atomic_load_explicit(&member->frames, memory_order_relaxed);
		sum.dropped += atomic_load_explicit(&member->dropped, memory_order_relaxed);
		for (int k = 0; k < OW_STAMPERS; k++)
			sum.stamped[k] += atomic_load_explicit(&member->stamped[k], memory_order_relaxed);
		sum.not_ip += atomic_load_explicit(&member->not_ip, memory_order_relaxed);
		sum.unclaimed += atomic_load_explicit(&member->unclaimed, memory_order_relaxed);
	}
	*ret_counts = sum;
}

void ow_recorder_drops(struct ow_recorder *recorder, uint32_t source, struct ow_drops *ret_drops)
{
	struct ow_drops sum = {0};
	pthread_mutex_lock(&recorder->lock);
	for (unsigned i = 0; i < recorder->members; i++) {
		struct member *member = recorder->member[i];
		if (source != member->source)
			continue;
		join_drops(&sum, &member->drops);
		member->drops = (struct ow_drops){0};
	}
	pthread_mutex_unlock(&recorder->lock);
	*ret_drops = sum;
}
