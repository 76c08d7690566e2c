/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope at the receiver. The packets of an interval are divided: those of flows that the sender has announced are
 * compared; the others are held for a few intervals, in case they are early, and are unshared then.
 */
#include "exchange/exchange_scope.h"

#include "base/array.h"
#include "base/sort.h"
#include "exchange/message_scope.h"
#include "record/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Announcements that may wait for their intervals: as many as the sender keeps, which is ahead by the delay and by the
 * difference of the clocks. Of further keys only the digest is kept, and the interval is unknown.
 */
#define ANNOUNCED_MAX      OW_SCOPE_FLIGHT_MAX
#define ANNOUNCED_KEYS_MAX (4 * (size_t)OW_SCOPE_LIVE_MAX)

struct announced {
	int64_t interval;
	struct ow_scope_update update;
	struct ow_key_sketch sketch; /* of its keys, as long as they are not known: update.capacity is not 0 */
	uint32_t check;
	bool asked; /* for a list of them */
};

/* Packets of an interval that may belong to a later one. */
struct held {
	int64_t interval, start_ns;
	unsigned sample_shift;
	struct ow_lane_flows flows;   /* of the whole interval */
	struct ow_sighting *sighting; /* ids are those of the first copies */
	size_t count;
};

struct ow_receiver_scope {
	struct ow_scope_options options;
	struct ow_identity identity;
	struct ow_scope_receiver *receiver;
	struct announced *announced; /* by rising interval */
	size_t announceds, room;
	size_t keys;       /* of all that are announced */
	int64_t last;      /* interval that was taken */
	bool quiet;        /* intervals after the last one that was announced may come late */
	struct held *held; /* the newest first */
	size_t helds, held_max;
};

int ow_receiver_scope_create(const struct ow_exchange *x, struct ow_receiver_scope **ret_scope)
{
	struct ow_receiver_scope *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	ow_exchange_scope_options(x, &s->options);
	s->identity = x->options.identity;
	s->last = -1;
	/* The flows of an interval stay where they are for two calls after its last packets were held. */
	s->held_max = s->options.hold + 3;
	s->held = calloc(s->held_max, sizeof *s->held);
	int r = s->held ? ow_scope_receiver_create(&s->options, &s->receiver) : -ENOMEM;
	if (r < 0) {
		ow_receiver_scope_free(s);
		return r;
	}
	*ret_scope = s;
	return 0;
}

static void held_done(struct held *held)
{
	ow_lane_flows_done(&held->flows);
	free(held->sighting);
	*held = (struct held){0};
}

void ow_receiver_scope_free(struct ow_receiver_scope *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->announceds; i++)
		ow_scope_update_done(&s->announced[i].update);
	for (size_t i = 0; s->held && i < s->helds; i++)
		held_done(&s->held[i]);
	ow_scope_receiver_free(s->receiver);
	free(s->announced);
	free(s->held);
	free(s);
}

static size_t keys_of(const struct ow_scope_update *update)
{
	return update->hot.count + update->fine.count + update->keys.count;
}

/* The digest no longer fits: the sender will begin anew. */
static void forget_keys(struct ow_scope_update *update)
{
	struct ow_scope_update rest = {
		.generation = update->generation, .reset = update->reset, .digest = update->digest};
	ow_scope_update_done(update);
	*update = rest;
}

/* Removes the oldest, which the caller frees. */
static struct announced shift_announced(struct ow_receiver_scope *s)
{
	struct announced oldest = s->announced[0];
	memmove(s->announced, s->announced + 1, --s->announceds * sizeof *s->announced);
	s->keys -= keys_of(&oldest.update);
	return oldest;
}

static int64_t newest_of(const struct ow_receiver_scope *s)
{
	return s->announceds ? s->announced[s->announceds - 1].interval : s->last;
}

bool ow_receiver_scope_is_quiet(const struct ow_receiver_scope *s, int64_t interval)
{
	return s->quiet && interval > newest_of(s);
}

