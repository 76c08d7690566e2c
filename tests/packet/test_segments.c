/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Superframes cut into the packets of the wire, with Linux as the oracle. In a namespace, sockets send superframes
 * (TCP, and UDP_SEGMENT) out of s0; a bridge takes them from r0 to r1, whose offloads are off, so that the kernel cuts
 * them there; d0, in a second namespace, gets the packets:
 *
 *     first namespace                          second
 *     s0 ===== r0 = bridge = r1 ---------------- d0
 *      superframes            packets of the wire
 *
 * The ids of the superframes of s0 must be those of the packets at d0. The other way round, packets with headers of
 * many kinds are sent to an interface that joins them (GRO); the ids of what it joined must be those of the packets.
 */
#include "packet/segments.h"

#include "../capture/netns.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "capture/filter.h"
#include "build.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#define SEED        4711
#define PATIENCE_S  30
#define IDS_MAX     200000
#define KINDS       7
#define KINDS_WHOLE 5 /* those from here on have only what a cut frame keeps */

static int first, second; /* the namespaces */

/* The ids of what passed an interface, under several identities. */
struct ids {
	uint64_t *id[KINDS];
	uint32_t count, frames, superframes, cut, uncut; /* cut: superframes of which a ring keeps the headers */
	uint64_t bytes;
};

static void make_identity(unsigned kind, bool inner, struct ow_identity *ret_identity)
{
	*ret_identity = (struct ow_identity){
		.level = kind == 1 || kind == 4 || kind == 6 ? OW_LEVEL_NAT : OW_LEVEL_IP,
		.any_ip_id = kind == 2 || kind == 4,
		.hash_limit = kind == 3 ? 100 : UINT32_MAX,
		.tcp_headers = kind >= KINDS_WHOLE,
		.pieces = kind == 2 || kind >= KINDS_WHOLE,
		.inner = inner,
	};
	ow_identity_seed(ret_identity, SEED);
}

/* A frame as a ring delivers it that cuts TCP packets. */
static struct ow_iface_frame cut(const struct ow_iface_frame *frame)
{
	struct ow_iface_frame copy = *frame;
	struct bpf_program program;
	struct ow_error err;
	assert_int_equal(ow_filter_compile_kernel("test", 1, UINT16_MAX * 8, NULL, &program, &err), 0);
	assert_int_equal(ow_filter_cut_tcp("test", 1, UINT16_MAX * 8, &program, &err), 0);
	u_int kept = bpf_filter(program.bf_insns, frame->frame.data, frame->frame.len, frame->frame.caplen);
	pcap_freecode(&program);
	assert_true(kept > 0);
	copy.frame.caplen = kept < copy.frame.caplen ? kept : copy.frame.caplen;
	return copy;
}

static void add(struct ids *ids, const struct ow_iface_frame *frame, bool inner)
{
	static struct ow_segments segments;
	struct ow_iface_frame headers = cut(frame);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct ow_identity identity;
		make_identity(kind, inner, &identity);
		int r = ow_segments_of_frame(&identity, kind < KINDS_WHOLE ? frame : &headers, &segments);
		if (r == -ENOMSG)
			return; /* ARP: the filter of a ring leaves to its caller what is no plain IP packet */
		assert_int_equal(r, 0);
		assert_true(ids->count + segments.count <= IDS_MAX);
		memcpy(ids->id[kind] + ids->count, segments.id, segments.count * sizeof *segments.id);
	}
	for (unsigned i = 0; i < segments.count; i++)
		ids->bytes += segments.bytes[i];
	ids->count += segments.count;
	ids->frames++;
	ids->superframes += segments.count > 1;
	ids->cut += segments.count > 1 && headers.frame.caplen == OW_FILTER_TCP_BYTES;
	ids->uncut += segments.uncut;
}

static struct ids ids_new(void)
{
	struct ids ids = {.count = 0};
	for (unsigned kind = 0; kind < KINDS; kind++)
		ids.id[kind] = malloc(IDS_MAX * sizeof **ids.id);
	return ids;
}

