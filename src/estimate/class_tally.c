/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/class_tally.h"

#include "estimate/tally.h"
#include <errno.h>
#include <stdlib.h>

struct ow_class_tally {
	unsigned classes;
	struct ow_tally tally[OW_MATCH_CLASSES_MAX][OW_DIRECTIONS];
};

int ow_class_tally_create(unsigned classes, struct ow_class_tally **ret_tally)
{
	struct ow_class_tally *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	for (; t->classes < classes; t->classes++) {
		struct ow_tally *tally = t->tally[t->classes];
		if (ow_tally_init(&tally[OW_A_TO_B]) < 0 || ow_tally_init(&tally[OW_B_TO_A]) < 0) {
			t->classes++; /* both are zeros, or initialised */
			ow_class_tally_free(t);
			return -ENOMEM;
		}
	}
	*ret_tally = t;
	return 0;
}

void ow_class_tally_free(struct ow_class_tally *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->classes; i++) {
		ow_tally_done(&t->tally[i][OW_A_TO_B]);
		ow_tally_done(&t->tally[i][OW_B_TO_A]);
	}
	free(t);
}

static int add_matched(struct ow_tally *tally, const struct ow_packet_event *event)
{
	enum ow_side from = event->direction == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
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

int ow_class_tally_add(struct ow_class_tally *t, const struct ow_packet_event *event)
{
	int r = 0;
	for (unsigned i = 0; i < t->classes && r == 0 && event->direction < OW_DIRECTIONS; i++) {
		if (event->classes & 1u << i)
			r = add(&t->tally[i][event->direction], event);
	}
	return r;
}

int ow_class_tally_get(struct ow_class_tally *t, unsigned number, enum ow_direction direction,
                       struct ow_result *ret_result)
{
	ow_tally_flush(&t->tally[number][direction]);
	int r = ow_tally_result(&t->tally[number][direction], ret_result);
	ret_result->reordered = UINT64_MAX;
	return r;
}
