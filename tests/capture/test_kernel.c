/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording in the kernel, beside a ring on the same interface: the same frames, with the same bytes, lengths, direction and description
 * of superframes, so the same ids by any identity. Skipped (77) where the kernel cannot do it.
 */
#include "capture/filter.h"
#include "capture/file/reader.h"
#include "capture/iface/iface.h"
#include "capture/iface/kernel_layout.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/time.h"
#include "netns.h"
#include "scratch.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM       256
#define PATIENCE_S 20 /* for what takes milliseconds on an idle machine */
#define SEEN_MAX   65536
#define LATE_NS    (5 * OW_NS_PER_S) /* a stamp that is taken after another one, on a busy machine */
#define EARLY_NS   1000              /* the clocks are compared that exactly */

struct seen {
	uint64_t bytes; /* hashed */
	int64_t time_ns;
	uint32_t len, caplen, gso_size;
	enum ow_heading heading;
	enum ow_gso gso;
	bool fixed_ip_id, cwr_on_all;
};

struct all_seen {
	struct ow_iface *live;
	size_t count;
	struct seen seen[SEEN_MAX];
};

static void open_as(enum ow_iface_kind kind, const char *interface, bool cut, struct all_seen *seen)
{
	struct ow_iface_options options = {.kind = kind, .name = interface, .cut_tcp = cut};
	struct ow_error err = {""};
	if (ow_iface_open(&options, &seen->live, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(ow_iface_kind_name(seen->live), kind == OW_IFACE_KERNEL ? "kernel" : "ring");
	seen->count = 0;
}

static uint64_t hash(const uint8_t *bytes, uint32_t count)
{
	uint64_t h = count;
	for (uint32_t i = 0; i < count; i++)
		h = ow_mix64(h ^ bytes[i]);
	return h;
}

/* Reads until `frames` were seen (0 = until nothing came for a while). */
static void drain(struct all_seen *all, size_t frames)
{
	struct ow_iface_frame batch[ROOM];
	struct ow_error err = {""};
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	int64_t passed_ns = ow_iface_passed_ns(all->live);
	for (int quiet = 0; (frames ? all->count < frames : quiet < 5) && ow_clock_steady_ns() < until;) {
		int n = ow_iface_read(all->live, 20, batch, ROOM, &err);
		if (n < 0)
			fail_msg("%d %s", n, err.text);
		quiet = n ? 0 : quiet + 1;
		for (int i = 0; i < n; i++) {
			const struct ow_frame *f = &batch[i].frame;
			assert_true(all->count < SEEN_MAX && f->time_ns >= passed_ns);
			all->seen[all->count++] = (struct seen){
				hash(f->data, f->caplen), f->time_ns,       f->len,       f->caplen,
				batch[i].gso_size,        batch[i].heading, batch[i].gso, batch[i].fixed_ip_id,
				batch[i].cwr_on_all};
			assert_int_equal(f->number, all->count);
		}
		passed_ns = ow_iface_passed_ns(all->live);
	}
	if (frames)
		assert_int_equal(all->count, frames);
}

static int compare(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->heading != y->heading)
		return x->heading < y->heading ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* ordered: in the same order, too. */
static void expect_same(struct all_seen *ring, struct all_seen *kernel, bool ordered)
{
	struct ow_iface_counts a, b;
	ow_iface_counts(ring->live, &a);
	ow_iface_counts(kernel->live, &b);
	assert_int_equal(a.dropped, b.dropped);
	assert_int_equal(a.frames, b.frames);
	assert_int_equal(ring->count, kernel->count);
	if (!ordered) {
		qsort(ring->seen, ring->count, sizeof *ring->seen, compare);
		qsort(kernel->seen, kernel->count, sizeof *kernel->seen, compare);
	}
	for (size_t i = 0; i < ring->count; i++) {
		const struct seen *r = &ring->seen[i], *k = &kernel->seen[i];
		if (r->bytes != k->bytes || r->len != k->len || r->caplen != k->caplen || r->heading != k->heading ||
		    r->gso != k->gso || r->gso_size != k->gso_size || r->fixed_ip_id != k->fixed_ip_id ||
		    r->cwr_on_all != k->cwr_on_all)
			fail_msg("frame %zu of %zu: ring %u of %u bytes, heading %d, gso %d of %u; kernel %u of %u, "
			         "heading %d, gso %d of %u%s",
			         i, ring->count, r->caplen, r->len, r->heading, r->gso, r->gso_size, k->caplen, k->len,
			         k->heading, k->gso, k->gso_size, r->bytes == k->bytes ? "" : "; other bytes");
		/* Each socket takes a time of its own of what TCP has sent on this host. */
		int64_t early_ns = r->gso == OW_GSO_TCP4 || !ordered ? LATE_NS : EARLY_NS;
		assert_in_range(k->time_ns - r->time_ns + early_ns, 0, early_ns + LATE_NS);
	}
}

static void close_all(struct all_seen *seen, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ow_iface_close(seen[i].live);
	free(seen);
}

/* The ring and the kernel, at both ends of a cable. */
static struct all_seen *open_four(bool cut)
{
	struct all_seen *seen = calloc(4, sizeof *seen);
	assert_non_null(seen);
	for (int i = 0; i < 4; i++)
		open_as(i % 2 ? OW_IFACE_KERNEL : OW_IFACE_RING, i / 2 ? "v1" : "v0", cut, &seen[i]);
	return seen;
}

static void close_four(struct all_seen *seen)
{
	for (int i = 0; i < 4; i += 2)
		expect_same(&seen[i], &seen[i + 1], true);
	close_all(seen, 4);
}

static int setup(void **state)
{
	netns_veth_setup(state);
	netns_run("ip link set v0 mtu 9000 && ip link set v1 mtu 9000");
	return 0;
}

static void every_length_and_protocol(void **state)
{
	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		struct all_seen *seen = open_four(cut);
		int fd = netns_sender("v0");
		uint8_t frame[9014];
		size_t sent = 0;
		/* Around the lengths at which the programs decide. */
		for (size_t size = 60; size < 9000; size += size < 1600 ? 1 : 371) {
			netns_frame(frame, size, (uint32_t)size, 1);
			frame[23] = size % 3 ? 17 : 6;
			frame[20] = size % 5 ? 0 : 0x20; /* more fragments follow */
			netns_send(fd, frame, size);
			sent++;
			if (sent % 200 == 0)
				for (int i = 0; i < 4; i++)
					drain(&seen[i], sent);
		}
		for (int i = 0; i < 4; i++)
			drain(&seen[i], sent);
		close(fd);
		close_four(seen);
	}
}

/* From nothing behind the addresses and the type to the longest that an interface takes; nothing in them is a packet. */
static void shortest_and_longest(void **state)
{
	(void)state;
	static uint8_t frame[65549];
	static const size_t sizes[] = {14, 15, 18, 22, 33, 34, 54, 20000, 65535, 65536, 65549};
	static const uint16_t types[] = {0x0800, 0x86dd, 0x8100, 0x88a8, 0};
	netns_run("ip link set v0 mtu 65535 && ip link set v1 mtu 65535");
	struct all_seen *seen = open_four(true);
	int fd = netns_sender("v0");
	for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
		for (size_t i = 0; i < sizeof frame; i++)
			frame[i] = (uint8_t)(i * 31 + k);
		frame[12] = (uint8_t)(types[k] >> 8);
		frame[13] = (uint8_t)types[k];
		frame[14] = types[k] == 0x86dd ? 0x60 : 0x45;
		frame[20] = frame[23] = 6;
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			netns_send(fd, frame, sizes[i]);
	}
	/* Where tags are incomplete, the kernel of the receiving end discards frames, before anybody can record them. */
	for (int i = 0; i < 4; i++)
		drain(&seen[i], 0);
	assert_int_equal(seen[0].count, sizeof types / sizeof *types * (sizeof sizes / sizeof *sizes));
	assert_true(seen[2].count > seen[0].count / 2);
	close(fd);
	close_four(seen);
}