static void ids_done(struct ids *ids)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		free(ids->id[kind]);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

/* All ids of one are those of the other, each as often. */
static void expect_same(struct ids *a, struct ids *b)
{
	assert_int_equal(a->count, b->count);
	assert_true(a->bytes == b->bytes);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		uint32_t common = 0;
		qsort(a->id[kind], a->count, sizeof **a->id, by_value);
		qsort(b->id[kind], b->count, sizeof **b->id, by_value);
		for (uint32_t i = 0, k = 0; i < a->count && k < b->count;) {
			uint64_t x = a->id[kind][i], y = b->id[kind][k];
			common += x == y;
			i += x <= y;
			k += y <= x;
		}
		if (common != a->count)
			fail_msg("identity %u: %u of %u ids differ", kind, a->count - common, a->count);
	}
}

static struct ow_iface *open_in(int namespace, const char *interface, const char *filter)
{
	struct ow_iface_options options = {.kind = OW_IFACE_RING, .name = interface, .filter = filter};
	struct ow_iface *live = NULL;
	struct ow_error err = {""};
	assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
	if (ow_iface_open(&options, &live, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(setns(first, CLONE_NEWNET), 0);
	return live;
}

/* What is there. heading: only that. */
static void collect(struct ow_iface *live, enum ow_heading heading, bool inner, int timeout_ms, struct ids *ids)
{
	struct ow_iface_frame frames[64];
	struct ow_error err = {""};
	int n;
	while ((n = ow_iface_read(live, timeout_ms, frames, 64, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			if (frames[i].heading == heading)
				add(ids, &frames[i], inner);
		}
	}
	assert_int_equal(n, 0);
}

static void expect_no_drops(struct ow_iface *live)
{
	struct ow_iface_counts counts;
	ow_iface_counts(live, &counts);
	assert_int_equal(counts.dropped, 0);
}

/* Both ends of the path while something is sent over it. */
struct watch {
	struct ow_iface *at_s0, *at_r0, *at_d0;
	struct ids s0, r0, d0;
	bool inner;
};

static void watch_start(struct watch *w, const char *filter, bool inner)
{
	*w = (struct watch){.s0 = ids_new(), .r0 = ids_new(), .d0 = ids_new(), .inner = inner};
	w->at_s0 = open_in(first, "s0", filter);
	w->at_r0 = open_in(first, "r0", filter);
	w->at_d0 = open_in(second, "d0", filter);
}

static void watch_step(struct watch *w, int timeout_ms)
{
	collect(w->at_s0, OW_HEADING_OUT, w->inner, timeout_ms, &w->s0);
	collect(w->at_r0, OW_HEADING_IN, w->inner, timeout_ms, &w->r0);
	collect(w->at_d0, OW_HEADING_IN, w->inner, timeout_ms, &w->d0);
}

static void watch_end(struct watch *w, const char *what)
{
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	do
		watch_step(w, 100);
	while (w->d0.count < w->s0.count && ow_clock_steady_ns() < until);
	watch_step(w, 100);
	print_message("%s: %u frames, %u of them superframes, are %u packets\n", what, w->s0.frames, w->s0.superframes,
	              w->s0.count);
	expect_no_drops(w->at_s0);
	expect_no_drops(w->at_r0);
	expect_no_drops(w->at_d0);
	assert_true(w->s0.superframes > 5);
	assert_int_equal(w->s0.uncut, 0);
	assert_int_equal(w->d0.superframes, 0); /* or this would prove nothing */
	assert_int_equal(w->d0.frames, w->d0.count);
	expect_same(&w->s0, &w->d0);
	expect_same(&w->r0, &w->d0);
	ids_done(&w->s0);
	ids_done(&w->r0);
	ids_done(&w->d0);
	ow_iface_close(w->at_s0);
	ow_iface_close(w->at_r0);
	ow_iface_close(w->at_d0);
}

struct address {
	struct sockaddr_storage storage;
	socklen_t size;
};

static struct address address_of(const char *host, uint16_t port)
{
	struct address a = {.size = sizeof(struct sockaddr_in)};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a.storage;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a.storage;
	if (strchr(host, ':')) {
		a.size = sizeof *v6;
		*v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
		assert_int_equal(inet_pton(AF_INET6, host, &v6->sin6_addr), 1);
	} else {
		*v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		assert_int_equal(inet_pton(AF_INET, host, &v4->sin_addr), 1);
	}
	return a;
}

static int listen_in(int namespace, const struct address *address, int type)
{
	assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
	int on = 1, fd = socket(address->storage.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address->storage, address->size), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(setns(first, CLONE_NEWNET), 0);
	return fd;
}

/* Sends so many bytes over a connection, in writes of odd sizes, while both ends are watched. */
static void send_tcp(struct watch *w, const char *host, uint32_t total)
{
	static uint8_t data[1 << 17], sink[1 << 17];
	struct address address = address_of(host, 5001);
	struct ow_random random;
	int listener = listen_in(second, &address, SOCK_STREAM);
	int client = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address.storage, address.size), 0);
	int server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	fcntl(client, F_SETFL, O_NONBLOCK);
	ow_random_seed(&random, SEED);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)ow_random_u64(&random);
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	for (uint32_t sent = 0, received = 0; received < total && ow_clock_steady_ns() < until;) {
		uint32_t want = 1 + (uint32_t)ow_random_below(&random, sizeof data - 1);
		want = want < total - sent ? want : total - sent;
		ssize_t n = want ? send(client, data, want, MSG_NOSIGNAL) : 0;
		if (n > 0)
			sent += (uint32_t)n;
		if (sent == total && want)
			shutdown(client, SHUT_WR); /* FIN, on a superframe perhaps */
		while ((n = recv(server, sink, sizeof sink, MSG_DONTWAIT)) > 0)
			received += (uint32_t)n;
		watch_step(w, 0);
		assert_true(received <= total);
	}
	close(client);
	close(server);
	close(listener);
}

