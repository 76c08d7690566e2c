/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of epochs: epoch.h. Layers and flow counts are in epoch_layer.c and epoch_counts.c. */
#include "flows/epoch.h"

#include "base/coder.h"
#include "flows/epoch_private.h"
#include <errno.h>
#include <stdlib.h>

#define PACKETS_MAX (UINT64_C(1) << 56)

int ow_epoch_info_check(const struct ow_epoch_info *info, struct ow_error *err)
{
	int r = ow_colate_check(&info->params, err);
	if (r == 0)
		r = ow_flow_select_check(&info->select, err);
	if (r == 0 && (info->level < OW_LEVEL_IP || info->level > OW_LEVEL_FRAME))
		return ow_error_set(err, EINVAL, "the level of identity must be ip, nat or frame");
	if (r == 0 && !info->id_bytes)
		return ow_error_set(err, EINVAL, "at least one byte of a packet must enter its id");
	return r;
}

int ow_epoch_info_comparable(const struct ow_epoch_info *a, const struct ow_epoch_info *b, struct ow_error *err)
{
	static const char *const level[] = {"auto", "ip", "nat", "frame"};
	if (a->level != b->level)
		return ow_error_set(err, EINVAL, "levels of identity differ: %s and %s", level[a->level],
		                    level[b->level]);
	if (a->inner != b->inner)
		return ow_error_set(err, EINVAL, "only one of them has entered tunnels");
	if (a->any_ip_id != b->any_ip_id)
		return ow_error_set(err, EINVAL, "the IPv4 identification is part of the id in only one of them");
	if (a->id_bytes != b->id_bytes)
		return ow_error_set(err, EINVAL, "bytes of a packet that enter its id differ: %u and %u", a->id_bytes,
		                    b->id_bytes);
	int r = ow_flow_select_same(&a->select, &b->select, err);
	return r < 0 ? r : ow_colate_comparable(&a->params, &b->params, err);
}

/* -- the description -----------------------------------------------------------------------------------------------
 */

static void code_layer(struct ow_coder *coder, struct ow_colate_layer *layer)
{
	OW_CODER_ENUM(coder, "form", layer->form, OW_COLATE_RANDOM, OW_COLATE_BANKS + 1);
	ow_coder_bool(coder, "sign", &layer->is_signed);
	ow_coder_u8(coder, "bits", &layer->bits, 8, 64);
	ow_coder_u8(coder, "check bits", &layer->check_bits, 0, 32);
	ow_coder_u8(coder, "count bits", &layer->count_bits, 0, 32);
	ow_coder_zeros(coder, 3);
	ow_coder_u32(coder, "counters", &layer->counters, 1, OW_COLATE_COUNTERS_MAX);
	ow_coder_u32(coder, "spread", &layer->spread, 1, OW_COLATE_SPREAD_MAX);
	ow_coder_u32(coder, "start of the share", &layer->first, 0, OW_COLATE_SHARE);
	ow_coder_u32(coder, "end of the share", &layer->last, 0, OW_COLATE_SHARE);
}

static void code_info(struct ow_coder *coder, struct ow_epoch_info *info)
{
	OW_CODER_ENUM(coder, "level", info->level, OW_LEVEL_IP, OW_LEVEL_FRAME + 1);
	ow_coder_bool(coder, "inner", &info->inner);
	ow_coder_bool(coder, "any IP id", &info->any_ip_id);
	ow_coder_bool(coder, "counts", &info->counts);
	ow_coder_u32(coder, "bytes of the id", &info->id_bytes, 1, UINT32_MAX);
	ow_coder_int(coder, "interval", &info->interval_ns, 0, OW_EPOCH_TIME_MAX);
	ow_coder_uint(coder, "seed", 8, &info->params.seed, 0, UINT64_MAX);
	ow_coder_u32(coder, "unit", &info->params.unit_ns, 1, UINT32_MAX);
	OW_CODER_ENUM(coder, "flow key", info->select.by, OW_FLOW_BY_FIVE_TUPLE, OW_FLOW_BY_CLASS + 1);
	ow_coder_u8(coder, "IPv4 prefix", &info->select.prefix4, 0, 32);
	ow_coder_u8(coder, "IPv6 prefix", &info->select.prefix6, 0, 128);
	/* Recordings without a table of lost packets are as in earlier versions. */
	bool repair = info->params.repair_cells > 0;
	ow_coder_bool(coder, "table of lost packets", &repair);
	ow_coder_u32(coder, "classes", &info->select.classes, 0, OW_FLOW_CLASSES_MAX);
	ow_coder_u32(coder, "layers", &info->params.layers, 1, OW_COLATE_LAYERS_MAX);
	for (uint32_t i = 0; !coder->failed && i < info->select.classes; i++)
		ow_coder_text(coder, "class", info->select.class_name[i], OW_FLOW_CLASS_NAME, false);
	for (uint32_t i = 0; !coder->failed && i < info->params.layers; i++)
		code_layer(coder, &info->params.layer[i]);
	if (coder->failed || !repair)
		return;
	ow_coder_u32(coder, "cells for lost packets", &info->params.repair_cells, 1, OW_REPAIR_CELLS_MAX);
	ow_coder_u8(coder, "shift of times", &info->params.repair_shift, 0, OW_COLATE_REPAIR_SHIFT_MAX);
	ow_coder_zeros(coder, 3);
}

