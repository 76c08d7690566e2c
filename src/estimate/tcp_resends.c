/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All data is in one ring, oldest first; the data of a flow is linked from the newest to the oldest. New data, nearly all of
 * it, needs no search. Sequence numbers are compared modulo 2^32 (RFC 9293, section 3.4).
 */
#include "estimate/tcp_resends.h"

#include "base/array.h"
#include "base/time.h"
#include <stdlib.h>

#define SEARCH_MOST 16384     /* data of a flow that is looked at for one packet */
#define PIECES_MOST 16        /* pieces of a packet's bytes that have not arrived */
#define FAR         (1 << 30) /* bytes: a jump this far is another connection with the same ports */
#define RING_LEAST  1024u

struct sent {
	uint64_t number;
	int64_t time_ns;
	uint64_t before; /* the data of the flow before it: its index + 1, 0 = none */
	uint32_t flow, seq, len, packets;
	uint32_t connection; /* of its flow */
	uint32_t top;        /* the highest byte of the flow before it, plus one: no older data reaches beyond it */
	uint8_t fate;
	bool resent;
};

struct flow {
	uint64_t newest;     /* index + 1 */
	uint32_t next;       /* the sequence number after the highest byte */
	uint32_t old_next;   /* the same of data that is forgotten */
	uint32_t connection; /* counted from 0 */
	bool known, has_old;
};

struct ow_tcp_resends {
	int64_t keep_ns;
	struct sent *ring;   /* by index modulo its room, a power of two */
	uint64_t first, end; /* indexes */
	size_t room;
	struct flow *flow;
	size_t flows;
};

int ow_tcp_resends_create(int64_t keep_ns, struct ow_tcp_resends **ret_resends)
{
	struct ow_tcp_resends *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->keep_ns = keep_ns;
	*ret_resends = t;
	return 0;
}

void ow_tcp_resends_free(struct ow_tcp_resends *t)
{
	if (!t)
		return;
	free(t->ring);
	free(t->flow);
	free(t);
}

static struct sent *at(const struct ow_tcp_resends *t, uint64_t index)
{
	return &t->ring[index & (t->room - 1)];
}

/* a - b, modulo 2^32 */
static int32_t ahead(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static void forget(struct ow_tcp_resends *t)
{
	const struct sent *s = at(t, t->first++);
	struct flow *f = &t->flow[s->flow];
	uint32_t next = s->seq + s->len;
	if (s->connection != f->connection)
		return;
	f->old_next = f->has_old && ahead(f->old_next, next) > 0 ? f->old_next : next;
	f->has_old = true;
	if (f->newest <= t->first)
		f->newest = 0;
}

static int make_room(struct ow_tcp_resends *t)
{
	if (t->end - t->first < t->room)
		return 0;
	size_t room = t->room ? 2 * t->room : RING_LEAST;
	struct sent *ring = malloc(room * sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = t->first; i < t->end; i++)
		ring[i & (room - 1)] = *at(t, i);
	free(t->ring);
	t->ring = ring;
	t->room = room;
	return 0;
}

static int keep(struct ow_tcp_resends *t, struct flow *f, const struct ow_tcp_packet *p)
{
	if (make_room(t) < 0)
		return -ENOMEM;
	*at(t, t->end) = (struct sent){.number = p->number,
	                               .time_ns = p->time_ns,
	                               .before = f->newest,
	                               .flow = p->flow,
	                               .seq = p->seq,
	                               .len = p->len,
	                               .packets = p->packets,
	                               .connection = f->connection,
	                               .top = f->next,
	                               .fate = (uint8_t)p->fate};
	f->newest = ++t->end;
	if (ahead(p->seq + p->len, f->next) > 0)
		f->next = p->seq + p->len;
	return 0;
}

/* Bytes of a packet of which no copy has arrived, as offsets from its first one. */
struct pieces {
	struct piece {
		uint32_t from, to;
	} piece[PIECES_MOST];
	unsigned count;
	bool overflows;
};

/* The bytes of `s` in the packet; false if there are none. */
static bool overlap(const struct sent *s, const struct ow_tcp_packet *p, struct piece *ret)
{
	int64_t from = ahead(s->seq, p->seq), to = from + s->len;
	*ret = (struct piece){(uint32_t)(from > 0 ? from : 0), (uint32_t)(to < p->len ? to : p->len)};
	return from < p->len && to > 0;
}

static void cut_out(struct pieces *p, const struct piece *out)
{
	struct pieces left = {.overflows = p->overflows};
	for (unsigned i = 0; i < p->count; i++) {
		const struct piece parts[] = {
			{p->piece[i].from, out->from < p->piece[i].to ? out->from : p->piece[i].to},
			{out->to > p->piece[i].from ? out->to : p->piece[i].from, p->piece[i].to},
		};
		for (unsigned k = 0; k < 2; k++) {
			if (parts[k].from >= parts[k].to)
				continue;
			if (left.count == PIECES_MOST)
				left.overflows = true;
			else
				left.piece[left.count++] = parts[k];
		}
	}
	*p = left;
}

static bool touches(const struct pieces *p, const struct piece *bytes)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->piece[i].from < bytes->to && bytes->from < p->piece[i].to)
			return true;
	}
	return false;
}

