/* SPDX-License-Identifier: Apache-2.0 */
#include "path/join.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/id_map.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FLOWS_MAX (UINT32_C(1) << 20) /* flows with losses, or that pass points unseen: about 50 MB */
/*
 * A point that misses at most this share of the packets that pass it counts as one that shows all: a capture that drops
 * some, not one of several links. A packet that was lost behind it is then said to be lost before it as rarely.
 */
#define COMPLETE_SHARE 0.01

enum { NOT_REPORTED = 0, MATCHED = 1 }; /* of an entry of `told`; otherwise SINGLE + fate + side */
#define SINGLE(fate, side) ((uint8_t)(2 + 2 * (fate) + (side)))

/* Its records and what pairs told of it are in arrays of the join, which have a place for each point or pair. */
struct packet {
	uint64_t part, serial;
	uint64_t reported; /* bit k: by pair k */
	uint32_t seen;     /* bit p: at point p; 0 = this place is free */
	uint32_t packets, bytes;
	int64_t last_ns;
	uint8_t direction;
	bool ambiguous;
	bool torn; /* pairs contradict each other, because of identical packets or parts of superframes */
	struct ow_flow_key flow;
	uint64_t translated; /* its flow on the other side of a NAT, hashed; 0 = the same everywhere */
};

/* A packet at a point. */
struct record {
	uint64_t number;
	int64_t time_ns;
};

/* Lost packets of a flow, counted until it is known which points show all of the flow. */
struct loss {
	uint64_t flow;
	uint64_t packets;
	uint8_t direction, pair, from; /* pair 0: from end to end */
	uint16_t missing;              /* bit q: point q should have shown them, if it shows all of the flow */
};

struct waiting {
	uint32_t packet;
	uint64_t serial;
};

struct ow_path_join {
	struct ow_path_join_options options;
	struct ow_path_join_result result;
	uint64_t pairs_of[OW_PATH_POINTS]; /* bit k: pair k has this point */
	struct packet *packet;
	struct record *record; /* of packet i at point p: [i * points + p] */
	uint8_t *told;         /* of packet i by pair k: [i * pairs + k] */
	size_t packets, room, record_room, told_room;
	uint32_t *free;
	size_t frees, free_room;
	uint64_t serial, known;
	struct ow_id_map map;  /* of packets by their records */
	struct waiting *queue; /* packets in the order in which they became known */
	size_t queue_first, queued, queue_room;
	int64_t now_ns[OW_PATH_PAIRS], judged_ns;
	/* The same as around and corrections, of identical packets: another copy of them may be meant. */
	uint64_t doubtful[OW_DIRECTIONS][OW_PATH_POINTS];
	struct ow_path_correction doubtful_pair[OW_PATH_PAIRS][OW_DIRECTIONS];
	uint64_t ended, apart; /* bit k: pair k has ended, has no packets in common */
	struct loss *loss;
	size_t losses, loss_room;
	struct ow_id_map loss_map;
	uint64_t *partial; /* flows and points that they pass unseen, hashed together */
	size_t partials, partial_room;
	struct ow_id_map partial_map;
	bool crowded; /* more flows than are kept */
};

int ow_path_join_create(const struct ow_path_join_options *options, struct ow_path_join **ret_join)
{
	struct ow_path_join *j = calloc(1, sizeof *j);
	if (!j)
		return -ENOMEM;
	j->options = *options;
	j->judged_ns = INT64_MIN;
	for (unsigned k = 0; k < options->pairs; k++) {
		j->pairs_of[options->pair[k].from] |= UINT64_C(1) << k;
		j->pairs_of[options->pair[k].to] |= UINT64_C(1) << k;
		j->now_ns[k] = INT64_MIN;
	}
	*ret_join = j;
	return 0;
}

void ow_path_join_free(struct ow_path_join *j)
{
	if (!j)
		return;
	ow_id_map_done(&j->map);
	ow_id_map_done(&j->loss_map);
	ow_id_map_done(&j->partial_map);
	free(j->packet);
	free(j->record);
	free(j->told);
	free(j->free);
	free(j->queue);
	free(j->loss);
	free(j->partial);
	free(j);
}

/* -- packets by their records ------------------------------------------------------------------------------------- */

