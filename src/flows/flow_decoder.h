/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "packet/segments.h"
#include "synopsis/colate.h"
#include "flows/epoch.h"

/*
 * Converts frames to the input of per-flow recording: flow, id and time, and the key of the flow. Nearly all packets
 * take the fast path of packet/identity.h, and their flows that of packet/flow.h.
 */
struct ow_flow_decoder_options {
	const struct ow_epoch_info *info; /* defines identity and flow */
	const char *filter;               /* packets to record, pcap-filter(7); NULL = all */
	/* with classes: a filter for each class; NULL = all other packets */
	const char *class_filter[OW_FLOW_CLASSES_MAX];
	enum ow_heading heading; /* only live frames of this heading; UNKNOWN = all */
	uint32_t segment_bytes;  /* TCP packets with more payload are cut into segments of it; 0 = not cut. Live
	                           frames contain their segment size. */
};

/* Counts of frames: frames = packets - pieces + the others. */
struct ow_flow_decoder_counts {
	uint64_t frames, packets;
	uint64_t pieces;    /* packets of superframes beyond the first */
	uint64_t filtered;  /* rejected by the filter */
	uint64_t unclassed; /* with classes: in no class */
	/* not IP; malformed; truncated, so that the id cannot be computed; without a time */
	uint64_t not_ip, too_short, below_limit, untimed;
	uint32_t longest_tcp; /* payload of the longest TCP packet that was not cut */
};

#define OW_FLOW_SIGHTINGS 256 /* frames at a time */

struct ow_flow_decoder;

/* name: of the source, for errors. */
int ow_flow_decoder_create(const char *name, const struct ow_flow_decoder_options *options,
                           struct ow_flow_decoder **ret_decoder, struct ow_error *err);
void ow_flow_decoder_free(struct ow_flow_decoder *decoder);
/* Compiles the filters for this link type now, instead of when its first frame comes. */
int ow_flow_decoder_prepare(struct ow_flow_decoder *decoder, uint16_t linktype, struct ow_error *err);

/*
 * Loads up to OW_FLOW_SIGHTINGS frames, which must stay in place until all are taken. Fails if a filter cannot be used
 * with the link type.
 */
int ow_flow_decoder_load(struct ow_flow_decoder *decoder, const struct ow_frame *frames, size_t count,
                         struct ow_error *err);
int ow_flow_decoder_load_live(struct ow_flow_decoder *decoder, const struct ow_iface_frame *frames, size_t count,
                              struct ow_error *err);
/* The next sightings of the loaded frames; count 0 if all are taken. Valid until the next call. -ENOMEM. */
struct ow_flow_sightings {
	const struct ow_flow_sighting *sighting;
	const struct ow_flow_key *const *key;
	size_t count;
};
int ow_flow_decoder_next(struct ow_flow_decoder *decoder, struct ow_flow_sightings *ret_sightings,
                         struct ow_error *err);
const struct ow_flow_decoder_counts *ow_flow_decoder_counts(const struct ow_flow_decoder *decoder);
