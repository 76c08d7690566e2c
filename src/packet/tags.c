/* SPDX-License-Identifier: Apache-2.0 */
/* The layers between the link and IP: Ethernet and its tags, LLC, PPP, MPLS, NSH. */
#include "packet/decode_cursor.h"

enum ow_layer ow_decode_cursor_ethernet(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 14))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + 12);
	ow_decode_cursor_skip(w, 14);
	return OW_LAYER_TYPE;
}

/* A tag of n bytes that ends with the next ethertype. */
static enum ow_layer tag(struct ow_decode_cursor *w, uint32_t n)
{
	if (!ow_decode_cursor_has(w, n))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + n - 2);
	ow_decode_cursor_skip(w, n);
	return OW_LAYER_TYPE;
}

/*
 * Arista's header with the time at which a switch received the frame: subtype 2 (1 = time), time scale 1, format and
 * hardware 1 (upper half: 1 = 64 bits, 2 = 48 bits), time 8 or 6, ethertype 2
 */
static enum ow_layer arista(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return OW_LAYER_SHORT;
	if (ow_load_be16(w->p) != 1)
		return OW_LAYER_NOT_IP;
	switch (w->p[3] >> 4) {
	case 1:
		return tag(w, 4 + 8 + 2);
	case 2:
		return tag(w, 4 + 6 + 2);
	default:
		return OW_LAYER_NOT_IP;
	}
}

enum ow_layer ow_decode_cursor_type(struct ow_decode_cursor *w)
{
	switch (w->type) {
	case 0x0800:
	case 0x86dd:
		return OW_LAYER_IP;
	case 0x8100: /* VLAN and its variants */
	case 0x88a8:
	case 0x9100:
	case 0x9200:
	case 0x9300:
		return tag(w, 4);
	case 0x8926: /* VN-Tag */
	case 0x892f: /* HSR */
		return tag(w, 6);
	case 0x893f: /* E-Tag */
	case 0x8909: /* Cisco metadata */
		return tag(w, 8);
	case 0xd28b:
		return arista(w);
	case 0x8847:
	case 0x8848:
		return OW_LAYER_MPLS;
	case 0x8864: /* PPPoE session: version and type, code, session 2, length 2 */
		return ow_decode_cursor_over(w, 6, OW_LAYER_PPP);
	case 0x880b:
		return OW_LAYER_PPP;
	case 0x88e7: /* provider backbone bridging: I-TAG, then the customer's frame */
		return ow_decode_cursor_over(w, 4, OW_LAYER_ETHERNET);
	case 0x6558:
		return OW_LAYER_ETHERNET;
	case 0x894f:
		return OW_LAYER_NSH;
	case 0x8870: /* LLC in jumbo frames */
		return OW_LAYER_LLC;
	default:
		return w->type <= 1500 ? OW_LAYER_LLC : OW_LAYER_NOT_IP;
	}
}

/* DSAP, SSAP, control; SNAP (aa aa 03) adds an OUI and an ethertype */
enum ow_layer ow_decode_cursor_llc(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 3))
		return OW_LAYER_SHORT;
	if (w->p[0] == 0x06 && w->p[1] == 0x06 && w->p[2] == 0x03)
		return ow_decode_cursor_over(w, 3, OW_LAYER_IP);
	if (w->p[0] != 0xaa || w->p[1] != 0xaa || w->p[2] != 0x03)
		return OW_LAYER_NOT_IP;
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	uint32_t oui = ow_load_be32(w->p + 2) & 0xffffff;
	w->type = ow_load_be16(w->p + 6);
	/* RFC 1042 and 802.1H; a length in place of the type would be LLC in LLC. */
	if ((oui != 0 && oui != 0x0000f8) || w->type <= 1500)
		return OW_LAYER_NOT_IP;
	ow_decode_cursor_skip(w, 8);
	return OW_LAYER_TYPE;
}

