/* SPDX-License-Identifier: Apache-2.0 */
/* Hops of flows: where each lost its packets, and how long they took. */
#include "path/flow_hops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct ow_path_report path = {.points = 4};

static struct ow_flow_key key_of(uint16_t port)
{
	return (struct ow_flow_key){
		.src = {10, 0, 0, 1}, .dst = {10, 0, 0, 2}, .sport = port, .dport = 80, .proto = 6, .version = 4};
}

/* Seen at the points of the mask, 100 ns apart, point by point. */
static void add(struct ow_flow_hops *hops, uint16_t port, enum ow_direction direction, uint32_t seen, enum ow_fate fate)
{
	struct ow_flow_key key = key_of(port);
	struct ow_path_packet packet = {
		.fate = fate, .direction = direction, .seen = seen, .packets = 1, .flow = &key, .path = &path};
	for (unsigned p = 0; p < path.points; p++)
		packet.time_ns[p] = direction == OW_A_TO_B ? 100 * (int64_t)p : -100 * (int64_t)p;
	assert_int_equal(ow_flow_hops_add(hops, &packet), 0);
}

static struct ow_flow_on_path *all(const struct ow_flow_hops *hops, size_t expected)
{
	struct ow_flow_on_path *flow;
	size_t count;
	assert_int_equal(ow_flow_hops_all(hops, &flow, &count), 0);
	assert_int_equal(count, expected);
	return flow;
}

static struct ow_flow_hops *create(void)
{
	const struct ow_flow_select select = {.by = OW_FLOW_BY_FIVE_TUPLE};
	struct ow_flow_hops *hops;
	assert_int_equal(ow_flow_hops_create(&select, 1, &hops), 0);
	return hops;
}

static void the_hop_to_blame(void **state)
{
	(void)state;
	struct ow_flow_hops *hops = create();
	for (unsigned i = 0; i < 10; i++)
		add(hops, 1, OW_A_TO_B, 0xf, OW_FATE_MATCHED);
	add(hops, 1, OW_A_TO_B, 0x1, OW_FATE_LOST);
	add(hops, 1, OW_A_TO_B, 0x7, OW_FATE_LOST);
	add(hops, 1, OW_A_TO_B, 0x7, OW_FATE_LOST);
	add(hops, 2, OW_B_TO_A, 0xf, OW_FATE_MATCHED);
	add(hops, 2, OW_B_TO_A, 0xc, OW_FATE_LOST);
	add(hops, 3, OW_A_TO_B, 0x8, OW_FATE_EXTRA); /* does not count */
	struct ow_flow_on_path *flow = all(hops, 2);
	assert_int_equal(flow[0].key.sport, 1);
	assert_true(flow[0].sent == 13 && flow[0].lost == 3 && flow[0].hops == 3);
	assert_true(flow[0].hop[0].lost == 1 && flow[0].hop[1].lost == 0 && flow[0].hop[2].lost == 2);
	assert_true(flow[0].lossy == 2 && flow[0].hop[2].from == 2 && flow[0].hop[2].to == 3);
	assert_true(flow[0].hop[0].delays == 12 && flow[0].hop[0].mean_ns == 100 && flow[0].hop[0].max_ns == 100);
	assert_true(flow[1].direction == OW_B_TO_A && flow[1].hop[0].from == 3 && flow[1].hop[0].to == 2);
	assert_true(flow[1].lossy == 1 && flow[1].hop[1].from == 2 && flow[1].hop[1].to == 1);
	assert_true(flow[1].hop[0].mean_ns == 100);
	free(flow);
	ow_flow_hops_free(hops);
}

/* A point that does not show all packets of a flow does not end a hop. */
static void points_that_show_a_part(void **state)
{
	(void)state;
	struct ow_flow_hops *hops = create();
	for (unsigned i = 0; i < 10; i++)
		add(hops, 1, OW_A_TO_B, i % 2 ? 0xb : 0xd, OW_FATE_MATCHED); /* by point 1 or 2 */
	add(hops, 1, OW_A_TO_B, 0x1, OW_FATE_LOST);
	add(hops, 1, OW_A_TO_B, 0x5, OW_FATE_LOST);
	struct ow_flow_on_path *flow = all(hops, 1);
	assert_true(flow->hops == 3 && flow->hop[0].from == 0 && flow->hop[0].to == 3 && flow->hop[0].lost == 1);
	assert_true(flow->hop[2].from == 2 && flow->hop[2].to == 3 && flow->hop[2].lost == 1 &&
	            flow->hop[2].mean_ns == 100);
	uint64_t lost = 0;
	for (unsigned i = 0; i < flow->hops; i++)
		lost += flow->hop[i].lost;
	assert_int_equal(lost, flow->lost);
	assert_int_equal(ow_flow_hops_omitted(hops), 0);
	free(flow);
	ow_flow_hops_free(hops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hop_to_blame),
		cmocka_unit_test(points_that_show_a_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