/* Tags: in front of the packet where it is sent, beside it in the kernel where it is received. */
static void tags(void **state)
{
	static const uint8_t tag[][9] = {
		{0},
		{4, 0x81, 0, 0, 5},
		{4, 0x81, 0, 0x60, 0},
		{4, 0x88, 0xa8, 0, 5},
		{8, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 5},
		{8, 0x81, 0, 0, 5, 0x81, 0, 0, 6},
	};
	enum { TAGS = sizeof tag / sizeof *tag };
	struct all_seen *seen = open_four(true);
	int fd = netns_sender("v0");
	(void)state;
	for (int i = 0; i < TAGS * 2; i++) {
		uint8_t plain[400], frame[420];
		size_t tags = tag[i / 2][0], size = netns_frame(plain, sizeof plain, (uint32_t)i, 1);
		plain[23] = i % 2 ? 6 : 17;
		memcpy(frame, plain, 12);
		memcpy(frame + 12, tag[i / 2] + 1, tags);
		memcpy(frame + 12 + tags, plain + 12, size - 12);
		netns_send(fd, frame, size + tags);
	}
	for (int i = 0; i < 4; i++)
		drain(&seen[i], TAGS * 2);
	assert_int_equal(seen[3].seen[2].len, 404);
	assert_int_equal(seen[3].seen[3].caplen, OW_FILTER_TCP_BYTES + 4);
	close(fd);
	close_four(seen);
}

