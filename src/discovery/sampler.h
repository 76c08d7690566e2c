/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include "discovery/sample_message.h"

/*
 * Samples the packets of one source in one thread: for each vantage and epoch the k packets with the smallest ids. The
 * id is that of level nat, under the fleet's key: with addresses in it, the two sides of a NAT would sample different
 * packets. Tunnels are entered. Superframes count as the packets of the wire.
 *
 * The cost of a packet is its id and a comparison; only k (1 + ln(n / k)) of n packets are kept for a while. Measured
 * (bench_sampler): 36 ns a packet, of which the id takes 30.
 */

#define OW_SAMPLER_RECORDS     512 /* usual k: 850 bytes/s for each vantage */
#define OW_SAMPLER_RECORDS_MIN 16

/*
 * The sample of one vantage and epoch while it grows. Records beyond k are cut away whenever the room is used up, so
 * that a packet costs one comparison most of the time.
 */
struct ow_bottom {
	uint64_t below; /* ids from here on cannot be in the sample */
	uint32_t k, count, room;
	uint64_t packets;
	struct ow_sample_record *record; /* room */
};

int ow_bottom_init(struct ow_bottom *bottom, uint32_t k);
void ow_bottom_done(struct ow_bottom *bottom);
void ow_bottom_reset(struct ow_bottom *bottom);
/* Makes room: puts records in order, joins copies, and cuts away what is beyond k + 1. */
void ow_bottom_tidy(struct ow_bottom *bottom);

static inline bool ow_bottom_wants(const struct ow_bottom *bottom, uint64_t id)
{
	return id < bottom->below;
}

/* Only for an id that it wants. */
static inline void ow_bottom_add(struct ow_bottom *bottom, const struct ow_sample_record *record)
{
	if (bottom->count == bottom->room) {
		ow_bottom_tidy(bottom);
		if (!ow_bottom_wants(bottom, record->id))
			return;
	}
	bottom->record[bottom->count++] = *record;
}

/* Moves the records to the sample, with packets and tau; the rest of the sample stays. -ENOMEM. */
int ow_bottom_take(struct ow_bottom *bottom, struct ow_vantage_sample *sample);
/* Adds what another thread saw in the same epoch of the same vantage. k: that of both. -ENOMEM: unchanged. */
int ow_vantage_sample_merge(struct ow_vantage_sample *sample, const struct ow_vantage_sample *more, uint32_t k);

struct ow_sampler_options {
	uint64_t key; /* of the fleet */
	uint32_t key_generation;
	uint32_t records; /* k */
	int64_t epoch_ns;
	/* Takes a sample (and sets its record to NULL) or leaves it. Its names are "", and its clock error is not
	 * known. Called in the recording thread, so it must be fast. */
	void (*on_sample)(void *arg, unsigned source, struct ow_vantage_sample *sample);
	void *arg;
};

struct ow_sampler;

/* directed: the source tells the direction of frames, so that it has two vantages. */
int ow_sampler_create(const struct ow_sampler_options *options, unsigned source, bool directed,
                      struct ow_sampler **ret_sampler, struct ow_error *err);
void ow_sampler_free(struct ow_sampler *sampler);
/* The clock that timestamps frames has this generation now: what is open is discarded, because it mixes two clocks. */
void ow_sampler_clock(struct ow_sampler *sampler, uint64_t generation);
void ow_sampler_frames(struct ow_sampler *sampler, const struct ow_iface_frame *frames, size_t count);
/* All frames before this time have been seen; INT64_MAX: all frames, and there will be no more. dropped: frames that
 * the source has missed since it was opened. */
void ow_sampler_pass(struct ow_sampler *sampler, int64_t passed_ns, uint64_t dropped);
