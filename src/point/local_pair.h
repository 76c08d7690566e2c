/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/recorder.h"
#include "result/interval_results.h"
#include "result/result_clock.h"
#include "reconcile/late_packets.h"

/*
 * Both points in this process: packets that arrive at one interface and leave at another (or are in two capture files, or
 * in two captures that are still being written), packet by packet. recorder -> two interval logs for each lane ->
 * interval_match -> interval_results. A lane is a class in
 * one direction; forward is from `from` to `to`.
 *
 * Intervals begin at whole multiples of their length, or at whole seconds; those of files when both captures have
 * begun. A short time before the first and, if packets still wait, after the last one is recorded as well, so that
 * packets in flight at the ends are neither lost nor extra.
 */
struct ow_local_pair_class {
	const char *name;
	const char *filter; /* pcap-filter(7); NULL = all IP packets */
};

struct ow_local_pair_options {
	struct ow_source_options from, to;
	const char *from_name, *to_name; /* of the points, in the results */
	char segment[OW_RESULT_NAME];
	struct ow_identity identity; /* to begin with */
	uint32_t identities;         /* bit v: may change to enum ow_variant v (ow_identity_allowed); 0 = it is fixed */
	bool any_way;                /* `forward` does not depend on addresses */
	/* What is done otherwise than asked for, and why; may be NULL. arg: opened_arg. */
	void (*changed)(void *arg, const char *line);
	const char
		/* filter of packets from `from` to `to`, for taps and files; NULL = the kernel knows the direction */
		*forward;
	const char *backward;                      /* filter of the others; NULL = all others */
	const struct ow_local_pair_class *classes; /* must stay until the end, and so must all texts */
	size_t class_count;
	int64_t length_ns, wait_ns;
	enum ow_clock_mode clock;   /* the interfaces of a host have one clock; files may have two */
	int64_t since_ns, until_ns; /* streams: when to begin and to end; INT64_MIN, INT64_MAX = not said */
	int64_t lag_ns;             /* streams: how long results wait for one that is late or silent */
	uint64_t intervals;         /* number to measure; 0 = until stopped, or the end of the files */
	bool shared;                /* only packets of flows that pass both can be lost */
	uint64_t memory;            /* bytes for the packets of all lanes; 0 = OW_LOCAL_PAIR_MEMORY */
	/* Called when everything is open and no thread has started; may be NULL. */
	int (*opened)(void *arg, struct ow_error *err);
	void *opened_arg;
	ow_interval_results_sink sink; /* gets all results, provisional and final, during ow_local_pair_work */
	ow_flow_event_sink event;      /* gets what happens to flows; may be NULL */
	void *arg;
};

#define OW_LOCAL_PAIR_MEMORY (UINT64_C(512) << 20)
/* Intervals of the waiting time; one more is needed if a file ends within an interval. */
#define OW_LOCAL_PAIR_WAIT_MAX (OW_LATE_PACKETS_HORIZON_MAX - 1)

struct ow_local_pair;

/* -EINVAL for what cannot be measured, or the error of opening; err has one line. */
int ow_local_pair_create(const struct ow_local_pair_options *options, struct ow_local_pair **ret_pair,
                         struct ow_error *err);
void ow_local_pair_free(struct ow_local_pair *pair);

/* Readable if there is work. ow_local_pair_work must also be called after ow_local_pair_timeout_ms. */
int ow_local_pair_fd(const struct ow_local_pair *pair);
#define OW_LOCAL_PAIR_WORK_MS 50
int ow_local_pair_timeout_ms(const struct ow_local_pair *pair);
/*
 * Processes what is available and calls the sink. Returns 0; 1 at the end, when everything is final; a negative errno
 * if a source failed, with err: everything is final then as well. It waits for an interface that goes away; its
 * intervals are unknown.
 */
int ow_local_pair_work(struct ow_local_pair *pair, struct ow_error *err);
/*
 * Counts only packets that were sent until now: the current interval becomes the last one. ow_local_pair_work reports
 * the end soon.
 */
void ow_local_pair_stop(struct ow_local_pair *pair);

/* Lanes: for each class forward, then backward. */
size_t ow_local_pair_lanes(const struct ow_local_pair *pair);
void ow_local_pair_total(const struct ow_local_pair *pair, size_t lane, struct ow_interval_result *ret_total);
/* For each source: 0 = from, 1 = to. Frames of a file without a time (0) are ignored. */
uint64_t ow_local_pair_untimed(const struct ow_local_pair *pair, unsigned source);
/* As ow_recorder_note. If one cannot be recorded in the kernel, neither is: their times would be of two kinds. */
const char *ow_local_pair_note(const struct ow_local_pair *pair, unsigned source);
void ow_local_pair_counts(const struct ow_local_pair *pair, unsigned source, struct ow_recorder_counts *ret_counts);
/* Whether neither interface is there now; err has the reason. */
bool ow_local_pair_is_blind(const struct ow_local_pair *pair, struct ow_error *err);
