/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a capture file, by its first bytes. */
#include "capture/file/capture_format.h"

#include "base/bytes.h"
#include "capture/file/pcapng.h"
#include <string.h>

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
