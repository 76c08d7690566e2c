/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/file/snoop.h"

#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/capture_format.h"
#include <errno.h>

#define SNOOP_RECORD  24U
#define SNOOP_VERSION 2U

static uint16_t snoop_link(uint32_t type)
{
	static const struct {
		uint32_t type;
		uint16_t linktype;
	} links[] = {{0, 1}, {2, 6}, {4, 1}, {8, 10}, {26, 228}, {27, 229}, {28, 226}};

	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		if (links[i].type == type)
			return links[i].linktype;
	}
	return OW_LINK_UNKNOWN;
}

static size_t snoop_length(const uint8_t *p)
{
	uint32_t length = ow_load_be32(p + 8);
	return length < SNOOP_RECORD || length > OW_RECORD_FORMAT_MAX ? 0 : length;
}

static int snoop_parse(uint16_t linktype, const uint8_t *p, size_t length, struct ow_frame *ret_frame)
{
	uint32_t len = ow_load_be32(p), caplen = ow_load_be32(p + 4);

	if (caplen > length - SNOOP_RECORD || caplen > OW_CAPTURE_CAPLEN_MAX)
		return -1;
	*ret_frame = (struct ow_frame){
		.time_ns = ow_load_be32(p + 16) * OW_NS_PER_S + ow_load_be32(p + 20) * OW_NS_PER_US,
		.data = p + SNOOP_RECORD,
		.caplen = caplen,
		.len = len < caplen ? caplen : len,
		.linktype = linktype,
	};
	return 1;
}

static uint64_t snoop_dropped(const uint8_t *p, uint64_t before)
{
	uint32_t now = ow_load_be32(p + 12);
	return now > before ? now : before;
}

const struct ow_record_format ow_snoop_format = {"snoop",      OW_SNOOP_HEADER, SNOOP_RECORD,
                                                 snoop_length, snoop_parse,     snoop_dropped};

int ow_snoop_begin(const uint8_t *head, const char *name, uint16_t *ret_linktype, struct ow_error *err)
{
	if (ow_load_be32(head + 8) != SNOOP_VERSION)
		return ow_error_set(err, ENOTSUP, "%s: snoop version %u, but only version 2 can be read", name,
		                    ow_load_be32(head + 8));
	*ret_linktype = snoop_link(ow_load_be32(head + 12));
	return 0;
}
