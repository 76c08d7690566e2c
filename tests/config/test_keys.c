/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of keys: values with their limits, and that the documentation contains the tables. */
#include "config/config_station.h"
#include "config/config.h"
#include "fleet/plan.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
	const char *page;
	const struct ow_key *keys;
} tables[] = {
	{"config.md", ow_config_keys},          {"config.md", ow_interface_keys},
	{"config.md", ow_segment_keys},         {"config.md", ow_discovery_keys},
	{"config.md", ow_fleet_keys},           {"config.md", ow_flows_keys},
	{"plane.md", ow_station_keys},          {"fleet.md", ow_fleet_plan_keys},
	{"fleet.md", ow_fleet_plan_point_keys}, {"fleet.md", ow_fleet_plan_segment_keys},
};

static char *load(const char *page)
{
	static char text[1 << 20];
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", getenv("OW_DOCS"), page);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = 0;
	fclose(file);
	return text;
}

/* A table as the pages have it. */
static void put_markdown(FILE *out, const struct ow_key *table)
{
	fputs("| key | default | meaning |\n|---|---|---|\n", out);
	for (const struct ow_key *key = table; key->name; key++) {
		/* Keys that are described together are in one row. */
		const struct ow_key *last = key;
		fprintf(out, "| `%s`", key->name);
		while (last[1].name && !last[1].meaning)
			fprintf(out, ", `%s`", (++last)->name);
		fputs(" | ", out);
		for (const struct ow_key *k = key; k <= last && k->fallback; k++) {
			const char *quote = k->type == OW_KEY_OTHER ? "" : "`";
			fprintf(out, "%s%s%s%s", k == key ? "" : ", ", quote, k->fallback, quote);
		}
		fprintf(out, "%s| %s |\n", key->fallback ? " " : "", key->meaning);
		key = last;
	}
}

/* Every row of every table is in its page. */
static void documented(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		char *rows = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&rows, &size);
		put_markdown(out, tables[i].keys);
		fclose(out);
		const char *page = load(tables[i].page);
		for (char *row = rows, *end; (end = strchr(row, '\n')); row = end + 1) {
			*end = 0;
			if (!strstr(page, row))
				fail_msg("docs/%s lacks this row: %s", tables[i].page, row);
		}
		free(rows);
	}
}

/* Defaults are values that could be written. */
static void defaults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		for (const struct ow_key *key = tables[i].keys; key->name; key++) {
			uint64_t field[2];
			struct ow_error why;
			if (key->fallback && key->type != OW_KEY_OTHER &&
			    ow_key_set(key, key->fallback, field, &why) < 0)
				fail_msg("%s: %s", key->name, why.text);
			assert_true(key->type != OW_KEY_OTHER || key->read);
			assert_true(key->type != OW_KEY_CHOICE || key->choices);
		}
	}
}

/* The limits themselves are allowed, what is beyond is not, and says why. */
static void limits(void **state)
{
	(void)state;
	static const struct ow_key count = {.name = "n", .type = OW_KEY_COUNT, .least = 2, .most = 64},
				   size = {.name = "n", .type = OW_KEY_SIZE, .least = 1 << 20, .most = 4 << 20},
				   duration = {.name = "n",
	                                       .type = OW_KEY_DURATION,
	                                       .least = 1000,
	                                       .most = 1000000000,
	                                       .or_zero = true},
				   real = {.name = "n", .type = OW_KEY_REAL, .most = 1000},
				   share = {.name = "n", .type = OW_KEY_SHARE},
				   peer = {.name = "n", .type = OW_KEY_PEER};
	static const struct {
		const struct ow_key *key;
		const char *text;
		bool good;
	} cases[] = {
		{&count, "2", true},      {&count, "64", true},
		{&count, "1", false},     {&count, "65", false},
		{&count, "-2", false},    {&count, "2x", false},
		{&count, "", false},      {&count, "99999999999999999999", false},
		{&size, "1MiB", true},    {&size, "4096K", true},
		{&size, "1", false},      {&size, "5MiB", false},
		{&duration, "1us", true}, {&duration, "1s", true},
		{&duration, "0", true},   {&duration, "999ns", false},
		{&duration, "2s", false}, {&duration, "-1s", false},
		{&duration, "1", false},  {&real, "0.5", true},
		{&real, "1000", true},    {&real, "0", false},
		{&real, "nan", false},    {&real, "1001", false},
		{&share, "1%", true},     {&share, "0", true},
		{&share, "1", true},      {&share, "101%", false},
		{&share, "%", false},     {&share, "nan", false},
		{&peer, "[::1]:1", true}, {&peer, "a.example:65535", true},
		{&peer, ":1", false},     {&peer, "a:0", false},
		{&peer, "::1:5", false},  {&peer, "a:65536", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t field[2] = {0};
		struct ow_error why = {""};
		int r = ow_key_set(cases[i].key, cases[i].text, field, &why);
		if ((r == 0) != cases[i].good || (r < 0 && !*why.text))
			fail_msg("'%s': %d %s", cases[i].text, r, why.text);
	}
}

int main(int argc, char **argv)
{
	/* --print N: a table, to be put into the documentation. */
	if (argc > 2 && strcmp(argv[1], "--print") == 0) {
		unsigned long number = strtoul(argv[2], NULL, 10);
		if (number >= sizeof tables / sizeof *tables)
			return 2;
		put_markdown(stdout, tables[number].keys);
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documented),
		cmocka_unit_test(defaults),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
