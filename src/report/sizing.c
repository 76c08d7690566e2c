/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the size of a COLATE recording. */
#include "report/sizing.h"

#include "base/format.h"
#include "base/json_writer.h"
#include "base/time.h"
#include <inttypes.h>
#include <math.h>

void ow_report_sizing_text(FILE *out, const struct ow_report_sizing *sizing)
{
	const struct ow_colate_need *need = sizing->need;
	const struct ow_flow_measure *found = sizing->measured;
	const struct ow_colate_size *size = sizing->size;
	double rate = sizing->rate;
	char a[OW_FORMAT], b[OW_FORMAT], c[OW_FORMAT], length[OW_DURATION_TEXT];
	if (found) {
		fprintf(out, "measured    %s packets, %s flows, %s with at least %" PRIu64 " packets\n",
		        ow_format_count(found->packets, a), ow_format_count(found->flows, b),
		        ow_format_count(found->large, c), sizing->packets_min);
		if (sizing->both && found->compared)
			fprintf(out, "ratio       median %.4g, 5 %% quantile %.4g, of %s flows at both points\n",
			        found->ratio_median, found->ratio_low, ow_format_count(found->compared, a));
	}
	fprintf(out, "need        alpha %.4g, beta %.4g, t_min %.4g, t_max %.4g, ratio %.4g\n", need->alpha, need->beta,
	        need->t_min, need->t_max, need->ratio);
	fprintf(out, "equations   n %.6g, m %.4g, b %.4g, T %.4g\n", size->n, size->m, size->b, size->T);
	fprintf(out, "counters    %s of %u bits, %u a flow\n", ow_format_count(size->counters, a), size->bits,
	        size->spread);
	fprintf(out, "threshold   %.4g\n", size->threshold);
	if (rate > 0) {
		double units = ow_colate_epoch_length(size, rate);
		ow_duration_text(units * (double)sizing->unit_ns, length);
		fprintf(out, "epochs      of %s at %.4g packets a second\n", length,
		        rate * 1e9 / (double)sizing->unit_ns);
		fprintf(out, "storage     %.3g bit/packet\n", ow_colate_bits_per_packet(size, units / 2));
	} else {
		fprintf(out, "storage     per packet: needs --rate or --measure\n");
	}
	fprintf(out, "record with --form colate --counters %u --spread %u --bits %u --threshold %.0f", size->counters,
	        size->spread, size->bits, size->threshold);
	if (sizing->unit_ns != 1)
		fprintf(out, " --unit %" PRId64 "ns", sizing->unit_ns);
	fprintf(out, "\n");
}

static void json_need(struct ow_json *json, int64_t unit_ns, const struct ow_colate_need *need)
{
	ow_json_object(json, "need");
	ow_json_number(json, "memory_bits", need->memory_bits);
	ow_json_number(json, "alpha", need->alpha);
	ow_json_number(json, "beta", need->beta);
	ow_json_number(json, "t_min", need->t_min);
	ow_json_number(json, "t_max", need->t_max);
	ow_json_number(json, "ratio", need->ratio);
	ow_json_number(json, "unit_ns", (double)unit_ns);
	ow_json_end(json);
}

static void json_measured(struct ow_json *json, const struct ow_flow_measure *found)
{
	ow_json_object(json, "measured");
	ow_json_count(json, "packets", found->packets);
	ow_json_count(json, "flows", found->flows);
	ow_json_count(json, "large_flows", found->large);
	ow_json_count(json, "compared", found->compared);
	ow_json_number(json, "ratio_median", found->ratio_median);
	ow_json_number(json, "ratio_low", found->ratio_low);
	ow_json_end(json);
}

static void json_equations(struct ow_json *json, const struct ow_colate_size *size)
{
	ow_json_object(json, "equations");
	ow_json_number(json, "n", size->n);
	ow_json_number(json, "m", size->m);
	ow_json_number(json, "b", size->b);
	ow_json_number(json, "T", size->T);
	ow_json_end(json);
}

void ow_report_sizing_json(FILE *out, const struct ow_report_sizing *sizing)
{
	const struct ow_colate_size *size = sizing->size;
	double rate = sizing->rate;
	struct ow_json json = {.out = out, .indent = 1};
	double units = rate > 0 ? ow_colate_epoch_length(size, rate) : NAN;
	ow_json_object(&json, NULL);
	ow_json_command(&json, "flows size");
	ow_json_line(&json);
	json_need(&json, sizing->unit_ns, sizing->need);
	ow_json_line(&json);
	if (sizing->measured)
		json_measured(&json, sizing->measured);
	else
		ow_json_null(&json, "measured");
	ow_json_line(&json);
	json_equations(&json, size);
	ow_json_line(&json);
	ow_json_count(&json, "counters", size->counters);
	ow_json_count(&json, "spread", size->spread);
	ow_json_count(&json, "bits", size->bits);
	ow_json_number(&json, "threshold", size->threshold);
	ow_json_number(&json, "epoch_ns", units * (double)sizing->unit_ns);
	ow_json_number(&json, "bits_per_packet", rate > 0 ? ow_colate_bits_per_packet(size, units / 2) : NAN);
	ow_json_end(&json);
}
