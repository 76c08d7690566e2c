/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * The options of a program of any version; NULL = the defaults. -EINVAL or -E2BIG with an error that names the option.
 */
int ow_match_options_take(const struct ow_match_options *options, struct ow_match_options *ret_options,
                          struct ow_error *err);
