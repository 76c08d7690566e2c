/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/style.h"
#include "result/flow_event.h"
#include <oneway/error.h>

/* The outputs of live results: a table on a terminal, lines, JSON; and in addition a store. */
struct ow_show;

struct ow_show_options {
	bool json;
	bool provisional; /* lines: also provisional results (JSON and table have both) */
	bool lines;       /* no table, also on a terminal */
	struct ow_style style;
	const char *store; /* NULL = none */
};

int ow_show_create(const struct ow_show_options *options, struct ow_show **ret_show, struct ow_error *err);
void ow_show_free(struct ow_show *show);
/* arg is a struct ow_show *, so that it fits as a sink of results. */
void ow_show_result(void *arg, const struct ow_interval_result *result);
void ow_show_event(void *arg, const struct ow_flow_event *event);
/* To be called after some results: writes them to the screen and the disk. An error persists. */
int ow_show_flush(struct ow_show *show, struct ow_error *err);
/* To be called at the end, for each lane. */
void ow_show_summary(struct ow_show *show, const struct ow_interval_result *total);
