/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_DOCTOR_DIAGNOSES_H
#define OW_DOCTOR_DIAGNOSES_H

#include <stddef.h>

/*
 * What a check-up says: for each thing that was looked at a verdict, what was found, what that means for the
 * measurement, and the command that changes it.
 */
enum ow_verdict {
	OW_VERDICT_OK,
	OW_VERDICT_NOTE,    /* good to know; also what could not be read */
	OW_VERDICT_WARNING, /* results can be worse than they need be */
	OW_VERDICT_PROBLEM, /* results are wrong or there are none */
	OW_VERDICTS
};

#define OW_FINDING_FOUND 256
#define OW_FINDING_MEANS 512
#define OW_FINDING_FIX   384
#define OW_FINDING_ABOUT 32

struct ow_finding {
	char about[OW_FINDING_ABOUT]; /* "host", "point", or the interface */
	const char *name;             /* of the check, static: letters and '_' */
	enum ow_verdict verdict;
	char found[OW_FINDING_FOUND], means[OW_FINDING_MEANS];
	char fix[OW_FINDING_FIX]; /* a command, or "# advice" where there is none; "" = nothing to do */
};

struct ow_findings {
	struct ow_finding *list;
	size_t count, room;
	int error; /* -ENOMEM: some are missing */
	struct ow_finding spare;
};

/* All zero is an empty list. */
void ow_findings_done(struct ow_findings *findings);
/* How many have this verdict. */
size_t ow_findings_count(const struct ow_findings *findings, enum ow_verdict verdict);

/* A new finding at the end, without texts; never NULL (then it is lost, and error says so). */
struct ow_finding *ow_findings_add(struct ow_findings *findings, const char *about, const char *name);

/* Give it its verdict and its texts; what is too long is cut. */
void ow_found(struct ow_finding *f, enum ow_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ow_means(struct ow_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ow_fix(struct ow_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
