/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a capture file, by its first bytes; the unit of its times, by its first records. */
#include "capture/file/capture_format.h"

#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/pcapng.h"
#include <string.h>

#define LOOK   4096U /* records that are looked at for their unit: a millisecond at 4 M packets a second .. */
#define JUDGED 16U   /* .. and so many of them tell it */

enum ow_file_kind ow_file_kind(const uint8_t *head, size_t size)
{
	static const uint32_t classic[] = {0xa1b2c3d4, 0xa1b23c4d};
	static const uint32_t patched[] = {0xa1b2cd34, 0xa1b234cd, 0xa12b3c4d};

	if (size < 4)
		return OW_FILE_KIND_NONE;
	for (int swapped = 0; swapped < 2; swapped++) {
		uint32_t magic = swapped ? ow_load_be32(head) : ow_load_le32(head);
		for (size_t i = 0; i < sizeof classic / sizeof *classic; i++) {
			if (magic != classic[i])
				continue;
			/* two 16-bit fields read as one: 2 and 4 in the file's byte order */
			if (size < 8 || ow_load_le32(head + 4) == (swapped ? 0x04000200 : 0x00040002))
				return OW_FILE_KIND_CLASSIC;
			return OW_FILE_KIND_VARIANT;
		}
		for (size_t i = 0; i < sizeof patched / sizeof *patched; i++) {
			if (magic == patched[i])
				return OW_FILE_KIND_VARIANT;
		}
	}
	if (size >= 8 && memcmp(head, "snoop\0\0", 8) == 0)
		return OW_FILE_KIND_SNOOP;
	return ow_load_le32(head) == OW_PCAPNG_SECTION ? OW_FILE_KIND_PCAPNG : OW_FILE_KIND_NONE;
}

/*
 * The first millisecond of a second fits both units. So the records from the first one on that is beyond microseconds
 * decide; if there is none until the next second begins, they are microseconds.
 */
int64_t ow_pcap_tick_ns(const uint8_t *records, size_t size, bool swapped, int64_t tick_ns)
{
	const uint8_t *p = records, *end = records + size;
	unsigned seen = 0, beyond = 0, judged = 0;
	uint32_t second = 0;
	while (tick_ns > 1 && seen < LOOK && judged < JUDGED && (size_t)(end - p) >= OW_PCAP_RECORD_BYTES) {
		uint32_t fraction = ow_load32(p + 4, swapped), caplen = ow_load32(p + 8, swapped);
		if (caplen > OW_CAPTURE_CAPLEN_MAX || ow_file_kind(p, OW_PCAP_RECORD_BYTES) != OW_FILE_KIND_NONE)
			break;
		beyond += fraction >= OW_NS_PER_S / tick_ns && fraction < OW_NS_PER_S;
		judged += beyond > 0;
		if (seen++ && !beyond && ow_load32(p, swapped) != second)
			break;
		second = ow_load32(p, swapped);
		if ((size_t)(end - p) - OW_PCAP_RECORD_BYTES < caplen)
			break;
		p += OW_PCAP_RECORD_BYTES + caplen;
	}
	/* A single one behind others is damage. */
	return 2 * beyond > judged && (beyond > 1 || seen == 1) ? 1 : tick_ns;
}