/* [ff 03] protocol, of one byte if that is odd */
enum ow_layer ow_decode_cursor_ppp(struct ow_decode_cursor *w)
{
	if (ow_decode_cursor_has(w, 2) && w->p[0] == 0xff && w->p[1] == 0x03)
		ow_decode_cursor_skip(w, 2);
	if (!ow_decode_cursor_has(w, 1))
		return OW_LAYER_SHORT;
	uint16_t protocol = w->p[0];
	if (!(protocol & 1)) {
		if (!ow_decode_cursor_has(w, 2))
			return OW_LAYER_SHORT;
		protocol = ow_load_be16(w->p);
		ow_decode_cursor_skip(w, 1);
	}
	ow_decode_cursor_skip(w, 1);
	switch (protocol) {
	case 0x0021:
	case 0x0057:
		return OW_LAYER_IP;
	case 0x0281:
	case 0x0283:
		return OW_LAYER_MPLS;
	default:
		return OW_LAYER_NOT_IP;
	}
}

/* Whether there is an IP header n bytes ahead whose length fits. */
static bool plausible_ip(const struct ow_decode_cursor *w, uint32_t n, unsigned version)
{
	if (!ow_decode_cursor_has(w, n + (version == 4 ? 20 : 40)))
		return false;
	const uint8_t *ip = w->p + n;
	if (ip[0] >> 4 != version)
		return false;
	uint32_t left = w->wire - n, total = ow_load_be16(ip + 2), payload = ow_load_be16(ip + 4);
	if (version == 4)
		return (ip[0] & 15) >= 5 && total >= 20 && total <= left;
	return 40 + payload <= left && (payload > 0 || ip[6] == 0 || ip[6] == 59);
}

/* Whether there is an Ethernet header n bytes ahead, of a protocol that is likely in a pseudowire. */
static bool plausible_ethernet(const struct ow_decode_cursor *w, uint32_t n)
{
	if (!ow_decode_cursor_has(w, n + 14))
		return false;
	uint16_t type = ow_load_be16(w->p + n + 12);
	switch (type) {
	case 0x0800:
		return plausible_ip(w, n + 14, 4);
	case 0x86dd:
		return plausible_ip(w, n + 14, 6);
	case 0x0806:
	case 0x8100:
	case 0x88a8:
	case 0x9100:
	case 0x8847:
	case 0x8863:
	case 0x8864:
	case 0x88cc:
		return true;
	default: /* a length, followed by SNAP, spanning tree or IS-IS */
		return type <= 1500 && type <= w->wire - n - 14 && ow_decode_cursor_has(w, n + 16) &&
		       w->p[n + 14] == w->p[n + 15] &&
		       (w->p[n + 14] == 0xaa || w->p[n + 14] == 0x42 || w->p[n + 14] == 0xfe);
	}
}

/*
 * MPLS labels do not name the payload. An IP header that fits has priority; then Ethernet after a control word, then
 * Ethernet without one (whose address may begin with any nibble).
 */
enum ow_layer ow_decode_cursor_mpls(struct ow_decode_cursor *w)
{
	bool bottom = false;
	for (unsigned n = 0; !bottom; n++) {
		if (n == OW_MPLS_LABELS_MAX || !ow_decode_cursor_has(w, 4))
			return OW_LAYER_SHORT;
		bottom = w->p[2] & 1;
		ow_decode_cursor_skip(w, 4);
	}
	if (!ow_decode_cursor_has(w, 1))
		return OW_LAYER_SHORT;
	unsigned nibble = w->p[0] >> 4;
	if ((nibble == 4 || nibble == 6) && plausible_ip(w, 0, nibble))
		return OW_LAYER_IP;
	if (nibble == 0 && plausible_ethernet(w, 4))
		return ow_decode_cursor_over(w, 4, OW_LAYER_ETHERNET);
	if (plausible_ethernet(w, 0))
		return OW_LAYER_ETHERNET;
	return nibble == 4 || nibble == 6 ? OW_LAYER_IP : OW_LAYER_NOT_IP;
}

/* version 2 bits, flags, TTL 6 bits, words 6 bits; metadata type 1, next protocol 1; path 4; metadata */
enum ow_layer ow_decode_cursor_nsh(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	uint32_t len = (w->p[1] & 63u) * 4;
	uint8_t next = w->p[3];
	if (w->p[0] >> 6 != 0 || len < 8 || !ow_decode_cursor_has(w, len))
		return OW_LAYER_SHORT;
	ow_decode_cursor_skip(w, len);
	switch (next) {
	case 1:
	case 2:
		return OW_LAYER_IP;
	case 3:
		return OW_LAYER_ETHERNET;
	case 4:
		return OW_LAYER_NSH;
	case 5:
		return OW_LAYER_MPLS;
	default:
		return OW_LAYER_NOT_IP;
	}
}
