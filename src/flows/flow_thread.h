/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_FLOW_THREAD_H
#define OW_FLOWS_FLOW_THREAD_H

#include "flows/flow_recorder.h"
#include "flows/flow_stamper.h"

/*
 * Recording of flows beside the lanes of a live point: one thread's frames of one source become epochs, which it hands
 * out. Where several threads or sources take part in one recording, each makes epochs of its own: they add up.
 */
struct ow_flow_thread_options {
	uint32_t sources; /* bit i: takes frames of source i */
	struct ow_flow_stamper_options stamper;
	size_t flows_max;
	/* Takes the epoch (colate and counts are then NULL) or leaves it; quick, for the source waits. From the
	 * recording thread. */
	void (*on_epoch)(void *arg, struct ow_epoch *epoch);
	/* Packets that were not recorded, for want of memory. */
	void (*on_lost)(void *arg, uint64_t packets);
	void *arg;
};

struct ow_flow_thread;

/* name, linktype: of the source. */
int ow_flow_thread_create(const char *name, uint16_t linktype, const struct ow_flow_thread_options *options,
                          struct ow_flow_thread **ret_tap, struct ow_error *err);
void ow_flow_thread_free(struct ow_flow_thread *tap);
void ow_flow_thread_frames(struct ow_flow_thread *tap, const struct ow_iface_frame *frames, size_t count);
/* All frames before this time have been seen. INT64_MAX: all that there are. */
void ow_flow_thread_pass(struct ow_flow_thread *tap, int64_t passed_ns);

#endif
