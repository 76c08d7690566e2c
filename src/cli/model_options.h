/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_MODEL_OPTIONS_H
#define OW_CLI_MODEL_OPTIONS_H

#include <oneway/error.h>

/* Setters (cli/options.h) of what simulate and the lab have in common: models of traffic and path. */
int ow_option_delay_model(void *field, const char *value, struct ow_error *err); /* struct ow_sim_delay */
int ow_option_loss_model(void *field, const char *value, struct ow_error *err);  /* struct ow_sim_loss */
int ow_option_sizes(void *field, const char *value, struct ow_error *err);       /* struct ow_sim_size */
int ow_option_arrivals(void *field, const char *value, struct ow_error *err);    /* bool: constant, not Poisson */

#endif