static struct record *record_of(const struct ow_path_join *j, const struct packet *p, unsigned point)
{
	return &j->record[(size_t)(p - j->packet) * j->options.points + point];
}

static uint8_t *told_of(const struct ow_path_join *j, const struct packet *p, unsigned pair)
{
	return &j->told[(size_t)(p - j->packet) * j->options.pairs + pair];
}

static uint64_t key_of(unsigned point, uint64_t number, uint64_t part)
{
	return number * OW_PATH_POINTS + point + (part ? ow_mix64(part) : 0);
}

static uint32_t find(const struct ow_path_join *j, unsigned point, uint64_t number, uint64_t part)
{
	uint64_t key = key_of(point, number, part);
	return OW_ID_MAP_FIND(&j->map, key, i,
	                      j->packet[i].seen >> point & 1 && j->packet[i].part == part &&
	                              record_of(j, &j->packet[i], point)->number == number);
}

static int set_record(struct ow_path_join *j, uint32_t i, unsigned point, uint64_t number, int64_t time_ns)
{
	struct packet *p = &j->packet[i];
	*record_of(j, p, point) = (struct record){number, time_ns};
	p->seen |= UINT32_C(1) << point;
	return ow_id_map_add(&j->map, key_of(point, number, p->part), i);
}

static int grow(struct ow_path_join *j)
{
	size_t packets = j->packets + 1;
	return OW_GROW(j->packet, j->room, packets) < 0 ||
	                       OW_GROW(j->record, j->record_room, packets * j->options.points) < 0 ||
	                       OW_GROW(j->told, j->told_room, packets * j->options.pairs) < 0
	               ? -ENOMEM
	               : 0;
}

static int new_packet(struct ow_path_join *j, const struct ow_path_event *event, uint32_t *ret_index)
{
	uint32_t i;
	if (j->frees) {
		i = j->free[--j->frees];
	} else {
		if (j->packets == OW_ID_MAP_ITEMS_MAX / OW_PATH_POINTS || grow(j) < 0)
			return -ENOMEM;
		i = (uint32_t)j->packets++;
	}
	j->packet[i] = (struct packet){.part = event->part,
	                               .serial = ++j->serial,
	                               .last_ns = INT64_MIN,
	                               .direction = OW_DIRECTIONS,
	                               .packets = event->packets,
	                               .bytes = event->bytes,
	                               .flow = event->flow};
	memset(told_of(j, &j->packet[i], 0), NOT_REPORTED, j->options.pairs);
	if (OW_GROW(j->queue, j->queue_room, j->queued + 1) < 0)
		return -ENOMEM;
	j->queue[j->queued++] = (struct waiting){i, j->serial};
	j->result.most = ++j->known > j->result.most ? j->known : j->result.most;
	*ret_index = i;
	return 0;
}

static void unmap(struct ow_path_join *j, uint32_t i)
{
	const struct packet *p = &j->packet[i];
	for (unsigned point = 0; point < j->options.points; point++) {
		if (p->seen >> point & 1)
			ow_id_map_remove(&j->map, key_of(point, record_of(j, p, point)->number, p->part), i);
	}
}

static int drop(struct ow_path_join *j, uint32_t i)
{
	unmap(j, i);
	j->packet[i].seen = 0;
	j->packet[i].serial = 0;
	j->known--;
	if (OW_GROW(j->free, j->free_room, j->frees + 1) < 0)
		return -ENOMEM;
	j->free[j->frees++] = i;
	return 0;
}

static uint64_t hash_flow(const struct ow_path_join *j, const struct ow_flow_key *flow)
{
	return XXH3_64bits_withSeed(flow, sizeof *flow, j->options.seed);
}

