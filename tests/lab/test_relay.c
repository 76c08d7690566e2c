/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lab's wire with real packets in namespaces: what the relay reports, what the sink received, and what captures at
 * both hosts show when `oneway match` compares them agree packet by packet. Needs root; otherwise it is skipped.
 */
#include "lab/relay.h"

#include "base/time.h"
#include "capture/file/capture_format.h"
#include "sim/generator.h"
#include "lab/labnet.h"
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define PORT       9000
#define TCP_BYTES  (3 << 20)
#define SEED       20261115
#define PATIENCE_S 20

struct lab {
	struct ow_labnet net;
	struct ow_relay_options relay;
	int control;
	pid_t relay_pid, capture_pid[OW_SIDES];
	char path[OW_SIDES][64];
	struct ow_relay_report total[OW_DIRECTIONS];
	struct ow_result sum[OW_DIRECTIONS]; /* of the intervals: counts only */
	uint64_t intervals[OW_DIRECTIONS];
	int64_t next_ns[OW_DIRECTIONS]; /* start of the interval that must come */
};

static const struct ow_labnet_files quiet = {-1, -1, 2, NULL, 0};

static int relay_main(void *arg)
{
	struct ow_error err;
	if (ow_relay_run(arg, &err) >= 0)
		return 0;
	fprintf(stderr, "%s\n", err.text);
	return 1;
}

