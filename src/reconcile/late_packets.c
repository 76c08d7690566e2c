/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes late packets from lost ones. Waiting packets are in a table by id, identical ones in a list, so that a
 * packet costs one look-up; each open interval also has the list of what it sent, to find those that waited too long. Other
 * tables have the packets of the last intervals that nobody had sent, in case they came early.
 */
#include "reconcile/late_packets.h"

#include "base/array.h"
#include "base/id_map.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct waiting {
	uint64_t id;
	int64_t time_ns; /* absolute */
	uint64_t number; /* of its interval, counted from 1 */
	uint32_t flow;
};

/* Identical packets wait in a list, the first one sent in front. */
struct node {
	struct waiting packet;
	uint32_t next;        /* index of the next one in the list, or of the next free node, plus 1; 0 = none */
	uint32_t last, count; /* of the front node: index of the last one in the list, plus 1, and their number */
};

struct table {
	struct ow_id_map front; /* the nodes in front by their ids */
	struct node *node;
	size_t nodes, used; /* number of nodes; number with a packet */
	uint32_t free;      /* the first free node, plus 1 */
};

struct open_interval {
	struct ow_late_packets_account account;
	int64_t start_ns;
	uint64_t *id; /* of the packets that waited at its end */
	size_t ids;
};

struct ow_late_packets {
	uint32_t horizon;
	uint64_t first, next;       /* numbers of the oldest open interval and of the next one */
	struct open_interval *open; /* ring of horizon + 1, by number */
	struct ow_late_packets_account total;
	struct table sent;                                   /* wait for their arrival */
	struct table arrived[OW_LATE_PACKETS_EARLY_MAX + 1]; /* and nobody had sent them; a ring, by number */
	struct ow_late_packets_calls calls;
};

int ow_late_packets_create(uint32_t horizon, struct ow_late_packets **ret_carry)
{
	if (horizon < 1 || horizon > OW_LATE_PACKETS_HORIZON_MAX)
		return -EINVAL;
	struct ow_late_packets *late = calloc(1, sizeof *late);
	if (!late)
		return -ENOMEM;
	late->horizon = horizon;
	late->first = late->next = 1;
	late->open = calloc((size_t)horizon + 1, sizeof *late->open);
	if (!late->open) {
		free(late);
		return -ENOMEM;
	}
	*ret_carry = late;
	return 0;
}

static void table_done(struct table *table)
{
	ow_id_map_done(&table->front);
	free(table->node);
}

void ow_late_packets_free(struct ow_late_packets *late)
{
	if (!late)
		return;
	for (uint32_t i = 0; i <= late->horizon; i++)
		free(late->open[i].id);
	free(late->open);
	table_done(&late->sent);
	for (size_t i = 0; i <= OW_LATE_PACKETS_EARLY_MAX; i++)
		table_done(&late->arrived[i]);
	free(late);
}

void ow_late_packets_listen(struct ow_late_packets *late, const struct ow_late_packets_calls *calls)
{
	late->calls = *calls;
}

static struct open_interval *open_of(struct ow_late_packets *late, uint64_t number)
{
	return late->open + number % (late->horizon + 1);
}

/* The front node of the list of this id, or NULL. */
static struct node *front_of(const struct table *table, uint64_t id)
{
	uint32_t at =
		table->used ? OW_ID_MAP_FIND(&table->front, id, i, table->node[i].packet.id == id) : OW_ID_MAP_NONE;
	return at == OW_ID_MAP_NONE ? NULL : table->node + at;
}

/* Adds a packet to its list; there is room. */
static void insert(struct table *table, struct waiting packet)
{
	uint32_t index = table->free;
	struct node *node = &table->node[index - 1], *front = front_of(table, packet.id);
	table->free = node->next;
	*node = (struct node){packet, 0, index, 1};
	table->used++;
	if (!front) {
		(void)ow_id_map_add(&table->front, packet.id, index - 1);
		return;
	}
	front->count++;
	if (table->node[front->last - 1].packet.time_ns <= packet.time_ns) {
		table->node[front->last - 1].next = index;
		front->last = index;
		return;
	}
	/* Rare, because packets come in the order of time. */
	uint32_t first = (uint32_t)(front - table->node) + 1, *at = &first;
	while (table->node[*at - 1].packet.time_ns <= packet.time_ns)
		at = &table->node[*at - 1].next;
	node->next = *at;
	*at = index;
	if (first == index) {
		node->last = front->last;
		node->count = front->count;
		ow_id_map_replace(&table->front, packet.id, node->next - 1, index - 1);
	}
}

