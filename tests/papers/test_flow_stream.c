/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic of flows and their streams: the truth agrees with the sightings, and the models with their definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "papers/flow_stream.h"
#include "sim/queue.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ow_flow_traffic_params heavy = {
	.flows = 20000, .shape = 1.1, .least = 1, .most = 20000, .length_ns = 10 * OW_NS_PER_S, .train = 4, .seed = 42};

static struct ow_flow_traffic made(const struct ow_flow_traffic_params *params)
{
	struct ow_flow_traffic traffic;
	struct ow_error err;
	assert_int_equal(ow_flow_traffic_make(params, &traffic, &err), 0);
	return traffic;
}

static struct ow_flow_stream passed(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path)
{
	struct ow_flow_stream stream;
	struct ow_error err;
	assert_int_equal(ow_flow_stream_make(traffic, path, &stream, &err), 0);
	return stream;
}

static int by_flow_and_id(const void *a, const void *b)
{
	const struct ow_flow_sighting *x = a, *y = b;
	if (x->flow != y->flow)
		return (x->flow > y->flow) - (x->flow < y->flow);
	return (x->id > y->id) - (x->id < y->id);
}

static int by_flow(const void *a, const void *b)
{
	const struct ow_flow_truth *x = a, *y = b;
	return (x->flow > y->flow) - (x->flow < y->flow);
}

/* Recounts every flow's truth from the stamps alone, in two passes. */
static void check_truth(const struct ow_flow_stream *s)
{
	for (size_t i = 1; i < s->as; i++)
		assert_true(s->a[i - 1].time_ns <= s->a[i].time_ns);
	for (size_t i = 1; i < s->bs; i++)
		assert_true(s->b[i - 1].time_ns <= s->b[i].time_ns);
	qsort(s->a, s->as, sizeof *s->a, by_flow_and_id);
	qsort(s->b, s->bs, sizeof *s->b, by_flow_and_id);
	qsort(s->flow, s->flows, sizeof *s->flow, by_flow);
	size_t i = 0, j = 0, lost = 0;
	for (size_t f = 0; f < s->flows; f++) {
		const struct ow_flow_truth *t = &s->flow[f];
		size_t i0 = i, j0 = j;
		double sum = 0, squares = 0;
		for (; i < s->as && s->a[i].flow == t->flow; i++) {
			bool arrives = j < s->bs && s->b[j].flow == t->flow && s->b[j].id == s->a[i].id;
			sum += arrives ? (double)(s->b[j].time_ns - s->a[i].time_ns) : 0;
			j += arrives;
			lost += !arrives;
		}
		assert_int_equal(t->sent, i - i0);
		assert_int_equal(t->received, j - j0);
		if (j == j0)
			continue;
		double n = (double)(j - j0), mean = sum / n;
		for (size_t a = i0, b = j0; a < i; a++) {
			if (b < j && s->b[b].id == s->a[a].id) {
				double x = (double)(s->b[b].time_ns - s->a[a].time_ns) - mean;
				squares += x * x;
				b++;
			}
		}
		assert_true(fabs(t->mean_ns - mean) <= 1e-9 * mean + 1e-3);
		assert_true(fabs(t->stddev_ns - sqrt(squares / n)) <= 1e-6 * mean + 1e-3);
	}
	assert_int_equal(i, s->as);
	assert_int_equal(j, s->bs);
	assert_int_equal(s->as, s->bs + lost);
}

static void test_sizes(void **state)
{
	(void)state;
	struct ow_flow_traffic t = made(&heavy);
	uint32_t *size = calloc(t.flows, sizeof *size);
	assert_non_null(size);
	uint64_t bytes = 0;
	for (size_t i = 0; i < t.packets; i++) {
		assert_true(t.packet[i].flow < t.flows);
		assert_true(t.packet[i].time_ns >= 0 && t.packet[i].time_ns <= heavy.length_ns);
		assert_true(!i || t.packet[i - 1].time_ns <= t.packet[i].time_ns);
		size[t.packet[i].flow]++;
		bytes += t.packet[i].len;
	}
	assert_int_equal(t.bytes, bytes);
	/* P(packets >= n) = n^-1.1, each within 5 standard deviations. */
	for (uint32_t n = 1; n <= 1000; n *= 10) {
		double above = 0, p = pow(n, -heavy.shape);
		for (uint32_t f = 0; f < t.flows; f++)
			above += size[f] >= n;
		assert_true(fabs(above - p * t.flows) <= 5 * sqrt(t.flows * p * (1 - p)) + 1e-9);
	}
	free(size);
	struct ow_flow_traffic again = made(&heavy);
	assert_int_equal(again.packets, t.packets);
	assert_memory_equal(again.packet, t.packet, t.packets * sizeof *t.packet);
	ow_flow_traffic_done(&again);
	ow_flow_traffic_done(&t);
}

