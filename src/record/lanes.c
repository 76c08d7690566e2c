/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of lanes: each change copies the newest table. Tables share lanes and filters, which have reference counts. */
#include "record/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ow_lane_table *newest(const struct ow_lanes *lanes)
{
	return atomic_load_explicit(&lanes->newest, memory_order_relaxed); /* only the calling thread changes it */
}

/*
 * -- filters --------------------------------------------------------------------------------------------------------
 */

static void filter_free(struct ow_lane_filter *filter)
{
	for (unsigned i = 0; filter->code && i < filter->count; i++)
		ow_packet_filter_done(&filter->code[i]);
	free(filter->code);
	free(filter->text);
	free(filter);
}

static int filter_compile(const struct ow_lanes *lanes, const char *text, bool inner, uint32_t sources,
                          struct ow_lane_filter **ret_filter, struct ow_error *err)
{
	struct ow_lane_filter *filter = calloc(1, sizeof *filter);
	if (!filter)
		return -ENOMEM;
	filter->text = strdup(text);
	filter->code = calloc(lanes->sources, sizeof *filter->code);
	filter->count = lanes->sources;
	filter->inner = inner;
	int r = filter->text && filter->code ? 0 : -ENOMEM;
	for (unsigned i = 0; i < lanes->sources && r == 0; i++) {
		if (!(sources >> i & 1))
			continue;
		r = ow_packet_filter_compile(lanes->name[i], lanes->linktype[i], text, &filter->code[i], err);
		filter->code[i].inner = inner;
		if (r == 0)
			filter->sources |= UINT32_C(1) << i;
	}
	if (r < 0) {
		filter_free(filter);
		return r;
	}
	*ret_filter = filter;
	return 0;
}

/* Returns the filter of this text, newly compiled or shared. text: NULL = none. */
static int filter_get(struct ow_lanes *lanes, const char *text, bool inner, uint32_t sources,
                      struct ow_lane_filter **ret_filter, struct ow_error *err)
{
	*ret_filter = NULL;
	if (!text)
		return 0;
	struct ow_lane_filter *filter = lanes->filter;
	while (filter && (filter->sources != sources || filter->inner != inner || strcmp(filter->text, text) != 0))
		filter = filter->next;
	if (!filter) {
		int r = filter_compile(lanes, text, inner, sources, &filter, err);
		if (r < 0)
			return r;
		filter->next = lanes->filter;
		lanes->filter = filter;
	}
	filter->users++;
	*ret_filter = filter;
	return 0;
}

static void filter_put(struct ow_lanes *lanes, struct ow_lane_filter *filter)
{
	if (!filter || --filter->users > 0)
		return;
	struct ow_lane_filter **at = &lanes->filter;
	while (*at && *at != filter)
		at = &(*at)->next;
	*at = filter->next;
	filter_free(filter);
}

/*
 * -- lanes ----------------------------------------------------------------------------------------------------------
 */

static void lane_put(struct ow_lanes *lanes, struct ow_lane *lane)
{
	if (--lane->users > 0)
		return;
	filter_put(lanes, lane->filter);
	filter_put(lanes, lane->way);
	filter_put(lanes, lane->without);
	free(lane);
}

static int lane_check(const struct ow_lanes *lanes, const struct ow_lane_options *options, struct ow_error *err)
{
	uint32_t known = lanes->sources < 32 ? (UINT32_C(1) << lanes->sources) - 1 : UINT32_MAX;
	if (options->sources == 0 || options->sources & ~known)
		return ow_error_set(err, EINVAL, "a lane has no source, or one that does not exist");
	if (options->length_ns < OW_INTERVAL_MIN_NS || options->length_ns > OW_INTERVAL_MAX_NS)
		return ow_error_set(err, EINVAL, "an interval must be 1 ms to 5 min long");
	if (options->identity.segments ||
	    (options->identity.level != OW_LEVEL_IP && options->identity.level != OW_LEVEL_NAT))
		return ow_error_set(err, EINVAL, "a lane identifies packets at level ip or nat");
	if (options->sample_shift > 64)
		return ow_error_set(err, EINVAL, "a sample is at most one in 2^64");
	if (newest(lanes)->count >= OW_LANES_MAX)
		return ow_error_set(err, EINVAL, "there are %d lanes already", OW_LANES_MAX);
	return 0;
}

