/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic from capture files. */
#include "capture/file/reader.h"
#include "packet/packet.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void run(struct ow_sim_options *options, const char *traffic, struct ow_sim_truth *ret_truth)
{
	struct ow_error err = {""};
	options->traffic = traffic;
	options->side[0].path = "replay.a.pcap";
	options->side[1].path = "replay.b.pcap";
	if (ow_sim_run(options, ret_truth, &err) < 0)
		fail_msg("%s", err.text);
}

/* Same frames, each `delay` later, in both files; times that go backwards are levelled. */
static void check_shifted(const char *original, const char *path, int64_t delay)
{
	struct ow_reader *x, *y;
	struct ow_frame f, g;
	int64_t latest = INT64_MIN;
	assert_int_equal(ow_reader_open(original, &x, NULL), 0);
	assert_int_equal(ow_reader_open(path, &y, NULL), 0);
	int n;
	while ((n = ow_reader_read(x, &f, 1, NULL)) == 1) {
		assert_int_equal(ow_reader_read(y, &g, 1, NULL), 1);
		latest = f.time_ns > latest ? f.time_ns : latest;
		assert_int_equal(g.time_ns, latest + delay);
		assert_int_equal(g.len, f.len);
		assert_int_equal(g.caplen, f.caplen);
		assert_int_equal(g.linktype, f.linktype);
		assert_memory_equal(g.data, f.data, f.caplen);
	}
	assert_int_equal(ow_reader_read(y, &g, 1, NULL), 0);
	ow_reader_close(x);
	ow_reader_close(y);
}

static void frames_pass_unchanged(void **state)
{
	(void)state;
	static const char *const names[] = {"big/westermo_right.pcap", "twopoint/cethproxy_client.pcap",
	                                    "zoo/tcpdump__nflog.pcap", "zoo/zeek__wlanmon.pcap",
	                                    "zoo/ppp__sll2.pcap",      "zoo/tcpdump__ptp_ethernet.pcap"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[512];
		struct ow_sim_options options;
		struct ow_sim_truth truth;
		snprintf(path, sizeof path, "%s/traces/%s", OW_SHARED, names[i]);
		if (access(path, R_OK) != 0) {
			print_message("%s is not there, skipped\n", path);
			skip();
		}
		ow_sim_defaults(&options);
		assert_int_equal(ow_sim_delay_parse("constant:12345ns", &options.delay, NULL), 0);
		run(&options, path, &truth);
		check_shifted(path, "replay.a.pcap", 0);
		check_shifted(path, "replay.b.pcap", 12345);
		assert_int_equal(truth.direction[0].lost, 0);
		assert_int_equal(truth.direction[0].delay.min_ns, 12345);
		assert_int_equal(truth.direction[0].delay.max_ns, 12345);
	}
}

static uint64_t count_ip(const char *path, uint64_t *ret_frames)
{
	struct ow_reader *reader;
	struct ow_frame frame;
	struct ow_packet packet;
	uint64_t ip = 0, frames = 0;
	assert_int_equal(ow_reader_open(path, &reader, NULL), 0);
	while (ow_reader_read(reader, &frame, 1, NULL) == 1) {
		ip += ow_packet_decode(&frame, false, &packet) == OW_DECODE_IP;
		frames++;
	}
	ow_reader_close(reader);
	if (ret_frames)
		*ret_frames = frames;
	return ip;
}

/* A simulated capture as traffic: both directions, another link, a router; and only its IP packets. */
static void packets_are_framed_anew(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct ow_sim_truth first, truth;
	struct ow_error err;
	ow_sim_defaults(&options);
	options.packets = 2000;
	options.reverse = 0.5;
	options.ipv6 = 0.3;
	options.side[0].path = "traffic.a.pcap";
	options.side[1].path = "traffic.b.pcap";
	assert_int_equal(ow_sim_run(&options, &first, &err), 0);

	ow_sim_defaults(&options);
	options.reverse = 1;
	options.router = true;
	options.nat = true;
	options.duplicate = 0.1;
	options.loss.ratio = 0.1;
	assert_int_equal(ow_sim_encap_parse("vlan:7,gre", &options.side[1], NULL), 0);
	options.side[0].link = OW_SIM_SLL;
	run(&options, "traffic.a.pcap", &truth);
	assert_int_equal(truth.direction[0].sent + truth.direction[1].sent, first.records[0]);
	assert_true(truth.direction[0].sent > 200 && truth.direction[1].sent > 200);
	uint64_t frames, ip = count_ip("replay.b.pcap", &frames);
	assert_int_equal(ip, frames);
	assert_int_equal(frames, truth.direction[0].received + truth.direction[1].sent);
	unlink("traffic.a.pcap");
	unlink("traffic.b.pcap");
}

static void what_is_no_ip_can_be_left_out(void **state)
{
	(void)state;
	char path[512];
	struct ow_sim_options options;
	struct ow_sim_truth truth;
	snprintf(path, sizeof path, "%s/traces/big/westermo_right.pcap", OW_SHARED);
	if (access(path, R_OK) != 0) {
		print_message("%s is not there, skipped\n", path);
		skip();
	}
	uint64_t frames, ip = count_ip(path, &frames);
	assert_true(ip < frames);
	ow_sim_defaults(&options);
	options.ip_only = true;
	run(&options, path, &truth);
	assert_int_equal(truth.direction[0].sent, ip);
	options.packets = 100;
	run(&options, path, &truth);
	assert_int_equal(truth.direction[0].sent, 100);
}

static void files_that_do_not_serve(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct ow_sim_truth truth;
	struct ow_error err = {""};
	ow_sim_defaults(&options);
	options.traffic = "no-such-file.pcap";
	options.side[0].path = "replay.a.pcap";
	options.side[1].path = "replay.b.pcap";
	assert_true(ow_sim_run(&options, &truth, &err) < 0);
	assert_non_null(strstr(err.text, "no-such-file.pcap"));
}

static int clean(void **state)
{
	(void)state;
	unlink("replay.a.pcap");
	unlink("replay.b.pcap");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_pass_unchanged),
		cmocka_unit_test(packets_are_framed_anew),
		cmocka_unit_test(what_is_no_ip_can_be_left_out),
		cmocka_unit_test(files_that_do_not_serve),
	};
	return cmocka_run_group_tests(tests, NULL, clean);
}
