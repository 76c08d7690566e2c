/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/json.h"
#include "report/report.h"
#include <stdlib.h>

/* A report with something in every field: A to B with everything, B to A without a delay sample. */
static const struct ow_result sample_result = {
	.sent = 1000000,
	.received = 998915,
	.matched = 998912,
	.lost = 1088,
	.extra = 3,
	.duplicated = 1,
	.ambiguous = 12,
	.reordered = 5,
	.exact = true,
	.delay = {.samples = 998900,
                  .mean_ns = 4546.3,
                  .stddev_ns = 40.1,
                  .min_ns = 4410,
                  .max_ns = 4670,
                  .quantile_ns = {4545, 4600, 4610, 4650, 4669}},
};
static const struct ow_result sample_empty = {.sent = 5, .received = 5, .matched = 5, .ambiguous = 5, .exact = true};

static const char *const sample_warning[] = {
	"captures/downstream.pcap ends in the middle of a record at offset 12345678: the result covers what is before "
	"it",
	"two words",
};

static struct ow_interval sample_interval[2];

static inline struct ow_match_report sample_report(void)
{
	for (int i = 0; i < 2; i++)
		sample_interval[i] = (struct ow_interval){INT64_C(1700000000000000000) + i * INT64_C(1000000000),
		                                          {sample_result, sample_empty}};
	return (struct ow_match_report){
		.capture = {{"captures/upstream.pcap", 1000000, 1700000000000000000, 1700000010000000000, "EN10MB", 1},
	                    {"captures/downstream.pcap", 998912, 1700000000000000000, 1700000010000000000, "RAW",
	                     1000}},
		.level = OW_LEVEL_IP,
		.segments = true,
		.ip_id = true,
		.tcp_numbers = true,
		.tcp_options = true,
		.clock = OW_CLOCK_ESTIMATED,
		.offset_ns = -37000000000,
		.offset_low_ns = -37000120000,
		.offset_high_ns = -36999880000,
		.offset_error_ns = 120000,
		.window_ns = 1000000000,
		.direction = {sample_result, sample_empty},
		.has_direction = {true, true},
		.unclassified = {0, 3},
		.outside_overlap = {12, 0},
		.skipped = {4, 1234},
		.interval = sample_interval,
		.intervals = 2,
		.warning = sample_warning,
		.warnings = 2,
	};
}
