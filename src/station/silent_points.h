/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Which points explain that lanes have no results: a point all of whose lanes are silent, the one with the most lanes
 * first. If two points explain the same lanes equally well, none is named. If all lanes are silent and no point
 * explains it, it is the whole network, or the way by which results come.
 */
struct ow_silent_points;

#define OW_SILENT_NAME 80
struct ow_silent_group {
	char name[OW_SILENT_NAME]; /* "point B", "all segments" */
	bool silent;
	uint32_t lanes;
	int64_t since_ns;
};

int ow_silent_points_create(struct ow_silent_points **ret_silence);
void ow_silent_points_free(struct ow_silent_points *silence);
/* Forgets the lanes. The groups that were silent stay known, so that their end can be told. */
void ow_silent_points_clear(struct ow_silent_points *silence);
/* A lane with results so far; number: the caller's for it. -ENOMEM. */
int ow_silent_points_add(struct ow_silent_points *silence, const char *from, const char *to, uint32_t number,
                         bool silent, int64_t since_ns);
void ow_silent_points_find(struct ow_silent_points *silence);
/* Whether a group was silent the last time. */
bool ow_silent_points_was(const struct ow_silent_points *silence);
/* The i-th group, NULL behind the last one. */
const struct ow_silent_group *ow_silent_points_group(const struct ow_silent_points *silence, uint32_t i);
/* Whether the group has lanes between these points, whether they are silent or not. */
bool ow_silent_group_contains(const struct ow_silent_group *group, const char *from, const char *to);
/* Whether a silent group contains the lane. */
bool ow_silent_points_is_grouped(const struct ow_silent_points *silence, uint32_t number);
