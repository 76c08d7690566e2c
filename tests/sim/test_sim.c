/* SPDX-License-Identifier: Apache-2.0 */
/* The truth against a recomputation from the files, for every kind of traffic, path and file. */
#include "pair.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void small(struct ow_sim_options *options, uint64_t seed)
{
	ow_sim_defaults(options);
	options->seed = seed;
	options->packets = 3000;
	options->flows = 50;
	options->size = (struct ow_sim_size){OW_SIM_SIZE_UNIFORM, 100, 1500};
}

static void counts_and_delays(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, seed);
		options.loss.ratio = 0.05;
		options.duplicate = seed & 1 ? 0.02 : 0;
		options.ipv6 = 0.3;
		options.reverse = seed & 2 ? 0.4 : 0;
		options.in_order = seed & 4;
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		assert_int_equal(pair.truth.has_direction[OW_B_TO_A], options.reverse > 0);
		if (options.reverse > 0)
			pair_check(&pair, OW_B_TO_A, 0);
		if (options.in_order)
			assert_int_equal(pair.truth.direction[OW_A_TO_B].reordered, 0);
		else
			assert_true(pair.truth.direction[OW_A_TO_B].reordered > 100);
		assert_int_equal(pair.truth.direction[0].sent + pair.truth.direction[1].sent, 3000);
		assert_int_equal(pair.bad_checksums, 0);
		pair_done(&pair);
	}
}

static void the_same_seed_gives_the_same_bytes(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair first;
	small(&options, 42);
	options.loss.ratio = 0.05;
	options.duplicate = 0.02;
	options.reverse = 0.5;
	options.ipv6 = 0.2;
	pair_make(&options, 0, &first);
	struct ow_sim_truth truth;
	struct ow_error err;
	options.side[0].path = "again.a.pcap";
	options.side[1].path = "again.b.pcap";
	assert_int_equal(ow_sim_run(&options, &truth, &err), 0);
	assert_true(same_bytes(first.path[0], "again.a.pcap"));
	assert_true(same_bytes(first.path[1], "again.b.pcap"));
	assert_memory_equal(&truth.direction[0], &first.truth.direction[0], sizeof truth.direction[0]);
	options.seed = 43;
	assert_int_equal(ow_sim_run(&options, &truth, &err), 0);
	assert_false(same_bytes(first.path[0], "again.a.pcap"));
	unlink("again.a.pcap");
	unlink("again.b.pcap");
	pair_done(&first);
}

static uint64_t hash_file(const char *path)
{
	static uint8_t bytes[1 << 21];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t n = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	assert_true(n < sizeof bytes);
	uint64_t hash = 0;
	for (size_t i = 0; i < n; i++)
		hash = ow_mix64(hash ^ bytes[i]);
	return hash;
}

/* On every machine: whoever changes what is generated changes these numbers knowingly. */
static void the_bytes_are_known(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 2026);
	options.packets = 1000;
	options.loss.ratio = 0.05;
	options.duplicate = 0.02;
	options.reverse = 0.3;
	options.ipv6 = 0.2;
	options.fragments = 0.2;
	options.router = true;
	options.nat = true;
	pair_make(&options, 0, &pair);
	assert_int_equal(hash_file(pair.path[0]), UINT64_C(0xcdbeaea7ce919d61));
	assert_int_equal(hash_file(pair.path[1]), UINT64_C(0x7ec5badae1357180));
	pair_done(&pair);
}

static void links_tags_and_tunnels(void **state)
{
	(void)state;
	static const struct {
		const char *link, *encap;
	} views[] = {
		{"ethernet", NULL},
		{"raw", NULL},
		{"sll", NULL},
		{"sll2", NULL},
		{"ppp", NULL},
		{"null", NULL},
		{"loop", NULL},
		{"radiotap", NULL},
		{"ethernet", "vlan:10"},
		{"ethernet", "qinq:20"},
		{"ethernet", "mpls:100,mpls:200"},
		{"ethernet", "pppoe:7"},
		{"ethernet", "vlan:5,pppoe:7"},
		{"ethernet", "vxlan:42"},
		{"ethernet", "vlan:10,vxlan:42,vlan:11"},
		{"ethernet", "gre"},
		{"ethernet", "geneve"},
		{"ethernet", "ipip"},
		{"ethernet", "gtpu:9"},
		{"sll", "vlan:10"},
		{"raw", "gre"},
		{"raw", "vxlan:3"},
		{"ppp", "mpls:5"},
		{"radiotap", "vlan:3"},
	};
	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, 10 + i);
		options.packets = 300;
		options.ipv6 = 0.4;
		options.reverse = 0.3;
		options.loss.ratio = 0.05;
		assert_int_equal(ow_sim_link_parse(views[i].link, &options.side[i & 1].link, NULL), 0);
		if (views[i].encap)
			assert_int_equal(ow_sim_encap_parse(views[i].encap, &options.side[i & 1], NULL), 0);
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		pair_check(&pair, OW_B_TO_A, 0);
		assert_int_equal(pair.bad_checksums, 0);
		pair_done(&pair);
	}
}

