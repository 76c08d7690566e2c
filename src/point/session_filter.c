/* SPDX-License-Identifier: Apache-2.0 */
#include "point/session_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* "host 192.0.2.2 and tcp port 8620" */
static int endpoint_text(const struct sockaddr_storage *address, char *text, size_t size)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	char host[INET6_ADDRSTRLEN] = "";
	bool mapped = address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
	unsigned port = 0;
	if (address->ss_family == AF_INET) {
		inet_ntop(AF_INET, &in4->sin_addr, host, sizeof host);
		port = ntohs(in4->sin_port);
	} else if (address->ss_family == AF_INET6) {
		inet_ntop(mapped ? AF_INET : AF_INET6, in6->sin6_addr.s6_addr + (mapped ? 12 : 0), host, sizeof host);
		port = ntohs(in6->sin6_port);
	}
	if (!*host)
		return -EAFNOSUPPORT;
	bool four = mapped || address->ss_family == AF_INET;
	return snprintf(text, size, "%s host %s and tcp port %u", four ? "ip" : "ip6", host, port);
}

/* The address to which the peer connected, if this host translates it (REDIRECT, DNAT): the wire shows this one. */
static int original_address(int fd, int family, struct sockaddr_storage *address)
{
	socklen_t length = sizeof *address;
	int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	if (getsockopt(fd, level, SO_ORIGINAL_DST, address, &length) == 0)
		return 0;
	length = sizeof *address;
	/* IPv4 on a socket of IPv6. */
	return getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, address, &length);
}

int ow_session_filter(int fd, bool accepted, char *text, size_t size)
{
	struct sockaddr_storage address = {0}, original = {0};
	socklen_t length = sizeof address;
	char endpoint[OW_SESSION_FILTER / 2], other[OW_SESSION_FILTER / 2] = "";
	int r = accepted ? getsockname(fd, (struct sockaddr *)&address, &length)
	                 : getpeername(fd, (struct sockaddr *)&address, &length);
	if (r < 0)
		return -errno;
	r = endpoint_text(&address, endpoint, sizeof endpoint);
	if (r < 0)
		return r;
	if (accepted && original_address(fd, address.ss_family, &original) == 0)
		(void)endpoint_text(&original, other, sizeof other);
	bool both = *other && strcmp(endpoint, other) != 0;
	r = both ? snprintf(text, size, "(%s) or (%s)", endpoint, other) : snprintf(text, size, "%s", endpoint);
	return r < (int)size ? 0 : -EMSGSIZE;
}
