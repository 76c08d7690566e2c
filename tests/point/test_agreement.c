/* SPDX-License-Identifier: Apache-2.0 */
/* What two points agree on: proposals against configurations, the start, and the memory of lanes. */
#include "point/agreement.h"
#include "config/memory_budget.h"

#include "base/random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define LONDON "point: london\npsk: p\ninterfaces: [{name: lo}]\nsegments:\n  - name: x\n    peer: paris\n"
#define PARIS \
	"point: paris\npsk: p\nlisten: ':8620'\ninterfaces: [{name: lo}]\nsegments:\n  - name: x\n    peer: london\n"

static struct ow_config *config_of(const char *head, const char *tail)
{
	char text[2000];
	struct ow_config *config;
	struct ow_error err;
	snprintf(text, sizeof text, "%s%s", head, tail);
	if (ow_config_parse("t.yaml", text, strlen(text), &config, &err) < 0)
		fail_msg("%s", err.text);
	return config;
}

/* What paris, with such parameters, says to london's proposal: 0, or why not. */
static int answer(const char *london, const char *paris, bool sending, struct ow_agreed *ret_agreed,
                  struct ow_message_open *ret_open, struct ow_error *why)
{
	static struct ow_config *here;
	ow_config_free(here);
	char tail[1000];
	snprintf(tail, sizeof tail, "    connect: a:1\n%s", london);
	struct ow_config *there = config_of(LONDON, tail);
	here = *paris == '!' ? NULL : config_of(PARIS, paris);
	int r = 0;
	if (here) {
		ow_agree_propose(&there->segments[0], &there->segments[0].classes[0], sending, ret_open);
		r = ow_agree_check(here, "london", ret_open, ret_agreed, why);
	}
	ow_config_free(there);
	return r;
}

static void accepts(void **state)
{
	(void)state;
	struct ow_agreed agreed;
	struct ow_message_open open;
	assert_int_equal(answer("", "", true, &agreed, &open, NULL), 0);
	assert_false(agreed.sending);
	assert_string_equal(agreed.class_name, "all");
	assert_null(agreed.filter);
	assert_int_equal(open.length_ns, 1000000000);
	assert_int_equal(open.horizon, 2);
	assert_int_equal(open.level, OW_MESSAGE_LEVEL_IP);
	assert_int_equal(answer("", "", false, &agreed, &open, NULL), 0);
	assert_true(agreed.sending);
	/* The connecting point's filter, unless this point has its own for the class. */
	const char *web = "    classes: [{name: web, filter: tcp port 443}]\n";
	assert_int_equal(answer(web, "", true, &agreed, &open, NULL), 0);
	assert_ptr_equal(agreed.filter, open.filter);
	assert_string_equal(agreed.filter, "tcp port 443");
	assert_int_equal(answer(web, "    classes: [{name: web, filter: tcp port 8443}]\n", true, &agreed, &open, NULL),
	                 0);
	assert_string_equal(agreed.filter, "tcp port 8443");
	const char *all = "    interval: 100ms\n    wait: 1s\n    method: rda\n    identity: nat\n    inner: true\n";
	assert_int_equal(answer(all, all, true, &agreed, &open, NULL), 0);
	assert_int_equal(open.horizon, 10);
	/* A class says it, or the segment; who says nothing accepts. */
	const char *exact = "    classes: [{name: web, exact: true}]\n";
	assert_int_equal(answer(exact, "", true, &agreed, &open, NULL), 0);
	assert_true(open.exact);
	assert_int_equal(answer(exact, "    exact: false\n    classes: [{name: web, exact: true}]\n", true, &agreed,
	                        &open, NULL),
	                 0);
	assert_int_equal(answer("    exact: true\n", "    exact: true\n", true, &agreed, &open, NULL), 0);
	assert_true(open.exact);
	answer("", "!", true, &agreed, &open, NULL);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *london, *paris, *why;
	} cases[] = {
		{"", "    interval: 2s\n", "interval is 2 s here and 1 s there"},
		{"    wait: 5s\n", "    wait: 3s\n", "wait is 3 s here and 5 s there"},
		{"", "    method: rda\n", "method is rda here and fold there"},
		{"    method: rda\n", "    method: fold\n", "method is fold here and rda there"},
		{"    identity: nat\n", "    identity: ip\n", "identity is ip here and nat there"},
		{"", "    inner: true\n", "inner is true here and false there"},
		{"", "    exact: true\n", "exact is true here and false there"},
		{"    exact: true\n", "    exact: false\n", "exact is false here and true there"},
		{"", "    classes: [{name: all, exact: true}]\n", "exact is true here and false there"},
		{"    exact: true\n    classes: [{name: web, exact: false}]\n",
	         "    exact: true\n    classes: [{name: web}]\n", "exact is true here and false there"},
		{"", "    classes: [{name: web}]\n", "no class 'all' here"},
		{"", "    connect: b:1\n", "both points connect"},
	};
	struct ow_agreed agreed;
	struct ow_message_open open;
	struct ow_error why;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(answer(cases[i].london, cases[i].paris, true, &agreed, &open, &why), -EINVAL);
		if (!strstr(why.text, cases[i].why))
			fail_msg("case %zu: '%s' instead of '%s'", i, why.text, cases[i].why);
	}
	struct ow_config *here = config_of(PARIS, "");
	assert_int_equal(ow_agree_check(here, "oslo", &open, &agreed, &why), -EINVAL);
	assert_non_null(strstr(why.text, "peer of the segment is 'london' here"));
	snprintf(open.segment, sizeof open.segment, "y");
	assert_int_equal(ow_agree_check(here, "london", &open, &agreed, &why), -EINVAL);
	assert_non_null(strstr(why.text, "no segment 'y' here"));
	ow_config_free(here);
	answer("", "!", true, &agreed, &open, NULL);
}