static size_t send_capture(int fd, const char *path)
{
	struct ow_frame frames[64];
	struct ow_reader *reader;
	struct ow_error err;
	size_t sent = 0;
	int n;
	if (ow_reader_open(path, &reader, &err) < 0)
		return 0;
	while (sent < 40 && (n = ow_reader_read(reader, frames, 64, &err)) > 0)
		for (int i = 0; i < n && sent < 40; i++) {
			const struct ow_frame *f = &frames[i];
			if (f->linktype == 1 && f->caplen >= 14 && f->caplen <= 9000) {
				netns_send(fd, f->data, f->caplen);
				sent++;
			}
		}
	ow_reader_close(reader);
	return sent;
}

/* Fragments, options, extension headers, tunnels, tags, other protocols, damaged packets. */
static void the_zoo(void **state)
{
	(void)state;
	const char *root = getenv("OW_TRACES");
	char path[4096];
	snprintf(path, sizeof path, "%s/zoo", root ? root : "");
	DIR *dir = opendir(path);
	if (!dir) {
		print_message("no traces at %s: skipped\n", path);
		skip();
	}
	struct all_seen *seen = open_four(true);
	int fd = netns_sender("v0");
	size_t sent = 0;
	for (struct dirent *e; (e = readdir(dir));) {
		snprintf(path, sizeof path, "%s/zoo/%s", root, e->d_name);
		sent += e->d_name[0] == '.' ? 0 : send_capture(fd, path);
		for (int i = 0; sent && i < 4; i++)
			drain(&seen[i], sent);
	}
	print_message("%zu frames of the zoo\n", sent);
	assert_true(sent > 500);
	closedir(dir);
	close(fd);
	close_four(seen);
}

static void *receive_all(void *arg)
{
	char bytes[65536];
	int *fd = arg;
	while (recv(*fd, bytes, sizeof bytes, 0) > 0)
		;
	return NULL;
}

static struct sockaddr_in here(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void send_stream(void)
{
	static const char bytes[1 << 20];
	struct sockaddr_in address = here(7777);
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(out, (struct sockaddr *)&address, sizeof address), 0);
	int in = accept(listener, NULL, NULL);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, receive_all, &in), 0);
	for (size_t done = 0; done < sizeof bytes;) {
		ssize_t n = send(out, bytes + done, sizeof bytes - done, 0);
		assert_true(n > 0);
		done += (size_t)n;
	}
	shutdown(out, SHUT_WR);
	pthread_join(thread, NULL);
	close(in);
	close(out);
	close(listener);
}

