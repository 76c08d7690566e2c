/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of an interface through a TPACKET_V3 ring: blocks of memory that the kernel fills and we read in place. The
 * kernel hands a block over when it is full, or OW_IFACE_BLOCK_MS after its first frame. We return it at the next call,
 * after its frames have been used. In a block, each frame has
 *
 *     struct tpacket3_hdr | struct sockaddr_ll | gap | struct virtio_net_hdr | frame
 *
 * where tp_mac of the header is the offset of the frame, sockaddr_ll has the direction, and the virtio header, directly
 * before the frame, describes superframes.
 *
 *   - The filter is attached before the socket is bound, so no other frame gets in.
 *   - The filter also tells the kernel how much of a frame to keep. A superframe of 64 KB that is cut behind its headers
 *     needs 250 bytes of the ring.
 *   - SO_TIMESTAMPNS makes the kernel timestamp each packet once, early, instead of once for each packet socket. So all
 *     sockets on this host (tcpdump's too) have the same time for it.
 *   - If the kernel or the card has removed a VLAN tag, we put it back, so that frames are as on the wire.
 *   - Kernels before 6.2 cannot describe UDP superframes (UDP_SEGMENT) in a virtio header, and no kernel can describe
 *     those of SCTP: the kernel drops them and counts them as dropped. The slot stays in the block, without the status
 *     bit of a frame.
 *   - On the loopback interface each packet passes twice: out, then in.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/time.h"
#include "capture/filter.h"
#include "capture/ip_id.h"
#include "capture/iface/iface_ops.h"
#include "capture/iface/interface.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Not in the kernel headers of Debian 12: */
#define GSO_UDP_L4 5

#define VLAN_TAG_BYTES     4
#define ETHERNET_ADDRESSES 12

/*
 * A block must hold the longest frame: a superframe of 64 KB, or of more than 512 KB (BIG TCP) if TCP is not cut. The
 * kernel hands over a block after OW_IFACE_BLOCK_MS however little is in it, so a ring of n blocks holds no more than n
 * times this time, whatever its size: small blocks let a reader that is held up find more.
 */
#define BLOCK_BYTES_MAX (1u << 20)
#define BLOCK_BYTES_MIN (128u << 10)
#define BLOCKS_MIN      4u
#define BLOCKS_WHOLE    64u
#define BLOCKS_CUT      512u /* 2.5 s */
#define RING_BYTES_MAX  OW_IFACE_RING_MAX
#define FRAME_BYTES     2048u /* the kernel requires a number, but does not use it in this version */
/* Sockets in reserve, of a ring that shares its interface, see open_again. */
#define SPARES 8
struct ring {
	struct ow_iface live;
	int fd;
	uint16_t fanout; /* 0 = does not share its interface */
	int spare[SPARES];
	unsigned spares;
	bool hardware_stamps;
	atomic_bool cut_tcp;
	unsigned ifindex;
	char *filter; /* NULL = all frames */
	uint32_t snaplen;
	uint8_t *memory;
	uint32_t block_bytes, blocks, blocks_wanted;
	uint32_t block;              /* the block that is being read, or is read next */
	uint32_t left;               /* its frames that have not been returned */
	const uint8_t *next;         /* the first of them */
	struct tpacket_hdr_v1 *held; /* all frames were returned; the caller still uses the last ones */
	int64_t latest_ns;           /* timestamp of the frames returned */
	struct ow_ip_ids ip_ids;
};

static int fail(const char *name, const char *what, struct ow_error *err)
{
	int code = errno;
	if (code == EPERM || code == EACCES)
		return ow_error_set(err, code, "%s: capturing needs root or CAP_NET_RAW", name);
	return ow_error_set(err, code, "%s: %s: %s", name, what, strerror(code));
}

static int set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof value);
}

