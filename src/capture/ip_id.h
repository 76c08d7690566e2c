/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decides whether all packets of a TCP superframe have the same IPv4 identification, or numbers that count up from it.
 * The kernel knows, but does not report it. Each connection does one or the other, and joining (GRO) and cutting (GSO)
 * keep it. A sender that counts has a different number in its next superframe. Before the second superframe of a flow,
 * 0 means fixed (senders that do not count use 0), and any other number means counting.
 */
#define OW_IP_ID_FLOWS 1024 /* a power of two; flows in the same slot overwrite each other */

struct ow_ip_ids {
	struct {
		uint32_t tag; /* 0 = empty */
		uint16_t last;
	} flow[OW_IP_ID_FLOWS];
};

/* ip: the IP header, of which `bytes` are captured. way: the direction of the frame, so that frames which pass an
 * interface twice count as separate flows. */
bool ow_ip_id_fixed(struct ow_ip_ids *ids, const uint8_t *ip, size_t bytes, unsigned way);