static void send_datagrams(void)
{
	char bytes[30000] = {1, 2, 3};
	struct sockaddr_in address = here(7778);
	int size = 1000, in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(in, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(setsockopt(out, SOL_UDP, UDP_SEGMENT, &size, sizeof size), 0);
	for (size_t i = 0; i < 20; i++)
		assert_true(sendto(out, bytes, 1500 + i * 1400, 0, (struct sockaddr *)&address, sizeof address) > 0);
	close(in);
	close(out);
}

static void superframes(void **state)
{
	(void)state;
	netns_run("ip link set lo mtu 1500");
	for (int cut = 0; cut < 2; cut++) {
		struct all_seen *seen = calloc(2, sizeof *seen);
		unsigned kinds[4] = {0};
		assert_non_null(seen);
		open_as(OW_IFACE_RING, "lo", cut, &seen[0]);
		open_as(OW_IFACE_KERNEL, "lo", cut, &seen[1]);
		send_stream();
		send_datagrams();
		for (int i = 0; i < 2; i++)
			drain(&seen[i], 0);
		drain(&seen[1], seen[0].count);
		for (size_t i = 0; i < seen[1].count; i++)
			kinds[seen[1].seen[i].gso]++;
		print_message("%u of TCP, %u of UDP, %u other\n", kinds[OW_GSO_TCP4], kinds[OW_GSO_UDP], kinds[0]);
		assert_true(kinds[OW_GSO_TCP4] > 10 && kinds[OW_GSO_UDP] == 40);
		expect_same(&seen[0], &seen[1], false);
		close_all(seen, 2);
	}
}

/* A queue that drops, sends later, and takes superframes apart: what left it is recorded. */
static void behind_a_queue(void **state)
{
	(void)state;
	char bytes[30000] = {1, 2, 3};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7779)};
	int sizes[] = {0, 1000, 1400};
	netns_run("ip addr add 10.9.0.1/24 dev v0 && ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev v0 && "
	          "tc qdisc add dev v0 root tbf rate 40mbit burst 64k limit 80k");
	assert_int_equal(inet_pton(AF_INET, "10.9.0.2", &address.sin_addr), 1);
	struct all_seen *seen = open_four(true);
	for (int k = 0; k < 3; k++) {
		int out = socket(AF_INET, SOCK_DGRAM, 0);
		assert_int_equal(setsockopt(out, SOL_UDP, UDP_SEGMENT, &sizes[k], sizeof sizes[k]), 0);
		for (size_t i = 0; i < 400; i++) {
			(void)sendto(out, bytes, k ? 1500 + i % 20 * 1400 : 1400, MSG_DONTWAIT,
			             (struct sockaddr *)&address, sizeof address);
			usleep(300);
		}
		close(out);
	}
	for (int i = 0; i < 4; i++)
		drain(&seen[i], 0);
	print_message("%zu frames left the queue\n", seen[0].count);
	assert_true(seen[0].count > 100);
	close_four(seen);
}

static void tcp_is_cut_while_nobody_needs_more(void **state)
{
	(void)state;
	struct all_seen *seen = calloc(1, sizeof *seen);
	uint8_t frame[1000];
	int fd = netns_sender("v0");
	assert_non_null(seen);
	open_as(OW_IFACE_KERNEL, "v1", true, seen);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ow_iface_cut_tcp(seen->live, i != 1, NULL), 0);
		netns_frame(frame, sizeof frame, 1, 1);
		frame[23] = 6;
		netns_send(fd, frame, sizeof frame);
		drain(seen, (size_t)i + 1);
		assert_int_equal(seen->seen[i].caplen, i == 1 ? sizeof frame : OW_FILTER_TCP_BYTES);
	}
	close(fd);
	close_all(seen, 1);
}

