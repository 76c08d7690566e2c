/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "capture/iface/stream.h"
#include "packet/identity.h"
#include "record/interval_cuts.h"
#include "record/lane_flows.h"
#include "synopsis/synopsis.h"

/*
 * The capturing part of a live point. Threads read the sources, decode each frame, find its lanes and collect (id,
 * time) by interval in chunks. One thread takes the chunks and adds them to interval logs (record/interval_log.h).
 *
 * A lane is the packets of one class in one direction of one segment, as this point sees them. Lanes are added and
 * removed while the threads run: a session that is agreed on adds its lanes, with its identity and intervals.
 *
 * Files are read from the first ow_recorder_take on, and at most a few intervals of the shortest lane ahead of what was
 * taken. So lanes that are added before see them completely, and a window of OW_REPLAY_OPEN open intervals is enough
 * for them at any speed.
 *
 * Interval i of a lane is [t0 + i * length, t0 + (i+1) * length) of the clock that timestamps the frames, unless it is
 * shifted (record/interval_cuts.h). Packets before the first interval do not belong to any.
 */

struct ow_source_options {
	struct ow_iface_options live;
	unsigned threads;          /* 0 = 1; several share the frames of an interface by flow; files have one */
	struct ow_streams streams; /* of kind OW_IFACE_STREAM: a thread for each part */
};

struct ow_lane_options {
	struct ow_identity identity; /* level ip or nat */
	uint32_t sources;            /* bit i: takes frames of source i */
	enum ow_heading heading;     /* only frames of this direction; UNKNOWN = all */
	const char *filter;          /* the class, pcap-filter(7); NULL = all IP packets */
	const char *way; /* a second filter, for the direction, where the kernel does not know it; NULL = none */
	/* Packets that match it are not in the lane, NULL = none. With identity.inner it examines the packet inside of
	 * tunnels, because only one of the points may see the tunnel. */
	const char *without;
	bool way_not; /* take packets that do not match `way` */
	int64_t t0_ns, length_ns;
	unsigned sample_shift; /* keep ids whose ow_sample_rank has this many leading zero bits */
	bool firsts;           /* no fragments but the first: others are made and joined on the way */
	bool flows;            /* note the flow of each packet, */
	uint64_t flow_seed;    /* hashed with this seed */
};

#define OW_SOURCES_MAX     32
#define OW_REPLAY_OPEN     8
#define OW_LANES_MAX       1024
#define OW_INTERVAL_MIN_NS INT64_C(1000000)      /* 1 ms */
#define OW_INTERVAL_MAX_NS INT64_C(300000000000) /* 5 min: sums of times stay far below 2^63 */

/* Both points choose the same sample: the packets whose rank begins with `shift` zero bits. It contains all copies of a
 * packet, or none. */
static inline uint64_t ow_sample_rank(const struct ow_identity *identity, uint64_t id)
{
	return ow_mum64(id ^ identity->key, UINT64_C(0x9fb21c651e98df25));
}
static inline bool ow_sampled(uint64_t rank, unsigned shift)
{
	return shift == 0 || rank >> (64 - shift) == 0;
}

/* Packets of one lane and one interval, in the order in which one thread saw them. */
struct ow_chunk {
	struct ow_chunk *next;
	uint32_t lane;
	uint32_t count; /* of sightings */
	int64_t interval;
	uint64_t packets;              /* on the wire, including those outside of the sample */
	uint64_t bytes;                /* of their IP packets */
	uint64_t frames;               /* that the packets came in */
	uint64_t unreadable;           /* frames of the lane without an id, and superframes that could not be cut */
	unsigned sample_shift;         /* the sample of the sightings */
	bool session;                  /* the source has shown packets that the lane leaves out (`without`) */
	struct ow_lane_flows flows;    /* of the sightings, if the lane notes them */
	struct ow_sighting sighting[]; /* times since the start of the interval */
};
void ow_chunk_free(struct ow_chunk *chunk);
/* A thread returns a chunk when it has this many sightings, and otherwise after this time. */
#define OW_CHUNK_STAMPS 4096
#define OW_CHUNK_MS     10

struct ow_recorder_counts {
	uint64_t frames, dropped, stamped[OW_STAMPERS];
	uint64_t not_ip, unclaimed; /* frames without IP packet; IP packets that no lane wanted */
};

/* Frames that were missed, at some time from from_ns to until_ns; the kernel only counts them. */
struct ow_drops {
	uint64_t frames;
	int64_t from_ns, until_ns;
};

