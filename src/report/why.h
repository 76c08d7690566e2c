/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/style.h"
#include "station/why.h"
#include <stdio.h>

void ow_report_why_text(FILE *out, const struct ow_style *style, const struct ow_why_question *question,
                        const struct ow_why *why);
void ow_report_why_json(FILE *out, const struct ow_why_question *question, const struct ow_why *why);
