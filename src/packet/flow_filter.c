/* SPDX-License-Identifier: Apache-2.0 */
#include "packet/flow_filter.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>

/* TCP, UDP and SCTP have ports. */
static const char *name_of(uint8_t proto)
{
	return proto == 6 ? "tcp" : proto == 17 ? "udp" : proto == 132 ? "sctp" : NULL;
}

static void one_way(char *text, size_t size, const char *src, const char *dst, uint16_t sport, uint16_t dport,
                    bool ports)
{
	if (ports)
		snprintf(text, size, "src host %s and src port %u and dst host %s and dst port %u", src, sport, dst,
		         dport);
	else
		snprintf(text, size, "src host %s and dst host %s", src, dst);
}

void ow_flow_filter(const struct ow_flow_key *key, char ret_filter[OW_FLOW_FILTER])
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], proto[32], forth[200], back[200];
	int family = key->version == 4 ? AF_INET : AF_INET6;
	const char *name = name_of(key->proto);
	inet_ntop(family, key->src, src, sizeof src);
	inet_ntop(family, key->dst, dst, sizeof dst);
	if (name)
		snprintf(proto, sizeof proto, "%s", name);
	else
		snprintf(proto, sizeof proto, "%s proto %u", key->version == 4 ? "ip" : "ip6", key->proto);
	one_way(forth, sizeof forth, src, dst, key->sport, key->dport, name);
	one_way(back, sizeof back, dst, src, key->dport, key->sport, name);
	snprintf(ret_filter, OW_FLOW_FILTER, "%s and ((%s) or (%s))", proto, forth, back);
}