static int look_up(struct ring *ring, struct ow_error *err)
{
	const char *name = ring->live.name;
	struct ifreq request = {0};
	int r;
	ring->ifindex = ow_interface_index(ring->fd, name);
	if (ring->ifindex == 0)
		return ow_error_set(err, ENODEV, "%s: no such interface", name);
	memcpy(request.ifr_name, name, strlen(name));
	if (ioctl(ring->fd, SIOCGIFFLAGS, &request) < 0)
		return fail(name, "SIOCGIFFLAGS", err);
	if (!(request.ifr_flags & IFF_UP))
		return ow_error_set(err, ENETDOWN, "%s: the interface is down", name);
	if (ioctl(ring->fd, SIOCGIFHWADDR, &request) < 0)
		return fail(name, "SIOCGIFHWADDR", err);
	r = ow_interface_linktype(request.ifr_hwaddr.sa_family);
	if (r < 0)
		return ow_error_set(err, -r, "%s: the ring does not support link layer %u", name,
		                    request.ifr_hwaddr.sa_family);
	ring->live.linktype = (uint16_t)r;
	ring->live.tells_heading = true;
	return 0;
}

/* Requests hardware timestamps; each frame says whether it has one. */
static int set_stamps(struct ring *ring, bool hardware, struct ow_error *err)
{
	int on = 1, flags = SOF_TIMESTAMPING_SOFTWARE;
	if (setsockopt(ring->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0)
		return fail(ring->live.name, "SO_TIMESTAMPNS", err);
	if (hardware) {
		struct hwtstamp_config config = {.tx_type = HWTSTAMP_TX_OFF, .rx_filter = HWTSTAMP_FILTER_ALL};
		struct ifreq request = {.ifr_data = (char *)&config};
		memcpy(request.ifr_name, ring->live.name, strlen(ring->live.name));
		/* A card that does not support it, or that is already set up, keeps its setting. */
		if (ioctl(ring->fd, SIOCSHWTSTAMP, &request) < 0)
			errno = 0;
		flags |= SOF_TIMESTAMPING_RAW_HARDWARE;
	}
	return set(ring->fd, PACKET_TIMESTAMP, flags) < 0 ? fail(ring->live.name, "PACKET_TIMESTAMP", err) : 0;
}

static int attach(struct ring *ring, struct sock_filter *code, unsigned length, struct ow_error *err)
{
	struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
	if (length > BPF_MAXINSNS)
		return ow_error_set(err, E2BIG, "%s: the filter has %u instructions; the kernel takes %d",
		                    ring->live.name, length, BPF_MAXINSNS);
	if (setsockopt(ring->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
		return fail(ring->live.name, "filter", err);
	return 0;
}

static int attach_filter(struct ring *ring, bool cut_tcp, struct ow_error *err)
{
	struct bpf_program program;
	const char *name = ring->live.name;
	uint16_t linktype = ring->live.linktype;
	_Static_assert(sizeof(struct sock_filter) == sizeof(struct bpf_insn),
	               "libpcap's instructions are the kernel's");
	int r = ow_filter_compile_kernel(name, linktype, ring->snaplen, ring->filter, &program, err);
	if (r < 0)
		return r;
	if (cut_tcp)
		r = ow_filter_cut_tcp(name, linktype, ring->snaplen, &program, err);
	if (r == 0)
		r = attach(ring, (struct sock_filter *)program.bf_insns, program.bf_len, err);
	pcap_freecode(&program);
	return r;
}

static int make_ring(struct ring *ring, size_t bytes, struct ow_error *err)
{
	const char *name = ring->live.name;
	if (bytes > RING_BYTES_MAX)
		return ow_error_set(err, EINVAL, "%s: a ring has at most %zu MiB", name, RING_BYTES_MAX >> 20);
	ring->block_bytes = BLOCK_BYTES_MAX;
	while (ring->block_bytes > BLOCK_BYTES_MIN && bytes / ring->block_bytes < ring->blocks_wanted)
		ring->block_bytes /= 2;
	ring->blocks = (uint32_t)(bytes / ring->block_bytes);
	if (ring->blocks < BLOCKS_MIN)
		ring->blocks = BLOCKS_MIN;
	struct tpacket_req3 request = {
		.tp_block_size = ring->block_bytes,
		.tp_block_nr = ring->blocks,
		.tp_frame_size = FRAME_BYTES,
		.tp_frame_nr = ring->block_bytes / FRAME_BYTES * ring->blocks,
		.tp_retire_blk_tov = OW_IFACE_BLOCK_MS,
	};
	size_t size = (size_t)ring->block_bytes * ring->blocks;
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) < 0)
		return fail(name, "cannot make the ring", err);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, 0);
	if (memory == MAP_FAILED)
		return fail(name, "cannot map the ring", err);
	ring->memory = memory;
	return 0;
}

