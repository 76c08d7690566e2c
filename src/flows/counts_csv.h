/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/flow_counts.h"
#include <stdio.h>

/*
 * Packet counts of flows from other programs, as CSV with a header line: the one of `nfdump -o csv` (1.6 and 1.7, both
 * forms of its header), of `oneway match --flows-csv`, or any with columns src, dst, sport, dport, proto and packets,
 * in any order and with other columns in between; first_ns and last_ns are used if they exist. Rows of the same flow
 * are added up. Columns that are not part of the key of `select` may be missing.
 */
#define OW_COUNTS_CSV_LINE    8192u /* longest line */
#define OW_COUNTS_CSV_COLUMNS 256u
#define OW_COUNTS_CSV_PACKETS (UINT64_C(1) << 48) /* most packets of a row */

/*
 * seed: of the flows' hashes. The counts have no layers, because other programs do not know the shares of packets.
 * name: of the file, for errors, which also contain the line. -EINVAL for anything that is not understood, -ENODATA if
 * there is no flow, -ENOMEM, -ENOSPC for more than OW_FLOW_COUNTS_MAX flows, -errno of reading.
 */
int ow_counts_csv_read(FILE *in, const char *name, const struct ow_flow_select *select, uint64_t seed,
                       struct ow_flow_counts **ret_counts, struct ow_error *err);