/* Both are the same packet: all is moved to the first. False if they contradict each other. */
static bool merge(struct ow_path_join *j, uint32_t to, uint32_t from, int *ret_result)
{
	struct packet *a = &j->packet[to];
	const struct packet moved = j->packet[from];
	if (a->seen & moved.seen || a->reported & moved.reported)
		return false;
	int r = drop(j, from); /* its records stay until the place is used again */
	for (unsigned point = 0; point < j->options.points && r == 0; point++) {
		const struct record *record = record_of(j, &j->packet[from], point);
		if (moved.seen >> point & 1)
			r = set_record(j, to, point, record->number, record->time_ns);
	}
	for (unsigned k = 0; k < j->options.pairs; k++) {
		if (moved.reported >> k & 1)
			*told_of(j, a, k) = *told_of(j, &j->packet[from], k);
	}
	a->reported |= moved.reported;
	a->ambiguous |= moved.ambiguous;
	a->torn |= moved.torn;
	a->last_ns = moved.last_ns > a->last_ns ? moved.last_ns : a->last_ns;
	if (a->direction == OW_DIRECTIONS || moved.reported & 1)
		a->direction = moved.direction;
	if (memcmp(&a->flow, &moved.flow, sizeof a->flow) != 0)
		a->translated = hash_flow(j, moved.reported & 1 ? &a->flow : &moved.flow);
	if (moved.reported & 1) {
		a->packets = moved.packets;
		a->bytes = moved.bytes;
		a->flow = moved.flow;
	}
	*ret_result = r;
	return true;
}

/* -- what is counted for flows ------------------------------------------------------------------------------------ */

static uint64_t flow_of(const struct ow_path_join *j, const struct packet *p)
{
	return hash_flow(j, &p->flow);
}

static bool is_partial(const struct ow_path_join *j, uint64_t flow, unsigned point)
{
	uint64_t key = ow_mix64(flow + point);
	return OW_ID_MAP_FIND(&j->partial_map, key, i, j->partial[i] == key) != OW_ID_MAP_NONE;
}

static int note_partial(struct ow_path_join *j, uint64_t flow, unsigned point)
{
	if (is_partial(j, flow, point))
		return 0;
	if (j->partials == FLOWS_MAX) {
		j->crowded = true;
		return 0;
	}
	if (OW_GROW(j->partial, j->partial_room, j->partials + 1) < 0)
		return -ENOMEM;
	j->partial[j->partials] = ow_mix64(flow + point);
	uint32_t item = (uint32_t)j->partials++;
	return ow_id_map_add(&j->partial_map, j->partial[item], item);
}

static int note_loss(struct ow_path_join *j, const struct loss *loss)
{
	uint64_t key = ow_mix64(loss->flow ^ ((uint64_t)loss->direction << 32 | (uint64_t)loss->pair << 24 |
	                                      (uint64_t)loss->from << 16 | loss->missing));
	uint32_t i = OW_ID_MAP_FIND(&j->loss_map, key, n,
	                            j->loss[n].flow == loss->flow && j->loss[n].direction == loss->direction &&
	                                    j->loss[n].pair == loss->pair && j->loss[n].from == loss->from &&
	                                    j->loss[n].missing == loss->missing);
	if (i != OW_ID_MAP_NONE) {
		j->loss[i].packets += loss->packets;
		return 0;
	}
	if (j->losses == FLOWS_MAX) {
		j->crowded = true;
		if (loss->pair == 0)
			j->result.lost_unknown[loss->direction] += loss->packets;
		return 0;
	}
	if (OW_GROW(j->loss, j->loss_room, j->losses + 1) < 0)
		return -ENOMEM;
	j->loss[j->losses] = *loss;
	uint32_t item = (uint32_t)j->losses++;
	return ow_id_map_add(&j->loss_map, key, item);
}

/* -- a packet is judged ------------------------------------------------------------------------------------------- */

/* The way of a packet: points from its first to its last are start, start + step, ..., stop. */
struct way {
	int start, step, stop;
};

static struct way way_of(const struct ow_path_join *j, unsigned direction)
{
	int last = (int)j->options.points - 1;
	assert(last >= 0 && last < (int)OW_PATH_POINTS); /* a bit for each point */
	return direction == OW_B_TO_A ? (struct way){last, -1, 0} : (struct way){0, 1, last};
}

static bool seen_at(const struct packet *p, int point)
{
	return p->seen >> point & 1;
}

/* Whether it was seen at a point beyond this one, in the direction of step. */
static bool seen_beyond(const struct ow_path_join *j, const struct packet *p, int point, int step)
{
	for (int q = point + step; q >= 0 && q < (int)j->options.points; q += step) {
		if (seen_at(p, q))
			return true;
	}
	return false;
}

/*
 * What a pair says of a packet that its first point saw: NOT_REPORTED also if there is no such pair. Points without
 * packets in common do not show each other's flows.
 */
