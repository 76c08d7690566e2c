/* SPDX-License-Identifier: Apache-2.0 */
/* RLI: exact where delays are straight lines, rates between their limits, packets conserved, probes load the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "papers/rli.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct ow_rli_params usual = {1. / 300, 1. / 10, 64, 10 * OW_NS_PER_MS};

/* `count` packets of one flow, one every gap_ns. */
static struct ow_flow_traffic regular(size_t count, int64_t gap_ns, uint32_t len)
{
	struct ow_flow_traffic t = {.packets = count, .flows = 1, .bytes = count * len};
	t.packet = malloc(count * sizeof *t.packet);
	t.flow = malloc(sizeof *t.flow);
	assert_true(t.packet && t.flow);
	t.flow[0] = 77;
	for (size_t i = 0; i < count; i++)
		t.packet[i] = (struct ow_flow_packet){(int64_t)i * gap_ns, 0, len};
	return t;
}

static struct ow_rli run(const struct ow_flow_traffic *t, const struct ow_flow_path *path,
                         const struct ow_rli_params *params)
{
	struct ow_rli rli;
	struct ow_error err;
	assert_int_equal(ow_rli_run(t, path, params, &rli, &err), 0);
	uint64_t sent = 0, received = 0, estimated = 0;
	for (size_t f = 0; f < rli.flows; f++) {
		sent += rli.truth[f].sent;
		received += rli.truth[f].received;
		estimated += rli.estimate[f].received;
	}
	assert_int_equal(sent, t->packets);
	assert_int_equal(rli.packets, t->packets);
	assert_int_equal(received, rli.packets - rli.lost);
	if (rli.probes > rli.probes_lost)
		assert_int_equal(estimated, received);
	return rli;
}

/* Offered twice what the link carries without loss, delays grow on a line: interpolation is exact but for what a
 * packet's own length adds, and for the ends. */
static void test_line(void **state)
{
	(void)state;
	struct ow_flow_traffic t = regular(10000, 6000, 1500);
	struct ow_flow_path path = {.delay = {.path = {{OW_SIM_FIFO, 1e9, 0, 1}}, .paths = 1}};
	struct ow_rli rli = run(&t, &path, &usual);
	assert_true(rli.truth[0].mean_ns > 20 * OW_NS_PER_MS);
	assert_true(fabs(rli.estimate[0].mean_ns / rli.truth[0].mean_ns - 1) < 0.01);
	assert_true(fabs(rli.estimate[0].stddev_ns / rli.truth[0].stddev_ns - 1) < 0.01);
	/* After the first window the link is full: one probe in 300. */
	double idle = 10e6 / 6000, probes = idle / 10 + (10000 - idle) / 300;
	assert_true(fabs((double)rli.probes - probes) <= 2);
	ow_rli_done(&rli);
	ow_flow_traffic_done(&t);
}

/* An eighth of the link: 1/10 - (1/10 - 1/300) / 8. */
static void test_rate(void **state)
{
	(void)state;
	struct ow_flow_traffic t = regular(100000, 96000, 1500);
	struct ow_flow_path path = {.delay = {.path = {{OW_SIM_FIFO, 1e9, 0, 1}}, .paths = 1}};
	struct ow_rli rli = run(&t, &path, &usual);
	double share = (double)rli.probes / (double)rli.packets;
	/* Windows are 104 or 105 packets, 1 % too many or too few. */
	assert_true(fabs(share - (0.1 - (0.1 - 1. / 300) / 8)) < 0.001);
	/* Each packet finds the link idle. */
	assert_true(rli.truth[0].stddev_ns == 0);
	assert_true(rli.mean_ns == 12000);
	ow_rli_done(&rli);
	ow_flow_traffic_done(&t);
}

static void test_load(void **state)
{
	(void)state;
	struct ow_flow_traffic t;
	struct ow_error err;
	struct ow_flow_traffic_params params = {.flows = 5000,
	                                        .shape = 1.1,
	                                        .least = 1,
	                                        .most = 10000,
	                                        .length_ns = 10 * OW_NS_PER_S,
	                                        .train = 4,
	                                        .seed = 5};
	assert_int_equal(ow_flow_traffic_make(&params, &t, &err), 0);
	struct ow_flow_path path = {.delay = ow_flow_queue(OW_SIM_RED, &t, 0.9, 0), .seed = 1};
	struct ow_rli none = run(&t, &path, &(struct ow_rli_params){0, 0, 64, OW_NS_PER_MS});
	struct ow_rli few = run(&t, &path, &usual);
	struct ow_rli many = run(&t, &path, &(struct ow_rli_params){1. / 10, 1. / 2, 64, 10 * OW_NS_PER_MS});
	assert_int_equal(none.probes, 0);
	assert_int_equal(none.estimate[0].received, 0);
	assert_true(few.probes >= few.packets / 300 && few.probes <= few.packets / 10);
	assert_true(many.probes >= many.packets / 10 && many.probes <= many.packets / 2);
	assert_true(none.mean_ns < few.mean_ns && few.mean_ns < many.mean_ns);
	ow_rli_done(&none);
	ow_rli_done(&few);
	ow_rli_done(&many);
	struct ow_rli rli;
	struct ow_flow_path other = {.delay = {.path = {{OW_SIM_CONSTANT, 1000, 0, 1}}, .paths = 1}};
	assert_int_equal(ow_rli_run(&t, &other, &usual, &rli, &err), -EINVAL);
	assert_int_equal(ow_rli_run(&t, &path, &(struct ow_rli_params){0.5, 0.1, 64, 1}, &rli, &err), -EINVAL);
	ow_flow_traffic_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_line), cmocka_unit_test(test_rate),
	                                   cmocka_unit_test(test_load)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
