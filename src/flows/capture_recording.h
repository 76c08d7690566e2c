/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_CAPTURE_RECORDING_H
#define OW_FLOWS_CAPTURE_RECORDING_H

#include "flows/flow_stamper.h"
#include <signal.h>

/* Records the packets of a capture into a file of epochs. */
struct ow_capture_recording {
	const char *path; /* the capture */
	const char *out;  /* the file of epochs */
	bool append;      /* continue it, if it is there */
	struct ow_epoch_info info;
	const char *filter;                            /* NULL = all packets */
	const char *class_filter[OW_FLOW_CLASSES_MAX]; /* as flows/flow_stamper.h takes them */
	uint32_t segment_bytes;                        /* likewise */
	uint64_t threshold, flows_max;                 /* as flows/flow_recorder.h takes them */
	void (*on_opened)(void);                       /* the files are open: from now on `stop` is looked at */
	void (*on_progress)(void *arg, double done);
	void *arg;
	const volatile sig_atomic_t *stop; /* what has been read until then is written */
};

#define OW_CAPTURE_RECORDED_WARNINGS 8

struct ow_capture_recorded {
	struct ow_flow_stamper_counts frames;
	uint64_t epochs, packets;
	uint64_t flows_most; /* in an epoch */
	uint64_t uncounted;  /* packets of flows beyond flows_max */
	int64_t first_ns, last_ns;
	uint64_t counter_bytes, count_bytes;
	struct ow_error warning[OW_CAPTURE_RECORDED_WARNINGS];
	unsigned warnings;
};

int ow_capture_record(const struct ow_capture_recording *how, struct ow_capture_recorded *ret_recorded,
                      struct ow_error *err);

#endif
