/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the configuration of a monitoring station: refused with an error that names the file, or complete. */
#include "config/config_station.h"
#include "scratch.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* There is one network: a file, FRR, or the segments, by a map or all of them. Only segments need no targets. */
static void check_network(const struct ow_station *station)
{
	check(!station->network + !station->vtysh + !station->map >= 2);
	check(!station->vtysh_socket || station->vtysh);
	check(station->targets > 0 || ow_station_by_segments(station));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scratch file;
	struct ow_station *station = NULL;
	struct ow_error err = {""};
	scratch_open(&file);
	scratch_add(&file, data, size);
	int r = ow_station_read(file.path, &station, &err);
	scratch_close(&file);
	if (r < 0) {
		check(strncmp(err.text, file.path, strlen(file.path)) == 0);
		return 0;
	}
	static const struct ow_interval_result result = {
		.segment = "A>B", .class_name = "voice", .from = "A", .to = "B"};
	char place[OW_PLACE_TEXT];
	if (ow_station_place(station, &result, place))
		check(memchr(place, 0, sizeof place) != NULL);
	check_network(station);
	check(station->refresh_ns > 0);
	ow_station_free(station);
	return 0;
}