static void test_queues(void **state)
{
	(void)state;
	struct ow_flow_traffic t = made(&heavy);
	struct ow_flow_path fifo = {.delay = ow_flow_queue(OW_SIM_FIFO, &t, 0.7, 0),
	                            .base_ns = 1000,
	                            .start_ns = INT64_C(1700000000) * OW_NS_PER_S,
	                            .seed = 1};
	struct ow_flow_stream s = passed(&t, &fifo);
	assert_int_equal(s.as, t.packets);
	assert_int_equal(s.bs, t.packets);
	assert_true(s.mean_ns > 1000 && s.stddev_ns > 0);
	check_truth(&s);
	ow_flow_stream_done(&s);
	/* Offered twice what it can carry, RED loses about half. */
	struct ow_flow_path red = {.delay = ow_flow_queue(OW_SIM_RED, &t, 2, 0), .seed = 1};
	s = passed(&t, &red);
	double lost = 1 - (double)s.bs / (double)s.as;
	assert_true(lost > 0.3 && lost < 0.7);
	assert_true(s.mean_ns < OW_RED_QUEUE_S * OW_NS_PER_S);
	check_truth(&s);
	ow_flow_stream_done(&s);
	ow_flow_traffic_done(&t);
}

static void test_spread(void **state)
{
	(void)state;
	struct ow_flow_traffic_params equal = heavy;
	equal.least = equal.most = 50;
	equal.flows = 2000;
	struct ow_flow_traffic t = made(&equal);
	struct ow_flow_path path = {.spread = 0.5, .loss = {0.01, 0}, .seed = 3};
	struct ow_error err;
	assert_int_equal(ow_sim_delay_parse("weibull:100us,2", &path.delay, &err), 0);
	struct ow_flow_stream s = passed(&t, &path);
	/* The logarithms of the flows' means scatter by the spread, and by the little that 50 packets leave. */
	double sum = 0, squares = 0;
	for (size_t f = 0; f < s.flows; f++) {
		double x = log(s.flow[f].mean_ns);
		sum += x;
		squares += x * x;
	}
	double n = (double)s.flows, deviation = sqrt(squares / n - sum / n * sum / n);
	double expected = sqrt(0.25 + 0.523 * 0.523 / 50);
	assert_true(fabs(deviation - expected) < 5 * expected / sqrt(2 * n));
	double lost = (double)(s.as - s.bs), sent = (double)s.as;
	assert_true(fabs(lost - 0.01 * sent) < 5 * sqrt(0.01 * sent));
	check_truth(&s);
	ow_flow_stream_done(&s);
	ow_flow_traffic_done(&t);
}

static void test_refuses(void **state)
{
	(void)state;
	struct ow_flow_traffic t;
	struct ow_flow_stream s;
	struct ow_error err;
	struct ow_flow_traffic_params bad = heavy;
	bad.shape = 0;
	assert_int_equal(ow_flow_traffic_make(&bad, &t, &err), -EINVAL);
	assert_int_equal(ow_flow_traffic_read("/nonexistent.pcap", 0, 1, &t, &err), -ENOENT);
	bad = heavy;
	bad.flows = 10;
	t = made(&bad);
	assert_int_equal(ow_flow_stream_make(&t, &(struct ow_flow_path){.seed = 1}, &s, &err), -EINVAL);
	ow_flow_traffic_done(&t);
}

static void test_capture(void **state)
{
	(void)state;
	const char *path = OW_SHARED "/traces/big/westermo_right.pcap";
	if (access(path, R_OK) < 0) {
		print_message("skipped: %s is not there\n", path);
		return;
	}
	struct ow_flow_traffic t;
	struct ow_error err;
	assert_int_equal(ow_flow_traffic_read(path, 0, 1, &t, &err), 0);
	/* As the index of the traces says; its flows are conversations, ours have a direction. */
	assert_true(t.packets > 15638 && t.packets <= 35124);
	assert_true(t.flows >= 15638 && t.flows <= 2 * 15638);
	struct ow_flow_path path_ = {.delay = ow_flow_queue(OW_SIM_RED, &t, 0.5, 0), .seed = 1};
	struct ow_flow_stream s = passed(&t, &path_);
	check_truth(&s);
	ow_flow_stream_done(&s);
	ow_flow_traffic_done(&t);
	assert_int_equal(ow_flow_traffic_read(path, 100, 1, &t, &err), 0);
	assert_int_equal(t.packets, 100);
	ow_flow_traffic_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),   cmocka_unit_test(test_queues),  cmocka_unit_test(test_spread),
		cmocka_unit_test(test_refuses), cmocka_unit_test(test_capture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
