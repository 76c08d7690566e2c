/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include <oneway/match.h>

/* Results of several methods, and the exact result. */

/* One method on the packets of one direction: its estimate and its cost. */
struct ow_compare_row {
	const char *name;
	char params[80];      /* as text */
	bool baseline;        /* not a synopsis */
	size_t memory_bytes;  /* of the structure at one point */
	uint64_t cache_bytes; /* of the records that the method keeps in addition, at one point; 0 = none */
	uint64_t wire_bytes;  /* all bytes that the points exchanged */
	double insert_ns;     /* per packet; NAN = not measured */
	double decode_us;     /* from the bytes to the numbers; NAN = not measured */
	struct ow_estimate estimate;
	char failure[160]; /* not empty: why it could not be run */
};

struct ow_method_comparison {
	const struct ow_match_report *match;
	enum ow_direction direction;
	const struct ow_result *exact; /* of this direction, in `match` */
	size_t memory_bytes;           /* bytes that each structure may use */
	uint64_t seed;
	struct ow_compare_row *row;
	size_t rows;
};

/* The error relative to the truth, with sign; NAN if there is no value, or no truth to compare with. */
double ow_compare_error(const struct ow_value *value, double truth);
/* Whether the interval of confidence contains the truth (exact values: within 0.1 %, the error of quantiles). */
bool ow_compare_covers(const struct ow_value *value, double truth);
