/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is known of the offsets of many clocks. If a packet passed A before B, its times say
 *
 *     offset(B) - offset(A) <= tB - tA
 *
 * because it cannot arrive before it was sent. Chains of such bounds are shortest paths: one potential for every clock
 * (Bellman, Ford), then a search (Dijkstra) from those clocks only that somebody asks for.
 */
struct ow_clock_bounds;

int ow_clock_bounds_create(struct ow_clock_bounds **ret_bounds);
void ow_clock_bounds_free(struct ow_clock_bounds *bounds);
/* Forgets all bounds; there are `clocks` clocks now. -ENOMEM. */
int ow_clock_bounds_reset(struct ow_clock_bounds *bounds, uint32_t clocks);
/* offset(to) - offset(from) <= most_ns. Of several bounds for two clocks the least holds. -ENOMEM. */
int ow_clock_bounds_add(struct ow_clock_bounds *bounds, uint32_t from, uint32_t to, int64_t most_ns);
/*
 * To be called after the last bound and before the first question. Bounds that contradict each other (a cycle below 0)
 * are dropped, the one with the fewest packets first. Returns how many were dropped, or a negative errno; -ELOOP: there
 * are too many contradictions, so nothing is known.
 */
int ow_clock_bounds_solve(struct ow_clock_bounds *bounds);
/* The least and the most that offset(to) - offset(from) can be; INT64_MIN, INT64_MAX: not bounded. -ENOMEM. */
int ow_clock_bounds_between(struct ow_clock_bounds *bounds, uint32_t from, uint32_t to, int64_t *ret_least_ns,
                            int64_t *ret_most_ns);
