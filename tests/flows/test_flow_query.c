/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of files that somebody has made to be wrong: epochs whose bytes were changed, with the right checksums. Any answer or
 * error ends in time, and no number of it is garbage without an interval around it.
 */
#include "../effort.h"
#include "base/random.h"
#include "flows/epochs_private.h"
#include "flows/flow_query.h"
#include "synopsis/colate_plan.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define SEED    5
#define RUNS    300
#define BEGIN   INT64_C(1700000040000000000)
#define SECOND  INT64_C(1000000000)
#define EPOCHS  3
#define FLOWS   25
#define PACKETS 600 /* of an epoch */

static char folder[] = "/tmp/ow-query-XXXXXX", path[2][64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	for (int side = 0; side < 2; side++)
		snprintf(path[side], sizeof path[side], "%s/%c.epochs", folder, "ab"[side]);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path[0]);
	unlink(path[1]);
	return rmdir(folder);
}

static struct ow_epoch_info make_info(enum ow_colate_form form)
{
	struct ow_epoch_info info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                             .level = OW_LEVEL_IP,
	                             .id_bytes = 64,
	                             .interval_ns = SECOND,
	                             .counts = true};
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	plan.form = form;
	plan.counters = form == OW_COLATE_BANKS ? 30 : 120;
	plan.repair = 60;
	plan.vectors = form == OW_COLATE_BANKS ? 1 : 2;
	plan.stddev_counters = form == OW_COLATE_BANKS ? 40 : 0;
	assert_int_equal(ow_colate_plan_params(&plan, &info.params, NULL), 0);
	return info;
}

static void fill(const struct ow_epoch_info *info, unsigned n, int side, struct ow_epoch *epoch)
{
	assert_int_equal(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, epoch, NULL), 0);
	for (unsigned i = 0; i < PACKETS; i++) {
		uint64_t id = ow_mix64(n * 10000 + i + 1);
		unsigned f = (unsigned)(id % 7 ? id % FLOWS : 3);
		const struct ow_flow_key of = {
			.version = 4, .proto = 6, .src = {10, 0, (uint8_t)f}, .sport = (uint16_t)(f + 1)};
		const struct ow_flow_key *key = &of;
		const struct ow_flow_sighting sighting = {ow_flow_hash(info->params.seed, key), id,
		                                          BEGIN + n * SECOND + i * 1000000 +
		                                                  side * (100000 + 1000 * f)};
		if (side && id % 50 == 0)
			continue;
		ow_colate_add(epoch->colate, &sighting, 1);
		ow_flow_counts_add(epoch->counts, &sighting, &key, 1);
	}
	epoch->epochs = 1;
	epoch->begin_ns = BEGIN + n * SECOND;
	epoch->end_ns = epoch->begin_ns + SECOND;
}

/* A number that is hard, or one next to what was there. */
static void spoil(uint8_t *bytes, size_t size, struct ow_random *random)
{
	static const uint64_t hard[] = {
		0, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 55, UINT64_C(0x7ff8000000000000)};
	for (uint64_t times = 1 + ow_random_below(random, 4); times; times--) {
		size_t at = ow_random_below(random, size);
		/* Half of them at the begin, where the numbers of the epoch are. */
		at = ow_random_below(random, 2) ? at : at % 100;
		uint64_t value = hard[ow_random_below(random, sizeof hard / sizeof *hard)];
		size_t count = ow_random_below(random, 2) ? 1 : size - at < 8 ? size - at : 8;
		if (count == 1)
			value = ow_random_u64(random);
		memcpy(bytes + at, &value, count);
	}
}

/* The begin of a file, written once: each is synced to disk. */
static uint8_t description[OW_EPOCHS_HEADER + OW_EPOCH_INFO_BYTES_MAX];
static size_t description_size;

static void describe(const struct ow_epoch_info *info)
{
	struct ow_epochs_writer *writer;
	struct ow_error err;
	if (ow_epochs_create(path[0], info, false, &writer, &err) < 0)
		fail_msg("%s", err.text);
	ow_epochs_writer_free(writer);
	FILE *file = fopen(path[0], "r");
	description_size = fread(description, 1, sizeof description, file);
	fclose(file);
}

