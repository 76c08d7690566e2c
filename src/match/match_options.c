/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a match as programs give them. */
#include "match/match_options.h"

#include "base/versioned.h"
#include <errno.h>

/* Bytes of the first version of the struct. Never changes. */
#define OPTIONS_LEAST (offsetof(struct ow_match_options, arg) + sizeof(void *))

void ow_match_options_init(struct ow_match_options *ret_options, size_t size)
{
	/* Every default is 0. */
	ow_versioned_init(ret_options, size);
}

static int check(const struct ow_match_options *options, struct ow_error *err)
{
	const struct {
		const char *name;
		long long value, least, most;
	} range[] = {
		{"level", options->level, OW_LEVEL_AUTO, OW_LEVEL_FRAME},
		{"inner", options->inner, OW_AUTO, OW_ON},
		{"segments", options->segments, OW_AUTO, OW_ON},
		{"clock", options->clock, OW_CLOCK_NONE, OW_CLOCK_ESTIMATED},
		{"offset_ns", options->offset_ns, -OW_MATCH_TIME_MAX, OW_MATCH_TIME_MAX},
		{"window_ns", options->window_ns, 0, OW_MATCH_TIME_MAX},
		{"dedup_ns", options->dedup_ns, INT64_MIN, OW_MATCH_TIME_MAX},
		{"interval_ns", options->interval_ns, 0, OW_MATCH_TIME_MAX},
		{"threads", options->threads, 0, 3},
		{"since_ns", options->since_ns, -OW_MATCH_TIME_MAX, OW_MATCH_TIME_MAX},
		{"until_ns", options->until_ns, -OW_MATCH_TIME_MAX, OW_MATCH_TIME_MAX},
		{"classes", options->classes, 0, OW_MATCH_CLASSES_MAX},
		{"stamps", options->stamps, OW_STAMPS_CAPTURE, OW_STAMPS_TRAILER},
		{"class_by", options->class_by, OW_CLASS_BY_FILTER,
	         options->classes ? OW_CLASS_BY_FILTER : OW_CLASS_BY_SIZE},
		{"percentiles", options->percentiles, 0, OW_PERCENTILES_MAX},
	};
	for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
		if (range[i].value < range[i].least || range[i].value > range[i].most)
			return ow_error_set(err, EINVAL, "struct ow_match_options: %s is %lld, not %lld to %lld",
			                    range[i].name, range[i].value, range[i].least, range[i].most);
	}
	for (unsigned i = 0; i < options->percentiles; i++) {
		if (!(options->percentile[i] > 0 && options->percentile[i] <= 100))
			return ow_error_set(err, EINVAL,
			                    "struct ow_match_options: percentile %g, not above 0 and at most 100",
			                    options->percentile[i]);
	}
	return 0;
}

int ow_match_options_take(const struct ow_match_options *options, struct ow_match_options *ret_options,
                          struct ow_error *err)
{
	if (!options) {
		ow_match_defaults(ret_options);
		return 0;
	}
	int r = ow_versioned_take(ret_options, sizeof *ret_options, options, OPTIONS_LEAST, "ow_match_options", err);
	return r < 0 ? r : check(ret_options, err);
}