static void lab_start(struct lab *lab)
{
	int pair[2];
	struct ow_error err;
	if (ow_labnet_create(&lab->net, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	lab->control = pair[0];
	lab->relay.control = pair[1];
	lab->relay.interface[OW_SIDE_A] = OW_LABNET_TO_A;
	lab->relay.interface[OW_SIDE_B] = OW_LABNET_TO_B;
	lab->relay.interval_ns = 200 * OW_NS_PER_MS;
	inet_pton(AF_INET, OW_LABNET_ADDRESS_A, lab->relay.inside_address);
	inet_pton(AF_INET, OW_LABNET_ADDRESS_NAT, lab->relay.outside_address);
	struct ow_labnet_files files = {-1, -1, 2, &pair[1], 1};
	lab->relay_pid = ow_labnet_fork(&lab->net, OW_LABNET_RELAY, &files, relay_main, &lab->relay);
	assert_true(lab->relay_pid > 0);
	close(pair[1]);
	usleep(100000);
}

static int exit_code(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* tcpdump reads its ring a second late, later on a busy machine, and leaves the rest there when it is stopped: waits
 * for a file that has packets and no longer grows. */
static void wait_until_written(const char *path)
{
	struct stat now = {0};
	off_t before = 0;
	for (int still = 0, i = 0; still < 15 && i < 300; i++) {
		usleep(100000);
		assert_int_equal(stat(path, &now), 0);
		still = now.st_size > OW_PCAP_HEADER_BYTES && now.st_size == before ? still + 1 : 0;
		before = now.st_size;
	}
}

/* tcpdump is ready when it says that it listens. */
static void capture_start(struct lab *lab, enum ow_side side)
{
	int said[2];
	snprintf(lab->path[side], sizeof lab->path[side], "relay-%d-%c.pcap", (int)getpid(), "ab"[side]);
	char *argv[] = {"tcpdump",
	                "-i",
	                OW_LABNET_WIRE,
	                "-w",
	                lab->path[side],
	                "-U",
	                "-Z",
	                "root",
	                "--time-stamp-precision=nano",
	                "-B",
	                "65536",
	                NULL};
	assert_int_equal(pipe(said), 0);
	struct ow_labnet_files files = {-1, -1, said[1], NULL, 0};
	lab->capture_pid[side] = ow_labnet_spawn(&lab->net, (enum ow_labnet_node)side, &files, argv);
	assert_true(lab->capture_pid[side] > 0);
	close(said[1]);
	char text[512];
	size_t length = 0;
	ssize_t n = 1;
	while (n > 0 && length < sizeof text - 1) {
		n = read(said[0], text + length, sizeof text - 1 - length);
		length += n > 0 ? (size_t)n : 0;
		text[length] = 0;
		/* To the end of the line: tcpdump would not survive to write the rest of it. */
		const char *listening = strstr(text, "listening");
		if (listening && strchr(listening, '\n'))
			break;
	}
	close(said[0]);
	assert_non_null(strstr(text, "listening"));
}

static void captures_stop(struct lab *lab)
{
	for (int i = 0; i < OW_SIDES; i++) {
		wait_until_written(lab->path[i]);
		kill(lab->capture_pid[i], SIGINT);
		exit_code(lab->capture_pid[i]);
	}
}

static void add(struct lab *lab, const struct ow_relay_report *report)
{
	int way = report->direction;
	const struct ow_result *r = &report->truth.result;
	assert_int_equal(r->sent, r->matched + r->lost);
	assert_int_equal(r->received, r->matched + r->extra);
	assert_int_equal(r->delay.samples, r->matched);
	if (report->total) {
		lab->total[way] = *report;
		return;
	}
	/* Every interval, in order, without gaps. */
	assert_int_equal(report->truth.start_ns % lab->relay.interval_ns, 0);
	if (lab->intervals[way]++)
		assert_int_equal(report->truth.start_ns, lab->next_ns[way]);
	lab->next_ns[way] = report->truth.start_ns + report->truth.length_ns;
	lab->sum[way].sent += r->sent;
	lab->sum[way].matched += r->matched;
	lab->sum[way].lost += r->lost;
	lab->sum[way].duplicated += r->duplicated;
	lab->sum[way].reordered += r->reordered;
}

static void lab_end(struct lab *lab)
{
	assert_int_equal(send(lab->control, "", 1, 0), 1);
	unsigned totals = 0;
	while (totals < OW_DIRECTIONS) {
		struct ow_relay_report report;
		struct pollfd fd = {.fd = lab->control, .events = POLLIN};
		assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
		assert_int_equal(recv(lab->control, &report, sizeof report, 0), sizeof report);
		add(lab, &report);
		totals += report.total;
	}
	assert_int_equal(exit_code(lab->relay_pid), 0);
	close(lab->control);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		const struct ow_result *total = &lab->total[i].truth.result, *sum = &lab->sum[i];
		assert_int_equal(sum->sent, total->sent);
		assert_int_equal(sum->lost, total->lost);
		assert_int_equal(sum->matched, total->matched);
		assert_int_equal(sum->duplicated, total->duplicated);
		assert_int_equal(sum->reordered, total->reordered);
		assert_int_equal(lab->total[i].missed, 0);
		assert_int_equal(lab->total[i].refused, 0);
	}
	static const struct {
		enum ow_labnet_node node;
		const char *interface;
	} ends[] = {{OW_LABNET_A, OW_LABNET_WIRE},
	            {OW_LABNET_B, OW_LABNET_WIRE},
	            {OW_LABNET_RELAY, OW_LABNET_TO_A},
	            {OW_LABNET_RELAY, OW_LABNET_TO_B}};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		uint64_t drops = 1;
		assert_int_equal(ow_labnet_drops(&lab->net, ends[i].node, ends[i].interface, &drops), 0);
		assert_int_equal(drops, 0);
	}
	ow_labnet_done(&lab->net);
}

/* A generator in a child; its counts come back through a pipe. */
struct worker {
	struct ow_generator_options options;
	bool sink;
	int ready, counts;
};

static int worker_main(void *arg)
{
	struct worker *worker = arg;
	struct ow_generator_counts counts = {0};
	struct ow_error err;
	int r = worker->sink ? ow_generator_sink(PORT, worker->ready, &counts, &err)
	                     : ow_generator_source(&worker->options, &counts, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	return r < 0 || write(worker->counts, &counts, sizeof counts) != sizeof counts;
}

struct udp {
	pid_t source, sink;
	int source_counts, sink_counts;
};

static pid_t start_worker(struct lab *lab, enum ow_labnet_node node, struct worker *worker, int *ret_counts)
{
	int ready[2], counts[2];
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(counts), 0);
	worker->ready = ready[1];
	worker->counts = counts[1];
	int keep[2] = {ready[1], counts[1]};
	struct ow_labnet_files files = {-1, -1, 2, keep, 2};
	pid_t pid = ow_labnet_fork(&lab->net, node, &files, worker_main, worker);
	assert_true(pid > 0);
	close(ready[1]);
	close(counts[1]);
	char byte;
	if (worker->sink)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*ret_counts = counts[0];
	return pid;
}

static void read_counts(int fd, struct ow_generator_counts *ret_counts)
{
	assert_int_equal(read(fd, ret_counts, sizeof *ret_counts), sizeof *ret_counts);
	close(fd);
}

/* Sends UDP from one host to the other for a second; checks that what was sent and received is what the relay says. */
static void send_udp(struct lab *lab, enum ow_labnet_node from, const char *to, double rate_pps)
{
	struct worker sink = {.sink = true};
	struct worker source = {.options = {.to = to,
	                                    .port = PORT,
	                                    .flows = 16,
	                                    .rate_pps = rate_pps,
	                                    .size = {.kind = OW_SIM_SIZE_IMIX},
	                                    .seed = SEED,
	                                    .length_ns = OW_NS_PER_S}};
	struct udp udp;
	udp.sink = start_worker(lab, from == OW_LABNET_A ? OW_LABNET_B : OW_LABNET_A, &sink, &udp.sink_counts);
	udp.source = start_worker(lab, from, &source, &udp.source_counts);
	assert_int_equal(exit_code(udp.source), 0);
	usleep(500000);
	kill(udp.sink, SIGTERM);
	assert_int_equal(exit_code(udp.sink), 0);
	if (lab->capture_pid[0])
		captures_stop(lab);
	lab_end(lab);
	struct ow_generator_counts sent, received;
	read_counts(udp.source_counts, &sent);
	read_counts(udp.sink_counts, &received);
	const struct ow_wiretruth_report *truth = &lab->total[from == OW_LABNET_A ? OW_A_TO_B : OW_B_TO_A].truth;
	printf("seed %d: %lu sent, %lu lost, %lu duplicated, %lu reordered, mean %.1f us\n", SEED, truth->result.sent,
	       truth->result.lost, truth->result.duplicated, truth->result.reordered,
	       truth->result.delay.mean_ns / 1e3);
	assert_true(sent.packets > 100);
	assert_int_equal(sent.packets, truth->result.sent);
	assert_int_equal(sent.bytes, truth->bytes);
	assert_int_equal(received.packets, truth->result.received);
}

/* What match says of single packets of a direction. */
struct told {
	uint64_t outside;
	int64_t outside_ns[64];                    /* when they were sent */
	int64_t first_matched_ns, last_matched_ns; /* when the first and the last packet that arrived was sent */
};

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	if (event->direction >= OW_DIRECTIONS)
		return 0;
	struct told *told = (struct told *)arg + event->direction;
	enum ow_side from = event->direction == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
	int64_t sent_ns = event->time_ns[from];
	if (event->fate == OW_FATE_OUTSIDE) {
		assert_int_equal(event->side, from);
		for (uint32_t i = 0; i < event->packets; i++) {
			assert_true(told->outside < sizeof told->outside_ns / sizeof *told->outside_ns);
			told->outside_ns[told->outside++] = sent_ns;
		}
	}
	if (event->fate != OW_FATE_MATCHED)
		return 0;
	if (!told->first_matched_ns || sent_ns < told->first_matched_ns)
		told->first_matched_ns = sent_ns;
	if (sent_ns > told->last_matched_ns)
		told->last_matched_ns = sent_ns;
	return 0;
}