static void starts_in_the_future_of_both(void **state)
{
	(void)state;
	const int64_t s = 1000000000;
	assert_int_equal(ow_agree_t0(10 * s, 7 * s, s / 2, s), 11 * s);
	assert_int_equal(ow_agree_t0(7 * s, 10 * s, s / 2, s), 11 * s);
	assert_int_equal(ow_agree_t0(10 * s, 10 * s, s, s), 11 * s);
	assert_int_equal(ow_agree_t0(10 * s + 1, 0, s, 5 * s), 15 * s);
	assert_int_equal(ow_agree_later(11 * s, 10 * s, s, s), 11 * s);
	assert_int_equal(ow_agree_later(11 * s, 10 * s + 1, s, s), 12 * s);
	assert_int_equal(ow_agree_later(11 * s, 20 * s, s, 4 * s), 23 * s);
}

static void knows_clocks_that_are_apart(void **state)
{
	(void)state;
	const int64_t ms = 1000000;
	assert_true(ow_agree_clocks(100 * ms, 0, 2000 * ms));
	assert_true(ow_agree_clocks(-1999 * ms, 0, 2000 * ms));
	assert_false(ow_agree_clocks(2000 * ms, 0, 2000 * ms));
	assert_false(ow_agree_clocks(-37000 * ms, 300 * ms, 2000 * ms));
	/* A message that is old says less than the clock shows, never more. */
	assert_true(ow_agree_clocks(-60 * ms, 200 * ms, 50 * ms));
	assert_false(ow_agree_clocks(60 * ms, 200 * ms, 50 * ms));
	assert_false(ow_agree_clocks(-260 * ms, 200 * ms, 50 * ms));
	/* Half an interval, or the waiting time if that is less. */
	assert_int_equal(ow_agree_apart_max(1000 * ms, 2000 * ms), 500 * ms);
	assert_int_equal(ow_agree_apart_max(1000 * ms, 200 * ms), 200 * ms);
}

