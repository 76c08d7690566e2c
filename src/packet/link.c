/* SPDX-License-Identifier: Apache-2.0 */
/* Link types (LINKTYPE_ values, https://www.tcpdump.org/linktypes.html): from the start of a frame to its first layer.
 */
#include "packet/decode_cursor.h"

#define NFLOG_ATTRIBUTES_MAX 64
#define PKTAP_HEADER_MAX     4096

/*
 * BSD loopback: the address family in either byte order. AF_INET6 is 10 on Linux, 23 on Windows, 24, 26, 28 or 30
 * elsewhere.
 */
static enum ow_layer loopback(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return OW_LAYER_SHORT;
	uint32_t family = ow_load_le32(w->p);
	if (family > 0xffff)
		family = ow_load_be32(w->p);
	ow_decode_cursor_skip(w, 4);
	switch (family) {
	case 2:
	case 10:
	case 23:
	case 24:
	case 26:
	case 28:
	case 30:
		return OW_LAYER_IP;
	default:
		return OW_LAYER_NOT_IP;
	}
}

/* The meaning of the protocol field of a Linux cooked header depends on the type of device. */
static enum ow_layer cooked(struct ow_decode_cursor *w, uint16_t device, uint16_t protocol)
{
	switch (device) {
	case 770: /* frame relay */
	case 824: /* netlink */
		return OW_LAYER_NOT_IP;
	case 801:
		return ow_decode_cursor_wifi(w);
	case 802:
		return ow_decode_cursor_prism(w);
	case 803:
		return ow_decode_cursor_radiotap(w);
	default:
		break;
	}
	if (protocol == 4) /* 802.2 */
		return OW_LAYER_LLC;
	if (protocol <= 1500) /* other pseudo protocols: raw 802.3, CAN, ... */
		return OW_LAYER_NOT_IP;
	w->type = protocol;
	return OW_LAYER_TYPE;
}

/* direction 2, device type 2, address length 2, address 8, protocol 2 */
static enum ow_layer cooked1(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 16))
		return OW_LAYER_SHORT;
	uint16_t device = ow_load_be16(w->p + 2), protocol = ow_load_be16(w->p + 14);
	ow_decode_cursor_skip(w, 16);
	return cooked(w, device, protocol);
}

/* protocol 2, 0 2, interface 4, device type 2, direction 1, address length 1, address 8 */
static enum ow_layer cooked2(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 20))
		return OW_LAYER_SHORT;
	uint16_t device = ow_load_be16(w->p + 8), protocol = ow_load_be16(w->p);
	ow_decode_cursor_skip(w, 20);
	return cooked(w, device, protocol);
}

/* address, control, ethertype (Cisco HDLC) */
static enum ow_layer hdlc(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 4))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + 2);
	ow_decode_cursor_skip(w, 4);
	return w->type <= 1500 ? OW_LAYER_NOT_IP : OW_LAYER_TYPE;
}

/* PPP in HDLC-like framing; some systems use the same number for Cisco HDLC. */
static enum ow_layer ppp_hdlc(struct ow_decode_cursor *w)
{
	if (ow_decode_cursor_has(w, 2) && (w->p[0] == 0x0f || w->p[0] == 0x8f) && w->p[1] == 0)
		return hdlc(w);
	return OW_LAYER_PPP;
}

