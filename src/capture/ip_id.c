/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/ip_id.h"

#include "base/bytes.h"
#include "base/hash.h"

#define IPV4_MIN 20u
#define DF       0x4000

/* Returns 0 unless it is an IPv4 TCP packet with DF set. In all other packets the identification counts up. */
static uint64_t flow_of(const uint8_t *ip, size_t bytes, unsigned way)
{
	if (bytes < IPV4_MIN || ip[0] >> 4 != 4 || ip[9] != 6 || !(ow_load_be16(ip + 6) & DF))
		return 0;
	uint32_t header = (ip[0] & 15u) * 4;
	if (header < IPV4_MIN || bytes < header + 4)
		return 0;
	return ow_mix64(ow_load_le64(ip + 12) ^ ow_mix64((uint64_t)way << 32 | ow_load_le32(ip + header))) | 1;
}

bool ow_ip_id_fixed(struct ow_ip_ids *ids, const uint8_t *ip, size_t bytes, unsigned way)
{
	uint64_t flow = flow_of(ip, bytes, way);
	if (flow == 0)
		return false;
	size_t place = (flow >> 1) % OW_IP_ID_FLOWS;
	uint32_t tag = (uint32_t)(flow >> 32) | 1;
	uint16_t id = ow_load_be16(ip + 4);
	bool known = ids->flow[place].tag == tag;
	bool fixed = known ? ids->flow[place].last == id : id == 0;
	ids->flow[place].tag = tag;
	ids->flow[place].last = id;
	return fixed;
}
