/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a recording of flows in the configuration: config_flows.h. */
#include "config/config_flows.h"

#include "config/config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

int ow_config_flows_complete(struct ow_config_flows *flows, struct ow_error *why)
{
	struct ow_flow_select *select = &flows->info.select;
	if (!flows->file)
		return ow_error_set(why, EINVAL, "has no 'file'");
	if (same_text(flows->from, flows->file))
		return ow_error_set(why, EINVAL, "has the same file as 'from'");
	if (flows->class_count && select->by != OW_FLOW_BY_CLASS)
		return ow_error_set(why, EINVAL, "has classes, but its key is not class");
	if (flows->class_count > OW_FLOW_CLASSES_MAX)
		return ow_error_set(why, EINVAL, "has more than %d classes", OW_FLOW_CLASSES_MAX);
	for (unsigned i = 0; i < flows->class_count; i++) {
		if (!flows->classes[i].name)
			return ow_error_set(why, EINVAL, "class %u has no name", i + 1);
		snprintf(select->class_name[i], OW_FLOW_CLASS_NAME, "%s", flows->classes[i].name);
	}
	select->classes = flows->class_count;
	const struct ow_colate_plan plan = {
		.form = flows->form,
		.counters = (uint32_t)flows->counters,
		.spread = (uint32_t)flows->spread,
		.vectors = (uint32_t)flows->vectors,
		.stddev_counters = (uint32_t)flows->stddev,
		.stddev_spread = (uint32_t)flows->stddev_spread,
		.repair = (uint32_t)flows->repair,
		.bits = (uint8_t)flows->bits,
		.check_bits = (uint8_t)flows->check_bits,
		.count_bits = (uint8_t)flows->count_bits,
		.unit_ns = 1,
		.seed = flows->seed,
	};
	flows->info.id_bytes = (uint32_t)flows->id_bytes;
	int r = ow_colate_plan_params(&plan, &flows->info.params, why);
	return r < 0 ? r : ow_epoch_info_check(&flows->info, why);
}

char *ow_config_flows_copy(const struct ow_config_flows *flows)
{
	size_t size = strlen(flows->file) + 1 + strlen(flows->peer) + 1;
	char *file = malloc(size);
	if (file)
		snprintf(file, size, "%s.%s", flows->file, flows->peer);
	return file;
}

bool ow_config_flows_fit(enum ow_heading a, const struct ow_epoch_info *info_a, enum ow_heading b,
                         const struct ow_epoch_info *info_b)
{
	static const enum ow_heading other[] = {OW_HEADING_UNKNOWN, OW_HEADING_OUT, OW_HEADING_IN};
	return other[a] == b && info_a->counts == info_b->counts && ow_epoch_info_comparable(info_a, info_b, NULL) == 0;
}

bool ow_config_flows_same(const struct ow_config_flows *a, const struct ow_config_flows *b)
{
	if (!same_text(a->file, b->file) || !same_text(a->from, b->from) || a->interfaces != b->interfaces ||
	    a->heading != b->heading || !same_text(a->filter, b->filter) || !same_text(a->peer, b->peer) ||
	    a->flows_max != b->flows_max || a->info.interval_ns != b->info.interval_ns ||
	    a->info.counts != b->info.counts || ow_epoch_info_comparable(&a->info, &b->info, NULL) < 0)
		return false;
	for (unsigned i = 0; i < a->class_count; i++) {
		if (!same_text(a->classes[i].filter, b->classes[i].filter))
			return false;
	}
	return true;
}
