/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.yaml: the desired state of each point, and what is refused. */
#include "fleet/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char three[] = "classes: [{name: web, filter: tcp port 443}, {name: all}]\n"
			    "groups:\n"
			    "  - {name: edge, interfaces: [{name: eth0}], memory: 512MiB}\n"
			    "points:\n"
			    "  - {name: london, group: edge, address: '192.0.2.1:8620'}\n"
			    "  - {name: paris, group: edge, address: '192.0.2.2:8620', memory: 1GiB}\n"
			    "  - {name: oslo, interfaces: [{name: eth1}]}\n";
#define SEGMENTS                                                                           \
	"segments:\n"                                                                      \
	"  - {between: [london, paris], interval: 500ms, ends: {paris: {facing: away}}}\n" \
	"  - {name: north, between: [paris, oslo], classes: [{name: all}]}\n"

static struct ow_fleet_plan *plan_of(const char *text, const struct ow_discovered_segment *found, size_t count,
                                     struct ow_error *err)
{
	struct ow_fleet_plan *plan = NULL;
	err->text[0] = 0;
	struct ow_fleet_plan_options options = {.found = found, .found_count = count};
	ow_fleet_plan_make("fleet.yaml", text, strlen(text), &options, &plan, err);
	return plan;
}

static void three_points(void **state)
{
	(void)state;
	struct ow_error err;
	char text[2000];
	snprintf(text, sizeof text, "%s%s", three, SEGMENTS);
	struct ow_fleet_plan *plan = plan_of(text, NULL, 0, &err);
	if (!plan)
		fail_msg("%s", err.text);
	assert_int_equal(plan->count, 3);
	assert_string_equal(
		plan->points[0].body,
		"listen: \":8620\"\n"
		"memory: \"512MiB\"\n"
		"interfaces: [{\"name\": \"eth0\"}]\n"
		"segments:\n"
		"  - {name: \"london-paris\", peer: paris, connect: \"192.0.2.2:8620\", interval: \"500ms\", "
		"classes: [{\"name\": \"web\", \"filter\": \"tcp port 443\"}, {\"name\": \"all\"}]}\n");
	assert_string_equal(plan->points[1].body,
	                    "listen: \":8620\"\n"
	                    "memory: \"1GiB\"\n"
	                    "interfaces: [{\"name\": \"eth0\"}]\n"
	                    "segments:\n"
	                    "  - {name: \"london-paris\", peer: london, facing: \"away\", interval: \"500ms\", "
	                    "classes: [{\"name\": \"web\", \"filter\": \"tcp port 443\"}, {\"name\": \"all\"}]}\n"
	                    "  - {name: \"north\", peer: oslo, classes: [{\"name\": \"all\"}]}\n");
	/* oslo has no address, so it connects. */
	assert_string_equal(plan->points[2].body,
	                    "interfaces: [{\"name\": \"eth1\"}]\n"
	                    "segments:\n"
	                    "  - {name: \"north\", peer: paris, connect: \"192.0.2.2:8620\", classes: [{\"name\": "
	                    "\"all\"}]}\n");
	ow_fleet_plan_free(plan);
}

static void discovered(void **state)
{
	(void)state;
	struct ow_error err;
	char text[2000];
	/* Packets to oslo come in at the only interface of paris. London's wan0 is not in fleet.yaml, oslo's eth9 neither. */
	struct ow_discovered_segment found[] = {
		{{"london", {"eth0", "wan0"}, 2, false}, {"paris", {"eth0"}, 1, false}, 1, 0},
		{{"oslo", {"eth1"}, 1, false}, {"paris", {"eth0"}, 1, true}, 1, 0},
		{{"oslo", {"eth1"}, 1, false}, {"rome", {"eth0"}, 1, false}, 1, 0},
		{{"oslo", {"eth1"}, 1, false}, {"oslo", {"eth1"}, 1, false}, 1, 0},
		{{"london", {"eth0"}, 1, false}, {"oslo", {"eth9"}, 1, false}, 1, 0}};
	snprintf(text, sizeof text, "%ssegments: discover\ndiscovery: {key: sixteen letters and more}\n", three);
	struct ow_fleet_plan *plan = plan_of(text, found, 5, &err);
	if (!plan)
		fail_msg("%s", err.text);
	assert_true(plan->discover);
	assert_non_null(strstr(plan->points[0].body, "{name: \"london-paris\", peer: paris, connect: "
	                                             "\"192.0.2.2:8620\", interfaces: [\"eth0\"], classes:"));
	assert_null(strstr(plan->points[0].body, "oslo"));
	assert_non_null(strstr(plan->points[1].body, "peer: oslo, interfaces: [\"eth0\"], facing: away, "));
	assert_non_null(strstr(plan->points[2].body, "oslo-paris"));
	assert_null(strstr(plan->points[2].body, "rome"));
	ow_fleet_plan_free(plan);
	/* A point whose own file has its interfaces: they are those of its samples. */
	snprintf(text, sizeof text,
	         "points: [{name: oslo, address: 'a:1'}, {name: rome}]\nsegments: discover\n"
	         "discovery: {key: sixteen letters and more}\n");
	if (!(plan = plan_of(text, found, 5, &err)))
		fail_msg("%s", err.text);
	assert_non_null(strstr(plan->points[0].body, "peer: rome, interfaces: [\"eth1\"]}"));
	ow_fleet_plan_free(plan);
	snprintf(text, sizeof text, "%ssegments: discover\ndiscovery: {key: sixteen letters and more}\n", three);
	/* Nothing is known yet: the points watch, and wait. */
	plan = plan_of(text, NULL, 0, &err);
	assert_non_null(plan);
	assert_null(strstr(plan->points[0].body, "segments"));
	ow_fleet_plan_free(plan);
}

