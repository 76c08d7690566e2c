/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of pair of captures that match supports, compared with simulated truth. */
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include "scenario.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

/* -- 1: files ----------------------------------------------------------------------------------------------------- */

static void case_1_formats_resolutions_and_byte_orders(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct ow_sim_side a, b;
	} kinds[] = {
		{"us us", {.microseconds = true}, {.microseconds = true}},
		{"us ns", {.microseconds = true}, {0}},
		{"ns us", {0}, {.microseconds = true}},
		{"big endian", {.big_endian = true}, {.microseconds = true, .big_endian = true}},
		{"gzip", {.gzip = true}, {.gzip = true, .big_endian = true}},
		{"pcapng", {.format = OW_FILE_PCAPNG}, {.format = OW_FILE_PCAPNG, .microseconds = true}},
		{"interfaces",
	         {.format = OW_FILE_PCAPNG, .interfaces = 7},
	         {.format = OW_FILE_PCAPNG, .big_endian = true, .interfaces = 2}},
		{"tsoffset",
	         {.format = OW_FILE_PCAPNG, .tsoffset_s = 1600000000},
	         {.format = OW_FILE_PCAPNG, .tsoffset_s = -3600}},
		{"pcapng gzip", {.format = OW_FILE_PCAPNG, .gzip = true}, {0}},
	};
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct scenario s;
		scenario_init(&s, kinds[i].name);
		const char *a = s.sim.side[OW_SIDE_A].path, *b = s.sim.side[OW_SIDE_B].path;
		s.sim.side[OW_SIDE_A] = kinds[i].a;
		s.sim.side[OW_SIDE_B] = kinds[i].b;
		s.sim.side[OW_SIDE_A].path = a;
		s.sim.side[OW_SIDE_B].path = b;
		s.sim.reverse = 0.3;
		scenario_run(&s);
		scenario_check(&s);
		assert_int_equal(s.report->capture[OW_SIDE_A].resolution_ns, kinds[i].a.microseconds ? 1000 : 1);
		assert_int_equal(s.report->capture[OW_SIDE_B].resolution_ns, kinds[i].b.microseconds ? 1000 : 1);
		scenario_done(&s);
	}
}

/* Writes a capture again in another format. */
static void convert(const char *from, const char *to, const struct ow_writer_options *options)
{
	struct ow_reader *reader;
	struct ow_writer *writer;
	struct ow_frame frame[64];
	struct ow_error err;
	int n;
	assert_int_equal(ow_reader_open(from, &reader, &err), 0);
	assert_int_equal(ow_writer_open(to, options, &writer, &err), 0);
	while ((n = ow_reader_read(reader, frame, 64, &err)) > 0) {
		for (int i = 0; i < n; i++)
			assert_int_equal(ow_writer_write(writer, &frame[i], &err), 0);
	}
	assert_int_equal(n, 0);
	assert_int_equal(ow_writer_close(writer, &err), 0);
	ow_reader_close(reader);
}

/* Binary fractions of a second: 2^-30 is less than a nanosecond, so that times move by one at most. */
static void case_1_binary_resolution(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "binary tsresol");
	scenario_simulate(&s);
	const struct ow_writer_options options = {.format = OW_FILE_PCAPNG, .linktype = 1, .tsresol = 0x80 | 30};
	const char *a = scenario_path("binary-a.pcapng"), *b = scenario_path("binary-b.pcapng");
	convert(s.sim.side[OW_SIDE_A].path, a, &options);
	convert(s.sim.side[OW_SIDE_B].path, b, &options);
	s.sim.side[OW_SIDE_A].path = a;
	s.sim.side[OW_SIDE_B].path = b;
	assert_int_equal(scenario_match(&s), 0);
	scenario_conserved(s.report);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	scenario_check_counts(r, t, false);
	assert_true(llabs(r->delay.min_ns - t->delay.min_ns) <= 1 && llabs(r->delay.max_ns - t->delay.max_ns) <= 1);
	assert_true(fabs(r->delay.mean_ns - t->delay.mean_ns) <= 1);
	scenario_done(&s);
}

/* -- 2: links and tags -------------------------------------------------------------------------------------------- */

