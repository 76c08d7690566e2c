/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_station.h"
#include "plane/compose.h"
#include "plane/era.h"

/* Answers "why is A to B slow since ...?" with every part of the path, before and after. */
struct ow_why_question {
	const char *from, *to, *class_name; /* class_name NULL: all packets */
	int64_t since_ns, until_ns;
};

struct ow_why_part {
	char name[OW_PLACE_TEXT];
	double share;     /* share of the path's packets that pass the part */
	int64_t until_ns; /* the end of the last interval that was counted */
	struct ow_era before, after;
	struct ow_watch_sample sample[2];
	struct ow_era_change change;
	bool slower, lossier; /* more than by chance */
};

struct ow_why {
	struct ow_why_part *part; /* the part that adds most to the path's delay first */
	uint32_t parts;
	uint32_t folded;                /* insides of routers that nobody measures, and that are left out */
	uint32_t compared;              /* parts that have results both before and after */
	struct ow_composed composed[2]; /* the path before and after */
};

/* paths: files of results, as station/input.h reads them. -ENODATA: no part can be compared. */
int ow_why_ask(const struct ow_station *station, char *const *paths, int count, const struct ow_why_question *question,
               struct ow_why *ret_why, struct ow_error *err);
void ow_why_done(struct ow_why *why);