static void keeps_the_budget(void **state)
{
	(void)state;
	struct ow_retention r;
	ow_agree_retention(1000000000, 0, 1, &r);
	assert_int_equal(r.intervals_max, 6);
	assert_true(r.patience_ns >= OW_RETAIN_NS);
	ow_agree_retention(1000000000, -3000000000, 1, &r);
	assert_int_equal(r.intervals_max, 9);
	ow_agree_retention(INT64_C(300000000000), 0, 1, &r);
	assert_int_equal(r.intervals_max, OW_RETAIN_MIN);
	assert_true(r.patience_ns >= INT64_C(600000000000));
	ow_agree_retention(1000000, 0, 1000, &r);
	assert_int_equal(r.intervals_max, OW_RETAIN_MAX);
	assert_true(r.open_max <= 4096);

	/* Expected lanes get equal parts; however many follow, the budget holds. */
	const uint64_t memory = 1 << 28;
	uint64_t left = memory;
	for (unsigned expected = 8; expected > 0; expected--) {
		uint64_t share = ow_agree_share(left, expected, false, 0, 0);
		assert_true(share <= memory / 8 + 8 && share + 8 >= memory / 8);
		left -= share;
	}
	left = memory;
	for (int i = 0; i < 100; i++) {
		uint64_t share = ow_agree_share(left, 1, true, 0, 0);
		assert_true(share <= (left + 1) / 2);
		left -= share;
	}
	/* A lane that needs more than an equal part gets it; what the others need stays. */
	assert_int_equal(ow_agree_share(1000, 4, false, 100, 300), 250);
	assert_int_equal(ow_agree_share(1000, 4, false, 600, 300), 600);
	assert_int_equal(ow_agree_share(1000, 4, false, 100, 900), 100);
	assert_int_equal(ow_agree_share(1000, 4, false, 100, 950), 250); /* not enough for all */
	ow_agree_retention(1000000000, 0, 1, &r);
	assert_true(ow_agree_stamps(ow_agree_least(&r), &r) == OW_SIGHTINGS_LEAST);
	assert_int_equal(ow_agree_stamps(ow_agree_least(&r) - 1, &r), 0);
	assert_int_equal(ow_agree_stamps(1000, &r), 0);
	assert_true(ow_agree_stamps(memory / 2, &r) * OW_SIGHTING_BYTES * (r.intervals_max + 2) <= memory / 2);
}

/* A peer's filter must not make this point ask a resolver, nor cost a packet too much. */
static void filters(void **state)
{
	(void)state;
	static const char *const good[] = {
		"tcp port 443",
		"udp and not port domain",
		"host 10.0.0.1 or net 192.0.2.0/24",
		"ip6 host 2001:db8::1 or tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
		"ether host 00:11:22:aa:bb:cc",
		"tcp[13:1] & 0x2f != 0 and greater 100",
		"icmp[icmptype] = icmp-echo or proto \\udp",
		"portrange 7000-7100 and src 10.1.2.3",
		"vlan 7 and ip proto 17",
	};
	static const char *const bad[] = {
		"host www.example.com",
		"net example",
		"src evil",
		"tcp and host a.b",
		"host 1a.cafe",
		"host fe:ed.bad",
		"port 80 or dst x",
		"gateway router",
		"host dead.beef",
		"ether host printer",
		"host 10.0.0.1.example.com",
		"ip6 host fe80::1%eth0",
		"host \xc3\xa4.example",
		"tcp prt 4",
	};
	struct ow_error err;
	unsigned instructions;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (ow_agree_filter(good[i], &instructions, &err) < 0)
			fail_msg("%s: %s", good[i], err.text);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (ow_agree_filter(bad[i], &instructions, &err) != -EINVAL)
			fail_msg("%s: accepted", bad[i]);
	}
}

