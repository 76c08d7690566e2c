/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/captures.h"

#include "base/time.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/plot.h"
#include <oneway/match.h>
#include <string.h>

int ow_option_level(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"auto", "ip", "nat", "frame"};
	size_t index;
	int r = ow_option_choice(names, 4, value, &index, err);
	if (r == 0)
		*(enum ow_level *)field = (enum ow_level)index;
	return r;
}

int ow_option_toggle(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"auto", "off", "on"};
	size_t index;
	int r = ow_option_choice(names, 3, value, &index, err);
	if (r == 0)
		*(enum ow_toggle *)field = (enum ow_toggle)index;
	return r;
}

int ow_option_offset(void *field, const char *value, struct ow_error *err)
{
	struct ow_match_options *match = field;
	if (strcmp(value, "auto") == 0) {
		match->clock = OW_CLOCK_ESTIMATED;
		return 0;
	}
	int r = ow_duration_parse(value, &match->offset_ns, err);
	if (r == 0)
		match->clock = OW_CLOCK_GIVEN;
	return r;
}

int ow_option_plot(void *field, const char *value, struct ow_error *err)
{
	int r = ow_plot_check_name(value, err);
	return r < 0 ? r : ow_option_output(field, value, err);
}
