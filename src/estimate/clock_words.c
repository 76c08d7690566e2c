/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/clock_words.h"

#include "base/time.h"
#include <math.h>
#include <stdio.h>

/* The text about the known error of the clocks. */
static void known_text(double least_ns, double error_ns, char *text, size_t size)
{
	char error[OW_DURATION_TEXT];
	*text = 0;
	if (isnan(error_ns))
		snprintf(text, size, "; their error is not known");
	if (!(error_ns > 0))
		return;
	ow_duration_text(error_ns, error);
	snprintf(text, size,
	         -least_ns > error_ns ? ", but their error bound is %s" : ", within their error bound of %s", error);
}

void ow_clock_words(double least_ns, double mean_ns, double error_ns, const char *behind,
                    struct ow_clock_words *ret_words)
{
	char least[OW_DURATION_TEXT], error[OW_DURATION_TEXT], known[OW_DURATION_TEXT + 48];
	struct ow_clock_words *w = ret_words;
	*w = (struct ow_clock_words){{0}, {0}};
	if (error_ns > fabs(mean_ns)) {
		ow_duration_text(error_ns, error);
		snprintf(w->beyond, sizeof w->beyond,
		         "clock error exceeds the delay: the clocks may be off by %s, and the delay by as much", error);
	}
	if (!(least_ns < 0))
		return;
	ow_duration_text(-least_ns, least);
	known_text(least_ns, error_ns, known, sizeof known);
	snprintf(w->negative, sizeof w->negative,
	         "negative delay: the clocks are apart by at least %s%s%.64s%s%s%s (oneway doctor)", least,
	         behind ? " (" : "", behind ? behind : "", behind ? " is behind)" : "", known,
	         -least_ns < OW_LATE_STAMP_NS ? ", or the sender's stamps are late" : "");
}
