/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real captures: pairs from two points with known numbers, and a collection of odd files that must give a result or a
 * reason.
 */
#include "scenario.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PATH_SIZE 512
#define FILES_MAX 1024

static const char *traces; /* the folder, or NULL when there is none */

static char current[PATH_SIZE]; /* the file that is looked at */

static int say_file(void **state)
{
	(void)state;
	if (current[0])
		print_message("file %s\n", current);
	return 0;
}

static int find_traces(void **state)
{
	(void)state;
	const char *path = getenv("OW_TRACES");
	DIR *dir = path ? opendir(path) : NULL;
	if (!dir)
		print_message("no traces in %s (OW_TRACES): skipped\n", path ? path : "?");
	else
		closedir(dir);
	traces = dir ? path : NULL;
	return 0;
}

static void need(const char *path)
{
	FILE *f = traces ? fopen(path, "r") : NULL;
	if (!f) {
		print_message("%s is missing\n", path);
		skip();
	}
	fclose(f);
}

static char *trace(char path[PATH_SIZE], const char *folder, const char *name)
{
	(void)snprintf(path, PATH_SIZE, "%s/%s/%s", traces ? traces : "?", folder, name);
	return path;
}

/* Matches two files; what every result must fulfil is checked. NULL with err filled when they cannot be matched. */
static struct ow_match *match(const char *a, const char *b, struct ow_error *err)
{
	struct ow_match_options options;
	struct ow_match *result = NULL;
	ow_match_defaults(&options);
	err->text[0] = '\0';
	int r = ow_match_files(a, b, &options, &result, err);
	if (r < 0) {
		assert_null(result);
		assert_true(strlen(err->text) > 10);
		assert_null(strchr(err->text, '\n'));
		return NULL;
	}
	scenario_conserved(ow_match_report(result));
	return result;
}

static struct ow_match *match_pair(const char *a, const char *b)
{
	char path_a[PATH_SIZE], path_b[PATH_SIZE];
	struct ow_error err;
	need(trace(path_a, "twopoint", a));
	need(trace(path_b, "twopoint", b));
	struct ow_match *m = match(path_a, path_b, &err);
	if (!m)
		fail_msg("%s %s: %s", a, b, err.text);
	return m;
}

/* The numbers that its authors give: 1000 packets, 4410 to 4670 ns, 4546 on average. */
static void det6g_nocross(void **state)
{
	(void)state;
	struct ow_match *m = match_pair("det6g_nocross_downstream.pcap", "det6g_nocross_upstream.pcap");
	const struct ow_match_report *report = ow_match_report(m);
	const struct ow_result *r = &report->direction[OW_A_TO_B];
	assert_int_equal(r->matched, 1000);
	assert_int_equal(r->lost + r->extra + r->ambiguous, 0);
	assert_int_equal(r->delay.min_ns, 4410);
	assert_int_equal(r->delay.max_ns, 4670);
	assert_int_equal(lround(r->delay.mean_ns), 4546);
	assert_false(report->has_direction[OW_B_TO_A]);
	ow_match_free(m);
}

/* The other way round the same packets go from B to A. */
static void det6g_nocross_reversed(void **state)
{
	(void)state;
	struct ow_match *m = match_pair("det6g_nocross_upstream.pcap", "det6g_nocross_downstream.pcap");
	const struct ow_result *r = &ow_match_report(m)->direction[OW_B_TO_A];
	assert_int_equal(r->matched, 1000);
	assert_int_equal(r->delay.min_ns, 4410);
	assert_int_equal(ow_match_report(m)->direction[OW_A_TO_B].sent, 0);
	ow_match_free(m);
}

/* An emulated network with 10 ms in either direction, without loss. */
static void pres_mptcp(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"pres_mptcpA_h1_eth0.pcap", "pres_mptcpA_sv_eth0.pcap"},
		{"pres_mptcpA_h1_eth1.pcap", "pres_mptcpA_sv_eth1.pcap"},
	};
	for (unsigned i = 0; i < 2; i++) {
		struct ow_match *m = match_pair(pairs[i][0], pairs[i][1]);
		const struct ow_match_report *report = ow_match_report(m);
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			const struct ow_result *r = &report->direction[d];
			assert_true(r->matched > 1000);
			assert_int_equal(r->lost + r->extra + r->ambiguous, 0);
			assert_in_range(r->delay.min_ns, 10000000, 10200000);
		}
		assert_int_equal(report->unclassified[OW_SIDE_A] + report->outside_overlap[OW_SIDE_A], 0);
		ow_match_free(m);
	}
}

