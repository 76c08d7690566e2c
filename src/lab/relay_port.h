/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/offload.h"
#include <oneway/error.h>

/*
 * One interface of the relay: a packet socket that receives frames with their offload information and kernel
 * timestamps.
 */
#define OW_RELAY_BATCH 32

struct ow_relay_port {
	int fd;
	uint64_t missed;  /* frames for which the socket had no room, up to the last update */
	struct received { /* one frame of the last batch */
		struct virtio_net_hdr header;
		uint32_t len;
		int64_t time_ns;
		uint8_t *frame; /* OW_OFFLOAD_FRAME_MAX bytes */
	} received[OW_RELAY_BATCH];
	uint8_t *storage;
};

int ow_relay_port_open(struct ow_relay_port *port, const char *interface, struct ow_error *err);
void ow_relay_port_close(struct ow_relay_port *port);
/* Up to OW_RELAY_BATCH frames that wait, into port->received. Their number, 0 = none, or a negative errno. */
int ow_relay_port_receive(struct ow_relay_port *port);
/* Sends a frame of the wire, in two parts. 0 or a negative errno. */
int ow_relay_port_send(struct ow_relay_port *port, const uint8_t *head, size_t head_len, const uint8_t *body,
                       size_t body_len);
/* Updates `missed`. */
void ow_relay_port_count(struct ow_relay_port *port);
