/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a thread in a recording of flows: flow_thread.h. */
#include "flows/flow_thread.h"

#include <errno.h>
#include <stdlib.h>

struct ow_flow_thread {
	struct ow_flow_thread_options options;
	struct ow_epoch_info info;
	struct ow_flow_stamper *stamper;
	struct ow_flow_recorder *recorder;
};

static int hand_out(void *arg, struct ow_epoch *epoch, struct ow_error *err)
{
	struct ow_flow_thread *tap = arg;
	(void)err;
	tap->options.on_epoch(tap->options.arg, epoch);
	return 0;
}

int ow_flow_thread_create(const char *name, uint16_t linktype, const struct ow_flow_thread_options *options,
                          struct ow_flow_thread **ret_tap, struct ow_error *err)
{
	struct ow_flow_thread *tap = calloc(1, sizeof *tap);
	if (!tap)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory to record flows", name);
	tap->options = *options;
	tap->info = *options->stamper.info;
	const struct ow_flow_recorder_options recorder = {
		.info = tap->info, .flows_max = options->flows_max, .on_epoch = hand_out, .arg = tap};
	int r = ow_flow_stamper_create(name, &options->stamper, &tap->stamper, err);
	if (r == 0)
		r = ow_flow_stamper_prepare(tap->stamper, linktype, err);
	if (r == 0)
		r = ow_flow_recorder_create(&recorder, &tap->recorder, err);
	if (r < 0)
		ow_flow_thread_free(tap);
	else
		*ret_tap = tap;
	return r;
}

void ow_flow_thread_free(struct ow_flow_thread *tap)
{
	if (!tap)
		return;
	ow_flow_recorder_free(tap->recorder);
	ow_flow_stamper_free(tap->stamper);
	free(tap);
}

void ow_flow_thread_frames(struct ow_flow_thread *tap, const struct ow_iface_frame *frames, size_t count)
{
	while (count) {
		size_t some = count < OW_FLOW_STAMPS ? count : OW_FLOW_STAMPS;
		struct ow_flow_stamps stamps = {.count = 0};
		if (ow_flow_stamper_load_live(tap->stamper, frames, some, NULL) < 0)
			tap->options.on_lost(tap->options.arg, some);
		else
			while (ow_flow_stamper_next(tap->stamper, &stamps, NULL) == 0 && stamps.count) {
				if (ow_flow_recorder_add(tap->recorder, stamps.stamp, stamps.key, stamps.count, NULL) <
				    0)
					tap->options.on_lost(tap->options.arg, stamps.count);
			}
		frames += some;
		count -= some;
	}
}

void ow_flow_thread_pass(struct ow_flow_thread *tap, int64_t passed_ns)
{
	if (passed_ns == INT64_MAX)
		ow_flow_recorder_cut(tap->recorder, NULL);
	else
		ow_flow_recorder_pass(tap->recorder, passed_ns, NULL);
}
