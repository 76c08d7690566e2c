/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder: drives the walk over the layers of a frame. Plain Ethernet with IP goes straight to the IP step. */
#include "packet/packet.h"
#include "packet/walk.h"

static enum ow_layer step(struct ow_walk *w, enum ow_layer layer)
{
	switch (layer) {
	case OW_LAYER_ETHERNET:
		return ow_walk_ethernet(w);
	case OW_LAYER_TYPE:
		return ow_walk_type(w);
	case OW_LAYER_IP:
		return ow_walk_ip(w);
	case OW_LAYER_LLC:
		return ow_walk_llc(w);
	case OW_LAYER_PPP:
		return ow_walk_ppp(w);
	case OW_LAYER_MPLS:
		return ow_walk_mpls(w);
	case OW_LAYER_NSH:
		return ow_walk_nsh(w);
	default:
		return layer;
	}
}

static enum ow_decode outcome(enum ow_layer layer)
{
	switch (layer) {
	case OW_LAYER_FOUND:
		return OW_DECODE_IP;
	case OW_LAYER_NOT_IP:
		return OW_DECODE_NOT_IP;
	case OW_LAYER_UNKNOWN_LINK:
		return OW_DECODE_LINK;
	default: /* cut, malformed, or more than OW_LAYERS_MAX layers */
		return OW_DECODE_SHORT;
	}
}

static bool plain_ethernet(const struct ow_frame *frame)
{
	if (frame->linktype != 1 || frame->caplen < 14 + 20)
		return false;
	uint16_t type = ow_load_be16(frame->data + 12);
	return type == 0x0800 || type == 0x86dd;
}

enum ow_decode ow_packet_decode(const struct ow_frame *frame, bool inner, struct ow_packet *ret_packet)
{
	static const uint8_t nothing[1];
	const uint8_t *data = frame->caplen ? frame->data : nothing;
	*ret_packet = (struct ow_packet){0};
	struct ow_walk w = {
		.p = data,
		.end = data + frame->caplen,
		.wire = frame->len > frame->caplen ? frame->len : frame->caplen,
		.inner = inner,
		.packet = ret_packet,
	};
	enum ow_layer layer;
	if (plain_ethernet(frame)) {
		ow_walk_skip(&w, 14);
		layer = ow_walk_ip(&w);
	} else {
		layer = ow_walk_link(&w, frame->linktype);
	}
	for (unsigned n = 0; n < OW_LAYERS_MAX && layer < OW_LAYER_FOUND; n++)
		layer = step(&w, layer);
	return outcome(layer);
}
