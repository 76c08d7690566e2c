/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output list keeps records in the order of time. A superframe that GRO is still building is at the position of its
 * last segment, and all later records wait for it. It is closed at the end of its burst, by a segment that does not
 * continue it, by its size, or after a time limit.
 */
#include "sim/side.h"
#include "base/bytes.h"
#include "base/time.h"
#include "sim/rotation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How long GRO waits for the next segment: about one poll of the network driver. */
#define GRO_HOLD_NS (50 * OW_NS_PER_US)
/* Superframes that GRO builds at the same time, as in Linux (MAX_GRO_SKBS). */
#define GRO_OPEN 8
/* With --backwards, timestamps are too early by at most this. */
#define BACKWARDS_MAX_NS (10 * OW_NS_PER_US)

struct ow_point_side {
	const struct ow_sim_options *options;
	const struct ow_sim_side *side;
	enum ow_side number;
	struct ow_wire_pool *pool;
	struct ow_account *account;
	struct ow_sim_view *view;
	struct ow_rotation *file;
	struct ow_random random;
	struct ow_wire_heap arrivals;
	struct ow_wire *first, *last; /* output list */
	struct ow_wire *open[GRO_OPEN];
	unsigned opens;
	int64_t from_ns, to_ns;       /* the capture runs from .. to */
	uint64_t sent[OW_DIRECTIONS]; /* records of packets sent here */
};

