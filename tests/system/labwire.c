/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lab's hosts, wire and traffic without points: whoever starts this puts points of his own into the namespaces, and
 * is told the truth about every interval.
 *
 *     labwire INTERVAL DELAY LOSS REORDER DUPLICATE SEED [BASE | DELAY LOSS]
 *
 * REORDER and DUPLICATE are shares; BASE is the least delay (2ms); the second delay and loss are those from b to a. Lines of JSON come out: {"hosts":
 * {"a": PATH, "b": PATH}} (for nsenter --net=PATH), then a line for each interval and direction, and at last one for
 * the run. Commands come in, a line each, until the end of the input ends everything:
 *
 *     rate HOST CLASS PPS SEED      from now on HOST (a, b) sends so many packets of the class a second; 0 = none
 *     cut HOSTS                     from now on all that HOSTS (a, b, ab) send is lost on the wire; - = of none
 *
 * A class is a UDP port, PORT + CLASS, with packet sizes of its own. Everything dies with this process.
 */
#include "base/time.h"
#include "sim/generator.h"
#include "lab/labnet.h"
#include "lab/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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

#define PORT      9000
#define CLASSES   3
#define FLOWS     20
#define HOLD_NS   (5 * OW_NS_PER_MS)
#define BASE_NS   (2 * OW_NS_PER_MS)
#define SKIPPED   77
#define LINE_ROOM 256

static const struct ow_sim_size sizes[CLASSES] = {
	{.kind = OW_SIM_SIZE_CONSTANT, .min = 200, .max = 200},
	{.kind = OW_SIM_SIZE_IMIX},
	{.kind = OW_SIM_SIZE_UNIFORM, .min = 64, .max = 1500},
};

struct wire {
	struct ow_labnet net;
	struct ow_relay_options relay;
	struct ow_impair_options back;
	pid_t relay_pid;
	int control;
	atomic_uint *cut; /* shared with the relay */
	pid_t source[OW_SIDES][CLASSES];
	unsigned totals;
};

static _Noreturn void give_up(const char *what, const struct ow_error *err)
{
	fprintf(stderr, "labwire: %s: %s\n", what, err->text);
	exit(1);
}

static int relay_main(void *arg)
{
	struct ow_error err;
	int r = ow_relay_run(arg, &err);
	if (r < 0)
		dprintf(STDERR_FILENO, "labwire: relay: %s\n", err.text);
	return r < 0;
}

static void start_relay(struct wire *wire)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		exit(1);
	wire->relay.interface[OW_SIDE_A] = OW_LABNET_TO_A;
	wire->relay.interface[OW_SIDE_B] = OW_LABNET_TO_B;
	wire->relay.control = pair[1];
	wire->cut = mmap(NULL, sizeof *wire->cut, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (wire->cut == MAP_FAILED)
		exit(1);
	wire->relay.cut = wire->cut;
	struct ow_labnet_files files = {-1, -1, STDERR_FILENO, &pair[1], 1};
	wire->relay_pid = ow_labnet_fork(&wire->net, OW_LABNET_RELAY, &files, relay_main, &wire->relay);
	close(pair[1]);
	wire->control = pair[0];
}

static enum ow_labnet_node node_of(unsigned side)
{
	return side == OW_SIDE_A ? OW_LABNET_A : OW_LABNET_B;
}

struct generator {
	struct ow_generator_options options;
	int ready;
};

static int sink_main(void *arg)
{
	const struct generator *generator = arg;
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_sink(generator->options.port, generator->ready, &counts, &err) < 0;
}

static int source_main(void *arg)
{
	const struct generator *generator = arg;
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_source(&generator->options, &counts, &err) < 0;
}

/* Nobody answers that a port is closed: the sinks are there first. */
static void start_sinks(struct wire *wire)
{
	for (unsigned i = 0; i < OW_SIDES * CLASSES; i++) {
		int ready[2];
		char byte;
		if (pipe2(ready, O_CLOEXEC) < 0)
			exit(1);
		struct generator generator = {.options.port = (uint16_t)(PORT + i / OW_SIDES), .ready = ready[1]};
		struct ow_labnet_files files = {-1, -1, STDERR_FILENO, &ready[1], 1};
		(void)ow_labnet_fork(&wire->net, node_of(i % OW_SIDES), &files, sink_main, &generator);
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			exit(1);
		close(ready[0]);
	}
}

