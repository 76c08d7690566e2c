/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/device_stamp.h"

#include "base/bytes.h"
#include "base/time.h"
#include <math.h>
#include <stdlib.h>
#include <zlib.h>

#define ETHERNET_HEADER  14u
#define FCS_BYTES        4u
#define TAGS_MAX         4
#define METAWATCH_BYTES  16u /* with the original FCS, without extensions */
#define EXANIC_BYTES     16u
#define VSS_BYTES        8u
#define GIGAVUE_BYTES    14u
#define FIELDS_END       5u /* of Gigamon and Keysight: length, magic, checksum */
#define GIGAMON_MAGIC    0x22e5
#define KEYSIGHT_MAGIC   0xaf12
#define FIELD_PORT       2 /* types of fields; 3 to 7 are times, by the source of the clock */
#define FIELD_TIME_FIRST 3
#define FIELD_TIME_LAST  7
#define ARISTA_TYPE      0xd28b
#define YEAR_2000_S      946684800u
#define STAMPS_MIN       20u                /* evidence of fewer frames does not suffice */
#define SHARE_MIN        0.9                /* of frames that have a stamp */
#define CHANGES_MIN      0.5                /* of stamps that differ from the one before: padding repeats */
#define OFFSET_NS        (10 * OW_NS_PER_S) /* frames wait no longer between the device and the capture */

const char *ow_device_name(enum ow_device device)
{
	static const char *const names[OW_DEVICES] = {
		[OW_DEVICE_NONE] = "none",
		[OW_DEVICE_GIGAMON] = "Gigamon trailer",
		[OW_DEVICE_GIGAVUE] = "GigaVUE trailer",
		[OW_DEVICE_KEYSIGHT] = "Keysight trailer",
		[OW_DEVICE_ARISTA] = "Arista header",
		[OW_DEVICE_METAWATCH] = "MetaWatch trailer",
		[OW_DEVICE_VSS] = "VSS trailer",
		[OW_DEVICE_EXANIC] = "ExaNIC trailer",
	};
	return names[device];
}

/* The ethertype behind VLAN tags, and the offset of what follows it; 0 if the frame is too short. */
static uint16_t ethertype(const struct ow_frame *frame, uint32_t *ret_offset)
{
	uint32_t at = 12;
	for (unsigned i = 0; i <= TAGS_MAX && frame->caplen >= at + 2; i++) {
		uint16_t type = ow_load_be16(frame->data + at);
		*ret_offset = at + 2;
		if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
			return type;
		at += 4;
	}
	return 0;
}

/* The ethertype of the packet behind labels of MPLS and the header of PPPoE, as far as it is IP. */
static uint16_t inner_type(const struct ow_frame *frame, uint32_t *ret_offset)
{
	uint16_t type = ethertype(frame, ret_offset);
	uint32_t at = *ret_offset;
	if (type == 0x8847 || type == 0x8848) {
		while (frame->caplen >= at + 4 && !(frame->data[at + 2] & 1))
			at += 4;
		at += 4;
	} else if (type == 0x8864) {
		at += 8;
	} else {
		return type;
	}
	unsigned version = frame->caplen > at ? frame->data[at] >> 4 : 0;
	if (version != 4 && version != 6)
		return type;
	*ret_offset = at;
	return version == 4 ? 0x0800 : 0x86dd;
}

static bool is_ip(const struct ow_frame *frame)
{
	uint32_t at = 0;
	uint16_t type = inner_type(frame, &at);
	return type == 0x0800 || type == 0x86dd;
}

/* The first byte behind the packet. A packet without a length (0), as hosts show it, reaches to the end of the frame. */
static uint32_t packet_end(const struct ow_frame *frame)
{
	uint32_t at = 0;
	uint16_t type = inner_type(frame, &at);
	if (type == 0x0800 && frame->caplen >= at + 20) {
		uint32_t total = ow_load_be16(frame->data + at + 2);
		return total ? at + total : frame->caplen;
	}
	if (type == 0x86dd && frame->caplen >= at + 40) {
		uint32_t payload = ow_load_be16(frame->data + at + 4);
		return payload ? at + 40 + payload : frame->caplen;
	}
	return type ? at : frame->caplen;
}

static bool set_time(struct ow_device_stamp *stamp, uint32_t seconds, uint32_t ns)
{
	stamp->time_ns = (int64_t)seconds * OW_NS_PER_S + ns;
	return seconds >= YEAR_2000_S && ns < OW_NS_PER_S;
}

static void set_port(struct ow_device_stamp *stamp, uint32_t device, uint32_t port)
{
	stamp->has_port = true;
	stamp->port = (uint64_t)device << 32 | port;
}

static bool metawatch(const uint8_t *end, uint32_t room, struct ow_device_stamp *stamp)
{
	if (room < METAWATCH_BYTES)
		return false;
	set_port(stamp, ow_load_be16(end - 3), end[-1]);
	return set_time(stamp, ow_load_be32(end - 12), ow_load_be32(end - 8));
}

