/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how many packets per second can be captured without loss, and the cost of each: bench_capture [SECONDS]
 *
 * In its own network namespace, one process, pinned to one core, sends frames into a veth; a bisection finds the
 * highest rate. At the other end one process, pinned to another core, captures. Our process reads the ring, computes
 * the id of each packet and stores id and time in memory, as a live point does. For comparison, tcpdump writes to
 * /dev/null in the same run: with its defaults, and with a buffer as large as our ring. The time of the capturing
 * process is the CPU time that the scheduler gave it, in user space and in the kernel, from before the load until after
 * it.
 *
 * A ratio above 1 is better than tcpdump. A busy machine disturbs all processes alike. A wrong result (packets that our
 * process neither saw nor counted as dropped) ends the program with 1.
 */
#include "base/clock.h"
#include "base/time.h"
#include "packet/segments.h"
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH       64
#define FRAME_MAX   1514
#define FRAME_BYTES 500 /* of the frames in the search */
#define ROUNDS      3
#define STEPS       5 /* of the bisection: to 3 % of the highest rate */
#define RING_BYTES  OW_IFACE_RING_BYTES
#define STAMPS      (1u << 20) /* slots for id and time; used in turn */
#define START_US    100000
#define SETTLE_US   150000 /* for packets on their way when the sender stops */
/*
 * tcpdump lets the kernel hold packets for up to a second; its count of drops is up to date earlier than its packets.
 */
#define LAST_BLOCK_US 1300000
#define COST_PPS      100000.0
#define ROOM          256

enum capturer { OURS, TCPDUMP, TCPDUMP_LARGE, CAPTURERS };
static const char *const names[CAPTURERS] = {"oneway", "tcpdump", "tcpdump, same buffer"};

struct result {
	uint64_t sent, seen, dropped;
	double pps;    /* sent */
	double cpu_ns; /* of the capturing process, in total */
};

static double load_s = 1.2;
static int core[2]; /* of the sender, and of the capturing process */
static volatile sig_atomic_t stop;

static void fail(const char *what)
{
	fprintf(stderr, "bench_capture: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pin(int to)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void choose_cores(void)
{
	cpu_set_t set;
	int found = 0;
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		fail("sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++) {
		if (CPU_ISSET(i, &set))
			core[found++] = i;
	}
	if (found < 2) {
		core[1] = core[0];
		printf("one core only: sender and capturer share it\n");
	}
}

/* -- the sender --------------------------------------------------------------------------------------------------- */

struct sending {
	uint64_t sent;
	int64_t took_ns;
};

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void make_frames(uint8_t frames[BATCH][FRAME_MAX], unsigned size)
{
	static const uint8_t start[] = {2, 0, 0, 0, 0, 1,  2,  0, 0, 0,  0, 2, 8, 0,  0x45, 0, 0,
	                                0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9,    0, 2};
	for (unsigned i = 0; i < BATCH; i++) {
		memset(frames[i], (int)i, size);
		memcpy(frames[i], start, sizeof start);
		put16(frames[i] + 16, size - 14);
		put16(frames[i] + 34, 1024 + i % 8); /* flows */
		put16(frames[i] + 36, 9);
		put16(frames[i] + 38, size - 34);
		put16(frames[i] + 40, 0);
	}
}

static int open_sender(void)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("v0")};
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		fail("sender");
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
	return fd;
}

/* pps: 0 = as fast as possible. */
static void send_load(double pps, unsigned size, struct sending *ret_sending)
{
	static uint8_t frames[BATCH][FRAME_MAX];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	int fd = open_sender();
	make_frames(frames, size);
	memset(messages, 0, sizeof messages);
	for (unsigned i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){frames[i], size};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
	}
	int64_t start = ow_clock_steady_ns(), now = start;
	while ((double)(now - start) < load_s * 1e9) {
		/* Smaller batches at low rates, because real traffic has smaller bursts. */
		unsigned count = pps > 0 && pps < 200000 ? 8 : BATCH;
		for (unsigned i = 0; i < count; i++) {
			uint32_t number = (uint32_t)(ret_sending->sent + i);
			put16(frames[i] + 18, number);
			memcpy(frames[i] + 42, &number, sizeof number);
		}
		int n = sendmmsg(fd, messages, count, 0);
		if (n < 0 && errno != ENOBUFS && errno != EAGAIN)
			fail("sendmmsg");
		ret_sending->sent += n > 0 ? (uint64_t)n : 0;
		do
			now = ow_clock_steady_ns();
		while (pps > 0 && (double)(now - start) * pps < (double)ret_sending->sent * 1e9 &&
		       (double)(now - start) < load_s * 1e9);
	}
	ret_sending->took_ns = now - start;
	close(fd);
}

static struct sending run_sender(double pps, unsigned size)
{
	struct sending *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		pin(core[0]);
		send_load(pps, size, shared);
		_exit(0);
	}
	int status;
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		fail("the sender failed");
	struct sending sending = *shared;
	munmap(shared, sizeof *shared);
	return sending;
}

