/* SPDX-License-Identifier: Apache-2.0 */
#include "result/interval_result.h"

#include "base/time.h"
#include "result/cause.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const ow_result_status_name[] = {"measured", "partial", "unknown"};

int ow_result_status_of(const char *name)
{
	for (int i = OW_RESULT_MEASURED; name && i <= OW_RESULT_UNKNOWN; i++) {
		if (strcmp(name, ow_result_status_name[i]) == 0)
			return i;
	}
	return -1;
}

void ow_result_clear_delays(struct ow_interval_result *r)
{
	const struct ow_value none = ow_value_none(OW_REASON_INTERVAL_UNKNOWN);
	r->mean_ns = r->stddev_ns = r->min_ns = r->max_ns = none;
	r->round_trip_min_ns = r->round_trip_mean_ns = r->above_min_ns = none;
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] = none;
	r->delays = (struct ow_delay_histogram){0};
	r->reordered = OW_RESULT_NOT_COUNTED;
}

double ow_result_packets_sent(const struct ow_interval_result *result)
{
	double unshared = ldexp((double)result->unshared_sent, (int)result->sample_shift);
	return fmax((double)result->total_sent - unshared, (double)result->sent) + (double)result->missed;
}

void ow_result_loss_undecided(struct ow_value *loss, double decided, double sent)
{
	if (loss->status == OW_VALUE_NONE || !(sent > decided))
		return;
	loss->status = OW_VALUE_ESTIMATED;
	loss->low = loss->low * decided / sent;
	loss->high = (loss->high * decided + sent - decided) / sent;
}

void ow_result_loss_doubted(struct ow_value *loss, double packets, double sent)
{
	if (loss->status == OW_VALUE_NONE || !(packets > 0 && sent > 0))
		return;
	loss->status = OW_VALUE_ESTIMATED;
	loss->low = fmax(0, loss->low - packets / sent);
	loss->high = fmin(1, loss->high + packets / sent);
}

void ow_result_blank(int64_t interval, int64_t start_ns, int64_t length_ns, struct ow_interval_result *ret_result)
{
	*ret_result = (struct ow_interval_result){
		.interval = interval,
		.start_ns = start_ns,
		.length_ns = length_ns,
		.loss_ratio = ow_value_none(OW_REASON_INTERVAL_UNKNOWN),
		.clock_from = {false, OW_CLOCK_UNKNOWN},
		.clock_to = {false, OW_CLOCK_UNKNOWN},
		.clock_offset_ns = ow_value_none(OW_REASON_INTERVAL_UNKNOWN),
		.clock_drift_ppb = ow_value_none(OW_REASON_INTERVAL_UNKNOWN),
	};
	ow_result_clear_delays(ret_result);
}

void ow_result_name_like(struct ow_interval_result *r, const struct ow_interval_result *names)
{
	memcpy(r->segment, names->segment, sizeof r->segment);
	memcpy(r->class_name, names->class_name, sizeof r->class_name);
	memcpy(r->from, names->from, sizeof r->from);
	memcpy(r->to, names->to, sizeof r->to);
}

bool ow_result_is_lane(const struct ow_interval_result *a, const struct ow_interval_result *b)
{
	return strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 &&
	       strcmp(a->class_name, b->class_name) == 0 && strcmp(a->segment, b->segment) == 0;
}

void ow_result_add_cause(struct ow_interval_result *result, const char *text)
{
	char all[2 * OW_RESULT_CAUSE + 2];
	snprintf(all, sizeof all, "%.*s%s%.*s", OW_RESULT_CAUSE - 1, result->cause, *result->cause ? "; " : "",
	         OW_RESULT_CAUSE - 1, text);
	ow_cause_fit(all, sizeof result->cause);
	memcpy(result->cause, all, strlen(all) + 1);
	if (result->status == OW_RESULT_MEASURED)
		result->status = OW_RESULT_PARTIAL;
}

void ow_result_delays_longer(struct ow_interval_result *result, int64_t gap_ns)
{
	char text[OW_RESULT_CAUSE], every[OW_DURATION_TEXT];
	ow_duration_text((double)gap_ns, every);
	snprintf(text, sizeof text, ow_cause_identical_delays, every);
	ow_result_add_cause(result, text);
}
