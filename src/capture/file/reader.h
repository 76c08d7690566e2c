/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_READER_H
#define OW_CAPTURE_FILE_READER_H

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a capture file: classic pcap (micro- and nanoseconds, both byte orders) by our own walk,
 * everything else (pcapng, odd pcap variants) by libpcap; either may be gzip-compressed. A path of "-" is standard
 * input; what cannot seek is spooled to an unlinked temporary file so that it can be rewound.
 * Not thread-safe; different readers may be used by different threads.
 */
struct ow_reader;

struct ow_reader_info {
	const char *path;
	const char *format; /* "pcap", "pcapng", ... */
	bool compressed;
	bool mapped;           /* frames lie in memory as they do in the file, one behind the other */
	uint16_t linktype;     /* of the file; of pcapng the first interface's, and each frame has its own */
	uint32_t snaplen;      /* as the file declares it; 0 = unlimited or unknown */
	int64_t resolution_ns; /* 1000 for microsecond files; 1 for nanoseconds and finer; the coarsest of pcapng */
	uint64_t size_bytes;   /* of the file on disk, for progress */
	uint64_t dropped;      /* packets that the capture lost, if a pcapng says so; known at its end */
};

int ow_reader_open(const char *path, struct ow_reader **ret_reader, struct ow_error *err);
void ow_reader_close(struct ow_reader *reader);
const struct ow_reader_info *ow_reader_info(const struct ow_reader *reader);

/*
 * Reads up to max frames; their bytes stay valid until the next call on this reader. Returns the number of frames,
 * 0 at the end, or a negative errno with err filled. A file that ends in the middle of a record, or that is damaged
 * from some record on, ends there: 0 is returned and ow_reader_damage() says what and where.
 */
int ow_reader_read(struct ow_reader *reader, struct ow_frame *frames, size_t max, struct ow_error *err);

/* One line naming file and offset if the file ended early (cut or damaged), else NULL. Valid until rewind or close. */
const char *ow_reader_damage(const struct ow_reader *reader);

/* Bytes of the file consumed so far, for progress. */
uint64_t ow_reader_position(const struct ow_reader *reader);

/* Back to the first record. */
int ow_reader_rewind(struct ow_reader *reader, struct ow_error *err);

/* "EN10MB", "RAW", ...; "?" for an unknown value. Static storage. */
const char *ow_linktype_name(uint16_t linktype);

#endif
