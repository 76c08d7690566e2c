/* SPDX-License-Identifier: Apache-2.0 */
/* The truth as JSON: a RESULT for A to B with further members. */
#include "result/json.h"
#include "sim/output.h"
#include "sim/sim.h"

static void put_clock(struct ow_json *json, const struct ow_sim_truth *truth)
{
	ow_json_object(json, "clock");
	ow_json_integer(json, "offset_ns", truth->offset_ns);
	ow_json_digits(json, "drift_ppb", truth->drift_ppb, 17);
	ow_json_end(json);
}

static void put_drifted(struct ow_json *json, const struct ow_sim_truth *truth)
{
	static const char *const name[] = {"pre_start", "post_start", "pre_end", "post_end"};
	ow_json_object(json, "drifted");
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		ow_json_count(json, name[i], truth->drifted[i]);
	ow_json_end(json);
}

static void put_truth(FILE *out, const struct ow_sim_truth *truth)
{
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_result_members(&json, &truth->direction[OW_A_TO_B]);
	if (truth->has_direction[OW_B_TO_A])
		ow_json_result(&json, "reverse", &truth->direction[OW_B_TO_A]);
	else
		ow_json_null(&json, "reverse");
	ow_json_count(&json, "seed", truth->seed);
	put_clock(&json, truth);
	ow_json_integer(&json, "first_ns", truth->first_ns);
	ow_json_integer(&json, "last_ns", truth->last_ns);
	ow_json_sides(&json, "records", truth->records);
	ow_json_sides(&json, "outside", truth->outside);
	ow_json_sides(&json, "superframes", truth->superframes);
	ow_json_count(&json, "queue_drops", truth->dropped);
	ow_json_count(&json, "retransmitted", truth->retransmitted);
	ow_json_count(&json, "identical", truth->identical);
	ow_json_count(&json, "fragments", truth->fragments);
	put_drifted(&json, truth);
	ow_json_end(&json);
}

int ow_sim_truth_write(const char *path, const struct ow_sim_truth *truth, struct ow_error *err)
{
	FILE *out;
	int r = ow_sim_output_open(path, &out, err);
	if (r < 0)
		return r;
	put_truth(out, truth);
	return ow_sim_output_close(path, out, err);
}
