/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface_ops.h"
#include <net/if.h>

/* Private to src/capture/iface: what rings and recordings in the kernel share, and the socket of a recording. */

/* The LINKTYPE_ of an interface of this ARPHRD_ type; -ENOTSUP for types that need libpcap. */
int ow_interface_linktype(unsigned hardware);
/* Sets request.ifr_name; false if the name is too long for an interface. */
bool ow_interface_name(const char *name, struct ifreq *ret_request);
/*
 * Puts a VLAN tag back into a frame whose kernel has it apart, and moves the addresses forward, over the 4 bytes in front of the
 * frame. type and tag in network order; type 0 = a customer tag (802.1Q).
 */
void ow_interface_put_tag(uint16_t type, uint16_t tag, struct ow_frame *frame);
/* Offset of what follows Ethernet and up to two tags. */
uint32_t ow_interface_header(const uint8_t *frame, uint32_t caplen);

/* A packet socket whose filter records the frames of an interface; it gets none itself. */
struct ow_interface {
	int fd; /* -1 = not open */
	unsigned ifindex;
};

/* live: its name; gets the link type. -ENODEV, -ENETDOWN, -EPERM. */
int ow_interface_open(struct ow_interface *interface, struct ow_iface *live, struct ow_error *err);
/* Starts: program is the descriptor of the filter. The interface becomes promiscuous, as with tcpdump. */
int ow_interface_record(struct ow_interface *interface, const struct ow_iface *live, int program, struct ow_error *err);
void ow_interface_close(struct ow_interface *interface);
/* Notes whether the interface is away or back, and follows its name to one that was created again. */
int ow_interface_check(struct ow_interface *interface, struct ow_iface *live, struct ow_error *err);