static uint8_t told_between(const struct ow_path_join *j, const struct packet *p, int a, int b)
{
	unsigned from = (unsigned)(a < b ? a : b), to = (unsigned)(a < b ? b : a);
	for (unsigned k = 0; k < j->options.pairs; k++) {
		if (j->options.pair[k].from != from || j->options.pair[k].to != to)
			continue;
		if (j->apart >> k & 1)
			return SINGLE(OW_FATE_UNCLASSIFIED, a < b ? OW_SIDE_A : OW_SIDE_B);
		if (p->reported >> k & 1)
			return *told_of(j, p, k);
	}
	return NOT_REPORTED;
}

/*
 * The points that should have shown the packet after `from`, a bit for each. Not those that do not show its flow, or not
 * at that time, and those of which no pair tells. False if the pairs contradict each other.
 */
static bool find_missing(const struct ow_path_join *j, const struct packet *p, int from, const struct way *way,
                         uint16_t *ret_missing)
{
	enum ow_side side = way->step > 0 ? OW_SIDE_A : OW_SIDE_B;
	*ret_missing = (uint16_t)(1u << way->stop);
	for (int q = from + way->step; q != way->stop; q += way->step) {
		uint8_t told = told_between(j, p, from, q);
		bool neighbour = q == from + way->step;
		bool blind = told == SINGLE(OW_FATE_UNCLASSIFIED, side) || told == SINGLE(OW_FATE_OUTSIDE, side);
		if (told == SINGLE(OW_FATE_LOST, side))
			*ret_missing |= (uint16_t)(1u << q);
		else if (!blind && (neighbour || told != NOT_REPORTED))
			return false;
	}
	return true;
}

static int judge_lost(struct ow_path_join *j, const struct packet *p)
{
	struct way way = way_of(j, p->direction);
	int from = way.stop;
	while (!seen_at(p, from) && from != way.start)
		from -= way.step;
	uint16_t missing;
	if (p->torn || from == way.stop || !find_missing(j, p, from, &way, &missing)) {
		j->result.lost_unknown[p->direction] += p->packets;
		return 0;
	}
	return note_loss(j, &(struct loss){.flow = flow_of(j, p),
	                                   .packets = p->packets,
	                                   .direction = p->direction,
	                                   .from = (uint8_t)from,
	                                   .missing = missing});
}

/* Whether a point that did not see the packet covers its time, by the pairs that report it. */
static bool covers(const struct ow_path_join *j, const struct packet *p, int point)
{
	bool covers = false;
	for (unsigned k = 0; k < j->options.pairs; k++) {
		const struct ow_path_pair *pair = &j->options.pair[k];
		bool has = (int)pair->from == point || (int)pair->to == point;
		uint8_t told = has && p->reported >> k & 1 ? *told_of(j, p, k) : NOT_REPORTED;
		if (told == SINGLE(OW_FATE_OUTSIDE, OW_SIDE_A) || told == SINGLE(OW_FATE_OUTSIDE, OW_SIDE_B))
			return false;
		covers |= told > MATCHED;
	}
	return covers;
}

/* The pairs of the points that saw it. */
static uint64_t pairs_of(const struct ow_path_join *j, const struct packet *p)
{
	uint64_t pairs = 0;
	for (unsigned q = 0; q < j->options.points; q++)
		pairs |= seen_at(p, (int)q) ? j->pairs_of[q] : 0;
	return pairs;
}

static bool is_complete(const struct ow_path_join *j, const struct packet *p)
{
	return !(pairs_of(j, p) & ~(p->reported | j->ended));
}

/* Which copy it is, is not certain: also if a pair has reported one of its records with another packet. */
static bool is_doubtful(const struct ow_path_join *j, const struct packet *p)
{
	return p->ambiguous || p->torn || pairs_of(j, p) & ~(p->reported | j->apart);
}

/* Counts points that it passed unseen. */
static int judge_around(struct ow_path_join *j, const struct packet *p)
{
	uint64_t(*around)[OW_PATH_POINTS] = is_doubtful(j, p) ? j->doubtful : j->result.around;
	int r = 0;
	for (int q = 0; q < (int)j->options.points && r == 0; q++) {
		if (seen_at(p, q)) {
			j->result.seen[p->direction][q] += is_doubtful(j, p) ? 0 : p->packets;
		} else if (seen_beyond(j, p, q, 1) && seen_beyond(j, p, q, -1) && covers(j, p, q)) {
			around[p->direction][q] += p->packets;
			if (!is_doubtful(j, p))
				r = note_partial(j, flow_of(j, p), (unsigned)q);
			if (!is_doubtful(j, p) && r == 0 && p->translated)
				r = note_partial(j, p->translated, (unsigned)q);
		}
	}
	return r;
}

