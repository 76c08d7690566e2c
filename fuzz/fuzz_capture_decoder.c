/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture that is still being written: all at once, and in pieces whose sizes follow from the bytes. Both give
 * the same frames. Its inputs are those of the reader (corpus/reader).
 */
#include "capture/file/capture_decoder.h"
#include "capture/file/capture_format.h"
#include "capture/file/unpack_more.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_MOST ((uint64_t)64 << 20) /* of packed bytes that unpack to more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

struct sum {
	uint64_t frames, bytes;
	int64_t times;
};

/* Returns what ow_capture_decoder_read has returned at last. */
static int take(struct ow_capture_decoder *decoder, struct sum *sum)
{
	struct ow_frame frames[8];
	struct ow_error err;
	volatile uint8_t touched = 0;
	int n;
	while ((n = ow_capture_decoder_read(decoder, frames, 8, &err)) > 0 && sum->bytes < OUTPUT_MOST) {
		for (int i = 0; i < n; i++) {
			check(frames[i].caplen <= frames[i].len && frames[i].time_ns > 0);
			check(frames[i].time_ns <= OW_CAPTURE_TIME_MAX_NS);
			for (uint32_t k = 0; k < frames[i].caplen; k++)
				touched ^= frames[i].data[k];
			sum->bytes += frames[i].caplen + 1;
			sum->times ^= frames[i].time_ns;
		}
		sum->frames += (uint64_t)n;
	}
	(void)touched;
	return n;
}

static struct sum decode(const uint8_t *data, size_t size, bool pieces)
{
	struct ow_capture_decoder *decoder;
	struct sum sum = {0};
	struct ow_error err;
	int n = 0;
	check(ow_capture_decoder_create("x", &decoder) == 0);
	for (size_t at = 0, step; at < size && n == 0; at += step) {
		size_t room;
		uint8_t *to = ow_capture_decoder_room(decoder, &room);
		/* A piece of text that is too short to be ERF is refused at once, and the beginning of ERF may look like it. */
		step = pieces ? (at ? 1 : 16) + data[at] % 37u : size;
		step = step < size - at ? step : size - at;
		step = step < room ? step : room;
		check(step > 0);
		memcpy(to, data + at, step);
		ow_capture_decoder_fill(decoder, step);
		n = take(decoder, &sum);
	}
	(void)ow_capture_decoder_ends_whole(decoder, &err);
	ow_capture_decoder_free(decoder);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	if (!begun)
		ow_unpack_more();
	begun = true;
	struct sum whole = decode(data, size, false), parts = decode(data, size, true);
	if (whole.bytes < OUTPUT_MOST && parts.bytes < OUTPUT_MOST)
		check(memcmp(&whole, &parts, sizeof whole) == 0);
	return 0;
}