/* A budget in which nothing could be measured is refused with the figure. */
static void says_what_memory_is_needed(void **state)
{
	(void)state;
	static char text[64000];
	struct ow_config *config;
	struct ow_error err;
	for (int enough = 0; enough < 2; enough++) {
		size_t used = (size_t)snprintf(text, sizeof text,
		                               "point: paris\npsk: p\nlisten: ':8620'\nmemory: %s\n"
		                               "interfaces: [{name: lo}]\nsegments:\n",
		                               enough ? "1200MiB" : "256MiB");
		for (int i = 0; i < 200; i++)
			used += (size_t)snprintf(text + used, sizeof text - used,
			                         "  - {name: s%d, peer: p%d, interval: 100ms}\n", i, i);
		int r = ow_config_parse("t.yaml", text, used, &config, &err);
		assert_int_equal(r, enough ? 0 : -EINVAL);
		if (r == 0)
			ow_config_free(config);
		else
			assert_string_equal(
				err.text, "t.yaml: memory: 256 MiB, but 400 lanes (each class in two directions) need "
					  "at least 1159 MiB; with longer intervals they need less");
	}
}

static int64_t work_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void add_term(char *text, size_t size, const char *joint, const char *term)
{
	size_t used = strlen(text);
	int more = snprintf(text + used, size - used, "%s%s", used ? joint : "", term);
	if (more >= (int)(size - used))
		text[used] = 0;
}

/*
 * Filters of 2 kB that would take libpcap seconds are refused before it sees them; and none of any terms that are
 * accepted takes long. What counts as long is not a matter of milliseconds here: the machine may be slow, and cubed
 * costs show as seconds.
 */
static void filters_cost_little(void **state)
{
	(void)state;
	static const char *const costly[] = {"portrange 1-%u", "port %u", "not port %u", "(port %u or 7)",
	                                     "host 10.0.0.%u"};
	static const char *const any[] = {"port %u",        "portrange 1-%u",
	                                  "host 10.0.0.%u", "tcp[%u]=tcp[3]",
	                                  "vlan",           "net 10.%u.0.0/16",
	                                  "not port %u",    "len>%u",
	                                  "(port %u or 9)", "ip6",
	                                  "ip[%u]&7!=0",    "udp",
	                                  "pppoes",         "proto %u",
	                                  "less %u"};
	static const char *const joint[] = {"||", "&&", " or ", " and not "};
	struct ow_error err;
	unsigned instructions, accepted = 0;
	char text[OW_MESSAGE_FILTER], term[64];
	for (size_t k = 0; k < sizeof costly / sizeof *costly; k++) {
		text[0] = 0;
		for (unsigned i = 1; strlen(text) + 40 < sizeof text; i++) {
			snprintf(term, sizeof term, costly[k], i % 250);
			add_term(text, sizeof text, "||", term);
		}
		int64_t begin = work_ns();
		assert_int_equal(ow_agree_filter(text, &instructions, &err), -EINVAL);
		assert_non_null(strstr(err.text, " terms, at most 128"));
		assert_true(work_ns() - begin < INT64_C(500000000));
	}
	struct ow_random random;
	ow_random_seed(&random, 12);
	for (int run = 0; run < 300; run++) {
		text[0] = 0;
		size_t kind = ow_random_below(&random, 15), other = ow_random_below(&random, 15);
		unsigned terms = 1 + (unsigned)ow_random_below(&random, 60);
		for (unsigned i = 0; i < terms; i++) {
			snprintf(term, sizeof term, any[i % 2 ? kind : other],
			         1 + (unsigned)ow_random_below(&random, 250));
			add_term(text, sizeof text, joint[ow_random_below(&random, 4)], term);
		}
		int64_t begin = work_ns();
		accepted += ow_agree_filter(text, &instructions, &err) == 0;
		if (work_ns() - begin > INT64_C(2000000000))
			fail_msg("seed 12, run %d: '%s' takes %.1f s", run, text, (double)(work_ns() - begin) / 1e9);
	}
	assert_in_range(accepted, 50, 299);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(filters),
		cmocka_unit_test(filters_cost_little),
		cmocka_unit_test(refuses),
		cmocka_unit_test(starts_in_the_future_of_both),
		cmocka_unit_test(knows_clocks_that_are_apart),
		cmocka_unit_test(keeps_the_budget),
		cmocka_unit_test(says_what_memory_is_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