/* Four points around a proxy: neighbours share packets or not, but no delay is far below zero. */
static void cethproxy(void **state)
{
	(void)state;
	static const char *const points[] = {"client", "proxy_eth0", "proxy_eth1", "server"};
	unsigned results = 0;
	for (unsigned i = 0; i < 16; i++) {
		char a[PATH_SIZE], b[PATH_SIZE], name[64];
		struct ow_error err;
		(void)snprintf(name, sizeof name, "cethproxy_%s.pcap", points[i / 4]);
		need(trace(a, "twopoint", name));
		(void)snprintf(name, sizeof name, "cethproxy_%s.pcap", points[i % 4]);
		need(trace(b, "twopoint", name));
		struct ow_match *m = match(a, b, &err);
		for (unsigned d = 0; m && d < OW_DIRECTIONS; d++) {
			const struct ow_delay *delay = &ow_match_report(m)->direction[d].delay;
			if (delay->samples)
				assert_true(delay->min_ns > -100000);
		}
		results += m != NULL;
		ow_match_free(m);
	}
	assert_true(results >= 6); /* each with itself, and the server with the proxy's far side */
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

static unsigned list(const char *folder, char *name[FILES_MAX])
{
	char path[PATH_SIZE];
	unsigned n = 0;
	DIR *dir = traces ? opendir(trace(path, folder, "")) : NULL;
	for (struct dirent *entry; dir && n < FILES_MAX && (entry = readdir(dir));) {
		if (entry->d_name[0] != '.' && (name[n] = strdup(entry->d_name)))
			n++;
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(name, n, sizeof *name, by_name);
	return n;
}

/* A capture matched with itself: nothing lost, nothing extra, no delay. */
static void check_self(const struct ow_match_report *report)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *r = &report->direction[d];
		assert_int_equal(r->lost, 0);
		assert_int_equal(r->extra, 0);
		assert_int_equal(r->reordered, 0);
		if (r->delay.samples)
			assert_true(r->delay.min_ns == 0 && r->delay.max_ns == 0);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		assert_int_equal(report->unclassified[side], 0);
		assert_int_equal(report->outside_overlap[side], 0);
	}
}

static void each_with_itself(const char *folder, unsigned least_results)
{
	char *name[FILES_MAX];
	unsigned n = list(folder, name), results = 0;
	if (!n)
		skip();
	for (unsigned i = 0; i < n; i++) {
		char path[PATH_SIZE];
		struct ow_error err;
		struct ow_match *m = match(trace(path, folder, name[i]), path, &err);
		if (m) {
			(void)snprintf(current, sizeof current, "%s", name[i]);
			check_self(ow_match_report(m));
		}
		current[0] = '\0';
		results += m != NULL;
		ow_match_free(m);
		free(name[i]);
	}
	print_message("%u of %u files were matched with themselves, the others refused\n", results, n);
	assert_true(results >= least_results);
}

static void zoo_with_itself(void **state)
{
	(void)state;
	each_with_itself("zoo", 100);
}

static void pairs_with_themselves(void **state)
{
	(void)state;
	each_with_itself("twopoint", 10);
}

static void zoo_with_its_neighbours(void **state)
{
	(void)state;
	char *name[FILES_MAX];
	unsigned n = list("zoo", name), refused = 0;
	if (!n)
		skip();
	for (unsigned i = 0; i < n; i++) {
		char a[PATH_SIZE], b[PATH_SIZE];
		struct ow_error err;
		struct ow_match *m = match(trace(a, "zoo", name[i]), trace(b, "zoo", name[(i + 1) % n]), &err);
		refused += m == NULL;
		ow_match_free(m);
	}
	for (unsigned i = 0; i < n; i++)
		free(name[i]);
	print_message("%u of %u pairs of strangers were refused\n", refused, n);
	assert_true(refused > n / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(det6g_nocross),
		cmocka_unit_test(det6g_nocross_reversed),
		cmocka_unit_test(pres_mptcp),
		cmocka_unit_test(cethproxy),
		cmocka_unit_test_teardown(pairs_with_themselves, say_file),
		cmocka_unit_test_teardown(zoo_with_itself, say_file),
		cmocka_unit_test(zoo_with_its_neighbours),
	};
	return cmocka_run_group_tests(tests, find_traces, NULL);
}
