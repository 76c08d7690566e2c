/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of senders and reflectors of probes: text and JSON. */
#include "report/probes.h"

#include "base/format.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "base/word.h"

#include <inttypes.h>
#include <math.h>

void ow_report_session_json(FILE *out, const struct ow_prober_target *target, const struct ow_prober_counts *n)
{
	const uint64_t *v = n->verdict;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_object(&json, "session");
	ow_json_string(&json, "segment", target->segment);
	ow_json_string(&json, "reflector", target->address);
	ow_json_count(&json, "sent", n->sent);
	ow_json_count(&json, "not_sent", n->failed);
	ow_json_count(&json, "replies", n->replies);
	ow_json_count(&json, "answers", v[OW_PROBES_ANSWER]);
	ow_json_count(&json, "duplicates", v[OW_PROBES_DUPLICATE]);
	ow_json_count(&json, "late", v[OW_PROBES_LATE]);
	ow_json_count(&json, "unasked", v[OW_PROBES_UNASKED]);
	ow_json_count(&json, "malformed", n->malformed);
	ow_json_count(&json, "wrong_key", n->refused);
	ow_json_count(&json, "unreachable", n->unreachable);
	ow_json_count(&json, "untimed", n->untimed);
	ow_json_object(&json, "stamped");
	ow_json_count(&json, "sent_by_card", n->sent_by_card);
	ow_json_count(&json, "sent_by_kernel", n->sent_by_kernel);
	ow_json_count(&json, "received_by_card", n->received_by_card);
	ow_json_count(&json, "received_by_kernel", n->received_by_kernel);
	ow_json_end(&json);
	ow_json_object(&json, "hops");
	ow_json_count_if(&json, "there", n->ttl_there, n->hops_there);
	ow_json_count_if(&json, "back", n->ttl_back, n->hops_back);
	ow_json_end(&json);
	ow_json_end(&json);
	ow_json_end(&json);
}

/* Only unusual counts are printed. */
void ow_report_session_text(FILE *out, const struct ow_prober_target *target, const struct ow_prober_counts *n)
{
	char name[2 * OW_FORMAT], gap[OW_DURATION_TEXT], most[OW_DURATION_TEXT];
	const uint64_t *v = n->verdict;
	ow_format_clean(target->address, false, name, sizeof name);
	fprintf(out,
	        "\n--- reflector %s ---\n%" PRIu64 " %s sent, %" PRIu64 " %s: %" PRIu64 " %s, %" PRIu64 " %s, %" PRIu64
	        " late\n",
	        name, n->sent, ow_plural(n->sent, "probe", "probes"), n->replies,
	        ow_plural(n->replies, "reply", "replies"), v[OW_PROBES_ANSWER],
	        ow_plural(v[OW_PROBES_ANSWER], "answer", "answers"), v[OW_PROBES_DUPLICATE],
	        ow_plural(v[OW_PROBES_DUPLICATE], "duplicate", "duplicates"), v[OW_PROBES_LATE]);
	if (v[OW_PROBES_UNASKED] || n->malformed || n->refused || n->untimed)
		fprintf(out,
		        "not used: %" PRIu64 " unasked, %" PRIu64 " malformed, %" PRIu64 " with another key, %" PRIu64
		        " without times\n",
		        v[OW_PROBES_UNASKED], n->malformed, n->refused, n->untimed);
	if (n->failed || n->unreachable)
		fprintf(out, "%" PRIu64 " %s could not be sent, %" PRIu64 " %s unreachable\n", n->failed,
		        ow_plural(n->failed, "probe", "probes"), n->unreachable,
		        ow_plural(n->unreachable, "time", "times"));
	if (n->ttl_there && n->ttl_back)
		fprintf(out, "hops by TTL: %u there, %u back\n", n->hops_there, n->hops_back);
	if (n->gaps) {
		ow_duration_text((double)n->gap_sum_ns / (double)n->gaps, gap);
		ow_duration_text((double)n->gap_max_ns, most);
		fprintf(out,
		        "sent %s after the time in the packet on average, at most %s; the %s's timestamps are used\n",
		        gap, most, n->sent_by_card ? "card" : "kernel");
	} else if (n->sent) {
		fputs("sent times are those in the packets, before sending: the kernel gave no timestamps\n", out);
	}
}

void ow_report_reflector_json(FILE *out, const struct ow_reflector_counts *n)
{
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_object(&json, "reflector");
	ow_json_count(&json, "received", n->received);
	ow_json_count(&json, "answered", n->answered);
	ow_json_count(&json, "malformed", n->malformed);
	ow_json_count(&json, "wrong_key", n->refused);
	ow_json_count(&json, "too_small", n->small);
	ow_json_count(&json, "replies", n->replies);
	ow_json_count(&json, "limited", n->limited);
	ow_json_count(&json, "crowded", n->crowded);
	ow_json_count(&json, "failed", n->failed);
	ow_json_count(&json, "unstamped", n->unstamped);
	ow_json_object(&json, "gap_ns");
	ow_json_count(&json, "samples", n->gaps);
	if (n->gaps) {
		ow_json_number(&json, "mean", rint((double)n->gap_sum_ns / (double)n->gaps));
		ow_json_integer(&json, "max", n->gap_max_ns);
	}
	ow_json_end(&json);
	ow_json_end(&json);
	ow_json_end(&json);
}

void ow_report_reflector_text(FILE *out, const struct ow_reflector_counts *n)
{
	char mean[OW_DURATION_TEXT], most[OW_DURATION_TEXT];
	fprintf(out, "%" PRIu64 " %s, %" PRIu64 " answered\n", n->received, ow_plural(n->received, "probe", "probes"),
	        n->answered);
	const struct {
		uint64_t count;
		const char *why;
	} reasons[] = {{n->malformed, "not probes"},
	               {n->refused, "with another key, or none"},
	               {n->small, "too small: a reply would be longer"},
	               {n->replies, "replies of another reflector"},
	               {n->limited, "beyond the limits"},
	               {n->crowded, "of too many sources or sessions"},
	               {n->failed, "whose reply could not be sent"}};
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		if (reasons[i].count)
			fprintf(out, "%" PRIu64 " not answered: %s\n", reasons[i].count, reasons[i].why);
	}
	if (n->unstamped)
		fprintf(out, "%" PRIu64 " without a timestamp of the kernel: their time is when they were read\n",
		        n->unstamped);
	if (!n->gaps)
		return;
	ow_duration_text((double)n->gap_sum_ns / (double)n->gaps, mean);
	ow_duration_text((double)n->gap_max_ns, most);
	fprintf(out,
	        "replies left %s after the time in them on average, at most %s (%" PRIu64
	        " of the kernel's timestamps)\n",
	        mean, most, n->gaps);
}
