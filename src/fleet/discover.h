/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/point_map.h"
#include "fleet/control.h"

/* The network that the samples of a fleet's points show, and the segments that follow from it. */

/*
 * Joins what the stream of samples has: a quarter of an hour. Epochs are as long as those of most points. Messages with
 * others, that are damaged, or of another point than their subject says, are left out and counted in *ret_wrong. -ENODATA: there are no samples.
 */
int ow_fleet_map(struct ow_bus *bus, int64_t now_ns, struct ow_map *ret_map, uint64_t *ret_wrong, struct ow_error *err);

/*
 * Pairs of neighbouring points for `segments: discover`, by the map and by those that were found before (file
 * `discovered` in the fleet's folder), which is then replaced unless `dry`. To be freed. Without samples: those that
 * were found before.
 */
int ow_fleet_discover(const struct ow_fleet *fleet, struct ow_bus *bus, int64_t now_ns, bool dry,
                      struct ow_discovered_segment **ret_list, size_t *ret_count, struct ow_error *err);
