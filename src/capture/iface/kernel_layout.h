/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/types.h>

/*
 * The memory that the program in the kernel (kernel.bpf.c) fills and a source (kernel.c) reads. Both include this file, so
 * it uses types that both have.
 *
 * There is a ring of bytes for each processor, so processors never wait for each other. A record at position p,
 * which only grows, starts at byte p modulo the size, a power of two. It may run on into the room behind the last byte,
 * so that no record is in two pieces.
 */
struct ow_kernel_record {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 len, caplen;
	__u32 gso_type; /* as in struct skb_shared_info */
	__u16 gso_size;
	__u16 tag_type; /* of a VLAN tag that is not in the frame, in network order */
	__u16 tag;      /* in host order; both 0 = none */
	__u8 out;       /* the interface sends it */
	__u8 unused[5];
	/* The frame follows. */
};

#define OW_KERNEL_RECORD 32u

/* Where the next record starts. */
static inline __u64 ow_kernel_next(__u64 position, __u32 caplen)
{
	return position + ((OW_KERNEL_RECORD + (__u64)caplen + 15) & ~15ull);
}

/* The positions of a ring. What the kernel writes is in other cache lines than what the source writes. */
struct ow_kernel_positions {
	__u64 head; /* behind the last record */
	__u64 lost; /* frames for which there was no room */
	__u64 filler[14];
	__u64 tail;    /* everything before it was read */
	__u64 cut_tcp; /* see ow_iface_cut_tcp */
	__u64 filler2[14];
};

/* The bytes of TCP packets that are kept: OW_FILTER_TCP_BYTES. */
#define OW_KERNEL_TCP_BYTES 144u
/* Frames up to this length are copied at once, before it is known what they are. */
#define OW_KERNEL_SHORT 512u
/* The longest frame is a superframe of 64 KB; of longer ones (BIG TCP) this much is kept. */
#define OW_KERNEL_FRAME_MAX 0x1ffffu
/* The room behind the last byte of a ring; whole pages. */
#define OW_KERNEL_ROOM (OW_KERNEL_FRAME_MAX + 1 + 4096)
