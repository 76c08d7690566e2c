/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/virtio_net.h>
#include <stddef.h>
#include <stdint.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* UDP_SEGMENT; in the kernel's headers since 6.2 */
#endif

/*
 * Does what an interface does with a frame that a host left to it: fills in the checksum, and cuts a superframe into
 * the frames of the wire. Each of these frames has its own lengths, IPv4 identification (counted up), TCP sequence
 * number, flags (FIN and PSH on the last, CWR on the first) and checksums.
 */

/* Called for every frame of the wire, in order; a negative value stops the cutting. */
typedef int (*ow_offload_sink)(void *arg, uint8_t *frame, size_t len);

#define OW_OFFLOAD_ETHER 14
/* The largest superframe: an Ethernet header and 64 KB. */
#define OW_OFFLOAD_FRAME_MAX (OW_OFFLOAD_ETHER + 65536)

/*
 * The frame begins with an Ethernet header without tags and may be changed. Returns 0, the sink's value, or -EBADMSG:
 * the header asks for something that the frame does not have, and nothing was sent.
 */
int ow_offload_cut(const struct virtio_net_hdr *header, uint8_t *frame, size_t len, ow_offload_sink sink, void *arg);