static void tcp_over_ipv4(void **state)
{
	(void)state;
	struct watch w;
	watch_start(&w, "tcp", false);
	send_tcp(&w, "10.9.0.2", 6000000);
	assert_int_equal(w.s0.cut, w.s0.superframes);
	watch_end(&w, "TCP, IPv4");
}

static void tcp_over_ipv6(void **state)
{
	(void)state;
	struct watch w;
	watch_start(&w, "ip6 and tcp", false);
	send_tcp(&w, "fd00:9::2", 6000000);
	assert_int_equal(w.s0.cut, w.s0.superframes);
	watch_end(&w, "TCP, IPv6");
}

/* The packet inside: its id does not know of the tunnel. */
static void tcp_in_vxlan(void **state)
{
	(void)state;
	struct watch w;
	if (system("ip link add vx0 type vxlan id 7 dev s0 remote 10.9.0.2 dstport 4789 2>/dev/null") != 0) {
		print_message("no VXLAN in this kernel: not tested\n");
		return;
	}
	netns_run("ip addr add 10.10.0.1/24 dev vx0 && ip link set vx0 up");
	assert_int_equal(setns(second, CLONE_NEWNET), 0);
	netns_run("ip link add vx0 type vxlan id 7 dev d0 remote 10.9.0.1 dstport 4789 &&"
	          "ip addr add 10.10.0.2/24 dev vx0 && ip link set vx0 up");
	assert_int_equal(setns(first, CLONE_NEWNET), 0);
	/* Frames of the tunnel that carry no TCP (ARP) would have no IP packet inside. */
	watch_start(&w, "udp dst port 4789 and udp[28:2] = 0x0800 or 0x0800 = udp[28:2]", true);
	send_tcp(&w, "10.10.0.2", 3000000);
	watch_end(&w, "TCP in VXLAN");
	netns_run("ip link del vx0");
}

