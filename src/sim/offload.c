/* SPDX-License-Identifier: Apache-2.0 */
/* Checksum and segmentation offload in software. */
#include "sim/offload.h"

#include "base/bytes.h"
#include "sim/build.h"
#include "sim/wire.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define IPV4_MIN    20
#define IPV6_HEADER 40
#define UDP_HEADER  8
#define TCP_MIN     20

#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

struct superframe {
	const uint8_t *frame;
	size_t len, l4, headers; /* headers: up to the payload */
	uint16_t gso_size;
	bool v4, tcp;
};

static bool is_v4(const uint8_t *frame)
{
	return ow_load_be16(frame + 12) == 0x0800;
}

/* csum_start and csum_offset as in virtio: the field already contains the sum of the pseudo header. */
static int fill_checksum(const struct virtio_net_hdr *header, uint8_t *frame, size_t len)
{
	size_t start = header->csum_start, at = start + header->csum_offset;
	if (start > len || at + 2 > len)
		return -EBADMSG;
	uint16_t sum = ow_sum_fold(ow_sum_add(0, frame + start, len - start));
	/* In UDP 0 means "no checksum"; 0xffff is the same number. */
	ow_store_be16(frame + at, sum ? sum : 0xffff);
	return 0;
}

static int inspect(const struct virtio_net_hdr *header, const uint8_t *frame, size_t len, struct superframe *ret_super)
{
	unsigned type = header->gso_type & ~(unsigned)VIRTIO_NET_HDR_GSO_ECN;
	struct superframe super = {.frame = frame, .len = len, .l4 = header->csum_start, .gso_size = header->gso_size};
	if (len < OW_OFFLOAD_ETHER + IPV4_MIN || !header->gso_size || !(header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return -EBADMSG;
	super.v4 = is_v4(frame);
	super.tcp = type != VIRTIO_NET_HDR_GSO_UDP_L4;
	bool known = type == VIRTIO_NET_HDR_GSO_UDP_L4 ||
	             type == (super.v4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6);
	size_t ip_header = super.v4 ? (size_t)(frame[OW_OFFLOAD_ETHER] & 15) * 4 : IPV6_HEADER;
	if (!known || frame[OW_OFFLOAD_ETHER] >> 4 != (super.v4 ? 4 : 6) || ip_header < IPV4_MIN)
		return -EBADMSG;
	if (super.l4 < OW_OFFLOAD_ETHER + ip_header)
		return -EBADMSG;
	if (super.l4 + (super.tcp ? TCP_MIN : UDP_HEADER) > len)
		return -EBADMSG;
	super.headers = super.l4 + (super.tcp ? (size_t)(frame[super.l4 + 12] >> 4) * 4 : UDP_HEADER);
	if (super.headers < super.l4 + (super.tcp ? TCP_MIN : UDP_HEADER) || super.headers >= len)
		return -EBADMSG;
	*ret_super = super;
	return 0;
}

static void finish_ip(const struct superframe *super, uint8_t *frame, size_t len, unsigned number)
{
	uint8_t *ip = frame + OW_OFFLOAD_ETHER;
	if (super->v4) {
		ow_store_be16(ip + 2, (uint16_t)(len - OW_OFFLOAD_ETHER));
		ow_store_be16(ip + 4, (uint16_t)(ow_load_be16(ip + 4) + number));
		ow_build_ipv4_checksum(ip);
	} else {
		ow_store_be16(ip + 4, (uint16_t)(len - OW_OFFLOAD_ETHER - IPV6_HEADER));
	}
}

static void finish_l4(const struct superframe *super, uint8_t *frame, size_t len, size_t done, bool last)
{
	uint8_t *l4 = frame + super->l4, *check = l4 + (super->tcp ? 16 : 6);
	uint32_t l4_len = (uint32_t)(len - super->l4);
	if (super->tcp) {
		ow_store_be32(l4 + 4, ow_load_be32(l4 + 4) + (uint32_t)done);
		if (!last)
			l4[13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
		if (done)
			l4[13] &= (uint8_t)~TCP_CWR;
	} else {
		ow_store_be16(l4 + 4, (uint16_t)l4_len);
	}
	ow_store_be16(check, 0);
	uint64_t pseudo =
		ow_build_pseudo_sum(frame + OW_OFFLOAD_ETHER, super->tcp ? OW_PROTO_TCP : OW_PROTO_UDP, l4_len);
	uint16_t sum = ow_sum_fold(ow_sum_add(pseudo, l4, l4_len));
	ow_store_be16(check, sum ? sum : 0xffff);
}

static int cut(const struct superframe *super, ow_offload_sink sink, void *arg)
{
	uint8_t frame[OW_OFFLOAD_FRAME_MAX];
	size_t payload = super->len - super->headers;
	unsigned number = 0;
	for (size_t done = 0; done < payload; done += super->gso_size) {
		size_t part = payload - done < super->gso_size ? payload - done : super->gso_size;
		size_t len = super->headers + part;
		memcpy(frame, super->frame, super->headers);
		memcpy(frame + super->headers, super->frame + super->headers + done, part);
		finish_ip(super, frame, len, number++);
		finish_l4(super, frame, len, done, done + part == payload);
		int r = sink(arg, frame, len);
		if (r < 0)
			return r;
	}
	return 0;
}

int ow_offload_cut(const struct virtio_net_hdr *header, uint8_t *frame, size_t len, ow_offload_sink sink, void *arg)
{
	if (len > OW_OFFLOAD_FRAME_MAX)
		return -EBADMSG;
	if (header->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		struct superframe super;
		int r = inspect(header, frame, len, &super);
		return r < 0 ? r : cut(&super, sink, arg);
	}
	if (header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		int r = fill_checksum(header, frame, len);
		if (r < 0)
			return r;
	}
	return sink(arg, frame, len);
}