/* More than the rings hold while nobody reads: what is missing was counted. */
static void what_has_no_room_is_counted(void **state)
{
	(void)state;
	enum { SENT = 4000 };
	struct all_seen *seen = calloc(1, sizeof *seen);
	struct ow_iface_options options = {.kind = OW_IFACE_KERNEL, .name = "v1", .ring_bytes = 1 << 20};
	struct ow_iface_counts counts;
	uint8_t frame[1000];
	int fd = netns_sender("v0");
	assert_non_null(seen);
	assert_int_equal(ow_iface_open(&options, &seen->live, NULL), 0);
	/* Records of several sizes, several times around. */
	for (uint32_t round = 0, lost = 0; round < 5; round++) {
		for (uint32_t i = 0; i < SENT; i++)
			netns_send(fd, frame, netns_frame(frame, 60 + (i * 7 + round) % 900, i, 1));
		drain(seen, 0);
		ow_iface_counts(seen->live, &counts);
		assert_true(counts.dropped > lost && seen->count > 0);
		assert_int_equal(seen->count + counts.dropped, (round + 1) * SENT);
		assert_int_equal(counts.frames, seen->count);
		lost = (uint32_t)counts.dropped;
	}
	close(fd);
	close_all(seen, 1);
}

/*
 * What the rings of the usual size keep while nobody reads for 100 ms, at a million packets a second of 500 bytes: all of
 * them, even if one processor handles all; on hosts with smaller rings (ow_iface_kernel_ring), if all processors do.
 */
static void a_stall(void **state)
{
	(void)state;
	enum { PACKETS = 100000, BYTES = 500 };
	uint64_t all, record = ow_kernel_next(0, BYTES);
	size_t ring = ow_iface_kernel_ring_here(OW_IFACE_RING_BYTES, &all);
	assert_true(all / record >= PACKETS);
	/* By the sizes alone, for hosts that this is not. */
	for (unsigned processors = 1; processors <= 256; processors++) {
		uint64_t bytes = ow_iface_kernel_ring(OW_IFACE_RING_BYTES, processors, UINT64_C(2) << 30);
		assert_true(processors * (bytes / record) >= PACKETS);
		assert_true(processors > 8 ||
		            ow_iface_kernel_ring(OW_IFACE_RING_BYTES, processors, UINT64_C(8) << 30) / record >=
		                    PACKETS);
	}
	if (ring < OW_IFACE_RING_BYTES)
		skip();
	struct ow_iface_options options = {.kind = OW_IFACE_KERNEL, .name = "v1"};
	struct ow_iface_frame batch[ROOM];
	struct ow_iface_counts counts;
	struct ow_iface *live;
	uint8_t frame[BYTES];
	cpu_set_t before, one;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	int fd = netns_sender("v0"), n;
	assert_int_equal(ow_iface_open(&options, &live, NULL), 0);
	netns_frame(frame, sizeof frame, 1, 1);
	for (uint32_t i = 0; i < PACKETS; i++)
		netns_send(fd, frame, sizeof frame);
	do
		n = ow_iface_read(live, 20, batch, ROOM, NULL);
	while (n > 0);
	ow_iface_counts(live, &counts);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	assert_int_equal(counts.frames, PACKETS);
	assert_int_equal(counts.dropped, 0);
	ow_iface_close(live);
	close(fd);
}

static void send_on(int processor, uint32_t count)
{
	uint8_t frame[200];
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof set, &set) < 0)
		_exit(77);
	int fd = netns_sender("v0");
	for (uint32_t i = 0; i < count; i++)
		netns_send(fd, frame, netns_frame(frame, sizeof frame, i, 1));
	_exit(0);
}

