/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * The result of a check-up: for each check a verdict, what was found, what that means for the measurement, and the
 * command that changes it.
 */
enum ow_diagnosis_verdict {
	OW_VERDICT_OK,
	OW_VERDICT_NOTE,    /* information; also facts that could not be read */
	OW_VERDICT_WARNING, /* results can be worse than necessary */
	OW_VERDICT_PROBLEM, /* results are wrong or missing */
	OW_VERDICTS
};

#define OW_DIAGNOSIS_FOUND 256
#define OW_DIAGNOSIS_MEANS 512
#define OW_DIAGNOSIS_FIX   384
#define OW_DIAGNOSIS_ABOUT 32

struct ow_diagnosis {
	char about[OW_DIAGNOSIS_ABOUT]; /* "host", "point", or the interface */
	const char *name;               /* name of the check, static: letters and '_' */
	enum ow_diagnosis_verdict verdict;
	char found[OW_DIAGNOSIS_FOUND], means[OW_DIAGNOSIS_MEANS];
	char fix[OW_DIAGNOSIS_FIX]; /* a command, or "# advice" if there is no command; "" = nothing to do */
};

struct ow_diagnoses {
	struct ow_diagnosis *list;
	size_t count, room;
	int error; /* -ENOMEM: some are missing */
	struct ow_diagnosis spare;
};

/* All zero is an empty list. */
void ow_diagnoses_done(struct ow_diagnoses *findings);
/* How many have this verdict. */
size_t ow_diagnoses_count(const struct ow_diagnoses *findings, enum ow_diagnosis_verdict verdict);

/* Adds a finding without texts. Never NULL: without memory the finding is lost, and `error` is set. */
struct ow_diagnosis *ow_diagnoses_add(struct ow_diagnoses *findings, const char *about, const char *name);

/* Set the verdict and the texts; a text that is too long is cut. */
void ow_found(struct ow_diagnosis *f, enum ow_diagnosis_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ow_means(struct ow_diagnosis *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ow_fix(struct ow_diagnosis *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