/* The nodes from `from` on become free. */
static void free_nodes(struct table *table, size_t from)
{
	for (size_t i = table->nodes; i-- > from;) {
		table->node[i].next = table->free;
		table->free = (uint32_t)i + 1;
	}
}

static int grow_nodes(struct table *table, size_t need)
{
	size_t had = table->nodes;
	if (need && OW_GROW(table->node, table->nodes, need) < 0)
		return -ENOMEM;
	free_nodes(table, had);
	return 0;
}

/* Room for `more` packets. */
static int reserve(struct table *table, size_t more)
{
	size_t need = table->used + more;
	if (need > OW_LATE_PACKETS_PENDING_MAX)
		return -ENOSPC;
	int r = ow_id_map_reserve(&table->front, table->front.used + more);
	return r < 0 ? r : grow_nodes(table, need);
}

size_t ow_late_packets_waits(const struct ow_late_packets *late, uint64_t id)
{
	const struct node *front = front_of(&late->sent, id);
	return front ? front->count : 0;
}

size_t ow_late_packets_waits_since(const struct ow_late_packets *late, uint64_t id, int64_t since_ns)
{
	const struct node *node = front_of(&late->sent, id);
	size_t waits = node ? node->count : 0;
	while (node && node->packet.time_ns < since_ns) {
		waits--;
		node = node->next ? late->sent.node + node->next - 1 : NULL;
	}
	return waits;
}

void ow_late_packets_times(const struct ow_late_packets *late, uint64_t id, int64_t *ret_sent_ns)
{
	const struct node *node = front_of(&late->sent, id);
	for (size_t i = 0; node; node = node->next ? late->sent.node + node->next - 1 : NULL)
		ret_sent_ns[i++] = node->packet.time_ns;
}

size_t ow_late_packets_waiting(const struct ow_late_packets *late)
{
	return late->sent.used;
}

/* Removes the front packet from its list, which may be empty afterwards. */
static struct waiting take(struct table *table, struct node *front)
{
	uint32_t index = (uint32_t)(front - table->node);
	struct waiting packet = front->packet;
	if (front->next) {
		struct node *next = &table->node[front->next - 1];
		next->last = front->last;
		next->count = front->count - 1;
		ow_id_map_replace(&table->front, packet.id, index, front->next - 1);
	} else {
		ow_id_map_remove(&table->front, packet.id, index);
	}
	front->next = table->free;
	table->free = index + 1;
	table->used--;
	return packet;
}

/* Removes the first packet of the list that was sent at since_ns or later, in an interval before this one; if there is
 * none, the front. */
static struct waiting take_since(struct table *table, struct node *front, int64_t since_ns, uint64_t number)
{
	struct node *before = front, *node = front;
	while (node->packet.time_ns < since_ns && node->next) {
		before = node;
		node = &table->node[node->next - 1];
	}
	if (node == front || node->packet.time_ns < since_ns || node->packet.number >= number)
		return take(table, front);
	uint32_t index = (uint32_t)(node - table->node) + 1;
	before->next = node->next;
	if (front->last == index)
		front->last = (uint32_t)(before - table->node) + 1;
	front->count--;
	node->next = table->free;
	table->free = index;
	table->used--;
	return node->packet;
}

static int64_t difference(int64_t later_ns, int64_t earlier_ns)
{
	return (int64_t)((uint64_t)later_ns - (uint64_t)earlier_ns);
}

/*
 * Removes the packets of the oldest open interval that still wait, in the order of sending. Returns the number of
 * undecided ones; the others are in left.
 */
static uint64_t take_left(struct ow_late_packets *late, struct ow_scope_packet *left, size_t *ret_lefts)
{
	struct open_interval *open = open_of(late, late->first);
	const struct ow_late_packets_calls *calls = &late->calls;
	uint64_t undecided = 0;
	for (size_t i = 0; i < open->ids; i++) {
		struct node *front = front_of(&late->sent, open->id[i]);
		if (!front || front->packet.number != late->first)
			continue;
		struct waiting packet = take(&late->sent, front);
		if (!left || (calls->undecided && calls->undecided(calls->arg, packet.time_ns)))
			undecided++;
		else
			left[(*ret_lefts)++] = (struct ow_scope_packet){
				.flow = packet.flow, .time_ns = difference(packet.time_ns, open->start_ns)};
	}
	return undecided;
}

/*
 * They are lost, or were not for the other point; if that is not known, they stay pending. Returns the number of
 * pending ones.
 */
