/* SPDX-License-Identifier: Apache-2.0 */
#include "path/joint_packets.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

#define BUCKETS_LEAST 8192u
#define BUCKETS_EACH  4   /* buckets for a packet, at least: few buckets have two */
#define TOGETHER      256 /* packets that are allocated together */

static void hash(const struct ow_joint_packets *p, struct ow_joint_packet *packet)
{
	struct ow_joint_packet **bucket = ow_joint_packets_bucket(p, packet->id);
	packet->next = *bucket;
	*bucket = packet;
}

static int grow_buckets(struct ow_joint_packets *p)
{
	uint32_t buckets = p->buckets ? 2 * p->buckets : BUCKETS_LEAST, olds = p->buckets;
	struct ow_joint_packet **bucket = calloc(buckets, sizeof *bucket), **old = p->bucket;
	if (!bucket)
		return -ENOMEM;
	p->bucket = bucket;
	p->buckets = buckets;
	for (uint32_t b = 0; b < olds; b++) {
		for (struct ow_joint_packet *packet = old[b], *next; packet; packet = next) {
			next = packet->next;
			hash(p, packet);
		}
	}
	free(old);
	return 0;
}

static int make_packets(struct ow_joint_packets *p)
{
	if (OW_GROW(p->block, p->block_room, p->blocks + 1) < 0)
		return -ENOMEM;
	char *block = aligned_alloc(OW_JOINT_LINE, TOGETHER * p->packet_size);
	if (!block)
		return -ENOMEM;
	p->block[p->blocks++] = block;
	for (unsigned i = TOGETHER; i-- > 0;) {
		struct ow_joint_packet *packet = (struct ow_joint_packet *)(void *)(block + i * p->packet_size);
		packet->next = p->unused;
		p->unused = packet;
	}
	return 0;
}

int ow_joint_packets_init(struct ow_joint_packets *p, unsigned points, bool records)
{
	size_t size = sizeof(struct ow_joint_packet) + points * sizeof(struct ow_joint_showing);
	size += records ? points * sizeof(struct ow_record) : 0;
	p->points = points;
	p->packet_size = (size + OW_JOINT_LINE - 1) / OW_JOINT_LINE * OW_JOINT_LINE;
	return grow_buckets(p);
}

void ow_joint_packets_done(struct ow_joint_packets *p)
{
	while (p->blocks)
		free(p->block[--p->blocks]);
	free(p->block);
	free(p->bucket);
}

struct ow_joint_packet *ow_joint_packets_add(struct ow_joint_packets *p, uint64_t id)
{
	if (!p->unused && make_packets(p) < 0)
		return NULL;
	if (p->hashed >= p->buckets / BUCKETS_EACH && grow_buckets(p) < 0)
		return NULL;
	struct ow_joint_packet *packet = p->unused;
	p->unused = packet->next;
	__builtin_prefetch(p->unused, 1);
	packet->id = id;
	packet->records = packet->seen = 0;
	packet->alike = packet->decided = packet->smooth = false;
	hash(p, packet);
	p->hashed++;
	return packet;
}
