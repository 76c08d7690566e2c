/* SPDX-License-Identifier: Apache-2.0 */
/* Live capture in its own namespace: every frame once, with direction, bytes, time; drops counted; ends noticed. */
#include "capture/filter.h"
#include "capture/iface/iface.h"
#include "packet/packet_filter.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"
#include "netns.h"
#include "scratch.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM       64
#define PATIENCE_S 20 /* for what takes milliseconds on an idle machine */
#define SLACK_NS   (2 * OW_NS_PER_MS)

static struct ow_iface *open_live(const struct ow_iface_options *options)
{
	struct ow_iface *live = NULL;
	struct ow_error err = {""};
	if (ow_iface_open(options, &live, &err) < 0)
		fail_msg("%s", err.text);
	return live;
}

static struct ow_iface *open_on(const char *interface, enum ow_iface_kind kind)
{
	return open_live(&(struct ow_iface_options){.kind = kind, .name = interface, .ring_bytes = 8 << 20});
}

/* What a source has shown, frame by frame. */
struct seen {
	uint32_t frames, numbers;
	int64_t latest_ns, passed_ns;
	uint8_t *times; /* each number was seen so many times */
	uint32_t limit;
};

static void see(struct seen *seen, const struct ow_iface_frame *f, enum ow_heading heading)
{
	uint8_t expected[2048];
	const struct ow_frame *frame = &f->frame;
	assert_int_equal(frame->number, ++seen->frames);
	assert_int_equal(frame->linktype, 1);
	assert_int_equal(f->heading, heading);
	assert_int_equal(f->stamped_by, OW_STAMPED_BY_KERNEL);
	assert_int_equal(f->gso, OW_GSO_NONE);
	assert_int_equal(frame->caplen, frame->len);
	/* The watermark was right: no stamp below it comes. */
	assert_true(frame->time_ns >= seen->passed_ns);
	uint32_t number = ow_load_be32(frame->data + NETNS_PAYLOAD);
	assert_true(number < seen->limit && frame->len <= sizeof expected);
	seen->times[number]++;
	netns_frame(expected, frame->len, number, ow_load_be16(frame->data + 34) == 1024 ? 1 : 16);
	assert_memory_equal(frame->data, expected, frame->len);
}

static struct seen seen_new(uint32_t limit)
{
	return (struct seen){.times = calloc(limit, 1), .limit = limit, .passed_ns = INT64_MIN};
}

/* Reads until `frames` were seen, or nothing came for a while. */
static void read_until(struct ow_iface *live, uint32_t frames, enum ow_heading heading, struct seen *seen)
{
	struct ow_iface_frame batch[ROOM];
	struct ow_error err = {""};
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	while (seen->frames < frames && ow_clock_steady_ns() < until) {
		int n = ow_iface_read(live, 50, batch, 1 + seen->frames % ROOM, &err);
		if (n < 0)
			fail_msg("%d %s", n, err.text);
		for (int i = 0; i < n; i++)
			see(seen, &batch[i], heading);
		assert_true(ow_iface_passed_ns(live) >= seen->passed_ns);
		seen->passed_ns = ow_iface_passed_ns(live);
		assert_true(seen->passed_ns <= ow_iface_now_ns(live));
	}
	assert_int_equal(seen->frames, frames);
}

static void send_frames(const char *interface, uint32_t from, uint32_t count, uint32_t flows)
{
	uint8_t frame[1514];
	int fd = netns_sender(interface);
	for (uint32_t i = from; i < from + count; i++)
		netns_send(fd, frame, netns_frame(frame, 60 + i * 7 % 1455, i, flows));
	close(fd);
}

static void expect_each(struct seen *seen, uint8_t times)
{
	for (uint32_t i = 0; i < seen->limit; i++)
		assert_int_equal(seen->times[i], times);
	free(seen->times);
}

