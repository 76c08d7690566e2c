/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_AGREEMENT_H
#define OW_POINT_AGREEMENT_H

#include "point/config.h"
#include "wire/message.h"

/*
 * What two points agree on before they measure, and whether this point can: pure decisions, without sockets or clocks.
 * The point that connects proposes each lane (a class of a segment in one direction); the other one holds the proposal
 * against its own configuration.
 */

/* A lane as agreed on, from this point's view. Pointers are into the configuration and the proposal. */
struct ow_agreed {
	const struct ow_config_segment *segment;
	const char *class_name;
	const char *filter; /* NULL = all IP packets */
	bool sending;       /* the packets come from here */
};

/* The proposal for a lane of a segment that connects. Seeds and t0 are the caller's. */
void ow_agree_propose(const struct ow_config_segment *segment, const struct ow_config_class *class, bool sending,
                      struct ow_message_open *ret_open);

/* Whether this point can do what `peer` proposes. -EINVAL: *why says why not, for the logs of both points. A filter
 * that the peer chooses (ret_agreed->filter is then that of `open`) is not looked at: ow_agree_filter. */
int ow_agree_check(const struct ow_config *config, const char *peer, const struct ow_message_open *open,
                   struct ow_agreed *ret_agreed, struct ow_error *why);

/* The first multiple of length_ns that is at least margin_ns after both clocks. */
int64_t ow_agree_t0(int64_t here_ns, int64_t there_ns, int64_t margin_ns, int64_t length_ns);
/* t0 plus as many whole intervals as it takes to be margin_ns in the future. */
int64_t ow_agree_later(int64_t t0_ns, int64_t now_ns, int64_t margin_ns, int64_t length_ns);

/*
 * A filter that a peer sends: no names of hosts or networks, which libpcap would ask the resolver for while everybody
 * waits; so few terms that compiling takes milliseconds (libpcap takes time with the third power of them: 21 s for 2 kB
 * of port ranges); and not more instructions than a packet should cost. -EINVAL.
 */
#define OW_AGREE_FILTER_MAX 512
/* A word is one term; a number or an address is two, a range four. `and`, `or` and `not` are none. */
#define OW_AGREE_TERMS_MAX 128
int ow_agree_filter(const char *filter, unsigned *ret_instructions, struct ow_error *err);

/*
 * How far clocks may be apart. A packet may arrive later than it was sent by the waiting time, and earlier by an
 * interval; beyond, it would be lost and another one extra. Half an interval, so that there is room for clocks that
 * drift: at three quarters (OW_APART_END) a lane that is there comes to its end.
 */
int64_t ow_agree_apart_max(int64_t length_ns, int64_t wait_ns);
#define OW_APART_END(length_ns) ((length_ns) / 4 * 3)
/* apart_ns: the time in a message of the peer less the time here when it was read, up to age_ns after it was written:
 * its clock is ahead by so much or, by up to age_ns, more. */
bool ow_agree_clocks(int64_t apart_ns, int64_t age_ns, int64_t apart_max_ns);

/*
 * The memory budget. A lane keeps the pages that wait for the peer: those of OW_RETAIN_NS, and as many more as the two
 * clocks are apart, however large they are; and more than that as long as they fit into the lane's part of the budget.
 * OW_STAMP_BYTES are all that a packet takes while its page is being written and compared: 16 for id and time, as much
 * for telling copies apart, and half of it for the synopsis.
 */
#define OW_RETAIN_NS INT64_C(5000000000)
/* Threads that are not let run for so long still find a page for what the ring has kept. */
#define OW_HELD_UP_NS INT64_C(20000000000)
/* A peer that is connected and does not answer: longer than it takes to find out that it is not (OW_DEAD_NS). */
#define OW_PATIENCE_NS  INT64_C(20000000000)
#define OW_RETAIN_MIN   4
#define OW_RETAIN_MAX   256
#define OW_STAMP_BYTES  40
#define OW_STAMPS_LEAST 1024 /* a page smaller than this measures nothing */

struct ow_retention {
	unsigned pages_max;  /* that wait for the peer */
	unsigned open_max;   /* that are being written */
	int64_t notice_ns;   /* until it is told that an interval is not answered */
	int64_t patience_ns; /* until an interval that a connected peer does not answer is given up */
};
/* skew_ns: how far the two clocks are apart; speed: of the clock (files that are replayed faster). */
void ow_agree_retention(int64_t length_ns, int64_t skew_ns, double speed, struct ow_retention *ret_retention);
/* Packets that a page may hold, for a lane that has so many bytes; 0 if those are not enough for a measurement. */
size_t ow_agree_stamps(uint64_t bytes, const struct ow_retention *retention);
/* Bytes that a lane needs at least. */
uint64_t ow_agree_least(const struct ow_retention *retention);
/* The same of all lanes that a configuration is sure to have: where a peer chooses the classes, one of them, with the
 * interval that is written or the default. */
uint64_t ow_agree_needed(const struct ow_config *config, unsigned *ret_lanes);
/* Bytes of the pages that wait. */
uint64_t ow_agree_retained(uint64_t bytes, const struct ow_retention *retention);
/*
 * A new lane's part of what is left of the budget, when so many lanes are still to come (itself included). open_ended:
 * a peer may ask for more; one part stays for those, so that the budget holds whatever it asks for. own, others: what
 * this lane needs at least, and all others that are to come. It gets that, if it can be had, also where others, with
 * longer intervals, need less than an equal part.
 */
uint64_t ow_agree_share(uint64_t left, unsigned expected, bool open_ended, uint64_t own, uint64_t others);

#endif
