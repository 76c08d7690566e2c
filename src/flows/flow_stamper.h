/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_FLOWS_FLOW_STAMPER_H
#define OW_FLOWS_FLOW_STAMPER_H

#include "capture/iface/iface.h"
#include "packet/segments.h"
#include "synopsis/colate.h"
#include "flows/epoch.h"

/*
 * Frames become what per-flow recording takes: flow, id and time, and beside it the key of the flow. Nearly all packets
 * take the short way of packet/identity.h, and their flows that of packet/flow.h.
 */
struct ow_flow_stamper_options {
	const struct ow_epoch_info *info;              /* what identity and flow are */
	const char *filter;                            /* packets to take, pcap-filter(7); NULL = all */
	const char *class_filter[OW_FLOW_CLASSES_MAX]; /* by class: as many as it has; NULL = the rest */
	enum ow_heading heading;                       /* live frames of this heading only; UNKNOWN = whatever it is */
	uint32_t segment_bytes; /* TCP packets with more payload are cut into pieces of it; 0 = they are not. Live
	                           frames say themselves how they are cut. */
};

/* Frames, and what became of them: frames = packets - pieces + the others. */
struct ow_flow_stamper_counts {
	uint64_t frames, packets;
	uint64_t pieces;                                  /* packets beyond the first, of superframes */
	uint64_t filtered;                                /* not taken by the filter */
	uint64_t unclassed;                               /* by class: in none */
	uint64_t not_ip, too_short, below_limit, untimed; /* no IP; malformed; truncated below the id; without a time */
	uint32_t longest_tcp;                             /* payload of the longest that was not cut */
};

#define OW_FLOW_STAMPS 256 /* frames at a time */

struct ow_flow_stamper;

/* name: of the source, for errors. */
int ow_flow_stamper_create(const char *name, const struct ow_flow_stamper_options *options,
                           struct ow_flow_stamper **ret_stamper, struct ow_error *err);
void ow_flow_stamper_free(struct ow_flow_stamper *stamper);
/* Compiles the filters for this link type now, and not with the first frame of it. */
int ow_flow_stamper_prepare(struct ow_flow_stamper *stamper, uint16_t linktype, struct ow_error *err);

/* Up to OW_FLOW_STAMPS frames, which stay where they are until all are taken. Fails when a filter does not fit the link
 * type. */
int ow_flow_stamper_load(struct ow_flow_stamper *stamper, const struct ow_frame *frames, size_t count,
                         struct ow_error *err);
int ow_flow_stamper_load_live(struct ow_flow_stamper *stamper, const struct ow_iface_frame *frames, size_t count,
                              struct ow_error *err);
/* The next stamps of what was loaded; none (count 0) when all are taken. Valid until the next call. -ENOMEM. */
struct ow_flow_stamps {
	const struct ow_flow_stamp *stamp;
	const struct ow_flow_key *const *key;
	size_t count;
};
int ow_flow_stamper_next(struct ow_flow_stamper *stamper, struct ow_flow_stamps *ret_stamps, struct ow_error *err);
const struct ow_flow_stamper_counts *ow_flow_stamper_counts(const struct ow_flow_stamper *stamper);

#endif
