/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/feed.h"
#include "capture/iface/iface.h"

/*
 * A capture that is still being written, as a live source (OW_IFACE_STREAM): pipes, commands, growing files. Its times are
 * by the clock of another host. What it has not sent is not known to be empty: after the lag, the time is given up, which
 * is an outage (ow_iface_outage), and frames of that time that come later are left out.
 */
struct ow_stream_options {
	const char *name;     /* of the point, for messages and causes */
	struct ow_feed *feed; /* belongs to the stream from now on, also after an error */
	int64_t lag_ns;       /* how long to wait for what may still come */
};

int ow_stream_open(const struct ow_stream_options *options, struct ow_iface **ret_live, struct ow_error *err);

/* The captures of one point, which are read together: those of several links, or one. All have the clock of the point. */
#define OW_STREAM_PARTS 16
struct ow_streams {
	struct ow_iface *part[OW_STREAM_PARTS];
	unsigned parts;
};
void ow_streams_close(const struct ow_streams *streams);

/*
 * Before it is read: gathers what comes within timeout_ms, to look at it; reading begins with it. At most
 * OW_STREAM_GATHER frames and OW_STREAM_GATHER_BYTES. Returns how many frames there are now, or a negative errno with err.
 * An empty capture that has ended: -ENODATA.
 */
#define OW_STREAM_GATHER       65536
#define OW_STREAM_GATHER_BYTES ((size_t)64 << 20)
int ow_stream_gather(struct ow_iface *live, int timeout_ms, struct ow_error *err);
/* A frame that was gathered; ret_arrived_ns: when, by the steady clock. */
const struct ow_frame *ow_stream_gathered(const struct ow_iface *live, size_t index, int64_t *ret_arrived_ns);
/* Whether no more will come, or no more can be gathered. */
bool ow_stream_is_gathered(const struct ow_iface *live);
/* Adds this to the times of all frames. */
void ow_stream_shift(struct ow_iface *live, int64_t shift_ns);
/* The steady clock less this is the time now, by the timestamps after the shift, or earlier than it. */
void ow_stream_expect(struct ow_iface *live, int64_t base_ns);
/* The smallest number of bytes of a frame that the capture keeps, as it declares it; 0 = all. */
uint32_t ow_stream_snaplen(const struct ow_iface *live);
/* Bytes of the longest frame so far, on the wire or of the superframe that the host has shown instead. From any thread. */
uint32_t ow_streams_longest(const struct ow_streams *streams);
