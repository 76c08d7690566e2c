/* SPDX-License-Identifier: Apache-2.0 */
#include "point/stream_sides.h"

#include "base/sort.h"
#include "packet/packet.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hosts of a side in the filters: those with the most packets. */
#define HOSTS_MOST 24
/* So many packets each way tell by their times. */
#define TIMES_LEAST 4
/* A host with more than one in this many packets for the other side is on neither. */
#define CONTRADICTION 20

struct host {
	uint8_t version, address[16];
};

/* A packet that both have. */
struct seen {
	struct host from, to; /* as at A */
	struct host from_b, to_b;
	int64_t difference_ns;
	int way; /* 1: from A to B; -1: from B to A; 0: not known */
};

struct vote {
	struct host host;
	uint64_t a, b; /* packets that say that it is on the side of A, of B */
};

static void hosts_of(const struct ow_packet *packet, struct host *ret_from, struct host *ret_to)
{
	size_t size = packet->version == 4 ? 4 : 16;
	const uint8_t *at = packet->ip + (packet->version == 4 ? 12 : 8);
	*ret_from = *ret_to = (struct host){.version = packet->version};
	memcpy(ret_from->address, at, size);
	memcpy(ret_to->address, at + size, size);
}

static int ttl_of(const struct ow_packet *packet)
{
	return packet->version == 4 ? packet->ip[8] : packet->ip[7];
}

static size_t look(const struct ow_common_packet *packets, size_t count, struct seen *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		struct ow_packet a, b;
		if (ow_packet_decode(packets[i].a, false, &a) != OW_DECODE_IP ||
		    ow_packet_decode(packets[i].b, false, &b) != OW_DECODE_IP || a.version != b.version)
			continue;
		struct seen *s = &ret[n++];
		hosts_of(&a, &s->from, &s->to);
		hosts_of(&b, &s->from_b, &s->to_b);
		s->difference_ns = packets[i].b->time_ns - packets[i].a->time_ns;
		s->way = (ttl_of(&a) > ttl_of(&b)) - (ttl_of(&a) < ttl_of(&b));
	}
	return n;
}

/* -- by times ------------------------------------------------------------------------------------------------------ */

/* Packets of the same two hosts together, whichever way they go; of these, those that go one way first. */
static int by_hosts(const void *x, const void *y)
{
	const struct seen *a = x, *b = y;
	bool a_up = memcmp(&a->from, &a->to, sizeof a->from) < 0, b_up = memcmp(&b->from, &b->to, sizeof b->from) < 0;
	int r = memcmp(a_up ? &a->from : &a->to, b_up ? &b->from : &b->to, sizeof a->from);
	if (r == 0)
		r = memcmp(a_up ? &a->to : &a->from, b_up ? &b->to : &b->from, sizeof a->from);
	return r ? r : (int)a_up - (int)b_up;
}

static bool goes_up(const struct seen *s)
{
	return memcmp(&s->from, &s->to, sizeof s->from) < 0;
}

static int64_t median(const struct seen *s, size_t count, int64_t *room)
{
	for (size_t i = 0; i < count; i++)
		room[i] = s[i].difference_ns;
	ow_sort_times(room, count);
	return room[count / 2];
}

/* Packets of two hosts, `down` of which come first and go one way. */
static void compare_ways(struct seen *s, size_t down, size_t count, int64_t *room)
{
	if (down < TIMES_LEAST || count - down < TIMES_LEAST)
		return;
	int64_t first_ns = median(s, down, room), second_ns = median(s + down, count - down, room);
	for (size_t i = 0; i < count && first_ns != second_ns; i++)
		s[i].way = (i < down) == (first_ns > second_ns) ? 1 : -1;
}

static int decide_by_times(struct seen *s, size_t count)
{
	int64_t *room = malloc((count + 1) * sizeof *room);
	if (!room)
		return -ENOMEM;
	qsort(s, count, sizeof *s, by_hosts);
	for (size_t from = 0, to; from < count; from = to) {
		size_t down = 0;
		struct seen back = {.from = s[from].to, .to = s[from].from};
		for (to = from; to < count; to++) {
			bool same = memcmp(&s[to].from, &s[from].from, sizeof back.from) == 0 &&
			            memcmp(&s[to].to, &s[from].to, sizeof back.to) == 0;
			bool opposite = memcmp(&s[to].from, &back.from, sizeof back.from) == 0 &&
			                memcmp(&s[to].to, &back.to, sizeof back.to) == 0;
			if (!same && !opposite)
				break;
			down += !goes_up(&s[to]);
		}
		compare_ways(s + from, down, to - from, room);
	}
	free(room);
	return 0;
}