int ow_epoch_info_encode(const struct ow_epoch_info *info, uint8_t **ret_bytes, size_t *ret_size)
{
	struct ow_epoch_info copy = *info;
	struct ow_coder coder = {.does = OW_CODER_MEASURES, .message = "description"};
	code_info(&coder, &copy);
	if (coder.failed)
		return coder.failed;
	coder = (struct ow_coder){.does = OW_CODER_WRITES, .message = "description", .size = coder.at};
	coder.to = malloc(coder.size);
	if (!coder.to)
		return -ENOMEM;
	code_info(&coder, &copy);
	*ret_bytes = coder.to;
	*ret_size = coder.size;
	return 0;
}

int ow_epoch_info_decode(const uint8_t *bytes, size_t size, struct ow_epoch_info *ret_info, struct ow_error *err)
{
	struct ow_epoch_info info = {0};
	struct ow_coder coder = {
		.does = OW_CODER_READS, .message = "description", .from = bytes, .size = size, .err = err};
	code_info(&coder, &info);
	if (coder.failed)
		return coder.failed;
	if (coder.at != size)
		return ow_error_set(err, EPROTO, "description: %zu bytes too many", size - coder.at);
	int r = ow_epoch_info_check(&info, err);
	if (r == 0)
		*ret_info = info;
	return r;
}

/* -- an epoch ------------------------------------------------------------------------------------------------------
 */

/* The part before the layers. */
struct head {
	int64_t begin_ns, end_ns;
	uint32_t epochs;
	bool counts;
	uint8_t flaws;
	struct ow_colate_facts facts;
};

static void code_head(struct ow_coder *coder, uint32_t layers, struct head *head)
{
	struct ow_colate_facts *facts = &head->facts;
	ow_coder_int(coder, "begin", &head->begin_ns, -OW_EPOCH_TIME_MAX, OW_EPOCH_TIME_MAX);
	ow_coder_int(coder, "end", &head->end_ns, head->begin_ns, OW_EPOCH_TIME_MAX);
	ow_coder_u32(coder, "epochs", &head->epochs, 1, UINT32_MAX);
	ow_coder_bool(coder, "counts", &head->counts);
	ow_coder_u8(coder, "flaws", &head->flaws, 0, OW_EPOCH_FLAWS);
	ow_coder_zeros(coder, 2);
	ow_coder_uint(coder, "packets", 8, &facts->packets, 0, PACKETS_MAX);
	ow_coder_int(coder, "first time", &facts->first_ns, -OW_EPOCH_TIME_MAX, OW_EPOCH_TIME_MAX);
	ow_coder_int(coder, "last time", &facts->last_ns, facts->first_ns, OW_EPOCH_TIME_MAX);
	ow_coder_uint(coder, "sum of times", 8, &facts->time_sum, 0, UINT64_MAX);
	for (uint32_t i = 0; i < layers; i++)
		ow_coder_uint(coder, "packets of a layer", 8, &facts->layer_packets[i], 0, facts->packets);
}

static int put_head(struct ow_buffer *buffer, const struct ow_epoch *epoch)
{
	uint32_t layers = ow_colate_params(epoch->colate)->layers;
	struct head head = {
		.begin_ns = epoch->begin_ns,
		.end_ns = epoch->end_ns,
		.epochs = epoch->epochs,
		.counts = epoch->counts != NULL,
		.flaws = epoch->flaws,
	};
	ow_colate_facts(epoch->colate, &head.facts);
	struct ow_coder coder = {.does = OW_CODER_MEASURES, .message = "epoch"};
	code_head(&coder, layers, &head);
	if (coder.failed)
		return coder.failed;
	int r = ow_buffer_reserve(buffer, coder.at);
	if (r < 0)
		return r;
	coder = (struct ow_coder){
		.does = OW_CODER_WRITES, .message = "epoch", .size = coder.at, .to = buffer->data + buffer->end};
	code_head(&coder, layers, &head);
	buffer->end += coder.at;
	return 0;
}