/* A router between two points: a packet would be in both directions of a segment that watches all of it. */
static void sides_are_noted(void **state)
{
	(void)state;
	static const char text[] = "points:\n"
				   "  - {name: a, address: 'a:1', interfaces: [{name: eth0}]}\n"
				   "  - {name: r, interfaces: [{name: left}, {name: right}]}\n"
				   "  - {name: z, address: 'z:1', interfaces: [{name: eth0}]}\n"
				   "segments:\n"
				   "  - {between: [a, r]}\n"
				   "  - {between: [r, z], ends: {r: {interfaces: [right]}}}\n";
	struct ow_error err;
	struct ow_fleet_plan *plan = plan_of(text, NULL, 0, &err);
	if (!plan)
		fail_msg("%s", err.text);
	assert_string_equal(
		plan->notes,
		"fleet.yaml:6: all 2 interfaces of r are watched for a: if packets of the segment come in at "
		"one and leave at another, name those that lead to a: ends: {r: {interfaces: [...]}}\n");
	ow_fleet_plan_free(plan);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *more, *why;
	} cases[] = {
		{"segments: [{between: [london, rome]}]\n", "there is no point 'rome'"},
		{"segments: [{between: [london]}]\n", "list of two points"},
		{"segments: [{between: [london, london]}]\n", "two different points"},
		{"segments: [{between: [london, paris], ends: {oslo: {facing: away}}}]\n", "names of the two points"},
		{"segments: [{between: [london, paris], intervall: 1s}]\n", "did you mean 'interval'"},
		{"segments: [{between: [london, paris], interval: 1}]\n", "point 'london'"},
		{"segments: [{between: [london, paris], ends: {london: {connect: x}}}]\n", "point 'london'"},
		{"segments:\n- {between: [london, paris]}\n- {name: london-paris, between: [oslo, paris]}\n",
	         "fleet.yaml:10: segment 'london-paris' is in line 9 already"},
		{"segments: discovr\n", "must be a list, or 'discover'"},
		{"segments: [{between: [london, paris], classes: [{name: a, filter: 'no such thing'}]}]\n", "filter"},
		{"segments: 7\n", "must be a list"},
		{"pionts: []\n", "did you mean 'points'"},
		{"canary: 2\n", "is not a share"},
	};
	struct ow_error err;
	char text[2000];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, "%s%s", three, cases[i].more);
		struct ow_fleet_plan *plan = plan_of(text, NULL, 0, &err);
		if (plan || !strstr(err.text, cases[i].why))
			fail_msg("%zu: '%s' instead of '%s'", i, err.text, cases[i].why);
	}
	static const struct {
		const char *text, *why;
	} whole[] = {
		{"points: [{name: a.b}]\n", "not a name for a point of a fleet"},
		{"points: [{name: station}]\n", "not a name for a point of a fleet"},
		{"points: [{name: a}, {name: a}]\n", "twice"},
		{"points: [{name: a, group: g}]\n", "no group 'g'"},
		{"points: [{name: a, user: root}]\n", "unknown key 'user'"},
		{"points: [{name: a, store: /etc/x}]\n", "unknown key 'store'"},
		{"points: [{name: a, interfaces: [{file: /etc/x}]}]\n", "a 'file' can only"},
		{"points: [{name: a}, {name: b}]\nsegments: [{between: [a, b]}]\n", "neither a nor b has an address"},
		{"groups: [{name: g, address: 'x:1'}]\npoints: [{name: a}]\n", "a group has no address"},
		{"classes: []\n", "'points'"},
		{"[a]\n", "must be keys"},
		{"", "is empty"},
	};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		struct ow_fleet_plan *plan = plan_of(whole[i].text, NULL, 0, &err);
		if (plan || !strstr(err.text, whole[i].why))
			fail_msg("%zu: '%s' instead of '%s'", i, err.text, whole[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_points),
		cmocka_unit_test(discovered),
		cmocka_unit_test(sides_are_noted),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
