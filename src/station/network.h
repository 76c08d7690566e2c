/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config_station.h"

/*
 * The network that the station's configuration names: a file, or the network that FRR knows now. Routers have the names
 * of the configuration. ret_is_mrouter: one for each router, to be freed. An m-router that the network does not have is
 * an error.
 */
int ow_station_network(const struct ow_station *station, struct ow_topology **ret_topology, bool **ret_is_mrouter,
                       struct ow_error *err);

/*
 * The differences from a to b as text: "link C>D is gone; link ...", cut to what fits. Returns false if there are none.
 */
bool ow_station_network_changes(const struct ow_topology *a, const struct ow_topology *b, char *text, size_t size);
