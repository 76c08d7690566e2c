/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_IFACE_IFACE_OPS_H
#define OW_CAPTURE_IFACE_IFACE_OPS_H

#include "capture/iface/iface.h"
#include <stdatomic.h>

/* Internal to src/capture: what the three kinds of live sources share. A source embeds struct ow_iface at its start. */

struct ow_iface_ops {
	const char *name;
	/* As ow_iface_read, which has dealt with an interrupt that came before. */
	int (*read)(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
	            struct ow_error *err);
	int64_t (*now_ns)(const struct ow_iface *live); /* by any thread; NULL = real time */
	void (*count)(struct ow_iface *live); /* brings live->counts.dropped up to date; NULL = nothing to do */
	void (*free)(struct ow_iface *live);  /* all but what ow_iface_done frees */
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
	bool wait;         /* for an interface that goes away */
	bool away;         /* it has gone away */
	bool outage;       /* there is one to be told, */
	int64_t outage_ns; /* from here on, */
	int64_t back_ns;   /* until here, if it is not away */
	const char *why;   /* "was down" */
};

/*
 * Frames come nearly in the order of their stamps: several cores stamp and queue them at once, and a frame that waits
 * in a queue of the kernel after its stamp was taken comes after frames that do not. Watermarks stay behind by this:
 * the most that was seen on a veth with two cores overloaded was 0.6 ms.
 */
#define OW_IFACE_SLACK_NS INT64_C(2000000)
/* Longest frame that is asked for: superframes of "BIG TCP" have up to 512 KB. */
#define OW_IFACE_SNAPLEN_MAX 600000u

int ow_iface_init(struct ow_iface *live, const struct ow_iface_ops *ops, const char *name, struct ow_error *err);
void ow_iface_done(struct ow_iface *live);

/*
 * Waits until fd (-1 = none) is readable or has an error, at most until `until_ns` of the steady clock (INT64_MAX = for
 * ever). Returns what poll says of fd (POLLIN, POLLERR), 0 when the time is over, -EINTR after an interrupt (which is
 * used up by it), or -errno.
 */
int ow_iface_wait(struct ow_iface *live, int fd, int64_t until_ns);
/* When a wait of timeout_ms (negative = for ever) from now on ends, for ow_iface_wait. */
int64_t ow_iface_deadline(int timeout_ms);
/* The watermark goes forward only, */
void ow_iface_pass(struct ow_iface *live, int64_t time_ns);
/*
 * unless the clock was set back: then it begins anew, with *latest_ns, the last stamp seen. A stamp of the kernel's
 * clock that is ahead of it shows that. now_ns: real time before the look at the frames. Whether that is so.
 */
bool ow_iface_set_back(struct ow_iface *live, int64_t now_ns, int64_t *latest_ns);
/* The interface has gone away, or still is: "was down". Frames may be missing since the time passed. */
void ow_iface_lose(struct ow_iface *live, const char *why);
/* It is back. */
void ow_iface_regain(struct ow_iface *live);
/*
 * Leaves out frames that were stamped before the clock was set back: by the clock as it is now they are of a time that
 * is still to come, and would be taken for packets of it. Counts them as dropped. Returns how many are left.
 */
int ow_iface_leave_out(struct ow_iface *live, struct ow_iface_frame *frames, int count);

int ow_iface_open_ring(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
int ow_iface_open_libpcap(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
int ow_iface_open_file(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);

#endif
