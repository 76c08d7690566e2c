/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder: its sources, the threads that read them (recorder_thread.c), its lanes, and the functions of the thread
 * that takes the chunks.
 */
#include "record/recorder_private.h"

#include "base/thread.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

static void member_free(struct ow_recorder_member *member)
{
	if (!member)
		return;
	ow_lane_recorder_free(member->lane_recorder);
	for (unsigned i = 0; i < member->taps; i++)
		ow_flow_thread_free(member->tap[i]);
	ow_sampler_free(member->sampler);
	ow_packet_filter_done(&member->filter);
	ow_iface_close(member->live);
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
		ow_iface_interrupt(recorder->member[i]->live);
		pthread_join(recorder->member[i]->thread, NULL);
	}
	for (unsigned i = 0; i < recorder->members; i++)
		member_free(recorder->member[i]);
	for (struct ow_chunk *chunk = recorder->first, *next; chunk; chunk = next) {
		next = chunk->next;
		ow_chunk_free(chunk);
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

/* Opens a source for one more thread. */
static int add_member(struct ow_recorder *recorder, const struct ow_iface_options *options, unsigned source,
                      struct ow_error *err)
{
	struct ow_recorder_member *member = calloc(1, sizeof *member);
	if (!member) {
		ow_iface_close(options->stream);
		return -ENOMEM;
	}
	int r = ow_iface_open(options, &member->live, err);
	if (r == 0)
		r = ow_lane_recorder_create(source, &member->lane_recorder);
	if (r == 0 && options->filter)
		r = ow_packet_filter_compile(options->name, ow_iface_linktype(member->live), options->filter,
		                             &member->filter, err);
	if (r < 0) {
		member_free(member);
		return r;
	}
	member->recorder = recorder;
	member->source = source;
	member->cut = options->cut_tcp;
	member->file = ow_iface_lead_ns(member->live) != 0;
	member->generation = UINT64_MAX;
	member->boundary_ns = INT64_MAX;
	member->passed_ns = member->told_ns = INT64_MIN;
	/* Lanes are added later. */
	member->counted_ns = member->sure_ns = ow_iface_now_ns(member->live);
	recorder->member[recorder->members++] = member;
	return 0;
}

/* A random number for the fanout group, so that other programs do not use the same. */
static uint16_t fanout_number(void)
{
	uint16_t number = 0;
	while (number == 0) {
		if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
			number = (uint16_t)(getpid() | 1);
	}
	return number;
}

/* A thread for each stream. The ones behind one that fails are closed. */
static int add_streams(struct ow_recorder *recorder, struct ow_iface_options *live, const struct ow_streams *streams,
                       unsigned source, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; i < streams->parts; i++) {
		live->stream = streams->part[i];
		if (r == 0)
			r = add_member(recorder, live, source, err);
		else
			ow_iface_close(live->stream);
	}
	return r;
}

static int add_threads(struct ow_recorder *recorder, struct ow_iface_options *live, unsigned threads, unsigned source,
                       struct ow_error *err)
{
	if (threads > OW_RECORDER_THREADS_MAX)
		return ow_error_set(err, EINVAL, "%s: %u threads are more than %u", live->name, threads,
		                    OW_RECORDER_THREADS_MAX);
	live->threads = threads;
	if (threads > 1 && live->fanout == 0)
		live->fanout = fanout_number();
	for (unsigned i = 0; i < threads; i++) {
		int r = add_member(recorder, live, source, err);
		if (r < 0)
			return r;
		/* A file has one. */
		if (recorder->member[recorder->members - 1]->file)
			break;
	}
	return 0;
}

static int add_source(struct ow_recorder *recorder, const struct ow_source_options *options, struct ow_error *err)
{
	unsigned source = recorder->sources;
	struct ow_iface_options live = options->live;
	live.wait = true;
	recorder->name[source] = strdup(live.name);
	if (!recorder->name[source]) {
		ow_streams_close(&options->streams);
		return -ENOMEM;
	}
	recorder->sources++;
	int r = live.kind == OW_IFACE_STREAM
	                ? add_streams(recorder, &live, &options->streams, source, err)
	                : add_threads(recorder, &live, options->threads ? options->threads : 1, source, err);
	if (r == 0)
		recorder->linktype[source] = ow_iface_linktype(recorder->member[recorder->members - 1]->live);
	return r;
}

static int start(struct ow_recorder *recorder)
{
	int r = 0;
	for (unsigned i = 0; i < recorder->members && r == 0; i++) {
		r = ow_thread_start(&recorder->member[i]->thread, ow_recorder_run, recorder->member[i]);
		recorder->member[i]->runs = r == 0;
	}
	return r;
}

