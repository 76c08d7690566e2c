/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as packet counts in CSV: refused with an error that names the file, or counts that add up. */
#include "flows/counts_csv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void try_key(const uint8_t *data, size_t size, const struct ow_flow_select *select)
{
	struct ow_flow_counts *counts = NULL;
	struct ow_error err = {""};
	FILE *in = fmemopen((void *)data, size, "r");
	check(in != NULL);
	int r = ow_counts_csv_read(in, "fuzz.csv", select, 1, &counts, &err);
	fclose(in);
	if (r < 0) {
		check(strncmp(err.text, "fuzz.csv:", 9) == 0 && !counts);
		return;
	}
	uint64_t sum = 0;
	for (size_t i = 0; i < ow_flow_counts_flows(counts); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		check(count.packets > 0 && count.flow == ow_flow_hash(1, &count.key));
		sum += count.packets;
	}
	check(sum > 0 && sum == ow_flow_counts_packets(counts));
	ow_flow_counts_free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ow_flow_select selects[] = {
		{.by = OW_FLOW_BY_FIVE_TUPLE},
		{.by = OW_FLOW_BY_PREFIX, .prefix4 = 24, .prefix6 = 48},
		{.by = OW_FLOW_BY_CLASS, .classes = 1, .class_name = {"voice"}},
	};
	for (size_t i = 0; size && i < sizeof selects / sizeof *selects; i++)
		try_key(data, size, &selects[i]);
	return 0;
}
