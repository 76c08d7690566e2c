/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket of tokens for each address, in a table of fixed size. IPv6 addresses count by their /64. An address that finds
 * its place taken shares it: it may then make fewer requests, never more.
 */
#include "web/limits.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/time.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PLACES  4096
#define BURST_S 4

struct ow_limits {
	pthread_mutex_t lock;
	unsigned rate;
	uint64_t seed;
	struct {
		double used; /* requests that are not forgotten yet */
		int64_t at_ns;
	} place[PLACES];
};

int ow_limits_create(unsigned rate, struct ow_limits **ret_limits)
{
	struct ow_limits *limits = calloc(1, sizeof *limits);
	if (!limits)
		return -ENOMEM;
	pthread_mutex_init(&limits->lock, NULL);
	limits->rate = rate;
	limits->seed = ow_random_secret(limits);
	*ret_limits = limits;
	return 0;
}

void ow_limits_free(struct ow_limits *limits)
{
	if (!limits)
		return;
	pthread_mutex_destroy(&limits->lock);
	free(limits);
}

/* What requests are counted by. */
static uint64_t key_of(const struct sockaddr *address)
{
	const void *bytes = address;
	const uint8_t *four = (const uint8_t *)&((const struct sockaddr_in *)bytes)->sin_addr;
	const uint8_t *six = ((const struct sockaddr_in6 *)bytes)->sin6_addr.s6_addr;
	uint64_t key = 0;
	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)bytes)->sin6_addr))
		memcpy(&key, six + 12, 4);
	else
		memcpy(&key, address->sa_family == AF_INET ? four : six, address->sa_family == AF_INET ? 4 : 8);
	return key;
}

bool ow_limits_allow(struct ow_limits *limits, const struct sockaddr *address, unsigned cost, int64_t now_ns)
{
	size_t at = ow_mix64(key_of(address) ^ limits->seed) % PLACES;
	pthread_mutex_lock(&limits->lock);
	double passed_s = (double)(now_ns - limits->place[at].at_ns) / (double)OW_NS_PER_S;
	double used = limits->place[at].used - passed_s * limits->rate;
	used = used > 0 ? used : 0;
	bool allowed = used + cost <= (double)limits->rate * BURST_S;
	limits->place[at].used = allowed ? used + cost : used;
	limits->place[at].at_ns = now_ns;
	pthread_mutex_unlock(&limits->lock);
	return allowed;
}

bool ow_limits_is_loopback(const struct sockaddr *address)
{
	const void *bytes = address;
	const struct in6_addr *six = &((const struct sockaddr_in6 *)bytes)->sin6_addr;
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)bytes)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127));
}
