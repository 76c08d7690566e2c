/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the kernel, as the filter of a packet socket: records each frame of an interface, sent or received, into the
 * rings of the processor (kernel_layout.h), and lets the socket have none.
 *
 * It runs with softirqs disabled, so nothing interrupts it that records as well: positions need no atomic operations.
 * A frame is recorded or counted as lost. (Programs at tracepoints would cost less for frames that are sent, but a kernel may leave
 * out their runs, and one was found that does not count this.)
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include "capture/iface/kernel_layout.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define OUTGOING    4 /* PACKET_OUTGOING */
#define IPPROTO_TCP 6

/* The members that are used; libbpf finds where they are in this kernel. */
#define IN_KERNEL __attribute__((preserve_access_index))
struct sk_buff {
	unsigned int end;
	unsigned char *head;
} IN_KERNEL;
struct skb_shared_info {
	unsigned int gso_type;
} IN_KERNEL;

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

/* An entry for each processor. The process sets how many there are, and how long the rings are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ow_kernel_positions);
} positions SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 1);
} rings SEC(".maps");

/* Of each ring. Set by the process. */
const volatile __u32 ring_bytes = 0;

struct place {
	struct ow_kernel_positions *at;
	__u8 *ring;
	__u64 head;
};

static __always_inline bool find_place(struct place *p)
{
	__u32 processor = bpf_get_smp_processor_id();
	p->at = bpf_map_lookup_elem(&positions, &processor);
	p->ring = bpf_map_lookup_elem(&rings, &processor);
	if (!p->at || !p->ring)
		return false; /* never: there is one for each possible processor */
	p->head = p->at->head;
	return true;
}

static __always_inline bool has_room(const struct place *p, __u32 bytes)
{
	__u64 tail = *(volatile __u64 *)&p->at->tail;
	return p->head + OW_KERNEL_RECORD + bytes - tail <= ring_bytes;
}

static __always_inline struct ow_kernel_record *record_at(const struct place *p)
{
	return (struct ow_kernel_record *)(p->ring + (p->head & (ring_bytes - 1)));
}

static __always_inline __u32 be16(const __u8 *p)
{
	return (__u32)p[0] << 8 | p[1];
}

static __always_inline bool is_tag(__u32 type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

/* How much of a frame is kept, by the rule of ow_filter_cut_tcp. At least its first OW_KERNEL_TCP_BYTES are in the record. */
static __always_inline __u32 to_keep(const struct place *p, const __u8 *frame, __u32 len)
{
	__u32 keep = len < OW_KERNEL_FRAME_MAX ? len : OW_KERNEL_FRAME_MAX;
	if (!*(volatile __u64 *)&p->at->cut_tcp || len <= OW_KERNEL_TCP_BYTES)
		return keep;
	const __u8 *ip = frame + 14;
	__u32 type = be16(frame + 12);
	if (is_tag(type)) {
		type = be16(frame + 16);
		ip += 4;
		if (is_tag(type)) {
			type = be16(frame + 20);
			ip += 4;
		}
	}
	bool tcp = false;
	if (type == 0x0800)
		tcp = ip[0] >> 4 == 4 && ip[9] == IPPROTO_TCP && !(be16(ip + 6) & 0x3fff);
	else if (type == 0x86dd)
		tcp = ip[0] >> 4 == 6 && (ip[6] == IPPROTO_TCP || (ip[6] == 0 && ip[40] == IPPROTO_TCP && ip[41] == 0));
	return tcp ? OW_KERNEL_TCP_BYTES : keep;
}

/* The head is written after the record, for a source on another processor. */
static __always_inline void commit(const struct place *p, __u32 caplen)
{
	__u64 next = ow_kernel_next(p->head, caplen);
#ifdef __TARGET_ARCH_x86 /* keeps the order of writes */
	asm volatile("" ::: "memory");
	*(volatile __u64 *)&p->at->head = next;
#else
	__sync_lock_test_and_set(&p->at->head, next);
#endif
}

/* The rest of a frame, 1 to OW_KERNEL_FRAME_MAX bytes: a bound that the verifier believes. */
#define BOUNDED(bytes)                            \
	({                                        \
		__u32 bounded = (bytes);          \
		asm volatile("" : "+r"(bounded)); \
		bounded;                          \
	})

/* What the filter of a socket returns: the socket gets nothing of the frame. */
static __always_inline int lose(const struct place *p)
{
	p->at->lost++;
	return 0;
}

SEC("socket")
int on_frame(struct __sk_buff *skb)
{
	struct place p;
	if (!find_place(&p))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u32 len = skb->len, first = len <= OW_KERNEL_SHORT ? len : OW_KERNEL_TCP_BYTES;
	struct ow_kernel_record *record = record_at(&p);
	__u8 *frame = (__u8 *)record + OW_KERNEL_RECORD;
	if (!has_room(&p, OW_KERNEL_SHORT) || first == 0 || bpf_skb_load_bytes(skb, 0, frame, first) < 0)
		return lose(&p);
	__u32 keep = to_keep(&p, frame, len);
	if (keep > first) {
		__u32 rest = BOUNDED(keep - first);
		if (rest == 0 || rest > OW_KERNEL_FRAME_MAX || !has_room(&p, keep) ||
		    bpf_skb_load_bytes(skb, OW_KERNEL_TCP_BYTES, frame + OW_KERNEL_TCP_BYTES, rest) < 0)
			return lose(&p);
	}
	*record =
		(struct ow_kernel_record){.time_ns = now, .len = len, .caplen = keep, .out = skb->pkt_type == OUTGOING};
	if (skb->vlan_present) {
		record->tag_type = (__u16)skb->vlan_proto;
		record->tag = (__u16)skb->vlan_tci;
	}
	record->gso_size = (__u16)skb->gso_size;
	if (record->gso_size) {
		struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
		struct skb_shared_info *shared =
			bpf_rdonly_cast(kernel->head + kernel->end, bpf_core_type_id_kernel(struct skb_shared_info));
		record->gso_type = shared->gso_type;
	}
	commit(&p, keep);
	return 0;
}

/* What the kernel asks for before it lets a program read its memory. */
char licence[] SEC("license") = "GPL";
