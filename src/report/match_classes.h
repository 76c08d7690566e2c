/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

/* The exact results of a match for each class of packets. */
#define OW_CLASS_NAME 64

struct ow_match_classes {
	enum ow_class_by by;
	unsigned count;
	char name[OW_CLASSES_MAX][OW_CLASS_NAME];
	const char *filter[OW_CLASSES_MAX]; /* by filter */
	uint8_t number[OW_CLASSES_MAX];     /* by DSCP and size */
	struct ow_result result[OW_CLASSES_MAX][OW_DIRECTIONS];
	struct ow_percentile percentile[OW_CLASSES_MAX][OW_DIRECTIONS][OW_PERCENTILES_MAX];
	unsigned percentiles;
};

/* By DSCP or size: names the class with this number, and adds it. */
void ow_match_classes_add(struct ow_match_classes *classes, uint8_t number);

/* A table with a row for each class and direction that has packets. */
void ow_report_match_classes_text(FILE *out, const struct ow_match_classes *classes, unsigned width, enum ow_look look);
/* The array of classes. */
void ow_report_match_classes_json(struct ow_json *json, const struct ow_match_classes *classes);
