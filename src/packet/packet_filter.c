/* SPDX-License-Identifier: Apache-2.0 */
/* Filters for IP packets, and for frames if the filter mentions the link layer. */
#include "packet/packet_filter.h"

#include "capture/filter.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ETHERNET_HEADER 14u
#define ETHERNET_MIN    60u /* without FCS; shorter frames are padded on the way */

int ow_packet_filter_compile(const char *name, uint16_t linktype, const char *expression,
                             struct ow_packet_filter *ret_filter, struct ow_error *err)
{
	*ret_filter = (struct ow_packet_filter){.linktype = linktype};
	if (!ow_filter_names_link(expression)) {
		int r = ow_filter_compile(name, OW_LINKTYPE_RAW, UINT16_MAX, expression, &ret_filter->program, err);
		if (r != -EINVAL)
			return r;
	}
	ret_filter->frames = true;
	return ow_filter_compile(name, linktype, UINT16_MAX, expression, &ret_filter->program, err);
}

int ow_packet_filter_copy(const struct ow_packet_filter *filter, uint16_t linktype, struct ow_packet_filter *ret_filter)
{
	size_t bytes = filter->program.bf_len * sizeof *filter->program.bf_insns;
	if (filter->frames && filter->linktype != linktype)
		return -ENOTSUP;
	struct bpf_insn *insns = malloc(bytes); /* pcap_freecode() frees it */
	if (!insns)
		return -ENOMEM;
	memcpy(insns, filter->program.bf_insns, bytes);
	*ret_filter = *filter;
	ret_filter->linktype = linktype;
	ret_filter->program.bf_insns = insns;
	return 0;
}

void ow_packet_filter_done(struct ow_packet_filter *filter)
{
	if (filter->program.bf_insns)
		pcap_freecode(&filter->program);
	filter->program = (struct bpf_program){0};
}

bool ow_packet_filter_needs_payload(const struct ow_packet_filter *filter)
{
	uint32_t kept = OW_FILTER_TCP_BYTES - (filter->frames ? 0 : OW_FILTER_TCP_BEFORE);
	return filter->program.bf_insns && ow_filter_reach(&filter->program) > kept;
}

bool ow_packet_filter_sees_changes(const struct ow_packet_filter *filter)
{
	for (unsigned i = 0; i < filter->program.bf_len && !filter->frames; i++) {
		const struct bpf_insn *insn = &filter->program.bf_insns[i];
		if (BPF_CLASS(insn->code) != BPF_LD || BPF_MODE(insn->code) != BPF_ABS)
			continue;
		/* single bytes: DSCP 1, hop limit 7, TTL 8, checksum 10 and 11; addresses are loaded as words */
		bool byte = BPF_SIZE(insn->code) == BPF_B, half = BPF_SIZE(insn->code) == BPF_H;
		if ((byte && (insn->k == 1 || insn->k == 7 || insn->k == 8)) ||
		    ((byte || half) && insn->k >= 10 && insn->k < 12))
			return true;
	}
	return false;
}

bool ow_packet_filter_sees_length(const struct ow_packet_filter *filter)
{
	for (unsigned i = 0; i < filter->program.bf_len; i++) {
		const struct bpf_insn *insn = &filter->program.bf_insns[i];
		if (insn->code == (BPF_LD | BPF_W | BPF_LEN) ||
		    (insn->code == (BPF_LD | BPF_H | BPF_ABS) && insn->k == 2))
			return true;
	}
	return false;
}

const char *ow_packet_filter_caution(const char *expression)
{
	struct ow_packet_filter filter;
	const char *caution = NULL;
	if (ow_packet_filter_compile(NULL, OW_LINKTYPE_ETHERNET, expression, &filter, NULL) < 0)
		return NULL;
	if (ow_packet_filter_sees_changes(&filter))
		caution = "the filter looks at what routers change (TTL, DSCP, checksum): it may accept a packet at "
			  "one point only, which then counts as lost, extra or unshared";
	else if (ow_packet_filter_sees_length(&filter))
		caution = "the filter looks at lengths, which fragments and superframes do not share with the packets "
			  "of the wire: it may accept a packet at one point only, which then counts as lost, extra or "
			  "unshared";
	ow_packet_filter_done(&filter);
	return caution;
}

static bool takes_frame(const struct ow_packet_filter *filter, const struct ow_frame *frame)
{
	uint32_t len = frame->len;
	if (frame->linktype != filter->linktype)
		return false;
	if (frame->linktype == OW_LINKTYPE_ETHERNET && len < ETHERNET_MIN)
		len = ETHERNET_MIN;
	return bpf_filter(filter->program.bf_insns, frame->data, len, frame->caplen) != 0;
}

bool ow_packet_filter_takes_packet(const struct ow_packet_filter *filter, const struct ow_packet *packet)
{
	uint32_t captured = (uint32_t)(packet->end - packet->ip);
	return bpf_filter(filter->program.bf_insns, packet->ip, packet->ip_len + ETHERNET_HEADER, captured) != 0;
}

bool ow_packet_filter_takes(const struct ow_packet_filter *filter, const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (filter->frames)
		return takes_frame(filter, frame);
	return ow_packet_decode(frame, filter->inner, &packet) == OW_DECODE_IP &&
	       ow_packet_filter_takes_packet(filter, &packet);
}
