/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a description and an epoch: length of the description (2), description, epoch. What decodes must encode
 * to bytes that decode to the same; what does not decode must give a reason. fuzz/epoch_corpus.c makes the seeds.
 */
#include "base/bytes.h"
#include "flows/epoch.h"

#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX 4096 /* more would only take time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static int decode(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size, struct ow_epoch *ret_epoch)
{
	struct ow_error err = {""};
	check(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, ret_epoch, &err) == 0);
	int r = ow_epoch_decode_add(info, bytes, size, ret_epoch, &err);
	check(r == 0 || err.text[0]);
	if (r < 0)
		ow_epoch_done(ret_epoch);
	return r;
}

static void check_same(const struct ow_epoch *a, const struct ow_epoch *b)
{
	const struct ow_colate_params *params = ow_colate_params(a->colate);
	check(a->begin_ns == b->begin_ns && a->end_ns == b->end_ns && a->epochs == b->epochs);
	check(ow_colate_packets(a->colate) == ow_colate_packets(b->colate));
	for (uint32_t i = 0; i < params->layers; i++)
		check(!memcmp(ow_colate_counters(a->colate, i), ow_colate_counters(b->colate, i),
		              params->layer[i].counters * sizeof(uint64_t)));
	if (!a->counts)
		return;
	check(ow_flow_counts_flows(a->counts) == ow_flow_counts_flows(b->counts));
	for (size_t i = 0; i < ow_flow_counts_flows(a->counts); i++) {
		struct ow_flow_count x, y;
		ow_flow_counts_get(a->counts, i, &x);
		ptrdiff_t at = ow_flow_counts_find(b->counts, x.flow);
		check(at >= 0);
		ow_flow_counts_get(b->counts, (size_t)at, &y);
		check(x.packets == y.packets && !memcmp(&x.key, &y.key, sizeof x.key));
		check(x.own.packets == y.own.packets && x.own.sum == y.own.sum && x.own.check == y.own.check);
		/* A sample with times before all flows is not written again. */
		struct ow_flow_sample s = ow_flow_counts_sample(a->counts, i);
		struct ow_flow_sample t = ow_flow_counts_sample(b->counts, (size_t)at);
		check(!x.own.packets || !t.limit || (t.limit == s.limit && t.count == s.count));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_epoch_info info;
	struct ow_error err = {""};
	size_t described = size < 2 ? 0 : ow_load_be16(data);
	if (size < 2 || described > size - 2)
		return 0;
	if (ow_epoch_info_decode(data + 2, described, &info, &err) < 0) {
		check(err.text[0] != 0);
		return 0;
	}
	uint8_t *again = NULL;
	size_t again_size;
	check(ow_epoch_info_encode(&info, &again, &again_size) == 0);
	check(again_size == described && !memcmp(again, data + 2, described));
	free(again);
	uint64_t counters = 0;
	for (uint32_t i = 0; i < info.params.layers; i++)
		counters += info.params.layer[i].counters;
	struct ow_epoch epoch, back;
	if (counters > COUNTERS_MAX || decode(&info, data + 2 + described, size - 2 - described, &epoch) < 0)
		return 0;
	/* Flow counts that the epoch does not have are not written. */
	check(ow_epoch_encode(&epoch, &again, &again_size, NULL) == 0);
	check(decode(&info, again, again_size, &back) == 0);
	check_same(&epoch, &back);
	free(again);
	ow_epoch_done(&epoch);
	ow_epoch_done(&back);
	return 0;
}