static void case_2_links(void **state)
{
	(void)state;
	static const char *const names[] = {"raw", "sll", "sll2", "ppp", "null", "loop", "radiotap"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		struct scenario s;
		scenario_init(&s, names[i]);
		assert_int_equal(ow_sim_link_parse(names[i], &s.sim.side[i % 2].link, &s.err), 0);
		s.sim.ipv6 = 0.3;
		s.sim.reverse = 0.3;
		scenario_run(&s);
		scenario_check(&s);
		scenario_done(&s);
	}
}

static void encapsulated(const char *a, const char *b, bool inner)
{
	struct scenario s;
	scenario_init(&s, a ? a : b);
	if (a)
		assert_int_equal(ow_sim_encap_parse(a, &s.sim.side[OW_SIDE_A], &s.err), 0);
	if (b)
		assert_int_equal(ow_sim_encap_parse(b, &s.sim.side[OW_SIDE_B], &s.err), 0);
	s.sim.ipv6 = 0.2;
	s.sim.reverse = 0.3;
	scenario_run(&s);
	scenario_check(&s);
	assert_int_equal(s.report->inner, inner);
	assert_int_equal(s.report->level, OW_LEVEL_IP);
	scenario_done(&s);
}

static void case_2_tags_on_one_side(void **state)
{
	(void)state;
	static const char *const tags[] = {"vlan:10",         "qinq:10,vlan:20", "mpls:100",
	                                   "mpls:100,mpls:7", "pppoe:1",         "vlan:5,pppoe:1"};
	for (unsigned i = 0; i < sizeof tags / sizeof *tags; i++)
		encapsulated(i % 2 ? tags[i] : NULL, i % 2 ? NULL : tags[i], false);
	encapsulated("vlan:10", "mpls:3", false);
}

/* -- 3: what the path changes ------------------------------------------------------------------------------------- */

static void routed(struct scenario *s)
{
	s->sim.router = true;
	s->sim.dscp = 10;
	s->sim.ecn_mark = 0.3;
	s->sim.reverse = 0.4;
}

static void translated(struct scenario *s)
{
	s->sim.router = true;
	s->sim.nat = true;
}

static void translated_both_ways(struct scenario *s)
{
	translated(s);
	s->sim.reverse = 0.4;
	s->sim.tcp = 0.5;
}

static void case_3_routers_and_nat(void **state)
{
	(void)state;
	scenario_exact("router", routed);
	scenario_exact("nat", translated);
	scenario_exact("nat, both ways", translated_both_ways);
}

static void case_3_tunnels(void **state)
{
	(void)state;
	static const char *const tunnels[] = {"vxlan:1", "geneve:2", "gre", "ipip", "gtpu:3", "vlan:9,vxlan:4"};
	for (unsigned i = 0; i < sizeof tunnels / sizeof *tunnels; i++)
		encapsulated(i % 2 ? tunnels[i] : NULL, i % 2 ? NULL : tunnels[i], true);
}

/* -- 4: cut packets, cut files ------------------------------------------------------------------------------------ */

static void case_4_snaplens(void **state)
{
	(void)state;
	static const uint32_t lens[][2] = {{96, 0}, {0, 64}, {128, 72}, {60, 60}};
	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
		struct scenario s;
		scenario_init(&s, i == 0 ? "96" : i == 1 ? "64 at B" : i == 2 ? "128 and 72" : "60");
		s.sim.side[OW_SIDE_A].snaplen = lens[i][0];
		s.sim.side[OW_SIDE_B].snaplen = lens[i][1];
		s.sim.router = true;
		s.sim.reverse = 0.3;
		scenario_run(&s);
		scenario_check(&s);
		scenario_done(&s);
	}
}

static void shorten(const char *path, long cut_bytes)
{
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	long size = ftell(f) - cut_bytes;
	assert_int_equal(fclose(f), 0);
	assert_int_equal(truncate(path, size), 0);
}

/* The last record of B is cut: all but the last packet matches, and the warning names the offset. */
static void case_4_a_file_cut_in_a_record(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "cut in a record");
	s.sim.loss.ratio = 0;
	scenario_simulate(&s);
	shorten(s.sim.side[OW_SIDE_B].path, 5);
	assert_int_equal(scenario_match(&s), 0);
	scenario_conserved(s.report);
	assert_true(scenario_warns(s.report, "offset"));
	assert_true(scenario_warns(s.report, "B: "));
	assert_int_equal(s.report->direction[OW_A_TO_B].matched, s.truth.direction[OW_A_TO_B].matched - 1);
	assert_int_equal(s.report->capture[OW_SIDE_B].packets, s.truth.records[OW_SIDE_B] - 1);
	scenario_done(&s);
}

