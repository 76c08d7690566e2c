/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's children: the relay, the points, captures, generators. */
#include "base/clock.h"
#include "base/time.h"
#include "lab/run_private.h"
#include "sim/generator.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UDP_PORT     9000
#define TCP_PORT     "5201"
#define TCP_PORT_REV "5202"
#define POINT_PORT   "8620"

/* tcpdump must begin within this time. */
#define CAPTURE_NS (10 * OW_NS_PER_S)
/* It hands over a block of frames after a second at the latest; on a loaded machine later. */
#define LAST_MARK_NS (5 * OW_NS_PER_S)
#define CONFIG_BYTES 8192
#define PATH_BYTES   4096
#define POINT_NICE   (-10)

const char *const ow_lab_child_name[CHILDREN] = {
	"the relay",       "point A",         "point B",         "tcpdump at A",    "tcpdump at B",
	"the sink at A",   "the sink at B",   "the source at A", "the source at B", "iperf3's server",
	"iperf3's server", "iperf3's client", "iperf3's client"};

/* A file without a name, readable by this user only. */
static int memory_file(const char *text)
{
	int fd = memfd_create("lab", MFD_CLOEXEC);
	size_t length = strlen(text);
	if (fd >= 0 &&
	    (fchmod(fd, 0600) < 0 || write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static enum ow_labnet_node node_of(enum ow_side side)
{
	return side == OW_SIDE_A ? OW_LABNET_A : OW_LABNET_B;
}

static int start(struct ow_lab *lab, enum ow_lab_child child, pid_t pid, struct ow_error *err)
{
	if (pid < 0)
		return ow_error_set(err, (int)-pid, "cannot start %s: %s", ow_lab_child_name[child],
		                    strerror((int)-pid));
	lab->pid[child] = pid;
	return 0;
}

void ow_lab_signal(struct ow_lab *lab, enum ow_lab_child child, int number)
{
	if (lab->pid[child])
		kill(lab->pid[child], number);
}

static int relay_main(void *arg)
{
	struct ow_error err;
	int r = ow_relay_run(arg, &err);
	if (r < 0)
		dprintf(STDERR_FILENO, "oneway lab: %s\n", err.text);
	return r < 0;
}

int ow_lab_start_relay(struct ow_lab *lab, struct ow_error *err)
{
	const struct ow_lab_options *options = lab->options;
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ow_error_set(err, errno, "socket: %s", strerror(errno));
	lab->relay = (struct ow_relay_options){.interface = {OW_LABNET_TO_A, OW_LABNET_TO_B},
	                                       .impair = options->impair,
	                                       .nat = options->nat,
	                                       .interval_ns = options->interval_ns,
	                                       .control = pair[1]};
	inet_pton(AF_INET, OW_LABNET_ADDRESS_A, lab->relay.inside_address);
	inet_pton(AF_INET, OW_LABNET_ADDRESS_NAT, lab->relay.outside_address);
	struct ow_labnet_files files = {-1, -1, STDERR_FILENO, &pair[1], 1};
	pid_t pid = ow_labnet_fork(&lab->net, OW_LABNET_RELAY, &files, relay_main, &lab->relay);
	close(pair[1]);
	lab->control = pair[0];
	return start(lab, RELAY, pid, err);
}

static void write_config(const struct ow_lab *lab, bool a, int psk, char text[CONFIG_BYTES])
{
	const struct ow_lab_options *options = lab->options;
	int length = snprintf(text, CONFIG_BYTES,
	                      "point: %s\n"
	                      "psk: /proc/self/fd/%d\n"
	                      "output: json\n"
	                      "interfaces:\n"
	                      "  - name: " OW_LABNET_WIRE "\n"
	                      "    capture: %s\n",
	                      a ? "a" : "b", psk, options->kernel ? "kernel" : "auto");
	if (!a) {
		snprintf(text + length, (size_t)(CONFIG_BYTES - length),
		         "listen: " OW_LABNET_POINT_B ":" POINT_PORT "\n"
		         "segments:\n"
		         "  - name: wire\n"
		         "    peer: a\n"
		         "    interfaces: [" OW_LABNET_WIRE "]\n");
		return;
	}
	if (options->store)
		length += snprintf(text + length, (size_t)(CONFIG_BYTES - length), "store: \"%.4000s/results.db\"\n",
		                   options->store);
	snprintf(text + length, (size_t)(CONFIG_BYTES - length),
	         "segments:\n"
	         "  - name: wire\n"
	         "    peer: b\n"
	         "    connect: " OW_LABNET_POINT_B ":" POINT_PORT "\n"
	         "    interfaces: [" OW_LABNET_WIRE "]\n"
	         "    interval: %lldns\n"
	         "    wait: %lldns\n"
	         "    method: %s\n"
	         "    identity: %s\n"
	         "    exact: %s\n",
	         (long long)options->interval_ns, (long long)options->wait_ns,
	         options->method == OW_LAB_RDA ? "rda" : "fold", options->nat ? "nat" : "ip",
	         options->exact ? "true" : "false");
}

/*
 * On real hosts the points do not share the processors with the wire and both ends of the traffic. Therefore they get
 * priority here.
 */
static int point_main(void *argv)
{
	(void)setpriority(PRIO_PROCESS, 0, POINT_NICE);
	execv("/proc/self/exe", argv);
	return 127;
}

static int start_point(struct ow_lab *lab, enum ow_side side, int psk, struct ow_error *err)
{
	struct ow_lab_point *point = &lab->point[side];
	char text[CONFIG_BYTES], path[64];
	int results[2];
	write_config(lab, side == OW_SIDE_A, psk, text);
	int config = memory_file(text);
	point->log = memory_file("");
	if (config < 0 || point->log < 0 || pipe2(results, O_CLOEXEC) < 0) {
		int code = errno;
		if (config >= 0)
			close(config);
		return ow_error_set(err, code, "files of a point: %s", strerror(code));
	}
	point->out = results[0];
	fcntl(point->out, F_SETFL, O_NONBLOCK);
	snprintf(path, sizeof path, "/proc/self/fd/%d", config);
	char *argv[] = {"oneway", "point", "-c", path, NULL};
	int keep[2] = {psk, config};
	struct ow_labnet_files files = {-1, results[1], point->log, keep, 2};
	pid_t pid = ow_labnet_fork(&lab->net, node_of(side), &files, point_main, argv);
	close(results[1]);
	close(config);
	return start(lab, side == OW_SIDE_A ? POINT_A : POINT_B, pid, err);
}

int ow_lab_start_points(struct ow_lab *lab, struct ow_error *err)
{
	uint8_t secret[32];
	char key[2 * sizeof secret + 2];
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return ow_error_set(err, errno, "no random bytes: %s", strerror(errno));
	for (size_t i = 0; i < sizeof secret; i++)
		snprintf(key + 2 * i, 3, "%02x", secret[i]);
	snprintf(key + 2 * sizeof secret, 2, "\n");
	int psk = memory_file(key);
	if (psk < 0)
		return ow_error_set(err, errno, "key of the points: %s", strerror(errno));
	int r = start_point(lab, OW_SIDE_B, psk, err);
	if (r >= 0)
		r = start_point(lab, OW_SIDE_A, psk, err);
	close(psk);
	return r;
}

/* The end of what was written to a file in memory. */
void ow_lab_tail(int fd, char text[OW_LAB_TAIL])
{
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), from = size > OW_LAB_TAIL - 1 ? size - (OW_LAB_TAIL - 1) : 0;
	ssize_t length = size > 0 ? pread(fd, text, OW_LAB_TAIL - 1, from) : 0;
	while (length > 0 && text[length - 1] == '\n')
		length--;
	text[length > 0 ? length : 0] = 0;
	char *line = strrchr(text, '\n');
	if (line)
		memmove(text, line + 1, strlen(line));
}

static enum ow_lab_child capture_child(enum ow_side side)
{
	return side == OW_SIDE_A ? CAPTURE_A : CAPTURE_B;
}

static void capture_path(const struct ow_lab *lab, enum ow_side side, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%c.pcap", lab->options->captures, side == OW_SIDE_A ? 'a' : 'b');
}

/* Captures begin before the traffic: tcpdump says when it listens. */
static int start_capture(struct ow_lab *lab, enum ow_side side, struct ow_error *err)
{
	char path[PATH_BYTES], text[OW_LAB_TAIL];
	capture_path(lab, side, path);
	char *argv[] = {"tcpdump", "-i",    OW_LABNET_WIRE, "-w", path, "-Z", "root", "--time-stamp-precision=nano",
	                "-B",      "65536", "-U",           NULL};
	int said = lab->capture[side] = memory_file("");
	struct ow_labnet_files files = {-1, -1, said, NULL, 0};
	enum ow_lab_child child = capture_child(side);
	int r = start(lab, child, ow_labnet_spawn(&lab->net, node_of(side), &files, argv), err);
	int64_t until_ns = ow_clock_steady_ns() + CAPTURE_NS;
	while (r >= 0) {
		int status;
		ow_lab_tail(said, text);
		if (strstr(text, "listening"))
			break;
		if (waitpid(lab->pid[child], &status, WNOHANG) > 0) {
			lab->pid[child] = 0;
			r = ow_error_set(err, EIO, "tcpdump: %s",
			                 *text ? text : "cannot be started (Debian package tcpdump)");
		} else if (ow_clock_steady_ns() > until_ns) {
			r = ow_error_set(err, ETIMEDOUT, "tcpdump does not begin");
		}
		usleep(10000);
	}
	return r;
}

/* Frames before and after the packets prove that the files contain the first and the last packet. */
static int mark_captures(const struct ow_lab *lab)
{
	int r = ow_labnet_mark(&lab->net, OW_LABNET_A, OW_LABNET_WIRE);
	return r < 0 ? r : ow_labnet_mark(&lab->net, OW_LABNET_B, OW_LABNET_WIRE);
}

int ow_lab_start_captures(struct ow_lab *lab, struct ow_error *err)
{
	if (mkdir(lab->options->captures, 0777) < 0 && errno != EEXIST)
		return ow_error_set(err, errno, "%s: %s", lab->options->captures, strerror(errno));
	int r = start_capture(lab, OW_SIDE_A, err);
	if (r >= 0)
		r = start_capture(lab, OW_SIDE_B, err);
	if (r < 0)
		return r;
	r = mark_captures(lab);
	return r < 0 ? ow_error_set(err, -r, OW_LABNET_WIRE ": %s", strerror(-r)) : 0;
}

static off_t capture_size(const struct ow_lab *lab, enum ow_side side)
{
	char path[PATH_BYTES];
	struct stat info;
	capture_path(lab, side, path);
	return stat(path, &info) < 0 ? 0 : info.st_size;
}

/* "3 packets dropped by kernel", in what tcpdump says at its end. */
static uint64_t capture_drops(int said)
{
	char text[1024];
	ssize_t length = said < 0 ? 0 : pread(said, text, sizeof text - 1, 0);
	text[length > 0 ? length : 0] = 0;
	const char *at = strstr(text, " packets dropped by kernel");
	while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at ? strtoull(at, NULL, 10) : 0;
}

void ow_lab_end_captures(struct ow_lab *lab)
{
	off_t before[OW_SIDES] = {capture_size(lab, OW_SIDE_A), capture_size(lab, OW_SIDE_B)};
	int64_t until_ns = ow_clock_steady_ns() + LAST_MARK_NS;
	bool marked = mark_captures(lab) >= 0;
	/* tcpdump receives frames in blocks, and discards blocks that it has not received when it ends. */
	while (marked && ow_clock_steady_ns() < until_ns &&
	       (capture_size(lab, OW_SIDE_A) == before[OW_SIDE_A] || capture_size(lab, OW_SIDE_B) == before[OW_SIDE_B]))
		usleep(10000);
	for (int i = 0; i < OW_SIDES; i++) {
		enum ow_lab_child child = capture_child((enum ow_side)i);
		ow_lab_signal(lab, child, SIGINT);
		while (lab->pid[child] && waitpid(lab->pid[child], NULL, 0) < 0 && errno == EINTR)
			;
		lab->pid[child] = 0;
		lab->end.capture_drops += capture_drops(lab->capture[i]);
	}
}

struct generator {
	struct ow_generator_options options;
	uint16_t port;
	int ready;
};

static int sink_main(void *arg)
{
	struct generator *generator = arg;
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_sink(generator->port, generator->ready, &counts, &err) < 0;
}

static int source_main(void *arg)
{
	struct generator *generator = arg;
	struct ow_generator_counts counts;
	struct ow_error err;
	return ow_generator_source(&generator->options, &counts, &err) < 0;
}

/* UDP from one host to the other. The sink starts first, so that the kernel does not answer. */
static int start_udp(struct ow_lab *lab, bool from_a, double rate_pps, struct ow_error *err)
{
	const struct ow_lab_options *options = lab->options;
	bool translated = !from_a && options->nat;
	struct generator generator = {.port = UDP_PORT};
	generator.options = (struct ow_generator_options){
		.to = from_a       ? OW_LABNET_ADDRESS_B
	              : translated ? OW_LABNET_ADDRESS_NAT
	                           : OW_LABNET_ADDRESS_A,
		.port = (uint16_t)(UDP_PORT + (translated ? OW_RELAY_PORT_SHIFT : 0)),
		.flows = options->flows,
		.rate_pps = rate_pps,
		.constant_rate = options->constant_rate,
		.size = options->size,
		.seed = options->seed + (from_a ? 0 : 1),
	};
	int ready[2];
	char byte;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return ow_error_set(err, errno, "pipe: %s", strerror(errno));
	generator.ready = ready[1];
	struct ow_labnet_files files = {-1, -1, STDERR_FILENO, &ready[1], 1};
	int r = start(lab, from_a ? SINK_B : SINK_A,
	              ow_labnet_fork(&lab->net, from_a ? OW_LABNET_B : OW_LABNET_A, &files, sink_main, &generator),
	              err);
	close(ready[1]);
	if (r >= 0 && read(ready[0], &byte, 1) != 1)
		r = ow_error_set(err, EIO, "%s did not begin", ow_lab_child_name[from_a ? SINK_B : SINK_A]);
	close(ready[0]);
	files.keeps = 0;
	if (r >= 0)
		r = start(
			lab, from_a ? SOURCE_A : SOURCE_B,
			ow_labnet_fork(&lab->net, from_a ? OW_LABNET_A : OW_LABNET_B, &files, source_main, &generator),
			err);
	return r;
}

static int start_server(struct ow_lab *lab, enum ow_lab_child child, char *port, struct ow_error *err)
{
	char *argv[] = {"iperf3", "-s", "-p", port, NULL};
	struct ow_labnet_files files = {-1, -1, -1, NULL, 0};
	return start(lab, child, ow_labnet_spawn(&lab->net, OW_LABNET_B, &files, argv), err);
}

static int start_client(struct ow_lab *lab, enum ow_lab_child child, char *port, uint64_t streams, struct ow_error *err)
{
	char count[24], seconds[24];
	snprintf(count, sizeof count, "%llu", (unsigned long long)streams);
	/* Longer than the lab, which ends it. */
	snprintf(seconds, sizeof seconds, "%lld", (long long)lab->options->length_ns / OW_NS_PER_S + 60);
	char *argv[] = {"iperf3",
	                "-c",
	                OW_LABNET_ADDRESS_B,
	                "-p",
	                port,
	                "-t",
	                seconds,
	                "-P",
	                count,
	                child == CLIENT_REVERSE ? "-R" : NULL,
	                NULL};
	struct ow_labnet_files files = {-1, -1, -1, NULL, 0};
	return start(lab, child, ow_labnet_spawn(&lab->net, OW_LABNET_A, &files, argv), err);
}

int ow_lab_start_clients(struct ow_lab *lab, struct ow_error *err)
{
	const struct ow_lab_options *options = lab->options;
	int r = 0;
	lab->client_ns = INT64_MAX;
	if (options->tcp && !lab->pid[CLIENT])
		r = start_client(lab, CLIENT, TCP_PORT, options->tcp, err);
	if (r >= 0 && options->tcp_reverse && !lab->pid[CLIENT_REVERSE])
		r = start_client(lab, CLIENT_REVERSE, TCP_PORT_REV, options->tcp_reverse, err);
	return r;
}

int ow_lab_start_traffic(struct ow_lab *lab, struct ow_error *err)
{
	const struct ow_lab_options *options = lab->options;
	double back_pps = options->rate_pps * options->reverse, there_pps = options->rate_pps - back_pps;
	int64_t now_ns = ow_clock_steady_ns();
	int r = 0;
	ow_lab_show_start(lab->show, ow_clock_real_ns() / options->interval_ns * options->interval_ns);
	if (there_pps > 0)
		r = start_udp(lab, true, there_pps, err);
	if (r >= 0 && back_pps > 0)
		r = start_udp(lab, false, back_pps, err);
	if (r >= 0 && options->tcp)
		r = start_server(lab, SERVER, TCP_PORT, err);
	if (r >= 0 && options->tcp_reverse)
		r = start_server(lab, SERVER_REVERSE, TCP_PORT_REV, err);
	lab->client_ns = now_ns + SERVER_NS;
	lab->phase = RUNNING;
	lab->deadline_ns = now_ns + options->length_ns;
	return r;
}
