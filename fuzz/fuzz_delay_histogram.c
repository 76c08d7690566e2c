/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as two histograms: length of the first (1), first, second. What decodes must encode to the same bytes, and
 * two of them have the same sum in both orders.
 */
#include "estimate/delay_histogram.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static int decode(const uint8_t *bytes, size_t size, struct ow_delay_histogram *ret)
{
	struct ow_error err = {""};
	uint8_t again[OW_DELAY_HISTOGRAM_BYTES];
	int r = ow_delay_histogram_decode(bytes, size, ret, &err);
	check(r == 0 || err.text[0]);
	check(r < 0 || (ow_delay_histogram_encode(ret, again) == size && !memcmp(again, bytes, size)));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_delay_histogram a, b, back;
	uint8_t one[OW_DELAY_HISTOGRAM_BYTES], other[OW_DELAY_HISTOGRAM_BYTES];
	size_t first = size ? data[0] : 0;
	if (!size || first > size - 1)
		return 0;
	if (decode(data + 1, first, &a) < 0 || decode(data + 1 + first, size - 1 - first, &b) < 0)
		return 0;
	struct ow_delay_histogram ab = a, ba = b;
	ow_delay_histogram_merge(&ab, &b);
	ow_delay_histogram_merge(&ba, &a);
	size_t bytes = ow_delay_histogram_encode(&ab, one);
	check(ow_delay_histogram_encode(&ba, other) == bytes && !memcmp(one, other, bytes));
	check(decode(one, bytes, &back) == 0 && back.packets == ab.packets);
	for (int i = 0; i < OW_QUANTILES; i++) {
		struct ow_value v = ow_delay_histogram_quantile(&ab, ow_quantile_level[i], b.samples);
		check(v.status == OW_VALUE_NONE || (v.low <= v.value && v.value <= v.high));
	}
	return 0;
}
