/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture file: opens, reads all frames and touches their bytes, and does it again after a rewind, which
 * must give the same number. fuzz/reader-corpus makes the seeds.
 */
#include "capture/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static uint64_t read_frames(struct ow_reader *reader)
{
	struct ow_frame frames[32];
	struct ow_error err;
	uint64_t n = 0;
	volatile uint8_t touched = 0;
	int got;

	while ((got = ow_reader_read(reader, frames, 32, &err)) > 0) {
		for (int i = 0; i < got; i++) {
			check(frames[i].caplen <= frames[i].len && frames[i].number == ++n);
			for (uint32_t k = 0; k < frames[i].caplen; k++)
				touched ^= frames[i].data[k];
		}
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_reader *reader;
	struct ow_error err;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	check(fd >= 0);
	for (size_t i = 0; i < size;) {
		ssize_t w = write(fd, data + i, size - i);
		check(w > 0);
		i += (size_t)w;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (ow_reader_open(path, &reader, &err) == 0) {
		uint64_t n = read_frames(reader);
		int damaged = ow_reader_damage(reader) != NULL;
		check(ow_reader_position(reader) <= ow_reader_info(reader)->size_bytes);
		check(ow_reader_info(reader)->resolution_ns >= 1);
		if (ow_reader_rewind(reader, &err) == 0) {
			check(read_frames(reader) == n);
			check((ow_reader_damage(reader) != NULL) == damaged);
		}
		ow_reader_close(reader);
	}
	close(fd);
	return 0;
}