/* family 1, version 1, resource 2, attributes {length 2, type 2, value, padding to 4} in the host's byte order */
static enum ow_layer nflog(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 8))
		return OW_LAYER_SHORT;
	bool ip = w->p[0] == 2 || w->p[0] == 10;
	uint16_t protocol = 0;
	ow_decode_cursor_skip(w, 4);
	/* Types are small numbers: if the first byte is 0 and the second is not, the byte order is big-endian. */
	bool big = w->p[2] == 0 && w->p[3] != 0;
	for (unsigned n = 0; n < NFLOG_ATTRIBUTES_MAX; n++) {
		if (!ow_decode_cursor_has(w, 4))
			return OW_LAYER_SHORT;
		uint32_t len = big ? ow_load_be16(w->p) : ow_load_le16(w->p);
		uint32_t type = (big ? ow_load_be16(w->p + 2) : ow_load_le16(w->p + 2)) & 0x7fff;
		if (type == 1 && ow_decode_cursor_has(w, 6)) /* packet header: begins with the ethertype */
			protocol = ow_load_be16(w->p + 4);
		if (type == 9) { /* the packet */
			ow_decode_cursor_skip(w, 4);
			w->type = protocol;
			return ip ? OW_LAYER_IP : protocol > 1500 ? OW_LAYER_TYPE : OW_LAYER_NOT_IP;
		}
		len = (len + 3) & ~3u;
		if (len < 4 || !ow_decode_cursor_has(w, len))
			return OW_LAYER_SHORT;
		ow_decode_cursor_skip(w, len);
	}
	return OW_LAYER_SHORT;
}

/* Token Ring: access 1, control 1, addresses, [routing information if the source says so], LLC */
static enum ow_layer token_ring(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 16))
		return OW_LAYER_SHORT;
	if ((w->p[1] & 0xc0) != 0x40)
		return OW_LAYER_NOT_IP;
	uint32_t n = 14;
	if (w->p[8] & 0x80)
		n += w->p[14] & 31u;
	return ow_decode_cursor_over(w, n, OW_LAYER_LLC);
}

static enum ow_layer fddi(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 13))
		return OW_LAYER_SHORT;
	if ((w->p[0] & 0xf0) != 0x50) /* LLC frames */
		return OW_LAYER_NOT_IP;
	return ow_decode_cursor_over(w, 13, OW_LAYER_LLC);
}

/* time 8, type 1, flags 1, record length 2, losses 2, wire length 2, [extension headers 8 each] */
static enum ow_layer erf_record(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 16))
		return OW_LAYER_SHORT;
	uint8_t type = w->p[8], more = type;
	ow_decode_cursor_skip(w, 16);
	for (unsigned n = 0; more & 0x80; n++) {
		if (n == OW_LAYERS_MAX || !ow_decode_cursor_has(w, 8))
			return OW_LAYER_SHORT;
		more = w->p[0];
		ow_decode_cursor_skip(w, 8);
	}
	switch (type & 0x7f) {
	case 2: /* Ethernet in four variants, after an offset and a pad byte */
	case 11:
	case 16:
	case 20:
		return ow_decode_cursor_over(w, 2, OW_LAYER_ETHERNET);
	case 22:
	case 23:
		return OW_LAYER_IP;
	default:
		return OW_LAYER_UNKNOWN_LINK;
	}
}

/* IP over InfiniBand: 40 bytes of addresses, ethertype 2, 0 2 */
static enum ow_layer infiniband(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 44))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + 40);
	ow_decode_cursor_skip(w, 44);
	return w->type <= 1500 ? OW_LAYER_NOT_IP : OW_LAYER_TYPE;
}

/* Frame relay (RFC 2427): address 2, control 03, [pad 0], what follows 1 */
static enum ow_layer frame_relay(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 5))
		return OW_LAYER_SHORT;
	if ((w->p[0] & 1) || !(w->p[1] & 1) || w->p[2] != 0x03)
		return OW_LAYER_NOT_IP;
	ow_decode_cursor_skip(w, w->p[3] == 0 ? 4 : 3);
	uint8_t next = w->p[0];
	ow_decode_cursor_skip(w, 1);
	if (next == 0xcc || next == 0x8e)
		return OW_LAYER_IP;
	if (next != 0x80) /* SNAP: OUI 3, ethertype 2 */
		return OW_LAYER_NOT_IP;
	if (!ow_decode_cursor_has(w, 5))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + 3);
	if (w->p[0] | w->p[1] | w->p[2] || w->type <= 1500)
		return OW_LAYER_NOT_IP;
	ow_decode_cursor_skip(w, 5);
	return OW_LAYER_TYPE;
}

