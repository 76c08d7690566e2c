/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late packets are told from lost ones. Waiting packets are in a table by id (open addressing, linear probing, deletion
 * by moving up), so that a packet costs one look; each open interval also has the list of what it sent, to find those
 * that waited too long. A second table holds the last interval's packets that nobody had sent, in case they came early.
 */
#include "reconcile/carry.h"

#include "base/hash.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
	uint64_t id;
	int64_t time_ns; /* absolute */
	uint64_t number; /* of its interval, counted from 1; 0 = free slot */
};

struct table {
	struct waiting *slot;
	size_t room, used; /* room is a power of two, or 0 */
};

struct open_interval {
	struct ow_carry_account account;
	uint64_t *id; /* of the packets that waited at its end */
	size_t ids;
};

struct ow_carry {
	uint32_t horizon;
	uint64_t first, next;       /* numbers of the oldest open interval and of the one to come */
	struct open_interval *open; /* ring of horizon + 1, by number */
	struct ow_carry_account total;
	struct table sent;    /* wait for their arrival */
	struct table arrived; /* in the newest interval, and nobody had sent them */
	struct ow_carry_calls calls;
};

int ow_carry_create(uint32_t horizon, struct ow_carry **ret_carry)
{
	if (horizon < 1 || horizon > OW_CARRY_HORIZON_MAX)
		return -EINVAL;
	struct ow_carry *carry = calloc(1, sizeof *carry);
	if (!carry)
		return -ENOMEM;
	carry->horizon = horizon;
	carry->first = carry->next = 1;
	carry->open = calloc((size_t)horizon + 1, sizeof *carry->open);
	if (!carry->open) {
		free(carry);
		return -ENOMEM;
	}
	*ret_carry = carry;
	return 0;
}

void ow_carry_free(struct ow_carry *carry)
{
	if (!carry)
		return;
	for (uint32_t i = 0; i <= carry->horizon; i++)
		free(carry->open[i].id);
	free(carry->open);
	free(carry->sent.slot);
	free(carry->arrived.slot);
	free(carry);
}

void ow_carry_listen(struct ow_carry *carry, const struct ow_carry_calls *calls)
{
	carry->calls = *calls;
}

static struct open_interval *open_of(struct ow_carry *carry, uint64_t number)
{
	return carry->open + number % (carry->horizon + 1);
}

static size_t home(const struct table *table, uint64_t id)
{
	return ow_mix64(id) & (table->room - 1);
}

static void insert(struct table *table, struct waiting waiting)
{
	size_t at = home(table, waiting.id);
	while (table->slot[at].number)
		at = (at + 1) & (table->room - 1);
	table->slot[at] = waiting;
	table->used++;
}

/* Room for `more` packets, at most half full. */
static int reserve(struct table *table, size_t more)
{
	size_t need = table->used + more;
	if (need > OW_CARRY_PENDING_MAX)
		return -ENOSPC;
	if (table->room && 2 * need <= table->room)
		return 0;
	struct table larger = {.room = table->room ? table->room : 64};
	while (larger.room < 2 * need)
		larger.room *= 2;
	larger.slot = calloc(larger.room, sizeof *larger.slot);
	if (!larger.slot)
		return -ENOMEM;
	for (size_t i = 0; i < table->room; i++) {
		if (table->slot[i].number)
			insert(&larger, table->slot[i]);
	}
	free(table->slot);
	*table = larger;
	return 0;
}

/* Where the first sent of this id is, of the intervals first .. last; or -1. */
static int64_t find(const struct table *table, uint64_t id, uint64_t first, uint64_t last)
{
	int64_t best = -1;
	if (!table->used)
		return best;
	for (size_t at = home(table, id); table->slot[at].number; at = (at + 1) & (table->room - 1)) {
		const struct waiting *w = table->slot + at;
		if (w->id == id && w->number >= first && w->number <= last &&
		    (best < 0 || w->time_ns < table->slot[best].time_ns))
			best = (int64_t)at;
	}
	return best;
}