/* BIG TCP: IPv6 superframes above 64 KB have, or had, a hop-by-hop header that no packet of the wire has. */
static void tcp_in_big_superframes(void **state)
{
	(void)state;
	struct watch w;
	if (system("ip link set s0 gso_max_size 180000 gso_ipv4_max_size 180000 2>/dev/null") != 0 &&
	    system("ip link set s0 gso_max_size 180000 2>/dev/null") != 0) {
		print_message("no superframes above 64 KB here: not tested\n");
		return;
	}
	watch_start(&w, "tcp or (ip6[6] = 0 and ip6[40] = 6)", false);
	send_tcp(&w, "fd00:9::2", 4000000);
	send_tcp(&w, "10.9.0.2", 4000000);
	assert_int_equal(w.s0.cut, w.s0.superframes);
	watch_end(&w, "BIG TCP");
	netns_run("ip link set s0 gso_max_size 65536");
}

/* UDP_SEGMENT: one call, many datagrams. */
static void send_udp(struct watch *w, const char *host, bool connected)
{
	static uint8_t data[60000];
	struct address address = address_of(host, 5002);
	struct ow_random random;
	ow_random_seed(&random, SEED);
	int receiver = listen_in(second, &address, SOCK_DGRAM);
	int sender = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (connected)
		assert_int_equal(connect(sender, (struct sockaddr *)&address.storage, address.size), 0);
	for (int i = 0; i < 100; i++) {
		int size = 100 + (int)ow_random_below(&random, 1300);
		size_t total = 1 + (size_t)ow_random_below(
					   &random, sizeof data < (size_t)size * 60 ? sizeof data : (size_t)size * 60);
		for (size_t k = 0; k < total; k += 8)
			memcpy(data + k, &(uint64_t){ow_random_u64(&random)}, 8);
		if (setsockopt(sender, SOL_UDP, UDP_SEGMENT, &size, sizeof size) < 0)
			fail_msg("UDP_SEGMENT");
		const struct sockaddr *to = connected ? NULL : (const struct sockaddr *)&address.storage;
		assert_int_equal(sendto(sender, data, total, 0, to, connected ? 0 : address.size), total);
		watch_step(w, 0);
	}
	close(sender);
	close(receiver);
}

static void udp_superframes(void **state)
{
	(void)state;
	for (int connected = 0; connected < 2; connected++) {
		struct watch w;
		watch_start(&w, "udp and (dst port 5002 or ip6[6] = 44)", false);
		send_udp(&w, "10.9.0.2", connected);
		watch_end(&w, connected ? "UDP, IPv4, connected" : "UDP, IPv4");
		watch_start(&w, "udp and dst port 5002", false);
		send_udp(&w, "fd00:9::2", connected);
		watch_end(&w, connected ? "UDP, IPv6, connected" : "UDP, IPv6");
	}
}