static void impossible_views_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *link, *encap;
	} views[] = {{"raw", "vlan:10"},        {"null", "mpls"},           {"ppp", "vlan"},
	             {"ethernet", "mpls,vlan"}, {"ethernet", "pppoe,vlan"}, {"ethernet", "ipip,vlan"}};
	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		struct ow_sim_options options;
		struct ow_sim_truth truth;
		struct ow_error err = {""};
		small(&options, 1);
		options.side[0].path = "x.a.pcap";
		options.side[1].path = "x.b.pcap";
		assert_int_equal(ow_sim_link_parse(views[i].link, &options.side[1].link, NULL), 0);
		assert_int_equal(ow_sim_encap_parse(views[i].encap, &options.side[1], NULL), 0);
		assert_true(ow_sim_run(&options, &truth, &err) < 0);
		assert_non_null(strstr(err.text, "--b-encap"));
	}
}

/* What the receiving side sees: every packet changed as it should, checksums right. */
static void the_path_rewrites_headers(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 5);
	options.ipv6 = 0.4;
	options.ipv6_extensions = 0.3;
	options.reverse = 0.4;
	options.fragments = 0.3;
	options.router = true;
	options.nat = true;
	options.dscp = 46;
	options.ecn_mark = 0.25;
	pair_make(&options, 0, &pair);
	pair_check(&pair, OW_A_TO_B, 0);
	pair_check(&pair, OW_B_TO_A, 0);
	assert_int_equal(pair.bad_checksums, 0);
	unsigned marked = 0, received = 0;
	for (int side = 0; side < OW_SIDES; side++) {
		for (size_t i = 0; i < pair.count[side]; i++) {
			const struct seen *seen = &pair.seen[side][i];
			bool sent = seen->reverse == (side == OW_SIDE_B);
			assert_int_equal(seen->ttl, sent ? 64 : 63);
			assert_int_equal(seen->class >> 2, sent ? 0 : 46);
			if (sent)
				assert_int_equal(seen->class & 3, 2);
			received += !sent;
			marked += !sent && (seen->class & 3) == 3;
		}
	}
	/* Binomial(3000, 0.25): 5 standard deviations are 119. */
	assert_true(received == 3000 && marked > 750 - 119 && marked < 750 + 119);
	assert_true(pair.truth.fragments > 100);
	pair_done(&pair);
}

static void clocks_and_resolution(void **state)
{
	(void)state;
	static const int64_t offsets[] = {0, 1234, -1500, 37000000000, -259200000000000};
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, 20 + i);
		options.reverse = 0.5;
		options.offset_ns = offsets[i];
		options.side[0].microseconds = i & 1;
		options.side[1].microseconds = i & 2;
		options.side[0].big_endian = i & 2;
		options.side[1].format = i & 1 ? OW_FILE_PCAPNG : OW_FILE_PCAP;
		options.side[0].gzip = i == 2;
		if (i == 1) {
			options.side[1].tsresol = 0x80 | 32;
			options.side[1].interfaces = 3;
			options.side[1].tsoffset_s = 1600000000;
		}
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, offsets[i]);
		pair_check(&pair, OW_B_TO_A, offsets[i]);
		if (!options.side[0].microseconds && !options.side[1].microseconds)
			assert_true(pair.truth.direction[OW_A_TO_B].delay.min_ns >= 0);
		pair_done(&pair);
	}
}

static void drift_is_taken_out(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 30);
	options.delay.path[0] = (struct ow_sim_model){.kind = OW_SIM_CONSTANT, .a = 50000, .weight = 1};
	options.drift_ppb = 100000;
	options.offset_ns = -5000;
	options.constant_rate = true;
	options.rate_pps = 1000;
	pair_make(&options, 0, &pair);
	assert_int_equal(pair.truth.direction[0].delay.min_ns, 50000);
	assert_int_equal(pair.truth.direction[0].delay.max_ns, 50000);
	/* The files show it: 100 ppm over 3 s. */
	int64_t first = pair.seen[1][0].time_ns - pair.seen[0][0].time_ns;
	int64_t last = pair.seen[1][2999].time_ns - pair.seen[0][2999].time_ns;
	assert_int_equal(first, 50000 - 5000 + 5);
	assert_true(last - first >= 299899 && last - first <= 299901);
	pair_done(&pair);
}

