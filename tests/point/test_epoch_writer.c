/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs that cannot be written wait, are written when that is possible again, or are counted as lost. */
#include "flows/epochs.h"
#include "point/epoch_writer.h"
#include "synopsis/colate_plan.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define BEGIN  INT64_C(1700000040000000000)
#define MINUTE INT64_C(60000000000)

static char folder[] = "/tmp/ow-epoch-writer-XXXXXX", path[64];

/* Files may not grow beyond this; as on a full disk, a write fails then. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct ow_epoch_writer *open_writer(struct ow_config_flows *flows)
{
	struct ow_colate_plan plan;
	struct ow_epoch_writer *writer = NULL;
	struct ow_error err = {""};
	*flows = (struct ow_config_flows){.info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                                           .level = OW_LEVEL_IP,
	                                           .id_bytes = 64,
	                                           .interval_ns = MINUTE}};
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	assert_int_equal(ow_colate_plan_params(&plan, &flows->info.params, NULL), 0);
	flows->file = path;
	if (ow_epoch_writer_create(&(struct ow_config){.flows = flows, .flows_count = 1}, &writer, &err) < 0)
		fail_msg("%s", err.text);
	return writer;
}

static void add(struct ow_epoch_writer *writer, const struct ow_config_flows *flows, unsigned from, unsigned to)
{
	for (unsigned n = from; n < to; n++) {
		struct ow_epoch epoch;
		const struct ow_flow_sighting stamp = {n + 1, n + 1, BEGIN + n * MINUTE};
		assert_int_equal(ow_epoch_init(&flows->info, false, &epoch, NULL), 0);
		ow_colate_add(epoch.colate, &stamp, 1);
		epoch.epochs = 1;
		epoch.begin_ns = BEGIN + n * MINUTE;
		epoch.end_ns = epoch.begin_ns + MINUTE;
		ow_epoch_writer_add(writer, 0, &epoch);
		ow_epoch_done(&epoch); /* what was not taken */
	}
}

static void expect_news(struct ow_epoch_writer *writer, const char *say)
{
	struct ow_error line = {""};
	for (int i = 0; i < 3000 && !ow_epoch_writer_news(writer, &line); i++)
		usleep(10000);
	if (!strstr(line.text, say) || !strstr(line.text, path))
		fail_msg("'%s' does not say '%s'", line.text, say);
}

static void expect_epochs(size_t count)
{
	struct ow_epochs *epochs;
	struct ow_error err;
	if (ow_epochs_open(path, &epochs, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_epochs_count(epochs), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ow_epochs_span(epochs, i).begin_ns, BEGIN + (int64_t)i * MINUTE);
	ow_epochs_close(epochs);
}

static void waits(void **state)
{
	(void)state;
	struct ow_config_flows flows;
	struct ow_error line;
	struct ow_epoch_writer *writer = open_writer(&flows);
	limit_files(1);
	add(writer, &flows, 0, 5);
	expect_news(writer, "");
	limit_files(RLIM_INFINITY);
	expect_news(writer, "is written again");
	add(writer, &flows, 5, 10);
	ow_epoch_writer_stop(writer);
	assert_false(ow_epoch_writer_news(writer, &line));
	ow_epoch_writer_free(writer);
	expect_epochs(10);
}

static void loses(void **state)
{
	(void)state;
	struct ow_config_flows flows;
	struct ow_error line;
	struct ow_epoch_writer *writer = open_writer(&flows);
	limit_files(1);
	add(writer, &flows, 10, 11);
	expect_news(writer, "");
	add(writer, &flows, 11, 110);
	ow_epoch_writer_lost(writer, 0, 3);
	ow_epoch_writer_stop(writer);
	/* Those that found no room, and those that still waited at the end. */
	expect_news(writer, "100 epochs were lost because they could not be written, and 3 packets");
	assert_false(ow_epoch_writer_news(writer, &line));
	ow_epoch_writer_free(writer);
	ow_epoch_writer_free(NULL);
	limit_files(RLIM_INFINITY);
	expect_epochs(10);
}

int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/flows.epochs", folder);
	const struct CMUnitTest tests[] = {cmocka_unit_test(waits), cmocka_unit_test(loses)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
