/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECORD_RECORDER_H
#define OW_RECORD_RECORDER_H

#include "base/hash.h"
#include "capture/iface/iface.h"
#include "packet/identity.h"
#include "synopsis/synopsis.h"

/*
 * The capturing half of a live point. Threads read the sources, take each frame apart, find its lanes and hand on
 * (id, time) by interval, in chunks. One thread takes the chunks and keeps the books (record/interval_log.h).
 *
 * A lane is the packets of one class that go one way over one segment, as this point sees them. Lanes come and go while
 * the threads run: a session that is agreed on adds its lanes, with its ids and its intervals.
 *
 * Files are read from the first ow_recorder_take on, and a few intervals of the shortest lane at most are ahead of what
 * was taken: lanes that are added before see them whole, and a window of OW_REPLAY_OPEN open pages is enough for them
 * at any speed.
 *
 * Interval i of a lane is [t0 + i * length, t0 + (i+1) * length) of the clock that stamps the frames. Packets before t0
 * belong to none.
 */

struct ow_source_options {
	struct ow_iface_options live;
	unsigned threads; /* 0 = 1; more share the frames of an interface by flow; files have one */
};

struct ow_lane_options {
	struct ow_identity identity; /* level ip or nat */
	uint32_t sources;            /* bit i: takes frames of source i */
	enum ow_heading heading;     /* only frames of this heading; UNKNOWN = whatever it is */
	const char *filter;          /* the class, pcap-filter(7); NULL = all IP packets */
	const char *way; /* a second filter, which tells the direction where the kernel cannot; NULL = none */
	bool way_not;    /* packets that do not match `way` */
	int64_t t0_ns, length_ns;
	unsigned sample_shift; /* keep ids whose ow_sample_rank has this many zeros on top */
};

#define OW_SOURCES_MAX     32
#define OW_REPLAY_OPEN     8
#define OW_LANES_MAX       1024
#define OW_INTERVAL_MIN_NS INT64_C(1000000)      /* 1 ms */
#define OW_INTERVAL_MAX_NS INT64_C(300000000000) /* 5 min: sums of times stay far below 2^63 */

/* Both points sample alike: the packets whose rank begins with `shift` zero bits. All copies of a packet, or none. */
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
	uint32_t count; /* of stamps */
	int64_t interval;
	uint64_t packets;           /* of the wire, with those outside the sample */
	uint64_t bytes;             /* of their IP packets */
	uint64_t unreadable;        /* frames of the lane without an id, and superframes that could not be cut */
	unsigned sample_shift;      /* by which the stamps were chosen */
	struct ow_sighting stamp[]; /* times since the start of the interval */
};
/* A thread hands a chunk on when it holds this many, and otherwise after this time. */
#define OW_CHUNK_STAMPS 4096
#define OW_CHUNK_MS     10

struct ow_recorder_counts {
	uint64_t frames, dropped, stamped[OW_STAMPERS];
	uint64_t not_ip, unclaimed; /* frames without IP packet; IP packets that no lane wanted */
};

/* Frames that the measurement missed, some time from from_ns to until_ns: the kernel only counts them. */
struct ow_drops {
	uint64_t frames;
	int64_t from_ns, until_ns;
};

struct ow_recorder;
struct ow_flow_thread_options;
#define OW_RECORDER_TAPS_MAX 8

/* Opens the sources. -EINVAL, or what opening a source says, with its name. */
int ow_recorder_open(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                     struct ow_error *err);
/* Before the start: the frames of some sources also go to a recording of flows (flows/flow_thread.h). */
int ow_recorder_add_tap(struct ow_recorder *recorder, const struct ow_flow_thread_options *options,
                        struct ow_error *err);
/* Starts the threads: what a process gives up between opening and this they do not have either. */
int ow_recorder_start(struct ow_recorder *recorder, struct ow_error *err);
/* Both. */
int ow_recorder_create(const struct ow_source_options *sources, unsigned count, struct ow_recorder **ret_recorder,
                       struct ow_error *err);
/* Stops the threads. Chunks that were not taken are freed. */
void ow_recorder_free(struct ow_recorder *recorder);

/* The first of these sources that does not tell where its frames went (see ow_lane_options.heading), or NULL. */
const char *ow_recorder_undirected(const struct ow_recorder *recorder, uint32_t sources);
/* A lane gets a number that is not used again. It has every frame that was stamped after this call. An error names the
 * filter that is wrong. */
int ow_recorder_add_lane(struct ow_recorder *recorder, const struct ow_lane_options *options, uint32_t *ret_lane,
                         struct ow_error *err);
/* From now on no chunk of it is handed out. */
void ow_recorder_remove_lane(struct ow_recorder *recorder, uint32_t lane);
/* From some frame on, soon. */
void ow_recorder_set_shift(struct ow_recorder *recorder, uint32_t lane, unsigned sample_shift);

/*
 * The clock was set: the time up to which lanes are complete is that of the clock as it is now, from the next take on
 * (INT64_MIN until all threads know). Lanes that were there before mix two clocks; remove them first.
 */
void ow_recorder_clock_set(struct ow_recorder *recorder);

/* Readable (poll) when there are chunks or news; ow_recorder_take makes it quiet. */
int ow_recorder_fd(const struct ow_recorder *recorder);
/*
 * All chunks since the last call, to be freed one by one with free(), and the time up to which the lanes are complete:
 * every packet of an interval that ended by then is in the chunks taken so far. INT64_MAX when all sources are at their
 * end. A source that fails is in err, once, with -EIO or its errno; the others go on, and chunks and time are told as
 * well. An interface that goes away does not fail: see ow_recorder_outage.
 */
int ow_recorder_take(struct ow_recorder *recorder, struct ow_chunk **ret_chunks, int64_t *ret_passed_ns,
                     struct ow_error *err);
/* The clock of the sources: the earliest of them. */
int64_t ow_recorder_now_ns(const struct ow_recorder *recorder);
/* Sums over the threads; may lag by a few milliseconds. source: its index, or UINT32_MAX for all. */
void ow_recorder_counts(const struct ow_recorder *recorder, uint32_t source, struct ow_recorder_counts *ret_counts);
/* Since the last call; after ow_recorder_take they hold all that were dropped before the time it told. */
void ow_recorder_drops(struct ow_recorder *recorder, uint32_t source, struct ow_drops *ret_drops);
/*
 * The same for the time in which a source could see nothing, if there was any: an interface was away (and is waited
 * for), or a source has ended or failed. That of a source which has ended has no end, and is told by every call.
 */
bool ow_recorder_outage(struct ow_recorder *recorder, uint32_t source, struct ow_outage *ret_outage);

#endif