static int lane_make(struct ow_lanes *lanes, const struct ow_lane_options *options, struct ow_lane **ret_lane,
                     struct ow_error *err)
{
	struct ow_lane *lane = malloc(sizeof *lane);
	if (!lane)
		return -ENOMEM;
	*lane = (struct ow_lane){.number = lanes->numbers,
	                         .users = 1,
	                         .identity = options->identity,
	                         .sources = options->sources,
	                         .heading = options->heading,
	                         .way_not = options->way_not,
	                         .firsts = options->firsts,
	                         .flows = options->flows,
	                         .t0_ns = options->t0_ns,
	                         .length_ns = options->length_ns};
	ow_scope_hash_seed(&lane->flow_hash, options->flow_seed);
	int r = filter_get(lanes, options->filter, false, options->sources, &lane->filter, err);
	if (r == 0)
		r = filter_get(lanes, options->way, false, options->sources, &lane->way, err);
	if (r == 0)
		r = filter_get(lanes, options->without, options->identity.inner, options->sources, &lane->without, err);
	if (r < 0) {
		lane_put(lanes, lane);
		return r;
	}
	*ret_lane = lane;
	return 0;
}

/*
 * -- tables ---------------------------------------------------------------------------------------------------------
 */

static void table_free(struct ow_lanes *lanes, struct ow_lane_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		lane_put(lanes, table->entry[i].lane);
	free(table->identity);
	free(table->filter);
	free(table);
}

/* Creates an empty table with room for so many lanes. */
static struct ow_lane_table *table_create(uint32_t room)
{
	struct ow_lane_table *table = calloc(1, sizeof *table + room * sizeof *table->entry);
	if (!table)
		return NULL;
	table->identity = calloc(room + 1, sizeof *table->identity);
	table->filter = calloc(3 * (size_t)room + 1, sizeof *table->filter);
	if (!table->identity || !table->filter) {
		free(table->identity);
		free(table->filter);
		free(table);
		return NULL;
	}
	return table;
}

static bool same_identity(const struct ow_identity *a, const struct ow_identity *b)
{
	return a->level == b->level && a->inner == b->inner && a->any_ip_id == b->any_ip_id && a->tcp == b->tcp &&
	       a->tcp_headers == b->tcp_headers && a->pieces == b->pieces && a->hash_limit == b->hash_limit &&
	       a->key == b->key && memcmp(a->secret, b->secret, sizeof a->secret) == 0;
}

static uint32_t note_filter(struct ow_lane_table *table, const struct ow_lane_filter *filter)
{
	if (!filter)
		return OW_NO_FILTER;
	uint32_t i = 0;
	while (i < table->filters && table->filter[i].code != filter->code)
		i++;
	if (i == table->filters)
		table->filter[table->filters++].code = filter->code;
	return i;
}

static struct ow_lane_entry *table_add(struct ow_lane_table *table, struct ow_lane *lane, unsigned sample_shift,
                                       const struct ow_interval_cuts *cuts)
{
	struct ow_lane_entry *entry = &table->entry[table->count++];
	*entry = (struct ow_lane_entry){.lane = lane, .sample_shift = sample_shift, .cuts = *cuts};
	lane->users++;
	while (entry->identity < table->identities &&
	       !same_identity(&table->identity[entry->identity], &lane->identity))
		entry->identity++;
	if (entry->identity == table->identities)
		table->identity[table->identities++] = lane->identity;
	entry->filter = note_filter(table, lane->filter);
	entry->way = note_filter(table, lane->way);
	entry->without = note_filter(table, lane->without);
	return entry;
}

static struct ow_lane_entry *table_copy(struct ow_lane_table *table, const struct ow_lane_entry *entry)
{
	return table_add(table, entry->lane, entry->sample_shift, &entry->cuts);
}

static void publish(struct ow_lanes *lanes, struct ow_lane_table *table)
{
	table->older = newest(lanes);
	table->generation = table->older->generation + 1;
	atomic_store_explicit(&lanes->newest, table, memory_order_release);
}

int ow_lanes_init(struct ow_lanes *lanes, const uint16_t *linktype, const char *const *name, unsigned sources)
{
	*lanes = (struct ow_lanes){.linktype = linktype, .name = name, .sources = sources};
	struct ow_lane_table *table = table_create(0);
	if (!table)
		return -ENOMEM;
	atomic_store_explicit(&lanes->newest, table, memory_order_release);
	return 0;
}

void ow_lanes_done(struct ow_lanes *lanes)
{
	struct ow_lane_table *table = newest(lanes);
	if (!table)
		return;
	ow_lanes_reclaim(lanes, UINT64_MAX);
	table_free(lanes, table);
}