static int open_sources(struct ow_recorder *recorder, const struct ow_source_options *sources, unsigned count,
                        struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; i < count; i++) {
		if (r == 0)
			r = add_source(recorder, &sources[i], err);
		else
			ow_streams_close(&sources[i].streams);
	}
	if (r == 0)
		r = ow_lanes_init(&recorder->lanes, recorder->linktype, (const char *const *)recorder->name, count);
	return r;
}

int ow_recorder_open(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                     struct ow_error *err)
{
	if (count == 0 || count > OW_SOURCES_MAX)
		return ow_error_set(err, EINVAL, "a point has 1 to %d sources", OW_SOURCES_MAX);
	struct ow_recorder *recorder = calloc(1, sizeof *recorder);
	if (!recorder) {
		for (unsigned i = 0; i < count; i++)
			ow_streams_close(&sources[i].streams);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	pthread_mutex_init(&recorder->lock, NULL);
	pthread_cond_init(&recorder->taken, NULL);
	recorder->end = &recorder->first;
	recorder->heard_ns = INT64_MIN;
	/* Readable from the start, because files wait for the first take. */
	recorder->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	int reason = errno;
	recorder->signalled = true;
	int r = open_sources(recorder, sources, count, err);
	if (r == 0 && recorder->event_fd < 0)
		r = ow_error_set(err, reason, "cannot make an event descriptor: %s", strerror(reason));
	if (r == -ENOMEM)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		ow_recorder_free(recorder);
		return r;
	}
	*ret_recorder = recorder;
	return 0;
}

const char *ow_recorder_note(const struct ow_recorder *recorder, unsigned source)
{
	for (unsigned i = 0; i < recorder->members; i++) {
		if (recorder->member[i]->source == source)
			return ow_iface_note(recorder->member[i]->live);
	}
	return "";
}

bool ow_recorder_mixes(const struct ow_recorder *recorder, uint32_t sources, const char *ret_name[2])
{
	ret_name[0] = ret_name[1] = NULL;
	for (unsigned i = 0; i < recorder->members; i++) {
		const struct ow_recorder_member *member = recorder->member[i];
		if (sources >> member->source & 1 && !member->file)
			ret_name[strcmp(ow_iface_kind_name(member->live), "kernel") != 0] =
				recorder->name[member->source];
	}
	return ret_name[0] && ret_name[1];
}

const char *ow_recorder_undirected(const struct ow_recorder *recorder, uint32_t sources)
{
	for (unsigned i = 0; i < recorder->members; i++) {
		const struct ow_recorder_member *member = recorder->member[i];
		if (sources >> member->source & 1 && !ow_iface_tells_heading(member->live))
			return recorder->name[member->source];
	}
	return NULL;
}

int ow_recorder_add_tap(struct ow_recorder *recorder, const struct ow_flow_thread_options *options,
                        struct ow_error *err)
{
	const char *name = ow_recorder_undirected(recorder, options->sources);
	if (name && options->decoder.heading != OW_HEADING_UNKNOWN)
		return ow_error_set(err, EINVAL,
		                    "%s does not show the direction of packets: give a filter, not 'heading'", name);
	for (unsigned i = 0; i < recorder->members; i++) {
		struct ow_recorder_member *member = recorder->member[i];
		if (!(options->sources >> member->source & 1))
			continue;
		if (member->taps == OW_RECORDER_TAPS_MAX)
			return ow_error_set(err, EINVAL, "more than %d recordings of flows", OW_RECORDER_TAPS_MAX);
		int r = ow_flow_thread_create(recorder->name[member->source], recorder->linktype[member->source],
		                              options, &member->tap[member->taps], err);
		if (r < 0)
			return r;
		member->taps++;
	}
	return 0;
}

int ow_recorder_add_sampler(struct ow_recorder *recorder, const struct ow_sampler_options *options,
                            struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; i < recorder->members && r == 0; i++) {
		struct ow_recorder_member *member = recorder->member[i];
		if (!member->sampler)
			r = ow_sampler_create(options, member->source, ow_iface_tells_heading(member->live),
			                      &member->sampler, err);
	}
	return r;
}

/* Whether something examines the payload of TCP packets of a source. */
static bool needs_payload(const struct ow_recorder *recorder, unsigned source)
{
	for (unsigned i = 0; i < recorder->members; i++) {
		const struct ow_recorder_member *member = recorder->member[i];
		if (member->source == source && (member->taps || ow_packet_filter_needs_payload(&member->filter)))
			return true;
	}
	return ow_lanes_need_payload(&recorder->lanes, source);
}

