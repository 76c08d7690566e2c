/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/packet_order.h"

#include "base/array.h"
#include <stdlib.h>

static bool earlier(const struct ow_ordered_packet *a, const struct ow_ordered_packet *b)
{
	return a->number != b->number ? a->number < b->number : a->part < b->part;
}

void ow_packet_order_done(struct ow_packet_order *order)
{
	free(order->packet);
	*order = (struct ow_packet_order){0};
}

int ow_packet_order_add(struct ow_packet_order *o, const struct ow_ordered_packet *packet)
{
	const struct ow_ordered_packet last = {.number = o->number, .part = o->part};
	if (o->started && earlier(packet, &last))
		return -ESTALE;
	if (OW_GROW(o->packet, o->room, o->packets + 1) < 0)
		return -ENOMEM;
	size_t i = o->packets++;
	for (; i > 0 && earlier(packet, &o->packet[(i - 1) / 2]); i = (i - 1) / 2)
		o->packet[i] = o->packet[(i - 1) / 2];
	o->packet[i] = *packet;
	return 0;
}

bool ow_packet_order_take(struct ow_packet_order *o, int64_t before_ns, struct ow_ordered_packet *ret_packet)
{
	if (!o->packets || o->packet[0].time_ns >= before_ns)
		return false;
	*ret_packet = o->packet[0];
	o->number = ret_packet->number;
	o->part = ret_packet->part;
	o->started = true;
	const struct ow_ordered_packet *last = &o->packet[--o->packets];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < o->packets; i = child) {
		child += child + 1 < o->packets && earlier(&o->packet[child + 1], &o->packet[child]);
		if (!earlier(&o->packet[child], last))
			break;
		o->packet[i] = o->packet[child];
	}
	o->packet[i] = *last;
	return true;
}