/* Writes the file; one of its epochs is spoilt if there is a random generator. */
static void write_file(const struct ow_epoch_info *info, int side, struct ow_random *random)
{
	int fd = open(path[side], O_RDWR | O_TRUNC | O_CREAT, 0600);
	assert_int_equal(write(fd, description, description_size), description_size);
	unsigned spoilt = random ? (unsigned)ow_random_below(random, EPOCHS) : EPOCHS;
	for (unsigned n = 0; n < EPOCHS; n++) {
		struct ow_epoch epoch;
		struct ow_epoch_cost cost;
		uint8_t *bytes, header[OW_EPOCHS_HEADER];
		size_t size;
		fill(info, n, side, &epoch);
		assert_int_equal(ow_epoch_encode(&epoch, &bytes, &size, &cost), 0);
		struct ow_epochs_frame frame = {.kind = OW_EPOCHS_EPOCH,
		                                .size = size,
		                                .begin_ns = epoch.begin_ns,
		                                .end_ns = epoch.end_ns,
		                                .packets = ow_colate_packets(epoch.colate),
		                                .from = n,
		                                .epochs = 1,
		                                .count_bytes = (uint32_t)cost.count_bytes};
		ow_epoch_done(&epoch);
		if (n == spoilt)
			spoil(bytes, size, random);
		if (n == spoilt && ow_random_below(random, 4) == 0)
			frame.packets = ow_random_u64(random);
		frame.check = ow_epochs_check(bytes, size);
		ow_epochs_frame_put(&frame, header);
		assert_int_equal(write(fd, header, sizeof header), sizeof header);
		assert_int_equal(write(fd, bytes, size), size);
		free(bytes);
	}
	close(fd);
}

static void judge(const struct ow_value *value)
{
	if (value->status != OW_VALUE_NONE)
		assert_true(isfinite(value->value) && value->low <= value->value && value->value <= value->high);
}

/* Returns whether there was an answer. */
static bool ask(struct ow_random *random)
{
	static const int64_t offsets[] = {0, -37 * SECOND, 1, INT64_C(1) << 61};
	struct ow_flows_question question = {.path = {path[0], path[1]},
	                                     .points = 2,
	                                     .since_ns = INT64_MIN,
	                                     .until_ns = ow_random_below(random, 3) ? INT64_MAX : BEGIN + 2 * SECOND,
	                                     .offset_ns = offsets[ow_random_below(random, 4)],
	                                     .worst = ow_random_below(random, 2),
	                                     .lost = ow_random_below(random, 2)};
	struct ow_flow_answers answers;
	struct ow_flows_files *files;
	struct ow_error err = {""};
	if (ow_random_below(random, 3) == 0)
		question.by = (struct ow_flow_select){.by = OW_FLOW_BY_PREFIX, .prefix4 = 22, .prefix6 = 48};
	if (ow_flows_ask(&question, &answers, &files, &err) < 0) {
		assert_true(*err.text);
		return false;
	}
	struct ow_flow_rows rows = {.row = calloc(answers.flows + 1, sizeof *rows.row)};
	for (size_t i = 0; i < answers.flows; i++) {
		rows.row[rows.rows++] = &answers.flow[i];
		const struct ow_flow_estimate *e = ow_flow_answer_whole(&answers, &answers.flow[i]);
		judge(&e->mean_ns);
		judge(&e->stddev_ns);
		for (int k = 0; e->spread && k < OW_QUANTILES; k++)
			judge(&e->spread->quantile_ns[k]);
	}
	FILE *out = fopen("/dev/null", "w");
	ow_report_flow_answers_text(out, &answers, &rows, 80, false);
	ow_report_flow_answers_json(out, &answers, &rows);
	ow_report_flow_answers_csv(out, &answers, &rows);
	fclose(out);
	free(rows.row);
	ow_flow_answers_done(&answers);
	ow_flows_files_free(files);
	return true;
}

static void spoilt(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (enum ow_colate_form form = OW_COLATE_RANDOM; form <= OW_COLATE_BANKS; form++) {
		struct ow_epoch_info info = make_info(form);
		unsigned answered = 0;
		describe(&info);
		write_file(&info, 0, NULL);
		write_file(&info, 1, NULL);
		for (unsigned run = 0; run < RUN_COUNT(RUNS); run++) {
			int side = (int)ow_random_below(&random, 2);
			write_file(&info, side, &random);
			answered += ask(&random);
			write_file(&info, side, NULL);
		}
		printf("  form %d: %u of %u answered\n", form, answered, (unsigned)RUN_COUNT(RUNS));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(spoilt)};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
