/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet_filter.h"
#include "discovery/sampler.h"
#include "flows/flow_thread.h"
#include "record/recorder.h"
#include "record/lane_recorder.h"
#include <pthread.h>

/* Private to recorder.c (sources, lanes, taking chunks) and recorder_thread.c (the threads). */

#define OW_RECORDER_BATCH       256 /* frames read at a time */
#define OW_RECORDER_THREADS_MAX 64u /* of a source */
#define OW_RECORDER_MEMBERS_MAX (OW_SOURCES_MAX * OW_RECORDER_THREADS_MAX)

struct ow_recorder_member { /* one thread */
	struct ow_recorder *recorder;
	unsigned source;
	bool file; /* its frames wait for us */
	bool cut;  /* its TCP packets are cut behind their headers */
	struct ow_iface *live;
	pthread_t thread;
	bool runs;
	struct ow_iface_frame frame[OW_RECORDER_BATCH];
	struct ow_packet_filter filter; /* of the source; zeros = none */

	/* Used by the thread only. */
	uint64_t filtered; /* frames that the filter rejected */
	struct ow_lane_recorder *lane_recorder;
	struct ow_flow_thread *tap[OW_RECORDER_TAPS_MAX];
	unsigned taps;
	uint64_t tap_dropped, tap_epoch; /* drops and clock generation that the taps know of */
	uint8_t tap_flaws;               /* of ow_epoch_flaw, that they do not know of */
	struct ow_sampler *sampler;      /* NULL = none */
	uint64_t generation;
	uint64_t epoch;      /* clock generation of the current frames, or an earlier one */
	int64_t told_ns;     /* the last time that was reported, by the clock of this generation */
	int64_t boundary_ns; /* the end of some interval; the reader must be informed when it has passed */
	int64_t lead_ns;     /* files: how far it may be ahead */
	int64_t handed_ns;   /* when chunks were last handed over, steady clock */
	int64_t counted_ns;  /* the source's clock before drops were last read from the kernel */
	int64_t sure_ns;     /* the time that the source had passed then */
	uint64_t counted;    /* drops until then */

	/* Under the recorder's lock: */
	int64_t passed_ns;
	struct ow_drops drops; /* not taken yet */
	bool was_away;         /* there is an outage that was not reported yet */
	struct ow_outage outage;
	bool ended; /* there is an outage without end */
	int failed; /* negative errno that was not reported yet */
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
	_Atomic uint64_t epoch; /* clock generation: counts how often the clock was set; changed under the lock */

	pthread_mutex_t lock;
	pthread_cond_t taken; /* chunks were taken, or the recorder ends */
	bool started;         /* files wait for the first take, so that lanes can be added before */
	bool signalled;
	struct ow_chunk *first, **end;
	uint64_t sightings; /* sightings in the list */
	int64_t heard_ns;   /* the time of the last take */
};

/* recorder_thread.c */
/* The thread of a member (arg), until its source ends or the recorder stops. */
void *ow_recorder_run(void *arg);
/* Makes the recorder's descriptor readable. */
void ow_recorder_signal(struct ow_recorder *recorder);
void ow_drops_join(struct ow_drops *sum, const struct ow_drops *more);
/* Extends `sum` to the time from the first to the last of both outages. */
void ow_outage_join(struct ow_outage *sum, const struct ow_outage *more);