static void set_rate(struct wire *wire, unsigned side, unsigned class, double rate_pps, uint64_t seed)
{
	pid_t *source = &wire->source[side][class];
	if (*source > 0) {
		kill(*source, SIGTERM);
		while (waitpid(*source, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*source = 0;
	if (!(rate_pps > 0))
		return;
	struct generator generator = {.options = {.to = side == OW_SIDE_A ? OW_LABNET_ADDRESS_B : OW_LABNET_ADDRESS_A,
	                                          .port = (uint16_t)(PORT + class),
	                                          .flows = FLOWS,
	                                          .rate_pps = rate_pps,
	                                          .size = sizes[class],
	                                          .seed = seed}};
	struct ow_labnet_files files = {-1, -1, STDERR_FILENO, NULL, 0};
	*source = ow_labnet_fork(&wire->net, node_of(side), &files, source_main, &generator);
}

static void command(struct wire *wire, const char *line)
{
	char host, hosts[4];
	unsigned class;
	double rate_pps;
	uint64_t seed;
	if (sscanf(line, "cut %3[ab-]", hosts) == 1) {
		atomic_store(wire->cut,
		             (strchr(hosts, 'a') ? 1u << OW_A_TO_B : 0u) | (strchr(hosts, 'b') ? 1u << OW_B_TO_A : 0u));
		return;
	}
	if (sscanf(line, "rate %c %u %lf %" SCNu64, &host, &class, &rate_pps, &seed) != 4 || class >= CLASSES ||
	    (host != 'a' && host != 'b')) {
		fprintf(stderr, "labwire: what is '%s'?\n", line);
		exit(2);
	}
	set_rate(wire, host == 'a' ? OW_SIDE_A : OW_SIDE_B, class, rate_pps, seed);
}

/* Frames that the kernel dropped on the way: lost, but not by the wire. */
static uint64_t kernel_drops(const struct wire *wire)
{
	static const char *const interface[OW_LABNET_NODES] = {OW_LABNET_WIRE, OW_LABNET_WIRE, OW_LABNET_TO_A};
	uint64_t sum = 0, drops = 0;
	for (unsigned i = 0; i < OW_LABNET_NODES; i++)
		sum += ow_labnet_drops(&wire->net, (enum ow_labnet_node)i, interface[i], &drops) < 0 ? 0 : drops;
	return sum + (ow_labnet_drops(&wire->net, OW_LABNET_RELAY, OW_LABNET_TO_B, &drops) < 0 ? 0 : drops);
}

/* False at the end. */
static bool read_reports(struct wire *wire)
{
	struct ow_relay_report report;
	ssize_t n;
	uint64_t drops = kernel_drops(wire);
	while ((n = recv(wire->control, &report, sizeof report, MSG_DONTWAIT)) == sizeof report) {
		const struct ow_result *r = &report.truth.result;
		printf("{\"total\": %s, \"from\": \"%c\", \"start_ns\": %" PRId64 ", \"sent\": %" PRIu64
		       ", \"received\": %" PRIu64 ", \"matched\": %" PRIu64 ", \"lost\": %" PRIu64
		       ", \"extra\": %" PRIu64 ", \"reordered\": %" PRIu64 ", \"missed\": %" PRIu64
		       ", \"refused\": %" PRIu64 ", \"kernel_drops\": %" PRIu64
		       ", \"mean_ns\": %.0f, \"max_ns\": %.0f, \"jitter_ns\": %.0f}\n",
		       report.total ? "true" : "false", report.direction == OW_A_TO_B ? 'a' : 'b',
		       report.truth.start_ns, r->sent, r->received, r->matched, r->lost, r->extra, r->reordered,
		       report.missed, report.refused, drops, r->matched ? r->delay.mean_ns : 0.0,
		       r->matched ? (double)r->delay.max_ns : 0.0,
		       r->matched ? r->delay.quantile_ns[OW_Q95] - r->delay.quantile_ns[OW_Q50] : 0.0);
		wire->totals += report.total;
	}
	fflush(stdout);
	return n != 0 && wire->totals < OW_DIRECTIONS;
}

/* Commands and reports, until the input ends. */
static void serve(struct wire *wire)
{
	char text[LINE_ROOM];
	size_t length = 0;
	for (;;) {
		struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wire->control, .events = POLLIN}};
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			exit(1);
		if (fds[1].revents && !read_reports(wire)) {
			fprintf(stderr, "labwire: the relay has ended\n");
			exit(1);
		}
		if (!fds[0].revents)
			continue;
		ssize_t n = read(STDIN_FILENO, text + length, sizeof text - 1 - length);
		if (n <= 0)
			return;
		length += (size_t)n;
		text[length] = 0;
		char *from = text, *end;
		for (; (end = strchr(from, '\n')); from = end + 1) {
			*end = 0;
			command(wire, from);
		}
		length -= (size_t)(from - text);
		memmove(text, from, length);
		if (length == sizeof text - 1)
			exit(2);
	}
}

static void finish(struct wire *wire)
{
	for (unsigned i = 0; i < OW_SIDES * CLASSES; i++)
		set_rate(wire, i % OW_SIDES, i / OW_SIDES, 0, 0);
	(void)!send(wire->control, "", 1, MSG_NOSIGNAL);
	struct pollfd fd = {.fd = wire->control, .events = POLLIN};
	while (poll(&fd, 1, (OW_RELAY_DRAIN_S + 5) * 1000) > 0 && read_reports(wire))
		;
	if (wire->totals < OW_DIRECTIONS)
		exit(1);
}

int main(int argc, char **argv)
{
	struct wire wire = {.control = -1};
	struct ow_impair_options *impair = &wire.relay.impair;
	struct ow_error err = {""};
	if (argc < 7 || argc > 9) {
		fprintf(stderr, "usage: labwire INTERVAL DELAY LOSS REORDER DUPLICATE SEED [BASE | DELAY LOSS]\n");
		return 2;
	}
	ow_sim_defaults(&impair->path);
	impair->path.base_delay_ns = BASE_NS;
	impair->hold_ns = HOLD_NS;
	if (ow_duration_parse(argv[1], &wire.relay.interval_ns, &err) < 0 ||
	    ow_sim_delay_parse(argv[2], &impair->path.delay, &err) < 0 ||
	    (argc == 8 && ow_duration_parse(argv[7], &impair->path.base_delay_ns, &err) < 0))
		give_up("arguments", &err);
	impair->path.loss = (struct ow_sim_loss){.ratio = strtod(argv[3], NULL)};
	impair->reorder = strtod(argv[4], NULL);
	impair->path.duplicate = strtod(argv[5], NULL);
	impair->path.seed = strtoull(argv[6], NULL, 10);
	wire.back = *impair;
	if (argc == 9) {
		if (ow_sim_delay_parse(argv[7], &wire.back.path.delay, &err) < 0)
			give_up("arguments", &err);
		wire.back.path.loss = (struct ow_sim_loss){.ratio = strtod(argv[8], NULL)};
		wire.relay.back = &wire.back;
	}
	for (unsigned i = 0; i < OW_LABNET_NODES; i++)
		wire.net.ns[i] = -1;
	int r = ow_labnet_create(&wire.net, &err);
	if (r == -EPERM || r == -ENOENT) {
		fprintf(stderr, "labwire: %s\n", err.text);
		return SKIPPED;
	}
	if (r < 0)
		give_up("network", &err);
	start_relay(&wire);
	start_sinks(&wire);
	printf("{\"hosts\": {\"a\": \"/proc/%d/fd/%d\", \"b\": \"/proc/%d/fd/%d\"}, \"relay\": %d}\n", (int)getpid(),
	       wire.net.ns[OW_LABNET_A], (int)getpid(), wire.net.ns[OW_LABNET_B], (int)wire.relay_pid);
	fflush(stdout);
	serve(&wire);
	finish(&wire);
	ow_labnet_done(&wire.net);
	return 0;
}
