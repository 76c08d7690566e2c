/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/side.h"
#include "packet/record.h"

#include <stddef.h>

/*
 * The packets of a joint pass whose records wait for their turn: how each point shows them. A packet is found by its id
 * until it is decided; its memory is used again when all of its records had their turn.
 */

#define OW_JOINT_LINE 64 /* bytes of a cache line */

/* How a point shows a packet: what pairs need that count it with many others. */
struct ow_joint_showing {
	int64_t time_ns, order_ns; /* order_ns: by which it has its turn */
	uint64_t number;
	uint32_t flow;
	bool untimed;
};
_Static_assert(OW_JOINT_LINE % sizeof(struct ow_joint_showing) == 0, "each is in one cache line");

struct ow_joint_packet {
	uint64_t id;
	/* Bit k: pair k takes it as matched in the usual way, when its first point shows it, or its second one: the later. */
	uint64_t met[OW_SIDES];
	struct ow_joint_packet *next; /* in its bucket, or of those that are not used */
	uint32_t records;             /* that have not had their turn */
	uint16_t seen;                /* bit p: point p shows it */
	bool alike;                   /* there are several with its id: the matchers compare them */
	bool decided;
	bool smooth; /* all points show it, and all pairs take it as usual */
	/* Of each point, in the time of the first one. Behind these: the records themselves, if they are wanted. */
	_Alignas(OW_JOINT_LINE) struct ow_joint_showing at[];
};

struct ow_joint_packets {
	unsigned points;
	size_t packet_size;
	char **block; /* of packets */
	size_t blocks, block_room;
	struct ow_joint_packet *unused;
	struct ow_joint_packet **bucket;
	uint32_t buckets, hashed;
};

/* Of zeroed memory. records: the records themselves are wanted. 0 or -ENOMEM; ow_joint_packets_done also after a failure. */
int ow_joint_packets_init(struct ow_joint_packets *packets, unsigned points, bool records);
void ow_joint_packets_done(struct ow_joint_packets *packets);
/* A packet that no point shows yet, with this id, which no other has. NULL: out of memory. */
struct ow_joint_packet *ow_joint_packets_add(struct ow_joint_packets *packets, uint64_t id);

/* Where packets of this id are. */
static inline struct ow_joint_packet **ow_joint_packets_bucket(const struct ow_joint_packets *packets, uint64_t id)
{
	return &packets->bucket[(uint32_t)(id >> 20) & (packets->buckets - 1)];
}

/* NULL: there is none. */
static inline struct ow_joint_packet *ow_joint_packets_find(const struct ow_joint_packets *packets, uint64_t id)
{
	struct ow_joint_packet *packet = *ow_joint_packets_bucket(packets, id);
	while (packet && packet->id != id)
		packet = packet->next;
	return packet;
}

/* It is not found any more. */
static inline void ow_joint_packets_leave(struct ow_joint_packets *packets, const struct ow_joint_packet *packet)
{
	struct ow_joint_packet **link = ow_joint_packets_bucket(packets, packet->id);
	while (*link != packet)
		link = &(*link)->next;
	*link = packet->next;
	packets->hashed--;
}

/* One of its records had its turn. It stays as it is until the next one is added. */
static inline void ow_joint_packets_drop(struct ow_joint_packets *packets, struct ow_joint_packet *packet)
{
	if (--packet->records == 0) {
		packet->next = packets->unused;
		packets->unused = packet;
	}
}

/* The records of all points, if they are wanted. */
static inline struct ow_record *ow_joint_packets_records(const struct ow_joint_packets *packets,
                                                         struct ow_joint_packet *packet)
{
	return (struct ow_record *)(void *)&packet->at[packets->points];
}