static int lane_add(struct ow_lanes *lanes, const struct ow_lane_options *options, struct ow_error *err)
{
	const struct ow_lane_table *old = newest(lanes);
	struct ow_lane *lane = NULL;
	int r = lane_make(lanes, options, &lane, err);
	if (r < 0)
		return r;
	struct ow_lane_table *table = table_create(old->count + 1);
	if (table) {
		for (uint32_t i = 0; i < old->count; i++)
			(void)table_copy(table, &old->entry[i]);
		const struct ow_interval_cuts cuts = {lane->t0_ns, lane->length_ns, 0, 0, 0};
		(void)table_add(table, lane, options->sample_shift, &cuts);
		publish(lanes, table);
	}
	lane_put(lanes, lane); /* the table holds a reference now */
	return table ? 0 : -ENOMEM;
}

int ow_lanes_add(struct ow_lanes *lanes, const struct ow_lane_options *options, uint32_t *ret_lane,
                 struct ow_error *err)
{
	int r = lane_check(lanes, options, err);
	if (r == 0)
		r = lane_add(lanes, options, err);
	if (r == -ENOMEM)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r < 0)
		return r;
	*ret_lane = lanes->numbers++;
	return 0;
}

static const struct ow_lane_entry *find(const struct ow_lanes *lanes, uint32_t lane)
{
	const struct ow_lane_table *table = newest(lanes);
	uint32_t low = 0, high = table->count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (table->entry[middle].lane->number < lane)
			low = middle + 1;
		else
			high = middle;
	}
	return low < table->count && table->entry[low].lane->number == lane ? &table->entry[low] : NULL;
}

bool ow_lanes_has(const struct ow_lanes *lanes, uint32_t lane)
{
	const struct ow_lane_entry *entry = find(lanes, lane);
	return entry && !entry->lane->gone;
}

static bool filter_needs_payload(const struct ow_lane_filter *filter, unsigned source)
{
	return filter && ow_packet_filter_needs_payload(&filter->code[source]);
}

bool ow_lanes_need_payload(const struct ow_lanes *lanes, unsigned source)
{
	const struct ow_lane_table *table = newest(lanes);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct ow_lane *lane = table->entry[i].lane;
		if (lane->sources >> source & 1 && !lane->gone &&
		    (ow_identity_needs_payload(&lane->identity) || filter_needs_payload(lane->filter, source) ||
		     filter_needs_payload(lane->way, source) || filter_needs_payload(lane->without, source)))
			return true;
	}
	return false;
}

int ow_lanes_remove(struct ow_lanes *lanes, uint32_t lane)
{
	const struct ow_lane_table *old = newest(lanes);
	const struct ow_lane_entry *entry = find(lanes, lane);
	if (!entry)
		return 0;
	entry->lane->gone = true;
	struct ow_lane_table *table = table_create(old->count - 1);
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < old->count; i++) {
		if (old->entry[i].lane->number != lane)
			(void)table_copy(table, &old->entry[i]);
	}
	publish(lanes, table);
	return 0;
}

/* A table in which one lane has another shift or cuts. */
static int change(struct ow_lanes *lanes, uint32_t lane, unsigned sample_shift, const struct ow_interval_cuts *cuts)
{
	const struct ow_lane_table *old = newest(lanes);
	struct ow_lane_table *table = table_create(old->count);
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < old->count; i++) {
		struct ow_lane_entry *entry = table_copy(table, &old->entry[i]);
		if (entry->lane->number != lane)
			continue;
		entry->sample_shift = sample_shift;
		entry->cuts = *cuts;
	}
	publish(lanes, table);
	return 0;
}

int ow_lanes_set_shift(struct ow_lanes *lanes, uint32_t lane, unsigned sample_shift)
{
	const struct ow_lane_entry *entry = find(lanes, lane);
	if (!entry || entry->sample_shift == sample_shift)
		return 0;
	return change(lanes, lane, sample_shift, &entry->cuts);
}

int ow_lanes_set_cuts(struct ow_lanes *lanes, uint32_t lane, const struct ow_interval_cuts *cuts)
{
	const struct ow_lane_entry *entry = find(lanes, lane);
	return entry ? change(lanes, lane, entry->sample_shift, cuts) : 0;
}

void ow_lanes_reclaim(struct ow_lanes *lanes, uint64_t oldest_used)
{
	struct ow_lane_table **at = &newest(lanes)->older;
	while (*at && (*at)->generation >= oldest_used)
		at = &(*at)->older;
	struct ow_lane_table *table = *at;
	*at = NULL;
	while (table) {
		struct ow_lane_table *older = table->older;
		table_free(lanes, table);
		table = older;
	}
}
