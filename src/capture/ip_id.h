/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_IP_ID_H
#define OW_CAPTURE_IP_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether the packets of a TCP superframe all have its IPv4 identification, or count on from it. The kernel knows and
 * does not say. Both are kept when packets are joined (GRO) and cut again (GSO), and a connection does the one or the
 * other: senders that count have another number in their next superframe. Until there was a next one, 0 is taken for
 * fixed (what those senders use that do not count), and all else for counting.
 */
#define OW_IP_ID_FLOWS 1024 /* a power of two; flows that share a place begin anew each time */

struct ow_ip_ids {
	struct {
		uint32_t tag; /* 0 = empty */
		uint16_t last;
	} flow[OW_IP_ID_FLOWS];
};

/* ip: the IP header, of which `bytes` are captured. way: frames of one connection that pass twice pass in two ways. */
bool ow_ip_id_fixed(struct ow_ip_ids *ids, const uint8_t *ip, size_t bytes, unsigned way);

#endif
