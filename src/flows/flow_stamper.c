/* SPDX-License-Identifier: Apache-2.0 */
/* Converts frames to sightings of flows: flow_stamper.h. */
#include "flows/flow_stamper.h"

#include "base/bytes.h"
#include "packet/flow.h"
#include "packet/packet_filter.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM       (2 * OW_FLOW_STAMPS + OW_SEGMENTS_MAX) /* some frames, a batch, and a superframe */
#define CHUNK_BITS 12
#define CHUNKS     (OW_FLOWS_MAX >> CHUNK_BITS)
/* The flow table is emptied before it would merge flows, because here it only caches hashes. */
#define FLOWS_FULL (OW_FLOWS_MAX - OW_FLOWS_COARSE - OW_FLOW_STAMPS)
#define FILTERS    (1 + OW_FLOW_CLASSES_MAX)

/* A flow of the table. */
struct known {
	uint64_t flow;
	struct ow_flow_key key; /* the key, reduced to the recorded fields */
};

struct ow_flow_stamper {
	char *name;
	struct ow_flow_select select;
	struct ow_identity identity;
	uint64_t seed;
	uint32_t segment_bytes;
	enum ow_heading heading;
	bool has_plain;
	char *filter_text[FILTERS]; /* filter of packets, then those of classes; NULL = all */
	struct ow_packet_filter filter[FILTERS];
	bool compiled;
	uint16_t linktype; /* link type for which they are compiled */
	struct ow_flow_table *table;
	uint32_t known_flows; /* number of flows of the table that are known here */
	struct known *chunk[CHUNKS];
	struct known class[OW_FLOW_CLASSES_MAX];
	struct ow_flow_stamper_counts counts;
	struct ow_plain plain[OW_FLOW_STAMPS];
	struct ow_segments segments;
	const struct ow_frame *frame;      /* loaded frames that were not taken yet */
	const struct ow_iface_frame *live; /* the same frames, if they are live */
	size_t left;
	struct ow_frame passed[OW_FLOW_STAMPS]; /* frames that passed the filter */
	struct ow_iface_frame passed_live[OW_FLOW_STAMPS];
	size_t stamps;
	struct ow_flow_stamp stamp[ROOM];
	const struct ow_flow_key *key[ROOM];
};

static int copy_filters(struct ow_flow_stamper *stamper, const struct ow_flow_stamper_options *options)
{
	for (uint32_t i = 0; i <= stamper->select.classes; i++) {
		const char *text = i ? options->class_filter[i - 1] : options->filter;
		if (text && !(stamper->filter_text[i] = strdup(text)))
			return -ENOMEM;
	}
	return 0;
}

int ow_flow_stamper_create(const char *name, const struct ow_flow_stamper_options *options,
                           struct ow_flow_stamper **ret_stamper, struct ow_error *err)
{
	const struct ow_epoch_info *info = options->info;
	struct ow_flow_stamper *stamper = calloc(1, sizeof *stamper);
	if (!stamper)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", name);
	stamper->select = info->select;
	stamper->seed = info->params.seed;
	stamper->segment_bytes = options->segment_bytes;
	stamper->heading = options->heading;
	stamper->identity = (struct ow_identity){
		.level = info->level,
		.inner = info->inner,
		.any_ip_id = info->any_ip_id,
		.hash_limit = info->id_bytes,
	};
	ow_identity_seed(&stamper->identity, info->params.seed);
	stamper->has_plain = info->level == OW_LEVEL_IP && !info->any_ip_id && info->select.by != OW_FLOW_BY_CLASS;
	for (uint32_t i = 0; i < info->select.classes; i++) {
		ow_flow_select_class_key(i, &stamper->class[i].key);
		stamper->class[i].flow = ow_flow_hash(stamper->seed, &stamper->class[i].key);
	}
	stamper->name = strdup(name);
	if (!stamper->name || copy_filters(stamper, options) < 0 ||
	    ow_flow_table_create(stamper->seed, &stamper->table) < 0) {
		ow_flow_stamper_free(stamper);
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", name);
	}
	*ret_stamper = stamper;
	return 0;
}

