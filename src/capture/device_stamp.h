/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <stdbool.h>

/*
 * Times that capture devices put into the frames that they copy: a trailer behind the packet, or a header in front of it. The
 * IP packet does not contain them, so they are no part of a packet's identity.
 *
 *     MetaWatch  (Arista 7130, Metamako)    ... original FCS 4, extensions, seconds 4, ns 4, flags 1, device 2, port 1
 *     ExaNIC     (Cisco Nexus 3550)         ... original FCS 4, device 1, port 1, seconds 4, fraction 5 (2^-40 s), 0
 *     VSS        (VSS Monitoring, NETSCOUT) ... seconds 4, clock 2 bits, ns 30 bits, port 0, 1 or 2
 *     Gigamon    (GigaVUE H series)         ... original FCS 4, port 2, seconds 4, ns 4
 *     Gigamon, Keysight (Ixia, Anue)        ... fields {type 1, length 1, value}, their length 1, magic 2, checksum 2
 *     Arista 7280, 7500                     addresses, d28b, subtype 2, scale 1, format and hardware 1, seconds 4 or 2, ns 4
 *
 * Numbers are big-endian. Behind a trailer the frame may have its FCS, if the capture contains it.
 */
enum ow_device {
	OW_DEVICE_NONE,
	OW_DEVICE_GIGAMON,
	OW_DEVICE_GIGAVUE,
	OW_DEVICE_KEYSIGHT,
	OW_DEVICE_ARISTA,
	OW_DEVICE_METAWATCH,
	OW_DEVICE_VSS,
	OW_DEVICE_EXANIC,
	OW_DEVICES,
};

/* How the frames of a capture are stamped. */
struct ow_device_format {
	enum ow_device device;
	uint8_t fcs;        /* bytes behind the trailer: 0 or 4 */
	uint8_t port_bytes; /* VSS: 0, 1 or 2 */
};

struct ow_device_stamp {
	int64_t time_ns; /* UTC */
	bool has_port;
	uint64_t port; /* device in the upper 32 bits, port in the lower */
};

const char *ow_device_name(enum ow_device device);

/* Reads the stamp of a frame; false if it has none. */
bool ow_device_stamp_read(const struct ow_device_format *format, const struct ow_frame *frame,
                          struct ow_device_stamp *ret_stamp);

/*
 * Finds out how frames are stamped, from evidence of many: nearly all have a stamp that is valid, the stamps differ from each other,
 * and they advance as the times of the capture do. The bytes behind a packet are often padding, or what was in memory before.
 */
#define OW_DEVICE_CANDIDATES 9
#define OW_DEVICE_FRAMES     2000U /* as many suffice */

struct ow_device_survey {
	uint64_t frames; /* Ethernet frames of which the end of the packet is known */
	uint64_t with_fcs;
	struct ow_device_evidence {
		uint64_t stamps, changes;
		uint64_t others;             /* stamps that are far from that offset */
		int64_t offset_ns, last_ns;  /* of the first stamp against the capture's time; the last stamp */
		uint64_t deviation_ns;       /* sum of the differences from that offset */
	} evidence[2][OW_DEVICE_CANDIDATES]; /* without and with an FCS behind the trailer */
};

void ow_device_survey_add(struct ow_device_survey *survey, const struct ow_frame *frame);
/* device: OW_DEVICE_NONE if there is not enough evidence. */
struct ow_device_format ow_device_survey_result(const struct ow_device_survey *survey);