/* A default size may be too large for this host. */
static int make_usual_ring(struct ring *ring, unsigned threads, struct ow_error *err)
{
	size_t bytes = ow_iface_usual_ring(ring->live.name, threads);
	int r = make_ring(ring, bytes, err);
	while (r == -ENOMEM && bytes > OW_IFACE_RING_BYTES) {
		bytes /= 2;
		r = make_ring(ring, bytes, err);
	}
	return r;
}

static int bind_to(struct ring *ring, struct ow_error *err)
{
	return ow_interface_bind(ring->fd, ring->ifindex) < 0 ? fail(ring->live.name, "bind", err) : 0;
}

/* All sources of an interface have the same group, and sources of another interface, or of one that was created again,
 * another: a group has one interface. */
static uint16_t group_of(const struct ring *ring)
{
	uint16_t group = (uint16_t)ow_mix64((uint64_t)ring->fanout << 32 | ring->ifindex);
	return group ? group : 1;
}

/*
 * For several sources: none may receive frames before it has joined the group, or these frames would be counted twice.
 */
static int bind_to_group(struct ring *ring, struct ow_error *err)
{
	struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	int r = attach(ring, nothing, 1, err);
	if (r == 0)
		r = bind_to(ring, err);
	if (r < 0)
		return r;
	/* By flow, with both directions of a connection together. */
	if (set(ring->fd, PACKET_FANOUT, group_of(ring) | PACKET_FANOUT_HASH << 16) < 0)
		return fail(ring->live.name, "fanout", err);
	return attach_filter(ring, atomic_load(&ring->cut_tcp), err);
}

static int open_socket(const struct ring *ring, struct ow_error *err)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: nothing is captured until bind */
	return fd < 0 ? fail(ring->live.name, "socket", err) : fd;
}

static int open_spares(struct ring *ring, struct ow_error *err)
{
	while (ring->spares < SPARES) {
		int fd = open_socket(ring, err);
		if (fd < 0)
			return fd;
		ring->spare[ring->spares++] = fd;
	}
	return 0;
}

static int prepare(struct ring *ring, struct ow_error *err)
{
	if (set(ring->fd, PACKET_VERSION, TPACKET_V3) < 0 || set(ring->fd, PACKET_VNET_HDR, 1) < 0)
		return ow_error_set(err, ENOTSUP, "%s: the kernel has no TPACKET_V3 ring with virtio headers: %s",
		                    ring->live.name, strerror(errno));
	return set_stamps(ring, ring->hardware_stamps, err);
}

static int start(struct ring *ring, const struct ow_iface_options *options, struct ow_error *err)
{
	int r;
	ring->blocks_wanted = options->cut_tcp ? BLOCKS_CUT : BLOCKS_WHOLE;
	ring->snaplen = options->snaplen ? options->snaplen : OW_IFACE_SNAPLEN_MAX;
	ring->filter = options->filter ? strdup(options->filter) : NULL;
	if (options->filter && !ring->filter)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ring->live.name);
	ring->fanout = options->fanout;
	ring->hardware_stamps = options->hardware_stamps;
	atomic_store(&ring->cut_tcp, options->cut_tcp);
	ring->fd = open_socket(ring, err);
	if (ring->fd < 0)
		return ring->fd;
	r = look_up(ring, err);
	if (r == 0)
		r = prepare(ring, err);
	if (r == 0)
		r = options->ring_bytes ? make_ring(ring, options->ring_bytes, err)
		                        : make_usual_ring(ring, options->threads, err);
	if (r == 0 && ring->fanout)
		r = open_spares(ring, err);
	if (r == 0 && ring->fanout)
		return bind_to_group(ring, err);
	if (r == 0)
		r = attach_filter(ring, options->cut_tcp, err);
	return r < 0 ? r : bind_to(ring, err);
}

static struct tpacket_hdr_v1 *block_header(const struct ring *ring, uint32_t block)
{
	uint8_t *start = ring->memory + (size_t)block * ring->block_bytes;
	return &((struct tpacket_block_desc *)start)->hdr.bh1;
}