/* The list of keys of an interval whose sketch did not tell them. */
static int take_list(struct ow_receiver_scope *s, int64_t interval, const struct ow_message_scope *message,
                     struct ow_error *err)
{
	struct announced *first = s->announceds ? &s->announced[0] : NULL;
	if (!first || first->interval != interval || !first->asked || message->sketch.capacity)
		return 0;
	s->keys -= keys_of(&first->update);
	ow_scope_update_done(&first->update);
	first->asked = false;
	int r = ow_scope_update_of_message(message, &first->update, err);
	s->keys += keys_of(&first->update);
	return r;
}

static int announced_one(struct ow_receiver_scope *s, int64_t interval, const struct ow_message_scope *message,
                         struct ow_error *err)
{
	struct ow_scope_update update = {0};
	if (interval <= newest_of(s))
		return take_list(s, interval, message, err);
	/* Others that come again were announced before a connection was lost. */
	int r = ow_scope_update_of_message(message, &update, err);
	if (r == 0 && OW_GROW(s->announced, s->room, s->announceds + 1) < 0)
		r = -ENOMEM;
	if (r < 0) {
		ow_scope_update_done(&update);
		return r;
	}
	/* The sender gave up the oldest, too. */
	if (s->announceds == ANNOUNCED_MAX) {
		struct announced oldest = shift_announced(s);
		ow_scope_update_done(&oldest.update);
	}
	if (s->keys + keys_of(&update) > ANNOUNCED_KEYS_MAX)
		forget_keys(&update);
	s->keys += keys_of(&update);
	s->announced[s->announceds++] = (struct announced){interval, update, message->sketch, message->check, false};
	return 0;
}

int ow_receiver_scope_announced(struct ow_receiver_scope *s, int64_t interval, const struct ow_message_scope *message,
                                struct ow_error *err)
{
	int r = 0;
	if (message->idle > interval)
		return ow_error_set(err, EPROTO, "message SCOPE: intervals before the first one");
	for (int64_t i = interval - message->idle; i <= interval && r == 0; i++)
		r = announced_one(s, i, message, err);
	if (interval == newest_of(s))
		s->quiet = message->quiet;
	return r;
}

bool ow_receiver_scope_next(const struct ow_receiver_scope *s, int64_t *ret_interval)
{
	if (!s->announceds)
		return false;
	*ret_interval = s->announced[0].interval;
	return true;
}

/* a without what is in both, and the rest of b: all sorted. */
static size_t unlike(const struct ow_scope_list *a, const struct ow_scope_list *b, uint64_t *ret_keys)
{
	size_t i = 0, k = 0, n = 0;
	while (i < a->count || k < b->count) {
		if (k == b->count || (i < a->count && a->key[i] < b->key[k]))
			ret_keys[n++] = a->key[i++];
		else if (i == a->count || b->key[k] < a->key[i])
			ret_keys[n++] = b->key[k++];
		else
			i++, k++;
	}
	return n;
}

/* The keys of the sketch: those that this point would announce, but for what is unlike. -EAGAIN, -ENOMEM. */
static int solve(struct announced *next, const struct ow_scope_list *mine)
{
	struct ow_key_sketch sketch = next->sketch;
	uint64_t differences[OW_KEY_SKETCH_MAX];
	for (size_t i = 0; i < mine->count; i++)
		ow_key_sketch_toggle(&sketch, mine->key[i]);
	int count = ow_key_sketch_solve(&sketch, differences);
	if (count < 0)
		return -EAGAIN;
	ow_sort_ids(differences, (size_t)count);
	const struct ow_scope_list found = {differences, (size_t)count};
	struct ow_scope_list keys = {malloc((mine->count + (size_t)count + 1) * sizeof *keys.key), 0};
	if (!keys.key)
		return -ENOMEM;
	keys.count = unlike(mine, &found, keys.key);
	if (!keys.count || keys.count > OW_SCOPE_UPDATE_MAX || ow_scope_keys_check(&keys) != next->check) {
		free(keys.key);
		return -EAGAIN;
	}
	next->update.keys = keys;
	next->update.capacity = 0;
	return 0;
}

