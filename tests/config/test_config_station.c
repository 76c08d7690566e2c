/* SPDX-License-Identifier: Apache-2.0 */
/* The station's configuration, and which place a result belongs to. */
#include "config/config_station.h"
#include "base/time.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static int read_text(const char *text, struct ow_station **ret_station, struct ow_error *err)
{
	char path[] = "/tmp/oneway-station-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	int r = ow_station_read(path, ret_station, err);
	unlink(path);
	return r;
}

static void every_key(void **state)
{
	(void)state;
	struct ow_station *station;
	struct ow_error err = {""};
	if (read_text("network: net.intra\n"
	              "default_cost: 2.5\n"
	              "refresh: 5s\n"
	              "hold: 90s\n"
	              "stale: 20s\n"
	              "false_alarms: 5000\n"
	              "names: {10.0.0.1: A, 10.0.0.2: B}\n"
	              "m_routers: [A, B]\n"
	              "places:\n"
	              "  - {segment: eth0-eth1, class: voice, from: eth0, to: eth1, place: 'A[B>C]'}\n"
	              "targets:\n"
	              "  - {name: calls, from: A, to: B, class: voice, mean: 5ms, loss: 0.1%}\n"
	              "  - {from: B, to: A}\n",
	              &station, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(station->network, "/tmp/net.intra");
	assert_true(station->default_cost == 5 * OW_COST_ONE / 2);
	assert_true(station->refresh_ns == 5 * OW_NS_PER_S && station->options.hold_ns == 90 * OW_NS_PER_S);
	assert_true(station->options.stale_ns == 20 * OW_NS_PER_S && station->options.false_alarms == 5000);
	assert_int_equal(station->routers, 2);
	assert_string_equal(station->router_id[1], "10.0.0.2");
	assert_string_equal(station->router_name[1], "B");
	assert_int_equal(station->mrouters, 2);
	assert_int_equal(station->places, 1);
	assert_int_equal(station->targets, 2);
	assert_string_equal(station->target[0].name, "calls");
	assert_true(station->target[0].max_mean_ns == 5e6 && fabs(station->target[0].max_loss - 0.001) < 1e-12);
	assert_string_equal(station->target[1].name, "B to A");
	assert_true(isnan(station->target[1].max_mean_ns) && isnan(station->target[1].max_loss));
	ow_station_free(station);
	assert_int_equal(
		read_text("network: {vtysh: vtysh, socket: /run/frr}\ntargets: [{from: A, to: B}]\n", &station, &err),
		0);
	assert_null(station->network);
	assert_string_equal(station->vtysh_socket, "/run/frr");
	ow_station_free(station);
}

/* What is wrong, with its line. */
static void wrong(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "empty"},
		{"[a, b]\n", ":1:"},
		{"network: n\n", "targets is missing"},
		{"network: n\ntarget: []\n", ":2: unknown key 'target', did you mean 'targets'?"},
		{"network: {socket: /run/frr}\n", "'vtysh' is missing"},
		{"network: {vtysh: v, sockets: s}\n", "unknown key 'sockets'"},
		{"network: n\ntargets:\n  - {from: A}\n", ":3: 'to' of target 1 is missing"},
		{"network: n\ntargets:\n  - {to: A}\n", "'from' of target 1 is missing"},
		{"network: n\ntargets:\n  - {from: A, to: B, mean: fast}\n", ":3: mean of target 1: "},
		{"network: n\ntargets:\n  - {from: A, to: B, mean: -1ms}\n", ":3: mean of target 1: "},
		{"network: n\ntargets:\n  - {from: A, to: B, loss: 200%}\n", "'200%' is not a share"},
		{"network: n\ntargets:\n  - {from: A, to: B, max: 1}\n", "unknown key 'max'"},
		{"network: n\nplaces:\n  - {segment: s}\n", "'place' of place 1 is missing"},
		{"network: n\nplaces: s\n", "places: must be a list"},
		{"network: n\nplaces:\n  - {where: s, place: p}\n", "unknown key 'where'"},
		{"network: n\nm_routers: {A: B}\n", "m_routers: must be a list"},
		{"network: n\nfalse_alarms: 0\n", "false_alarms: "},
		{"network: n\nfalse_alarms: few\n", "false_alarms: "},
		{"network: n\ndefault_cost: -1\n", "default_cost: "},
		{"network: n\nnames: [A]\n", "names: must be ids with names"},
		{"network: n\nrefresh: 0s\n", "refresh: "},
		{"network: n\nstale: [1s]\n", "stale: must be a single value"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ow_station *station = NULL;
		struct ow_error err = {""};
		assert_true(read_text(cases[i].text, &station, &err) < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
	struct ow_station *station;
	struct ow_error err;
	assert_int_equal(ow_station_read("/nonexistent.yaml", &station, &err), -ENOENT);
}

static bool place_of(const struct ow_station *station, const char *segment, const char *class_name, const char *from,
                     const char *to, char place[OW_PLACE_TEXT])
{
	struct ow_interval_result result = {0};
	snprintf(result.segment, sizeof(result.segment), "%s", segment);
	snprintf(result.class_name, sizeof(result.class_name), "%s", class_name);
	snprintf(result.from, sizeof(result.from), "%s", from);
	snprintf(result.to, sizeof(result.to), "%s", to);
	return ow_station_place(station, &result, place);
}

static void places_of_results(void **state)
{
	(void)state;
	static const struct {
		const char *segment, *class_name, *from, *to, *place; /* NULL: none */
	} cases[] = {
		{"F>E>D", "all", "F", "D", "F>E>D"},
		{"F>E>D", "all", "D", "F", "D>E>F"},
		{"F>E>D", "", "F", "D", "F>E>D"},
		{"F>C", "voice", "F", "C", "F>C/voice"},
		{"F>C", "voice", "C", "F", "C>F/voice"},
		{"ab>abc", "all", "abc", "ab", "abc>ab"},
		{"F[A>C]", "all", "A", "C", "F[A>C]"},
		{"F[A>C]", "all", "C", "A", "F[C>A]"},
		{"F[A>C]", "voice", "C", "A", "F[C>A]/voice"},
		/* Whose direction cannot be told belongs nowhere: it would mix both. */
		{"F>C", "all", "london", "paris", NULL},
		{"F>C", "all", "F", "paris", NULL},
		{"F>C", "all", "F", "F", NULL},
		{"F[A>C]", "all", "eth0", "eth1", NULL},
		{"F[A>C]", "all", "A", "E", NULL},
		{"london-paris", "all", "london", "paris", NULL},
		{"", "all", "", "", NULL},
		/* As the station says. */
		{"eth0-eth1", "all", "eth0", "eth1", "F[A>C]"},
		{"eth0-eth1", "all", "eth1", "eth0", "F[C>A]"},
		{"eth0-eth1", "voice", "eth0", "eth1", "F[A>C]/voice"},
		{"any", "dns", "x", "y", "B>F/dns"},
	};
	struct ow_station *station;
	struct ow_error err = {""};
	if (read_text("network: n\nplaces:\n"
	              "  - {segment: eth0-eth1, from: eth0, place: 'F[A>C]'}\n"
	              "  - {segment: eth0-eth1, from: eth1, place: 'F[C>A]'}\n"
	              "  - {class: dns, place: B>F}\n"
	              "targets: [{from: A, to: B}]\n",
	              &station, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char place[OW_PLACE_TEXT];
		bool found =
			place_of(station, cases[i].segment, cases[i].class_name, cases[i].from, cases[i].to, place);
		if (found != (cases[i].place != NULL) || (found && strcmp(place, cases[i].place) != 0))
			fail_msg("%s from %s to %s: %s", cases[i].segment, cases[i].from, cases[i].to,
			         found ? place : "none");
	}
	ow_station_free(station);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_key), cmocka_unit_test(wrong),
	                                   cmocka_unit_test(places_of_results)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
