/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

/* Prints oneway.yaml(5), the manual page of a point's configuration, from the tables of its keys. */
void ow_report_config_manual(FILE *out);
