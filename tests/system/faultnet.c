/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of the fault tests: two hosts, the lab's wire between them, which knows the truth, and steady traffic
 * both ways. The points are the tests' own: they enter the hosts' namespaces by the paths that the first line names.
 *
 *     faultnet INTERVAL_MS DELAY_US LOSS RATE_PPS SEED
 *
 * Lines on standard output are JSON: the namespaces, the wire's truth of each interval and direction, at the end its
 * totals. Lines on standard input are commands: "cut a" (what A sends is lost), "cut b", "cut ab", "cut" (nothing any
 * more), "burst a RATE_PPS MILLISECONDS", "quiet" (no more traffic). Its end ends everything.
 */
#include "base/time.h"
#include "sim/generator.h"
#include "sim/labnet.h"
#include "sim/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT       9000
#define BURST_PORT 9001
#define FLOWS      64
#define LINE       128
#define SINKS      4

static const char *const address[OW_SIDES] = {OW_LABNET_ADDRESS_A, OW_LABNET_ADDRESS_B};

struct faultnet {
	struct ow_labnet net;
	struct ow_relay_options relay;
	atomic_uint *cut;
	int control;
	double rate_pps;
	uint64_t seed;
	pid_t relay_pid, source[OW_SIDES], sink[SINKS];
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "faultnet: %s: %s\n", what, why);
	exit(1);
}

/* Children. */

static int relay_main(void *arg)
{
	struct ow_error err;
	if (ow_relay_run(arg, &err) >= 0)
		return 0;
	fprintf(stderr, "faultnet: %s\n", err.text);
	return 1;
}

static int source_main(void *arg)
{
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_source(arg, &counts, &err) < 0;
}

static int sink_main(void *arg)
{
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_sink(*(const uint16_t *)arg, -1, &counts, &err) < 0;
}

static const struct ow_labnet_files quiet = {-1, -1, 2, NULL, 0};

static pid_t start_source(const struct faultnet *f, int side, uint16_t port, double rate_pps, int64_t length_ns)
{
	struct ow_generator_options options = {.to = address[!side],
	                                       .port = port,
	                                       .flows = FLOWS,
	                                       .rate_pps = rate_pps,
	                                       .size = {.kind = OW_SIM_SIZE_IMIX},
	                                       .seed = f->seed + (uint64_t)side,
	                                       .length_ns = length_ns};
	return ow_labnet_fork(&f->net, side ? OW_LABNET_B : OW_LABNET_A, &quiet, source_main, &options);
}

static void start(struct faultnet *f)
{
	static const uint16_t ports[2] = {PORT, BURST_PORT};
	int pair[2];
	struct ow_error err;
	if (ow_labnet_create(&f->net, &err) < 0)
		die("network", err.text);
	f->cut = mmap(NULL, sizeof *f->cut, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->cut == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("start", strerror(errno));
	f->control = pair[0];
	f->relay.control = pair[1];
	f->relay.cut = f->cut;
	f->relay.interface[OW_SIDE_A] = OW_LABNET_TO_A;
	f->relay.interface[OW_SIDE_B] = OW_LABNET_TO_B;
	struct ow_labnet_files files = {-1, -1, 2, &pair[1], 1};
	f->relay_pid = ow_labnet_fork(&f->net, OW_LABNET_RELAY, &files, relay_main, &f->relay);
	close(pair[1]);
	for (int i = 0; i < SINKS; i++)
		f->sink[i] = ow_labnet_fork(&f->net, i & 1 ? OW_LABNET_B : OW_LABNET_A, &quiet, sink_main,
		                            (void *)(uintptr_t)&ports[i / 2]);
	usleep(200000);
	for (int i = 0; i < OW_SIDES && f->rate_pps > 0; i++)
		f->source[i] = start_source(f, i, PORT, f->rate_pps, 0);
	printf("{\"net\": {\"a\": \"/proc/%d/fd/%d\", \"b\": \"/proc/%d/fd/%d\", \"relay\": \"/proc/%d/fd/%d\"}}\n",
	       getpid(), f->net.ns[OW_LABNET_A], getpid(), f->net.ns[OW_LABNET_B], getpid(),
	       f->net.ns[OW_LABNET_RELAY]);
	fflush(stdout);
}

/* What the wire says. */

static void print_truth(const struct ow_relay_report *report)
{
	const struct ow_result *r = &report->truth.result;
	printf("{\"%s\": {\"from\": \"%s\", \"start_ns\": %" PRId64 ", \"length_ns\": %" PRId64 ", \"sent\": %" PRIu64
	       ", \"matched\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"missed\": %" PRIu64 "}}\n",
	       report->total ? "total" : "truth", report->direction == OW_A_TO_B ? "a" : "b", report->truth.start_ns,
	       report->truth.length_ns, r->sent, r->matched, r->lost, report->missed);
	fflush(stdout);
}

/* Frames that the kernel dropped on the way, besides the wire. */
static uint64_t kernel_drops(const struct faultnet *f)
{
	static const struct {
		enum ow_labnet_node node;
		const char *interface;
	} ends[] = {{OW_LABNET_A, OW_LABNET_WIRE},
	            {OW_LABNET_B, OW_LABNET_WIRE},
	            {OW_LABNET_RELAY, OW_LABNET_TO_A},
	            {OW_LABNET_RELAY, OW_LABNET_TO_B}};
	uint64_t sum = 0, drops;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (ow_labnet_drops(&f->net, ends[i].node, ends[i].interface, &drops) == 0)
			sum += drops;
	}
	return sum;
}

