/* SPDX-License-Identifier: Apache-2.0 */
/* Sample messages of points: any bytes are refused with a line, or are a sample that is encoded to the same bytes. */
#include "discovery/sample_message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_vantage_sample sample;
	struct ow_error err = {""};
	uint8_t *again;
	size_t more;
	if (ow_vantage_sample_decode(data, size, &sample, &err) < 0) {
		check(err.text[0]);
		return 0;
	}
	for (uint32_t i = 0; i < sample.count; i++)
		check(sample.record[i].id < sample.tau && (i == 0 || sample.record[i].id > sample.record[i - 1].id));
	check(ow_vantage_sample_encode(&sample, &again, &more, NULL) == 0);
	check(more == size && memcmp(again, data, size) == 0);
	free(again);
	ow_vantage_sample_done(&sample);
	return 0;
}
