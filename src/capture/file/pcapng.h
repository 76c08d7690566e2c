/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include <stddef.h>

/* Blocks and options of pcapng (draft-ietf-opsawg-pcapng). */
#define OW_PCAPNG_ORDER_MAGIC 0x1a2b3c4dU /* in a section, and with it of its byte order */

#define OW_PCAPNG_SECTION    0x0a0d0d0aU
#define OW_PCAPNG_INTERFACE  1U
#define OW_PCAPNG_PACKET     2U /* obsolete */
#define OW_PCAPNG_SIMPLE     3U
#define OW_PCAPNG_STATISTICS 5U
#define OW_PCAPNG_ENHANCED   6U

#define OW_PCAPNG_COMMENT   1U
#define OW_PCAPNG_DROPCOUNT 4U /* of a packet: dropped since the one before it */
#define OW_PCAPNG_IFDROP    5U /* dropped by the interface or the capturing program */
#define OW_PCAPNG_OSDROP    7U /* dropped by the system; some programs write the same number to both */
#define OW_PCAPNG_TSRESOL   9U
#define OW_PCAPNG_TSOFFSET  14U

#define OW_PCAPNG_DROPS_UNKNOWN 0xffffU /* in the obsolete block of a packet */

/* An option of a block: code 2 | length 2 | value, padded to 4. */
struct ow_pcapng_option {
	uint16_t code;
	size_t length;
	const uint8_t *value;
};

/* Reads the option at *at of a block of size bytes, and moves *at behind it. False: there are no further whole options. */
static inline bool ow_pcapng_next_option(const uint8_t *block, size_t size, bool big_endian, size_t *at,
                                         struct ow_pcapng_option *ret_option)
{
	if (*at + 4 > size)
		return false;
	uint16_t code = ow_load16(block + *at, big_endian);
	size_t length = ow_load16(block + *at + 2, big_endian);
	if (code == 0 || size - *at - 4 < length)
		return false;
	*ret_option = (struct ow_pcapng_option){code, length, block + *at + 4};
	*at += 4 + (length + 3) / 4 * 4;
	return true;
}