/* The next older data of the flow that is kept, and has bytes of the packet; NULL if there is none. */
static struct sent *older(const struct ow_tcp_resends *t, const struct ow_tcp_packet *p, uint64_t *index,
                          unsigned *steps, struct piece *ret_bytes)
{
	while (*index > t->first && *steps < SEARCH_MOST) {
		struct sent *s = at(t, *index - 1);
		*index = ahead(s->top, p->seq) > 0 ? s->before : 0;
		++*steps;
		if (overlap(s, p, ret_bytes))
			return s;
	}
	return NULL;
}

/* What a packet with data below the highest byte repeats. */
static void judge(const struct ow_tcp_resends *t, const struct flow *f, const struct ow_tcp_packet *p,
                  struct ow_tcp_verdict *ret)
{
	struct pieces missing = {.piece = {{0, p->len}}, .count = 1};
	struct piece bytes;
	uint64_t index = f->newest;
	unsigned steps = 0;
	bool unknown = false;
	for (struct sent *s; (s = older(t, p, &index, &steps, &bytes));) {
		ret->of = ret->of ? ret->of : s->number;
		if (s->fate == OW_TCP_ARRIVED)
			cut_out(&missing, &bytes);
		ret->resent += s->fate == OW_TCP_LOST && !s->resent ? s->packets : 0;
		s->resent |= s->fate == OW_TCP_LOST;
	}
	bool all = steps < SEARCH_MOST && !(f->has_old && ahead(f->old_next, p->seq) > 0);
	ret->kind = ret->of ? OW_TCP_RESENT : all ? OW_TCP_OUT_OF_ORDER : OW_TCP_FORGOTTEN;
	index = f->newest;
	steps = 0;
	for (struct sent *s; missing.count && (s = older(t, p, &index, &steps, &bytes));) {
		if (!touches(&missing, &bytes))
			continue;
		ret->repairs |= s->fate == OW_TCP_LOST;
		unknown |= s->fate == OW_TCP_UNKNOWN;
	}
	/* Bytes that are not kept may have arrived long ago; so may those whose fate is not known. */
	bool known = ret->of && all && !unknown && !missing.overflows;
	ret->needless = known && !ret->repairs;
	ret->repairs &= known;
}

/* At most a byte, right below the next one, which was not sent alone: it only asks for an answer (RFC 9293, 3.8.4). */
static bool is_keep_alive(const struct ow_tcp_resends *t, const struct flow *f, const struct ow_tcp_packet *p)
{
	if (p->len > 1 || p->syn || p->fin || p->seq != f->next - 1)
		return false;
	struct piece bytes;
	uint64_t index = f->newest;
	unsigned steps = 0;
	for (const struct sent *s; (s = older(t, p, &index, &steps, &bytes));) {
		if (s->seq == p->seq)
			return false;
	}
	return true;
}

int ow_tcp_resends_add(struct ow_tcp_resends *t, const struct ow_tcp_packet *p, struct ow_tcp_verdict *ret)
{
	*ret = (struct ow_tcp_verdict){.kind = OW_TCP_NEW};
	if (OW_GROW_ZEROED(t->flow, t->flows, (size_t)p->flow + 1) < 0)
		return -ENOMEM;
	while (t->first < t->end && ow_time_later(at(t, t->first)->time_ns, t->keep_ns) < p->time_ns)
		forget(t);
	struct flow *f = &t->flow[p->flow];
	int32_t jump = ahead(p->seq, f->next);
	/* A SYN with another number begins another connection with the same ports. */
	if (!f->known || jump > FAR || jump < -FAR || (p->syn && jump != -(int32_t)p->len && jump != 0))
		*f = (struct flow){.known = true, .next = p->seq, .connection = f->connection + 1};
	else if (jump < 0 && is_keep_alive(t, f, p)) {
		ret->kind = OW_TCP_KEEP_ALIVE;
		return 0;
	} else if (jump < 0)
		judge(t, f, p, ret);
	return keep(t, f, p);
}