int ow_epoch_encode(const struct ow_epoch *epoch, uint8_t **ret_bytes, size_t *ret_size, struct ow_epoch_cost *ret_cost)
{
	struct ow_buffer buffer = {0};
	int r = put_head(&buffer, epoch);
	if (r == 0 && ow_colate_repair(epoch->colate))
		r = ow_epoch_put_repair(&buffer, epoch->colate);
	for (uint32_t i = 0; r == 0 && i < ow_colate_params(epoch->colate)->layers; i++)
		r = ow_epoch_put_layer(&buffer, epoch->colate, i);
	size_t counter_bytes = buffer.end;
	if (r == 0 && epoch->counts)
		r = ow_epoch_put_counts(&buffer, epoch->counts);
	if (r < 0) {
		ow_buffer_done(&buffer);
		return r;
	}
	*ret_bytes = buffer.data;
	*ret_size = buffer.end;
	if (ret_cost)
		*ret_cost = (struct ow_epoch_cost){counter_bytes, buffer.end - counter_bytes};
	return 0;
}

static void add_head(struct ow_epoch *sum, const struct head *head)
{
	if (!sum->epochs || head->begin_ns < sum->begin_ns)
		sum->begin_ns = head->begin_ns;
	if (!sum->epochs || head->end_ns > sum->end_ns)
		sum->end_ns = head->end_ns;
	sum->epochs += head->epochs;
	sum->flaws |= head->flaws;
	ow_colate_add_facts(sum->colate, &head->facts);
}

int ow_epoch_decode_add(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size, struct ow_epoch *sum,
                        struct ow_error *err)
{
	struct head head = {0};
	struct ow_coder coder = {.does = OW_CODER_READS, .message = "epoch", .from = bytes, .size = size, .err = err};
	code_head(&coder, info->params.layers, &head);
	if (coder.failed)
		return coder.failed;
	const uint8_t *at = bytes + coder.at, *end = bytes + size;
	int r = 0;
	if (info->params.repair_cells)
		r = ow_epoch_take_repair(&at, end, &info->params, ow_colate_repair_of(sum->colate), err);
	for (uint32_t i = 0; r == 0 && i < info->params.layers; i++)
		r = ow_epoch_take_layer(&at, end, i, sum->colate, err);
	if (r < 0)
		return r;
	if (head.counts && sum->counts)
		r = ow_epoch_take_counts(&at, end, info->params.seed, sum->counts, err);
	else if (head.counts)
		at = end;
	if (r == 0 && at != end)
		return ow_error_set(err, EPROTO, "epoch: %zu bytes too many", (size_t)(end - at));
	if (r == 0)
		add_head(sum, &head);
	return r;
}

int ow_epoch_decode_repair(const struct ow_epoch_info *info, const uint8_t *bytes, size_t size,
                           struct ow_repair_cell *sum, struct ow_error *err)
{
	struct head head = {0};
	struct ow_coder coder = {.does = OW_CODER_READS, .message = "epoch", .from = bytes, .size = size, .err = err};
	code_head(&coder, info->params.layers, &head);
	const uint8_t *at = bytes + coder.at;
	return coder.failed ? coder.failed : ow_epoch_take_repair(&at, bytes + size, &info->params, sum, err);
}

int ow_epoch_init(const struct ow_epoch_info *info, size_t flows_max, struct ow_epoch *ret_epoch, struct ow_error *err)
{
	struct ow_epoch epoch = {0};
	int r = ow_colate_create(&info->params, &epoch.colate, err);
	if (r < 0)
		return r;
	if (flows_max && info->counts && ow_flow_counts_create(&info->params, flows_max, &epoch.counts) < 0) {
		ow_epoch_done(&epoch);
		return ow_error_set(err, ENOMEM, "not enough memory for flow counts");
	}
	*ret_epoch = epoch;
	return 0;
}

void ow_epoch_done(struct ow_epoch *epoch)
{
	ow_colate_free(epoch->colate);
	ow_flow_counts_free(epoch->counts);
	*epoch = (struct ow_epoch){0};
}
