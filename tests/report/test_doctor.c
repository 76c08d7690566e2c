/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as text: nothing is wider than the terminal but commands, and no name of an interface controls it. */
#include "report/doctor.h"

#include "base/format.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COMMAND "ethtool -K eth0 gro off; systemctl restart something-with-a-name-that-is-longer-than-a-line"

static struct ow_diagnoses findings;
static struct ow_link_facts links[OW_DOCTOR_LINKS + 2];

static int make(void **state)
{
	(void)state;
	struct ow_diagnosis *f = ow_diagnoses_add(&findings, "host", "clock_source");
	ow_found(f, OW_VERDICT_OK, "tsc");
	f = ow_diagnoses_add(&findings, "host", "memory");
	ow_found(f, OW_VERDICT_WARNING,
	         "1.5 MiB available, and a text that is certainly longer than a line of a terminal");
	ow_means(f, "Too little \033[2J: every interval would be sampled, from the first packet to the last of them.");
	ow_fix(f, "# add memory, or measure fewer classes of traffic with shorter intervals and smaller rings");
	f = ow_diagnoses_add(&findings, "eth0", "gro");
	ow_found(f, OW_VERDICT_PROBLEM, "on");
	ow_fix(f, COMMAND);
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		snprintf(links[i].name, sizeof links[i].name, i ? "eth%zu" : "a\033[31mb", i);
		links[i].speed_mbps = i % 2 ? 10000 : -1;
	}
	return 0;
}

static char *text_of(unsigned width, bool quiet, size_t link_count)
{
	char *text = NULL;
	size_t size;
	struct ow_style style = {.width = (int)width};
	struct ow_doctor_report report = {
		.host = "h\xffst", .findings = &findings, .links = links, .link_count = link_count, .list = true};
	FILE *out = open_memstream(&text, &size);
	ow_report_doctor_text(out, &report, &style, quiet);
	fclose(out);
	return text;
}

/* Commands stay whole, so that they can be copied. */
static void widths(void **state)
{
	(void)state;
	for (unsigned width = 32; width < 140; width++) {
		char *text = text_of(width, false, 3), *rest = text, *line;
		assert_non_null(strstr(text, "fix: " COMMAND "\n"));
		while ((line = strsep(&rest, "\n"))) {
			size_t length = strlen(line);
			if (!length)
				continue;
			if (!strstr(line, COMMAND) && !strstr(line, "Interfaces") && ow_format_columns(line) > width)
				fail_msg("%zu columns of %u: %s", ow_format_columns(line), width, line);
			assert_true(line[length - 1] != ' ');
			assert_null(strchr(line, '\033'));
			assert_null(strchr(line, '\xff'));
		}
		free(text);
	}
}

static void contents(void **state)
{
	(void)state;
	char *text = text_of(80, false, OW_DOCTOR_LINKS + 2);
	assert_non_null(strstr(text, "Host h?st\n  OK       clock source      tsc\n"));
	assert_non_null(strstr(text, "\nInterface eth0\n  problem  gro               on\n"));
	assert_non_null(strstr(text, "\n  a?[31mb         down       card\n"));
	assert_non_null(strstr(text, "\n  eth1            down       card         10.00 Gb/s\n"));
	assert_non_null(strstr(text, "\n  and 2 more\n\n1 problem, 1 warning\n"));
	free(text);
	text = text_of(80, true, 3);
	assert_null(strstr(text, "clock source"));
	assert_null(strstr(text, "Interfaces"));
	assert_non_null(strstr(text, "memory"));
	free(text);
}

static int done(void **state)
{
	(void)state;
	ow_diagnoses_done(&findings);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(widths), cmocka_unit_test(contents)};
	return cmocka_run_group_tests(tests, make, done);
}
