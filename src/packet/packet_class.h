/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet.h"

/* Classes of packets that need no filter: by DSCP and by size. */

/* The DSCP of an IP packet (RFC 2474). */
uint8_t ow_packet_dscp(const struct ow_packet *packet);
/* "EF", "AF41", "CS6", ...; "12" without a name. Returns the text. */
#define OW_DSCP_TEXT 8
const char *ow_dscp_text(uint8_t dscp, char text[OW_DSCP_TEXT]);

/* Sizes as those of RFC 2544: up to 64, 128, 256, 512, 1024, 1280, 1518 bytes, jumbo frames, and longer ones. */
#define OW_SIZE_CLASSES 9
uint8_t ow_size_class(uint32_t bytes);
/* The smallest and the largest size of a class; UINT32_MAX: there is no largest. */
void ow_size_class_range(uint8_t number, uint32_t *ret_least, uint32_t *ret_most);
