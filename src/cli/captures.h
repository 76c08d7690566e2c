/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_CAPTURES_H
#define OW_CLI_CAPTURES_H

#include <oneway/error.h>

/* Setters of options that the commands on two captures share (see cli/options.h), by the type of the field. */
int ow_option_level(void *field, const char *value, struct ow_error *err);  /* enum ow_level */
int ow_option_toggle(void *field, const char *value, struct ow_error *err); /* enum ow_toggle */
int ow_option_offset(void *field, const char *value, struct ow_error *err); /* struct ow_match_options: clock, offset */
int ow_option_plot(void *field, const char *value, struct ow_error *err);   /* const char *: a name of a picture */

#endif
