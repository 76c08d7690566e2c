/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a thread in a recording of flows: flow_thread.h. */
#include "flows/flow_thread.h"

#include <errno.h>
#include <stdlib.h>

struct ow_flow_thread {
	struct ow_flow_thread_options options;
	struct ow_epoch_info info;
	struct ow_flow_decoder *decoder;
	struct ow_flow_recorder *recorder;
};

static int hand_out(void *arg, struct ow_epoch *epoch, struct ow_error *err)
{
	struct ow_flow_thread *thread = arg;
	(void)err;
	thread->options.on_epoch(thread->options.arg, epoch);
	return 0;
}

int ow_flow_thread_create(const char *name, uint16_t linktype, const struct ow_flow_thread_options *options,
                          struct ow_flow_thread **ret_thread, struct ow_error *err)
{
	struct ow_flow_thread *thread = calloc(1, sizeof *thread);
	if (!thread)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory to record flows", name);
	thread->options = *options;
	thread->info = *options->decoder.info;
	const struct ow_flow_recorder_options recorder = {
		.info = thread->info, .flows_max = options->flows_max, .on_epoch = hand_out, .arg = thread};
	int r = ow_flow_decoder_create(name, &options->decoder, &thread->decoder, err);
	if (r == 0)
		r = ow_flow_decoder_prepare(thread->decoder, linktype, err);
	if (r == 0)
		r = ow_flow_recorder_create(&recorder, &thread->recorder, err);
	if (r < 0)
		ow_flow_thread_free(thread);
	else
		*ret_thread = thread;
	return r;
}

void ow_flow_thread_free(struct ow_flow_thread *thread)
{
	if (!thread)
		return;
	ow_flow_recorder_free(thread->recorder);
	ow_flow_decoder_free(thread->decoder);
	free(thread);
}

static void lose(struct ow_flow_thread *thread, size_t packets)
{
	ow_flow_recorder_flaw(thread->recorder, OW_EPOCH_MISSED);
	thread->options.on_lost(thread->options.arg, packets);
}

void ow_flow_thread_flaw(struct ow_flow_thread *thread, uint8_t flaws)
{
	ow_flow_recorder_flaw(thread->recorder, flaws);
}

bool ow_flow_thread_due(const struct ow_flow_thread *thread, int64_t time_ns)
{
	return ow_flow_recorder_due(thread->recorder, time_ns);
}

void ow_flow_thread_frames(struct ow_flow_thread *thread, const struct ow_iface_frame *frames, size_t count)
{
	while (count) {
		size_t some = count < OW_FLOW_SIGHTINGS ? count : OW_FLOW_SIGHTINGS;
		struct ow_flow_sightings sightings = {.count = 0};
		if (ow_flow_decoder_load_live(thread->decoder, frames, some, NULL) < 0)
			lose(thread, some);
		else
			while (ow_flow_decoder_next(thread->decoder, &sightings, NULL) == 0 && sightings.count) {
				if (ow_flow_recorder_add(thread->recorder, sightings.sighting, sightings.key,
				                         sightings.count, NULL) < 0)
					lose(thread, sightings.count);
			}
		frames += some;
		count -= some;
	}
}

void ow_flow_thread_pass(struct ow_flow_thread *thread, int64_t passed_ns)
{
	if (passed_ns == INT64_MAX)
		ow_flow_recorder_cut(thread->recorder, NULL);
	else
		ow_flow_recorder_pass(thread->recorder, passed_ns, NULL);
}
