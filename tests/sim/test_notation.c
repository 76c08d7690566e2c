/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void delays(void **state)
{
	(void)state;
	struct ow_sim_delay delay;
	assert_int_equal(ow_sim_delay_parse("weibull:20us,0.6", &delay, NULL), 0);
	assert_int_equal(delay.paths, 1);
	assert_int_equal(delay.path[0].kind, OW_SIM_WEIBULL);
	assert_true(delay.path[0].a == 20000 && delay.path[0].b == 0.6 && delay.path[0].weight == 1);
	assert_int_equal(ow_sim_delay_parse("normal:1ms,10us", &delay, NULL), 0);
	assert_true(delay.path[0].a == 1e6 && delay.path[0].b == 1e4);
	assert_int_equal(ow_sim_delay_parse("constant:0", &delay, NULL), 0);
	assert_int_equal(ow_sim_delay_parse("fifo:1G", &delay, NULL), 0);
	assert_true(delay.path[0].a == 1e9 && delay.path[0].b == 0);
	assert_int_equal(ow_sim_delay_parse("fifo:2.5Mbit,64kB", &delay, NULL), 0);
	assert_true(delay.path[0].a == 2.5e6 && delay.path[0].b == 64000);
	assert_int_equal(ow_sim_delay_parse("red:100M", &delay, NULL), 0);
	assert_int_equal(delay.path[0].kind, OW_SIM_RED);
	assert_int_equal(ow_sim_delay_parse("paths:9,constant:50us;1,pareto:80us,3", &delay, NULL), 0);
	assert_int_equal(delay.paths, 2);
	assert_false(delay.by_flow);
	assert_true(delay.path[0].weight == 0.9 && delay.path[1].weight == 0.1);
	assert_int_equal(delay.path[1].kind, OW_SIM_PARETO);
	assert_int_equal(ow_sim_delay_parse("ecmp:0.5,constant:50us;0.5,fifo:1G,10k", &delay, NULL), 0);
	assert_true(delay.by_flow && delay.path[1].b == 10000);
}

static void wrong_delays(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"weibull",
		"weibull:",
		"weibull:20us",
		"weibull:20,0.6",
		"weibull:20us,0.6,7",
		"weibull:20us,0us",
		"weibull:20us,0",
		"weibull:-1us,1",
		"weibull:0us,1",
		"constant:5",
		"constant:-5us",
		"constant:1us,2",
		"gauss:1us,2us",
		"fifo:0",
		"fifo:-1G",
		"fifo:1X",
		"red:",
		"paths:",
		"paths:1",
		"paths:0,constant:1us",
		"paths:1,constant:1us;",
		"paths:1,paths:1,constant:1us",
		"paths:1,constant:1us;2,x:1us;",
		"constant:nan",
		"weibull:1us,nan",
		"normal:1us",
		"paths:1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M;1,fifo:1M",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_sim_delay delay = {.paths = 99};
		struct ow_error err = {""};
		if (ow_sim_delay_parse(bad[i], &delay, &err) >= 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(delay.paths, 99);
		assert_true(strlen(err.text) > 0);
	}
}

static void losses(void **state)
{
	(void)state;
	struct ow_sim_loss loss;
	assert_int_equal(ow_sim_loss_parse("0.01", &loss, NULL), 0);
	assert_true(loss.ratio == 0.01 && loss.episode == 0);
	assert_int_equal(ow_sim_loss_parse("1%", &loss, NULL), 0);
	assert_true(loss.ratio == 0.01);
	assert_int_equal(ow_sim_loss_parse("episodes:0.02,100", &loss, NULL), 0);
	assert_true(loss.ratio == 0.02 && loss.episode == 100);
	static const char *const bad[] = {"",      "2", "-0.1", "episodes:", "episodes:0.1", "episodes:0.1,0",
	                                  "0.1,5", "x", "nan"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_true(ow_sim_loss_parse(bad[i], &loss, NULL) < 0);
}

static void sizes(void **state)
{
	(void)state;
	struct ow_sim_size size;
	assert_int_equal(ow_sim_size_parse("imix", &size, NULL), 0);
	assert_int_equal(size.kind, OW_SIM_SIZE_IMIX);
	assert_int_equal(ow_sim_size_parse("9000", &size, NULL), 0);
	assert_true(size.kind == OW_SIM_SIZE_CONSTANT && size.min == 9000 && size.max == 9000);
	assert_int_equal(ow_sim_size_parse("uniform:64,1500", &size, NULL), 0);
	assert_true(size.kind == OW_SIM_SIZE_UNIFORM && size.min == 64 && size.max == 1500);
	static const char *const bad[] = {"", "uniform:64", "uniform:1500,64", "64,1500", "-1", "70000", "big"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_true(ow_sim_size_parse(bad[i], &size, NULL) < 0);
}

static void links_and_encapsulations(void **state)
{
	(void)state;
	enum ow_sim_link link;
	assert_int_equal(ow_sim_link_parse("sll2", &link, NULL), 0);
	assert_int_equal(link, OW_SIM_SLL2);
	assert_true(ow_sim_link_parse("token-ring", &link, NULL) < 0);
	assert_true(ow_sim_link_parse("", &link, NULL) < 0);
	struct ow_sim_side side = {.encaps = 0};
	assert_int_equal(ow_sim_encap_parse("vlan:10,mpls,vxlan:77", &side, NULL), 0);
	assert_int_equal(side.encaps, 3);
	assert_true(side.encap[0].kind == OW_SIM_VLAN && side.encap[0].id == 10);
	assert_true(side.encap[1].kind == OW_SIM_MPLS && side.encap[1].id == 100);
	assert_true(side.encap[2].kind == OW_SIM_VXLAN && side.encap[2].id == 77);
	static const char *const bad[] = {
		"", "vlan:4095", "vlan:x", "l2tp", "vlan,", "gre:5", "vlan,vlan,vlan,vlan,vlan,vlan,vlan"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_true(ow_sim_encap_parse(bad[i], &side, NULL) < 0);
		assert_int_equal(side.encaps, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays),
		cmocka_unit_test(wrong_delays),
		cmocka_unit_test(losses),
		cmocka_unit_test(sizes),
		cmocka_unit_test(links_and_encapsulations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
