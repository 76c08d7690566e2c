/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "active/prober.h"
#include "active/reflector.h"
#include <stdio.h>

/* The session with one reflector, at its sender. The text has only unusual counts. */
void ow_report_session_text(FILE *out, const struct ow_prober_target *target, const struct ow_prober_counts *counts);
void ow_report_session_json(FILE *out, const struct ow_prober_target *target, const struct ow_prober_counts *counts);
/* The counts of a reflector. */
void ow_report_reflector_text(FILE *out, const struct ow_reflector_counts *counts);
void ow_report_reflector_json(FILE *out, const struct ow_reflector_counts *counts);
