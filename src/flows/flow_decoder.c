/* SPDX-License-Identifier: Apache-2.0 */
/* Converts frames to sightings of flows: flow_decoder.h. */
#include "flows/flow_decoder.h"

#include "base/bytes.h"
#include "packet/flow.h"
#include "packet/packet_filter.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM       (2 * OW_FLOW_SIGHTINGS + OW_SEGMENTS_MAX) /* some frames, a batch, and a superframe */
#define CHUNK_BITS 12
#define CHUNKS     (OW_FLOWS_MAX >> CHUNK_BITS)
/* The flow table is emptied before it would merge flows, because here it only caches hashes. */
#define FLOWS_FULL (OW_FLOWS_MAX - OW_FLOWS_COARSE - OW_FLOW_SIGHTINGS)
#define FILTERS    (1 + OW_FLOW_CLASSES_MAX)

/* A flow of the table. */
struct known {
	uint64_t flow;
	struct ow_flow_key key; /* the key, reduced to the recorded fields */
};

struct ow_flow_decoder {
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
	struct ow_flow_decoder_counts counts;
	struct ow_plain plain[OW_FLOW_SIGHTINGS];
	struct ow_segments segments;
	const struct ow_frame *frame;      /* loaded frames that were not taken yet */
	const struct ow_iface_frame *live; /* the same frames, if they are live */
	size_t left;
	struct ow_frame passed[OW_FLOW_SIGHTINGS]; /* frames that passed the filter */
	struct ow_iface_frame passed_live[OW_FLOW_SIGHTINGS];
	size_t sightings;
	struct ow_flow_sighting sighting[ROOM];
	const struct ow_flow_key *key[ROOM];
};

static int copy_filters(struct ow_flow_decoder *decoder, const struct ow_flow_decoder_options *options)
{
	for (uint32_t i = 0; i <= decoder->select.classes; i++) {
		const char *text = i ? options->class_filter[i - 1] : options->filter;
		if (text && !(decoder->filter_text[i] = strdup(text)))
			return -ENOMEM;
	}
	return 0;
}

int ow_flow_decoder_create(const char *name, const struct ow_flow_decoder_options *options,
                           struct ow_flow_decoder **ret_decoder, struct ow_error *err)
{
	const struct ow_epoch_info *info = options->info;
	struct ow_flow_decoder *decoder = calloc(1, sizeof *decoder);
	if (!decoder)
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", name);
	decoder->select = info->select;
	decoder->seed = info->params.seed;
	decoder->segment_bytes = options->segment_bytes;
	decoder->heading = options->heading;
	decoder->identity = (struct ow_identity){
		.level = info->level,
		.inner = info->inner,
		.any_ip_id = info->any_ip_id,
		.hash_limit = info->id_bytes,
	};
	ow_identity_seed(&decoder->identity, info->params.seed);
	decoder->has_plain = info->level == OW_LEVEL_IP && !info->any_ip_id && info->select.by != OW_FLOW_BY_CLASS;
	for (uint32_t i = 0; i < info->select.classes; i++) {
		ow_flow_select_class_key(i, &decoder->class[i].key);
		decoder->class[i].flow = ow_flow_hash(decoder->seed, &decoder->class[i].key);
	}
	decoder->name = strdup(name);
	if (!decoder->name || copy_filters(decoder, options) < 0 ||
	    ow_flow_table_create(decoder->seed, &decoder->table) < 0) {
		ow_flow_decoder_free(decoder);
		return ow_error_set(err, ENOMEM, "%.200s: not enough memory", name);
	}
	*ret_decoder = decoder;
	return 0;
}

static void free_filters(struct ow_flow_decoder *decoder)
{
	for (unsigned i = 0; i < FILTERS; i++)
		ow_packet_filter_done(&decoder->filter[i]);
}

void ow_flow_decoder_free(struct ow_flow_decoder *decoder)
{
	if (!decoder)
		return;
	free_filters(decoder);
	for (unsigned i = 0; i < FILTERS; i++)
		free(decoder->filter_text[i]);
	for (unsigned i = 0; i < CHUNKS; i++)
		free(decoder->chunk[i]);
	ow_flow_table_free(decoder->table);
	free(decoder->name);
	free(decoder);
}

/* Compiles the filters again if the link type changes, which is rare in a file. */
static int fit_filters(struct ow_flow_decoder *decoder, uint16_t linktype, struct ow_error *err)
{
	if (decoder->compiled && decoder->linktype == linktype)
		return 0;
	free_filters(decoder);
	for (unsigned i = 0; i < FILTERS; i++) {
		if (!decoder->filter_text[i])
			continue;
		int r = ow_packet_filter_compile(decoder->name, linktype, decoder->filter_text[i], &decoder->filter[i],
		                                 err);
		if (r < 0)
			return r;
	}
	decoder->compiled = true;
	decoder->linktype = linktype;
	return 0;
}

int ow_flow_decoder_prepare(struct ow_flow_decoder *decoder, uint16_t linktype, struct ow_error *err)
{
	return fit_filters(decoder, linktype, err);
}