static void give_back(struct ring *ring)
{
	if (ring->held)
		__atomic_store_n(&ring->held->block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ring->held = NULL;
}

static enum ow_gso gso_of(uint8_t type)
{
	switch (type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return OW_GSO_TCP4;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return OW_GSO_TCP6;
	case GSO_UDP_L4:
		return OW_GSO_UDP;
	default:
		return OW_GSO_NONE;
	}
}

/* net: offset of the network header according to the kernel. */
static void fill_gso(struct ring *ring, uint32_t net, struct ow_iface_frame *frame)
{
	const struct ow_frame *f = &frame->frame;
	struct virtio_net_hdr header;
	memcpy(&header, f->data - sizeof header, sizeof header);
	if (header.gso_size == 0 || gso_of(header.gso_type) == OW_GSO_NONE)
		return;
	frame->gso = gso_of(header.gso_type);
	frame->gso_size = header.gso_size;
	/* Set with each CWR of classic ECN, which is not repeated in the segments. */
	frame->cwr_on_all = !(header.gso_type & VIRTIO_NET_HDR_GSO_ECN);
	if (frame->gso == OW_GSO_TCP4 && f->caplen > net)
		frame->fixed_ip_id = ow_ip_id_fixed(&ring->ip_ids, f->data + net, f->caplen - net, frame->heading);
}

/* Older kernels do not report the type of the tag. */
static void put_tag_back(const struct tpacket3_hdr *header, struct ow_frame *frame)
{
	_Static_assert(sizeof(struct virtio_net_hdr) >= VLAN_TAG_BYTES,
	               "the virtio header, which has been read, leaves room in front of the frame");
	bool typed = header->tp_status & TP_STATUS_VLAN_TPID_VALID;
	ow_interface_put_tag(typed ? htons(header->hv1.tp_vlan_tpid) : 0, htons((uint16_t)header->hv1.tp_vlan_tci),
	                     frame);
}

/* Returns false for a slot that the kernel has dropped. */
static inline bool fill(struct ring *ring, const uint8_t *slot, struct ow_iface_frame *frame)
{
	const struct tpacket3_hdr *header = (const struct tpacket3_hdr *)slot;
	const struct sockaddr_ll *from = (const struct sockaddr_ll *)(slot + TPACKET_ALIGN(sizeof *header));
	struct ow_iface *live = &ring->live;
	if (!(header->tp_status & TP_STATUS_USER))
		return false;
	*frame = (struct ow_iface_frame){
		.frame =
			{
				.time_ns = ow_clock_stamp_ns(header->tp_sec * OW_NS_PER_S + header->tp_nsec),
				.data = slot + header->tp_mac,
				.caplen = header->tp_snaplen,
				.len = header->tp_len,
				.number = ++live->counts.frames,
				.linktype = live->linktype,
			},
		.heading = from->sll_pkttype == PACKET_OUTGOING ? OW_HEADING_OUT : OW_HEADING_IN,
		.stamped_by = header->tp_status & TP_STATUS_TS_RAW_HARDWARE ? OW_STAMPED_BY_NIC : OW_STAMPED_BY_KERNEL,
	};
	live->counts.stamped[frame->stamped_by]++;
	if (header->tp_snaplen)
		fill_gso(ring, (uint32_t)(header->tp_net - header->tp_mac), frame);
	if (header->tp_status & TP_STATUS_VLAN_VALID && header->tp_snaplen >= ETHERNET_ADDRESSES &&
	    live->linktype == OW_LINKTYPE_ETHERNET)
		put_tag_back(header, &frame->frame);
	return true;
}

/* Returns frames of the block that we own. now_ns: the time before the kernel handed it over, or slightly later. */
static int take(struct ring *ring, struct ow_iface_frame *frames, size_t room, int64_t now_ns)
{
	int n = 0;
	while (ring->left && (size_t)n < room) {
		const uint8_t *slot = ring->next;
		ring->next = slot + ((const struct tpacket3_hdr *)slot)->tp_next_offset;
		__builtin_prefetch(ring->next);
		__builtin_prefetch(ring->next + 64);
		ring->left--;
		if (!fill(ring, slot, &frames[n]))
			continue;
		if (frames[n].frame.time_ns > ring->latest_ns)
			ring->latest_ns = frames[n].frame.time_ns;
		n++;
	}
	if (ring->left == 0) {
		ring->held = block_header(ring, ring->block);
		ring->block = (ring->block + 1) % ring->blocks;
	}
	bool ahead = ring->latest_ns > now_ns + OW_IFACE_SLACK_NS;
	if (ahead)
		n = ow_iface_leave_out(&ring->live, frames, n);
	if (n > 0 && !(ahead && ow_iface_set_back(&ring->live, ow_clock_real_ns(), &ring->latest_ns)))
		ow_iface_pass(&ring->live, ring->latest_ns - OW_IFACE_SLACK_NS);
	return n;
}

/* Whether the kernel has handed over the next block; then we own it. */
static bool next_block(struct ring *ring)
{
	if (!ring->memory)
		return false; /* it could not be made again */
	const struct tpacket_hdr_v1 *header = block_header(ring, ring->block);
	if (!(__atomic_load_n(&header->block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return false;
	ring->left = header->num_pkts;
	ring->next = (const uint8_t *)header - offsetof(struct tpacket_block_desc, hdr) + header->offset_to_first_pkt;
	return true;
}

/* Whether the block that the kernel is filling has no frame yet. */
static bool nothing_waits(const struct ring *ring)
{
	if (!ring->memory)
		return true;
	const struct tpacket_hdr_v1 *header = block_header(ring, ring->block);
	return __atomic_load_n(&header->num_pkts, __ATOMIC_ACQUIRE) == 0;
}

/*
 * -- interfaces that go away and come back --------------------------------------------------------------------------
 */

/*
 * When an interface goes down, its sockets get ENETDOWN once, and frames again when it is up. When it is removed or
 * moved to another namespace, its sockets lose their binding permanently. An interface that is created again has a new
 * index, and a socket can be bound to it without privileges (several sockets that share an interface: see open_again).
 */

static void count_drops(struct ring *ring)
{
	struct tpacket_stats_v3 stats; /* counted since the last call */
	socklen_t size = sizeof stats;
	if (getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
		ring->live.counts.dropped += stats.tp_drops;
}

static void unmap(struct ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, (size_t)ring->block_bytes * ring->blocks);
	ring->memory = NULL;
}

/*
 * A socket in a fanout group cannot leave it or be bound again, and a process without privileges cannot open another
 * one: takes a socket that was opened before. The descriptor keeps its number, because other threads may use it.
 */
static int open_again(struct ring *ring, unsigned ifindex)
{
	if (ring->spares == 0)
		return -ENFILE;
	count_drops(ring);
	unmap(ring);
	int spare = ring->spare[--ring->spares], r = dup3(spare, ring->fd, O_CLOEXEC) < 0 ? -errno : 0;
	close(spare);
	ring->ifindex = ifindex;
	ring->block = 0;
	if (r == 0)
		r = prepare(ring, NULL);
	if (r == 0)
		r = make_ring(ring, (size_t)ring->block_bytes * ring->blocks, NULL);
	return r < 0 ? r : bind_to_group(ring, NULL);
}

/* Binds the socket to another interface. -EAGAIN: later, when all frames of the last one were read. */
static int bind_again(struct ring *ring, unsigned ifindex)
{
	if (ring->fanout && ring->memory && (ring->left || ring->held || !nothing_waits(ring)))
		return -EAGAIN;
	if (ring->fanout)
		return open_again(ring, ifindex);
	if (ow_interface_bound(ring->fd))
		ow_interface_set_promiscuous(ring->fd, ring->ifindex, false);
	ring->ifindex = ifindex;
	return bind_to(ring, NULL);
}

/* Why no frames come from this interface, or NULL. */
static const char *find_obstacle(struct ring *ring, unsigned ifindex)
{
	struct ifreq request;
	const char *obstacle = ow_interface_obstacle(ring->fd, ifindex, ring->live.linktype, &request);
	if (obstacle)
		return obstacle;
	int r = ifindex == ow_interface_bound(ring->fd) ? 0 : bind_again(ring, ifindex);
	if (r < 0)
		return r == -EAGAIN ? "was replaced" : "was replaced, and cannot be opened again without a restart";
	return ioctl(ring->fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP ? NULL : "was down";
}

/*
 * Checks whether the interface exists. To be called after frames were read or found missing, and before the watermark
 * advances over that time. A renamed interface is still the same one, unless another one has its name.
 */
static int check_interface(struct ring *ring, struct ow_error *err)
{
	struct ow_iface *live = &ring->live;
	int code = 0;
	socklen_t size = sizeof code;
	if (getsockopt(ring->fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code != 0 && code != ENETDOWN)
		return ow_error_set(err, code, "%s: %s", live->name, strerror(code));
	unsigned named = ow_interface_index(ring->fd, live->name),
		 ifindex = named ? named : ow_interface_bound(ring->fd);
	if (!live->away && code == 0 && (named == 0 || named == ring->ifindex))
		return 0;
	const char *cause = code == 0 ? "was replaced" : "was down", *obstacle = find_obstacle(ring, ifindex);
	if (obstacle || !live->away)
		ow_iface_lose(live, obstacle ? obstacle : cause);
	if (!obstacle)
		ow_iface_regain(live);
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* Returns frames of blocks that we own, if there are any. */
static int take_ready(struct ring *ring, struct ow_iface_frame *frames, size_t room, int64_t now_ns,
                      struct ow_error *err)
{
	int n = 0;
	while (n == 0) {
		bool begun = ring->left > 0;
		if (!begun && !next_block(ring))
			break;
		give_back(ring);
		int r = begun ? 0 : check_interface(ring, err);
		if (r < 0)
			return r;
		n = take(ring, frames, room, now_ns);
	}
	return n;
}

/* Handles that no frames are left to read: advances the watermark, or finds that the interface is away. */
static int pass_silence(struct ring *ring, int64_t now_ns, struct ow_error *err)
{
	int r = check_interface(ring, err);
	if (r < 0 || !nothing_waits(ring))
		return r;
	ow_iface_pass(&ring->live, now_ns - OW_IFACE_SLACK_NS);
	if (ring->live.away && !ring->live.wait)
		return ow_error_set(err, ENODEV, "%s: the interface %s", ring->live.name, ring->live.why);
	return 0;
}

static int ring_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                     struct ow_error *err)
{
	struct ring *ring = (struct ring *)live;
	int64_t until = ow_iface_deadline(timeout_ms);
	bool over = false;
	give_back(ring);
	for (;;) {
		int64_t now = ow_clock_real_ns(); /* read before the ring */
		ow_iface_set_back(live, now, &ring->latest_ns);
		int r = take_ready(ring, frames, room, now, err);
		if (r != 0)
			return r;
		give_back(ring);
		r = pass_silence(ring, now, err);
		if (r < 0 || over)
			return r;
		int64_t look = live->away ? ow_iface_deadline(OW_IFACE_BLOCK_MS) : until;
		r = ow_iface_wait(live, ring->fd, look < until ? look : until);
		over = r == 0 && ow_clock_steady_ns() >= until;
		if (r < 0)
			return r;
	}
}

static void ring_count(struct ow_iface *live)
{
	count_drops((struct ring *)live);
}

static int ring_cut_tcp(struct ow_iface *live, bool cut, struct ow_error *err)
{
	struct ring *ring = (struct ring *)live;
	atomic_store(&ring->cut_tcp, cut);
	return attach_filter(ring, cut, err);
}

static void ring_free(struct ow_iface *live)
{
	struct ring *ring = (struct ring *)live;
	free(ring->filter);
	unmap(ring);
	while (ring->spares > 0)
		close(ring->spare[--ring->spares]);
	if (ring->fd >= 0)
		close(ring->fd);
	ow_iface_done(live);
	free(ring);
}

int ow_iface_open_ring(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	static const struct ow_iface_ops ops = {
		.name = "ring",
		.read = ring_read,
		.count = ring_count,
		.cut_tcp = ring_cut_tcp,
		.free = ring_free,
	};
	struct ring *ring = calloc(1, sizeof *ring);
	if (!ring)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->name);
	ring->fd = -1;
	ring->latest_ns = INT64_MIN;
	int r = ow_iface_init(&ring->live, &ops, options->name, err);
	if (r == 0)
		r = start(ring, options, err);
	if (r < 0) {
		ring_free(&ring->live);
		return r;
	}
	*ret_live = &ring->live;
	return 0;
}
