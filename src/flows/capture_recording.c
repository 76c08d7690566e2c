/* SPDX-License-Identifier: Apache-2.0 */
/* Records the packets of a capture into a file of epochs. */
#include "flows/capture_recording.h"

#include "base/format.h"
#include "base/word.h"
#include "capture/file/reader.h"
#include "flows/epochs.h"
#include "flows/flow_recorder.h"

#include <errno.h>
#include <string.h>

#define WIRE_MAX 1500 /* longer IP packets do not exist on most wires */

struct recording {
	const struct ow_capture_recording *how;
	struct ow_capture_recorded *end;
	struct ow_reader *reader;
	struct ow_flow_decoder *decoder;
	struct ow_flow_recorder *recorder;
	struct ow_epochs_writer *writer;
	uint64_t dropped; /* packets that the capture missed until the last epoch, as it says */
};

static int on_epoch(void *arg, struct ow_epoch *epoch, struct ow_error *err)
{
	struct recording *rec = arg;
	struct ow_epoch_cost cost;
	uint64_t dropped = ow_reader_info(rec->reader)->dropped;
	if (dropped > rec->dropped || ow_reader_damage(rec->reader))
		epoch->flaws |= OW_EPOCH_MISSED;
	rec->dropped = dropped;
	int r = ow_epochs_append(rec->writer, epoch, &cost, err);
	if (r < 0)
		return r;
	int64_t first = ow_colate_first_ns(epoch->colate), last = ow_colate_last_ns(epoch->colate);
	rec->end->first_ns = !rec->end->epochs || first < rec->end->first_ns ? first : rec->end->first_ns;
	rec->end->last_ns = !rec->end->epochs || last > rec->end->last_ns ? last : rec->end->last_ns;
	rec->end->epochs++;
	rec->end->packets += ow_colate_packets(epoch->colate);
	rec->end->counter_bytes += cost.counter_bytes;
	rec->end->count_bytes += cost.count_bytes;
	if (epoch->counts) {
		size_t flows = ow_flow_counts_flows(epoch->counts);
		rec->end->flows_most = flows > rec->end->flows_most ? flows : rec->end->flows_most;
		rec->end->uncounted += ow_flow_counts_uncounted(epoch->counts);
	}
	return 0;
}

static int record_frames(struct recording *rec, const struct ow_frame *frames, int count, struct ow_error *err)
{
	struct ow_flow_sightings sightings;
	int r = ow_flow_decoder_load(rec->decoder, frames, (size_t)count, err);
	while (r == 0) {
		r = ow_flow_decoder_next(rec->decoder, &sightings, err);
		if (r < 0 || !sightings.count)
			break;
		r = ow_flow_recorder_add(rec->recorder, sightings.sighting, sightings.key, sightings.count, err);
	}
	return r;
}

static int record_all(struct recording *rec, struct ow_error *err)
{
	struct ow_frame frame[OW_FLOW_SIGHTINGS];
	uint64_t size = ow_reader_info(rec->reader)->size_bytes;
	int r = 0, count = 1;
	for (unsigned batches = 0; r == 0 && !*rec->how->stop; batches++) {
		count = ow_reader_read(rec->reader, frame, OW_FLOW_SIGHTINGS, err);
		if (count <= 0)
			break;
		r = record_frames(rec, frame, count, err);
		if (batches % 256 == 0 && size)
			rec->how->on_progress(rec->how->arg, (double)ow_reader_position(rec->reader) / (double)size);
	}
	if (r == 0 && count < 0)
		r = count;
	return r < 0 ? r : ow_flow_recorder_cut(rec->recorder, err);
}

static int open_all(struct recording *rec, struct ow_error *err)
{
	const struct ow_capture_recording *how = rec->how;
	struct ow_flow_decoder_options decoder = {
		.info = &how->info, .filter = how->filter, .segment_bytes = how->segment_bytes};
	struct ow_flow_recorder_options recorder = {
		.info = how->info,
		.threshold = how->threshold,
		.flows_max = how->flows_max,
		.on_epoch = on_epoch,
		.arg = rec,
	};
	memcpy(decoder.class_filter, how->class_filter, sizeof decoder.class_filter);
	int r = ow_reader_open(how->path, &rec->reader, err);
	if (r == 0)
		r = ow_flow_decoder_create(how->path, &decoder, &rec->decoder, err);
	if (r == 0)
		r = ow_flow_recorder_create(&recorder, &rec->recorder, err);
	/* This is last, so that an existing file is replaced only if everything else succeeded. */
	return r < 0 ? r : ow_epochs_create(how->out, &how->info, how->append, &rec->writer, err);
}

static void close_all(struct recording *rec)
{
	ow_flow_recorder_free(rec->recorder);
	ow_flow_decoder_free(rec->decoder);
	ow_epochs_writer_free(rec->writer);
	ow_reader_close(rec->reader);
}

static void note_warnings(struct recording *rec)
{
	const struct ow_flow_decoder_counts *counts = ow_flow_decoder_counts(rec->decoder);
	struct ow_error *next = rec->end->warning;
	char number[OW_FORMAT];
	if (ow_reader_damage(rec->reader))
		ow_error_set(next++, EIO, "%s", ow_reader_damage(rec->reader));
	if (ow_reader_note(rec->reader))
		ow_error_set(next++, EINVAL, "%s", ow_reader_note(rec->reader));
	if (rec->dropped)
		ow_error_set(next++, EINVAL, "the capture dropped %s %s, as it says itself: they are not recorded",
		             ow_format_count(rec->dropped, number), ow_plural(rec->dropped, "packet", "packets"));
	if (*rec->how->stop)
		ow_error_set(next++, EINTR, "interrupted: the rest of the capture was not read");
	if (counts->below_limit)
		ow_error_set(next++, EINVAL,
		             "%s %s captured too short for an id of %u bytes: use a smaller --id-bytes at "
		             "all points",
		             ow_format_count(counts->below_limit, number),
		             ow_plural(counts->below_limit, "packet was", "packets were"), rec->how->info.id_bytes);
	if (counts->longest_tcp > WIRE_MAX)
		ow_error_set(
			next++, EINVAL,
			"TCP packets of up to %u bytes: if these are superframes of a host's own capture, "
			"--segment-size cuts them as the wire does (an MTU of 1500 bytes with TCP timestamps: 1448)",
			counts->longest_tcp);
	if (counts->untimed)
		ow_error_set(next++, EINVAL, "%s %s without a time ignored", ow_format_count(counts->untimed, number),
		             ow_plural(counts->untimed, "frame", "frames"));
	if (rec->end->uncounted)
		ow_error_set(next++, ENOSPC, "%s %s of flows beyond --flows-max not counted",
		             ow_format_count(rec->end->uncounted, number),
		             ow_plural(rec->end->uncounted, "packet", "packets"));
	rec->end->warnings = (unsigned)(next - rec->end->warning);
}

int ow_capture_record(const struct ow_capture_recording *how, struct ow_capture_recorded *ret_recorded,
                      struct ow_error *err)
{
	struct recording rec = {.how = how, .end = ret_recorded};
	*ret_recorded = (struct ow_capture_recorded){0};
	int r = open_all(&rec, err);
	if (r == 0) {
		how->on_opened();
		r = record_all(&rec, err);
	}
	if (r == 0) {
		ret_recorded->frames = *ow_flow_decoder_counts(rec.decoder);
		note_warnings(&rec);
	}
	close_all(&rec);
	return r;
}