static void free_filters(struct ow_flow_stamper *stamper)
{
	for (unsigned i = 0; i < FILTERS; i++)
		ow_packet_filter_done(&stamper->filter[i]);
}

void ow_flow_stamper_free(struct ow_flow_stamper *stamper)
{
	if (!stamper)
		return;
	free_filters(stamper);
	for (unsigned i = 0; i < FILTERS; i++)
		free(stamper->filter_text[i]);
	for (unsigned i = 0; i < CHUNKS; i++)
		free(stamper->chunk[i]);
	ow_flow_table_free(stamper->table);
	free(stamper->name);
	free(stamper);
}

/* Compiles the filters again if the link type changes, which is rare in a file. */
static int fit_filters(struct ow_flow_stamper *stamper, uint16_t linktype, struct ow_error *err)
{
	if (stamper->compiled && stamper->linktype == linktype)
		return 0;
	free_filters(stamper);
	for (unsigned i = 0; i < FILTERS; i++) {
		if (!stamper->filter_text[i])
			continue;
		int r = ow_packet_filter_compile(stamper->name, linktype, stamper->filter_text[i], &stamper->filter[i],
		                                 err);
		if (r < 0)
			return r;
	}
	stamper->compiled = true;
	stamper->linktype = linktype;
	return 0;
}

int ow_flow_stamper_prepare(struct ow_flow_stamper *stamper, uint16_t linktype, struct ow_error *err)
{
	return fit_filters(stamper, linktype, err);
}

static bool takes(const struct ow_packet_filter *filter, const struct ow_frame *frame)
{
	return !filter->program.bf_insns || ow_packet_filter_takes(filter, frame);
}

/* Adds the new flows of the table, in the order of their numbers. */
static int know_flows(struct ow_flow_stamper *stamper)
{
	uint32_t count = ow_flow_table_count(stamper->table);
	for (; stamper->known_flows < count; stamper->known_flows++) {
		uint32_t i = stamper->known_flows;
		struct known **chunk = &stamper->chunk[i >> CHUNK_BITS];
		if (!*chunk && !(*chunk = calloc(1u << CHUNK_BITS, sizeof **chunk)))
			return -ENOMEM;
		struct known *known = &(*chunk)[i & ((1u << CHUNK_BITS) - 1)];
		ow_flow_select_key(&stamper->select, ow_flow_table_key(stamper->table, i), &known->key);
		known->flow = ow_flow_hash(stamper->seed, &known->key);
	}
	return 0;
}

static inline const struct known *known_at(const struct ow_flow_stamper *stamper, uint32_t number)
{
	return &stamper->chunk[number >> CHUNK_BITS][number & ((1u << CHUNK_BITS) - 1)];
}

static inline void stamp(struct ow_flow_stamper *stamper, const struct known *known, uint64_t id, int64_t time_ns)
{
	stamper->stamp[stamper->stamps] = (struct ow_flow_stamp){known->flow, id, time_ns};
	stamper->key[stamper->stamps++] = &known->key;
}

/* The fast path, up to the first frame that needs the slow one. Returns the number of frames, or -ENOMEM. */
static int take_plains(struct ow_flow_stamper *stamper, const struct ow_frame *frame, size_t count)
{
	uint32_t number[OW_FLOW_STAMPS], limit = stamper->segment_bytes ? stamper->segment_bytes + 40 : UINT32_MAX;
	const struct ow_iface_frame *live = stamper->live;
	size_t plains =
		stamper->has_plain ? ow_identity_of_plains(&stamper->identity, frame, count, 0, stamper->plain) : 0;
	for (size_t i = 0; i < plains; i++) {
		const struct ow_plain *plain = &stamper->plain[i];
		if (plain->ip_len > limit || !frame[i].time_ns || (live && live[i].gso != OW_GSO_NONE))
			plains = i;
		else if (plain->proto == 6 && plain->ip_len > stamper->counts.longest_tcp)
			stamper->counts.longest_tcp = plain->ip_len;
	}
	ow_flow_table_number_plain(stamper->table, stamper->plain, plains, number);
	if (know_flows(stamper) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < plains; i++)
		stamp(stamper, known_at(stamper, number[i]), stamper->plain[i].id, frame[i].time_ns);
	stamper->counts.packets += plains;
	return (int)plains;
}