/* -- the capturers ------------------------------------------------------------------------------------------------ */

static void note_stop(int signal)
{
	(void)signal;
	stop = 1;
}

struct note {
	uint64_t id;
	int64_t time_ns;
};

/* Does the work of a live point on its frames. Returns when it was told to stop and no more packets come. */
static uint64_t capture(struct ow_iface *live)
{
	static struct ow_segments segments;
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	struct ow_iface_frame frames[ROOM];
	struct ow_error err;
	struct note *notes = malloc(STAMPS * sizeof *notes);
	uint64_t packets = 0;
	if (notes)
		memset(notes, 0, STAMPS * sizeof *notes);
	ow_identity_seed(&identity, 1);
	for (;;) {
		int n = ow_iface_read(live, 50, frames, ROOM, &err);
		if (n < 0 || !notes) {
			fprintf(stderr, "bench_capture: %s\n", notes ? err.text : "out of memory");
			_exit(1);
		}
		if (n == 0 && stop)
			break;
		for (int i = 0; i < n; i++) {
			if (ow_segments_of_frame(&identity, &frames[i], &segments) < 0)
				continue;
			for (unsigned k = 0; k < segments.count; k++)
				notes[packets++ % STAMPS] = (struct note){segments.id[k], frames[i].frame.time_ns};
		}
	}
	free(notes);
	return packets;
}

static void run_ours(int out)
{
	struct ow_iface_options options = {.kind = OW_IFACE_RING, .name = "v1", .ring_bytes = RING_BYTES};
	struct ow_iface *live;
	struct ow_iface_counts counts;
	struct ow_error err;
	signal(SIGINT, note_stop);
	if (ow_iface_open(&options, &live, &err) < 0) {
		fprintf(stderr, "bench_capture: %s\n", err.text);
		_exit(1);
	}
	dprintf(out, "listening\n");
	uint64_t packets = capture(live);
	ow_iface_counts(live, &counts);
	dprintf(out, "%llu packets captured\n%llu packets dropped by kernel\n", (unsigned long long)packets,
	        (unsigned long long)counts.dropped);
	ow_iface_close(live);
	_exit(0);
}

static void run_tcpdump(enum capturer capturer, int out)
{
	char buffer[16];
	const char *argv[12] = {"tcpdump", "-n", "-i", "v1", "-w", "/dev/null", "-Z", "root"};
	if (capturer == TCPDUMP_LARGE) {
		snprintf(buffer, sizeof buffer, "%u", (unsigned)(RING_BYTES >> 10));
		argv[8] = "-B";
		argv[9] = buffer;
	}
	dup2(out, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static pid_t start_capturer(enum capturer capturer, int *ret_fd)
{
	int ends[2];
	fflush(stdout);
	if (pipe(ends) < 0)
		fail("pipe");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		close(ends[0]);
		pin(core[1]);
		if (capturer == OURS)
			run_ours(ends[1]);
		run_tcpdump(capturer, ends[1]);
	}
	close(ends[1]);
	*ret_fd = ends[0];
	return pid;
}

/* Appends the output of the capturing process until it contains `word`, or the process has ended. */
static bool hear(int fd, char *text, size_t size, const char *word)
{
	size_t used = strlen(text);
	while (!word || !strstr(text, word)) {
		ssize_t n = used + 1 < size ? read(fd, text + used, size - 1 - used) : 0;
		if (n <= 0)
			return !word;
		used += (size_t)n;
		text[used] = 0;
	}
	return true;
}

/* The number before these words. */
static uint64_t number_before(const char *text, const char *words)
{
	const char *p = strstr(text, words);
	while (p && p > text && p[-1] != '\n')
		p--;
	return p ? strtoull(p, NULL, 10) : 0;
}

/* The CPU time so far. */
static double cpu_of(pid_t pid)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file || !fgets(text, sizeof text, file))
		fail(path);
	fclose(file);
	return (double)strtoull(text, NULL, 10);
}

/* Runs one load. */
static struct result run(enum capturer capturer, double pps, unsigned size, unsigned settle_us)
{
	char text[2048] = "";
	int fd, status;
	pid_t pid = start_capturer(capturer, &fd);
	if (!hear(fd, text, sizeof text, "listening"))
		fail(text[0] ? text : names[capturer]);
	usleep(START_US);
	double before = cpu_of(pid);
	struct sending sending = run_sender(pps, size);
	usleep(settle_us);
	double after = cpu_of(pid);
	kill(pid, SIGINT);
	hear(fd, text, sizeof text, NULL);
	close(fd);
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		fail(names[capturer]);
	struct result r = {
		.sent = sending.sent,
		.seen = number_before(text, "packets captured"),
		.dropped = number_before(text, "packets dropped by kernel"),
		.pps = (double)sending.sent * 1e9 / (double)sending.took_ns,
		.cpu_ns = after - before,
	};
	if (capturer == OURS && r.seen + r.dropped != r.sent) {
		fprintf(stderr, "bench_capture: WRONG RESULT: %llu sent, %llu seen, %llu dropped\n",
		        (unsigned long long)r.sent, (unsigned long long)r.seen, (unsigned long long)r.dropped);
		exit(1);
	}
	return r;
}

