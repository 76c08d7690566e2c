/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "doctor/host_judge.h"
#include "report/style.h"
#include <stdio.h>

/* What oneway doctor reports. */
struct ow_doctor_report {
	const char *host;  /* its name */
	const char *point; /* name in the configuration; NULL = no configuration was given */
	const struct ow_diagnoses *findings;
	const struct ow_link_facts *links; /* all interfaces */
	size_t link_count;
	bool list; /* list the interfaces in the text */
};

/* quiet: only warnings and problems. */
void ow_report_doctor_text(FILE *out, const struct ow_doctor_report *report, const struct ow_style *style, bool quiet);
void ow_report_doctor_json(FILE *out, const struct ow_doctor_report *report);

/* Largest number of interfaces that the text lists. */
#define OW_DOCTOR_LINKS 24
