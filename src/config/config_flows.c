/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a recording of flows in the configuration: config_flows.h. */
#include "config/config_flows.h"

#include "base/time.h"
#include "config/config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES        64 /* as 'oneway flows record' */
#define INTERVAL_MAX_NS (INT64_C(86400) * OW_NS_PER_S)

void ow_config_flows_defaults(struct ow_config_flows *ret_flows)
{
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	*ret_flows = (struct ow_config_flows){
		.form = plan.form,
		.counters = plan.counters,
		.vectors = plan.vectors,
		.bits = plan.bits,
		.check_bits = plan.check_bits,
		.seed = plan.seed,
		.id_bytes = ID_BYTES,
		.flows_max = OW_CONFIG_FLOWS_COUNTED,
		.info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                 .level = OW_LEVEL_IP,
	                 .interval_ns = OW_CONFIG_FLOWS_INTERVAL_NS,
	                 .counts = true},
	};
}

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value, struct ow_error *why)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
		return ow_error_set(why, EINVAL, "'%.40s' is no number in %llu .. %llu", text,
		                    (unsigned long long)least, (unsigned long long)most);
	*ret_value = value;
	return 0;
}

static int choice(const char *text, const char *const *names, unsigned count, unsigned *ret_index, struct ow_error *why)
{
	char list[80] = "";
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_index = i;
			return 0;
		}
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", names[i]);
	}
	return ow_error_set(why, EINVAL, "'%.40s' is not %s", text, list);
}

#define FIELD(name) offsetof(struct ow_config_flows, name)

static int set_number(struct ow_config_flows *flows, const char *key, const char *text, struct ow_error *why)
{
	static const struct {
		const char *key;
		size_t offset;
		uint64_t least, most;
	} numbers[] = {
		{"counters", FIELD(counters), 1, OW_COLATE_COUNTERS_MAX},
		{"banks", FIELD(spread), 1, OW_COLATE_SPREAD_MAX},
		{"spread", FIELD(spread), 1, OW_COLATE_SPREAD_MAX},
		{"bits", FIELD(bits), 8, 64},
		{"check_bits", FIELD(check_bits), 0, 32},
		{"count_bits", FIELD(count_bits), 0, 32},
		{"vectors", FIELD(vectors), 1, OW_COLATE_LAYERS_MAX},
		{"stddev", FIELD(stddev), 0, OW_COLATE_COUNTERS_MAX},
		{"stddev_spread", FIELD(stddev_spread), 1, OW_COLATE_SPREAD_MAX},
		{"seed", FIELD(seed), 0, UINT64_MAX},
		{"id_bytes", FIELD(id_bytes), 1, UINT32_MAX},
		{"flows_max", FIELD(flows_max), 1, OW_FLOW_COUNTS_MAX},
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uint64_t *field = (uint64_t *)(void *)((char *)flows + numbers[i].offset);
		if (strcmp(key, numbers[i].key) == 0)
			return number(text, numbers[i].least, numbers[i].most, field, why);
	}
	return -ENOENT;
}

static int set_interval(struct ow_config_flows *flows, const char *text, struct ow_error *why)
{
	int64_t ns;
	int r = ow_duration_parse(text, &ns, why);
	if (r == 0 && (ns < OW_INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS))
		return ow_error_set(why, EINVAL, "'%.40s' is not in 1 ms .. 1 d", text);
	if (r == 0)
		flows->info.interval_ns = ns;
	return r;
}

int ow_config_flows_set(struct ow_config_flows *flows, const char *key, const char *text, struct ow_error *why)
{
	static const char *const headings[] = {"both", "in", "out"}, *const levels[] = {"ip", "nat"},
				 *const yes_no[] = {"false", "true"};
	unsigned i = 0;
	int r = set_number(flows, key, text, why);
	if (r != -ENOENT)
		return r;
	if (strcmp(key, "interval") == 0)
		return set_interval(flows, text, why);
	if (strcmp(key, "form") == 0)
		return ow_colate_form_parse(text, &flows->form, why);
	if (strcmp(key, "key") == 0)
		return ow_flow_select_parse(text, &flows->info.select, why);
	if (strcmp(key, "heading") == 0) {
		r = choice(text, headings, 3, &i, why);
		flows->heading = i == 1 ? OW_HEADING_IN : i == 2 ? OW_HEADING_OUT : OW_HEADING_UNKNOWN;
	} else if (strcmp(key, "identity") == 0) {
		r = choice(text, levels, 2, &i, why);
		flows->info.level = i ? OW_LEVEL_NAT : OW_LEVEL_IP;
	} else if (strcmp(key, "inner") == 0) {
		r = choice(text, yes_no, 2, &i, why);
		flows->info.inner = i;
	} else { /* counts */
		r = choice(text, yes_no, 2, &i, why);
		flows->info.counts = i;
	}
	return r;
}

int ow_config_flows_complete(struct ow_config_flows *flows, struct ow_error *why)
{
	struct ow_flow_select *select = &flows->info.select;
	if (!flows->file)
		return ow_error_set(why, EINVAL, "has no 'file'");
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

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool ow_config_flows_same(const struct ow_config_flows *a, const struct ow_config_flows *b)
{
	if (!same_text(a->file, b->file) || a->interfaces != b->interfaces || a->heading != b->heading ||
	    !same_text(a->filter, b->filter) || a->flows_max != b->flows_max ||
	    a->info.interval_ns != b->info.interval_ns || a->info.counts != b->info.counts ||
	    ow_epoch_info_comparable(&a->info, &b->info, NULL) < 0)
		return false;
	for (unsigned i = 0; i < a->class_count; i++) {
		if (!same_text(a->classes[i].filter, b->classes[i].filter))
			return false;
	}
	return true;
}
