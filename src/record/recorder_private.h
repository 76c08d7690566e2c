/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECORD_RECORDER_PRIVATE_H
#define OW_RECORD_RECORDER_PRIVATE_H

#include "packet/packet_filter.h"
#include "flows/flow_thread.h"
#include "record/recorder.h"
#include "record/lane_recorder.h"
#include <pthread.h>

/* A recorder's parts, for its own files: recorder.c (sources, lanes, taking), recorder_thread.c (what a thread does).
 */

#define OW_RECORDER_BATCH       256 /* frames read at a time */
#define OW_RECORDER_THREADS_MAX 64u /* of a source */
#define OW_RECORDER_MEMBERS_MAX (OW_SOURCES_MAX * OW_RECORDER_THREADS_MAX)

struct ow_recorder_member { /* one thread */
	struct ow_recorder *recorder;
	unsigned source;
	bool file;
	struct ow_iface *live;
	pthread_t thread;
	bool runs;
	struct ow_iface_frame frame[OW_RECORDER_BATCH];
	struct ow_packet_filter filter; /* of the source; zeros = none */

	/* The thread's own. */
	uint64_t filtered; /* frames that the filter did not take */
	struct ow_lane_recorder *scribe;
	struct ow_flow_thread *tap[OW_RECORDER_TAPS_MAX];
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
	bool was_away;         /* there is an outage that was not taken yet, */
	struct ow_outage outage;
	bool ended; /* or one without end */
	int failed; /* negative errno that was not told yet */
	struct ow_error err;

	_Atomic uint64_t using; /* generation of the table in use */
	_Atomic uint64_t frames, dropped, stamped[OW_STAMPERS], not_ip, unclaimed;
};

struct ow_recorder {
	unsigned sources, members;
	uint16_t linktype[OW_SOURCES_MAX];
	char *name[OW_SOURCES_MAX];
	struct ow_recorder_member *member[OW_RECORDER_MEMBERS_MAX];
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

/* recorder_thread.c */
/* The thread of a member (arg), until its source ends or the recorder stops. */
void *ow_recorder_run(void *arg);
/* Makes the recorder's descriptor readable. */
void ow_recorder_signal(struct ow_recorder *recorder);
void ow_drops_join(struct ow_drops *sum, const struct ow_drops *more);
/* Of outages, the time from the first to the last. */
void ow_outage_join(struct ow_outage *sum, const struct ow_outage *more);

#endif
