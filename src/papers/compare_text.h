/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/comparison.h"
#include <stdio.h>

/* Prints tables: errors and their intervals, then the cost of each method. */
void ow_report_compare_text(FILE *out, const struct ow_method_comparison *comparison, int width, bool colour);
/* Prints one JSON object, as in the design document. */
void ow_report_compare_json(FILE *out, const struct ow_method_comparison *comparison);
