/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>

/* Writes capture files, buffered. The same frames and options give the same bytes. */
struct ow_writer;

enum ow_file_format { OW_FILE_PCAP, OW_FILE_PCAPNG };

struct ow_writer_options {
	enum ow_file_format format;
	uint16_t linktype;
	uint32_t snaplen; /* frames are cut to this; 0 = 262144 */
	bool nanoseconds; /* pcap: the nanosecond magic */
	bool big_endian;  /* pcap and pcapng */
	bool gzip;
	/* pcapng only: */
	int tsresol;         /* the if_tsresol byte: 6, 9, or 0x80|n for 2^-n; 0 = 6 or 9, by `nanoseconds` */
	unsigned interfaces; /* number of interface blocks; frames are assigned round robin; 0 = 1 */
	int64_t tsoffset_s;  /* if_tsoffset, seconds; stored times are relative to it */
};

/* The format that the name stands for: .gz compresses; .pcapng (or .pcapng.gz) is pcapng, any other name is pcap. */
void ow_writer_options_of_name(const char *path, enum ow_file_format *ret_format, bool *ret_gzip);

int ow_writer_open(const char *path, const struct ow_writer_options *options, struct ow_writer **ret_writer,
                   struct ow_error *err);
/* Writes one frame; bytes beyond the snaplen are cut. Ignores the frame's linktype and number. */
int ow_writer_write(struct ow_writer *writer, const struct ow_frame *frame, struct ow_error *err);
/* Flushes and closes. Frees the writer, also on failure; a failure also removes a regular file. writer may be NULL. */
int ow_writer_close(struct ow_writer *writer, struct ow_error *err);
/* Closes, ignores errors, and removes the unfinished file. writer may be NULL. */
void ow_writer_abort(struct ow_writer *writer);
