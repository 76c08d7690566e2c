/* SPDX-License-Identifier: Apache-2.0 */
/* Makes corpus/result_batch: batches of usual results, of unknown ones, of several lanes and lengths. */
#include "fleet/result_batch.h"
#include "save.h"

static struct ow_interval_result result_of(unsigned n)
{
	struct ow_value value = {OW_VALUE_ESTIMATED, 50123.5, 50120, 50130.25, OW_NO_REASON};
	struct ow_interval_result r;
	ow_result_blank(n, INT64_C(1700000040000000000) + n * INT64_C(1000000000), INT64_C(1000000000), &r);
	snprintf(r.segment, sizeof r.segment, "london-paris");
	snprintf(r.class_name, sizeof r.class_name, "class %u", n % 3);
	snprintf(r.from, sizeof r.from, n % 2 ? "london" : "paris");
	snprintf(r.to, sizeof r.to, n % 2 ? "paris" : "london");
	r.final = n % 5 != 0;
	if (n % 7 == 3) {
		r.status = OW_RESULT_UNKNOWN;
		snprintf(r.cause, sizeof r.cause, "the peer is not connected");
		return r;
	}
	r.status = OW_RESULT_MEASURED;
	r.sent = r.matched = r.received = 1000 + n;
	r.mean_ns = r.stddev_ns = value;
	r.coverage = 1;
	ow_delay_histogram_sample((const int64_t[]){-5, 1000 + (int64_t)n, 5000000}, 3, r.matched, &r.delays);
	return r;
}

int main(int argc, char **argv)
{
	for (unsigned rows = 0; argc == 2 && rows <= 40; rows += 8) {
		struct ow_result_batch batch = {0};
		const uint8_t *bytes = NULL;
		size_t size = 0;
		char name[32];
		for (unsigned i = 0; i < rows; i++) {
			struct ow_interval_result r = result_of(i);
			struct ow_error err;
			if (ow_result_batch_add(&batch, OW_PERIOD_MINUTE, &r, &err) < 0) {
				fprintf(stderr, "%s\n", err.text);
				return 1;
			}
		}
		if (ow_result_batch_encode(&batch, &bytes, &size, NULL) < 0)
			return 1;
		snprintf(name, sizeof name, "%u-rows", rows);
		save(argv[1], name, bytes, size);
		if (rows == 8) {
			save(argv[1], "cut", bytes, size / 2);
			save(argv[1], "no-version", bytes + 1, size - 1);
		}
		ow_result_batch_done(&batch);
	}
	return argc == 2 ? 0 : 2;
}
