/* SPDX-License-Identifier: Apache-2.0 */
/* The truth of a path of several points as JSON. */
#include "result/json.h"
#include "sim/output.h"
#include "sim/points.h"

static void put_names(struct ow_json *json, const char *name, const struct ow_sim_points *points, unsigned place)
{
	ow_json_array(json, name);
	for (unsigned i = 0; i < points->points; i++) {
		if (points->point[i].place == place)
			ow_json_string(json, NULL, points->point[i].name);
	}
	ow_json_end(json);
}

static void put_directions(struct ow_json *json, const struct ow_sim_hop_truth *truth)
{
	static const char *const name[OW_DIRECTIONS] = {"a_to_b", "b_to_a"};
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (truth->has_direction[d])
			ow_json_result(json, name[d], &truth->direction[d]);
		else
			ow_json_null(json, name[d]);
	}
}

static void put_point(struct ow_json *json, const struct ow_sim_point *point, uint64_t records, uint32_t files)
{
	ow_json_row(json);
	ow_json_string(json, "name", point->name);
	ow_json_string(json, "path", point->path);
	ow_json_count(json, "place", point->place);
	ow_json_number(json, "share", point->share);
	ow_json_count(json, "records", records);
	ow_json_count(json, "files", files);
	ow_json_integer(json, "offset_ns", point->offset_ns);
	ow_json_number(json, "drift_ppb", point->drift_ppb);
	ow_json_end(json);
}

static void put_hop(struct ow_json *json, const struct ow_sim_points *points, unsigned h,
                    const struct ow_sim_hop_truth *truth)
{
	ow_json_row(json);
	put_names(json, "from", points, h);
	put_names(json, "to", points, h + 1);
	put_directions(json, truth);
	ow_json_end(json);
}

int ow_sim_points_truth_write(const char *path, const struct ow_sim_points *points,
                              const struct ow_sim_options *options, const struct ow_sim_points_truth *truth,
                              struct ow_error *err)
{
	FILE *out;
	int r = ow_sim_output_open(path, &out, err);
	if (r < 0)
		return r;
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	put_directions(&json, &truth->ends);
	ow_json_rows(&json, "points");
	for (unsigned i = 0; i < points->points; i++)
		put_point(&json, &points->point[i], truth->records[i], truth->files[i]);
	ow_json_end(&json);
	ow_json_rows(&json, "hops");
	for (unsigned h = 0; h < points->hops; h++)
		put_hop(&json, points, h, &truth->hop[h]);
	ow_json_end(&json);
	ow_json_count(&json, "seed", options->seed);
	ow_json_integer(&json, "first_ns", truth->first_ns);
	ow_json_integer(&json, "last_ns", truth->last_ns);
	ow_json_end(&json);
	return ow_sim_output_close(path, out, err);
}
