/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"
#include "sim/wire.h"

/*
 * How a measurement point sees a packet: as one frame, with what the path changed (router, marks, NAT), the tags and
 * tunnels of that point and its link layer.
 */
/* The largest packet or superframe, bytes. */
#define OW_VIEW_MAX (512 * 1024)

struct ow_sim_view;
int ow_view_create(const struct ow_sim_options *options, enum ow_side side, struct ow_sim_view **ret_view);
void ow_view_free(struct ow_sim_view *view);

/*
 * The frame of a packet, or of the superframe that begins with it. received: it has passed the path. Valid until the
 * next call. *ret_len is the number of bytes at *ret_data; wire->missing more were on the wire.
 */
void ow_view_frame(struct ow_sim_view *view, const struct ow_wire *wire, bool received, const uint8_t **ret_data,
                   uint32_t *ret_len);

uint16_t ow_link_linktype(enum ow_sim_link link);
/* Whether the combination exists (a raw IP link has no VLAN tag, for example). */
int ow_view_check(const struct ow_sim_side *side, const char *name, struct ow_error *err);