/* Whether no point before this one shows the packet, though one should: it may be missing behind it for the same reason. */
static bool comes_from_nowhere(const struct ow_path_join *j, const struct packet *p, int point, const struct way *way)
{
	enum ow_side side = way->step > 0 ? OW_SIDE_B : OW_SIDE_A;
	if (point == way->start || seen_beyond(j, p, point, -way->step))
		return false;
	for (int q = point - way->step; q >= 0 && q < (int)j->options.points; q -= way->step) {
		if (told_between(j, p, point, q) == SINGLE(OW_FATE_EXTRA, side))
			return true;
	}
	return false;
}

/* What a pair counts as lost or extra, although other points show more. */
static int judge_pair(struct ow_path_join *j, const struct packet *p, unsigned k)
{
	const struct ow_path_pair *pair = &j->options.pair[k];
	struct way way = way_of(j, p->direction);
	bool forth = way.step > 0;
	int sender = (int)(forth ? pair->from : pair->to), receiver = (int)(forth ? pair->to : pair->from);
	assert(receiver >= 0 && receiver < (int)OW_PATH_POINTS);
	enum ow_side side = forth ? OW_SIDE_A : OW_SIDE_B;
	struct ow_path_correction *correction =
		&(is_doubtful(j, p) ? j->doubtful_pair : j->result.correction)[k][p->direction];
	uint8_t told = *told_of(j, p, k);
	if (told == SINGLE(OW_FATE_EXTRA, !side) || told == SINGLE(OW_FATE_DUPLICATED, !side))
		correction->around_from += seen_beyond(j, p, sender, -way.step) ? p->packets : 0;
	if (told != SINGLE(OW_FATE_LOST, side))
		return 0;
	if (seen_beyond(j, p, receiver, way.step)) {
		correction->around_to += p->packets;
		return 0;
	}
	if (comes_from_nowhere(j, p, sender, &way)) {
		j->result.correction[k][p->direction].undecided += p->packets;
		return 0;
	}
	return note_loss(j, &(struct loss){.flow = flow_of(j, p),
	                                   .packets = p->packets,
	                                   .direction = p->direction,
	                                   .pair = (uint8_t)k,
	                                   .from = (uint8_t)sender,
	                                   .missing = (uint16_t)(1u << receiver)});
}

static enum ow_fate fate_of(const struct ow_path_join *j, const struct packet *p)
{
	uint8_t told = *told_of(j, p, 0);
	if (!(p->reported & 1))
		return OW_FATE_UNCLASSIFIED;
	return told == MATCHED ? OW_FATE_MATCHED : (enum ow_fate)((told - 2) / 2);
}

static int tell(struct ow_path_join *j, const struct packet *p)
{
	struct ow_path_packet told = {.fate = fate_of(j, p),
	                              .direction = p->direction,
	                              .ambiguous = p->ambiguous | p->torn,
	                              .seen = p->seen,
	                              .packets = p->packets,
	                              .bytes = p->bytes,
	                              .flow = &p->flow,
	                              .path = j->options.report};
	for (unsigned q = 0; q < j->options.points; q++) {
		told.number[q] = record_of(j, p, q)->number;
		told.time_ns[q] = record_of(j, p, q)->time_ns;
	}
	return j->options.on_packet(j->options.arg, &told);
}

static int judge(struct ow_path_join *j, uint32_t i)
{
	const struct packet *p = &j->packet[i];
	int r = j->options.on_packet ? tell(j, p) : 0;
	if (r == 0 && p->direction != OW_DIRECTIONS) {
		if (fate_of(j, p) == OW_FATE_LOST)
			r = judge_lost(j, p);
		if (r == 0)
			r = judge_around(j, p);
		for (unsigned k = 1; k < j->options.pairs && r == 0; k++) {
			if (*told_of(j, p, k) > MATCHED)
				r = judge_pair(j, p, k);
		}
	}
	return r < 0 ? r : drop(j, i);
}

