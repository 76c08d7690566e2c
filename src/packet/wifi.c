/* SPDX-License-Identifier: Apache-2.0 */
/* 802.11 data frames, and the headers that capture programs put in front of them (radiotap, Prism, AVS, PPI). */
#include "packet/decode_cursor.h"

#define RADIOTAP_WORDS_MAX 32
#define RADIOTAP_FLAG_FCS  0x10
#define RADIOTAP_FLAG_PAD  0x20
#define PRISM_HEADER       144
#define AVS_MAGIC          0x80211001u /* with any last digit */

/* control 2, duration 2, address 6, address 6, address 6, sequence 2, [address 6], [QoS 2], [HT control 4] */
static enum ow_layer wifi(struct ow_decode_cursor *w, bool padded)
{
	if (!ow_decode_cursor_has(w, 24))
		return OW_LAYER_SHORT;
	uint8_t control = w->p[0], flags = w->p[1];
	/* Accept only data with a body, not encrypted, and not a later fragment. */
	if ((control & 0x0f) != 0x08 || control & 0x40 || flags & 0x40 || w->p[22] & 0x0f)
		return OW_LAYER_NOT_IP;
	uint32_t n = (flags & 3) == 3 ? 30 : 24;
	bool amsdu = false;
	if (control & 0x80) {
		if (!ow_decode_cursor_has(w, n + 2))
			return OW_LAYER_SHORT;
		amsdu = w->p[n] & 0x80;
		n += 2 + (flags & 0x80 ? 4 : 0);
	}
	if (padded)
		n = (n + 3) & ~3u;
	if (amsdu) /* the first of several packets: addresses and length of the subframe */
		n += 14;
	return ow_decode_cursor_over(w, n, OW_LAYER_LLC);
}

enum ow_layer ow_decode_cursor_wifi(struct ow_decode_cursor *w)
{
	return wifi(w, false);
}

/* The flags field of a radiotap header of len bytes, 0 if it has none. */
static uint8_t radiotap_flags(const uint8_t *p, uint32_t len)
{
	uint32_t first = ow_load_le32(p + 4), at = 8, present = first;
	for (unsigned n = 0; present & 0x80000000u; n++) {
		if (n == RADIOTAP_WORDS_MAX || at + 4 > len)
			return 0;
		present = ow_load_le32(p + at);
		at += 4;
	}
	if (first & 1) /* timestamp, aligned to 8 */
		at = ((at + 7) & ~7u) + 8;
	return first & 2 && at < len ? p[at] : 0;
}

static void drop_fcs(struct ow_decode_cursor *w)
{
	if (w->wire < 4)
		return;
	w->wire -= 4;
	if ((size_t)(w->end - w->p) > w->wire)
		w->end = w->p + w->wire;
}

/* version 0, pad, length 2, present 4 or more, fields */
enum ow_layer ow_decode_cursor_radiotap(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	uint32_t len = ow_load_le16(w->p + 2);
	if (w->p[0] != 0 || len < 8 || !ow_decode_cursor_has(w, len))
		return OW_LAYER_SHORT;
	uint8_t flags = radiotap_flags(w->p, len);
	ow_decode_cursor_skip(w, len);
	if (flags & RADIOTAP_FLAG_FCS)
		drop_fcs(w);
	return wifi(w, flags & RADIOTAP_FLAG_PAD);
}

/* A Prism header has a fixed size. The same link type is used for AVS headers, which have a magic and a length. */
enum ow_layer ow_decode_cursor_prism(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	uint32_t len = PRISM_HEADER;
	if ((ow_load_be32(w->p) & 0xfffffff0u) == (AVS_MAGIC & 0xfffffff0u))
		len = ow_load_be32(w->p + 4);
	if (len < 8 || !ow_decode_cursor_has(w, len))
		return OW_LAYER_SHORT;
	ow_decode_cursor_skip(w, len);
	return wifi(w, false);
}

/* version 1, flags 1, length 2, link type 4, fields {type 2, length 2, value}; 802.11 common fields (2) have flags at 8
 */
enum ow_layer ow_decode_cursor_ppi(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	uint32_t len = ow_load_le16(w->p + 2), linktype = ow_load_le32(w->p + 4), at = 8;
	if (len < 8 || !ow_decode_cursor_has(w, len))
		return OW_LAYER_SHORT;
	bool fcs = false;
	while (at + 4 <= len) {
		uint32_t type = ow_load_le16(w->p + at), size = ow_load_le16(w->p + at + 2);
		if (type == 2 && size >= 10 && at + 4 + size <= len)
			fcs = w->p[at + 12] & 1;
		at += 4 + size;
	}
	ow_decode_cursor_skip(w, len);
	if (fcs)
		drop_fcs(w);
	if (linktype == 105)
		return wifi(w, false);
	return linktype == OW_LINKTYPE_ETHERNET ? OW_LAYER_ETHERNET : OW_LAYER_UNKNOWN_LINK;
}
