/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late packets are told from lost ones. Waiting packets are in a table by id (open addressing, linear probing, deletion
 * by moving up), so that a packet costs one look; each open interval also has the list of what it sent, to find those
 * that waited too long.
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
	struct waiting *slot;
	size_t room, used; /* room is a power of two */
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
	free(carry->slot);
	free(carry);
}

static struct open_interval *open_of(struct ow_carry *carry, uint64_t number)
{
	return carry->open + number % (carry->horizon + 1);
}

static size_t home(const struct ow_carry *carry, uint64_t id)
{
	return ow_mix64(id) & (carry->room - 1);
}

static void insert(struct ow_carry *carry, struct waiting waiting)
{
	size_t at = home(carry, waiting.id);
	while (carry->slot[at].number)
		at = (at + 1) & (carry->room - 1);
	carry->slot[at] = waiting;
	carry->used++;
}

/* Room for `more` waiting packets, at most half full. */
static int reserve(struct ow_carry *carry, size_t more)
{
	size_t need = carry->used + more;
	if (need > OW_CARRY_PENDING_MAX)
		return -ENOSPC;
	if (carry->room && 2 * need <= carry->room)
		return 0;
	size_t room = carry->room ? carry->room : 64;
	while (room < 2 * need)
		room *= 2;
	struct waiting *old = carry->slot, *slot = calloc(room, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	size_t old_room = carry->room;
	carry->slot = slot;
	carry->room = room;
	carry->used = 0;
	for (size_t i = 0; i < old_room; i++) {
		if (old[i].number)
			insert(carry, old[i]);
	}
	free(old);
	return 0;
}

/* The oldest waiting packet of this id, or -1. A given interval only, unless number is 0. */
static int64_t find(const struct ow_carry *carry, uint64_t id, uint64_t number)
{
	int64_t best = -1;
	if (!carry->used)
		return best;
	for (size_t at = home(carry, id); carry->slot[at].number; at = (at + 1) & (carry->room - 1)) {
		const struct waiting *w = carry->slot + at;
		if (w->id == id && (!number || w->number == number) &&
		    (best < 0 || w->number < carry->slot[best].number))
			best = (int64_t)at;
	}
	return best;
}

/* Frees a slot; later ones of the same run move up so that no search stops early. */
static void take(struct ow_carry *carry, size_t at)
{
	size_t mask = carry->room - 1;
	for (size_t next = (at + 1) & mask; carry->slot[next].number; next = (next + 1) & mask) {
		size_t wish = home(carry, carry->slot[next].id);
		if (((next - wish) & mask) >= ((next - at) & mask)) {
			carry->slot[at] = carry->slot[next];
			at = next;
		}
	}
	carry->slot[at].number = 0;
	carry->used--;
}

/* The oldest open interval can no longer change: what still waits of it is lost. */
static void settle(struct ow_carry *carry, struct ow_carry_account *ret_settled)
{
	struct open_interval *open = open_of(carry, carry->first);
	for (size_t i = 0; i < open->ids; i++) {
		int64_t at = find(carry, open->id[i], carry->first);
		if (at < 0)
			continue;
		take(carry, (size_t)at);
		open->account.pending--;
		open->account.lost++;
		carry->total.pending--;
		carry->total.lost++;
	}
	assert(open->account.pending == 0);
	if (ret_settled)
		*ret_settled = open->account;
	free(open->id);
	*open = (struct open_interval){0};
	carry->first++;
}

/* A packet that only B has: late if it waits, else nobody sent it. */
static void arrive(struct ow_carry *carry, struct ow_carry_account *account, uint64_t id, int64_t time_ns)
{
	int64_t at = find(carry, id, 0);
	if (at < 0) {
		account->extra++;
		carry->total.extra++;
		return;
	}
	const struct waiting *w = carry->slot + at;
	struct ow_carry_account *sender = &open_of(carry, w->number)->account;
	double delay = (double)((int64_t)((uint64_t)time_ns - (uint64_t)w->time_ns));
	sender->late++;
	sender->pending--;
	sender->late_delay_ns += delay;
	account->late_received++;
	carry->total.late++;
	carry->total.late_received++;
	carry->total.pending--;
	carry->total.late_delay_ns += delay;
	take(carry, (size_t)at);
}

static void check(const struct ow_carry_account *account)
{
	assert(account->sent == account->matched + account->late + account->lost + account->pending);
	assert(account->received == account->matched + account->late_received + account->extra);
}

int ow_carry_step(struct ow_carry *carry, const struct ow_carry_interval *in, struct ow_carry_account *ret_settled)
{
	if (in->sent < in->only_as || in->received < in->only_bs ||
	    in->sent - in->only_as != in->received - in->only_bs)
		return -EINVAL;
	uint64_t *ids = malloc((in->only_as + 1) * sizeof *ids);
	if (!ids)
		return -ENOMEM;
	int r = reserve(carry, in->only_as);
	if (r < 0) {
		free(ids);
		return r;
	}
	uint64_t number = carry->next++;
	struct ow_carry_account mine = {
		.sent = in->sent, .received = in->received, .matched = in->sent - in->only_as, .pending = in->only_as};
	carry->total.sent += mine.sent;
	carry->total.received += mine.received;
	carry->total.matched += mine.matched;
	carry->total.pending += mine.pending;
	/* Arrivals first: a packet cannot be late for the interval in which it was sent. */
	for (size_t i = 0; i < in->only_bs; i++)
		arrive(carry, &mine, in->only_b[i].id,
		       (int64_t)((uint64_t)in->start_ns + (uint64_t)in->only_b[i].time_ns));
	for (size_t i = 0; i < in->only_as; i++) {
		ids[i] = in->only_a[i].id;
		insert(carry,
		       (struct waiting){ids[i], (int64_t)((uint64_t)in->start_ns + (uint64_t)in->only_a[i].time_ns),
		                        number});
	}
	*open_of(carry, number) = (struct open_interval){mine, ids, in->only_as};
	bool settled = number - carry->first == carry->horizon;
	if (settled)
		settle(carry, ret_settled);
	for (uint64_t n = carry->first; n < carry->next; n++)
		check(&open_of(carry, n)->account);
	check(&carry->total);
	return settled;
}

int ow_carry_flush(struct ow_carry *carry, struct ow_carry_account *ret_settled)
{
	if (carry->first == carry->next)
		return 0;
	settle(carry, ret_settled);
	return 1;
}

void ow_carry_totals(const struct ow_carry *carry, struct ow_carry_account *ret_account)
{
	*ret_account = carry->total;
}
