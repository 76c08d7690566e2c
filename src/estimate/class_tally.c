/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/class_tally.h"

#include "base/side.h"
#include "estimate/tally.h"
#include <errno.h>
#include <stdlib.h>

struct ow_class_tally {
	enum ow_class_by by;
	bool used[OW_CLASSES_MAX];
	struct ow_tally tally[OW_CLASSES_MAX][OW_DIRECTIONS]; /* of classes that are used */
};

int ow_class_tally_create(enum ow_class_by by, struct ow_class_tally **ret_tally)
{
	struct ow_class_tally *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	t->by = by;
	*ret_tally = t;
	return 0;
}

void ow_class_tally_free(struct ow_class_tally *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < OW_CLASSES_MAX; i++) {
		ow_tally_done(&t->tally[i][OW_A_TO_B]);
		ow_tally_done(&t->tally[i][OW_B_TO_A]);
	}
	free(t);
}

/* Makes a class one that is used. */
static int use(struct ow_class_tally *t, unsigned i)
{
	if (t->used[i])
		return 0;
	t->used[i] = true;
	return ow_tally_init(&t->tally[i][OW_A_TO_B]) < 0 || ow_tally_init(&t->tally[i][OW_B_TO_A]) < 0 ? -ENOMEM : 0;
}

static int add_matched(struct ow_tally *tally, const struct ow_packet_event *event)
{
	enum ow_side from = ow_sender_of(event->direction);
	int64_t sent_ns = event->time_ns[from], received_ns = event->time_ns[!from];
	/* Times from a file may be anything: wrap instead of overflowing. */
	int64_t delay_ns = (int64_t)((uint64_t)received_ns - (uint64_t)sent_ns);
	ow_tally_match(tally, OW_TALLY_UNPLACED, sent_ns, received_ns, event->packets);
	if (event->estimated)
		return ow_tally_uncertain(tally, delay_ns, event->less_ns, event->more_ns, 0, event->packets);
	if (event->ambiguous)
		tally->ambiguous += event->packets;
	else
		ow_tally_sample(tally, delay_ns, event->packets);
	return 0;
}

static int add(struct ow_tally *tally, const struct ow_packet_event *event)
{
	switch (event->fate) {
	case OW_FATE_MATCHED:
		return add_matched(tally, event);
	case OW_FATE_LOST:
		tally->lost += event->packets;
		return 0;
	case OW_FATE_DUPLICATED:
		tally->duplicated += event->packets;
		tally->extra += event->packets;
		return 0;
	case OW_FATE_EXTRA:
		tally->extra += event->packets;
		return 0;
	default:
		return 0;
	}
}

static int add_to(struct ow_class_tally *t, unsigned i, const struct ow_packet_event *event)
{
	int r = use(t, i);
	return r < 0 ? r : add(&t->tally[i][event->direction], event);
}

int ow_class_tally_add(struct ow_class_tally *t, const struct ow_packet_event *event)
{
	int r = 0;
	if (event->direction >= OW_DIRECTIONS)
		return 0;
	if (t->by != OW_CLASS_BY_FILTER)
		return event->classes < OW_CLASSES_MAX ? add_to(t, event->classes, event) : 0;
	for (unsigned bits = event->classes & ((1u << OW_MATCH_CLASSES_MAX) - 1); bits && r == 0; bits &= bits - 1)
		r = add_to(t, (unsigned)__builtin_ctz(bits), event);
	return r;
}

int ow_class_tally_get(struct ow_class_tally *t, const struct ow_match_report *report, unsigned number,
                       enum ow_direction direction, struct ow_result *ret_result, struct ow_percentile *ret_percentile)
{
	struct ow_tally *tally = &t->tally[number][direction];
	int r = use(t, number);
	if (r < 0)
		return r;
	ow_tally_flush(tally);
	r = ow_tally_result(tally, ret_result);
	ret_result->reordered = report->class_reordered[number][direction];
	for (unsigned i = 0; i < report->percentiles; i++)
		ret_percentile[i].percent = report->percentile[direction][i].percent;
	return r < 0 ? r : ow_tally_percentiles(tally, ret_percentile, report->percentiles);
}

bool ow_class_tally_used(const struct ow_class_tally *t, unsigned number)
{
	return t->used[number];
}