static bool exanic(const uint8_t *end, uint32_t room, struct ow_device_stamp *stamp)
{
	if (room < EXANIC_BYTES)
		return false;
	uint64_t fraction = (uint64_t)ow_load_be32(end - 6) << 8 | end[-2];
	/* 40 bits times 10^9 would not fit into 64 bits: 10^9 is 2^9 * 1953125 */
	uint64_t ns = (fraction * 1953125) >> 31;
	set_port(stamp, end[-12], end[-11]);
	return set_time(stamp, ow_load_be32(end - 10), (uint32_t)ns);
}

static bool vss(const uint8_t *end, uint32_t room, unsigned port_bytes, struct ow_device_stamp *stamp)
{
	if (room < VSS_BYTES + port_bytes)
		return false;
	end -= port_bytes;
	if (port_bytes)
		set_port(stamp, 0, port_bytes == 1 ? end[0] : ow_load_be16(end));
	return set_time(stamp, ow_load_be32(end - 8), ow_load_be32(end - 4) & 0x3fffffff);
}

/* The original FCS must be that of the frame. */
static bool gigavue(const uint8_t *frame, const uint8_t *end, uint32_t room, struct ow_device_stamp *stamp)
{
	if (room < GIGAVUE_BYTES)
		return false;
	const uint8_t *p = end - GIGAVUE_BYTES;
	if (crc32(0, frame, (uInt)(p - frame)) != ow_load_le32(p))
		return false;
	set_port(stamp, 0, ow_load_be16(p + 4));
	return set_time(stamp, ow_load_be32(p + 6), ow_load_be32(p + 10));
}

