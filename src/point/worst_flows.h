/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/* The flows of a recording that were certainly slow in an interval. */
struct ow_worst_flows {
	char *json;              /* a line, to be freed; NULL = nothing can be said, because of what the text says */
	struct ow_error line;    /* one sentence about the worst of them, for the log */
	struct ow_error warning; /* why it may be wrong, for the log; empty = nothing is known */
};

/*
 * Compares a recording with that of the point that the packets pass before, from begin_ns to end_ns. Reads both files, and
 * takes the time and the memory of a query (flows/flow_query.h) of up to flows_max flows: not for a thread that others wait for.
 */
void ow_worst_flows_find(const char *from, const char *to, int64_t begin_ns, int64_t end_ns, size_t flows_max,
                         struct ow_worst_flows *ret_worst);
