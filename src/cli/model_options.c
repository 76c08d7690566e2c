/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model_options.h"

#include "cli/options.h"
#include "sim/sim.h"

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