static bool takes(const struct ow_packet_filter *filter, const struct ow_frame *frame)
{
	return !filter->program.bf_insns || ow_packet_filter_takes(filter, frame);
}

/* Adds the new flows of the table, in the order of their numbers. */
static int know_flows(struct ow_flow_decoder *decoder)
{
	uint32_t count = ow_flow_table_count(decoder->table);
	for (; decoder->known_flows < count; decoder->known_flows++) {
		uint32_t i = decoder->known_flows;
		struct known **chunk = &decoder->chunk[i >> CHUNK_BITS];
		if (!*chunk && !(*chunk = calloc(1u << CHUNK_BITS, sizeof **chunk)))
			return -ENOMEM;
		struct known *known = &(*chunk)[i & ((1u << CHUNK_BITS) - 1)];
		ow_flow_select_key(&decoder->select, ow_flow_table_key(decoder->table, i), &known->key);
		known->flow = ow_flow_hash(decoder->seed, &known->key);
	}
	return 0;
}

static inline const struct known *known_at(const struct ow_flow_decoder *decoder, uint32_t number)
{
	return &decoder->chunk[number >> CHUNK_BITS][number & ((1u << CHUNK_BITS) - 1)];
}

static inline void sighting(struct ow_flow_decoder *decoder, const struct known *known, uint64_t id, int64_t time_ns)
{
	decoder->sighting[decoder->sightings] = (struct ow_flow_sighting){known->flow, id, time_ns};
	decoder->key[decoder->sightings++] = &known->key;
}

/* The fast path, up to the first frame that needs the slow one. Returns the number of frames, or -ENOMEM. */
static int take_plains(struct ow_flow_decoder *decoder, const struct ow_frame *frame, size_t count)
{
	uint32_t number[OW_FLOW_SIGHTINGS], limit = decoder->segment_bytes ? decoder->segment_bytes + 40 : UINT32_MAX;
	const struct ow_iface_frame *live = decoder->live;
	size_t plains =
		decoder->has_plain ? ow_identity_of_plains(&decoder->identity, frame, count, 0, decoder->plain) : 0;
	for (size_t i = 0; i < plains; i++) {
		const struct ow_plain *plain = &decoder->plain[i];
		if (plain->ip_len > limit || !frame[i].time_ns || (live && live[i].gso != OW_GSO_NONE))
			plains = i;
		else if (plain->proto == 6 && plain->ip_len > decoder->counts.longest_tcp)
			decoder->counts.longest_tcp = plain->ip_len;
	}
	ow_flow_table_number_plain(decoder->table, decoder->plain, plains, number);
	if (know_flows(decoder) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < plains; i++)
		sighting(decoder, known_at(decoder, number[i]), decoder->plain[i].id, frame[i].time_ns);
	decoder->counts.packets += plains;
	return (int)plains;
}

static const struct known *class_of(struct ow_flow_decoder *decoder, const struct ow_frame *frame)
{
	for (uint32_t i = 0; i < decoder->select.classes; i++) {
		if (takes(&decoder->filter[1 + i], frame))
			return &decoder->class[i];
	}
	decoder->counts.unclassed++;
	return NULL;
}

/* *ret_known: NULL if the frame belongs to no class. */
static int flow_of(struct ow_flow_decoder *decoder, const struct ow_frame *frame, const struct ow_flow_key *key,
                   const struct known **ret_known)
{
	if (decoder->select.by == OW_FLOW_BY_CLASS) {
		*ret_known = class_of(decoder, frame);
		return 0;
	}
	uint32_t number = ow_flow_table_number(decoder->table, key);
	int r = know_flows(decoder);
	if (r == 0)
		*ret_known = known_at(decoder, number);
	return r;
}

static int take_whole_frame(struct ow_flow_decoder *decoder, const struct ow_frame *frame)
{
	struct ow_packet_id id;
	struct ow_flow_key key;
	const struct known *known = NULL;
	if (ow_identity_of_frame(&decoder->identity, frame, &id) < 0) {
		decoder->counts.below_limit++;
		return 0;
	}
	ow_flow_key_of_frame(frame, &key);
	int r = flow_of(decoder, frame, &key, &known);
	if (r < 0 || !known)
		return r;
	sighting(decoder, known, id.id, frame->time_ns);
	decoder->counts.packets++;
	return 0;
}

/* Frames of files do not contain their segment size: a TCP packet with too much payload is treated as a superframe. */
static void guess_cut(const struct ow_flow_decoder *decoder, const struct ow_packet *packet,
                      struct ow_iface_frame *frame)
{
	if (!decoder->segment_bytes || frame->gso != OW_GSO_NONE || packet->proto != 6 || packet->fragment ||
	    !packet->l4 || packet->end - packet->l4 < 20 || packet->l4_len < 20)
		return;
	uint32_t header = (uint32_t)(packet->l4[12] >> 4) * 4;
	if (packet->l4_len <= header + decoder->segment_bytes)
		return;
	frame->gso = packet->version == 4 ? OW_GSO_TCP4 : OW_GSO_TCP6;
	frame->gso_size = (uint16_t)decoder->segment_bytes;
}

