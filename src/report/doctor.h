/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_REPORT_DOCTOR_H
#define OW_REPORT_DOCTOR_H

#include "doctor/host_judge.h"
#include "report/style.h"
#include <stdio.h>

/* What oneway doctor has to say. */
struct ow_doctor_report {
	const char *host;  /* its name */
	const char *point; /* of the configuration; NULL = none was given */
	const struct ow_diagnoses *findings;
	const struct ow_link_facts *links; /* all interfaces */
	size_t link_count;
	bool list; /* text: list them */
};

/* quiet: warnings and problems only. */
void ow_report_doctor_text(FILE *out, const struct ow_doctor_report *report, const struct ow_style *style, bool quiet);
void ow_report_doctor_json(FILE *out, const struct ow_doctor_report *report);

/* Interfaces that are listed, in text. */
#define OW_DOCTOR_LINKS 24

#endif
