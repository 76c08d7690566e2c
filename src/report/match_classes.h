/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

/* The exact results of a match for each class of packets. */
#define OW_CLASS_NAME 64

struct ow_match_classes {
	unsigned count;
	char name[OW_MATCH_CLASSES_MAX][OW_CLASS_NAME];
	const char *filter[OW_MATCH_CLASSES_MAX];
	struct ow_result result[OW_MATCH_CLASSES_MAX][OW_DIRECTIONS];
};

/* A table with a row for each class and direction that has packets. */
void ow_report_match_classes_text(FILE *out, const struct ow_match_classes *classes, unsigned width, enum ow_look look);
/* The array of classes. */
void ow_report_match_classes_json(struct ow_json *json, const struct ow_match_classes *classes);