static void expect_counts(struct ow_iface *live, uint64_t frames, uint64_t dropped)
{
	struct ow_iface_counts counts;
	ow_iface_counts(live, &counts);
	assert_int_equal(counts.frames, frames);
	assert_int_equal(counts.dropped, dropped);
	assert_int_equal(counts.stamped[OW_STAMPED_BY_KERNEL], frames);
}

/* Where the kernel cannot record, a ring would take its place, and be tested twice. */
static bool is_possible(enum ow_iface_kind kind)
{
	return kind != OW_IFACE_KERNEL || ow_iface_kernel_possible(NULL) == 0;
}

static void exactly_what_was_sent(enum ow_iface_kind kind, const char *name, enum ow_heading out, enum ow_heading in)
{
	struct ow_iface *v0 = open_on("v0", kind), *v1 = open_on("v1", kind);
	struct seen at0 = seen_new(3000), at1 = seen_new(3000);
	assert_string_equal(ow_iface_kind_name(v0), name);
	assert_int_equal(ow_iface_linktype(v0), 1);
	int64_t before = ow_clock_real_ns();
	for (uint32_t i = 0; i < 3000; i += 500) {
		send_frames("v0", i, 500, 1);
		read_until(v0, i + 500, out, &at0);
		read_until(v1, i + 500, in, &at1);
	}
	assert_true(at0.latest_ns <= ow_clock_real_ns() && at0.passed_ns >= before - SLACK_NS);
	/* The other way. */
	send_frames("v1", 0, 100, 1);
	read_until(v0, 3100, in, &at0);
	read_until(v1, 3100, out, &at1);
	for (uint32_t i = 0; i < 100; i++) {
		at0.times[i]--;
		at1.times[i]--;
	}
	expect_each(&at0, 1);
	expect_each(&at1, 1);
	expect_counts(v0, 3100, 0);
	expect_counts(v1, 3100, 0);
	ow_iface_close(v0);
	ow_iface_close(v1);
}

static void ring_shows_exactly_what_was_sent(void **state)
{
	(void)state;
	exactly_what_was_sent(OW_IFACE_RING, "ring", OW_HEADING_OUT, OW_HEADING_IN);
}

static void auto_is_the_ring(void **state)
{
	(void)state;
	exactly_what_was_sent(OW_IFACE_AUTO, "ring", OW_HEADING_OUT, OW_HEADING_IN);
}

static void kernel_shows_exactly_what_was_sent(void **state)
{
	(void)state;
	if (!is_possible(OW_IFACE_KERNEL))
		skip();
	exactly_what_was_sent(OW_IFACE_KERNEL, "kernel", OW_HEADING_OUT, OW_HEADING_IN);
}

static void libpcap_shows_exactly_what_was_sent(void **state)
{
	(void)state;
	exactly_what_was_sent(OW_IFACE_LIBPCAP, "libpcap", OW_HEADING_UNKNOWN, OW_HEADING_UNKNOWN);
}

/* A plain packet socket with stamps, as any program could have it. */
static int other_socket(const char *interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int on = 1, bytes = 4 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static int64_t other_stamp(int fd, uint32_t *ret_number)
{
	uint8_t frame[2048], control[256];
	struct iovec part = {.iov_base = frame, .iov_len = sizeof frame};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	assert_true(recvmsg(fd, &message, 0) > NETNS_PAYLOAD + 4);
	*ret_number = ow_load_be32(frame + NETNS_PAYLOAD);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		struct timespec ts;
		memcpy(&ts, CMSG_DATA(c), sizeof ts);
		return ts.tv_sec * OW_NS_PER_S + ts.tv_nsec;
	}
	fail_msg("no stamp");
	return 0;
}

static void collect_stamps(struct ow_iface *live, int64_t *stamps, uint32_t count)
{
	struct ow_iface_frame batch[ROOM];
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	for (uint32_t seen = 0; seen < count && ow_clock_steady_ns() < until;) {
		int n = ow_iface_read(live, 50, batch, ROOM, NULL);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++, seen++)
			stamps[ow_load_be32(batch[i].frame.data + NETNS_PAYLOAD)] = batch[i].frame.time_ns;
	}
}

