/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/capture_recording.h"
#include "flows/epochs.h"
#include <stdio.h>

/* Prints what was recorded. width: columns of the terminal. */
void ow_report_recorded_text(FILE *out, const struct ow_capture_recording *how,
                             const struct ow_capture_recorded *recorded, int width);
void ow_report_recorded_json(FILE *out, const struct ow_capture_recording *how,
                             const struct ow_capture_recorded *recorded);

/* Prints what a file of epochs contains. each: also a line for each epoch. */
void ow_report_epochs_text(FILE *out, const struct ow_epochs *epochs, bool each, int width);
void ow_report_epochs_json(FILE *out, const struct ow_epochs *epochs);
