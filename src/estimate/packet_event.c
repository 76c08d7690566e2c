/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/packet_event.h"

#include "base/side.h"
const char *const ow_fate_name[OW_FATES] = {
	[OW_FATE_MATCHED] = "matched",
	[OW_FATE_LOST] = "lost",
	[OW_FATE_EXTRA] = "extra",
	[OW_FATE_DUPLICATED] = "duplicated",
	[OW_FATE_UNCLASSIFIED] = "unclassified",
	[OW_FATE_OUTSIDE] = "outside",
};
const char *const ow_direction_name[OW_DIRECTIONS] = {[OW_A_TO_B] = "a_to_b", [OW_B_TO_A] = "b_to_a"};

bool ow_event_delay(const struct ow_packet_event *event, int64_t *ret_ns)
{
	enum ow_side sender = ow_sender_of(event->direction);
	/* Timestamps from a file may have any value: wrap instead of overflow. */
	*ret_ns = (int64_t)((uint64_t)event->time_ns[!sender] - (uint64_t)event->time_ns[sender]);
	return event->fate == OW_FATE_MATCHED && (!event->ambiguous || event->estimated);
}