/* All packet sockets of an interface show the same time for a packet, so that captures can be compared exactly. */
static void stamps_are_those_of_other_sockets(void **state)
{
	(void)state;
	enum { COUNT = 400 };
	for (int side = 0; side < 2; side++) {
		const char *interface = side ? "v1" : "v0";
		int64_t ring[COUNT] = {0}, pcap[COUNT] = {0}, second[COUNT] = {0};
		struct ow_iface *a = open_on(interface, OW_IFACE_RING), *b = open_on(interface, OW_IFACE_LIBPCAP);
		struct ow_iface *c = open_on(interface, OW_IFACE_RING);
		int other = other_socket(interface);
		usleep(50000); /* the kernel switches its stamps on a moment later */
		send_frames("v0", 0, COUNT, 1);
		collect_stamps(a, ring, COUNT);
		collect_stamps(b, pcap, COUNT);
		collect_stamps(c, second, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t number;
			int64_t stamp = other_stamp(other, &number);
			assert_true(number < COUNT);
			assert_true(ring[number] == stamp);
			assert_true(second[number] == stamp);
			assert_true(pcap[number] == stamp);
		}
		close(other);
		ow_iface_close(a);
		ow_iface_close(b);
		ow_iface_close(c);
	}
}

/* More is sent than the ring holds while nobody reads: the drops are counted. */
static void drops_are_counted(void **state)
{
	(void)state;
	enum { SENT = 3000 };
	struct ow_iface *live = open_live(
		&(struct ow_iface_options){.kind = OW_IFACE_RING, .name = "v1", .ring_bytes = 1, .snaplen = 0});
	struct seen seen = seen_new(SENT + 100);
	struct ow_iface_counts counts, again;
	send_frames("v0", 0, SENT, 1);
	usleep(100000);
	ow_iface_counts(live, &counts);
	assert_true(counts.dropped > 0 && counts.dropped < SENT);
	read_until(live, (uint32_t)(SENT - counts.dropped), OW_HEADING_IN, &seen);
	/* It goes on afterwards, and the count stays. */
	send_frames("v0", SENT, 100, 1);
	read_until(live, (uint32_t)(SENT + 100 - counts.dropped), OW_HEADING_IN, &seen);
	ow_iface_counts(live, &again);
	assert_int_equal(again.dropped, counts.dropped);
	assert_int_equal(again.frames + again.dropped, SENT + 100);
	print_message("%d frames into a ring of 512 KiB: %llu dropped\n", SENT, (unsigned long long)counts.dropped);
	free(seen.times);
	ow_iface_close(live);
}

static void fanout_shares_the_frames(void **state)
{
	(void)state;
	enum { SENT = 2000 };
	struct ow_iface *live[2];
	struct ow_iface_options options = {
		.kind = OW_IFACE_RING, .name = "v1", .ring_bytes = 8 << 20, .fanout = 77, .filter = "udp"};
	struct seen seen[2] = {seen_new(SENT), seen_new(SENT)};
	for (int i = 0; i < 2; i++)
		live[i] = open_live(&options);
	send_frames("v0", 0, SENT, 16);
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	while (seen[0].frames + seen[1].frames < SENT && ow_clock_steady_ns() < until) {
		for (int i = 0; i < 2; i++) {
			struct ow_iface_frame batch[ROOM];
			int n = ow_iface_read(live[i], 20, batch, ROOM, NULL);
			assert_true(n >= 0);
			for (int k = 0; k < n; k++)
				see(&seen[i], &batch[k], OW_HEADING_IN);
		}
	}
	/* A flow stays with one of them. */
	for (uint32_t i = 0; i < SENT; i++) {
		assert_int_equal(seen[0].times[i] + seen[1].times[i], 1);
		assert_int_equal(seen[0].times[i], seen[0].times[i % 16]);
	}
	for (int i = 0; i < 2; i++) {
		expect_counts(live[i], seen[i].frames, 0);
		ow_iface_close(live[i]);
		free(seen[i].times);
	}
}