/* The checksum of the Internet. */
static uint16_t checksum(const uint8_t *p, size_t size)
{
	uint32_t sum = 0;
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += ow_load_be16(p + i);
	if (size % 2)
		sum += (uint32_t)p[size - 1] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static bool fields(const uint8_t *end, uint32_t room, uint16_t magic, struct ow_device_stamp *stamp)
{
	if (room < FIELDS_END || ow_load_be16(end - 4) != magic)
		return false;
	uint32_t length = end[-5];
	const uint8_t *p = end - FIELDS_END - length;
	bool timed = false;
	if (room < FIELDS_END + length || checksum(p, length + 3) != ow_load_be16(end - 2))
		return false;
	for (uint32_t left = length; left >= 2;) {
		unsigned type = p[0], size = p[1];
		if (size > left - 2)
			return false;
		if (type >= FIELD_TIME_FIRST && type <= FIELD_TIME_LAST && size == 8)
			timed = set_time(stamp, ow_load_be32(p + 2), ow_load_be32(p + 6));
		if (type == FIELD_PORT && size == 3)
			set_port(stamp, 0, (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4]);
		if (type == FIELD_PORT && size == 4)
			set_port(stamp, 0, ow_load_be32(p + 2));
		p += 2 + size;
		left -= 2 + size;
	}
	return timed;
}

/* Seconds that TAI is ahead of UTC. */
static int64_t tai_ahead(uint32_t tai_s)
{
	static const struct {
		uint32_t utc_s;
		int ahead;
	} leaps[] = {{1483228800, 37}, {1435708800, 36}, {1341100800, 35}, {1230768000, 34}, {1136073600, 33}};
	for (size_t i = 0; i < sizeof leaps / sizeof *leaps; i++) {
		if (tai_s >= leaps[i].utc_s + (uint32_t)leaps[i].ahead)
			return leaps[i].ahead;
	}
	return 32;
}

static bool arista(const struct ow_frame *frame, struct ow_device_stamp *stamp)
{
	uint32_t at = 0;
	if (ethertype(frame, &at) != ARISTA_TYPE || frame->caplen < at + 12 || ow_load_be16(frame->data + at) != 1)
		return false;
	const uint8_t *p = frame->data + at;
	unsigned scale = p[2], format = p[3] >> 4;
	uint32_t seconds, ns;
	if (scale > 1)
		return false;
	if (format == 1) {
		seconds = ow_load_be32(p + 4);
		ns = ow_load_be32(p + 8);
	} else if (format == 2) { /* the low 16 bits: the second that is nearest to the time of the capture */
		uint32_t captured = (uint32_t)(frame->time_ns / OW_NS_PER_S);
		seconds = captured + (uint32_t)(int16_t)(uint16_t)(ow_load_be16(p + 4) - captured);
		ns = ow_load_be32(p + 6);
	} else {
		return false;
	}
	if (!set_time(stamp, seconds, ns))
		return false;
	if (scale == 0)
		stamp->time_ns -= tai_ahead(seconds) * OW_NS_PER_S;
	return true;
}

bool ow_device_stamp_read(const struct ow_device_format *format, const struct ow_frame *frame,
                          struct ow_device_stamp *ret_stamp)
{
	*ret_stamp = (struct ow_device_stamp){0};
	if (frame->linktype != OW_LINKTYPE_ETHERNET || frame->caplen < ETHERNET_HEADER)
		return false;
	if (format->device == OW_DEVICE_ARISTA)
		return arista(frame, ret_stamp);
	uint32_t packet = packet_end(frame);
	if (frame->caplen != frame->len || packet + format->fcs > frame->caplen)
		return false;
	const uint8_t *end = frame->data + frame->caplen - format->fcs;
	uint32_t room = frame->caplen - format->fcs - packet;
	switch (format->device) {
	case OW_DEVICE_METAWATCH:
		return metawatch(end, room, ret_stamp);
	case OW_DEVICE_EXANIC:
		return exanic(end, room, ret_stamp);
	case OW_DEVICE_VSS:
		return vss(end, room, format->port_bytes, ret_stamp);
	case OW_DEVICE_GIGAVUE:
		return gigavue(frame->data, end, room, ret_stamp);
	case OW_DEVICE_GIGAMON:
		return fields(end, room, GIGAMON_MAGIC, ret_stamp);
	case OW_DEVICE_KEYSIGHT:
		return fields(end, room, KEYSIGHT_MAGIC, ret_stamp);
	default:
		return false;
	}
}

/* First the formats that are certain: they have a magic or a checksum. */
#define CERTAIN 4
static const struct ow_device_format candidates[OW_DEVICE_CANDIDATES] = {
	{OW_DEVICE_GIGAVUE, 0, 0}, {OW_DEVICE_GIGAMON, 0, 0},   {OW_DEVICE_KEYSIGHT, 0, 0},
	{OW_DEVICE_ARISTA, 0, 0},  {OW_DEVICE_METAWATCH, 0, 0}, {OW_DEVICE_VSS, 0, 2},
	{OW_DEVICE_VSS, 0, 1},     {OW_DEVICE_VSS, 0, 0},       {OW_DEVICE_EXANIC, 0, 0},
};

static struct ow_device_format candidate(unsigned i, bool fcs)
{
	struct ow_device_format format = candidates[i];
	format.fcs = fcs ? FCS_BYTES : 0;
	return format;
}

static void note(struct ow_device_evidence *e, const struct ow_device_stamp *stamp, int64_t captured_ns)
{
	int64_t offset_ns = stamp->time_ns - captured_ns;
	if (e->stamps && llabs(offset_ns - e->offset_ns) > OFFSET_NS && ++e->others <= e->stamps)
		return;
	if (e->others > e->stamps) /* most stamps have another offset than the first */
		*e = (struct ow_device_evidence){0};
	if (e->stamps == 0)
		e->offset_ns = offset_ns;
	e->stamps++;
	e->deviation_ns += (uint64_t)llabs(offset_ns - e->offset_ns);
	e->changes += stamp->time_ns != e->last_ns;
	e->last_ns = stamp->time_ns;
}

static bool has_fcs(const struct ow_frame *frame)
{
	const uint8_t *end = frame->data + frame->caplen - FCS_BYTES;
	return crc32(0, frame->data, frame->caplen - FCS_BYTES) == ow_load_le32(end);
}

void ow_device_survey_add(struct ow_device_survey *survey, const struct ow_frame *frame)
{
	struct ow_device_stamp stamp;
	uint32_t at;
	if (frame->linktype != OW_LINKTYPE_ETHERNET || frame->caplen < ETHERNET_HEADER + FCS_BYTES)
		return;
	bool header = ethertype(frame, &at) == ARISTA_TYPE;
	if (!is_ip(frame) && !header)
		return; /* where its packet ends is not known, so times of the packet may look like a trailer */
	survey->frames++;
	if (frame->caplen < packet_end(frame) + VSS_BYTES && !header)
		return; /* no room for any trailer */
	survey->with_fcs += frame->caplen == frame->len && has_fcs(frame);
	for (unsigned fcs = 0; fcs < 2; fcs++) {
		for (unsigned i = 0; i < OW_DEVICE_CANDIDATES; i++) {
			struct ow_device_format format = candidate(i, fcs);
			if (ow_device_stamp_read(&format, frame, &stamp))
				note(&survey->evidence[fcs][i], &stamp, frame->time_ns);
		}
	}
}

static bool suffices(const struct ow_device_survey *survey, const struct ow_device_evidence *e)
{
	return e->stamps >= STAMPS_MIN && (double)e->stamps >= SHARE_MIN * (double)survey->frames &&
	       (double)e->changes >= CHANGES_MIN * (double)e->stamps;
}

/*
 * Several formats may find valid times: the fraction of ExaNIC, read as the nanoseconds of VSS, is a time, too, but goes
 * four times too fast. The one that follows the capture's clock most closely is right.
 */
struct ow_device_format ow_device_survey_result(const struct ow_device_survey *survey)
{
	bool fcs = (double)survey->with_fcs > SHARE_MIN * (double)survey->frames;
	struct ow_device_format best = {OW_DEVICE_NONE, 0, 0};
	double least = HUGE_VAL;
	for (unsigned i = 0; i < OW_DEVICE_CANDIDATES; i++) {
		const struct ow_device_evidence *e = &survey->evidence[fcs][i];
		double deviation = e->stamps ? (double)e->deviation_ns / (double)e->stamps : HUGE_VAL;
		if (!suffices(survey, e) || deviation >= least)
			continue;
		best = candidate(i, fcs);
		least = deviation;
		if (i < CERTAIN)
			break;
	}
	return best;
}