/* -- 5: what the network does ------------------------------------------------------------------------------------- */

static void lossy(struct scenario *s)
{
	s->sim.loss.ratio = 0.2;
}

static void episodes(struct scenario *s)
{
	s->sim.loss.ratio = 0.1;
	s->sim.loss.episode = 50;
}

static void multipath(struct scenario *s)
{
	assert_int_equal(ow_sim_delay_parse("paths:0.9,constant:50us;0.1,constant:180us", &s->sim.delay, &s->err), 0);
}

static void ecmp(struct scenario *s)
{
	assert_int_equal(ow_sim_delay_parse("ecmp:0.5,normal:50us,5us;0.5,normal:180us,5us", &s->sim.delay, &s->err),
	                 0);
}

static void red(struct scenario *s)
{
	assert_int_equal(ow_sim_delay_parse("red:100M", &s->sim.delay, &s->err), 0);
	s->sim.rate_pps = 40000;
}

static void duplicates(struct scenario *s)
{
	s->sim.duplicate = 0.05;
	s->sim.reverse = 0.3;
}

static void retransmissions(struct scenario *s)
{
	s->sim.retransmissions = 0.1;
	s->sim.loss.ratio = 0.05;
	s->sim.reverse = 0.3;
}

static void case_5_loss_reordering_duplicates_retransmissions(void **state)
{
	(void)state;
	scenario_exact("loss", lossy);
	scenario_exact("episodes of loss", episodes);
	scenario_exact("multipath", multipath);
	scenario_exact("ecmp", ecmp);
	scenario_exact("red", red);
	scenario_exact("duplicates", duplicates);
	scenario_exact("retransmissions", retransmissions);
}

static void polls(struct scenario *s)
{
	s->sim.identical = 1;
	s->sim.rate_pps = 100;
	s->sim.constant_rate = true;
	s->sim.packets = 5000;
	s->sim.loss.ratio = 0.02; /* the first is lost after a few have taught how long they take */
	assert_int_equal(ow_sim_delay_parse("normal:500us,50us", &s->sim.delay, &s->err), 0);
	s->match.interval_ns = 10 * S;
}

static void a_crowd(struct scenario *s)
{
	s->sim.identical = 1;
	s->sim.loss.ratio = 0;
	s->sim.in_order = true;
}

/* The numbers are between the bounds. */
static void check_bounds(const struct ow_delay *r, const struct ow_delay *t)
{
	assert_true(r->uncertain > 0);
	assert_true(r->low.mean_ns <= t->mean_ns + 1 && r->high.mean_ns >= t->mean_ns - 1);
	assert_true(r->low.min_ns <= t->min_ns && r->high.min_ns >= t->min_ns);
	assert_true(r->low.max_ns <= t->max_ns && r->high.max_ns >= t->max_ns);
	for (unsigned q = 0; q < OW_QUANTILES; q++)
		assert_true(r->low.quantile_ns[q] <= 1.01 * t->quantile_ns[q] &&
		            r->high.quantile_ns[q] >= 0.99 * t->quantile_ns[q]);
}

/*
 * Polls that are further apart than packets take, with any loss: all are told apart, and the delays are right. But the
 * captures start with the first poll of each, so that all may have taken whole periods longer, and this is said.
 */
static void case_5_polls(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "polls");
	polls(&s);
	scenario_run(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	scenario_check_counts(r, t, false);
	scenario_check_delays(&r->delay, &t->delay);
	check_bounds(&r->delay, &t->delay);
	assert_in_range(r->delay.period_ns, 9 * MS, 11 * MS);
	scenario_done(&s);
}

/* Losses and delays that vary as much as packets are apart: the bounds hold the truth. */
static void case_5_a_crowd(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "a crowd in order");
	a_crowd(&s);
	scenario_run(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	/* Some that were held up and arrive with the next look like its copies: one in a thousand at most. */
	assert_in_range(r->matched, t->matched - t->matched / 1000, t->matched);
	assert_in_range(r->duplicated, 0, t->matched / 1000);
	check_bounds(&r->delay, &t->delay);
	scenario_done(&s);
}

