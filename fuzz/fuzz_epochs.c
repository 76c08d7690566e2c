/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of epochs. If the first byte is 0, the rest is the file. Otherwise the rest is frames, header and
 * bytes, whose checksums are corrected first, so that the code behind them is reached: lengths, times, numbers and
 * epochs of a malicious writer. If the file opens, its epochs can be summed up, or there is an error message.
 */
#include "base/bytes.h"
#include "flows/epochs_private.h"
#include "scratch.h"

#include <string.h>

#define COUNTERS_MAX 4096 /* more would only take time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* Adds frames with correct checksums, as long as there are bytes. */
static void add_frames(const struct scratch *file, const uint8_t *data, size_t size)
{
	while (size >= OW_EPOCHS_HEADER) {
		uint8_t header[OW_EPOCHS_HEADER];
		memcpy(header, data, sizeof header);
		data += sizeof header;
		size -= sizeof header;
		uint64_t bytes = ow_load_le64(header + 8);
		size_t here = bytes < size ? (size_t)bytes : size;
		ow_store_le64(header + 56, ow_epochs_check(data, here));
		ow_store_le64(header + 64, ow_epochs_check(header, 64));
		scratch_add(file, header, sizeof header);
		scratch_add(file, data, here);
		data += here;
		size -= here;
	}
	scratch_add(file, data, size);
}

static void try_sum(const struct ow_epochs *epochs, int64_t since_ns, int64_t until_ns, size_t flows_max)
{
	struct ow_epoch sum;
	struct ow_error err = {""};
	int r = ow_epochs_sum(epochs, since_ns, until_ns, flows_max, &sum, &err);
	check(r == 0 || err.text[0]);
	if (r == 0)
		ow_epoch_done(&sum);
}

static void try_all(const struct ow_epochs *epochs)
{
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	struct ow_error err = {""};
	uint64_t counters = 0;
	for (uint32_t i = 0; i < info->params.layers; i++)
		counters += info->params.layer[i].counters;
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		check(span.begin_ns <= span.end_ns && span.count_bytes <= span.bytes);
	}
	check(ow_epochs_comparable(epochs, epochs, &err) == 0 || err.text[0]);
	if (counters > COUNTERS_MAX)
		return;
	try_sum(epochs, INT64_MIN, INT64_MAX, OW_FLOW_COUNTS_MAX);
	if (ow_epochs_count(epochs)) {
		struct ow_epochs_span span = ow_epochs_span(epochs, ow_epochs_count(epochs) / 2);
		try_sum(epochs, span.begin_ns, span.end_ns, 0);
		try_sum(epochs, INT64_MIN, span.begin_ns, 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scratch file;
	struct ow_epochs *epochs = NULL;
	struct ow_error err = {""};
	if (size == 0)
		return 0;
	scratch_open(&file);
	if (data[0])
		add_frames(&file, data + 1, size - 1);
	else
		scratch_add(&file, data + 1, size - 1);
	int r = ow_epochs_open(file.path, &epochs, &err);
	check(r == 0 || strncmp(err.text, file.path, strlen(file.path)) == 0);
	if (r == 0)
		try_all(epochs);
	ow_epochs_close(epochs);
	scratch_close(&file);
	return 0;
}
