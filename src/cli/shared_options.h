/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/* Setters of options that several commands have (see cli/options.h), by the type of the field. */
int ow_option_level(void *field, const char *value, struct ow_error *err);  /* enum ow_level */
int ow_option_toggle(void *field, const char *value, struct ow_error *err); /* enum ow_toggle */
int ow_option_offset(void *field, const char *value, struct ow_error *err); /* struct ow_match_options: clock, offset */
int ow_option_plot(void *field, const char *value, struct ow_error *err);   /* const char *: the name of a plot */

/* Models of traffic and path. */
int ow_option_delay_model(void *field, const char *value, struct ow_error *err); /* struct ow_sim_delay */
int ow_option_loss_model(void *field, const char *value, struct ow_error *err);  /* struct ow_sim_loss */
int ow_option_sizes(void *field, const char *value, struct ow_error *err);       /* struct ow_sim_size */
int ow_option_arrivals(void *field, const char *value, struct ow_error *err);    /* bool: constant, not Poisson */

/*
 * For a setter; the field is a struct ow_flow_select: the fields that define a flow. no_classes: the error for `class`.
 */
int ow_option_flow_key(void *field, const char *value, const char *no_classes, struct ow_error *err);

/* Reads --since and --until as base/when.h does; a time that was not given (NULL) stays unchanged. */
int ow_options_times(const char *since, const char *until, int64_t *ret_since_ns, int64_t *ret_until_ns,
                     struct ow_error *err);

/* A row of a table; the target has bool no_color. */
#define OW_OPTIONS_NO_COLOR(type)                                              \
	{                                                                      \
		"no-color", 0, NULL, ow_option_flag, offsetof(type, no_color), \
			"Use no colours, also on a terminal (as NO_COLOR)."    \
	}
