/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of several points: every packet is in the truth of each hop, and in the captures of the points that it passed. */
#include "capture/file/reader.h"
#include "sim/points.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void add_point(struct ow_sim_points *points, const char *name, double share)
{
	struct ow_sim_point *point = &points->point[points->points++];
	*point = (struct ow_sim_point){.place = points->hops, .share = share};
	snprintf(point->name, sizeof point->name, "%s", name);
	point->path = malloc(64);
	assert_non_null(point->path);
	snprintf(point->path, 64, "%s.pcap", name);
}

static void add_hop(struct ow_sim_points *points, double loss, int64_t delay_ns, uint32_t routers)
{
	points->hop[points->hops++] = (struct ow_sim_hop){
		.delay = {.path = {{.kind = OW_SIM_CONSTANT, .a = (double)delay_ns, .weight = 1}}, .paths = 1},
		.loss = {.ratio = loss},
		.routers = routers};
}

/* a, links b1 (a quarter of the flows) and b2 in parallel, c */
static void make_path(struct ow_sim_points *points)
{
	*points = (struct ow_sim_points){0};
	add_point(points, "a", -1);
	add_hop(points, 0.02, 1000, 2);
	add_point(points, "b1", 0.25);
	add_point(points, "b2", -1);
	add_hop(points, 0.01, 500, 3);
	add_point(points, "c", -1);
}

static void options_of(struct ow_sim_options *options)
{
	ow_sim_defaults(options);
	options->packets = 20000;
	options->reverse = 0.5;
	options->flows = 200;
	options->flow_skew = 0;
}

static uint64_t read_frames(const char *path, uint8_t *ret_least_ttl, uint8_t *ret_most_ttl)
{
	struct ow_reader *reader;
	struct ow_frame frame[64];
	uint64_t count = 0;
	int n;
	*ret_least_ttl = 255;
	*ret_most_ttl = 0;
	assert_int_equal(ow_reader_open(path, &reader, NULL), 0);
	int64_t last_ns = INT64_MIN;
	while ((n = ow_reader_read(reader, frame, 64, NULL)) > 0) {
		for (int i = 0; i < n; i++) {
			uint8_t ttl = frame[i].data[14 + 8];
			*ret_least_ttl = ttl < *ret_least_ttl ? ttl : *ret_least_ttl;
			*ret_most_ttl = ttl > *ret_most_ttl ? ttl : *ret_most_ttl;
			assert_true(frame[i].time_ns >= last_ns);
			last_ns = frame[i].time_ns;
		}
		count += (uint64_t)n;
	}
	ow_reader_close(reader);
	return count;
}

static void every_packet_is_counted(void **state)
{
	(void)state;
	struct ow_sim_points points;
	struct ow_sim_options options;
	struct ow_sim_points_truth truth;
	options_of(&options);
	make_path(&points);
	assert_int_equal(ow_sim_points_check(&points, &options, NULL), 0);
	assert_int_equal(ow_sim_points_run(&points, &options, NULL, &truth, NULL), 0);
	const struct ow_result *forth = &truth.ends.direction[OW_A_TO_B], *back = &truth.ends.direction[OW_B_TO_A];
	assert_int_equal(forth->sent + back->sent, 20000);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *first = &truth.hop[d].direction[d], *second = &truth.hop[!d].direction[d];
		assert_int_equal(first->sent, truth.ends.direction[d].sent);
		assert_int_equal(second->sent, first->matched);
		assert_int_equal(second->matched, truth.ends.direction[d].matched);
		assert_int_equal(first->lost + second->lost, truth.ends.direction[d].lost);
		assert_true(truth.ends.direction[d].delay.mean_ns == 1500);
	}
	/* What is sent or arrives at a place is in the captures there. */
	assert_int_equal(truth.records[0], forth->sent + back->matched);
	assert_int_equal(truth.records[1] + truth.records[2],
	                 truth.hop[0].direction[OW_A_TO_B].matched + truth.hop[1].direction[OW_B_TO_A].matched);
	assert_int_equal(truth.records[3], forth->matched + back->sent);
	uint8_t least, most;
	assert_int_equal(read_frames("a.pcap", &least, &most), truth.records[0]);
	assert_true(least == 59 && most == 64);
	assert_int_equal(read_frames("b1.pcap", &least, &most), truth.records[1]);
	assert_true(least == 61 && most == 62);
	/* 200 flows of the same size: a quarter, give or take five standard deviations. */
	double share = (double)truth.records[1] / (double)(truth.records[1] + truth.records[2]);
	assert_true(share > 0.25 - 0.155 && share < 0.25 + 0.155);
	ow_sim_points_done(&points);
}

static void what_contradicts_is_refused(void **state)
{
	(void)state;
	struct ow_sim_points points;
	struct ow_sim_options options;
	struct ow_error err;
	options_of(&options);
	make_path(&points);
	points.point[1].share = 0.9;
	points.point[2].share = 0.2;
	assert_int_equal(ow_sim_points_check(&points, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 1"));
	ow_sim_points_done(&points);
	make_path(&points);
	points.point[3].name[0] = 'a';
	assert_int_equal(ow_sim_points_check(&points, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "called a"));
	ow_sim_points_done(&points);
	make_path(&points);
	add_hop(&points, 0, 0, 0);
	assert_int_equal(ow_sim_points_check(&points, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no --point behind"));
	ow_sim_points_done(&points);
}

int main(void)
{
	char folder[] = "/tmp/oneway-points-XXXXXX";
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_is_counted),
		cmocka_unit_test(what_contradicts_is_refused),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char line[64];
	snprintf(line, sizeof line, "rm -r '%s'", folder);
	return system(line) != 0 || failed;
}