/* Sources deliver only the headers of TCP packets, if no lane needs more. */
static int cut_sources(struct ow_recorder *recorder, struct ow_error *err)
{
	for (unsigned i = 0; i < recorder->members; i++) {
		struct ow_recorder_member *member = recorder->member[i];
		bool cut = !needs_payload(recorder, member->source);
		if (cut == member->cut)
			continue;
		int r = ow_iface_cut_tcp(member->live, cut, err);
		if (r < 0)
			return r;
		member->cut = cut;
	}
	return 0;
}

int ow_recorder_start(struct ow_recorder *recorder, struct ow_error *err)
{
	int r = cut_sources(recorder, err);
	if (r < 0)
		return r;
	r = start(recorder);
	return r < 0 ? ow_error_set(err, -r, "cannot start a thread: %s", strerror(-r)) : 0;
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
	int r = ow_lanes_add(&recorder->lanes, options, ret_lane, err);
	if (r < 0)
		return r;
	r = cut_sources(recorder, err);
	if (r < 0)
		(void)ow_lanes_remove(&recorder->lanes, *ret_lane);
	return r;
}

void ow_recorder_remove_lane(struct ow_recorder *recorder, uint32_t lane)
{
	reclaim(recorder);
	/* If out of memory, the threads continue to record the lane, but its chunks are not returned. */
	(void)ow_lanes_remove(&recorder->lanes, lane);
	/* If it fails, whole frames do no harm. */
	(void)cut_sources(recorder, NULL);
}

void ow_recorder_set_shift(struct ow_recorder *recorder, uint32_t lane, unsigned sample_shift)
{
	reclaim(recorder);
	/* If out of memory, the shift stays; the interval log reduces the packets to the sample. */
	(void)ow_lanes_set_shift(&recorder->lanes, lane, sample_shift);
}

int ow_recorder_set_cuts(struct ow_recorder *recorder, uint32_t lane, const struct ow_interval_cuts *cuts)
{
	reclaim(recorder);
	return ow_lanes_set_cuts(&recorder->lanes, lane, cuts);
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

/* Returns an error that was not reported yet, once. */
static int take_failure(struct ow_recorder *recorder, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; i < recorder->members; i++) {
		struct ow_recorder_member *member = recorder->member[i];
		if (member->failed && r) {
			ow_recorder_signal(recorder);
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

/* Removes chunks of lanes that were removed meanwhile. */
static struct ow_chunk *of_lanes(struct ow_recorder *recorder, struct ow_chunk *chunk)
{
	struct ow_chunk *first = NULL, **end = &first;
	for (struct ow_chunk *next; chunk; chunk = next) {
		next = chunk->next;
		if (!ow_lanes_has(&recorder->lanes, chunk->lane)) {
			ow_chunk_free(chunk);
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
	recorder->sightings = 0;
	recorder->signalled = false;
	recorder->started = true;
	for (unsigned i = 0; i < recorder->members; i++) {
		struct ow_recorder_member *member = recorder->member[i];
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
		int64_t its_ns = ow_iface_now_ns(recorder->member[i]->live);
		now_ns = its_ns < now_ns ? its_ns : now_ns;
	}
	return now_ns;
}

void ow_recorder_counts(const struct ow_recorder *recorder, uint32_t source, struct ow_recorder_counts *ret_counts)
{
	struct ow_recorder_counts sum = {0};
	for (unsigned i = 0; i < recorder->members; i++) {
		const struct ow_recorder_member *member = recorder->member[i];
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
		struct ow_recorder_member *member = recorder->member[i];
		if (source != member->source)
			continue;
		ow_drops_join(&sum, &member->drops);
		member->drops = (struct ow_drops){0};
	}
	pthread_mutex_unlock(&recorder->lock);
	*ret_drops = sum;
}

bool ow_recorder_outage(struct ow_recorder *recorder, uint32_t source, struct ow_outage *ret_outage)
{
	struct ow_outage sum;
	bool any = false, over = true;
	pthread_mutex_lock(&recorder->lock);
	for (unsigned i = 0; i < recorder->members; i++) {
		struct ow_recorder_member *member = recorder->member[i];
		if (source != member->source || !member->was_away)
			continue;
		if (any)
			ow_outage_join(&sum, &member->outage);
		else
			sum = member->outage;
		any = true;
		over = over && member->outage.over;
		member->was_away = member->ended;
	}
	pthread_mutex_unlock(&recorder->lock);
	if (any) {
		sum.over = over;
		*ret_outage = sum;
	}
	return any;
}
