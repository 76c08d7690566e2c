/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_FILE_CAPTURE_FORMAT_H
#define OW_CAPTURE_FILE_CAPTURE_FORMAT_H

#include "capture/file/reader.h"
#include "capture/file/source.h"

/*
 * The two ways of walking over the records of a capture, behind one interface for the reader. A walk starts at the
 * beginning of the source, fills what it learns into info, and does not own the source.
 */
struct ow_file_cursor {
	const struct ow_file_cursor_ops *ops;
	struct ow_source *source;
	struct ow_reader_info *info;
	uint64_t number;        /* records handed out so far */
	struct ow_error damage; /* why the walk ended early; empty if it did not */
};

struct ow_file_cursor_ops {
	/* As ow_reader_read(); max is not 0. Once it has returned 0 it is not called again before a rewind. */
	int (*read)(struct ow_file_cursor *walk, struct ow_frame *frames, size_t max, struct ow_error *err);
	/* The source has been rewound. */
	int (*rewind)(struct ow_file_cursor *walk, struct ow_error *err);
	void (*free)(struct ow_file_cursor *walk);
};

#define OW_PCAP_HEADER_BYTES 24
#define OW_PCAP_RECORD_BYTES 16

/*
 * Longest record that is believed, in bytes. tcpdump captures at most 262144 and USB captures 1 MiB; a longer
 * one is damage. It bounds the reader's memory.
 */
#define OW_CAPTURE_CAPLEN_MAX (1U << 20)

/*
 * Times are less than 2^62 ns from 1970 (to the year 2116), so that no difference of two overflows. All that a classic
 * file can say is within.
 */
#define OW_CAPTURE_TIME_MAX_NS ((INT64_C(1) << 62) - 1)
_Static_assert(OW_CAPTURE_TIME_MAX_NS - -OW_CAPTURE_TIME_MAX_NS > 0, "a difference of times overflows");

/*
 * What kind of capture file begins with these bytes. Our own walk takes version 2.4 in micro- and nanoseconds; older
 * versions (whose lengths may be swapped) and the magics of patched tcpdumps (Kuznetzov's, FMESQUITA's, NAVTEL's) go to
 * libpcap, as does pcapng.
 */
enum ow_file_kind { OW_FILE_KIND_NONE, OW_FILE_KIND_CLASSIC, OW_FILE_KIND_VARIANT, OW_FILE_KIND_PCAPNG };
enum ow_file_kind ow_file_kind(const uint8_t *head, size_t size);

/* Classic pcap of version 2.4 by our own walk. head holds the file's first OW_PCAP_HEADER_BYTES. */
int ow_file_cursor_classic(struct ow_source *source, const uint8_t *head, struct ow_reader_info *info,
                           struct ow_file_cursor **ret_walk, struct ow_error *err);
/* Whatever else libpcap knows. */
int ow_file_cursor_foreign(struct ow_source *source, struct ow_reader_info *info, struct ow_file_cursor **ret_walk,
                           struct ow_error *err);

#endif