/*
 * A capture begins and ends with a packet. Of packets that were lost before the first one that it shows, or after the
 * last one, it cannot tell: they are outside. No others are.
 */
static void check_outside(const struct told *told, const struct ow_delay *delay, const struct ow_capture_info *there)
{
	for (uint64_t i = 0; i < told->outside; i++) {
		int64_t t = told->outside_ns[i];
		bool before = t < told->first_matched_ns || t + delay->min_ns < there->first_ns;
		bool after = t > told->last_matched_ns || t + delay->max_ns > there->last_ns;
		assert_true(before || after);
	}
}

/* The captures of both hosts, compared packet by packet. */
static void check_match(struct lab *lab, enum ow_level level)
{
	struct ow_match_options options;
	struct ow_match *match;
	struct ow_error err;
	struct told told[OW_DIRECTIONS] = {0};
	ow_match_defaults(&options);
	options.level = level;
	options.window_ns = 2 * OW_NS_PER_S;
	options.on_packet = on_packet;
	options.arg = told;
	if (ow_match_files(lab->path[OW_SIDE_A], lab->path[OW_SIDE_B], &options, &match, &err) < 0)
		fail_msg("%s", err.text);
	const struct ow_match_report *report = ow_match_report(match);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		const struct ow_result *truth = &lab->total[i].truth.result, *found = &report->direction[i];
		enum ow_side from = i == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
		check_outside(&told[i], &found->delay, &report->capture[!from]);
		assert_int_equal(report->outside_overlap[from], told[i].outside);
		assert_int_equal(found->sent + told[i].outside, truth->sent);
		assert_int_equal(found->matched, truth->matched);
		assert_int_equal(found->lost + told[i].outside, truth->lost);
		assert_int_equal(found->duplicated, truth->duplicated);
		if (!truth->matched)
			continue;
		/* Between the hosts' stamps and the relay's lies the kernel's work for a packet, and whatever else this
		 * machine does in between: not a number to rely on, but not a wrong one either. */
		double error = found->delay.mean_ns - truth->delay.mean_ns;
		printf("%s: match says %+.2f us of %.1f us\n", i ? "B to A" : "A to B", error / 1e3,
		       truth->delay.mean_ns / 1e3);
		assert_true(fabs(error) < 0.2 * truth->delay.mean_ns);
	}
	ow_match_free(match);
	for (int i = 0; i < OW_SIDES; i++)
		unlink(lab->path[i]);
}

