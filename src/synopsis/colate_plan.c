/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the parameters of a recording from the user's settings: colate_plan.h. */
#include "base/word.h"
#include "synopsis/colate_plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
	[OW_COLATE_RANDOM] = "colate-random", [OW_COLATE_HASHED] = "colate", [OW_COLATE_BANKS] = "banks"};

const char *ow_colate_form_name(enum ow_colate_form form)
{
	return names[form];
}

int ow_colate_form_parse(const char *name, enum ow_colate_form *ret_form, struct ow_error *err)
{
	for (unsigned i = OW_COLATE_RANDOM; i <= OW_COLATE_BANKS; i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret_form = i;
			return 0;
		}
	}
	return ow_error_set(err, EINVAL, "'%.40s' is not a form: banks, colate or colate-random", name);
}

/*
 * 48 bits of nanoseconds hold a sum of delays of 78 hours in one counter, of either sign. With a check of 16 bits, one
 * in 65536 counters that differ is taken for equal.
 */
void ow_colate_plan_defaults(struct ow_colate_plan *ret_plan)
{
	*ret_plan = (struct ow_colate_plan){
		.form = OW_COLATE_BANKS,
		.counters = OW_COLATE_COUNTERS_DEFAULT,
		.vectors = 1,
		.bits = 48,
		.check_bits = 16,
		.unit_ns = 1,
		.seed = OW_COLATE_SEED_DEFAULT,
		.repair = OW_COLATE_REPAIR_DEFAULT,
	};
}

/* More counters for a layer of banks, a whole number for each bank. */
static uint32_t more_counters(const struct ow_colate_layer *layer, uint64_t packets)
{
	uint64_t share = layer->last - layer->first, of_layer = packets * share / OW_COLATE_SHARE;
	uint64_t bank = (of_layer / OW_COLATE_REPAIR_A_COUNTER + layer->spread - 1) / layer->spread;
	uint64_t room = (OW_COLATE_COUNTERS_MAX - layer->counters) / layer->spread;
	return (uint32_t)(bank < room ? bank : room) * layer->spread;
}

void ow_colate_plan_repair(struct ow_colate_params *params, uint32_t packets)
{
	params->repair_cells = ow_repair_cells_for(packets);
	params->repair_shift = OW_COLATE_REPAIR_SHIFT;
	for (uint32_t l = 0; l < params->layers; l++)
		if (params->layer[l].form == OW_COLATE_BANKS && !params->layer[l].is_signed)
			params->layer[l].counters += more_counters(&params->layer[l], packets);
}

int ow_colate_plan_params(const struct ow_colate_plan *plan, struct ow_colate_params *ret_params, struct ow_error *err)
{
	bool banks = plan->form == OW_COLATE_BANKS;
	uint32_t spread = plan->spread ? plan->spread : banks ? OW_COLATE_BANKS_DEFAULT : OW_COLATE_SPREAD_DEFAULT;
	struct ow_colate_params params = {.layers = plan->vectors, .unit_ns = plan->unit_ns, .seed = plan->seed};
	if (plan->vectors < 1 || plan->vectors > OW_COLATE_LAYERS_MAX)
		return ow_error_set(err, EINVAL, "%u vectors, 1 to %d are possible", plan->vectors,
		                    OW_COLATE_LAYERS_MAX);
	if (plan->counters < 1 || plan->counters > OW_COLATE_COUNTERS_MAX)
		return ow_error_set(err, EINVAL, "%u counters, 1 to %u are possible", plan->counters,
		                    OW_COLATE_COUNTERS_MAX);
	uint32_t of_vector = (plan->counters + plan->vectors - 1) / plan->vectors, share = OW_COLATE_SHARE, from = 0;
	if (banks)
		of_vector = (of_vector + spread - 1) / spread * spread;
	for (uint32_t i = 0; i < plan->vectors; i++) {
		bool last = i + 1 == plan->vectors;
		share = last ? OW_COLATE_SHARE - from : share / 2;
		params.layer[i] = (struct ow_colate_layer){
			.form = plan->form,
			.counters = of_vector,
			.spread = spread,
			.bits = plan->bits,
			.check_bits = plan->check_bits,
			.count_bits = plan->count_bits,
			.first = from,
			.last = from + share,
		};
		from += share;
	}
	if (plan->stddev_counters && params.layers == OW_COLATE_LAYERS_MAX)
		return ow_error_set(err, EINVAL, "%u vectors leave none for deviations", plan->vectors);
	if (plan->stddev_counters) {
		params.layer[params.layers++] = (struct ow_colate_layer){
			.form = OW_COLATE_HASHED,
			.counters = plan->stddev_counters,
			.spread = plan->stddev_spread ? plan->stddev_spread : OW_COLATE_STDDEV_SPREAD,
			.bits = plan->bits,
			.check_bits = plan->check_bits,
			.count_bits = plan->count_bits ? plan->count_bits : OW_COLATE_STDDEV_COUNTS,
			.last = OW_COLATE_SHARE,
		};
	}
	if (plan->repair)
		ow_colate_plan_repair(&params, plan->repair);
	int r = ow_colate_check(&params, err);
	if (r == 0)
		*ret_params = params;
	return r;
}

/*
 * Layers that divide the packets among them are vectors. A layer that takes all packets in addition to others is for
 * deviations.
 */
static bool is_beside(const struct ow_colate_params *params, uint32_t i)
{
	return i && params->layer[i].first == 0;
}

static int layer_text(const struct ow_colate_layer *layer, char *text, size_t size)
{
	char bits[40];
	snprintf(bits, sizeof bits, "%u + %u", layer->bits, layer->check_bits);
	if (layer->count_bits)
		snprintf(bits, sizeof bits, "%u + %u + %u", layer->bits, layer->check_bits, layer->count_bits);
	if (layer->form == OW_COLATE_BANKS)
		return snprintf(text, size, "%u bank%s of %u counters, %s bits", layer->spread,
		                ow_plural(layer->spread, "", "s"), layer->counters / layer->spread, bits);
	return snprintf(text, size, "%u counters, %u a flow (%s), %s bits", layer->counters, layer->spread,
	                ow_colate_form_name(layer->form), bits);
}

void ow_colate_params_text(const struct ow_colate_params *params, char text[OW_COLATE_TEXT])
{
	uint32_t vectors = 0, beside = 0;
	size_t used = 0;
	for (uint32_t i = 0; i < params->layers; i++) {
		beside = is_beside(params, i) ? i : beside;
		vectors += !is_beside(params, i);
	}
	if (vectors > 1)
		used = (size_t)snprintf(text, OW_COLATE_TEXT, "%u vectors of ", vectors);
	used += (size_t)layer_text(&params->layer[0], text + used, OW_COLATE_TEXT - used);
	if (beside && used < OW_COLATE_TEXT - 2) {
		used += (size_t)snprintf(text + used, OW_COLATE_TEXT - used, "; ");
		layer_text(&params->layer[beside], text + used, OW_COLATE_TEXT - used);
	}
}