static const struct known *class_of(struct ow_flow_stamper *stamper, const struct ow_frame *frame)
{
	for (uint32_t i = 0; i < stamper->select.classes; i++) {
		if (takes(&stamper->filter[1 + i], frame))
			return &stamper->class[i];
	}
	stamper->counts.unclassed++;
	return NULL;
}

/* *ret_known: NULL if the frame belongs to no class. */
static int flow_of(struct ow_flow_stamper *stamper, const struct ow_frame *frame, const struct ow_flow_key *key,
                   const struct known **ret_known)
{
	if (stamper->select.by == OW_FLOW_BY_CLASS) {
		*ret_known = class_of(stamper, frame);
		return 0;
	}
	uint32_t number = ow_flow_table_number(stamper->table, key);
	int r = know_flows(stamper);
	if (r == 0)
		*ret_known = known_at(stamper, number);
	return r;
}

static int take_whole_frame(struct ow_flow_stamper *stamper, const struct ow_frame *frame)
{
	struct ow_packet_id id;
	struct ow_flow_key key;
	const struct known *known = NULL;
	if (ow_identity_of_frame(&stamper->identity, frame, &id) < 0) {
		stamper->counts.below_limit++;
		return 0;
	}
	ow_flow_key_of_frame(frame, &key);
	int r = flow_of(stamper, frame, &key, &known);
	if (r < 0 || !known)
		return r;
	stamp(stamper, known, id.id, frame->time_ns);
	stamper->counts.packets++;
	return 0;
}

/* Frames of files do not contain their segment size: a TCP packet with too much payload is treated as a superframe. */
static void guess_cut(const struct ow_flow_stamper *stamper, const struct ow_packet *packet,
                      struct ow_iface_frame *frame)
{
	if (!stamper->segment_bytes || frame->gso != OW_GSO_NONE || packet->proto != 6 || packet->fragment ||
	    !packet->l4 || packet->end - packet->l4 < 20 || packet->l4_len < 20)
		return;
	uint32_t header = (uint32_t)(packet->l4[12] >> 4) * 4;
	if (packet->l4_len <= header + stamper->segment_bytes)
		return;
	frame->gso = packet->version == 4 ? OW_GSO_TCP4 : OW_GSO_TCP6;
	frame->gso_size = (uint16_t)stamper->segment_bytes;
}

static int take_packet(struct ow_flow_stamper *stamper, struct ow_iface_frame *frame, const struct ow_packet *packet)
{
	struct ow_flow_key key;
	const struct known *known = NULL;
	guess_cut(stamper, packet, frame);
	int r = ow_segments_of_frame(&stamper->identity, frame, &stamper->segments);
	if (r < 0) {
		stamper->counts.below_limit++;
		return 0;
	}
	ow_flow_key_of_packet(packet, &key);
	r = flow_of(stamper, &frame->frame, &key, &known);
	if (r < 0 || !known)
		return r;
	unsigned pieces = stamper->segments.count;
	if (pieces == 1 && packet->proto == 6 && packet->ip_len > stamper->counts.longest_tcp)
		stamper->counts.longest_tcp = packet->ip_len;
	for (unsigned i = 0; i < pieces; i++)
		stamp(stamper, known, stamper->segments.id[i], frame->frame.time_ns);
	stamper->counts.packets += pieces;
	stamper->counts.pieces += pieces - 1;
	return 0;
}

