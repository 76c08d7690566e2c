/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a batch of results: refused with a reason, or results that make a batch with the same results. */
#include "fleet/result_batch.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static int add(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	struct ow_error err;
	check(result->sent == result->matched + result->late + result->lost + result->pending);
	check(result->length_ns > 0 && result->length_ns <= OW_RESULT_BATCH_LENGTH);
	/* Another point may choose names that fill a batch sooner: a row is larger here by its first bytes only. */
	return ow_result_batch_add(arg, period, result, &err);
}

static int count(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	(void)result, (void)period;
	(*(size_t *)arg)++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_result_batch batch = {0};
	struct ow_error err = {""};
	const uint8_t *bytes = NULL;
	size_t length = 0, first = 0, second = 0;
	if (ow_result_batch_decode(data, size, count, &first, &err) < 0) {
		check(err.text[0] != 0);
		return 0;
	}
	int r = ow_result_batch_decode(data, size, add, &batch, &err);
	if (r == 0) {
		check(ow_result_batch_encode(&batch, &bytes, &length, &err) == 0);
		check(ow_result_batch_decode(bytes, length, count, &second, &err) == 0);
		check(first == second);
	}
	ow_result_batch_done(&batch);
	return 0;
}
