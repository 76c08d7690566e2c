/* SPDX-License-Identifier: Apache-2.0 */
/* Plots are drawn by the real gnuplot if it is installed; a stand-in on the PATH fails on purpose. */
#include "report/plot.h"
#include "sample.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/oneway-plot-XXXXXX";

static struct ow_plot *filled(int packets, int64_t delay_ns, int64_t step_ns)
{
	struct ow_plot *plot;
	assert_int_equal(ow_plot_create(0, &plot), 0);
	for (int i = 0; i < packets; i++) {
		int64_t time = INT64_C(1700000000000000000) + i * INT64_C(1000000);
		struct ow_packet_event event = {
			.fate = i % 10 == 9   ? OW_FATE_LOST
		                : i % 10 == 8 ? OW_FATE_EXTRA
		                              : OW_FATE_MATCHED,
			.direction = i % 2 ? OW_B_TO_A : OW_A_TO_B,
			.ambiguous = i % 10 == 7,
			.packets = 1,
		};
		event.time_ns[i % 2] = time;
		event.time_ns[!(i % 2)] = time + delay_ns + i * step_ns;
		assert_int_equal(ow_plot_add(plot, &event), 0);
	}
	return plot;
}

static bool gnuplot_missing(void)
{
	if (system("gnuplot --version >/dev/null 2>&1") == 0) /* NOLINT(cert-env33-c): a constant */
		return false;
	print_message("skipped: gnuplot is not installed\n");
	return true;
}

static void draw(const struct ow_plot *plot, const struct ow_match_report *report, const char *name, const char *magic)
{
	char path[200], head[16] = "";
	snprintf(path, sizeof path, "%s/%s", folder, name);
	struct ow_error err = {""};
	int r = ow_plot_write(plot, report, NULL, path, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(head, 1, sizeof head - 1, file) > 8);
	assert_non_null(strstr(head, magic));
	fclose(file);
	unlink(path);
}

/* Few and many packets, one value, a wide and a negative range, clocks far apart, nothing at all, awkward names. */
static void pictures(void **state)
{
	(void)state;
	static const struct {
		int packets;
		int64_t delay_ns, step_ns;
	} cases[] = {{0, 0, 0},
	             {1, 5, 0},
	             {10, 0, 0},
	             {8000, 4410, 0},
	             {8000, 1000, 1000},
	             {8000, -500, 1},
	             {8000, 37000000000, 10},
	             {8, 1, INT64_C(1) << 58}};
	if (gnuplot_missing())
		skip();
	struct ow_match_report report = sample_report();
	report.capture[OW_SIDE_A].path = "it's \"A\" \\ `date` $x {/Bold} @PATH\n%s.pcap";
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_plot *plot = filled(cases[i].packets, cases[i].delay_ns, cases[i].step_ns);
		report.has_direction[OW_B_TO_A] = i % 2 == 0;
		draw(plot, &report, "a.svg", "<?xml");
		draw(plot, &report, "a.png", "PNG");
		ow_plot_free(plot);
	}
}

/* Delays from 1 us to 1 s, for which the axis is logarithmic, before a direction without delays. */
static void nothing_after_a_logarithmic_axis(void **state)
{
	(void)state;
	struct ow_plot *plot;
	if (gnuplot_missing())
		skip();
	struct ow_match_report report = sample_report();
	assert_int_equal(ow_plot_create(0, &plot), 0);
	for (int64_t i = 0; i < 1000; i++) {
		struct ow_packet_event event = {.fate = OW_FATE_MATCHED, .direction = OW_A_TO_B, .packets = 1};
		event.time_ns[OW_SIDE_A] = INT64_C(1700000000000000000) + i * 1000000;
		event.time_ns[OW_SIDE_B] = event.time_ns[OW_SIDE_A] + (i % 100 ? 1000 + i : 1000000000);
		assert_int_equal(ow_plot_add(plot, &event), 0);
	}
	report.has_direction[OW_B_TO_A] = true;
	draw(plot, &report, "a.svg", "<?xml");
	ow_plot_free(plot);
}

static void refuse(const char *name, const char *reason)
{
	char path[200];
	struct ow_error err = {""};
	struct ow_match_report report = sample_report();
	struct ow_plot *plot = filled(100, 1000, 1);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_true(ow_plot_write(plot, &report, NULL, path, &err) < 0);
	if (!strstr(err.text, reason))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, reason));
	assert_int_not_equal(access(path, F_OK), 0);
	ow_plot_free(plot);
}

static void stand_in(const char *script)
{
	char path[200];
	snprintf(path, sizeof path, "%s/gnuplot", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	close(fd);
}

static void failures_are_told(void **state)
{
	(void)state;
	char path[4000], ours[4100];
	snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
	refuse("a.gif", "does not end in .svg or .png");
	refuse("none/a.svg", "No such file or directory");
	setenv("PATH", folder, 1);
	refuse("a.svg", "gnuplot is not installed (Debian package gnuplot-nox)");
	snprintf(ours, sizeof ours, "%s:%s", folder, path);
	setenv("PATH", ours, 1);
	stand_in("#!/bin/sh\nprintf 'plot x\\n     ^\\nline 1: no such thing\\n\\n' >&2; exit 1\n");
	refuse("a.svg", "gnuplot failed: line 1: no such thing");
	stand_in("#!/bin/sh\nkill -9 $$\n");
	refuse("a.png", "gnuplot failed: no reason given");
	stand_in("#!/bin/sh\necho '<svg> half'\n");
	refuse("a.svg", "incomplete");
	/* More complaints than a pipe would hold, and the script not read. */
	stand_in("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'the end' >&2; exit 2\n");
	refuse("a.svg", "gnuplot failed: the end");
	setenv("PATH", path, 1);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	char path[200];
	snprintf(path, sizeof path, "%s/gnuplot", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures),
		cmocka_unit_test(nothing_after_a_logarithmic_axis),
		cmocka_unit_test(failures_are_told),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
