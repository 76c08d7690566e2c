/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and batches of the join: join.h. */
#include "discovery/join.h"

#include "base/array.h"
#include "discovery/join_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_join_create(int64_t epoch_ns, struct ow_join **ret_join)
{
	if (epoch_ns < OW_SAMPLE_EPOCH_MIN_NS || epoch_ns > OW_SAMPLE_EPOCH_MAX_NS)
		return -EINVAL;
	struct ow_join *join = calloc(1, sizeof *join);
	if (!join || ow_clock_bounds_create(&join->bounds) < 0) {
		free(join);
		return -ENOMEM;
	}
	join->epoch_ns = epoch_ns;
	join->settled = join->first = INT64_MIN;
	for (unsigned i = 0; i < OW_JOIN_SPANS; i++)
		join->batch[i].epoch = INT64_MIN;
	*ret_join = join;
	return 0;
}

static void message_done(struct ow_join_message *message)
{
	free(message->record);
	free(message->used);
	*message = (struct ow_join_message){.epoch = INT64_MIN};
}

void ow_join_free(struct ow_join *join)
{
	if (!join)
		return;
	for (uint32_t i = 0; i < join->vantages; i++) {
		for (unsigned k = 0; k < OW_JOIN_KEPT; k++)
			message_done(&join->vantage[i].message[k]);
		free(join->vantage[i].settled);
	}
	for (unsigned i = 0; i < OW_JOIN_SPANS; i++)
		ow_join_batch_done(&join->batch[i]);
	ow_clock_bounds_free(join->bounds);
	ow_id_map_done(&join->pair_map);
	ow_id_map_done(&join->alias_map);
	free(join->vantage);
	free(join->pair);
	free(join->sighting);
	free(join->trajectory);
	free(join->passage);
	free(join->twin);
	free(join->alias);
	free(join);
}

/* -- messages ------------------------------------------------------------------------------------------------------- */

/* A number for the clock of a new point, mostly that of its first vantage. */
static uint32_t free_clock(const struct ow_join *join, uint32_t wanted)
{
	for (uint32_t i = 0; i < join->vantages; i++) {
		if (join->vantage[i].there && join->vantage[i].clock == wanted) {
			wanted = wanted + 1 < OW_JOIN_VANTAGES_MAX ? wanted + 1 : 0;
			i = UINT32_MAX; /* from the start */
		}
	}
	return wanted;
}

/* The number of the sample's vantage; it is made if there is none. -E2BIG: too many. */
static int64_t vantage_of(struct ow_join *join, const struct ow_vantage_sample *s)
{
	uint32_t of_point = 0, clock = OW_JOIN_NONE, free_slot = join->vantages;
	for (uint32_t i = 0; i < join->vantages; i++) {
		const struct ow_join_vantage *v = &join->vantage[i];
		if (!v->there) {
			free_slot = i < free_slot ? i : free_slot;
			continue;
		}
		if (strcmp(v->point, s->point) != 0)
			continue;
		of_point++;
		clock = v->clock;
		if (v->kind == s->kind && strcmp(v->interface, s->interface) == 0)
			return i;
	}
	if (of_point == OW_JOIN_POINT_VANTAGES || free_slot == OW_JOIN_VANTAGES_MAX)
		return -E2BIG;
	if (free_slot == join->vantages) {
		if (OW_GROW_ZEROED(join->vantage, join->room, join->vantages + 1) < 0)
			return -ENOMEM;
		join->vantages++;
	}
	struct ow_join_vantage *v = &join->vantage[free_slot];
	for (unsigned k = 0; k < OW_JOIN_KEPT; k++)
		message_done(&v->message[k]);
	uint64_t *settled = v->settled;
	uint32_t room = v->settled_room;
	*v = (struct ow_join_vantage){
		.kind = s->kind, .first = INT64_MAX, .last = INT64_MIN, .settled = settled, .settled_room = room};
	for (unsigned k = 0; k < OW_JOIN_KEPT; k++)
		v->message[k].epoch = INT64_MIN;
	memcpy(v->point, s->point, sizeof v->point);
	memcpy(v->interface, s->interface, sizeof v->interface);
	v->clock = clock != OW_JOIN_NONE ? clock : free_clock(join, free_slot);
	v->there = true;
	return free_slot;
}

/* Whether the message is of the epochs that are still open; else counts it. */
static bool in_time(struct ow_join *join, int64_t epoch)
{
	if (join->settled == INT64_MIN)
		return true;
	if (epoch <= join->settled) {
		join->counts.late++;
		return false;
	}
	if (epoch > join->settled + OW_JOIN_KEPT - 3) {
		join->counts.ahead++;
		return false;
	}
	return true;
}