/* How many of this id were sent up to some time. */
static size_t sent_until(const struct table *table, uint64_t id, int64_t time_ns)
{
	size_t count = 0;
	if (!table->used)
		return 0;
	for (size_t at = home(table, id); table->slot[at].number; at = (at + 1) & (table->room - 1))
		count += table->slot[at].id == id && table->slot[at].time_ns <= time_ns;
	return count;
}

size_t ow_carry_waits(const struct ow_carry *carry, uint64_t id)
{
	return sent_until(&carry->sent, id, INT64_MAX);
}

size_t ow_carry_waiting(const struct ow_carry *carry)
{
	return carry->sent.used;
}

/* Frees a slot; later ones of the same run move up so that no search stops early. */
static void take(struct table *table, size_t at)
{
	size_t mask = table->room - 1;
	for (size_t next = (at + 1) & mask; table->slot[next].number; next = (next + 1) & mask) {
		size_t wish = home(table, table->slot[next].id);
		if (((next - wish) & mask) >= ((next - at) & mask)) {
			table->slot[at] = table->slot[next];
			at = next;
		}
	}
	table->slot[at].number = 0;
	table->used--;
}

/* The oldest open interval can no longer change: what still waits of it is lost, unless nobody can say. */
static void settle(struct ow_carry *carry, struct ow_carry_account *ret_settled)
{
	struct open_interval *open = open_of(carry, carry->first);
	const struct ow_carry_calls *calls = &carry->calls;
	uint64_t undecided = 0;
	for (size_t i = 0; i < open->ids; i++) {
		int64_t at = find(&carry->sent, open->id[i], carry->first, carry->first);
		if (at < 0)
			continue;
		int64_t sent_ns = carry->sent.slot[at].time_ns;
		take(&carry->sent, (size_t)at);
		if (calls->undecided && calls->undecided(calls->arg, sent_ns)) {
			undecided++;
			continue;
		}
		open->account.pending--;
		open->account.lost++;
		carry->total.pending--;
		carry->total.lost++;
	}
	assert(open->account.pending == undecided);
	if (ret_settled)
		*ret_settled = open->account;
	free(open->id);
	*open = (struct open_interval){0};
	carry->first++;
}

/* A packet of one interval is in another one, which had counted it as extra. */
static void meet(struct ow_carry *carry, struct ow_carry_late *late, struct ow_carry_account *sender,
                 struct ow_carry_account *receiver)
{
	sender->late++;
	sender->pending--;
	sender->late_delay_ns += (double)late->delay_ns;
	receiver->extra--;
	receiver->late_received++;
	carry->total.late++;
	carry->total.late_received++;
	carry->total.pending--;
	carry->total.extra--;
	carry->total.late_delay_ns += (double)late->delay_ns;
	if (carry->calls.late)
		carry->calls.late(carry->calls.arg, late);
}

static int64_t difference(int64_t later_ns, int64_t earlier_ns)
{
	return (int64_t)((uint64_t)later_ns - (uint64_t)earlier_ns);
}

/* A packet that only B has: late if it waits. A packet cannot be late for the interval in which it was sent. */
static bool came_late(struct ow_carry *carry, uint64_t number, size_t place, uint64_t id, int64_t time_ns)
{
	int64_t at = find(&carry->sent, id, 1, number - 1);
	if (at < 0)
		return false;
	const struct waiting w = carry->sent.slot[at];
	take(&carry->sent, (size_t)at);
	struct ow_carry_late late = {
		.id = id,
		.age = number - w.number,
		.place = place,
		.sent_ns = w.time_ns,
		.delay_ns = difference(time_ns, w.time_ns),
		.alike = sent_until(&carry->sent, id, time_ns) > 0,
	};
	meet(carry, &late, &open_of(carry, w.number)->account, &open_of(carry, number)->account);
	return true;
}