/* -- what is measured --------------------------------------------------------------------------------------------- */

/* A busy machine can disturb a load at any rate, so a second run is made before the rate counts as lossy. */
static bool is_lossless(enum capturer capturer, double pps)
{
	bool lossless = false;
	for (int i = 0; i < 2 && !lossless; i++)
		lossless = run(capturer, pps, FRAME_BYTES, SETTLE_US).dropped == 0;
	return lossless;
}

/* The highest rate of the sender with each capturer, best of several rounds; and the loss at that rate. */
static void find_highest(struct result ret_highest[CAPTURERS])
{
	memset(ret_highest, 0, CAPTURERS * sizeof *ret_highest);
	for (int round = 0; round < ROUNDS; round++) {
		for (enum capturer c = 0; c < CAPTURERS; c++) {
			struct result r = run(c, 0, FRAME_BYTES, SETTLE_US);
			bool better = (r.dropped == 0) != (ret_highest[c].dropped == 0) ? r.dropped == 0
			                                                                : r.pps > ret_highest[c].pps;
			if (round == 0 || better)
				ret_highest[c] = r;
		}
	}
}

static double highest_rate(enum capturer capturer, const struct result *highest)
{
	if (highest->dropped == 0) {
		printf("%-22s %10.0f /s   nothing lost at the highest rate of the sender\n", names[capturer],
		       highest->pps);
		return highest->pps;
	}
	double good = 0, bad = highest->pps, lost = (double)highest->dropped / (double)highest->sent;
	for (int i = 0; i < STEPS; i++) {
		double middle = (good + bad) / 2;
		if (is_lossless(capturer, middle))
			good = middle;
		else
			bad = middle;
	}
	printf("%-22s %10.0f /s   at %.0f /s it lost %.2g %%\n", names[capturer], good, highest->pps, 100 * lost);
	return good;
}

static double cost(enum capturer capturer, double pps, unsigned size)
{
	struct result r = run(capturer, pps, size, capturer == OURS ? SETTLE_US : LAST_BLOCK_US);
	return r.seen ? r.cpu_ns / (double)r.seen : 0;
}

static void rates(void)
{
	double alone = 0;
	struct result highest[CAPTURERS];
	double rate[CAPTURERS];
	find_highest(highest);
	for (int round = 0; round < ROUNDS; round++) {
		struct sending s = run_sender(0, FRAME_BYTES);
		double pps = (double)s.sent * 1e9 / (double)s.took_ns;
		alone = pps > alone ? pps : alone;
	}
	printf("highest rate without loss, frames of %d bytes\n", FRAME_BYTES);
	printf("%-22s %10.0f /s\n", "nobody captures", alone);
	for (enum capturer c = 0; c < CAPTURERS; c++)
		rate[c] = highest_rate(c, &highest[c]);
	for (enum capturer c = TCPDUMP; c < CAPTURERS; c++)
		printf("%-38s %.2f%s\n", c == TCPDUMP ? "oneway / tcpdump" : "oneway / tcpdump, same buffer",
		       rate[OURS] / rate[c], rate[OURS] < 0.97 * rate[c] ? "   MISSED: at least as high" : "");
}

static void costs(void)
{
	static const unsigned sizes[] = {100, 500, 1514};
	static const double pps[] = {COST_PPS, 0};
	printf("\nCPU time of the capturing process for each packet\n%-10s %14s %10s %10s %18s\n", "bytes", "packets/s",
	       "oneway", "tcpdump", "tcpdump / oneway");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (size_t k = 0; k < sizeof pps / sizeof *pps; k++) {
			char rate[16] = "all it can";
			if (pps[k] > 0)
				snprintf(rate, sizeof rate, "%.0f", pps[k]);
			double ours = cost(OURS, pps[k], sizes[i]), theirs = cost(TCPDUMP, pps[k], sizes[i]);
			printf("%-10u %14s %7.0f ns %7.0f ns %18.2f\n", sizes[i], rate, ours, theirs,
			       ours > 0 ? theirs / ours : 0);
		}
	}
}

int main(int argc, char **argv)
{
	struct utsname os;
	if (argc > 1)
		load_s = strtod(argv[1], NULL);
	if (!(load_s >= 0.1 && load_s <= 60)) {
		fprintf(stderr, "usage: bench_capture [SECONDS of each load, 0.1 to 60]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (unshare(CLONE_NEWNET) < 0) {
		printf("bench_capture: not measured: network namespaces need root\n");
		return 0;
	}
	/* Without IPv6 the interfaces send no packets on their own. */
	if (system("echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/default/disable_ipv6;" /* NOLINT(cert-env33-c) */
	           "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up") != 0)
		fail("veth");
	choose_cores();
	uname(&os);
	printf("capture: Linux %s, sender on core %d, capturer on core %d, loads of %.1f s\n", os.release, core[0],
	       core[1], load_s);
	rates();
	costs();
	return 0;
}