/* -- events ------------------------------------------------------------------------------------------------------- */

/* The packets of an event, one for each side that has it; both sides have the same one if they agree. */
static int packets_of(struct ow_path_join *j, const struct ow_path_pair *pair, const struct ow_path_event *event,
                      uint32_t ret_index[OW_SIDES])
{
	const unsigned point[OW_SIDES] = {pair->from, pair->to};
	int64_t offset_ns = j->options.offset_ns[pair->from];
	int r = 0;
	for (unsigned side = 0; side < OW_SIDES; side++)
		ret_index[side] =
			event->number[side] ? find(j, point[side], event->number[side], event->part) : OW_ID_MAP_NONE;
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		uint32_t other = ret_index[!side];
		if (!event->number[side] || ret_index[side] != OW_ID_MAP_NONE)
			continue;
		bool joins = other != OW_ID_MAP_NONE && !seen_at(&j->packet[other], (int)point[side]);
		if (joins)
			ret_index[side] = other;
		else
			r = new_packet(j, event, &ret_index[side]);
		if (r == 0)
			r = set_record(j, ret_index[side], point[side], event->number[side],
			               event->time_ns[side] + offset_ns);
	}
	if (r < 0 || event->fate != OW_FATE_MATCHED || ret_index[0] == ret_index[1])
		return r;
	if (merge(j, ret_index[0], ret_index[1], &r))
		ret_index[1] = ret_index[0];
	else
		j->packet[ret_index[0]].torn = j->packet[ret_index[1]].torn = true;
	return r;
}

static void report(const struct ow_path_join *j, struct packet *p, unsigned k, const struct ow_path_event *event)
{
	p->reported |= UINT64_C(1) << k;
	*told_of(j, p, k) = event->fate == OW_FATE_MATCHED ? MATCHED : SINGLE(event->fate, event->side);
	p->ambiguous |= event->ambiguous;
	if ((k == 0 || p->direction == OW_DIRECTIONS) && event->direction < OW_DIRECTIONS &&
	    event->fate != OW_FATE_UNCLASSIFIED)
		p->direction = event->direction;
	if (memcmp(&p->flow, &event->flow, sizeof p->flow) != 0)
		p->translated = hash_flow(j, k == 0 ? &p->flow : &event->flow);
	if (k == 0) {
		p->flow = event->flow;
		p->packets = event->packets;
		p->bytes = event->bytes;
	}
}

/* Whether it may be outside the time of a capture, which pairs judge at their end. */
static bool is_near_edge(const struct ow_path_join *j, int64_t time_ns)
{
	for (unsigned i = 0; i < j->options.edges; i++) {
		int64_t edge_ns = j->options.edge_ns[i];
		if (time_ns >= edge_ns - j->options.wait_ns && time_ns <= edge_ns + j->options.wait_ns)
			return true;
	}
	return false;
}

/* Judges packets that no pair will report any more. */
static int judge_old(struct ow_path_join *j)
{
	int64_t now_ns = INT64_MAX;
	for (unsigned k = 0; k < j->options.pairs; k++) {
		if (!(j->ended >> k & 1) && j->now_ns[k] < now_ns)
			now_ns = j->now_ns[k];
	}
	if (now_ns == INT64_MAX || now_ns == INT64_MIN || now_ns - j->options.wait_ns / 4 < j->judged_ns)
		return 0;
	j->judged_ns = now_ns;
	int r = 0;
	size_t at = j->queue_first;
	for (; at < j->queued && r == 0; at++) {
		const struct packet *p = &j->packet[j->queue[at].packet];
		if (p->serial != j->queue[at].serial)
			continue;
		if (p->last_ns + j->options.wait_ns > now_ns)
			break;
		if (!is_near_edge(j, p->last_ns))
			r = judge(j, j->queue[at].packet);
	}
	j->queue_first = at;
	if (j->queue_first > j->queued / 2) {
		memmove(j->queue, j->queue + at, (j->queued - at) * sizeof *j->queue);
		j->queued -= at;
		j->queue_first = 0;
	}
	return r;
}