int ow_point_side_create(const struct ow_sim_options *options, enum ow_side number, int linktype, int64_t end_ns,
                         struct ow_wire_pool *pool, struct ow_account *account, struct ow_point_side **ret_side,
                         struct ow_error *err)
{
	const struct ow_sim_side *chosen = &options->side[number];
	struct ow_point_side *side = calloc(1, sizeof *side);
	if (!side || ow_view_create(options, number, &side->view) < 0) {
		free(side);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	side->options = options;
	side->side = chosen;
	side->number = number;
	side->pool = pool;
	side->account = account;
	side->from_ns = chosen->skip_ns ? options->start_ns + chosen->skip_ns : INT64_MIN;
	side->to_ns = chosen->early_ns ? end_ns - chosen->early_ns : INT64_MAX;
	ow_stream_seed(&side->random, options->seed, number == OW_SIDE_A ? OW_STREAM_STAMP_A : OW_STREAM_STAMP_B);
	struct ow_writer_options file = {
		.format = chosen->format,
		.linktype = linktype >= 0 ? (uint16_t)linktype : ow_link_linktype(chosen->link),
		.snaplen = chosen->snaplen,
		.nanoseconds = !chosen->microseconds,
		.big_endian = chosen->big_endian,
		.gzip = chosen->gzip,
		.tsoffset_s = chosen->tsoffset_s,
		.tsresol = chosen->tsresol,
		.interfaces = chosen->interfaces,
	};
	int r = ow_rotation_open(chosen->path, &file, options->rotate_ns, options->start_ns, &side->file, err);
	if (r < 0) {
		ow_point_side_free(side);
		return r;
	}
	*ret_side = side;
	return 0;
}

int ow_point_side_close(struct ow_point_side *side, struct ow_error *err)
{
	int r = ow_rotation_close(side->file, err);
	side->file = NULL;
	return r;
}

void ow_point_side_free(struct ow_point_side *side)
{
	if (!side)
		return;
	ow_rotation_abort(side->file);
	ow_wire_heap_done(&side->arrivals, side->pool);
	ow_view_free(side->view);
	free(side);
}

bool ow_point_side_covers(const struct ow_point_side *side, int64_t time_ns)
{
	return time_ns >= side->from_ns && time_ns <= side->to_ns;
}

/* By how much B's clock is ahead at a true time. */
static int64_t clock_error(const struct ow_point_side *side, int64_t time_ns)
{
	if (side->number == OW_SIDE_A)
		return 0;
	double since = (double)(time_ns - side->options->start_ns);
	return side->options->offset_ns + llrint(side->options->drift_ppb * 1e-9 * since);
}

/* The time in the capture file: clock error, step backwards, resolution. */
static int64_t stamp(struct ow_point_side *side, int64_t time_ns)
{
	if (side->side->zero_timestamps)
		return 0;
	int64_t stored = time_ns + clock_error(side, time_ns);
	if (side->options->backwards > 0 && ow_random_unit(&side->random) < side->options->backwards)
		stored -= 1 + (int64_t)ow_random_below(&side->random, BACKWARDS_MAX_NS);
	if (side->side->microseconds)
		stored -= ((stored % OW_NS_PER_US) + OW_NS_PER_US) % OW_NS_PER_US;
	return stored;
}

static int write_record(struct ow_point_side *side, const struct ow_wire *wire, bool received, int64_t stamp_ns,
                        struct ow_error *err)
{
	struct ow_frame frame = {.time_ns = stamp_ns};
	ow_view_frame(side->view, wire, received, &frame.data, &frame.caplen);
	frame.len = frame.caplen + wire->missing;
	ow_account_record(side->account, side->number, wire->more != NULL);
	return ow_rotation_write(side->file, &frame, err);
}

/* Writes a received record and reports every packet in it to the account. Frees the packets. */
static int finish_received(struct ow_point_side *side, struct ow_wire *first, struct ow_error *err)
{
	int r = 0;
	bool covered = ow_point_side_covers(side, first->time_ns);
	int64_t stored = stamp(side, first->time_ns);
	if (covered)
		r = write_record(side, first, true, stored, err);
	int64_t delay_base = side->side->zero_timestamps ? 0 : stored - clock_error(side, first->time_ns);
	ow_account_begin(side->account, first->direction);
	while (first) {
		struct ow_wire *more = first->more;
		ow_account_received(side->account, first, delay_base, covered);
		ow_wire_put(side->pool, first);
		first = more;
	}
	return r;
}

static int finish_sent(struct ow_point_side *side, struct ow_wire *first, struct ow_error *err)
{
	int64_t error_ns = side->side->zero_timestamps ? 0 : clock_error(side, first->time_ns);
	int r = write_record(side, first, false, first->stamp_ns + error_ns, err);
	while (first) {
		struct ow_wire *more = first->more;
		ow_wire_put(side->pool, first);
		first = more;
	}
	return r;
}

static void list_append(struct ow_point_side *side, struct ow_wire *wire)
{
	wire->prev = side->last;
	wire->next = NULL;
	if (side->last)
		side->last->next = wire;
	else
		side->first = wire;
	side->last = wire;
}

static void list_remove(struct ow_point_side *side, struct ow_wire *wire)
{
	if (wire->prev)
		wire->prev->next = wire->next;
	else
		side->first = wire->next;
	if (wire->next)
		wire->next->prev = wire->prev;
	else
		side->last = wire->prev;
}

static void close_open(struct ow_point_side *side, unsigned i)
{
	side->open[i]->open = false;
	side->opens--;
	for (; i < side->opens; i++)
		side->open[i] = side->open[i + 1];
}

/* Writes records from the front of the list, up to a superframe that may still grow. */
static int drain(struct ow_point_side *side, int64_t now_ns, struct ow_error *err)
{
	/* The oldest is first in open[], but may have grown since: check all. */
	for (unsigned i = side->opens; i-- > 0;) {
		if (now_ns - side->open[i]->time_ns > GRO_HOLD_NS)
			close_open(side, i);
	}
	while (side->first && !side->first->open) {
		struct ow_wire *wire = side->first;
		list_remove(side, wire);
		int r = wire->received ? finish_received(side, wire, err) : finish_sent(side, wire, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Headers that must be equal for GRO: all but length, id and checksum of IP, and sequence, flags and checksum of TCP.
 */
static bool continues(const struct ow_wire *super, const struct ow_wire *wire)
{
	const uint8_t *x = super->head + super->l4, *y = wire->head + wire->l4;
	return super->direction == wire->direction && super->header_len == wire->header_len && super->ce == wire->ce &&
	       ow_load_be32(x + 4) + super->super_len == ow_load_be32(y + 4) &&
	       ow_load_be32(x + 8) == ow_load_be32(y + 8) &&
	       memcmp(x + 20, y + 20, wire->header_len - wire->l4 - 20u) == 0;
}

static uint32_t payload_len(const struct ow_wire *wire)
{
	return ow_wire_len(wire) - wire->header_len;
}

static unsigned find_open(const struct ow_point_side *side, const struct ow_wire *wire)
{
	unsigned i = 0;
	while (i < side->opens && !(side->open[i]->flow == wire->flow && side->open[i]->direction == wire->direction))
		i++;
	return i;
}

/* Appends to an open superframe, or begins one. */
static void merge(struct ow_point_side *side, struct ow_wire *wire)
{
	unsigned i = find_open(side, wire);
	uint32_t len = payload_len(wire);
	if (i < side->opens) {
		struct ow_wire *super = side->open[i];
		if (continues(super, wire) &&
		    super->header_len + super->super_len + len <= side->options->superframe_bytes) {
			super->last->more = wire;
			super->last = wire;
			super->super_len += len;
			super->time_ns = wire->time_ns;
			list_remove(side, super);
			list_append(side, super);
			if (wire->train_end)
				close_open(side, i);
			return;
		}
		close_open(side, i);
	}
	wire->last = wire;
	wire->super_len = len;
	list_append(side, wire);
	if (wire->train_end)
		return;
	if (side->opens == GRO_OPEN)
		close_open(side, 0);
	wire->open = true;
	side->open[side->opens++] = wire;
}

static int receive(struct ow_point_side *side, struct ow_wire *wire, struct ow_error *err)
{
	wire->received = true;
	if (side->side->superframes && wire->data && !wire->copy) {
		merge(side, wire);
		return drain(side, wire->time_ns, err);
	}
	if (!side->first)
		return finish_received(side, wire, err);
	/*
	 * As in Linux, any other packet of the flow closes the superframe. This includes a second copy, which must not
	 * come before the first.
	 */
	unsigned i = find_open(side, wire);
	if (i < side->opens)
		close_open(side, i);
	list_append(side, wire);
	return drain(side, wire->time_ns, err);
}

int ow_point_side_advance(struct ow_point_side *side, int64_t now_ns, struct ow_error *err)
{
	struct ow_wire *wire;
	while ((wire = ow_wire_heap_pop(&side->arrivals, now_ns))) {
		int r = receive(side, wire, err);
		if (r < 0)
			return r;
	}
	return side->first ? drain(side, now_ns, err) : 0;
}

int ow_point_side_expect(struct ow_point_side *side, struct ow_wire *wire, struct ow_error *err)
{
	if (ow_wire_heap_push(&side->arrivals, wire) < 0)
		return ow_error_set(err, ENOMEM, "out of memory for packets on their way");
	return 0;
}

/* The record waits in the list while GRO holds back earlier ones; the packets themselves continue. */
static int queue_sent(struct ow_point_side *side, const struct ow_wire *wire, struct ow_error *err)
{
	struct ow_wire *first = ow_wire_clone(side->pool, wire), *last = first;
	while (last && last->more) {
		/*
		 * A clone points to the same next segment as its original; that segment is then replaced by a clone as
		 * well.
		 */
		last->more = ow_wire_clone(side->pool, last->more);
		last = last->more;
	}
	if (!last)
		return ow_error_set(err, ENOMEM, "out of memory");
	first->received = false;
	list_append(side, first);
	return 0;
}

int ow_point_side_send(struct ow_point_side *side, struct ow_wire *wire, struct ow_error *err)
{
	/* Without offload every segment of a burst is a record. */
	struct ow_wire *train = NULL;
	if (!side->side->superframes) {
		train = wire->more;
		wire->more = NULL;
	}
	int64_t stored = stamp(side, wire->time_ns);
	int64_t stamp_ns = stored - (side->side->zero_timestamps ? 0 : clock_error(side, wire->time_ns));
	bool covered = ow_point_side_covers(side, wire->time_ns);
	uint64_t order = ++side->sent[wire->direction];
	for (struct ow_wire *segment = wire; segment; segment = segment->more) {
		segment->stamp_ns = stamp_ns;
		segment->order = order;
		segment->sent_covered = covered;
	}
	int r = 0;
	if (covered && side->first)
		r = queue_sent(side, wire, err);
	else if (covered)
		r = write_record(side, wire, false, stored, err);
	wire->more = wire->more ? wire->more : train;
	return r;
}
