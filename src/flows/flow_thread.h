/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flow_recorder.h"
#include "flows/flow_decoder.h"

/*
 * Records flows in addition to the lanes of a live point: the frames of one source in one thread become epochs, which
 * are passed on. If several threads or sources belong to one recording, each makes its own epochs; they add up.
 */
struct ow_flow_thread_options {
	uint32_t sources; /* bit i: takes frames of source i */
	struct ow_flow_decoder_options decoder;
	size_t flows_max;
	/*
	 * Takes the epoch (and sets colate and counts to NULL) or leaves it. It must be fast, because the source waits.
	 * Called in the recording thread.
	 */
	void (*on_epoch)(void *arg, struct ow_epoch *epoch);
	/* Packets that were not recorded because there was not enough memory. */
	void (*on_lost)(void *arg, uint64_t packets);
	void *arg;
};

struct ow_flow_thread;

/* name, linktype: of the source. */
int ow_flow_thread_create(const char *name, uint16_t linktype, const struct ow_flow_thread_options *options,
                          struct ow_flow_thread **ret_thread, struct ow_error *err);
void ow_flow_thread_free(struct ow_flow_thread *thread);
void ow_flow_thread_frames(struct ow_flow_thread *thread, const struct ow_iface_frame *frames, size_t count);
/* What happened to the frames: of ow_epoch_flaw. To be called before a time passes for which this is due. */
void ow_flow_thread_flaw(struct ow_flow_thread *thread, uint8_t flaws);
bool ow_flow_thread_due(const struct ow_flow_thread *thread, int64_t time_ns);
/* All frames before this time have been seen. INT64_MAX: all frames. */
void ow_flow_thread_pass(struct ow_flow_thread *thread, int64_t passed_ns);