/* A packet that only A has: its arrival may have been counted in the interval before. True if so. */
static bool came_early(struct ow_carry *carry, uint64_t number, const struct waiting *w, int64_t early_ns)
{
	int64_t at = find(&carry->arrived, w->id, number - 1, number - 1);
	if (at < 0)
		return false;
	int64_t delay = difference(carry->arrived.slot[at].time_ns, w->time_ns);
	if (delay > 0 || delay < -early_ns)
		return false;
	take(&carry->arrived, (size_t)at);
	struct ow_carry_late late = {.id = w->id, .arrived = 1, .sent_ns = w->time_ns, .delay_ns = delay};
	meet(carry, &late, &open_of(carry, number)->account, &open_of(carry, number - 1)->account);
	return true;
}

static void check(const struct ow_carry_account *account)
{
	assert(account->sent == account->matched + account->late + account->lost + account->pending);
	assert(account->received == account->matched + account->late_received + account->extra);
}

static void check_all(struct ow_carry *carry)
{
	for (uint64_t n = carry->first; n < carry->next; n++)
		check(&open_of(carry, n)->account);
	check(&carry->total);
}

/* The interval as it is by itself. */
static void begin(struct ow_carry *carry, const struct ow_carry_interval *in, uint64_t *ids)
{
	struct ow_carry_account mine = {
		.sent = in->sent,
		.received = in->received,
		.matched = in->sent - in->only_as,
		.pending = in->only_as,
		.extra = in->only_bs,
	};
	carry->total.sent += mine.sent;
	carry->total.received += mine.received;
	carry->total.matched += mine.matched;
	carry->total.pending += mine.pending;
	carry->total.extra += mine.extra;
	*open_of(carry, carry->next++) = (struct open_interval){mine, ids, 0};
}

static int64_t absolute(const struct ow_carry_interval *in, const struct ow_stamp *stamp)
{
	return (int64_t)((uint64_t)in->start_ns + (uint64_t)stamp->time_ns);
}

static void clear(struct table *table)
{
	if (table->used)
		memset(table->slot, 0, table->room * sizeof *table->slot);
	table->used = 0;
}

int ow_carry_step(struct ow_carry *carry, const struct ow_carry_interval *in, struct ow_carry_account *ret_settled)
{
	if (in->sent < in->only_as || in->received < in->only_bs ||
	    in->sent - in->only_as != in->received - in->only_bs)
		return -EINVAL;
	uint64_t *ids = malloc((in->only_as + 1) * sizeof *ids);
	if (!ids)
		return -ENOMEM;
	int r = reserve(&carry->sent, in->only_as);
	if (r == 0 && in->early_ns > 0)
		r = reserve(&carry->arrived, in->only_bs);
	if (r < 0) {
		free(ids);
		return r;
	}
	uint64_t number = carry->next;
	begin(carry, in, ids);
	struct open_interval *mine = open_of(carry, number);
	for (size_t i = 0; i < in->only_as; i++) {
		struct waiting waiting = {in->only_a[i].id, absolute(in, in->only_a + i), number};
		if (came_early(carry, number, &waiting, in->early_ns))
			continue;
		insert(&carry->sent, waiting);
		mine->id[mine->ids++] = waiting.id;
	}
	clear(&carry->arrived);
	for (size_t i = 0; i < in->only_bs; i++) {
		struct waiting waiting = {in->only_b[i].id, absolute(in, in->only_b + i), number};
		if (!came_late(carry, number, i, waiting.id, waiting.time_ns) && in->early_ns > 0)
			insert(&carry->arrived, waiting);
	}
	bool settled = number - carry->first == carry->horizon;
	if (settled)
		settle(carry, ret_settled);
	check_all(carry);
	return settled;
}

int ow_carry_flush(struct ow_carry *carry, struct ow_carry_account *ret_settled)
{
	if (carry->first == carry->next)
		return 0;
	clear(&carry->arrived);
	settle(carry, ret_settled);
	return 1;
}

void ow_carry_totals(const struct ow_carry *carry, struct ow_carry_account *ret_account)
{
	*ret_account = carry->total;
}
