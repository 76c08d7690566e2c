/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass tells the details: packets in the order in which they were sent and arrived. */
#include "match/match_pass_private.h"

#include <stdlib.h>

/* The TCP data of a record. */
struct ow_tcp_header ow_pass_header(const struct ow_match_pass *p, enum ow_side side, const struct ow_record *record)
{
	const struct ow_tcp_headers *headers = p->input[side].headers;
	struct ow_tcp_header header = headers ? ow_tcp_headers_get(headers, record->number) : (struct ow_tcp_header){0};
	/* A part of a superframe has its own range. */
	if (header.len && record->len && !(record->part & OW_PART_NAMED)) {
		header.seq = record->seq;
		header.len = record->len;
	}
	return header;
}

/* All packets of the direction that were sent before this time have their fate. */
static int64_t decided_before(const struct ow_match_pass *p, enum ow_direction direction)
{
	int64_t now_ns = p->matcher ? p->details_ns[direction] : INT64_MIN;
	int64_t windows = p->matcher && ow_matcher_groups(p->matcher) ? OW_DETAILS_WINDOWS : 1;
	return now_ns == INT64_MIN ? now_ns
	                           : ow_time_later(now_ns, -windows * p->plan.window_ns - ow_pass_timestamp_error(p));
}

static void detail_sent(struct ow_match_pass *p, enum ow_direction direction, const struct ow_record *sent,
                        const struct ow_record *received, const struct ow_tcp_header *header,
                        struct ow_ordered_packet *packet)
{
	enum ow_side side = ow_sender_of(direction);
	int64_t latest_ns = received ? received->time_ns : ow_time_later(sent->time_ns, p->plan.window_ns);
	bool coarse = ow_flow_key_is_coarse(ow_flow_table_key(p->input[side].flows, sent->flow));
	packet->number = sent->number;
	packet->part = ow_pass_part(sent);
	packet->time_ns = sent->time_ns;
	packet->flow = coarse ? UINT32_MAX : sent->flow;
	packet->seq = header->seq;
	packet->len = header->len;
	packet->syn = header->syn;
	packet->fin = header->fin;
	/* What is decided at the end of the captures says nothing about how far the others are. */
	if ((received || !p->ended[!side]) && latest_ns > p->details_ns[direction])
		p->details_ns[direction] = latest_ns;
	ow_pass_fail(p, ow_details_tally_sent(p->details[direction], packet, received ? received->number : 0,
	                                      received ? received->time_ns : 0, decided_before(p, direction)));
}

void ow_pass_detail_pair(struct ow_match_pass *p, const struct ow_pair *pair, enum ow_direction direction,
                         enum ow_certainty certainty, int64_t delay_ns, uint32_t packets)
{
	const struct ow_record *sent = pair->record[ow_sender_of(direction)];
	struct ow_tcp_header header = ow_pass_header(p, ow_sender_of(direction), sent);
	bool uncertain = certainty == OW_UNCERTAIN;
	detail_sent(p, direction, sent, pair->record[!ow_sender_of(direction)], &header,
	            &(struct ow_ordered_packet){
			    .delay_ns = delay_ns,
			    .less_ns = uncertain ? pair->less_ns : 0,
			    .more_ns = uncertain ? pair->more_ns : 0,
			    .packets = packets,
			    .has_delay = certainty == OW_CERTAIN || uncertain,
			    .alike = certainty != OW_CERTAIN,
		    });
}

/* A packet that only its sender shows. One outside of the other capture's time only separates others. */
void ow_pass_detail_single(struct ow_match_pass *p, enum ow_side side, const struct ow_record *record,
                           enum ow_fate fate, uint8_t direction, const struct ow_tcp_header *header, uint32_t packets)
{
	if (direction >= OW_DIRECTIONS || !p->details[direction] ||
	    side != ow_sender_of((enum ow_direction)direction) || (fate != OW_FATE_LOST && fate != OW_FATE_OUTSIDE))
		return;
	detail_sent(p, (enum ow_direction)direction, record, NULL, header,
	            &(struct ow_ordered_packet){.packets = packets,
	                                        .is_lost = fate == OW_FATE_LOST,
	                                        .is_unknown = fate == OW_FATE_OUTSIDE,
	                                        .alike = record->doubtful});
}

static int by_record(const void *a, const void *b)
{
	const struct ow_edge *x = a, *y = b;
	const uint64_t key[2][3] = {{x->side, x->record.number, ow_pass_part(&x->record)},
	                            {y->side, y->record.number, ow_pass_part(&y->record)}};
	for (int i = 0; i < 3; i++) {
		if (key[0][i] != key[1][i])
			return key[0][i] < key[1][i] ? -1 : 1;
	}
	return 0;
}

/*
 * The fates of packets near the start of the other capture are decided at the end: too late to put them in order. Passes
 * with the same plan decide in the same way, so the previous one foretells them.
 */
void ow_pass_foretell(struct ow_match_pass *p, struct ow_edge *edge, uint32_t packets)
{
	if (!p->details[OW_A_TO_B] || p->ended[!edge->side] || !p->edges_before)
		return;
	const struct ow_edge *before =
		bsearch(edge, p->edge_before, p->edges_before, sizeof *p->edge_before, by_record);
	if (!before)
		return;
	edge->foretold = true;
	edge->fate = before->fate;
	edge->direction = before->direction;
	ow_pass_detail_single(p, edge->side, &edge->record, (enum ow_fate)edge->fate, edge->direction, &edge->header,
	                      packets);
}

void ow_pass_sort_edges(struct ow_match_pass *p)
{
	qsort(p->edge_before, p->edges_before, sizeof *p->edge_before, by_record);
}