static void filter_and_snaplen(enum ow_iface_kind kind, const char *filter)
{
	struct ow_iface_options options = {
		.kind = kind, .name = "v1", .ring_bytes = 8 << 20, .snaplen = 60, .filter = filter};
	uint32_t first = filter ? 3 : 0, step = filter ? 16 : 1, count = filter ? 50 : 800;
	struct ow_iface *live = open_live(&options);
	struct ow_iface_frame batch[ROOM];
	uint32_t seen = 0;
	send_frames("v0", 0, 800, 16); /* from ports 1024 .. 1039 */
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	while (seen < count && ow_clock_steady_ns() < until) {
		int n = ow_iface_read(live, 20, batch, ROOM, NULL);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++, seen++) {
			const struct ow_frame *frame = &batch[i].frame;
			assert_int_equal(ow_load_be32(frame->data + NETNS_PAYLOAD), first + step * seen);
			assert_int_equal(frame->len, 60 + (first + step * seen) * 7 % 1455);
			assert_int_equal(frame->caplen, 60);
		}
	}
	assert_int_equal(seen, count);
	assert_int_equal(ow_iface_read(live, 20, batch, ROOM, NULL), 0);
	ow_iface_close(live);
}

static void filters_and_snapshot_length(void **state)
{
	(void)state;
	filter_and_snaplen(OW_IFACE_RING, "udp src port 1027");
	/* libpcap shows all frames. */
	filter_and_snaplen(OW_IFACE_LIBPCAP, NULL);
}

/* Tags in front of the packets that are sent: none, one, none but a priority, a provider's and a customer's, three. */
static const uint8_t tag_bytes[][13] = {
	{0},
	{4, 0x81, 0, 0, 5},
	{4, 0x81, 0, 0x60, 0},
	{4, 0x88, 0xa8, 0, 5},
	{8, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 5},
	{8, 0x81, 0, 0, 5, 0x81, 0, 0, 6},
	{12, 0x88, 0xa8, 0, 7, 0x88, 0xa8, 0, 8, 0x81, 0, 0, 5},
};
enum { TAGGINGS = sizeof tag_bytes / sizeof *tag_bytes, TAGGED_BYTES = 112 };

/* A frame of UDP with these tags; returns its length. */
static uint32_t tagged_frame(int tagging, uint8_t *frame)
{
	uint8_t plain[TAGGED_BYTES];
	uint32_t tags = tag_bytes[tagging][0], length = (uint32_t)netns_frame(plain, 100, (uint32_t)tagging, 1);
	memcpy(frame, plain, 12);
	memcpy(frame + 12, tag_bytes[tagging] + 1, tags);
	memcpy(frame + 12 + tags, plain + 12, length - 12);
	return length + tags;
}

/* UDP frames become TCP of the same length, whose sequence number is the number. */
static void send_tcp(uint32_t count)
{
	uint8_t frame[1514];
	int fd = netns_sender("v0");
	for (uint32_t i = 0; i < count; i++) {
		size_t size = netns_frame(frame, 60 + i * 7 % 1455, i, 1);
		frame[23] = 6;
		ow_store_be32(frame + 38, i);
		netns_send(fd, frame, size);
	}
	close(fd);
}

static void expect_cut(struct ow_iface *live, uint32_t count, uint32_t most)
{
	struct ow_iface_frame batch[ROOM];
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	uint32_t seen = 0;
	while (seen < count && ow_clock_steady_ns() < until) {
		int n = ow_iface_read(live, 20, batch, ROOM, NULL);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++, seen++) {
			const struct ow_frame *frame = &batch[i].frame;
			assert_int_equal(ow_load_be32(frame->data + 38), seen);
			assert_int_equal(frame->len, 60 + seen * 7 % 1455);
			assert_int_equal(frame->caplen, frame->len < most ? frame->len : most);
		}
	}
	assert_int_equal(seen, count);
}

