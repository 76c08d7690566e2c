/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/iface/iface.h"
#include <stdatomic.h>

/* Private to src/capture: what the kinds of live sources share. A source embeds struct ow_iface as its first
 * member. */

struct ow_iface_ops {
	const char *name;
	/* As ow_iface_read, which has already handled an earlier interrupt. */
	int (*read)(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
	            struct ow_error *err);
	int64_t (*now_ns)(const struct ow_iface *live); /* by any thread; NULL = real time */
	void (*count)(struct ow_iface *live);           /* updates live->counts.dropped; NULL = nothing to do */
	int (*cut_tcp)(struct ow_iface *live, bool cut, struct ow_error *err); /* NULL = not supported */
	void (*free)(struct ow_iface *live); /* frees all but what ow_iface_done frees */
};

struct ow_iface {
	const struct ow_iface_ops *ops;
	char *name; /* of the interface or file, for messages */
	uint16_t linktype;
	bool tells_heading; /* see ow_iface_tells_heading */
	int event_fd;       /* readable after an interrupt */
	atomic_bool interrupted;
	int64_t passed_ns; /* see ow_iface_passed_ns */
	struct ow_iface_counts counts;
	bool wait;                /* wait for an interface that goes away */
	int64_t lead_ns;          /* see ow_iface_lead_ns */
	bool away;                /* the interface is away */
	int64_t known_ns;         /* while it is away: until when it has shown nothing; INT64_MAX = now */
	bool outage;              /* there is an outage to report, */
	int64_t outage_ns;        /* which began here */
	int64_t back_ns;          /* and ended here, if the interface is not away */
	const char *why;          /* "was down" */
	char note[OW_IFACE_NOTE]; /* see ow_iface_note */
};

/*
 * Frames arrive nearly in the order of their timestamps. Several cores timestamp and queue frames at once, and a frame
 * may wait in a kernel queue after it was timestamped. Watermarks stay behind by this time. The most that was seen, on
 * a veth with two overloaded cores, was 0.6 ms.
 */
#define OW_IFACE_SLACK_NS INT64_C(2000000)
/* The longest snapshot length: superframes of "BIG TCP" have up to 512 KB. */
#define OW_IFACE_SNAPLEN_MAX 600000u

int ow_iface_init(struct ow_iface *live, const struct ow_iface_ops *ops, const char *name, struct ow_error *err);
void ow_iface_done(struct ow_iface *live);

/*
 * Waits until fd (-1 = none) is readable or has an error, at most until `until_ns` of the steady clock (INT64_MAX =
 * without limit). Returns the poll events of fd (POLLIN, POLLERR), 0 after the timeout, -EINTR after an interrupt (and
 * clears it), or -errno.
 */
int ow_iface_wait(struct ow_iface *live, int fd, int64_t until_ns);
/* The time at which a wait of timeout_ms (negative = without limit) from now on ends, for ow_iface_wait. */
int64_t ow_iface_deadline(int timeout_ms);
/* Advances the watermark; it never goes back, except by ow_iface_set_back. */
void ow_iface_pass(struct ow_iface *live, int64_t time_ns);
/*
 * Detects that the clock was set back: a timestamp of the kernel's clock is ahead of the clock. Then the watermark and
 * *latest_ns, the last timestamp seen, start again, and it returns true. now_ns: real time, read before the frames.
 */
bool ow_iface_set_back(struct ow_iface *live, int64_t now_ns, int64_t *latest_ns);
/* Records that the interface is away; why: "was down". Frames may be missing since ow_iface_passed_ns. */
void ow_iface_lose(struct ow_iface *live, const char *why);
/* Records that the interface is back. */
void ow_iface_regain(struct ow_iface *live);
/*
 * Removes frames that were timestamped before the clock was set back. By the current clock they are in the future and
 * would count as packets of that time. Counts them as dropped. Returns how many are left.
 */
int ow_iface_leave_out(struct ow_iface *live, struct ow_iface_frame *frames, int count);

int ow_iface_open_ring(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
int ow_iface_open_libpcap(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
int ow_iface_open_kernel(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
int ow_iface_open_file(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
