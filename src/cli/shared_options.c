/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands have in common. */
#include "cli/shared_options.h"

#include "base/clock.h"
#include "base/time.h"
#include "base/when.h"
#include "cli/options.h"
#include "cli/output.h"
#include "packet/flow_select.h"
#include "report/chart.h"
#include "sim/sim.h"
#include <errno.h>
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
	int r = ow_chart_check_name(value, err);
	return r < 0 ? r : ow_option_output(field, value, err);
}

int ow_option_flow_key(void *field, const char *value, const char *no_classes, struct ow_error *err)
{
	struct ow_flow_select select;
	int r = ow_flow_select_parse(value, &select, err);
	if (r == 0 && select.by == OW_FLOW_BY_CLASS)
		return ow_error_set(err, EINVAL, "%s", no_classes);
	if (r == 0)
		*(struct ow_flow_select *)field = select;
	return r;
}

int ow_options_times(const char *since, const char *until, int64_t *ret_since_ns, int64_t *ret_until_ns,
                     struct ow_error *err)
{
	struct ow_error why;
	int64_t now_ns = ow_clock_real_ns();
	const char *const text[] = {since, until}, *const name[] = {"since", "until"};
	int64_t *const to[] = {ret_since_ns, ret_until_ns};
	for (int i = 0; i < 2; i++) {
		if (text[i] && ow_when_parse(text[i], now_ns, to[i], &why) < 0)
			return ow_error_set(err, EINVAL, "--%s: %.400s", name[i], why.text);
	}
	return 0;
}

int ow_option_delay_model(void *field, const char *value, struct ow_error *err)
{
	return ow_sim_delay_parse(value, field, err);
}

int ow_option_loss_model(void *field, const char *value, struct ow_error *err)
{
	return ow_sim_loss_parse(value, field, err);
}

int ow_option_sizes(void *field, const char *value, struct ow_error *err)
{
	return ow_sim_size_parse(value, field, err);
}

int ow_option_arrivals(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"poisson", "constant"};
	size_t i = 0;
	int r = ow_option_choice(names, 2, value, &i, err);
	if (r >= 0)
		*(bool *)field = i == 1;
	return r;
}
