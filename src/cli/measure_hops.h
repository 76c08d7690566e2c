/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/measure.h"

/*
 * Runs several measurements at a time, each in a process of its own, and prints what they print line by line: the heading of a
 * table and messages that several have only once, and the summaries at the end, in the order given. If one fails, all
 * end. Signals go to all. Call it before there are threads. Returns the exit code: the worst of all.
 */
int ow_measure_hops_run(struct ow_measure *measures, unsigned count);