static void path_defaults(struct lab *lab)
{
	struct ow_error err;
	ow_sim_defaults(&lab->relay.impair.path);
	lab->relay.impair.path.seed = SEED;
	lab->relay.impair.path.base_delay_ns = OW_NS_PER_MS;
	assert_int_equal(ow_sim_delay_parse("weibull:200us,0.7", &lab->relay.impair.path.delay, &err), 0);
}

static void udp_agrees_with_match(void **state)
{
	(void)state;
	struct lab lab = {0};
	path_defaults(&lab);
	lab.relay.impair.path.loss.ratio = 0.02;
	lab.relay.impair.path.duplicate = 0.01;
	lab.relay.impair.reorder = 0.05;
	lab.relay.impair.hold_ns = 3 * OW_NS_PER_MS;
	lab_start(&lab);
	capture_start(&lab, OW_SIDE_A);
	capture_start(&lab, OW_SIDE_B);
	send_udp(&lab, OW_LABNET_A, OW_LABNET_ADDRESS_B, 3000);
	const struct ow_result *truth = &lab.total[OW_A_TO_B].truth.result;
	/* Binomial: 5 standard deviations. */
	double n = (double)truth->sent;
	assert_true(fabs((double)truth->lost - 0.02 * n) < 5 * sqrt(0.02 * n));
	assert_true(truth->reordered > 0);
	assert_true(truth->delay.min_ns >= OW_NS_PER_MS);
	assert_int_equal(lab.total[OW_B_TO_A].truth.result.sent, 0);
	check_match(&lab, OW_LEVEL_IP);
}

static void translated_and_back(void **state)
{
	(void)state;
	/* From A, B's sink takes datagrams whose checksums are right; from B they reach A by its outside address. */
	for (int i = 0; i < 2; i++) {
		struct lab lab = {0};
		path_defaults(&lab);
		lab.relay.nat = true;
		lab_start(&lab);
		if (i == 0) {
			capture_start(&lab, OW_SIDE_A);
			capture_start(&lab, OW_SIDE_B);
			send_udp(&lab, OW_LABNET_A, OW_LABNET_ADDRESS_B, 1000);
			check_match(&lab, OW_LEVEL_NAT);
		} else {
			/* The port is translated: the sink listens behind it. */
			struct ow_generator_counts sent, received;
			struct worker sink = {.sink = true};
			struct worker source = {.options = {.to = OW_LABNET_ADDRESS_NAT,
			                                    .port = PORT + OW_RELAY_PORT_SHIFT,
			                                    .flows = 4,
			                                    .rate_pps = 1000,
			                                    .constant_rate = true,
			                                    .size = {OW_SIM_SIZE_CONSTANT, 500, 500},
			                                    .seed = SEED,
			                                    .length_ns = OW_NS_PER_S / 2}};
			int sink_counts, source_counts;
			pid_t sink_pid = start_worker(&lab, OW_LABNET_A, &sink, &sink_counts);
			pid_t source_pid = start_worker(&lab, OW_LABNET_B, &source, &source_counts);
			assert_int_equal(exit_code(source_pid), 0);
			usleep(300000);
			kill(sink_pid, SIGTERM);
			assert_int_equal(exit_code(sink_pid), 0);
			lab_end(&lab);
			read_counts(source_counts, &sent);
			read_counts(sink_counts, &received);
			assert_true(sent.packets > 100);
			assert_int_equal(lab.total[OW_B_TO_A].truth.result.sent, sent.packets);
			assert_int_equal(received.packets, sent.packets);
		}
	}
}