static void tcp_is_cut_behind_its_headers(void **state)
{
	(void)state;
	static const char *const filters[] = {NULL, "tcp or udp", "not icmp"};
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
		struct ow_iface_options options = {.kind = OW_IFACE_RING,
		                                   .name = "v1",
		                                   .ring_bytes = 8 << 20,
		                                   .filter = filters[i],
		                                   .cut_tcp = true};
		struct ow_iface *live = open_live(&options);
		struct seen seen = seen_new(300);
		struct ow_error err = {""};
		send_tcp(300);
		expect_cut(live, 300, OW_FILTER_TCP_BYTES);
		assert_int_equal(ow_iface_cut_tcp(live, false, &err), 0);
		send_tcp(300);
		expect_cut(live, 300, UINT32_MAX);
		assert_int_equal(ow_iface_cut_tcp(live, true, &err), 0);
		send_tcp(300);
		expect_cut(live, 300, OW_FILTER_TCP_BYTES);
		seen.frames = 900;
		send_frames("v0", 0, 300, 1); /* UDP stays whole */
		read_until(live, 1200, OW_HEADING_IN, &seen);
		expect_each(&seen, 1);
		ow_iface_close(live);
	}
}

static void rings_follow_the_speed(void **state)
{
	(void)state;
	const uint64_t gbit = 1000000000, gib = UINT64_C(1) << 30;
	assert_int_equal(ow_iface_ring_bytes(0, 1, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_ring_bytes(gbit, 1, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_ring_bytes(10 * gbit, 1, 64 * gib), 256 << 20);
	assert_int_equal(ow_iface_ring_bytes(10 * gbit, 4, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_ring_bytes(40 * gbit, 1, 64 * gib), gib);
	/* Of each processor, when recorded in the kernel: a power of two, and 512 MiB for all of them. */
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 2, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 8, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 9, 64 * gib), 32 << 20);
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 128, 64 * gib), 4 << 20);
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 4096, 64 * gib), 1 << 20);
	assert_int_equal(ow_iface_kernel_ring(64 << 20, 2, gib), 32 << 20);
	assert_int_equal(ow_iface_kernel_ring(gib, 1, 64 * gib), 256 << 20);
	assert_int_equal(ow_iface_kernel_ring(100 << 20, 1, 64 * gib), 64 << 20);
	assert_int_equal(ow_iface_ring_bytes(400 * gbit, 1, 64 * gib), OW_IFACE_RING_MAX);
	assert_int_equal(ow_iface_ring_bytes(40 * gbit, 1, 2 * gib), 128 << 20);
	assert_int_equal(ow_iface_ring_bytes(40 * gbit, 8, 2 * gib), 64 << 20);
	assert_int_equal(ow_iface_ring_bytes(40 * gbit, 0, 0), 64 << 20);
	assert_int_equal(ow_iface_speed("v0"), 0); /* a veth claims 10 Gbit/s */
	assert_int_equal(ow_iface_speed("no such interface"), 0);
}

static void send_tagged(void)
{
	uint8_t frame[TAGGED_BYTES];
	int sender = netns_sender("v0");
	for (int i = 0; i < TAGGINGS; i++)
		netns_send(sender, frame, tagged_frame(i, frame));
	close(sender);
}

/* What a source with this filter shows, filtered again, are the frames that were sent and that the filter takes. */
static void expect_tagged(struct ow_iface *live, const struct ow_packet_filter *filter)
{
	struct ow_iface_frame got;
	int taken = 0;
	for (int i = 0; i < TAGGINGS; i++) {
		uint8_t bytes[TAGGED_BYTES];
		struct ow_frame sent = {.data = bytes, .linktype = 1};
		sent.len = sent.caplen = tagged_frame(i, bytes);
		if (!ow_packet_filter_takes(filter, &sent))
			continue;
		do
			assert_int_equal(ow_iface_read(live, PATIENCE_S * 1000, &got, 1, NULL), 1);
		while (!ow_packet_filter_takes(filter, &got.frame));
		assert_int_equal(got.frame.len, sent.len);
		assert_memory_equal(got.frame.data, bytes, sent.len);
		taken++;
	}
	while (ow_iface_read(live, 20, &got, 1, NULL) > 0)
		assert_false(ow_packet_filter_takes(filter, &got.frame));
	assert_true(taken > 0);
}

