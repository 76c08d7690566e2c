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
		assert_int_equal(ow_epoch_init(&flows->info, 0, &epoch, NULL), 0);
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

#define FLOWS  40
#define SLOW   17
#define ALL_NS INT64_C(1000000)
#define ITS_NS INT64_C(5000000)

/* An epoch of both recordings: flows of eight packets, of which one takes five times as long as the others. */
static void add_pair(struct ow_epoch_writer *writer, const struct ow_config_flows *flows, unsigned n)
{
	for (unsigned side = 0; side < 2; side++) {
		struct ow_epoch epoch;
		struct ow_error err;
		assert_int_equal(ow_epoch_init(&flows->info, OW_FLOW_COUNTS_MAX, &epoch, &err), 0);
		for (unsigned i = 0; i < 8 * FLOWS; i++) {
			const struct ow_flow_key of = {.version = 4, .proto = 6, .sport = (uint16_t)(i % FLOWS + 1)};
			const struct ow_flow_key *key = &of;
			uint64_t flow = ow_flow_hash(flows->info.params.seed, key);
			int64_t delay = side == 0 ? 0 : i % FLOWS == SLOW ? ITS_NS : ALL_NS;
			const struct ow_flow_sighting stamp = {flow, (uint64_t)n << 32 | i,
			                                       BEGIN + n * MINUTE + i * 1000 + delay};
			ow_colate_add(epoch.colate, &stamp, 1);
			ow_flow_counts_add(epoch.counts, &stamp, &key, 1);
		}
		epoch.epochs = 1;
		epoch.begin_ns = BEGIN + n * MINUTE;
		epoch.end_ns = epoch.begin_ns + MINUTE;
		ow_epoch_writer_add(writer, side, &epoch);
	}
}

/* A recording that is compared with the one before it tells its worst flows when the next interval is over. */
static void tells_the_worst(void **state)
{
	(void)state;
	struct ow_config_flows flows[2];
	struct ow_worst_flows worst;
	char file[2][80];
	struct ow_error err = {""};
	struct ow_epoch_writer *writer = open_writer(&flows[0]);
	ow_epoch_writer_free(writer);
	unlink(path);
	flows[0].info.counts = true;
	flows[1] = flows[0];
	for (int side = 0; side < 2; side++) {
		snprintf(file[side], sizeof file[side], "%s/%c.epochs", folder, "ab"[side]);
		flows[side].file = file[side];
	}
	flows[1].from = file[0];
	if (ow_epoch_writer_create(&(struct ow_config){.flows = flows, .flows_count = 2}, &writer, &err) < 0)
		fail_msg("%s", err.text);
	add_pair(writer, flows, 0);
	for (unsigned n = 1; n < 4; n++) {
		add_pair(writer, flows, n);
		bool found = false;
		for (int i = 0; i < 3000 && !(found = ow_epoch_writer_worst(writer, &worst)); i++)
			usleep(10000);
		assert_true(found);
		char begin[80], *at = NULL;
		snprintf(begin, sizeof begin, "\"begin_ns\": %lld,", (long long)(BEGIN + (n - 1) * MINUTE));
		if (!worst.json || !(at = strstr(worst.json, "\"sport\": 18,")) || !strstr(worst.json, begin) ||
		    !strstr(worst.json, "\"warnings\": [") ||
		    strchr(worst.json, '\n') != worst.json + strlen(worst.json) - 1)
			fail_msg("'%s' / %s", worst.json ? worst.json : worst.line.text, begin);
		/* It is the first of those that are told, and the line names it. */
		assert_ptr_equal(at, strstr(worst.json, "\"sport\":"));
		assert_non_null(strstr(worst.line.text, ":18 >"));
		free(worst.json);
		assert_false(ow_epoch_writer_worst(writer, &worst));
	}
	ow_epoch_writer_free(writer);
	for (int side = 0; side < 2; side++)
		unlink(file[side]);
}

/* Without the other recording nothing is known, and that is said. */
static void tells_why_not(void **state)
{
	(void)state;
	struct ow_config_flows flows;
	struct ow_worst_flows worst = {0};
	struct ow_error err = {""};
	struct ow_epoch_writer *writer = open_writer(&flows);
	ow_epoch_writer_free(writer);
	flows.from = "/nowhere/a.epochs";
	if (ow_epoch_writer_create(&(struct ow_config){.flows = &flows, .flows_count = 1}, &writer, &err) < 0)
		fail_msg("%s", err.text);
	add(writer, &flows, 200, 202);
	for (int i = 0; i < 3000 && !ow_epoch_writer_worst(writer, &worst); i++)
		usleep(10000);
	assert_null(worst.json);
	if (!strstr(worst.line.text, "is not known") || !strstr(worst.line.text, "/nowhere/a.epochs"))
		fail_msg("'%s'", worst.line.text);
	ow_epoch_writer_free(writer);
}

int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/flows.epochs", folder);
	const struct CMUnitTest tests[] = {cmocka_unit_test(waits), cmocka_unit_test(loses),
	                                   cmocka_unit_test(tells_the_worst), cmocka_unit_test(tells_why_not)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
