/* SPDX-License-Identifier: Apache-2.0 */
/* The extension headers of IPv6, and AH in IPv4. */
#include "packet/decode_cursor.h"

/* Offset of the final destination in a routing header with segments left, or 0. */
static uint32_t final_destination(const uint8_t *ip, uint32_t at, uint32_t len)
{
	uint8_t kind = ip[at + 2];
	if (len < 8 + 16)
		return 0;
	if (kind == 4) /* segment routing: the list is in reverse order */
		return at + 8;
	if (kind == 0 || kind == 2)
		return at + 8 + (len - 8) / 16 * 16 - 16;
	return 0;
}

bool ow_extensions_walk(const uint8_t *ip, const uint8_t *end, uint32_t offset, uint8_t proto,
                        struct ow_extensions *ret_ext)
{
	unsigned version = ip[0] >> 4;
	size_t captured = (size_t)(end - ip);
	*ret_ext = (struct ow_extensions){.stable = offset, .stable_proto = proto};
	for (unsigned n = 0; ow_is_extension(version, proto); n++) {
		if (n == OW_EXTENSIONS_MAX || captured < (size_t)offset + 8)
			return false;
		const uint8_t *header = ip + offset;
		uint32_t len = proto == 44 ? 8 : proto == 51 ? (header[1] + 2u) * 4 : (header[1] + 1u) * 8;
		if (captured < (size_t)offset + len)
			return false;
		if (proto == 43 && header[3] > 0) {
			ret_ext->routed = true;
			ret_ext->final = final_destination(ip, offset, len);
		}
		if (proto == 0 || proto == 43) {
			ret_ext->stable = offset + len;
			ret_ext->stable_proto = header[0];
		}
		if (proto == 44) {
			ret_ext->fragment = true;
			ret_ext->fragment_at = offset;
			ret_ext->later = ow_load_be16(header + 2) >= 8;
		}
		proto = header[0];
		offset += len;
		if (ret_ext->later)
			break;
	}
	ret_ext->l4 = offset;
	ret_ext->proto = proto;
	return true;
}
