/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flow_decoder.h"
#include <signal.h>

/* Records the packets of a capture into a file of epochs. */
struct ow_capture_recording {
	const char *path; /* the capture */
	const char *out;  /* the file of epochs */
	bool append;      /* continue the file if it exists */
	struct ow_epoch_info info;
	const char *filter;                            /* NULL = all packets */
	const char *class_filter[OW_FLOW_CLASSES_MAX]; /* as in flows/flow_decoder.h */
	uint32_t segment_bytes;                        /* as in flows/flow_decoder.h */
	uint64_t threshold, flows_max;                 /* as in flows/flow_recorder.h */
	/* called when the files are open; from then on `stop` is checked */
	void (*on_opened)(void);
	void (*on_progress)(void *arg, double done);
	void *arg;
	const volatile sig_atomic_t *stop; /* if set, what has been read so far is written */
};

#define OW_CAPTURE_RECORDED_WARNINGS 8

struct ow_capture_recorded {
	struct ow_flow_decoder_counts frames;
	uint64_t epochs, packets;
	uint64_t flows_most; /* largest number of flows in an epoch */
	uint64_t uncounted;  /* packets of flows beyond flows_max */
	int64_t first_ns, last_ns;
	uint64_t counter_bytes, count_bytes;
	struct ow_error warning[OW_CAPTURE_RECORDED_WARNINGS];
	unsigned warnings;
};

int ow_capture_record(const struct ow_capture_recording *how, struct ow_capture_recorded *ret_recorded,
                      struct ow_error *err);
