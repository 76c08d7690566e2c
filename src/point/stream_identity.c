/* SPDX-License-Identifier: Apache-2.0 */
#include "point/stream_identity.h"

#include "match/plan.h"

/* Link layer and two tags, in front of the bytes that a snapshot length leaves. */
#define BEFORE_IP 22u

void ow_stream_identity_limits(const struct ow_frame_list lists[2], enum ow_tcp_rule tcp, const uint32_t snaplen[2],
                               uint32_t ret_limit[2])
{
	for (int inner = 0; inner < 2; inner++) {
		uint32_t least = UINT32_MAX;
		for (int side = 0; side < 2; side++) {
			uint32_t declared = snaplen[side] > BEFORE_IP ? snaplen[side] - BEFORE_IP : UINT32_MAX;
			least = declared < least ? declared : least;
			for (size_t i = 0; i < lists[side].count; i++) {
				struct ow_packet packet;
				if (ow_packet_decode(lists[side].frame[i], inner, &packet) != OW_DECODE_IP)
					continue;
				uint32_t bytes = ow_identity_available(&packet, tcp);
				least = bytes < least ? bytes : least;
			}
		}
		ret_limit[inner] = least < OW_PLAN_LIMIT_FLOOR ? OW_PLAN_LIMIT_FLOOR : least;
	}
}

void ow_stream_identity_set(struct ow_identity *identity, enum ow_variant variant, const uint32_t limit[2])
{
	identity->level = ow_variant_level(variant);
	identity->inner = ow_variant_inner(variant);
	identity->any_ip_id = ow_variant_any_ip_id(variant);
	identity->hash_limit = limit[identity->inner];
}

static void fill(struct ow_identity_sample *sample, const struct ow_frame_list *list,
                 const struct ow_identity *identity)
{
	for (size_t i = 0; i < list->count; i++) {
		struct ow_packet packet;
		struct ow_packet_id id;
		if (ow_packet_decode(list->frame[i], identity->inner, &packet) != OW_DECODE_IP ||
		    ow_identity_of_packet(identity, &packet, &id) < 0)
			continue;
		sample->offered++;
		ow_sample_add(sample, &(struct ow_sampled){.id = id.id});
	}
}

static int compare(const struct ow_frame_list lists[2], const struct ow_identity *identity,
                   struct ow_sample_overlap *ret_overlap)
{
	struct ow_identity_sample a = {0}, b = {0};
	int r = ow_sample_init(&a);
	if (r == 0)
		r = ow_sample_init(&b);
	if (r == 0) {
		fill(&a, &lists[0], identity);
		fill(&b, &lists[1], identity);
		r = ow_sample_overlap_find(&a, &b, false, ret_overlap);
	}
	ow_sample_done(&a);
	ow_sample_done(&b);
	return r;
}

int ow_stream_identity_choose(const struct ow_frame_list lists[2], const struct ow_identity *first, uint32_t allowed,
                              const uint32_t limit[2], struct ow_identity_decision *ret_decision)
{
	struct ow_sample_overlap common[OW_VARIANTS] = {0};
	enum ow_variant now = ow_identity_variant(first->level, first->inner, first->any_ip_id);
	allowed |= UINT32_C(1) << now;
	/* Usually the preferred one finds enough, and the others need no check. */
	for (unsigned i = 0; i <= OW_SURVEY_VARIANTS && common[now].share < OW_IDENTITY_ENOUGH; i++) {
		enum ow_variant v = i ? ow_survey_variant[i - 1] : now;
		struct ow_identity identity = *first;
		if (!(allowed >> v & 1) || (i && v == now))
			continue;
		ow_stream_identity_set(&identity, v, limit);
		int r = compare(lists, &identity, &common[v]);
		if (r < 0)
			return r;
	}
	enum ow_variant best = ow_identity_choose(common, allowed, false);
	size_t least = lists[0].count < lists[1].count ? lists[0].count : lists[1].count;
	*ret_decision = (struct ow_identity_decision){.variant = common[best].common ? best : now,
	                                              .wanted = best,
	                                              .sampled = least,
	                                              .share = common[best].share,
	                                              .share_before = common[now].share};
	return 0;
}