static void stop_sources(struct faultnet *f)
{
	for (int i = 0; i < OW_SIDES; i++) {
		if (f->source[i] > 0)
			kill(f->source[i], SIGTERM);
		f->source[i] = 0;
	}
}

static void finish(struct faultnet *f)
{
	struct ow_relay_report report;
	unsigned totals = 0;
	stop_sources(f);
	usleep(100000);
	(void)!send(f->control, "", 1, 0);
	while (totals < OW_DIRECTIONS && recv(f->control, &report, sizeof report, 0) == (ssize_t)sizeof report) {
		print_truth(&report);
		totals += report.total;
	}
	printf("{\"kernel_drops\": %" PRIu64 "}\n", kernel_drops(f));
	for (int i = 0; i < SINKS; i++)
		kill(f->sink[i], SIGTERM);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

/* Commands. */

static void obey(struct faultnet *f, const char *line)
{
	char side[8] = "";
	double rate_pps;
	int64_t ms;
	if (strncmp(line, "cut", 3) == 0) {
		(void)sscanf(line + 3, "%7s", side);
		atomic_store(f->cut,
		             (strchr(side, 'a') ? 1u << OW_A_TO_B : 0) | (strchr(side, 'b') ? 1u << OW_B_TO_A : 0));
	} else if (sscanf(line, "burst %7s %lf %" SCNd64, side, &rate_pps, &ms) == 3) {
		(void)start_source(f, side[0] == 'b', BURST_PORT, rate_pps, ms * OW_NS_PER_MS);
	} else if (strncmp(line, "quiet", 5) == 0) {
		stop_sources(f);
	}
}

static void serve(struct faultnet *f)
{
	char text[LINE];
	size_t length = 0;
	for (;;) {
		struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = f->control, .events = POLLIN}};
		struct ow_relay_report report;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die("poll", strerror(errno));
		if (fds[1].revents) {
			if (recv(f->control, &report, sizeof report, 0) != (ssize_t)sizeof report)
				die("relay", "has ended");
			print_truth(&report);
		}
		if (!fds[0].revents)
			continue;
		ssize_t n = read(STDIN_FILENO, text + length, sizeof text - 1 - length);
		if (n <= 0)
			return;
		length += (size_t)n;
		text[length] = 0;
		for (char *end; (end = strchr(text, '\n'));) {
			*end = 0;
			obey(f, text);
			length -= (size_t)(end + 1 - text);
			memmove(text, end + 1, length + 1);
		}
		if (length == sizeof text - 1)
			die("command", "too long");
	}
}

int main(int argc, char **argv)
{
	struct faultnet f = {.control = -1};
	struct ow_error err;
	if (argc != 6)
		die("usage", "INTERVAL_MS DELAY_US LOSS RATE_PPS SEED");
	f.relay.interval_ns = strtoll(argv[1], NULL, 10) * OW_NS_PER_MS;
	f.rate_pps = strtod(argv[4], NULL);
	f.seed = strtoull(argv[5], NULL, 10);
	ow_sim_defaults(&f.relay.impair.path);
	f.relay.impair.path.seed = f.seed;
	f.relay.impair.path.loss = (struct ow_sim_loss){.ratio = strtod(argv[3], NULL)};
	f.relay.impair.path.base_delay_ns = strtoll(argv[2], NULL, 10) * OW_NS_PER_US;
	if (ow_sim_delay_parse("weibull:200us,0.8", &f.relay.impair.path.delay, &err) < 0)
		die("delay", err.text);
	signal(SIGPIPE, SIG_IGN);
	start(&f);
	serve(&f);
	finish(&f);
	ow_labnet_done(&f.net);
	return 0;
}
