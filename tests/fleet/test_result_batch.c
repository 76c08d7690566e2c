/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of results: round trips, sizes, and bytes that are not a batch. */
#include "fleet/result_batch.h"

#include "../result/every_field.h"
#include "../result/interval_sample.h"
#include "base/random.h"
#include "result/rollup.h"
#include <errno.h>
#include <stdlib.h>

struct rows {
	struct ow_interval_result *row;
	size_t count;
};

static int keep(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	struct rows *rows = arg;
	rows->row = reallocarray(rows->row, rows->count + 1, sizeof *rows->row);
	assert_non_null(rows->row);
	rows->row[rows->count++] = *result;
	assert_int_equal(period, OW_PERIOD_MINUTE);
	return 0;
}

static void same_results(const struct ow_interval_result *a, const struct ow_interval_result *b)
{
	for (size_t i = 0; i < ow_field_count; i++)
		if (ow_fields[i].size)
			every_same(&ow_fields[i], a, b);
}

/* Every field of the table comes back, whatever its number. */
static void every_field_comes_back(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	struct ow_interval_result sent[50];
	const uint8_t *bytes = NULL;
	size_t size = 0;
	for (unsigned i = 0; i < 50; i++) {
		sent[i] = every_field(i % 7);
		sent[i].active = i % 3 == 0;
		sent[i].exact = i % 2;
		sent[i].start_ns = (i % 2 ? -1 : 1) * (int64_t)i * INT64_C(1700000000000000);
		if (ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &sent[i], &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	struct rows rows = {0};
	if (ow_result_batch_decode(bytes, size, keep, &rows, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(rows.count, 50);
	for (unsigned i = 0; i < 50; i++)
		same_results(&sent[i], &rows.row[i]);
	free(rows.row);
	/* The batch is empty again. */
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	assert_int_equal(size, 3);
	ow_result_batch_done(&batch);
}

/* A usual row of a fold with a histogram; names stand once in the batch. */
static void a_row_is_small(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	struct ow_random random;
	const uint8_t *bytes = NULL;
	size_t size = 0;
	int64_t delay[2048];
	ow_random_seed(&random, 1);
	for (unsigned i = 0; i < 600; i++) {
		struct ow_interval_result r = sample_live(i);
		for (unsigned k = 0; k < 2048; k++)
			delay[k] = 50000 + k * 40 + (int64_t)ow_random_below(&random, 30);
		ow_delay_histogram_sample(delay, 2048, r.matched + r.late - r.ambiguous, &r.delays);
		r.mean_ns = sample_value(OW_VALUE_ESTIMATED, 50123.25 + i * 0.37, 12.125);
		snprintf(r.class_name, sizeof r.class_name, "class %u", i % 10);
		assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), 0);
	}
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	print_message("%.1f bytes a row\n", (double)size / 600);
	assert_true(size / 600 <= 340);
	ow_result_batch_done(&batch);
}

/* A batch never becomes larger than a message may be. */
static void a_full_batch_says_so(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	const uint8_t *bytes = NULL;
	size_t size = 0, count = 0;
	struct ow_interval_result r = every_field(1);
	memset(r.cause, 'x', sizeof r.cause - 1);
	int code;
	while ((code = ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err)) == 0) {
		snprintf(r.from, sizeof r.from, "point %zu", ++count);
		assert_true(count <= OW_RESULT_BATCH_ROWS);
	}
	assert_int_equal(code, -ENOSPC);
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	assert_true(size <= OW_RESULT_BATCH_BYTES);
	struct rows rows = {0};
	assert_int_equal(ow_result_batch_decode(bytes, size, keep, &rows, &err), 0);
	assert_int_equal(rows.count, count);
	free(rows.row);
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), 0);
	ow_result_batch_done(&batch);
}