static uint64_t judge_left(struct ow_late_packets *late, const struct ow_scope_packet *left, size_t lefts)
{
	const struct ow_late_packets_calls *calls = &late->calls;
	struct ow_late_packets_account *account = &open_of(late, late->first)->account;
	uint64_t unshared = 0;
	if (calls->judge && lefts) {
		uint8_t *fate = calloc(lefts, sizeof *fate);
		int r = fate ? calls->judge(calls->arg, left, lefts, fate) : -ENOMEM;
		for (size_t i = 0; r == 0 && i < lefts; i++)
			unshared += fate[i] == OW_SCOPE_ABSENT || fate[i] == OW_SCOPE_UNSHARED;
		free(fate);
		if (r < 0)
			return lefts;
	}
	account->pending -= lefts;
	account->lost += lefts - unshared;
	account->sent -= unshared;
	account->unshared += unshared;
	late->total.pending -= lefts;
	late->total.lost += lefts - unshared;
	late->total.sent -= unshared;
	late->total.unshared += unshared;
	return 0;
}

/* The oldest open interval can no longer change. */
static void settle(struct ow_late_packets *late, struct ow_late_packets_account *ret_settled)
{
	struct open_interval *open = open_of(late, late->first);
	struct ow_scope_packet *left = malloc((open->ids + 1) * sizeof *left);
	size_t lefts = 0;
	uint64_t undecided = take_left(late, left, &lefts);
	undecided += judge_left(late, left, lefts);
	free(left);
	assert(open->account.pending == undecided);
	if (ret_settled)
		*ret_settled = open->account;
	free(open->id);
	*open = (struct open_interval){0};
	late->first++;
}

/* A packet of one interval is in another one, which had counted it as extra. */
static void meet(struct ow_late_packets *late, struct ow_late_packets_late *found,
                 struct ow_late_packets_account *sender, struct ow_late_packets_account *receiver)
{
	sender->late++;
	sender->pending--;
	sender->late_delay_ns += (double)found->delay_ns;
	receiver->extra--;
	receiver->late_received++;
	late->total.late++;
	late->total.late_received++;
	late->total.pending--;
	late->total.extra--;
	late->total.late_delay_ns += (double)found->delay_ns;
	if (late->calls.late)
		late->calls.late(late->calls.arg, found);
}

/* A packet that only B has: late if it waits. A packet cannot be late for the interval in which it was sent. */
static bool came_late(struct ow_late_packets *late, uint64_t number, size_t place, const struct waiting *arrived,
                      bool timed, int64_t since_ns, int64_t sent_ns)
{
	struct node *front = front_of(&late->sent, arrived->id);
	if (!front || front->packet.number >= number || sent_ns == OW_LATE_PACKETS_NOBODY)
		return false;
	bool known = sent_ns > OW_LATE_PACKETS_OLDEST;
	since_ns = known ? sent_ns : timed ? INT64_MIN : since_ns;
	const struct waiting w = take_since(&late->sent, front, since_ns, number);
	front = front_of(&late->sent, arrived->id);
	struct ow_late_packets_late found = {
		.id = arrived->id,
		.age = number - w.number,
		.place = place,
		.sent_ns = w.time_ns,
		.delay_ns = timed ? difference(arrived->time_ns, w.time_ns) : 0,
		.flow = w.flow,
		.arrival_flow = arrived->flow,
		.alike = !timed || (!known && front && front->packet.time_ns <= arrived->time_ns),
		.timed = timed,
		.doubted = !timed && sent_ns != OW_LATE_PACKETS_ANY,
	};
	meet(late, &found, &open_of(late, w.number)->account, &open_of(late, number)->account);
	return true;
}

static struct table *arrived_in(struct ow_late_packets *late, uint64_t number)
{
	return &late->arrived[number % (OW_LATE_PACKETS_EARLY_MAX + 1)];
}

/* How many intervals before this one may have a packet of it. */
static uint64_t early_of(const struct ow_late_packets *late, uint64_t number, const struct ow_late_packets_interval *in)
{
	uint64_t early = in->early > OW_LATE_PACKETS_EARLY_MAX ? OW_LATE_PACKETS_EARLY_MAX : in->early ? in->early : 1;
	return early < number - late->first ? early : number - late->first;
}

/* A packet that only A has: its arrival may have been counted in an interval before. Returns true if so. */
static bool came_early(struct ow_late_packets *late, uint64_t number, const struct waiting *w,
                       const struct ow_late_packets_interval *in)
{
	/* Of identical ones the first that arrived. */
	for (uint64_t by = early_of(late, number, in); by > 0; by--) {
		struct table *arrived = arrived_in(late, number - by);
		struct node *front = front_of(arrived, w->id);
		int64_t delay = front ? difference(front->packet.time_ns, w->time_ns) : INT64_MAX;
		if (!front || delay > in->shift_ns || delay < in->shift_ns - in->early_ns)
			continue;
		struct ow_late_packets_late found = {.id = w->id,
		                                     .arrived = by,
		                                     .sent_ns = w->time_ns,
		                                     .delay_ns = delay,
		                                     .flow = w->flow,
		                                     .arrival_flow = take(arrived, front).flow,
		                                     .alike = in->repeats && in->repeats(in->repeats_arg, w->id)};
		meet(late, &found, &open_of(late, number)->account, &open_of(late, number - by)->account);
		return true;
	}
	return false;
}

