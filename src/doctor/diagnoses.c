/* SPDX-License-Identifier: Apache-2.0 */
/* The list of findings of a check-up. */
#include "doctor/diagnoses.h"
#include "base/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ow_diagnoses_done(struct ow_diagnoses *findings)
{
	free(findings->list);
	*findings = (struct ow_diagnoses){0};
}

size_t ow_diagnoses_count(const struct ow_diagnoses *findings, enum ow_diagnosis_verdict verdict)
{
	size_t n = 0;
	for (size_t i = 0; i < findings->count; i++)
		n += findings->list[i].verdict == verdict;
	return n;
}

/* NULL: no memory. */
static struct ow_diagnosis *next(struct ow_diagnoses *findings)
{
	if (OW_GROW(findings->list, findings->room, findings->count + 1) < 0)
		return NULL;
	return &findings->list[findings->count++];
}

struct ow_diagnosis *ow_diagnoses_add(struct ow_diagnoses *findings, const char *about, const char *name)
{
	struct ow_diagnosis *f = next(findings);
	if (!f) {
		findings->error = -ENOMEM;
		f = &findings->spare;
	}
	*f = (struct ow_diagnosis){.name = name};
	snprintf(f->about, sizeof f->about, "%s", about);
	return f;
}

void ow_found(struct ow_diagnosis *f, enum ow_diagnosis_verdict verdict, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	f->verdict = verdict;
	vsnprintf(f->found, sizeof f->found, format, args);
	va_end(args);
}

void ow_means(struct ow_diagnosis *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(f->means, sizeof f->means, format, args);
	va_end(args);
}

void ow_fix(struct ow_diagnosis *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(f->fix, sizeof f->fix, format, args);
	va_end(args);
}
