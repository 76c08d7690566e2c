/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "packet/flow_select.h"
#include <stdio.h>

/* Flow keys in JSON and CSV. select: the fields of the five-tuple that were kept; NULL = all. */

/*
 * {"src": "10.0.0.1", "dst": "10.0.0.2", "sport": 80, "dport": 1234, "proto": 6}; null for fields that are not part of
 * the key. A class is {"class": "voice"}.
 */
void ow_flow_name_json(struct ow_json *json, const char *name, const struct ow_flow_select *select,
                       const struct ow_flow_key *key);
/* Fields src,sport,dst,dport,proto; empty for fields that are not part of the key. A class has its name as src. */
#define OW_FLOW_NAME_CSV "src,sport,dst,dport,proto"
void ow_flow_name_csv(FILE *out, const struct ow_flow_select *select, const struct ow_flow_key *key);