static uint32_t sum_of(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

static uint16_t fold_sum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* One TCP packet of a row of them, with right checksums. */
struct row {
	unsigned version;
	uint16_t port, ip_id;
	bool fixed; /* all have this IP id */
	uint8_t flags;
	uint32_t sequence, options;
};

static void make_packet(struct build *b, const struct row *row, uint32_t number, uint32_t len, bool last)
{
	*b = (struct build){.len = 0};
	ethernet(b, row->version == 4 ? 0x0800 : 0x86dd);
	uint32_t ip = row->version == 4 ? ipv4(b, 6) : ipv6(b, 6);
	uint32_t at = tcp(b, (uint8_t)(row->flags | (last ? 0x08 : 0)), row->sequence + number * len);
	if (row->options) {
		put(b, (const uint8_t[]){1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}, 12);
		b->data[at + 12] = 0x80;
	}
	for (uint32_t i = 0; i < len; i++)
		put(b, (const uint8_t[]){(uint8_t)(i * 7 + number)}, 1);
	ow_store_be16(b->data + at, row->port);
	finish_ip(b, ip);
	if (row->version == 4) {
		ow_store_be16(b->data + ip + 4, (uint16_t)(row->ip_id + (row->fixed ? 0 : number)));
		ow_store_be16(b->data + ip + 6, 0x4000);
		ow_store_be16(b->data + ip + 10, 0);
		ow_store_be16(b->data + ip + 10, fold_sum(sum_of(b->data + ip, 20, 0)));
	}
	ow_store_be16(b->data + at + 16, 0);
	uint32_t addresses = row->version == 4 ? ip + 12 : ip + 8;
	uint32_t sum = sum_of(b->data + addresses, row->version == 4 ? 8 : 32, 6 + b->len - at);
	ow_store_be16(b->data + at + 16, fold_sum(sum_of(b->data + at, b->len - at, sum)));
}

/* Packets out of g0; g1 joins them. */
static void joined_packets(void **state)
{
	(void)state;
	netns_run("ip link add g0 type veth peer name g1 && ip link set g0 up && ip link set g1 up");
	if (system("ethtool -K g0 tso off && ethtool -K g1 gro on 2>/dev/null && unshare -m sh -c 'mount -t sysfs "
	           "sysfs /sys &&"
	           " echo 3000000 >/sys/class/net/g1/gro_flush_timeout'") != 0) {
		print_message("no GRO on veth here: not tested\n");
		return;
	}
	struct ow_iface *at_g0 = open_in(first, "g0", "tcp"), *at_g1 = open_in(first, "g1", "tcp");
	struct ids g0 = ids_new(), g1 = ids_new();
	struct build b;
	int sender = netns_sender("g0");
	for (unsigned r = 0; r < 64; r++) {
		struct row row = {
			.version = r % 4 == 3 ? 6 : 4,
			.port = (uint16_t)(1000 + r),
			/* Nothing tells a row of zeros from one that begins with 0, before there was another row. */
			.ip_id = (uint16_t)(r % 2 ? 0 : 65460 + r),
			.fixed = r % 2,
			.flags = (uint8_t)(0x10 | (r % 8 == 0   ? 0x80
		                                   : r % 8 == 1 ? 0xc0
		                                                : 0)),
			.sequence = 0xfffff000,
			.options = r & 4,
		};
		for (uint32_t i = 0; i < 12; i++) {
			make_packet(&b, &row, i, 700 + r, i == 11);
			netns_send(sender, b.data, b.len);
		}
		usleep(1000);
	}
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	do {
		collect(at_g0, OW_HEADING_OUT, false, 50, &g0);
		collect(at_g1, OW_HEADING_IN, false, 50, &g1);
	} while (g1.count < g0.count && ow_clock_steady_ns() < until);
	print_message("GRO: %u packets became %u frames, %u of them superframes\n", g0.count, g1.frames,
	              g1.superframes);
	assert_int_equal(g0.superframes, 0);
	if (g1.superframes == 0)
		print_message("nothing was joined: not tested\n");
	expect_same(&g0, &g1);
	close(sender);
	ids_done(&g0);
	ids_done(&g1);
	ow_iface_close(at_g0);
	ow_iface_close(at_g1);
}

/* A superframe from its first packet: the kernel sends what a virtio header describes. */
static void send_superframe(int sender, struct build *b, uint8_t gso_type, uint16_t gso_size, uint32_t l4,
                            uint32_t headers)
{
	struct virtio_net_hdr header = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = gso_type,
		.hdr_len = (uint16_t)(l4 + headers),
		.gso_size = gso_size,
		.csum_start = (uint16_t)l4,
		.csum_offset = headers == 8 ? 6 : 16,
	};
	struct iovec parts[2] = {{&header, sizeof header}, {b->data, b->len}};
	ssize_t n = writev(sender, parts, 2);
	if (n != (ssize_t)(sizeof header + b->len))
		fail_msg("superframe of %u bytes: %s", b->len, strerror(errno));
}

