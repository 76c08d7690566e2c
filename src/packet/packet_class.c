/* SPDX-License-Identifier: Apache-2.0 */
#include "packet/packet_class.h"

#include <stdio.h>

static const uint32_t size_most[OW_SIZE_CLASSES] = {64, 128, 256, 512, 1024, 1280, 1518, 9216, UINT32_MAX};

uint8_t ow_packet_dscp(const struct ow_packet *packet)
{
	const uint8_t *ip = packet->ip;
	return packet->version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] << 4 | ip[1] >> 4) & 0xff) >> 2;
}

/* RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE). */
const char *ow_dscp_text(uint8_t dscp, char text[OW_DSCP_TEXT])
{
	unsigned class = dscp >> 3, drop = dscp >> 1 & 3;
	if (dscp == 46 || dscp == 44 || dscp == 1)
		snprintf(text, OW_DSCP_TEXT, "%s", dscp == 46 ? "EF" : dscp == 44 ? "VA" : "LE");
	else if (dscp % 8 == 0)
		snprintf(text, OW_DSCP_TEXT, "CS%u", class);
	else if (dscp % 2 == 0 && class >= 1 && class <= 4)
		snprintf(text, OW_DSCP_TEXT, "AF%u%u", class, drop);
	else
		snprintf(text, OW_DSCP_TEXT, "%u", dscp);
	return text;
}

uint8_t ow_size_class(uint32_t bytes)
{
	uint8_t number = 0;
	while (bytes > size_most[number])
		number++;
	return number;
}

void ow_size_class_range(uint8_t number, uint32_t *ret_least, uint32_t *ret_most)
{
	*ret_least = number ? size_most[number - 1] + 1 : 0;
	*ret_most = size_most[number];
}
