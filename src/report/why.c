/* SPDX-License-Identifier: Apache-2.0 */
/* Why a path is worse than before: a table of its parts and what follows from it, or JSON. */
#include "report/why.h"

#include "base/format.h"
#include "base/time.h"
#include "result/json.h"

#include <math.h>

static void put_part(FILE *out, const struct ow_style *style, const struct ow_why_part *part, int width)
{
	char before[OW_DURATION_TEXT] = "-", after[OW_DURATION_TEXT] = "-", excess[OW_DURATION_TEXT] = "-";
	char loss_before[OW_FORMAT] = "-", loss_after[OW_FORMAT] = "-", sigmas[OW_FORMAT] = "-", name[OW_PLACE_TEXT];
	const struct ow_era_change *change = &part->change;
	ow_format_clean(part->name, !style->utf8, name, sizeof(name));
	ow_format_cut(name, (size_t)width);
	if (part->before.intervals > 0)
		ow_duration_text(part->before.mean, before);
	if (part->after.intervals > 0)
		ow_duration_text(part->after.mean, after);
	if (isfinite(change->excess_ns))
		ow_duration_text(change->excess_ns, excess);
	if (isfinite(change->loss_before)) {
		ow_format_percent(change->loss_before, loss_before);
		ow_format_percent(change->loss_after, loss_after);
	}
	if (isfinite(change->delay_z))
		snprintf(sigmas, sizeof(sigmas), "%.1f", change->delay_z);
	fprintf(out, "%c %s%*s %10s %10s %10s %7s %7s %7s\n", part->slower || part->lossier ? '*' : ' ', name,
	        width - (int)ow_format_columns(name), "", before, after, excess, sigmas, loss_before, loss_after);
}

static void put_conclusion(FILE *out, const struct ow_style *style, const struct ow_why *why)
{
	const struct ow_composed *composed = why->composed;
	char before[OW_DURATION_TEXT], after[OW_DURATION_TEXT], more[OW_DURATION_TEXT];
	double excess = composed[1].mean_ns.value - composed[0].mean_ns.value;
	bool known = composed[0].mean_ns.status != OW_VALUE_NONE && composed[1].mean_ns.status != OW_VALUE_NONE;
	bool any = false;
	if (known) {
		ow_duration_text(composed[0].mean_ns.value, before);
		ow_duration_text(composed[1].mean_ns.value, after);
		ow_duration_text(fabs(excess), more);
		fprintf(out, "The path takes %s, %s %s than before (%s).\n", after, more, excess < 0 ? "less" : "more",
		        before);
	} else {
		fputs("The path cannot be composed: a part of it has no results before or after.\n", out);
	}
	for (uint32_t i = 0; i < why->parts; i++) {
		const struct ow_why_part *part = &why->part[i];
		char name[OW_PLACE_TEXT];
		ow_format_clean(part->name, !style->utf8, name, sizeof(name));
		if (part->slower) {
			ow_duration_text(part->change.excess_ns, more);
			fprintf(out, "%s is slower by %s", name, more);
			if (known && excess > 0)
				fprintf(out, ", %.0f %% of the path's excess",
				        100 * part->share * part->change.excess_ns / excess);
			fputs(".\n", out);
			any = true;
		}
		if (part->lossier) {
			fprintf(out, "%s loses %.3g %%, before %.3g %%.\n", name, part->change.loss_after * 100,
			        part->change.loss_before * 100);
			any = true;
		}
	}
	uint32_t unknown = why->parts - why->compared;
	if (!any)
		fprintf(out, "%s is worse than before beyond chance.\n",
		        unknown ? "No part with results" : "No part of it");
	if (unknown)
		fprintf(out, "Of %u of its %u parts nothing can be said: they have no results before, or none after.\n",
		        unknown, why->parts);
}

void ow_report_why_text(FILE *out, const struct ow_style *style, const struct ow_why_question *question,
                        const struct ow_why *why)
{
	char time[OW_FORMAT];
	int width = style->width - 60;
	width = width < 18 ? 18 : width > 40 ? 40 : width;
	fprintf(out, "%s to %s%s%s since %s, against the hour before\n\n", question->from, question->to,
	        question->class_name ? ", " : "", question->class_name ? question->class_name : "",
	        ow_format_local(question->since_ns, "%Y-%m-%d %H:%M:%S", time));
	fprintf(out, "  %-*s %10s %10s %10s %7s %7s %7s\n", width, "part", "before", "after", "excess", "sigmas",
	        "loss", "after");
	for (uint32_t i = 0; i < why->parts; i++)
		put_part(out, style, &why->part[i], width);
	fputc('\n', out);
	put_conclusion(out, style, why);
}

static void json_part(struct ow_json *json, const struct ow_why_part *part)
{
	ow_json_object(json, NULL);
	ow_json_string(json, "place", part->name);
	ow_json_flag(json, "responsible", part->slower || part->lossier);
	ow_json_number(json, "share", part->share);
	ow_json_number(json, "intervals_before", part->before.intervals);
	ow_json_number(json, "intervals_after", part->after.intervals);
	ow_json_number(json, "before_ns", part->before.intervals > 0 ? part->before.mean : NAN);
	ow_json_number(json, "after_ns", part->after.intervals > 0 ? part->after.mean : NAN);
	ow_json_number(json, "excess_ns", part->change.excess_ns);
	ow_json_number(json, "excess_error_ns", part->change.excess_error_ns);
	ow_json_number(json, "sigmas", part->change.delay_z);
	ow_json_number(json, "loss_before", part->change.loss_before);
	ow_json_number(json, "loss_after", part->change.loss_after);
	ow_json_number(json, "loss_sigmas", part->change.loss_z);
	ow_json_end(json);
}

void ow_report_why_json(FILE *out, const struct ow_why_question *question, const struct ow_why *why)
{
	const struct ow_composed *composed = why->composed;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_command(&json, "plane monitor");
	ow_json_string(&json, "from", question->from);
	ow_json_string(&json, "to", question->to);
	ow_json_integer(&json, "since_ns", question->since_ns);
	ow_json_number(&json, "before_ns", ow_json_known(&composed[0].mean_ns));
	ow_json_number(&json, "after_ns", ow_json_known(&composed[1].mean_ns));
	ow_json_number(&json, "loss_before", ow_json_known(&composed[0].loss_ratio));
	ow_json_number(&json, "loss_after", ow_json_known(&composed[1].loss_ratio));
	ow_json_array(&json, "parts");
	for (uint32_t i = 0; i < why->parts; i++)
		json_part(&json, &why->part[i]);
	ow_json_end(&json);
	ow_json_end(&json);
}