/* The slow path, which works for any frame. */
static int take_frame(struct ow_flow_stamper *stamper, struct ow_iface_frame *frame)
{
	struct ow_packet packet;
	if (!frame->frame.time_ns) {
		stamper->counts.untimed++;
		return 0;
	}
	if (stamper->identity.level == OW_LEVEL_FRAME)
		return take_whole_frame(stamper, &frame->frame);
	switch (ow_packet_decode(&frame->frame, stamper->identity.inner, &packet)) {
	case OW_DECODE_IP:
		return take_packet(stamper, frame, &packet);
	case OW_DECODE_SHORT:
		stamper->counts.too_short++;
		return 0;
	default:
		stamper->counts.not_ip++;
		return 0;
	}
}

static int failed(const struct ow_flow_stamper *stamper, int r, struct ow_error *err)
{
	return ow_error_set(err, -r, "%.200s: %s", stamper->name, strerror(-r));
}

int ow_flow_stamper_load(struct ow_flow_stamper *stamper, const struct ow_frame *frames, size_t count,
                         struct ow_error *err)
{
	stamper->counts.frames += count;
	stamper->live = NULL;
	stamper->frame = frames;
	stamper->left = count;
	if (!stamper->filter_text[0])
		return 0;
	size_t passed = 0;
	for (size_t i = 0; i < count; i++) {
		int r = fit_filters(stamper, frames[i].linktype, err);
		if (r < 0)
			return r;
		if (takes(&stamper->filter[0], &frames[i]))
			stamper->passed[passed++] = frames[i];
	}
	stamper->counts.filtered += count - passed;
	stamper->frame = stamper->passed;
	stamper->left = passed;
	return 0;
}

int ow_flow_stamper_load_live(struct ow_flow_stamper *stamper, const struct ow_iface_frame *frames, size_t count,
                              struct ow_error *err)
{
	size_t passed = 0;
	stamper->counts.frames += count;
	for (size_t i = 0; i < count; i++) {
		int r = fit_filters(stamper, frames[i].frame.linktype, err);
		if (r < 0)
			return r;
		bool heads = stamper->heading == OW_HEADING_UNKNOWN || stamper->heading == frames[i].heading;
		if (!heads || !takes(&stamper->filter[0], &frames[i].frame))
			continue;
		stamper->passed_live[passed] = frames[i];
		stamper->passed[passed++] = frames[i].frame;
	}
	stamper->counts.filtered += count - passed;
	stamper->frame = stamper->passed;
	stamper->live = stamper->passed_live;
	stamper->left = passed;
	return 0;
}

/* As many frames as the fast path can take, or one with the slow path. */
static int take_some(struct ow_flow_stamper *stamper, struct ow_error *err)
{
	int taken = take_plains(stamper, stamper->frame, stamper->left), r = taken < 0 ? taken : 0;
	if (taken == 0) {
		struct ow_iface_frame frame = {.frame = *stamper->frame};
		if (stamper->live)
			frame = *stamper->live;
		taken = 1;
		r = fit_filters(stamper, frame.frame.linktype, err);
		if (r < 0)
			return r;
		r = take_frame(stamper, &frame);
	}
	if (r < 0)
		return failed(stamper, r, err);
	stamper->frame += taken;
	stamper->live = stamper->live ? stamper->live + taken : NULL;
	stamper->left -= (size_t)taken;
	return 0;
}

int ow_flow_stamper_next(struct ow_flow_stamper *stamper, struct ow_flow_stamps *ret_stamps, struct ow_error *err)
{
	stamper->stamps = 0;
	if (ow_flow_table_count(stamper->table) > FLOWS_FULL) {
		ow_flow_table_reset(stamper->table);
		stamper->known_flows = 0;
	}
	while (stamper->left && stamper->stamps < OW_FLOW_STAMPS) {
		int r = take_some(stamper, err);
		if (r < 0)
			return r;
	}
	*ret_stamps = (struct ow_flow_stamps){stamper->stamp, stamper->key, stamper->stamps};
	return 0;
}

const struct ow_flow_stamper_counts *ow_flow_stamper_counts(const struct ow_flow_stamper *stamper)
{
	return &stamper->counts;
}
