/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_DOCTOR_DIAGNOSES_H
#define OW_DOCTOR_DIAGNOSES_H

#include <stddef.h>

/*
 * What a check-up says: for each thing that was looked at a verdict, what was found, what that means for the
 * measurement, and the command that changes it.
 */
enum ow_diagnosis_verdict {
	OW_VERDICT_OK,
	OW_VERDICT_NOTE,    /* good to know; also what could not be read */
	OW_VERDICT_WARNING, /* results can be worse than they need be */
	OW_VERDICT_PROBLEM, /* results are wrong or there are none */
	OW_VERDICTS
};

#define OW_DIAGNOSIS_FOUND 256
#define OW_DIAGNOSIS_MEANS 512
#define OW_DIAGNOSIS_FIX   384
#define OW_DIAGNOSIS_ABOUT 32

struct ow_diagnosis {
	char about[OW_DIAGNOSIS_ABOUT]; /* "host", "point", or the interface */
	const char *name;               /* of the check, static: letters and '_' */
	enum ow_diagnosis_verdict verdict;
	char found[OW_DIAGNOSIS_FOUND], means[OW_DIAGNOSIS_MEANS];
	char fix[OW_DIAGNOSIS_FIX]; /* a command, or "# advice" where there is none; "" = nothing to do */
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

/* A new finding at the end, without texts; never NULL (then it is lost, and error says so). */
struct ow_diagnosis *ow_diagnoses_add(struct ow_diagnoses *findings, const char *about, const char *name);

/* Give it its verdict and its texts; what is too long is cut. */
void ow_found(struct ow_diagnosis *f, enum ow_diagnosis_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ow_means(struct ow_diagnosis *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ow_fix(struct ow_diagnosis *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
