/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PAPERS_COMPARISON_H
#define OW_PAPERS_COMPARISON_H

#include "estimate/estimate.h"
#include <oneway/match.h>

/* Methods beside each other, and beside the truth. */

/* One method on the packets of one direction: what it says, and what it costs. */
struct ow_compare_row {
	const char *name;
	char params[80];      /* for people */
	bool baseline;        /* no synopsis */
	size_t memory_bytes;  /* of the structure at one point */
	uint64_t cache_bytes; /* of the records that the method keeps beside, at one point; 0 = none */
	uint64_t wire_bytes;  /* all that the points exchanged */
	double insert_ns;     /* a packet; NAN = not measured */
	double decode_us;     /* from the bytes to the numbers; NAN = not measured */
	struct ow_estimate estimate;
	char failure[160]; /* not empty: it could not be tried, and why */
};

struct ow_method_comparison {
	const struct ow_match_report *match;
	enum ow_direction direction;
	const struct ow_result *exact; /* of this direction, in `match` */
	size_t memory_bytes;           /* what each structure may take */
	uint64_t seed;
	struct ow_compare_row *row;
	size_t rows;
};

/* Relative to the truth, with sign; NAN if there is no value, or no truth to compare with. */
double ow_compare_error(const struct ow_value *value, double truth);
/* Whether the interval of confidence holds the truth (exact values: within 0.1 %, as exact as quantiles are). */
bool ow_compare_covers(const struct ow_value *value, double truth);

#endif