static int take_packet(struct ow_flow_decoder *decoder, struct ow_iface_frame *frame, const struct ow_packet *packet)
{
	struct ow_flow_key key;
	const struct known *known = NULL;
	guess_cut(decoder, packet, frame);
	int r = ow_segments_of_frame(&decoder->identity, frame, &decoder->segments);
	if (r < 0) {
		decoder->counts.below_limit++;
		return 0;
	}
	ow_flow_key_of_packet(packet, &key);
	r = flow_of(decoder, &frame->frame, &key, &known);
	if (r < 0 || !known)
		return r;
	unsigned pieces = decoder->segments.count;
	if (pieces == 1 && packet->proto == 6 && packet->ip_len > decoder->counts.longest_tcp)
		decoder->counts.longest_tcp = packet->ip_len;
	for (unsigned i = 0; i < pieces; i++)
		sighting(decoder, known, decoder->segments.id[i], frame->frame.time_ns);
	decoder->counts.packets += pieces;
	decoder->counts.pieces += pieces - 1;
	return 0;
}

/* The slow path, which works for any frame. */
static int take_frame(struct ow_flow_decoder *decoder, struct ow_iface_frame *frame)
{
	struct ow_packet packet;
	if (!frame->frame.time_ns) {
		decoder->counts.untimed++;
		return 0;
	}
	if (decoder->identity.level == OW_LEVEL_FRAME)
		return take_whole_frame(decoder, &frame->frame);
	switch (ow_packet_decode(&frame->frame, decoder->identity.inner, &packet)) {
	case OW_DECODE_IP:
		return take_packet(decoder, frame, &packet);
	case OW_DECODE_SHORT:
		decoder->counts.too_short++;
		return 0;
	default:
		decoder->counts.not_ip++;
		return 0;
	}
}

static int failed(const struct ow_flow_decoder *decoder, int r, struct ow_error *err)
{
	return ow_error_set(err, -r, "%.200s: %s", decoder->name, strerror(-r));
}

int ow_flow_decoder_load(struct ow_flow_decoder *decoder, const struct ow_frame *frames, size_t count,
                         struct ow_error *err)
{
	decoder->counts.frames += count;
	decoder->live = NULL;
	decoder->frame = frames;
	decoder->left = count;
	if (!decoder->filter_text[0])
		return 0;
	size_t passed = 0;
	for (size_t i = 0; i < count; i++) {
		int r = fit_filters(decoder, frames[i].linktype, err);
		if (r < 0)
			return r;
		if (takes(&decoder->filter[0], &frames[i]))
			decoder->passed[passed++] = frames[i];
	}
	decoder->counts.filtered += count - passed;
	decoder->frame = decoder->passed;
	decoder->left = passed;
	return 0;
}

int ow_flow_decoder_load_live(struct ow_flow_decoder *decoder, const struct ow_iface_frame *frames, size_t count,
                              struct ow_error *err)
{
	size_t passed = 0;
	decoder->counts.frames += count;
	for (size_t i = 0; i < count; i++) {
		int r = fit_filters(decoder, frames[i].frame.linktype, err);
		if (r < 0)
			return r;
		bool heads = decoder->heading == OW_HEADING_UNKNOWN || decoder->heading == frames[i].heading;
		if (!heads || !takes(&decoder->filter[0], &frames[i].frame))
			continue;
		decoder->passed_live[passed] = frames[i];
		decoder->passed[passed++] = frames[i].frame;
	}
	decoder->counts.filtered += count - passed;
	decoder->frame = decoder->passed;
	decoder->live = decoder->passed_live;
	decoder->left = passed;
	return 0;
}

/* As many frames as the fast path can take, or one with the slow path. */
static int take_some(struct ow_flow_decoder *decoder, struct ow_error *err)
{
	int taken = take_plains(decoder, decoder->frame, decoder->left), r = taken < 0 ? taken : 0;
	if (taken == 0) {
		struct ow_iface_frame frame = {.frame = *decoder->frame};
		if (decoder->live)
			frame = *decoder->live;
		taken = 1;
		r = fit_filters(decoder, frame.frame.linktype, err);
		if (r < 0)
			return r;
		r = take_frame(decoder, &frame);
	}
	if (r < 0)
		return failed(decoder, r, err);
	decoder->frame += taken;
	decoder->live = decoder->live ? decoder->live + taken : NULL;
	decoder->left -= (size_t)taken;
	return 0;
}

int ow_flow_decoder_next(struct ow_flow_decoder *decoder, struct ow_flow_sightings *ret_sightings, struct ow_error *err)
{
	decoder->sightings = 0;
	if (ow_flow_table_count(decoder->table) > FLOWS_FULL) {
		ow_flow_table_reset(decoder->table);
		decoder->known_flows = 0;
	}
	while (decoder->left && decoder->sightings < OW_FLOW_SIGHTINGS) {
		int r = take_some(decoder, err);
		if (r < 0)
			return r;
	}
	*ret_sightings = (struct ow_flow_sightings){decoder->sighting, decoder->key, decoder->sightings};
	return 0;
}

const struct ow_flow_decoder_counts *ow_flow_decoder_counts(const struct ow_flow_decoder *decoder)
{
	return &decoder->counts;
}