/* Ethernet with a switch tag of n bytes between addresses and type. */
static enum ow_layer switch_tag(struct ow_decode_cursor *w, uint32_t n)
{
	if (!ow_decode_cursor_has(w, 14 + n))
		return OW_LAYER_SHORT;
	w->type = ow_load_be16(w->p + 12 + n);
	ow_decode_cursor_skip(w, 14 + n);
	return OW_LAYER_TYPE;
}

/* The packet filter's log: length 1 (to be rounded up to 4), family 1, ... */
static enum ow_layer pflog(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 1))
		return OW_LAYER_SHORT;
	return ow_decode_cursor_over(w, (w->p[0] + 3u) & ~3u, OW_LAYER_IP);
}

static enum ow_layer link_layer(struct ow_decode_cursor *w, uint32_t linktype)
{
	switch (linktype) {
	case 1:
		return OW_LAYER_ETHERNET;
	case 0:
	case 108:
		return loopback(w);
	case 12: /* raw IP: the BSDs, OpenBSD, and the value in files */
	case 14:
	case 101:
	case 228:
	case 229:
		return OW_LAYER_IP;
	case 113:
		return cooked1(w);
	case 276:
		return cooked2(w);
	case 9:
		return OW_LAYER_PPP;
	case 50:
		return ppp_hdlc(w);
	case 51: /* PPPoE without its Ethernet header */
		return ow_decode_cursor_over(w, 6, OW_LAYER_PPP);
	case 166: /* pppd: a direction in place of the address */
		return ow_decode_cursor_over(w, 2, OW_LAYER_PPP);
	case 204: /* a direction byte before the frame */
		return ow_decode_cursor_over(w, 1, OW_LAYER_PPP);
	case 104:
		return hdlc(w);
	case 105:
		return ow_decode_cursor_wifi(w);
	case 127:
		return ow_decode_cursor_radiotap(w);
	case 119:
	case 163:
		return ow_decode_cursor_prism(w);
	case 192:
		return ow_decode_cursor_ppi(w);
	case 239:
		return nflog(w);
	case 6:
		return token_ring(w);
	case 10:
		return fddi(w);
	case 11: /* ATM, RFC 1483: in memory, and the value in files */
	case 100:
		return OW_LAYER_LLC;
	case 107:
		return frame_relay(w);
	case 242:
		return infiniband(w);
	case 109: /* OpenBSD enc: family 4, SPI 4, flags 4 */
		return ow_decode_cursor_over(w, 12, OW_LAYER_IP);
	case 117:
		return pflog(w);
	case 197:
		return erf_record(w);
	case 219:
		return OW_LAYER_MPLS;
	case 226: /* Solaris ipnet */
		return ow_decode_cursor_over(w, 24, OW_LAYER_IP);
	case 240: /* netANALYZER: a header of 4 bytes */
	case 282: /* Broadcom switch tag in front of the frame */
		return ow_decode_cursor_over(w, 4, OW_LAYER_ETHERNET);
	case 281: /* Broadcom and Marvell switch tags inside it */
	case 284:
		return switch_tag(w, 4);
	case 285:
		return switch_tag(w, 8);
	default:
		return OW_LAYER_UNKNOWN_LINK;
	}
}

/* Apple's header: length 4, what follows 4 (1 = a packet), its DLT_ value 4, ... */
static enum ow_layer pktap(struct ow_decode_cursor *w)
{
	if (!ow_decode_cursor_has(w, 12))
		return OW_LAYER_SHORT;
	uint32_t len = ow_load_le32(w->p), next = ow_load_le32(w->p + 4), linktype = ow_load_le32(w->p + 8);
	if (next != 1)
		return OW_LAYER_NOT_IP;
	if (len < 12 || len > PKTAP_HEADER_MAX || !ow_decode_cursor_has(w, len))
		return OW_LAYER_SHORT;
	ow_decode_cursor_skip(w, len);
	return link_layer(w, linktype);
}

enum ow_layer ow_decode_cursor_link(struct ow_decode_cursor *w, uint32_t linktype)
{
	return linktype == 258 || linktype == 149 ? pktap(w) : link_layer(w, linktype);
}
