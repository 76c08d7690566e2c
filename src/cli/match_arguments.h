/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/point_argument.h"
#include "packet/flow_filter.h"
#include "packet/flow_select.h"
#include "report/match_classes.h"
#include <oneway/oneway.h>

/* The command line of oneway match. */

#define OW_MATCH_FILTER_MOST 1024 /* bytes of a filter that is used together with --flow */

struct ow_match_percentiles {
	double percent[OW_PERCENTILES_MAX];
	unsigned count;
};

struct ow_match_arguments {
	struct ow_match_options match;
	struct ow_match_percentiles percentiles;
	uint64_t threads, top, least;
	bool flows;
	struct ow_flow_select key;
	bool json, utc, no_color, help, version;
	const char *csv, *lost, *extra, *annotate, *plot, *report, *flows_csv, *intervals_csv;
	const char *since, *until;
	bool by_port, follow;
	const char *forward;
	int64_t lag_ns;
	struct ow_match_classes classes;
	const char *flow;
	char flow_filter[OW_FLOW_FILTER + OW_MATCH_FILTER_MOST];
	double max_loss;    /* above 1: no threshold was given */
	int64_t max_p99_ns; /* INT64_MAX: no threshold was given */
	bool keep_order;
	struct ow_point_arguments points;
	const char *path[OW_SIDES]; /* of both ends */
};

/* Fills args from the command line, and checks it. Returns 0, or -EINVAL with err filled. */
int ow_match_arguments_read(int argc, char **argv, struct ow_match_arguments *args, struct ow_error *err);
void ow_match_arguments_help(void);
/* The option of a table that goes to standard output; NULL if there is none. */
const char *ow_match_arguments_table(const struct ow_match_arguments *args);