/* One of the results that a minute may be made of. */
static struct ow_interval_result part_of(struct ow_random *random, unsigned i)
{
	struct ow_interval_result r = sample_live(i);
	int64_t delay[] = {-5, 1000 + (int64_t)i, 5000000};
	r.start_ns = INT64_C(1700000040000000000) + i * INT64_C(1000000000);
	r.reordered = ow_random_below(random, 2) ? 3 : OW_RESULT_NOT_COUNTED;
	r.sample_shift = ow_random_below(random, 4) ? 0 : 3;
	if (ow_random_below(random, 3))
		ow_delay_histogram_sample(delay, 3, (r.matched + r.late - r.ambiguous) << r.sample_shift, &r.delays);
	if (ow_random_below(random, 4) == 0) {
		r.status = OW_RESULT_PARTIAL;
		snprintf(r.cause, sizeof r.cause, "the ring lost frames");
		r.pending = 7;
		r.lost -= 7;
		r.coverage = 0.5;
	} else if (ow_random_below(random, 4) == 0) {
		ow_result_blank(i, r.start_ns, r.length_ns, &r);
		r.final = true;
		r.status = OW_RESULT_UNKNOWN;
		snprintf(r.cause, sizeof r.cause, "the peer is not connected");
	}
	return r;
}

/* Whatever results a minute is made of, it can be sent, and comes back. */
static void every_minute_can_be_sent(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	struct ow_random random;
	struct ow_rollup *rollup = NULL;
	ow_random_seed(&random, 17);
	assert_int_equal(ow_rollup_create(&rollup), 0);
	for (unsigned round = 0; round < 300; round++) {
		struct ow_interval_result names = sample_live(0), minute;
		const uint8_t *bytes = NULL;
		size_t size = 0;
		struct rows rows = {0};
		ow_rollup_begin(rollup, INT64_C(1700000040000000000), INT64_C(60000000000));
		for (unsigned i = 0; i < 60; i += 1 + (unsigned)ow_random_below(&random, 30)) {
			struct ow_interval_result r = part_of(&random, i);
			ow_rollup_add(rollup, &r);
		}
		ow_rollup_result(rollup, &minute);
		ow_result_name_like(&minute, &names);
		if (ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &minute, &err) < 0)
			fail_msg("round %u: %s", round, err.text);
		assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
		if (ow_result_batch_decode(bytes, size, keep, &rows, &err) < 0)
			fail_msg("round %u: %s", round, err.text);
		same_results(&minute, rows.row);
		free(rows.row);
	}
	ow_rollup_free(rollup);
	ow_result_batch_done(&batch);
}

/* Results that are not consistent are refused by the writer, too. */
static void wrong_counts_are_refused(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	struct ow_interval_result r = sample_live(1);
	r.lost++;
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), -EINVAL);
	r = sample_live(1);
	r.length_ns = 0;
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), -EINVAL);
	r = sample_live(1);
	r.intervals = r.intervals_unknown = 5;
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), -EINVAL);
	r.intervals_partial = 1;
	r.intervals_unknown = 4;
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), 0);
	r.intervals_partial = 2;
	assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), -EINVAL);
	ow_result_batch_done(&batch);
}

static int count_only(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	(void)result, (void)period;
	(*(size_t *)arg)++;
	return 0;
}

/* Every prefix is refused, and so is nearly every changed byte; none is read beyond its end (ASan). */
static void damaged_bytes_are_refused(void **state)
{
	(void)state;
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	const uint8_t *bytes = NULL;
	size_t size = 0, count = 0;
	for (unsigned i = 0; i < 3; i++) {
		struct ow_interval_result r = sample_live(i);
		assert_int_equal(ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err), 0);
	}
	assert_int_equal(ow_result_batch_encode(&batch, &bytes, &size, &err), 0);
	for (size_t i = 0; i < size; i++) {
		uint8_t *part = malloc(i ? i : 1);
		memcpy(part, bytes, i);
		assert_int_equal(ow_result_batch_decode(part, i, count_only, &count, &err), -EPROTO);
		free(part);
	}
	uint8_t *copy = malloc(size + 1);
	memcpy(copy, bytes, size);
	copy[size] = 0;
	assert_int_equal(ow_result_batch_decode(copy, size + 1, count_only, &count, &err), -EPROTO);
	copy[0] = 9;
	assert_int_equal(ow_result_batch_decode(copy, size, count_only, &count, &err), -EPROTO);
	free(copy);
	ow_result_batch_done(&batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_comes_back),    cmocka_unit_test(a_row_is_small),
		cmocka_unit_test(a_full_batch_says_so),      cmocka_unit_test(wrong_counts_are_refused),
		cmocka_unit_test(damaged_bytes_are_refused), cmocka_unit_test(every_minute_can_be_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