/* Each processor has its own ring: frames come in the order of their times all the same. */
static void processors_are_merged(void **state)
{
	(void)state;
	enum { SENT = 5000 };
	struct all_seen *seen = open_four(true);
	pid_t pid[2];
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			send_on(i, SENT);
	}
	unsigned senders = 0;
	for (int i = 0; i < 2; i++) {
		int status;
		waitpid(pid[i], &status, 0);
		senders += status == 0;
	}
	for (int i = 0; i < 4; i++)
		drain(&seen[i], senders * SENT);
	for (int i = 1; i < 4; i += 2) {
		for (size_t k = 1; k < seen[i].count; k++)
			assert_true(seen[i].seen[k].time_ns >= seen[i].seen[k - 1].time_ns);
		expect_same(&seen[i - 1], &seen[i], false);
	}
	close_all(seen, 4);
}

/* What the kernel cannot do, a ring does, and says why. */
static void a_ring_takes_its_place(void **state)
{
	static const struct ow_iface_options cases[] = {
		{.kind = OW_IFACE_KERNEL, .name = "v1", .filter = "udp", .ring_bytes = 1 << 20},
		{.kind = OW_IFACE_KERNEL, .name = "v1", .fanout = 5, .ring_bytes = 1 << 20},
		{.kind = OW_IFACE_KERNEL, .name = "v1", .hardware_stamps = true, .ring_bytes = 1 << 20},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_iface *live;
		assert_int_equal(ow_iface_open(&cases[i], &live, NULL), 0);
		assert_string_equal(ow_iface_kind_name(live), "ring");
		assert_non_null(strstr(ow_iface_note(live), "v1: "));
		ow_iface_close(live);
	}
}

static void expect_outage(struct ow_iface *live, const char *command, const char *cause)
{
	struct ow_iface_frame batch[ROOM];
	struct ow_outage outage = {0};
	uint8_t frame[100];
	int n = 0;
	netns_run("%s", command);
	int64_t until = ow_clock_steady_ns() + PATIENCE_S * OW_NS_PER_S;
	while (!outage.over && ow_clock_steady_ns() < until) {
		assert_int_equal(ow_iface_read(live, 20, batch, ROOM, NULL), 0);
		if (ow_iface_outage(live, &outage))
			assert_string_equal(outage.cause, cause);
	}
	assert_true(outage.over);
	usleep(20000);
	int fd = netns_sender("v0");
	netns_send(fd, frame, netns_frame(frame, sizeof frame, 1, 1));
	while (n == 0 && ow_clock_steady_ns() < until)
		n = ow_iface_read(live, 20, batch, ROOM, NULL);
	assert_int_equal(n, 1);
	assert_int_equal(batch[0].frame.len, sizeof frame);
	close(fd);
}

/* It goes on, without privileges, when the interface is back, and when another one has its name. */
static void outages(void **state)
{
	(void)state;
	struct ow_iface_options options = {.kind = OW_IFACE_KERNEL, .name = "v1", .ring_bytes = 1 << 20, .wait = true};
	struct ow_iface *live;
	assert_int_equal(ow_iface_open(&options, &live, NULL), 0);
	expect_outage(live, "ip link set v1 down && ip link set v1 up", "v1 was down");
	expect_outage(
		live,
		"ip link del v0 && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up",
		"v1 was down");
	ow_iface_close(live);
}

#define ON_VETH(test) cmocka_unit_test_setup_teardown(test, setup, netns_veth_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_VETH(every_length_and_protocol),
		ON_VETH(shortest_and_longest),
		ON_VETH(tags),
		ON_VETH(the_zoo),
		ON_VETH(behind_a_queue),
		ON_VETH(tcp_is_cut_while_nobody_needs_more),
		ON_VETH(what_has_no_room_is_counted),
		ON_VETH(a_stall),
		ON_VETH(processors_are_merged),
		ON_VETH(a_ring_takes_its_place),
		ON_VETH(outages),
		cmocka_unit_test(superframes),
	};
	struct ow_error err = {""};
	netns_enter();
	if (ow_iface_kernel_possible(&err) < 0) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