int ow_join_add(struct ow_join *join, struct ow_vantage_sample *sample)
{
	if (sample->epoch_ns != join->epoch_ns)
		return -EINVAL;
	join->counts.messages++;
	if (!in_time(join, sample->epoch))
		return 0;
	int64_t number = vantage_of(join, sample);
	join->counts.refused += number == -E2BIG;
	if (number < 0)
		return number == -E2BIG ? 0 : (int)number;
	struct ow_join_vantage *v = &join->vantage[number];
	struct ow_join_message *m = &v->message[(uint64_t)sample->epoch % OW_JOIN_KEPT];
	if (m->epoch >= sample->epoch)
		return 0;
	uint8_t *used = calloc(sample->count + 1, sizeof *used);
	if (!used)
		return -ENOMEM;
	message_done(m);
	*m = (struct ow_join_message){.epoch = sample->epoch,
	                              .complete = ow_vantage_sample_complete(sample),
	                              .key_generation = sample->key_generation,
	                              .clock_generation = sample->clock_generation,
	                              .tau = sample->tau,
	                              .packets = sample->packets,
	                              .drops = sample->drops,
	                              .count = sample->count,
	                              .record = sample->record,
	                              .used = used};
	sample->record = NULL;
	sample->count = 0;
	join->counts.incomplete += !m->complete;
	v->first = sample->epoch < v->first ? sample->epoch : v->first;
	v->last = sample->epoch > v->last ? sample->epoch : v->last;
	return 0;
}

/* -- batches -------------------------------------------------------------------------------------------------------- */

/* The key that most messages of an epoch use (Boyer, Moore: exact if more than half do). */
static uint32_t usual_key(struct ow_join *join, int64_t epoch)
{
	uint32_t key = 0, votes = 0;
	for (uint32_t i = 0; i < join->vantages; i++) {
		const struct ow_join_message *m = ow_join_message_of(&join->vantage[i], epoch);
		if (!m)
			continue;
		if (votes == 0)
			key = m->key_generation;
		votes += m->key_generation == key ? 1 : -1u;
	}
	return key;
}

/* Ids under another key are other ids. */
static void drop_other_keys(struct ow_join *join, int64_t epoch)
{
	uint32_t key = usual_key(join, epoch);
	for (uint32_t i = 0; i < join->vantages; i++) {
		struct ow_join_message *m = ow_join_message_of(&join->vantage[i], epoch);
		if (!m || m->key_generation == key)
			continue;
		join->counts.other_keys++;
		m->complete = false;
		m->count = 0;
	}
}

/* Sets what the vantage can say about the batch. */
static void prepare(struct ow_join *join, struct ow_join_vantage *v, int64_t epoch)
{
	uint64_t tc = UINT64_MAX, packets = 0, drops = 0;
	const struct ow_join_message *now = ow_join_message_of(v, epoch), *before = ow_join_message_of(v, epoch - 1);
	join->counts.missing += v->there && !now && epoch > v->first;
	join->counts.clock_steps += now && before && now->clock_generation != before->clock_generation;
	for (int64_t e = epoch - 2; e <= epoch; e++) {
		const struct ow_join_message *m = ow_join_message_of(v, e);
		if (!m || !m->complete || !now || m->clock_generation != now->clock_generation ||
		    m->key_generation != now->key_generation) {
			tc = 0;
			continue;
		}
		tc = m->tau < tc ? m->tau : tc;
		packets += m->packets;
		drops += m->drops;
	}
	v->tc = tc;
	v->packets = before ? before->packets : 0;
	v->drop_share = drops ? (double)drops / ((double)drops + (double)packets) : 0;
	v->all_packets += (double)v->packets;
	v->all_drops += before ? (double)before->drops : 0;
	v->epochs += tc > 0;
}

static void note_sampled(struct ow_join *join)
{
	for (uint32_t i = 0; i < join->vantages; i++) {
		struct ow_join_vantage *v = &join->vantage[i];
		for (uint32_t k = 0; k < v->settleds && v->settled[k] < v->tc; k++)
			v->all_sampled++;
	}
}

/* Whether there can be packets of the epoch before. */
static bool has_begun(const struct ow_join *join, int64_t epoch)
{
	bool begun = join->first != INT64_MIN;
	for (uint32_t i = 0; i < join->vantages && !begun; i++)
		begun = join->vantage[i].first < epoch;
	return begun;
}

static int settle(struct ow_join *join, int64_t epoch)
{
	if (join->batch[0].epoch != epoch - 1) {
		for (unsigned i = 0; i < OW_JOIN_SPANS; i++)
			ow_join_batch_done(&join->batch[i]);
	}
	drop_other_keys(join, epoch);
	for (uint32_t i = 0; i < join->vantages; i++)
		prepare(join, &join->vantage[i], epoch);
	join->settled = epoch;
	if (has_begun(join, epoch)) {
		join->first = join->first == INT64_MIN ? epoch : join->first;
		join->counts.epochs++;
	}
	int r = ow_join_find_trajectories(join, epoch);
	if (r == 0)
		r = ow_join_count_pairs(join);
	if (r == 0)
		note_sampled(join);
	if (r == 0)
		r = ow_join_count_flows(join, epoch);
	ow_join_age(join);
	return r;
}

int ow_join_settle(struct ow_join *join, int64_t epoch)
{
	int64_t from = join->settled == INT64_MIN || epoch - join->settled > OW_JOIN_KEPT ? epoch : join->settled + 1;
	int r = 0;
	for (int64_t e = from; e <= epoch && r == 0; e++)
		r = settle(join, e);
	return r;
}
