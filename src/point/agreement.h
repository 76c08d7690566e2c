/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "exchange/message.h"

/*
 * What two points agree on before they measure, and whether this point can: decisions without sockets or clocks. The
 * point that connects proposes each lane (a class of a segment in one direction); the other one compares the proposal
 * with its own configuration.
 */

/* A lane as agreed on, from this point's view. Pointers point into the configuration and the proposal. */
struct ow_agreed {
	const struct ow_config_segment *segment;
	const char *class_name;
	const char *filter; /* NULL = all IP packets */
	bool sending;       /* the packets come from here */
};

/* The proposal for a lane of a segment that connects. The caller sets seeds and t0. */
void ow_agree_propose(const struct ow_config_segment *segment, const struct ow_config_class *class, bool sending,
                      struct ow_message_open *ret_open);

/*
 * Whether this point accepts what `peer` proposes. -EINVAL: *why has the reason, for the logs of both points. A filter
 * that the peer chooses (ret_agreed->filter is then that of `open`) is not checked: ow_agree_filter does that.
 */
int ow_agree_check(const struct ow_config *config, const char *peer, const struct ow_message_open *open,
                   struct ow_agreed *ret_agreed, struct ow_error *why);

/* The first multiple of length_ns that is at least margin_ns after both clocks. */
int64_t ow_agree_t0(int64_t here_ns, int64_t there_ns, int64_t margin_ns, int64_t length_ns);
/* t0 plus the number of whole intervals that puts it margin_ns into the future. */
int64_t ow_agree_later(int64_t t0_ns, int64_t now_ns, int64_t margin_ns, int64_t length_ns);

/*
 * Checks a filter that a peer sends: no names of hosts or networks, because libpcap would call the resolver and block
 * all peers; so few terms that compiling takes milliseconds (libpcap's time grows with the third power of them: 21 s
 * for 2 kB of port ranges); and not more instructions than a packet should cost. -EINVAL.
 */
#define OW_AGREE_FILTER_MAX 512
/* A word is one term; a number or an address is two, a range four. `and`, `or` and `not` do not count. */
#define OW_AGREE_TERMS_MAX 128
int ow_agree_filter(const char *filter, unsigned *ret_instructions, struct ow_error *err);

/*
 * The largest difference of the clocks. A packet may arrive later than it was sent by the waiting time, and earlier by
 * an interval; with more, it would be lost and another one extra. The limit is half an interval, which leaves room for
 * drift: at three quarters (OW_APART_END) a running lane ends.
 */
int64_t ow_agree_apart_max(int64_t length_ns, int64_t wait_ns);
#define OW_APART_END(length_ns) ((length_ns) / 4 * 3)
/*
 * apart_ns: the time in a message of the peer minus the time here when it was read, up to age_ns after it was written:
 * the peer's clock is ahead by this much or, by up to age_ns, more.
 */
bool ow_agree_clocks(int64_t apart_ns, int64_t age_ns, int64_t apart_max_ns);