/* Losses among many identical packets that overtake each other: the bounds hold the truth. */
static void case_5_identical_packets_in_doubt(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "identical packets, loss");
	s.sim.identical = 0.3;
	s.sim.loss.ratio = 0.02;
	scenario_run(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B], *t = &s.truth.direction[OW_A_TO_B];
	assert_in_range(r->matched, t->matched - t->matched / 1000, t->matched);
	assert_true(r->ambiguous > r->matched / 10 && r->ambiguous < r->matched);
	check_bounds(&r->delay, &t->delay);
	scenario_done(&s);
}

/* -- 6: superframes ----------------------------------------------------------------------------------------------- */

static void case_6_superframes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		char name[64];
		struct scenario s;
		bool at_a = i % 3 != 1, at_b = i % 3 != 0, both_ways = i / 3 % 2, lossless = i / 6;
		(void)snprintf(name, sizeof name, "superframes%s%s%s%s", at_a ? " at A" : "", at_b ? " at B" : "",
		               both_ways ? ", both ways" : "", lossless ? ", no loss" : "");
		scenario_init(&s, name);
		s.sim.side[OW_SIDE_A].superframes = at_a;
		s.sim.side[OW_SIDE_B].superframes = at_b;
		s.sim.reverse = both_ways ? 0.4 : 0;
		s.sim.loss.ratio = lossless ? 0 : 0.01;
		s.sim.in_order = true;
		scenario_run(&s);
		scenario_check(&s);
		assert_true(s.report->segments);
		assert_true(s.truth.superframes[OW_SIDE_A] + s.truth.superframes[OW_SIDE_B] > 100);
		scenario_done(&s);
	}
}

static void big_tcp(struct scenario *s)
{
	s->sim.side[OW_SIDE_A].superframes = s->sim.side[OW_SIDE_B].superframes = true;
	s->sim.superframe_bytes = 200000;
	s->sim.in_order = true;
}

static void jumbo_superframes(struct scenario *s)
{
	s->sim.side[OW_SIDE_A].superframes = true;
	s->sim.mtu = 9000;
	s->sim.in_order = true;
}

static void disguised_superframes(struct scenario *s)
{
	s->sim.side[OW_SIDE_A].superframes = true;
	s->sim.side[OW_SIDE_A].snaplen = 128;
	s->sim.nat = s->sim.router = true;
	s->sim.reverse = 0.3;
	assert_int_equal(ow_sim_encap_parse("vlan:3", &s->sim.side[OW_SIDE_B], &s->err), 0);
}

static void superframes_twice(struct scenario *s)
{
	s->sim.side[OW_SIDE_A].superframes = true;
	s->sim.duplicate = 0.02;
}

static void case_6_superframes_of_all_sizes(void **state)
{
	(void)state;
	scenario_exact("BIG TCP", big_tcp);
	scenario_exact("jumbo", jumbo_superframes);
	scenario_exact("NAT, VLAN, snaplen", disguised_superframes);
	scenario_exact("duplicates", superframes_twice);
}

/* Flows of few segments, of which some lose all full ones: what is left of a superframe is not the size of a segment. */
static void case_6_superframes_that_lose_their_full_segments(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct scenario s;
		scenario_init(&s, "few segments");
		jumbo_superframes(&s);
		s.sim.packets = 4000;
		s.sim.seed = seed;
		s.sim.loss.ratio = 0.02;
		scenario_run(&s);
		scenario_check(&s);
		scenario_done(&s);
	}
}

/* Data that is sent again while the first may still be on its way: few, and told. */
static void case_6_superframes_sent_again(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "retransmissions");
	s.sim.side[OW_SIDE_A].superframes = true;
	s.sim.retransmissions = 0.05;
	scenario_run(&s);
	const struct ow_result *r = &s.report->direction[OW_A_TO_B];
	scenario_check_counts(r, &s.truth.direction[OW_A_TO_B], false);
	assert_true(s.truth.retransmitted > 10);
	assert_in_range(r->ambiguous, 0, 2 * s.truth.retransmitted);
	scenario_done(&s);
}

/* -- 7: directions and clocks ------------------------------------------------------------------------------------- */

static void both_ways(struct scenario *s)
{
	s->sim.reverse = 0.5;
}

static void hardly_back(struct scenario *s)
{
	s->sim.reverse = 0.02;
}