/* The kernel keeps the tag beside a received frame and inside a sent one: filters take the same packets all the same.
 */
static void filters_see_the_wire(void **state)
{
	(void)state;
	static const char *const filters[] = {
		"",        "udp",  "vlan 5 and udp",     "vlan 7 and vlan 5 and udp", "not vlan", "greater 100",
		"not tcp", "vlan", "not udp and vlan 5", "ether[12:2] = 0x8100",      "not arp",  "udp and not vlan",
	};
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
		struct ow_iface *live[4];
		struct ow_packet_filter filter;
		assert_int_equal(ow_packet_filter_compile("test", 1, filters[i], &filter, NULL), 0);
		for (int k = 0; k < 4; k++) {
			struct ow_iface_options options = {.kind = k / 2 ? OW_IFACE_LIBPCAP : OW_IFACE_RING,
			                                   .name = k % 2 ? "v1" : "v0",
			                                   .ring_bytes = 1 << 20,
			                                   .filter = filters[i]};
			live[k] = open_live(&options);
		}
		send_tagged();
		for (int k = 0; k < 4; k++) {
			expect_tagged(live[k], &filter);
			ow_iface_close(live[k]);
		}
		ow_packet_filter_done(&filter);
	}
}

static void *interrupt_soon(void *live)
{
	usleep(20000);
	ow_iface_interrupt(live);
	return NULL;
}

static void interrupt_ends_a_read(void **state)
{
	(void)state;
	for (enum ow_iface_kind kind = OW_IFACE_RING; kind <= OW_IFACE_KERNEL && is_possible(kind); kind++) {
		struct ow_iface *live = open_on("v1", kind);
		struct ow_iface_frame frame;
		struct ow_error err;
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, live), 0);
		assert_int_equal(ow_iface_read(live, -1, &frame, 1, &err), -EINTR);
		pthread_join(thread, NULL);
		/* Each ends one read, also one that comes later; then reading goes on. */
		ow_iface_interrupt(live);
		ow_iface_interrupt(live);
		assert_int_equal(ow_iface_read(live, -1, &frame, 1, &err), -EINTR);
		assert_int_equal(ow_iface_read(live, 10, &frame, 1, &err), 0);
		send_frames("v0", 0, 1, 1);
		assert_int_equal(ow_iface_read(live, PATIENCE_S * 1000, &frame, 1, &err), 1);
		ow_iface_close(live);
	}
}

/* Without traffic the watermark follows the clock; with a frame that waits in the ring it does not pass it. */
static void watermark_follows_the_clock(void **state)
{
	(void)state;
	for (enum ow_iface_kind kind = OW_IFACE_RING; kind <= OW_IFACE_KERNEL && is_possible(kind); kind++) {
		struct ow_iface *live = open_on("v1", kind);
		struct ow_iface_frame batch[ROOM];
		/* libpcap does not show whether it holds frames back. */
		int64_t lag_ns = SLACK_NS + (kind != OW_IFACE_LIBPCAP ? 0 : 4 * OW_IFACE_BLOCK_MS * OW_NS_PER_MS);
		for (int i = 0; i < 40; i++) {
			int64_t start = ow_iface_now_ns(live);
			assert_int_equal(ow_iface_read(live, 2, batch, ROOM, NULL), 0);
			assert_true(ow_iface_passed_ns(live) <= ow_iface_now_ns(live));
			assert_true(ow_iface_passed_ns(live) >= start - lag_ns);
			send_frames("v0", 0, 1, 1);
			int64_t passed = ow_iface_passed_ns(live);
			int n = ow_iface_read(live, 0, batch, ROOM, NULL);
			if (n == 0) {
				passed = ow_iface_passed_ns(live);
				n = ow_iface_read(live, PATIENCE_S * 1000, batch, ROOM, NULL);
			}
			assert_int_equal(n, 1);
			assert_true(batch[0].frame.time_ns >= passed);
		}
		ow_iface_close(live);
	}
}