int ow_receiver_scope_solve(struct ow_receiver_scope *s, const struct ow_interval_packets *packets,
                            uint32_t *ret_strange)
{
	struct announced *next = &s->announced[0];
	struct ow_scope_list mine = {0};
	*ret_strange = 0;
	if (next->asked)
		return -EBUSY;
	if (next->update.reset)
		return 0;
	int r = ow_scope_candidates(s->receiver, next->interval, &next->update, packets ? packets->flows.flow : NULL,
	                            packets ? packets->flows.count : 0, &mine);
	if (r == 0 && next->update.capacity) {
		r = solve(next, &mine);
		s->keys += r == 0 ? next->update.keys.count : 0;
	}
	if (r == 0) {
		const struct ow_scope_list *keys = &next->update.keys;
		uint64_t *differences = malloc((mine.count + keys->count + 1) * sizeof *differences);
		size_t all = differences ? unlike(&mine, keys, differences) : 0;
		/* Those of one list less those of the other. */
		*ret_strange = (uint32_t)((all + mine.count - keys->count) / 2);
		free(differences);
	}
	next->asked = r == -EAGAIN;
	free(mine.key);
	return r;
}

static uint32_t number_of(struct ow_lane_flows *flows, const struct ow_scope_flow *flow)
{
	uint32_t number = ow_lane_flows_find(flows, flow->flow);
	return number ? number : ow_lane_flows_add(flows, flow, UINT32_MAX);
}

/* How many packets a held one is in the sample of the interval. */
static uint64_t weight_of(const struct ow_receiver_scope *s, const struct held *held, const struct ow_sighting *packet,
                          const struct ow_interval_packets *packets)
{
	if (!packets || held->sample_shift == packets->sample_shift)
		return 1;
	if (held->sample_shift > packets->sample_shift) {
		unsigned finer = held->sample_shift - packets->sample_shift;
		return UINT64_C(1) << (finer < OW_MESSAGE_SHIFT_MAX ? finer : OW_MESSAGE_SHIFT_MAX);
	}
	return ow_sampled(ow_sample_rank(&s->identity, packet->id), packets->sample_shift);
}

/* Adds the packets of earlier intervals that join this one, and counts those that are unshared. */
static int join(struct ow_receiver_scope *s, const struct ow_scope_held *joins, size_t count,
                struct ow_interval_packets *packets, uint64_t *ret_unshared)
{
	struct ow_sighting *joined = NULL;
	size_t joineds = 0, room = 0;
	int r = 0;
	for (size_t k = count; k-- > 0 && r == 0;) {
		struct held *held = s->held;
		while (held < s->held + s->helds && held->interval != joins[k].interval)
			held++;
		if (held == s->held + s->helds)
			continue;
		int64_t ago_ns = packets ? packets->start_ns - held->start_ns : 0;
		size_t kept = 0;
		for (size_t i = 0; i < held->count && r == 0; i++) {
			uint8_t what = joins[k].joins[held->sighting[i].flow - 1];
			uint64_t weight = weight_of(s, held, &held->sighting[i], packets);
			if (what == OW_SCOPE_HOLDS) {
				held->sighting[kept++] = held->sighting[i];
			} else if (what == OW_SCOPE_JOINS && packets) {
				if (!weight)
					continue;
				/* The flow must have a number in this interval, too. */
				const struct ow_scope_flow *flow = &held->flows.flow[held->sighting[i].flow - 1];
				r = OW_GROW(joined, room, joineds + 1);
				if (r == 0)
					r = ow_lane_flows_reopen(&packets->flows);
				if (r == 0)
					joined[joineds++] = (struct ow_sighting){held->sighting[i].id,
					                                         held->sighting[i].time_ns - ago_ns,
					                                         number_of(&packets->flows, flow)};
			} else {
				*ret_unshared += weight;
			}
		}
		held->count = kept;
	}
	if (r == 0 && joineds)
		r = ow_interval_packets_join(packets, joined, joineds);
	free(joined);
	return r;
}

/* Splits the packets: what is compared stays, what is held goes. The flows go with the held packets, which the receiver of
 * keys refers to; the others get a copy. */
