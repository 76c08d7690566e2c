/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_corpus DIRECTORY: makes the seeds of fuzz_epoch. To be run again only when the format changes. */
#include "base/bytes.h"
#include "base/random.h"
#include "synopsis/colate_plan.h"
#include "flows/epoch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static void fill(const struct ow_epoch_info *info, unsigned packets, unsigned flows, struct ow_epoch *epoch)
{
	struct ow_random random;
	ow_random_seed(&random, 1);
	must(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, epoch, NULL) == 0, "epoch");
	for (unsigned i = 0; i < packets; i++) {
		uint64_t f = ow_random_below(&random, flows);
		struct ow_flow_key key = {.version = f % 5 == 0 ? 6 : f % 7 == 0 ? 0 : 4, .proto = f % 3 ? 6 : 17};
		memset(key.src, (int)f % 4, key.version == 4 ? 4 : 16);
		memset(key.dst, (int)f, key.version == 4 ? 4 : 16);
		key.sport = (uint16_t)(1024 + f);
		key.dport = f % 2 ? 443 : (uint16_t)f;
		const struct ow_flow_key *keys = &key;
		struct ow_flow_sighting stamp = {ow_flow_hash(info->params.seed, &key), ow_random_u64(&random),
		                                 INT64_C(1700000000000000000) + i * 12345};
		ow_colate_add(epoch->colate, &stamp, 1);
		if (epoch->counts)
			ow_flow_counts_add(epoch->counts, &stamp, &keys, 1);
	}
	epoch->epochs = 1;
	epoch->begin_ns = INT64_C(1700000000000000000);
	epoch->end_ns = epoch->begin_ns + 60000000000;
}

static void save(const char *directory, const char *name, const struct ow_epoch_info *info, unsigned packets,
                 unsigned flows)
{
	struct ow_epoch epoch;
	uint8_t *description, *bytes, length[2];
	size_t described, size;
	char path[4096];
	fill(info, packets, flows, &epoch);
	must(ow_epoch_info_encode(info, &description, &described) == 0, "description");
	must(ow_epoch_encode(&epoch, &bytes, &size, NULL) == 0, "epoch");
	ow_store_be16(length, (uint16_t)described);
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	must(file && fwrite(length, 1, 2, file) == 2 && fwrite(description, 1, described, file) == described &&
	             fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
	     path);
	free(description);
	free(bytes);
	ow_epoch_done(&epoch);
}

int main(int argc, char **argv)
{
	struct ow_epoch_info info = {
		.select = {.by = OW_FLOW_BY_FIVE_TUPLE}, .level = OW_LEVEL_IP, .id_bytes = 64, .counts = true};
	struct ow_colate_plan plan;
	if (argc != 2) {
		fprintf(stderr, "usage: epoch_corpus DIRECTORY\n");
		return 2;
	}
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	must(ow_colate_plan_params(&plan, &info.params, NULL) == 0, "parameters");
	save(argv[1], "dense", &info, 100, 40);
	save(argv[1], "empty", &info, 0, 1);
	save(argv[1], "samples", &info, 400, 2);
	plan.counters = 600;
	must(ow_colate_plan_params(&plan, &info.params, NULL) == 0, "parameters");
	save(argv[1], "sparse", &info, 4, 3);
	plan.form = OW_COLATE_HASHED;
	plan.counters = 80;
	plan.vectors = 3;
	plan.count_bits = 9;
	plan.bits = 19;
	must(ow_colate_plan_params(&plan, &info.params, NULL) == 0, "parameters");
	info.select = (struct ow_flow_select){.by = OW_FLOW_BY_PREFIX, .prefix4 = 24, .prefix6 = 48};
	save(argv[1], "vectors", &info, 60, 10);
	info.select = (struct ow_flow_select){.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "rest"}};
	info.counts = false;
	save(argv[1], "classes-no-counts", &info, 20, 5);
	return 0;
}