static void narrow_link_drops(void **state)
{
	(void)state;
	struct lab lab = {0};
	path_defaults(&lab);
	lab.relay.impair.bandwidth_bps = 2e6;
	lab.relay.impair.buffer_bytes = 10000;
	lab_start(&lab);
	send_udp(&lab, OW_LABNET_A, OW_LABNET_ADDRESS_B, 2000);
	const struct ow_relay_report *total = &lab.total[OW_A_TO_B];
	assert_true(total->truth.queue_full > 0);
	assert_int_equal(total->truth.queue_full, total->truth.result.lost);
}

/* TCP: byte i of the stream is a function of i, so that a wrong one is found. */
static uint8_t stream_byte(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 13);
}

static int tcp_server(void *arg)
{
	int ready = *(int *)arg, one = 1;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0)
		return 2;
	if (write(ready, "", 1) != 1)
		return 2;
	int fd = accept(listener, NULL, NULL);
	static uint8_t buffer[65536];
	size_t at = 0;
	ssize_t n;
	while ((n = read(fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] != stream_byte(at++))
				return 3;
		}
	}
	return n < 0 || at != TCP_BYTES ? 4 : 0;
}

static int tcp_client(void *arg)
{
	(void)arg;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	inet_pton(AF_INET, OW_LABNET_ADDRESS_B, &address.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return 2;
	static uint8_t data[TCP_BYTES];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = stream_byte(i);
	for (size_t done = 0; done < sizeof data;) {
		ssize_t n = write(fd, data + done, sizeof data - done);
		if (n < 0)
			return 3;
		done += (size_t)n;
	}
	close(fd);
	return 0;
}

/* Frames in a capture that are longer than the wire's. */
static uint64_t superframes(const char *path)
{
	struct ow_reader *reader;
	struct ow_frame frame;
	struct ow_error err;
	uint64_t count = 0;
	assert_int_equal(ow_reader_open(path, &reader, &err), 0);
	while (ow_reader_read(reader, &frame, 1, &err) > 0)
		count += frame.len > 1514;
	ow_reader_close(reader);
	return count;
}

static void tcp_superframes_become_segments(void **state)
{
	(void)state;
	struct lab lab = {0};
	path_defaults(&lab);
	lab.relay.impair.path.loss.ratio = 0.002;
	lab.relay.impair.path.in_order = true;
	lab.relay.impair.bandwidth_bps = 100e6;
	lab_start(&lab);
	capture_start(&lab, OW_SIDE_A);
	capture_start(&lab, OW_SIDE_B);
	int ready[2];
	char byte;
	assert_int_equal(pipe(ready), 0);
	struct ow_labnet_files files = {-1, -1, 2, &ready[1], 1};
	pid_t server = ow_labnet_fork(&lab.net, OW_LABNET_B, &files, tcp_server, &ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	pid_t client = ow_labnet_fork(&lab.net, OW_LABNET_A, &quiet, tcp_client, NULL);
	assert_int_equal(exit_code(client), 0);
	assert_int_equal(exit_code(server), 0);
	usleep(300000);
	captures_stop(&lab);
	lab_end(&lab);
	const struct ow_result *truth = &lab.total[OW_A_TO_B].truth.result;
	printf("TCP: %lu packets, %lu lost, %lu back\n", truth->sent, truth->lost,
	       lab.total[OW_B_TO_A].truth.result.sent);
	assert_true(truth->sent >= TCP_BYTES / 1460);
	uint64_t large = superframes(lab.path[OW_SIDE_A]);
	printf("%lu superframes at A, %lu at B\n", large, superframes(lab.path[OW_SIDE_B]));
	assert_true(large > 0);
	assert_int_equal(superframes(lab.path[OW_SIDE_B]), 0);
	check_match(&lab, OW_LEVEL_IP);
}

static bool permitted(void)
{
	struct ow_labnet net;
	struct ow_error err;
	if (ow_labnet_create(&net, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return false;
	}
	ow_labnet_done(&net);
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_agrees_with_match),
		cmocka_unit_test(translated_and_back),
		cmocka_unit_test(narrow_link_drops),
		cmocka_unit_test(tcp_superframes_become_segments),
	};
	if (!permitted())
		return 77;
	if (system("command -v tcpdump >/dev/null") != 0) {
		printf("skipped: tcpdump is not installed\n");
		return 77;
	}
	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