static int split(struct ow_interval_packets *packets, const uint8_t *in_scope, struct held *held)
{
	size_t out = 0, kept = 0;
	*held = (struct held){
		.interval = packets->interval, .start_ns = packets->start_ns, .sample_shift = packets->sample_shift};
	for (size_t i = 0; i < packets->count; i++)
		out += !packets->sighting[i].flow || in_scope[packets->sighting[i].flow - 1] != OW_SCOPE_JOINS;
	held->sighting = malloc((out + 1) * sizeof *held->sighting);
	if (!held->sighting)
		return -ENOMEM;
	for (size_t i = 0; i < packets->count; i++) {
		struct ow_sighting packet = packets->sighting[i];
		if (packet.flow && in_scope[packet.flow - 1] == OW_SCOPE_JOINS) {
			packets->sighting[kept++] = packet;
			continue;
		}
		const struct ow_copy *copy = packets->copies ? ow_interval_packets_copy(packets, packet.id) : NULL;
		packet.id = copy ? copy->base_id : packet.id;
		held->sighting[held->count++] = packet;
	}
	packets->count = kept;
	return 0;
}

/* The newest first; the oldest is forgotten. */
static void push_held(struct ow_receiver_scope *s, const struct held *held)
{
	if (s->helds == s->held_max)
		held_done(&s->held[--s->helds]);
	memmove(s->held + 1, s->held, s->helds++ * sizeof *s->held);
	s->held[0] = *held;
}

/* Packets of flows that could not be listed are nobody's. */
static void drop_unlisted(struct held *held, uint64_t *ret_unshared)
{
	size_t kept = 0;
	for (size_t i = 0; i < held->count; i++) {
		if (held->sighting[i].flow)
			held->sighting[kept++] = held->sighting[i];
	}
	*ret_unshared += held->count - kept;
	held->count = kept;
}

/* The packets, divided by what the receiver of keys says, which refers to the flows of the packets from then on. */
static int take(struct ow_receiver_scope *s, const struct announced *next, struct ow_interval_packets *packets,
                struct ow_lane_flows *flows, uint8_t *in_scope, struct ow_scope_answer *ret_answer,
                uint64_t *ret_unshared, struct ow_error *err)
{
	struct ow_scope_held joins[OW_SCOPE_HOLD_MAX];
	struct held held;
	size_t count = 0;
	int r = ow_scope_receive(s->receiver, next->interval, &next->update, packets ? packets->flows.flow : NULL,
	                         flows->count, in_scope, joins, &count, ret_answer, err);
	if (packets) {
		int e = split(packets, in_scope, &held);
		held.flows = packets->flows;
		packets->flows = *flows;
		*flows = (struct ow_lane_flows){0};
		drop_unlisted(&held, ret_unshared);
		push_held(s, &held);
		r = r < 0 ? r : e;
	}
	return r < 0 ? r : join(s, joins, count, packets, ret_unshared);
}

int ow_receiver_scope_take(struct ow_receiver_scope *s, struct ow_interval_packets *packets,
                           struct ow_scope_answer *ret_answer, uint64_t *ret_unshared, struct ow_error *err)
{
	struct announced next = shift_announced(s);
	s->last = next.interval;
	struct ow_lane_flows flows = {0};
	*ret_unshared = 0;
	*ret_answer = (struct ow_scope_answer){0};
	int r = packets ? ow_lane_flows_copy(&packets->flows, &flows) : 0;
	uint8_t *in_scope = r == 0 ? calloc(flows.count + (size_t)1, 1) : NULL;
	if (in_scope)
		r = take(s, &next, packets, &flows, in_scope, ret_answer, ret_unshared, err);
	else
		r = -ENOMEM;
	if (r < 0)
		ow_scope_answer_done(ret_answer);
	free(in_scope);
	ow_lane_flows_done(&flows);
	ow_scope_update_done(&next.update);
	return r;
}

void ow_receiver_scope_only(struct ow_receiver_scope *s, const struct ow_scope_flow *flow, uint32_t packets)
{
	ow_scope_received_only(s->receiver, flow, packets);
}