struct ow_recorder;
struct ow_flow_thread_options;
#define OW_RECORDER_TAPS_MAX 8

/* Opens the sources. -EINVAL, or the error of opening a source, with its name. Streams belong to the recorder from now on, also
 * after an error. */
int ow_recorder_open(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                     struct ow_error *err);
/* The frames of some sources also go to a recording of flows (flows/flow_thread.h). To be called before the start. */
int ow_recorder_add_tap(struct ow_recorder *recorder, const struct ow_flow_thread_options *options,
                        struct ow_error *err);
struct ow_sampler_options;
/* The frames of all sources are also sampled (discovery/sampler.h). To be called before the start. The generation of
 * the clock counts how often it was set. */
int ow_recorder_add_sampler(struct ow_recorder *recorder, const struct ow_sampler_options *options,
                            struct ow_error *err);
/* Starts the threads. They do not have the privileges that the process gave up between opening and this call. */
int ow_recorder_start(struct ow_recorder *recorder, struct ow_error *err);
/* Stops the threads. Chunks that were not taken are freed. */
void ow_recorder_free(struct ow_recorder *recorder);

/* Why a source that was to be recorded in the kernel is not; "" = it is, or was not to be. */
const char *ow_recorder_note(const struct ow_recorder *recorder, unsigned source);
/*
 * Whether some of these sources are recorded in the kernel and others are not: their times are taken at different places
 * (docs/capture.md). ret_name: one of the first, and one of the others.
 */
bool ow_recorder_mixes(const struct ow_recorder *recorder, uint32_t sources, const char *ret_name[2]);
/* The first of these sources whose frames have no direction (see ow_lane_options.heading), or NULL. */
const char *ow_recorder_undirected(const struct ow_recorder *recorder, uint32_t sources);
/* Adds a lane; its number is not used again. It gets every frame that was timestamped after this call. An error names
 * the wrong filter. */
int ow_recorder_add_lane(struct ow_recorder *recorder, const struct ow_lane_options *options, uint32_t *ret_lane,
                         struct ow_error *err);
/* From now on none of its chunks are returned. */
void ow_recorder_remove_lane(struct ow_recorder *recorder, uint32_t lane);
/* Takes effect soon, at some frame. */
void ow_recorder_set_shift(struct ow_recorder *recorder, uint32_t lane, unsigned sample_shift);
/* The same for the cuts, which differ only from a later interval on: one that begins OW_RECORDER_LAG_NS from now, or
 * later. 0 or -ENOMEM. */
int ow_recorder_set_cuts(struct ow_recorder *recorder, uint32_t lane, const struct ow_interval_cuts *cuts);
#define OW_RECORDER_LAG_NS INT64_C(200000000)

/*
 * Tells that the clock was set. From the next take on, the time up to which lanes are complete is by the new clock
 * (INT64_MIN until all threads know). Older lanes mix two clocks; remove them first.
 */
void ow_recorder_clock_set(struct ow_recorder *recorder);

/* Readable (poll) when there are chunks or news; ow_recorder_take clears it. */
int ow_recorder_fd(const struct ow_recorder *recorder);
/*
 * Returns all chunks since the last call, to be freed one by one, and the time up to which the lanes are
 * complete: every packet until then is in the chunks returned so far. INT64_MAX when all sources
 * are at their end. If a source fails, err reports it once, with -EIO or its errno; the others continue, and chunks and
 * time are returned as well. An interface that goes away is not a failure: see ow_recorder_outage.
 */
int ow_recorder_take(struct ow_recorder *recorder, struct ow_chunk **ret_chunks, int64_t *ret_passed_ns,
                     struct ow_error *err);
/* The clock of the sources: the earliest of them. */
int64_t ow_recorder_now_ns(const struct ow_recorder *recorder);
/* Sums over the threads; may lag by a few milliseconds. source: its index, or UINT32_MAX for all. */
void ow_recorder_counts(const struct ow_recorder *recorder, uint32_t source, struct ow_recorder_counts *ret_counts);
/* Drops since the last call. After ow_recorder_take they include all drops before the time that it returned. */
void ow_recorder_drops(struct ow_recorder *recorder, uint32_t source, struct ow_drops *ret_drops);
/*
 * The same for a time in which a source could see nothing: an interface was away (and is waited for), or a source has
 * ended or failed. The outage of a source that has ended has no end, and every call returns it.
 */
bool ow_recorder_outage(struct ow_recorder *recorder, uint32_t source, struct ow_outage *ret_outage);
