/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface_ops.h"
#include <net/if.h>

/* Private to src/capture/iface: what rings and recordings in the kernel share, and the socket of a recording. */

/* The LINKTYPE_ of an interface of this ARPHRD_ type; -ENOTSUP for types that need libpcap. */
int ow_interface_linktype(unsigned hardware);
/*
 * The index of the interface that has this name now; 0 = none. It uses an open socket, because a sandboxed process cannot open
 * another.
 */
unsigned ow_interface_index(int fd, const char *name);
/* The index of the interface that a packet socket is bound to; 0 = none. */
unsigned ow_interface_bound(int fd);
/* Why no frames of this link type come from the interface, NULL if it is usable; its name is then in the request. */
const char *ow_interface_obstacle(int fd, unsigned ifindex, uint16_t linktype, struct ifreq *ret_request);
/* Starts to receive frames, promiscuous as with tcpdump. A negative errno. */
int ow_interface_bind(int fd, unsigned ifindex);
/* If the interface cannot be promiscuous, we capture what it delivers. */
void ow_interface_set_promiscuous(int fd, unsigned ifindex, bool on);
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
