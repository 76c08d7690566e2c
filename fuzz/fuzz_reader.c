/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture file: opens it, reads all frames and their bytes, and repeats this after a rewind, which must
 * give the same number. The same bytes twice are two files in one, with twice as many frames. Frames that are written
 * to a new file, or copied with comments, must be the same when they are read. fuzz/reader-corpus makes the seeds.
 */
#include "capture/file/reader.h"
#include "capture/file/capture_format.h"
#include "capture/file/comment_copy.h"
#include "capture/file/unpack_more.h"
#include "capture/file/writer.h"
#include "scratch.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/*
 * Reads all frames and returns their number; *ret_whole: up to the end of the file. Frames also go to the writer, if
 * there is one, except frames with times that it cannot represent.
 */
static uint64_t read_frames(struct ow_reader *reader, struct ow_writer *writer, uint64_t *ret_written, bool *ret_whole)
{
	struct ow_frame frames[32];
	struct ow_error err;
	uint64_t n = 0, written = 0;
	volatile uint8_t touched = 0;
	int got;

	while ((got = ow_reader_read(reader, frames, 32, &err)) > 0) {
		for (int i = 0; i < got; i++) {
			check(frames[i].caplen <= frames[i].len && frames[i].number == ++n);
			check(frames[i].time_ns <= OW_CAPTURE_TIME_MAX_NS);
			check(frames[i].time_ns >= -OW_CAPTURE_TIME_MAX_NS);
			for (uint32_t k = 0; k < frames[i].caplen; k++)
				touched ^= frames[i].data[k];
			written += writer && ow_writer_write(writer, &frames[i], &err) == 0;
		}
	}
	*ret_written = written;
	*ret_whole = got == 0 && !ow_reader_damage(reader);
	(void)touched;
	return n;
}

static bool same(const struct ow_frame *a, const struct ow_frame *b, uint32_t snaplen)
{
	uint32_t caplen = a->caplen < snaplen ? a->caplen : snaplen;
	return a->time_ns == b->time_ns && b->caplen == caplen && a->len == b->len &&
	       (caplen == 0 || memcmp(a->data, b->data, caplen) == 0);
}

/* Writes the frames of path to a new file, and reads both files in parallel. */
static void round_trip(const char *path, struct ow_writer_options options)
{
	struct ow_reader *reader, *again;
	struct ow_writer *writer;
	struct ow_error err;
	struct ow_frame a, b;
	struct scratch copy;
	uint64_t written, found = 0;
	bool whole;

	scratch_open(&copy);
	check(ow_reader_open(path, &reader, &err) == 0);
	options.nanoseconds = true;
	options.snaplen = 64;
	check(ow_writer_open(copy.path, &options, &writer, &err) == 0);
	read_frames(reader, writer, &written, &whole);
	check(ow_writer_close(writer, &err) == 0);
	check(ow_reader_open(copy.path, &again, &err) == 0);
	int r = ow_reader_rewind(reader, &err);
	while (ow_reader_read(again, &b, 1, &err) == 1) {
		found++;
		do
			check(r == 0 && ow_reader_read(reader, &a, 1, &err) == 1);
		while (!same(&a, &b, options.snaplen));
	}
	check(found == written && !ow_reader_damage(again));
	ow_reader_close(again);
	ow_reader_close(reader);
	scratch_close(&copy);
}

static int comment_of(void *arg, uint64_t number, char text[OW_COMMENT_MAX], struct ow_error *err)
{
	(void)arg;
	(void)err;
	return snprintf(text, OW_COMMENT_MAX, "%.*s", (int)(number % 7), "comment");
}

/* A copy with comments has the same frames; it may not be possible, because of times. */
static void comments(const char *path, uint64_t frames, bool whole)
{
	struct ow_reader *reader, *again;
	struct ow_frame a, b;
	struct ow_error err;
	struct scratch copy;

	scratch_open(&copy);
	if (ow_comment_copy(path, copy.path, frames, comment_of, NULL, &err) == 0 && frames) {
		check(ow_reader_open(path, &reader, &err) == 0 && ow_reader_open(copy.path, &again, &err) == 0);
		for (uint64_t i = 0; i < frames; i++) {
			check(ow_reader_read(reader, &a, 1, &err) == 1 && ow_reader_read(again, &b, 1, &err) == 1);
			check(same(&a, &b, UINT32_MAX) && a.linktype == b.linktype);
		}
		check(!whole || ow_reader_read(again, &b, 1, &err) == 0);
		ow_reader_close(again);
		ow_reader_close(reader);
	}
	scratch_close(&copy);
}

/* Stamps of capture devices, if it has such: as many frames, with other times. */
static void stamps(const char *path, uint64_t frames)
{
	struct ow_device_format format;
	struct ow_reader *reader;
	struct ow_error err;
	uint64_t written;
	bool whole;

	check(ow_reader_open(path, &reader, &err) == 0);
	if (ow_reader_find_stamps(reader, &format, &err) == 0) {
		if (format.device != OW_DEVICE_NONE)
			ow_reader_use_stamps(reader, &format);
		check(read_frames(reader, NULL, &written, &whole) == frames);
	}
	ow_reader_close(reader);
}

/* Two classic files in one; the first is complete. */
static void twice(const uint8_t *data, size_t size, uint64_t frames)
{
	struct ow_reader *reader;
	struct ow_error err;
	struct scratch file;
	uint64_t written;
	bool whole;

	scratch_open(&file);
	scratch_add(&file, data, size);
	scratch_add(&file, data, size);
	check(ow_reader_open(file.path, &reader, &err) == 0);
	check(read_frames(reader, NULL, &written, &whole) == 2 * frames && whole);
	ow_reader_close(reader);
	scratch_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_reader *reader;
	struct ow_error err;
	struct scratch file;
	uint64_t written;
	bool whole, again;

	ow_unpack_more();
	scratch_open(&file);
	scratch_add(&file, data, size);
	if (ow_reader_open(file.path, &reader, &err) == 0) {
		uint64_t n = read_frames(reader, NULL, &written, &whole);
		check(ow_reader_position(reader) <= ow_reader_info(reader)->size_bytes);
		check(ow_reader_info(reader)->resolution_ns >= 1);
		if (ow_reader_rewind(reader, &err) == 0) {
			check(read_frames(reader, NULL, &written, &again) == n);
			check(whole == again);
		}
		ow_reader_close(reader);
		stamps(file.path, n);
		comments(file.path, n, whole);
		round_trip(file.path, (struct ow_writer_options){.format = OW_FILE_PCAPNG, .big_endian = n % 2});
		round_trip(file.path, (struct ow_writer_options){.format = OW_FILE_PCAP, .big_endian = n % 2});
		if (whole && ow_file_kind(data, size) == OW_FILE_KIND_CLASSIC)
			twice(data, size, n);
	}
	scratch_close(&file);
	return 0;
}
