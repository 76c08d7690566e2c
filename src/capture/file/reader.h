/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/device_stamp.h"
#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a capture: a file, or the files of a folder, of a pattern or of several of these joined by +, which are read in
 * the order of time (capture/file/file_set.h, file_merge.h). Classic pcap (micro- and nanoseconds, both byte orders) and
 * snoop and ERF are read with our own code, everything else (pcapng, rare pcap variants) with libpcap; either may be compressed
 * (capture/file/unpack.h). A path of "-" is standard input. Input that
 * cannot seek is copied to an unlinked temporary file, so that it can be rewound. Not thread-safe; different threads
 * may use different readers.
 */
struct ow_reader;

struct ow_reader_info {
	const char *path;
	const char *format; /* "pcap", "pcapng", ... */
	bool compressed;
	bool mapped;           /* frames are contiguous in memory, as in the file */
	uint16_t linktype;     /* of the file; for pcapng that of the first interface, and each frame has its own */
	uint32_t snaplen;      /* as the file declares it; 0 = unlimited or unknown */
	int64_t resolution_ns; /* 1000 for microsecond files; 1 for nanoseconds and finer; the coarsest of pcapng */
	uint64_t size_bytes;   /* of the files on disk, for progress reports */
	uint64_t dropped;      /* packets that the capture lost, if the files say so; complete at its end */
	uint32_t files;        /* of a set, those that are captures; 0 = one file, that is not one of a set */
	bool after_gap;        /* of a set: no file covers the time before the frames that were read last */
	bool wrong_unit;       /* a pcap file that declares microseconds has nanoseconds, and is read so */
	uint64_t excess;       /* records whose fraction of a second is a second or more; complete at its end */
};

int ow_reader_open(const char *path, struct ow_reader **ret_reader, struct ow_error *err);
void ow_reader_close(struct ow_reader *reader);
const struct ow_reader_info *ow_reader_info(const struct ow_reader *reader);

/*
 * Reads up to max frames; their bytes stay valid until the next call on this reader. Returns the number of frames, 0 at
 * the end, or a negative errno with err set. If the file is truncated or damaged, reading ends there: it returns 0, and
 * ow_reader_damage() says what is wrong and where.
 */
int ow_reader_read(struct ow_reader *reader, struct ow_frame *frames, size_t max, struct ow_error *err);

/*
 * The stamps of a capture device: finds out how frames are stamped from the first ones, and goes back to them; from then on
 * frames may have the times of their stamps, or 0 if they have none.
 *
 * "FILE#PORT" or "FILE#DEVICE:PORT" are the frames of this port only, by their stamps.
 */
int ow_reader_find_stamps(struct ow_reader *reader, struct ow_device_format *ret_format, struct ow_error *err);
void ow_reader_use_stamps(struct ow_reader *reader, const struct ow_device_format *format);
/*
 * The length of FILE, and the port as in struct ow_device_stamp; 0 if the path has no port, or is the name of a file. Without a
 * device, it is OW_READER_ANY_DEVICE: the one that has this port.
 */
#define OW_READER_ANY_DEVICE UINT32_MAX
size_t ow_reader_port_of_path(const char *path, uint64_t *ret_port);

/* One line with file and offset if the file is truncated or damaged, else NULL. Valid until rewind or close. */
const char *ow_reader_damage(const struct ow_reader *reader);

/* What a user should know about the files of a set, and about frames without a port, in a line; NULL if there is nothing. */
const char *ow_reader_note(const struct ow_reader *reader);

/* The i-th file of a set that has frames, in the order in which they begin; NULL if there are fewer, or it is one file. */
const char *ow_reader_file(const struct ow_reader *reader, size_t i);
/* That of the frame that was read last; the same pointer. */
const char *ow_reader_last_file(const struct ow_reader *reader);

/* Bytes of the file consumed so far, for progress reports. */
uint64_t ow_reader_position(const struct ow_reader *reader);

/* Goes back to the first record. */
int ow_reader_rewind(struct ow_reader *reader, struct ow_error *err);

/* "EN10MB", "RAW", ...; "?" for an unknown value. Static storage. */
const char *ow_linktype_name(uint16_t linktype);
