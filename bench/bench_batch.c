/* SPDX-License-Identifier: Apache-2.0 */
/* Measures batches of results on the bus: bytes and microseconds a row, each row checked by its counts. */
#include "base/clock.h"
#include "base/random.h"
#include "fleet/result_batch.h"

#include <stdio.h>
#include <stdlib.h>

#define LANES  10
#define ROWS   600
#define ROUNDS 200

static struct ow_interval_result result_of(unsigned row, struct ow_random *random)
{
	struct ow_value value = {OW_VALUE_ESTIMATED, 50123.4567 + row, 50020.1, 60130.9, OW_NO_REASON};
	struct ow_interval_result r = {.segment = "london-paris",
	                               .from = "london",
	                               .to = "paris",
	                               .start_ns = INT64_C(1700000040000000000) + row / LANES * INT64_C(60000000000),
	                               .length_ns = INT64_C(60000000000),
	                               .final = true,
	                               .sent = 100000 + row,
	                               .matched = 99900 + row,
	                               .received = 99900 + row,
	                               .lost = 100,
	                               .bytes = 80000000 + row,
	                               .samples = 2048,
	                               .coverage = 1,
	                               .reordered = OW_RESULT_NOT_COUNTED,
	                               .synopsis = "fold 4 x 1024",
	                               .clock_method = "trusted"};
	int64_t delay[2048];
	snprintf(r.class_name, sizeof r.class_name, "class %u", row % LANES);
	r.interval = r.start_ns / r.length_ns;
	r.mean_ns = r.stddev_ns = value;
	for (int i = 0; i < OW_QUANTILES; i++)
		r.quantile_ns[i] = value;
	r.loss_ratio = (struct ow_value){OW_VALUE_ESTIMATED, 0.001, 0.0005, 0.002, OW_NO_REASON};
	for (unsigned i = 0; i < 2048; i++)
		delay[i] = 50000 + i * 40 + (int64_t)ow_random_below(random, 30);
	ow_delay_histogram_sample(delay, 2048, r.matched, &r.delays);
	return r;
}

static int add_up(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	*(uint64_t *)arg += period == OW_PERIOD_MINUTE ? result->sent : 0;
	return 0;
}

int main(void)
{
	static struct ow_interval_result row[ROWS];
	struct ow_result_batch batch = {0};
	struct ow_random random;
	struct ow_error err;
	uint64_t sent = 0, back = 0;
	const uint8_t *bytes = NULL;
	size_t size = 0;
	ow_random_seed(&random, 1);
	for (unsigned i = 0; i < ROWS; i++) {
		row[i] = result_of(i, &random);
		sent += row[i].sent * ROUNDS;
	}
	int64_t encode_ns = 0, decode_ns = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		int64_t start_ns = ow_clock_steady_ns();
		for (unsigned i = 0; i < ROWS; i++) {
			if (ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &row[i], &err) < 0)
				abort();
		}
		if (ow_result_batch_encode(&batch, &bytes, &size, &err) < 0)
			abort();
		int64_t between_ns = ow_clock_steady_ns();
		if (ow_result_batch_decode(bytes, size, add_up, &back, &err) < 0)
			abort();
		encode_ns += between_ns - start_ns;
		decode_ns += ow_clock_steady_ns() - between_ns;
	}
	if (sent != back)
		abort();
	double rows = (double)ROWS * ROUNDS * 1000;
	printf("%d rows of %d lanes: %.0f bytes a row, encode %.2f us, decode %.2f us\n", ROWS, LANES,
	       (double)size / ROWS, (double)encode_ns / rows, (double)decode_ns / rows);
	ow_result_batch_done(&batch);
	return 0;
}