/* Headers of all kinds. */
static void send_crafted(int sender, uint32_t i)
{
	struct build b = {.len = 0};
	bool v6 = i & 1, options = i & 2, udp_gso = i & 4;
	uint8_t proto = udp_gso ? 17 : 6;
	ethernet(&b, v6 ? 0x86dd : 0x0800);
	uint32_t ip = v6 ? ipv6(&b, options ? 60 : proto) : ipv4(&b, proto);
	if (options && v6) {
		PUT(&b, proto, 0, 1, 4, 0, 0, 0, 0); /* destination options: padding */
	} else if (options) {
		PUT(&b, 148, 4, 0, 0); /* router alert */
		b.data[ip] = 0x46;
	}
	uint32_t l4 = b.len, header = 8;
	if (udp_gso) {
		udp(&b, 4000, 5003);
	} else {
		/* FIN, PSH, ACK, and CWR as classic ECN has it */
		tcp(&b, i & 8 ? 0x99 : 0x10, 0xffffff00 + i);
		ow_store_be16(b.data + l4 + 2, 5003);
		header = 20;
	}
	payload(&b, 1 + (i * 977) % 3000);
	uint16_t size = (uint16_t)(200 + i * 13 % 900);
	if (b.len - l4 - header <= size)
		return;
	finish_ip(&b, ip);
	if (!v6) { /* bridges drop what has it wrong */
		ow_store_be16(b.data + ip + 10, 0);
		ow_store_be16(b.data + ip + 10, fold_sum(sum_of(b.data + ip, l4 - ip, 0)));
	}
	if (udp_gso)
		ow_store_be16(b.data + l4 + 4, (uint16_t)(b.len - l4));
	uint8_t type = udp_gso ? 5 : v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
	if (!udp_gso && i & 8)
		type |= VIRTIO_NET_HDR_GSO_ECN;
	send_superframe(sender, &b, type, size, l4, header);
}

static void crafted_superframes(void **state)
{
	(void)state;
	int sender = netns_sender("s0"), on = 1;
	struct watch w;
	assert_int_equal(setsockopt(sender, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), 0);
	watch_start(&w, "dst net 10.4.0.0/16 or dst host 2001:db8::2", false);
	for (uint32_t i = 0; i < 400; i++)
		send_crafted(sender, i);
	watch_end(&w, "crafted");
	close(sender);
}

/* What cannot be cut is one packet, and says so. */
static void what_cannot_be_cut(void **state)
{
	(void)state;
	static struct ow_segments segments;
	struct build b = {.len = 0};
	struct ow_identity identity;
	make_identity(0, false, &identity);
	ethernet(&b, 0x0800);
	uint32_t ip = ipv4(&b, 6);
	tcp(&b, 0x10, 1);
	payload(&b, 3000);
	finish_ip(&b, ip);
	struct ow_iface_frame frame = {.frame = frame_of(&b, 1), .gso = OW_GSO_TCP4, .gso_size = 1000};
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), 0);
	assert_true(segments.count == 3 && !segments.uncut);
	assert_int_equal(segments.bytes[0] + segments.bytes[1] + segments.bytes[2], 3000 + 3 * 40);
	static const struct {
		enum ow_gso gso;
		uint16_t size;
	} wrong[] = {{OW_GSO_TCP4, 0}, {OW_GSO_TCP4, 2}, {OW_GSO_TCP6, 1000}, {OW_GSO_UDP, 1000}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		frame.gso = wrong[i].gso;
		frame.gso_size = wrong[i].size;
		assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), 0);
		assert_true(segments.count == 1 && segments.uncut);
		assert_int_equal(segments.bytes[0], 3040);
	}
	/* As many as there may be. */
	frame.gso = OW_GSO_TCP4;
	frame.gso_size = 3;
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), 0);
	assert_int_equal(segments.count, 1000);
	/* Cut off by the capture: in the second segment, and in the headers. */
	frame.gso_size = 1000;
	frame.frame.caplen = 14 + 40 + 1500;
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), -ENODATA);
	identity.hash_limit = 40;
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), 0);
	assert_int_equal(segments.count, 3);
	frame.frame.caplen = 14 + 30;
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), -ENODATA);
	b.data[12] = 0x08;
	b.data[13] = 0x06; /* ARP */
	assert_int_equal(ow_segments_of_frame(&identity, &frame, &segments), -ENOMSG);
}