static void check(const struct ow_late_packets_account *account)
{
	assert(account->sent == account->matched + account->late + account->lost + account->pending);
	assert(account->received == account->matched + account->late_received + account->extra);
}

static void check_all(struct ow_late_packets *late)
{
	for (uint64_t n = late->first; n < late->next; n++)
		check(&open_of(late, n)->account);
	check(&late->total);
}

/* The account of the interval alone. */
static void begin(struct ow_late_packets *late, const struct ow_late_packets_interval *in, uint64_t *ids)
{
	struct ow_late_packets_account mine = {
		.sent = in->sent,
		.received = in->received,
		.matched = in->sent - in->only_as,
		.pending = in->only_as,
		.extra = in->only_bs,
	};
	late->total.sent += mine.sent;
	late->total.received += mine.received;
	late->total.matched += mine.matched;
	late->total.pending += mine.pending;
	late->total.extra += mine.extra;
	*open_of(late, late->next++) = (struct open_interval){mine, in->start_ns, ids, 0};
}

static int64_t absolute(const struct ow_late_packets_interval *in, const struct ow_sighting *sighting)
{
	return (int64_t)((uint64_t)in->start_ns + (uint64_t)sighting->time_ns);
}

static void clear(struct table *table)
{
	if (!table->used)
		return;
	ow_id_map_clear(&table->front);
	table->used = table->free = 0;
	free_nodes(table, 0);
}

/* Keeps what may be early for the interval after this one. */
static void forget_arrived(struct ow_late_packets *late, uint64_t number, uint64_t early)
{
	for (uint64_t by = early; by <= OW_LATE_PACKETS_EARLY_MAX && by <= number; by++)
		clear(arrived_in(late, number - by));
}

int ow_late_packets_step(struct ow_late_packets *late, const struct ow_late_packets_interval *in,
                         struct ow_late_packets_account *ret_settled)
{
	if (in->sent < in->only_as || in->received < in->only_bs ||
	    in->sent - in->only_as != in->received - in->only_bs)
		return -EINVAL;
	uint64_t *ids = malloc((in->only_as + 1) * sizeof *ids);
	if (!ids)
		return -ENOMEM;
	uint64_t number = late->next;
	struct table *arrived = arrived_in(late, number);
	clear(arrived);
	int r = reserve(&late->sent, in->only_as);
	if (r == 0 && in->early_ns > 0)
		r = reserve(arrived, in->only_bs);
	if (r < 0) {
		free(ids);
		return r;
	}
	begin(late, in, ids);
	struct open_interval *mine = open_of(late, number);
	for (size_t i = 0; i < in->only_as; i++) {
		struct waiting waiting = {in->only_a[i].id, absolute(in, in->only_a + i), number, in->only_a[i].flow};
		if (came_early(late, number, &waiting, in))
			continue;
		insert(&late->sent, waiting);
		mine->id[mine->ids++] = waiting.id;
	}
	forget_arrived(late, number, in->early ? in->early : 1);
	for (size_t i = 0; i < in->only_bs; i++) {
		struct waiting waiting = {in->only_b[i].id, absolute(in, in->only_b + i), number, in->only_b[i].flow};
		bool timed = in->only_b[i].time_ns != OW_LATE_PACKETS_NO_TIME;
		int64_t sent_ns = in->sent_ns ? in->sent_ns[i] : OW_LATE_PACKETS_ANY;
		if (!came_late(late, number, i, &waiting, timed, in->since_ns, sent_ns) && in->early_ns > 0 && timed)
			insert(arrived, waiting);
	}
	bool settled = number - late->first == late->horizon;
	if (settled)
		settle(late, ret_settled);
	check_all(late);
	return settled;
}

int ow_late_packets_flush(struct ow_late_packets *late, struct ow_late_packets_account *ret_settled)
{
	if (late->first == late->next)
		return 0;
	for (size_t i = 0; i <= OW_LATE_PACKETS_EARLY_MAX; i++)
		clear(&late->arrived[i]);
	settle(late, ret_settled);
	return 1;
}

void ow_late_packets_totals(const struct ow_late_packets *late, struct ow_late_packets_account *ret_account)
{
	*ret_account = late->total;
}