/* Sends frames, and waits until they have arrived. On a busy host they are on their way until the kernel has time. */
static void send_and_wait_for(const char *from, const char *to, uint32_t count)
{
	uint8_t frame[1514];
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = netns_sender(to);
	struct sockaddr_ll all = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(to)};
	assert_return_code(bind(fd, (struct sockaddr *)&all, sizeof all), errno);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), errno);
	send_frames(from, 0, count, 1);
	for (uint32_t i = 0; i < count; i++)
		assert_return_code(recv(fd, frame, sizeof frame, 0), errno);
	close(fd);
}

static void end_of_an_interface(enum ow_iface_kind kind, const char *command)
{
	struct ow_iface *live = open_on("v1", kind);
	struct seen seen = seen_new(20);
	struct ow_iface_frame batch[ROOM];
	struct ow_error err = {""};
	int n;
	send_and_wait_for("v0", "v1", 20);
	usleep(50000); /* ten times as long as a ring may hold frames back */
	netns_run("%s", command);
	while ((n = ow_iface_read(live, PATIENCE_S * 1000, batch, ROOM, &err)) > 0) {
		for (int i = 0; i < n; i++)
			see(&seen, &batch[i], kind == OW_IFACE_LIBPCAP ? OW_HEADING_UNKNOWN : OW_HEADING_IN);
	}
	if (n != -ENODEV)
		fail_msg("%s, kind %d: %d %s", command, kind, n, err.text);
	assert_non_null(strstr(err.text, "v1: "));
	assert_int_equal(seen.frames, 20); /* what had come is not lost */
	free(seen.times);
	ow_iface_close(live);
}

static void interfaces_end(void **state)
{
	(void)state;
	for (enum ow_iface_kind kind = OW_IFACE_RING; kind <= OW_IFACE_KERNEL && is_possible(kind); kind++) {
		end_of_an_interface(kind, "ip link set v1 down");
		netns_run("ip link set v1 up");
		netns_wait_for_veth();
		end_of_an_interface(kind, "ip link del v0");
		netns_veth();
	}
}

static int expect_error(const struct ow_iface_options *options, const char *part)
{
	struct ow_iface *live;
	struct ow_error err = {""};
	int r = ow_iface_open(options, &live, &err);
	if (!strstr(err.text, part) || !strstr(err.text, options->name))
		fail_msg("%s lacks \"%s\"", err.text, part);
	return r;
}

static void errors_name_the_interface(void **state)
{
	(void)state;
	for (enum ow_iface_kind kind = OW_IFACE_AUTO; kind <= OW_IFACE_LIBPCAP; kind++) {
		struct ow_iface_options options = {.kind = kind, .name = "none0"};
		assert_int_equal(expect_error(&options, "no such interface"), -ENODEV);
		options.name = "an-interface-of-a-long-name";
		assert_int_equal(expect_error(&options, "no such interface"), -ENODEV);
		options = (struct ow_iface_options){.kind = kind, .name = "v0", .filter = "udp prot 7"};
		if (kind != OW_IFACE_LIBPCAP)
			assert_int_equal(expect_error(&options, "udp prot 7"), -EINVAL);
		netns_run("ip link set v0 down");
		options.filter = NULL;
		assert_int_equal(expect_error(&options, "down"), -ENETDOWN);
		netns_run("ip link set v0 up");
	}
}