static void backwards_and_zero_timestamps(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 31);
	options.backwards = 0.05;
	pair_make(&options, 0, &pair);
	pair_check(&pair, OW_A_TO_B, 0);
	unsigned steps = 0;
	for (size_t i = 1; i < pair.count[0]; i++)
		steps += pair.seen[0][i].time_ns < pair.seen[0][i - 1].time_ns;
	assert_true(steps > 20);
	pair_done(&pair);
	options.side[1].zero_timestamps = true;
	pair_make(&options, 0, &pair);
	assert_int_equal(pair.truth.direction[0].matched, 3000);
	assert_int_equal(pair.truth.direction[0].delay.samples, 0);
	for (size_t i = 0; i < pair.count[1]; i++)
		assert_int_equal(pair.seen[1][i].time_ns, 0);
	pair_done(&pair);
}

static uint64_t count_direction(const struct pair *pair, int side, bool reverse)
{
	uint64_t n = 0;
	for (size_t i = 0; i < pair->count[side]; i++)
		n += pair->seen[side][i].reverse == reverse;
	return n;
}

/* Truth = what both captures could see; the rest of each file is `outside`. */
static void captures_that_start_and_stop_apart(void **state)
{
	(void)state;
	for (uint64_t seed = 40; seed < 44; seed++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, seed);
		options.reverse = seed & 1 ? 0.4 : 0;
		options.loss.ratio = 0.1;
		options.duplicate = 0.05;
		options.side[seed & 1].skip_ns = 5000000;
		options.side[seed >> 1 & 1].early_ns = 7000000;
		pair_make(&options, 0, &pair);
		const struct ow_result *forward = &pair.truth.direction[0], *back = &pair.truth.direction[1];
		assert_int_equal(forward->sent + back->received + pair.truth.outside[0], pair.count[0]);
		assert_int_equal(forward->received + back->sent + pair.truth.outside[1], pair.count[1]);
		/* About 30 ms of traffic, 12 of them cut. */
		assert_in_range(forward->sent + back->sent, 1500, 2100);
		assert_true(pair.truth.outside[0] + pair.truth.outside[1] > 500);
		struct ow_result mine;
		pair_result(&pair, OW_A_TO_B, 0, &mine);
		assert_true(mine.matched >= forward->matched && mine.matched <= forward->matched + 3);
		if (options.reverse > 0)
			assert_true(count_direction(&pair, 0, true) > 0);
		pair_done(&pair);
	}
}

static void jumbo_and_tiny_packets(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {9000, 65535, 100};
	for (size_t i = 0; i < 3; i++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, 50);
		options.packets = 200;
		options.ipv6 = 0.5;
		options.size = (struct ow_sim_size){OW_SIM_SIZE_CONSTANT, sizes[i], sizes[i]};
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		assert_int_equal(pair.bad_checksums, 0);
		pair_done(&pair);
	}
	/* Without room for markers: the counts alone. */
	for (uint32_t size = 20; size < 90; size += 7) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, 51);
		options.packets = 200;
		options.ipv6 = 0.5;
		options.ipv6_extensions = 0.5;
		options.size = (struct ow_sim_size){OW_SIM_SIZE_CONSTANT, size, size};
		pair_make(&options, 0, &pair);
		assert_int_equal(pair.bad_checksums, 0);
		assert_int_equal(pair.truth.direction[0].matched, 200);
		assert_int_equal(pair.count[1], 200);
		pair_done(&pair);
	}
}

static void identical_and_retransmitted_packets(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 60);
	options.identical = 0.3;
	pair_make(&options, 0, &pair);
	uint64_t alike = 0;
	for (size_t i = 0; i < pair.count[0]; i++)
		alike += pair.seen[0][i].marker == UINT64_MAX;
	assert_int_equal(alike, pair.truth.identical);
	assert_in_range(alike, 900 - 126, 900 + 126);
	pair_done(&pair);

	small(&options, 61);
	options.retransmissions = 0.2;
	options.tcp = 1;
	pair_make(&options, 0, &pair);
	uint64_t unique = 0;
	static bool known[4000];
	for (size_t i = 0; i < pair.count[0]; i++) {
		assert_in_range(pair.seen[0][i].marker, 1, 3001);
		unique += !known[pair.seen[0][i].marker];
		known[pair.seen[0][i].marker] = true;
	}
	assert_int_equal(3000 - unique, pair.truth.retransmitted);
	assert_in_range(pair.truth.retransmitted, 400, 720);
	pair_done(&pair);
}