int ow_path_join_add(struct ow_path_join *j, unsigned k, const struct ow_path_event *event)
{
	const struct ow_path_pair *pair = &j->options.pair[k];
	uint32_t index[OW_SIDES];
	int64_t time_ns =
		event->time_ns[event->number[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B] + j->options.offset_ns[pair->from];
	int r = packets_of(j, pair, event, index);
	if (r < 0)
		return r;
	j->now_ns[k] = time_ns > j->now_ns[k] ? time_ns : j->now_ns[k];
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		if (index[side] == OW_ID_MAP_NONE || (side && index[0] == index[1]))
			continue;
		struct packet *p = &j->packet[index[side]];
		bool again = p->reported >> k & 1;
		p->last_ns = time_ns > p->last_ns ? time_ns : p->last_ns;
		p->torn |= again;
		/* Another part of the same record. */
		if (again && k == 0 && event->fate == OW_FATE_LOST && event->direction < OW_DIRECTIONS)
			j->result.lost_unknown[event->direction] += event->packets;
		if (!again)
			report(j, p, k, event);
		if (is_complete(j, p))
			r = judge(j, index[side]);
	}
	return r < 0 ? r : judge_old(j);
}

void ow_path_join_everywhere(struct ow_path_join *j, enum ow_direction direction, uint64_t packets)
{
	for (unsigned q = 0; q < j->options.points; q++)
		j->result.seen[direction][q] += packets;
}

/* Judges all that are complete now. */
static int judge_complete(struct ow_path_join *j)
{
	int r = 0;
	for (uint32_t i = 0; i < j->packets && r == 0; i++) {
		if (j->packet[i].seen && is_complete(j, &j->packet[i]))
			r = judge(j, i);
	}
	return r;
}

int ow_path_join_end(struct ow_path_join *j, unsigned pair, bool common)
{
	j->ended |= UINT64_C(1) << pair;
	j->apart |= common ? 0 : UINT64_C(1) << pair;
	return judge_complete(j);
}

/* -- the end ------------------------------------------------------------------------------------------------------ */

/* Whether the point shows all packets that pass it, but for a few that its capture drops. */
static bool shows_traffic(const struct ow_path_join *j, unsigned direction, unsigned point)
{
	uint64_t around = j->result.around[direction][point], seen = j->result.seen[direction][point];
	return (double)around <= COMPLETE_SHARE * (double)(around + seen);
}

/* The same of a flow, as far as is known. */
static bool shows_flow(const struct ow_path_join *j, unsigned direction, uint64_t flow, unsigned point)
{
	return shows_traffic(j, direction, point) || (!j->crowded && !is_partial(j, flow, point));
}

/* Identical packets pass a point unseen if others do. */
static void count_doubtful(struct ow_path_join *j)
{
	bool partial[OW_DIRECTIONS][OW_PATH_POINTS];
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		for (unsigned q = 0; q < j->options.points; q++) {
			partial[d][q] = !shows_traffic(j, d, q);
			j->result.around[d][q] += partial[d][q] ? j->doubtful[d][q] : 0;
		}
		for (unsigned k = 1; k < j->options.pairs; k++) {
			const struct ow_path_pair *pair = &j->options.pair[k];
			unsigned sender = d == OW_A_TO_B ? pair->from : pair->to,
				 receiver = d == OW_A_TO_B ? pair->to : pair->from;
			const struct ow_path_correction *more = &j->doubtful_pair[k][d];
			j->result.correction[k][d].around_to += partial[d][receiver] ? more->around_to : 0;
			j->result.correction[k][d].around_from += partial[d][sender] ? more->around_from : 0;
		}
	}
}

int ow_path_join_finish(struct ow_path_join *j, struct ow_path_join_result *ret_result)
{
	j->ended = UINT64_MAX;
	int r = judge_complete(j);
	count_doubtful(j);
	for (size_t i = 0; i < j->losses && r == 0; i++) {
		const struct loss *loss = &j->loss[i];
		struct way way = way_of(j, loss->direction);
		int to = loss->from + way.step;
		while (to != way.stop &&
		       !(loss->missing >> to & 1 && shows_flow(j, loss->direction, loss->flow, (unsigned)to)))
			to += way.step;
		if (!loss->pair)
			j->result.lost_at[loss->direction][loss->from][to] += loss->packets;
		else if (!(loss->missing >> to & 1))
			j->result.correction[loss->pair][loss->direction].undecided += loss->packets;
	}
	*ret_result = j->result;
	return r;
}
