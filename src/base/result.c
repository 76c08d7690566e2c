/* SPDX-License-Identifier: Apache-2.0 */
#include <oneway/result.h>

const double ow_quantile_level[OW_QUANTILES] = {0.5, 0.9, 0.95, 0.99, 0.999};
const char *const ow_quantile_name[OW_QUANTILES] = {"0.5", "0.9", "0.95", "0.99", "0.999"};