static void queues_lose_and_keep_order(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	small(&options, 70);
	assert_int_equal(ow_sim_delay_parse("fifo:600M,20k", &options.delay, NULL), 0);
	options.base_delay_ns = 1000;
	options.duplicate = 0.01;
	pair_make(&options, 0, &pair);
	pair_check(&pair, OW_A_TO_B, 0);
	assert_true(pair.truth.dropped > 10);
	assert_int_equal(pair.truth.dropped, pair.truth.direction[0].lost);
	assert_int_equal(pair.truth.direction[0].reordered, 0);
	/* 20 kB at 600 Mb/s, and the base. */
	assert_true(pair.truth.direction[0].delay.max_ns <= 266667 + 1000 + 1);
	pair_done(&pair);
}

static void two_paths_reorder_packets_or_flows(void **state)
{
	(void)state;
	for (int by_flow = 0; by_flow < 2; by_flow++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, 80);
		assert_int_equal(ow_sim_delay_parse(by_flow ? "ecmp:0.8,constant:50us;0.2,constant:80us"
		                                            : "paths:0.8,constant:50us;0.2,constant:80us",
		                                    &options.delay, NULL),
		                 0);
		options.flow_skew = 0;
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		const struct ow_result *result = &pair.truth.direction[0];
		assert_int_equal(result->delay.min_ns, 50000);
		assert_int_equal(result->delay.max_ns, 80000);
		assert_true(result->reordered > 100);
		if (!by_flow) {
			double share = (result->delay.mean_ns - 50000) / 30000;
			assert_true(share > 0.2 - 0.037 && share < 0.2 + 0.037);
		}
		pair_done(&pair);
	}
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	struct ow_sim_options good;
	small(&good, 1);
	good.side[0].path = "x.a.pcap";
	good.side[1].path = "x.b.pcap";
	struct ow_sim_options bad[12];
	const char *const names[12] = {
		"-a",     "--rate",   "--loss",    "--flows",        "--reorder-tuple", "--reorder-tuple",
		"--dscp", "--b-skip", "--traffic", "--a-interfaces", "same file",       "--superframe-size"};
	for (int i = 0; i < 12; i++)
		bad[i] = good;
	bad[0].side[0].path = NULL;
	bad[1].rate_pps = 0;
	bad[2].loss.ratio = 1.5;
	bad[3].flows = 0;
	bad[4].tuple[1] = 5;
	bad[5].tuple[1] = 5;
	bad[5].interval_ns = 1000000;
	bad[5].in_order = true;
	bad[6].dscp = 64;
	bad[7].side[1].skip_ns = -1;
	bad[8].traffic = "x.pcap";
	bad[8].side[0].superframes = true;
	bad[9].side[0].interfaces = 2;
	bad[10].side[1].path = "x.a.pcap";
	bad[11].superframe_bytes = 100;
	for (int i = 0; i < 12; i++) {
		struct ow_sim_truth truth;
		struct ow_error err = {""};
		assert_true(ow_sim_run(&bad[i], &truth, &err) < 0);
		if (!strstr(err.text, names[i]))
			fail_msg("%d: '%s' does not name %s", i, err.text, names[i]);
		assert_true(access("x.a.pcap", F_OK) != 0);
	}
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct ow_sim_truth truth;
	struct ow_error err = {""};
	small(&options, 1);
	options.side[0].path = "x.a.pcap";
	options.side[1].path = "no/such/folder/b.pcap";
	assert_true(ow_sim_run(&options, &truth, &err) < 0);
	assert_non_null(strstr(err.text, "no/such/folder/b.pcap"));
	assert_true(access("x.a.pcap", F_OK) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_delays),
		cmocka_unit_test(the_same_seed_gives_the_same_bytes),
		cmocka_unit_test(the_bytes_are_known),
		cmocka_unit_test(links_tags_and_tunnels),
		cmocka_unit_test(impossible_views_are_refused),
		cmocka_unit_test(the_path_rewrites_headers),
		cmocka_unit_test(clocks_and_resolution),
		cmocka_unit_test(drift_is_taken_out),
		cmocka_unit_test(backwards_and_zero_timestamps),
		cmocka_unit_test(captures_that_start_and_stop_apart),
		cmocka_unit_test(jumbo_and_tiny_packets),
		cmocka_unit_test(identical_and_retransmitted_packets),
		cmocka_unit_test(queues_lose_and_keep_order),
		cmocka_unit_test(two_paths_reorder_packets_or_flows),
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(a_file_that_cannot_be_written_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