static void case_7_both_directions(void **state)
{
	(void)state;
	scenario_exact("half", both_ways);
	scenario_exact("2 %", hardly_back);
}

/* Half the difference of the minimum delays: off by half of what these differ by, and all delays by that. */
static void estimated_clock(int64_t offset_ns, double reverse, const char *name)
{
	struct scenario s;
	scenario_init(&s, name);
	s.sim.offset_ns = offset_ns;
	s.sim.reverse = reverse;
	s.match.clock = OW_CLOCK_ESTIMATED;
	scenario_run(&s);
	const struct ow_result *ab = &s.report->direction[OW_A_TO_B], *ba = &s.report->direction[OW_B_TO_A];
	const struct ow_result *tab = &s.truth.direction[OW_A_TO_B], *tba = &s.truth.direction[OW_B_TO_A];
	scenario_check_counts(ab, tab, false);
	scenario_check_counts(ba, tba, false);
	int64_t off = s.report->offset_ns + offset_ns; /* 0 if all were right */
	int64_t expected = reverse > 0 ? (tba->delay.min_ns - tab->delay.min_ns) / 2 : -tab->delay.min_ns;
	assert_true(llabs(off - expected) <= 1);
	assert_int_equal(ab->delay.min_ns, tab->delay.min_ns + off);
	assert_true(fabs(ab->delay.mean_ns - (tab->delay.mean_ns + (double)off)) < 1e-3);
	if (reverse > 0)
		assert_true(fabs(ba->delay.mean_ns - (tba->delay.mean_ns - (double)off)) < 1e-3);
	assert_true(scenario_warns(s.report, "estimated"));
	scenario_done(&s);
}

static void case_7_estimated_clocks(void **state)
{
	(void)state;
	estimated_clock(300 * US, 0.5, "300 us");
	estimated_clock(-5 * MS, 0.3, "-5 ms");
	estimated_clock(37 * S, 0.5, "37 s");
	estimated_clock(-37 * S, 0.5, "-37 s");
	estimated_clock(3 * 86400 * S, 0.5, "days");
	estimated_clock(3 * 86400 * S, 0, "days, one direction");
	estimated_clock(-500 * US, 0, "-500 us, one direction");
}

static void given_offset(struct scenario *s)
{
	s->sim.offset_ns = 37 * S;
	s->sim.reverse = 0.4;
	s->match.clock = OW_CLOCK_GIVEN;
	s->match.offset_ns = -37 * S;
}

static void case_7_given_offset(void **state)
{
	(void)state;
	scenario_exact("37 s, given", given_offset);
}

/* Clocks that are trusted though they are apart: every packet is found, and the impossible is said. */
static void case_7_trusted_clocks_that_are_apart(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "300 us apart");
	s.sim.offset_ns = 300 * US;
	s.sim.reverse = 0.5;
	scenario_run(&s);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *r = &s.report->direction[d], *t = &s.truth.direction[d];
		int64_t off = d == OW_A_TO_B ? 300 * US : -300 * US;
		scenario_check_counts(r, t, true);
		assert_int_equal(r->delay.min_ns, t->delay.min_ns + off);
		assert_int_equal(r->delay.max_ns, t->delay.max_ns + off);
	}
	assert_true(scenario_warns(s.report, "--offset auto"));
	scenario_done(&s);
}

/* -- 8: captures that do not run together ------------------------------------------------------------------------- */

/*
 * A lost packet near the end of the other capture may have arrived after it: up to as many as are lost within the
 * longest delay can be told either way (1 % of 100,000 a second within 2 ms: 2 expected).
 */
static void case_8_captures_that_start_and_stop_apart(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct scenario s;
		scenario_init(&s, i & 1 ? "A starts later, B ends earlier" : "B starts later, A ends earlier");
		s.sim.side[i & 1 ? OW_SIDE_A : OW_SIDE_B].skip_ns = 50 * MS;
		s.sim.side[i & 1 ? OW_SIDE_B : OW_SIDE_A].early_ns = 40 * MS;
		s.sim.reverse = i & 2 ? 0.5 : 0;
		s.sim.duplicate = i & 4 ? 0.03 : 0;
		scenario_run(&s);
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			const struct ow_result *r = &s.report->direction[d], *t = &s.truth.direction[d];
			assert_int_equal(r->matched, t->matched);
			assert_in_range(r->lost + 10, t->lost, t->lost + 20);
			assert_in_range(r->duplicated + 2, t->duplicated, t->duplicated + 4);
			assert_in_range(r->extra + 2, t->extra, t->extra + 4);
			scenario_check_delays(&r->delay, &t->delay);
		}
		assert_true(s.report->outside_overlap[OW_SIDE_A] + s.report->outside_overlap[OW_SIDE_B] > 7000);
		assert_int_equal(s.report->unclassified[OW_SIDE_A] + s.report->unclassified[OW_SIDE_B], 0);
		scenario_done(&s);
	}
}

