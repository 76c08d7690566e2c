/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/reader.h"
#include "capture/file/source.h"

/*
 * A cursor over the records of a capture file. There are three implementations behind this interface. A cursor starts at
 * the beginning of the source, writes what it learns to info, and does not own the source.
 */
struct ow_file_cursor {
	const struct ow_file_cursor_ops *ops;
	struct ow_source *source;
	struct ow_reader_info *info;
	uint64_t number;        /* records returned so far */
	struct ow_error damage; /* why the file ended early; empty if it did not */
};

struct ow_file_cursor_ops {
	/* As ow_reader_read(); max is not 0. After it has returned 0 it is not called again before a rewind. */
	int (*read)(struct ow_file_cursor *walk, struct ow_frame *frames, size_t max, struct ow_error *err);
	/* The caller has rewound the source. */
	int (*rewind)(struct ow_file_cursor *walk, struct ow_error *err);
	void (*free)(struct ow_file_cursor *walk);
};

#define OW_PCAP_HEADER_BYTES 24
#define OW_PCAP_RECORD_BYTES 16

/*
 * The longest record that is accepted, in bytes. tcpdump captures at most 262144 bytes and USB captures 1 MiB; a longer
 * record means that the file is damaged. The limit bounds the reader's memory.
 */
#define OW_CAPTURE_CAPLEN_MAX (1U << 20)

/*
 * Times are less than 2^62 ns from 1970 (to the year 2116), so that differences of two times do not overflow. All times
 * of a classic file are within.
 */
#define OW_CAPTURE_TIME_MAX_NS ((INT64_C(1) << 62) - 1)
_Static_assert(OW_CAPTURE_TIME_MAX_NS - -OW_CAPTURE_TIME_MAX_NS > 0, "a difference of times overflows");

/*
 * The kind of capture file that begins with these bytes. Our own reader handles version 2.4 with micro- or nanoseconds.
 * libpcap handles older versions (whose lengths may be swapped), the magics of patched tcpdumps (Kuznetzov's,
 * FMESQUITA's, NAVTEL's) and pcapng. ERF has no magic: see ow_file_is_erf().
 */
enum ow_file_kind {
	OW_FILE_KIND_NONE,
	OW_FILE_KIND_CLASSIC,
	OW_FILE_KIND_VARIANT,
	OW_FILE_KIND_PCAPNG,
	OW_FILE_KIND_SNOOP
};
enum ow_file_kind ow_file_kind(const uint8_t *head, size_t size);
/*
 * Whether a file that begins with these bytes is ERF, which is a row of records and nothing else: at least two records, or
 * one that is the whole file. OW_ERF_LOOK_BYTES of it suffice. With fewer bytes it may be ERF if nothing contradicts.
 */
#define OW_ERF_LOOK_BYTES ((size_t)160 << 10) /* two records of any size */
bool ow_file_is_erf(const uint8_t *bytes, size_t size);
bool ow_file_may_be_erf(const uint8_t *bytes, size_t size);

/*
 * Nanoseconds of a unit of the sub-seconds of a pcap file: tick_ns, as its header declares, or 1 if that declares
 * microseconds and its records have nanoseconds, as some devices and tools write. records: as many as there are.
 */
int64_t ow_pcap_tick_ns(const uint8_t *records, size_t size, bool swapped, int64_t tick_ns);

/* Reads classic pcap of version 2.4 without libpcap. head holds the first OW_PCAP_HEADER_BYTES of the file. */
int ow_file_cursor_classic(struct ow_source *source, const uint8_t *head, struct ow_reader_info *info,
                           struct ow_file_cursor **ret_walk, struct ow_error *err);
/* Reads snoop; head holds its first OW_PCAP_HEADER_BYTES. The source has been rewound. */
int ow_file_cursor_snoop(struct ow_source *source, const uint8_t *head, struct ow_reader_info *info,
                         struct ow_file_cursor **ret_walk, struct ow_error *err);
/* The same for ERF. linktype: of its first packet. */
int ow_file_cursor_erf(struct ow_source *source, uint16_t linktype, struct ow_reader_info *info,
                       struct ow_file_cursor **ret_walk, struct ow_error *err);
/* Reads all other formats with libpcap. */
int ow_file_cursor_foreign(struct ow_source *source, struct ow_reader_info *info, struct ow_file_cursor **ret_walk,
                           struct ow_error *err);