/* Whatever the bytes are, and whatever the kernel says of them: an answer. */
static void any_bytes(void **state)
{
	(void)state;
	static struct ow_segments segments;
	struct ow_random random;
	struct ow_identity identity;
	unsigned cut = 0;
	ow_random_seed(&random, SEED);
	for (unsigned i = 0; i < 200000; i++) {
		struct build b = {.len = 0};
		bool v6 = ow_random_below(&random, 2), is_udp = ow_random_below(&random, 2);
		make_identity(i % KINDS, ow_random_below(&random, 2), &identity);
		ethernet(&b, v6 ? 0x86dd : 0x0800);
		uint32_t ip = v6 ? ipv6(&b, is_udp ? 17 : 6) : ipv4(&b, is_udp ? 17 : 6);
		if (is_udp)
			udp(&b, 4000, 4789);
		else
			tcp(&b, (uint8_t)ow_random_u64(&random), 1);
		payload(&b, (uint32_t)ow_random_below(&random, 200));
		finish_ip(&b, ip);
		for (uint64_t k = ow_random_below(&random, 4); k > 0; k--)
			b.data[12 + ow_random_below(&random, 80)] = (uint8_t)ow_random_u64(&random);
		/* Of exactly this size, so that a sanitizer sees what is read beyond. */
		uint32_t caplen = ow_random_below(&random, 4) ? b.len : (uint32_t)ow_random_below(&random, b.len);
		uint8_t *bytes = malloc(caplen ? caplen : 1);
		memcpy(bytes, b.data, caplen);
		struct ow_iface_frame frame = {
			.frame = {.data = bytes, .caplen = caplen, .len = b.len, .linktype = 1},
			.gso = (enum ow_gso)ow_random_below(&random, 4),
			.gso_size = (uint16_t)ow_random_below(&random, 100),
			.fixed_ip_id = ow_random_below(&random, 2),
		};
		int r = ow_segments_of_frame(&identity, &frame, &segments);
		assert_true(r == 0 || r == -ENODATA || r == -ENOMSG);
		assert_true(r < 0 || (segments.count >= 1 && segments.count <= OW_SEGMENTS_MAX));
		cut += r == 0 && segments.count > 1;
		free(bytes);
	}
	print_message("seed %d: %u of 200000 were cut\n", SEED, cut);
	assert_true(cut > 1000);
}

static void make_path(void)
{
	first = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	netns_enter();
	close(first);
	first = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	netns_enter();
	second = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(first, CLONE_NEWNET) < 0)
		abort();
	netns_run("ip link add s0 type veth peer name r0 &&"
	          "ip link add r1 type veth peer name d0 netns /proc/%d/fd/%d",
	          getpid(), second);
	netns_run("ip link add br0 type bridge && ip link set r0 master br0 && ip link set r1 master br0");
	netns_run("for i in s0 r0 r1 br0; do echo 0 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; ip link set $i up; done");
	netns_run("ip addr add 10.9.0.1/24 dev s0 && ip addr add fd00:9::1/64 dev s0 nodad");
	/* Here superframes end. */
	netns_run("ethtool -K r1 tso off gso off tx-udp-segmentation off tx-udp_tnl-segmentation off >/dev/null");
	if (setns(second, CLONE_NEWNET) < 0)
		abort();
	netns_run("echo 0 >/proc/sys/net/ipv6/conf/d0/disable_ipv6; ip link set d0 up");
	netns_run("ip addr add 10.9.0.2/24 dev d0 && ip addr add fd00:9::2/64 dev d0 nodad");
	if (setns(first, CLONE_NEWNET) < 0)
		abort();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_over_ipv4),
		cmocka_unit_test(tcp_over_ipv6),
		cmocka_unit_test(udp_superframes),
		cmocka_unit_test(crafted_superframes),
		cmocka_unit_test(tcp_in_vxlan),
		cmocka_unit_test(joined_packets),
		cmocka_unit_test(tcp_in_big_superframes),
		cmocka_unit_test(what_cannot_be_cut),
		cmocka_unit_test(any_bytes),
	};
	make_path();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