/* The capture again, with a frame that is no IP packet a second before and after what it has. */
static void frame_in(const char *from, const char *to)
{
	static const uint8_t bytes[60] = {[12] = 0x88, [13] = 0xb5};
	const struct ow_writer_options options = {.linktype = 1};
	struct ow_reader *reader;
	struct ow_writer *writer;
	struct ow_frame frame[64], mark = {.linktype = 1, .caplen = 60, .len = 60, .data = bytes};
	struct ow_error err;
	bool begun = false;
	int n;
	assert_int_equal(ow_reader_open(from, &reader, &err), 0);
	assert_int_equal(ow_writer_open(to, &options, &writer, &err), 0);
	while ((n = ow_reader_read(reader, frame, 64, &err)) > 0) {
		mark.time_ns = frame[0].time_ns - S;
		if (!begun)
			assert_int_equal(ow_writer_write(writer, &mark, &err), 0);
		begun = true;
		for (int i = 0; i < n; i++)
			assert_int_equal(ow_writer_write(writer, &frame[i], &err), 0);
		mark.time_ns = frame[n - 1].time_ns + S;
	}
	assert_int_equal(ow_writer_write(writer, &mark, &err), 0);
	assert_int_equal(ow_writer_close(writer, &err), 0);
	ow_reader_close(reader);
}

/* What a capture covers is shown by any frame of it: then the first and the last packets are lost, not outside. */
static void case_8_frames_around_the_packets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct scenario s;
		scenario_init(&s, "frames around the packets");
		s.sim.packets = 2000;
		s.sim.flows = 10;
		s.sim.seed = i;
		s.sim.loss.ratio = 0.5;
		s.sim.reverse = i & 1 ? 0.5 : 0;
		s.match.threads = 1 + i % 3;
		s.match.clock = i & 4 ? OW_CLOCK_GIVEN : OW_CLOCK_NONE;
		s.sim.offset_ns = i & 4 ? 3 * S : 0;
		s.match.offset_ns = -s.sim.offset_ns;
		scenario_simulate(&s);
		const char *a = scenario_path("framed-a.pcap"), *b = scenario_path("framed-b.pcap");
		frame_in(s.sim.side[OW_SIDE_A].path, a);
		frame_in(s.sim.side[OW_SIDE_B].path, b);
		s.sim.side[OW_SIDE_A].path = a;
		s.sim.side[OW_SIDE_B].path = b;
		assert_int_equal(scenario_match(&s), 0);
		scenario_conserved(s.report);
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			const struct ow_result *r = &s.report->direction[d], *t = &s.truth.direction[d];
			assert_int_equal(r->sent, t->sent);
			assert_int_equal(r->lost, t->lost);
			assert_int_equal(s.report->outside_overlap[d], 0);
			assert_int_equal(s.report->skipped[d], 2);
		}
		scenario_done(&s);
	}
}

/* -- 9: odd packets and times ------------------------------------------------------------------------------------- */

static void case_9_timestamps_that_go_backwards(void **state)
{
	(void)state;
	struct scenario s;
	scenario_init(&s, "backwards");
	s.sim.backwards = 0.1;
	s.sim.base_delay_ns = 30 * US; /* more than the 10 us by which stamps are wrong */
	s.sim.reverse = 0.3;
	scenario_run(&s);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		scenario_check_counts(&s.report->direction[d], &s.truth.direction[d], false);
		scenario_check_delays(&s.report->direction[d].delay, &s.truth.direction[d].delay);
	}
	assert_true(scenario_warns(s.report, "backwards"));
	scenario_done(&s);
}