/* -- hosts --------------------------------------------------------------------------------------------------------- */

static int by_host(const void *x, const void *y)
{
	return memcmp(&((const struct vote *)x)->host, &((const struct vote *)y)->host, sizeof(struct host));
}

static int by_votes(const void *x, const void *y)
{
	const struct vote *v = x, *w = y;
	uint64_t a = v->a + v->b, b = w->a + w->b;
	return a == b ? by_host(x, y) : a < b ? 1 : -1;
}

/* What the packets say of each host, the host with the most packets first. */
static size_t count_votes(const struct seen *s, size_t count, struct vote *v)
{
	size_t n = 0, hosts = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t forward = s[i].way > 0, backward = s[i].way < 0;
		if (!s[i].way)
			continue;
		v[n++] = (struct vote){s[i].from, forward, backward};
		v[n++] = (struct vote){s[i].to, backward, forward};
		v[n++] = (struct vote){s[i].from_b, forward, backward};
		v[n++] = (struct vote){s[i].to_b, backward, forward};
	}
	qsort(v, n, sizeof *v, by_host);
	for (size_t i = 0; i < n; i++) {
		if (hosts && by_host(&v[hosts - 1], &v[i]) == 0) {
			v[hosts - 1].a += v[i].a;
			v[hosts - 1].b += v[i].b;
		} else {
			v[hosts++] = v[i];
		}
	}
	qsort(v, hosts, sizeof *v, by_votes);
	return hosts;
}

/* 0 = A, 1 = B, -1 = neither */
static int side_of(const struct vote *v)
{
	if (v->a >= v->b * CONTRADICTION)
		return 0;
	return v->b >= v->a * CONTRADICTION ? 1 : -1;
}

static void add(char *text, size_t size, const char *way, const struct host *host)
{
	char address[INET6_ADDRSTRLEN];
	size_t used = strlen(text);
	inet_ntop(host->version == 4 ? AF_INET : AF_INET6, host->address, address, sizeof address);
	snprintf(text + used, size - used, "%s%s host %s", used ? " or " : "", way, address);
}

/* Lists the hosts: what goes to a side, and what comes from it. Returns the number of hosts of the smaller side. */
static size_t write_filters(const struct vote *v, size_t hosts, struct ow_stream_sides *ret)
{
	/* src host of A or dst host of B; src host of B or dst host of A */
	char onward[2][OW_STREAM_SIDES_FILTER / 2 - 32] = {"", ""};
	size_t count[2] = {0, 0};
	for (size_t i = 0; i < hosts; i++) {
		int side = side_of(&v[i]);
		if (side < 0 || count[side]++ >= HOSTS_MOST)
			continue;
		add(onward[side], sizeof onward[0], "src", &v[i].host);
		add(onward[!side], sizeof onward[0], "dst", &v[i].host);
		if (count[side] == 1)
			inet_ntop(v[i].host.version == 4 ? AF_INET : AF_INET6, v[i].host.address, ret->hosts[side],
			          INET6_ADDRSTRLEN);
	}
	for (int side = 0; side < 2; side++) {
		char *text = ret->hosts[side];
		size_t used = strlen(text), room = sizeof ret->hosts[side] - used;
		if (count[side] > HOSTS_MOST)
			snprintf(text + used, room, " and %d more of %zu", HOSTS_MOST - 1, count[side]);
		else if (count[side] > 1)
			snprintf(text + used, room, " and %zu more", count[side] - 1);
	}
	snprintf(ret->forward, sizeof ret->forward, "(%s) and not (%s)", onward[0], onward[1]);
	snprintf(ret->backward, sizeof ret->backward, "(%s) and not (%s)", onward[1], onward[0]);
	return count[0] < count[1] ? count[0] : count[1];
}

int ow_stream_sides(const struct ow_common_packet *packets, size_t count, struct ow_stream_sides *ret_sides)
{
	struct seen *s = malloc((count + 1) * sizeof *s);
	struct vote *v = malloc((4 * count + 1) * sizeof *v);
	int r = s && v ? 0 : -ENOMEM;
	size_t n = r == 0 ? look(packets, count, s) : 0, decided = 0;
	for (size_t i = 0; i < n; i++)
		decided += s[i].way != 0;
	if (r == 0 && 2 * decided < n)
		r = decide_by_times(s, n);
	*ret_sides = (struct ow_stream_sides){0};
	if (r == 0 && write_filters(v, count_votes(s, n, v), ret_sides) == 0)
		r = -ENODATA;
	free(s);
	free(v);
	return r;
}