/* Loopback is Ethernet, and shows each packet twice. */
static void loopback_shows_packets_twice(void **state)
{
	(void)state;
	struct ow_iface *live = open_on("lo", OW_IFACE_RING);
	struct ow_iface_frame batch[2];
	unsigned heading[3] = {0};
	send_frames("lo", 0, 1, 1);
	for (int seen = 0; seen < 2;) {
		int n = ow_iface_read(live, PATIENCE_S * 1000, batch, 2, NULL);
		assert_true(n > 0);
		for (int i = 0; i < n; i++, seen++)
			heading[batch[i].heading]++;
	}
	assert_int_equal(ow_iface_linktype(live), 1);
	assert_int_equal(heading[OW_HEADING_OUT], 1);
	assert_int_equal(heading[OW_HEADING_IN], 1);
	ow_iface_close(live);
}

/* Tunnels have no link layer: frames begin with IP. */
static void tunnels_show_ip(void **state)
{
	(void)state;
	struct ifreq request = {.ifr_name = "tun0", .ifr_flags = IFF_TUN | IFF_NO_PI};
	int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (tun < 0 || ioctl(tun, TUNSETIFF, &request) < 0) {
		print_message("no tun devices: not tested\n");
		return;
	}
	netns_run("ip link set tun0 up");
	struct ow_iface_options options = {.kind = OW_IFACE_RING, .name = "tun0", .filter = "udp port 7"};
	struct ow_iface *live = open_live(&options);
	uint8_t bytes[200];
	struct ow_iface_frame frame;
	assert_int_equal(ow_iface_linktype(live), 101);
	for (uint32_t i = 0; i < 10; i++) {
		netns_frame(bytes, sizeof bytes, i, 1);
		if (i % 2) {
			assert_int_equal(write(tun, bytes + 14, sizeof bytes - 14), sizeof bytes - 14);
		} else {
			int sender = netns_sender("tun0");
			netns_send(sender, bytes + 14, sizeof bytes - 14);
			close(sender);
		}
		assert_int_equal(ow_iface_read(live, PATIENCE_S * 1000, &frame, 1, NULL), 1);
		assert_int_equal(frame.frame.len, sizeof bytes - 14);
		assert_memory_equal(frame.frame.data, bytes + 14, frame.frame.caplen);
		assert_int_equal(frame.heading, i % 2 ? OW_HEADING_IN : OW_HEADING_OUT);
		assert_int_equal(frame.frame.linktype, 101);
	}
	close(tun);
	ow_iface_close(live);
}

/* Asked for stamps that the interface does not have: frames say who stamped them. */
static void hardware_stamps_are_not_assumed(void **state)
{
	(void)state;
	struct ow_iface_options options = {.kind = OW_IFACE_RING, .name = "v1", .hardware_stamps = true};
	struct ow_iface *live = open_live(&options);
	struct seen seen = seen_new(10);
	send_frames("v0", 0, 10, 1);
	read_until(live, 10, OW_HEADING_IN, &seen);
	expect_each(&seen, 1);
	expect_counts(live, 10, 0);
	ow_iface_close(live);
}

#define ON_VETH(test) cmocka_unit_test_setup_teardown(test, netns_veth_setup, netns_veth_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_VETH(ring_shows_exactly_what_was_sent),
		ON_VETH(auto_is_the_ring),
		ON_VETH(kernel_shows_exactly_what_was_sent),
		ON_VETH(libpcap_shows_exactly_what_was_sent),
		ON_VETH(stamps_are_those_of_other_sockets),
		ON_VETH(drops_are_counted),
		ON_VETH(fanout_shares_the_frames),
		ON_VETH(filters_and_snapshot_length),
		ON_VETH(tcp_is_cut_behind_its_headers),
		ON_VETH(rings_follow_the_speed),
		ON_VETH(filters_see_the_wire),
		ON_VETH(interrupt_ends_a_read),
		ON_VETH(watermark_follows_the_clock),
		ON_VETH(interfaces_end),
		ON_VETH(errors_name_the_interface),
		ON_VETH(hardware_stamps_are_not_assumed),
		cmocka_unit_test(loopback_shows_packets_twice),
		cmocka_unit_test(tunnels_show_ip),
	};
	netns_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
