/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_COUNTS_CSV_H
#define OW_FLOWS_COUNTS_CSV_H

#include "synopsis/flow_counts.h"
#include <stdio.h>

/*
 * Packet counts of flows that others have counted, as CSV with a header line: that of `nfdump -o csv` (of 1.6 and 1.7,
 * in both forms that its header had), of `oneway match --flows-csv`, or any with columns src, dst, sport, dport, proto
 * and packets, in any order and among others; first_ns and last_ns are taken if they are there. Rows of the same flow
 * add up. What is no part of the key that select keeps may be missing.
 */
#define OW_COUNTS_CSV_LINE    8192u /* longest line */
#define OW_COUNTS_CSV_COLUMNS 256u
#define OW_COUNTS_CSV_PACKETS (UINT64_C(1) << 48) /* most packets of a row */

/*
 * seed: of the flows' hashes. The counts have no layers: shares of packets are not known from outside. name: of the
 * file, for errors, which also have the line. -EINVAL for what is not understood, -ENODATA when there is no flow,
 * -ENOMEM, -ENOSPC over OW_FLOW_COUNTS_MAX flows, -errno of reading.
 */
int ow_counts_csv_read(FILE *in, const char *name, const struct ow_flow_select *select, uint64_t seed,
                       struct ow_flow_counts **ret_counts, struct ow_error *err);

#endif
