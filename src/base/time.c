/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct unit {
	const char *name;
	double ns;
} units[] = {
	{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9},
};

/* Durations beyond this (about 146 years) cannot be added to a timestamp safely. */
#define DURATION_MAX_NS 0x1p62

int ow_duration_parse(const char *text, int64_t *ret_ns, struct ow_error *err)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return ow_error_set(err, EINVAL, "'%.40s' is not a duration (examples: 1s, 250ms, 1.5us)", text);
	while (*end == ' ')
		end++;
	if (!*end && value == 0) {
		*ret_ns = 0;
		return 0;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		value *= units[i].ns;
		if (fabs(value) > DURATION_MAX_NS)
			return ow_error_set(err, ERANGE, "'%.40s' is too long a duration", text);
		*ret_ns = llrint(value);
		return 0;
	}
	return ow_error_set(err, EINVAL, "'%.40s' needs a unit: ns, us, ms, s, min, h or d", text);
}

void ow_duration_text(double ns, char text[OW_DURATION_TEXT])
{
	double size = fabs(ns), value = ns;
	const char *unit = "ns";
	if (isnan(ns)) {
		snprintf(text, OW_DURATION_TEXT, "unknown");
		return;
	}
	if (size >= 999.95e6) {
		value = ns / 1e9;
		unit = "s";
	} else if (size >= 999.95e3) {
		value = ns / 1e6;
		unit = "ms";
	} else if (size >= 999.95) {
		value = ns / 1e3;
		unit = "us";
	}
	size = fabs(value);
	int decimals = size >= 1000 || size == floor(size) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
	snprintf(text, OW_DURATION_TEXT, "%.*f %s", decimals, value, unit);
}

const char *ow_duration_cell(double ns, char text[OW_DURATION_TEXT])
{
	if (isfinite(ns))
		ow_duration_text(ns, text);
	else
		snprintf(text, OW_DURATION_TEXT, "-");
	return text;
}