static void case_9_no_timestamps(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 4; i++) {
		struct scenario s;
		scenario_init(&s, i == 1 ? "A without times" : i == 2 ? "B without times" : "no times");
		s.sim.side[OW_SIDE_A].zero_timestamps = i & 1;
		s.sim.side[OW_SIDE_B].zero_timestamps = i & 2;
		scenario_run(&s);
		const struct ow_result *r = &s.report->direction[OW_A_TO_B];
		scenario_check_counts(r, &s.truth.direction[OW_A_TO_B], false);
		assert_int_equal(r->ambiguous, r->matched);
		assert_int_equal(r->delay.samples, 0);
		assert_true(scenario_warns(s.report, "no timestamps"));
		scenario_done(&s);
	}
}

static void fragments(struct scenario *s)
{
	s->sim.tcp = 0;
	s->sim.fragments = 0.3;
	s->sim.ipv6 = 0.3;
	s->sim.router = true;
}

static void extension_headers(struct scenario *s)
{
	s->sim.ipv6 = 1;
	s->sim.ipv6_extensions = 0.5;
	s->sim.reverse = 0.3;
	s->sim.router = true;
}

static void jumbo(struct scenario *s)
{
	s->sim.size = (struct ow_sim_size){OW_SIM_SIZE_UNIFORM, 100, 9000};
	s->sim.packets = 5000;
}

static void case_9_fragments_extension_headers_jumbo_frames(void **state)
{
	(void)state;
	scenario_exact("fragments", fragments);
	scenario_exact("extension headers", extension_headers);
	scenario_exact("jumbo frames", jumbo);
}

/* -- all together ------------------------------------------------------------------------------------------------- */

static void combinations(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		char name[64];
		struct scenario s;
		(void)snprintf(name, sizeof name, "%s%s%s%s%s", i & 1 ? "both ways, " : "", i & 2 ? "nat, " : "",
		               i & 4 ? "vlan, " : "", i & 8 ? "snaplen, " : "", i & 16 ? "pcapng us, raw" : "pcap");
		scenario_init(&s, name);
		s.sim.seed = 100 + i;
		s.sim.packets = 6000;
		s.sim.reverse = i & 1 ? 0.4 : 0;
		s.sim.nat = s.sim.router = i & 2;
		if (i & 4)
			assert_int_equal(
				ow_sim_encap_parse("vlan:12", &s.sim.side[i & 16 ? OW_SIDE_A : OW_SIDE_B], &s.err), 0);
		s.sim.side[OW_SIDE_B].snaplen = i & 8 ? 90 : 0;
		if (i & 16) {
			s.sim.side[OW_SIDE_A].format = OW_FILE_PCAPNG;
			s.sim.side[OW_SIDE_A].microseconds = true;
			s.sim.side[OW_SIDE_B].link = OW_SIM_RAW;
		}
		s.sim.loss.ratio = 0.03;
		s.sim.duplicate = 0.01;
		s.sim.ipv6 = 0.2;
		scenario_run(&s);
		scenario_check(&s);
		scenario_done(&s);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, scenario_say)
	const struct CMUnitTest tests[] = {
		CASE(case_1_formats_resolutions_and_byte_orders),
		CASE(case_1_binary_resolution),
		CASE(case_2_links),
		CASE(case_2_tags_on_one_side),
		CASE(case_3_routers_and_nat),
		CASE(case_3_tunnels),
		CASE(case_4_snaplens),
		CASE(case_4_a_file_cut_in_a_record),
		CASE(case_5_loss_reordering_duplicates_retransmissions),
		CASE(case_5_polls),
		CASE(case_5_a_crowd),
		CASE(case_5_identical_packets_in_doubt),
		CASE(case_6_superframes),
		CASE(case_6_superframes_of_all_sizes),
		CASE(case_6_superframes_that_lose_their_full_segments),
		CASE(case_6_superframes_sent_again),
		CASE(case_7_both_directions),
		CASE(case_7_estimated_clocks),
		CASE(case_7_given_offset),
		CASE(case_7_trusted_clocks_that_are_apart),
		CASE(case_8_captures_that_start_and_stop_apart),
		CASE(case_8_frames_around_the_packets),
		CASE(case_9_timestamps_that_go_backwards),
		CASE(case_9_no_timestamps),
		CASE(case_9_fragments_extension_headers_jumbo_frames),
		CASE(combinations),
	};
	return cmocka_run_group_tests(tests, scenario_setup, scenario_teardown);
}
