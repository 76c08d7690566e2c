/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/interval_log.h"
#include "result/interval_results.h"
#include "exchange/message.h"

/*
 * The protocol for one lane at one of its two points: intervals and frames are the input, frames and results the
 * output. It has no sockets, no threads, and no clock except the one that is passed in, so that tests and the simulator
 * can drive it like the daemon. Several intervals can be in progress; results come in order.
 *
 * fold (formulas.md 3.7): the receiving point pushes a fold, sized by the last interval's difference, and the counters
 * of ams. The sending point peels, asks for a second fold if needed, names the packets to omit and those whose times it
 * needs, gets sums and a sample of times, and computes. Sums and sample as in estimate/reconciled.h.
 *
 * rda: as published (rda-ton2018, VIII): MinHash first, then an RDA of 2 banks of 2d cells, both on request; decode,
 * request of missing times, erase, mean and standard deviation by pairs of buckets.
 */
enum ow_method { OW_METHOD_FOLD, OW_METHOD_RDA };

struct ow_exchange_options {
	uint32_t lane; /* its number in the messages */
	bool sending;  /* the packets come from this point: it decodes and computes */
	enum ow_method method;
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], from[OW_RESULT_NAME], to[OW_RESULT_NAME];
	struct ow_identity identity;
	uint64_t seed; /* of the synopses */
	int64_t t0_ns, length_ns;
	uint32_t horizon;    /* intervals that a packet may be late by */
	int64_t patience_ns; /* an interval that a connected peer does not answer for this long is unknown */
	int64_t notice_ns;   /* after this time it is reported as unknown for the time being; 0 = never */
	/* intervals that wait for the peer; beyond this, and beyond retain, the oldest is unknown */
	unsigned intervals_max;
	uint32_t buckets, sample; /* estimate/reconciled.h; 0 = its defaults */
	size_t synopses_max;      /* bytes of the other point's synopses that are kept; 0 = no limit */
	int64_t shift_max_ns; /* the receiver shifts its intervals by the usual delay, at most this; 0 = it does not */
	bool shared;          /* only packets of flows that pass both points can be lost */
	bool exact;           /* the times of all common packets are exchanged */
	bool one_of_several;  /* packets that the other point did not get may have gone to another one */
	bool link_filter;     /* the filter of the class names the link layer, which the points may see differently */
};

/* The delays of an interval as the clocks of both points show them, at the sending point, before they become results. */
struct ow_exchange_clock {
	struct ow_clock_sample *samples; /* at_ns: when it was sent. May be reordered */
	size_t count;
	struct ow_clock_floor floor; /* out: for the other point */
};

struct ow_exchange_sinks {
	/* A frame for the peer, without its length. */
	void (*send)(void *arg, const uint8_t *frame, size_t size);
	/* Both points get every result: the sending one computes it and sends it to the other. */
	void (*result)(void *arg, const struct ow_interval_result *result);
	/*
	 * The sending point: an interval as it was compared, with its packets and their names; name NULL: it could not be
	 * compared, the result has the cause. May be NULL.
	 */
	void (*compared)(void *arg, const struct ow_interval_results_input *input, const uint64_t *name);
	/* The sending point: what happened to flows of the lane. May be NULL. */
	void (*event)(void *arg, const struct ow_flow_event *event);
	/* The peer samples more coarsely, or possibly no longer: record with this shift from now on. */
	void (*shift)(void *arg, unsigned sample_shift);
	/* The receiver: its intervals should be shifted by this from a later one on. May be NULL. */
	void (*cut)(void *arg, int64_t shift_ns);
	/*
	 * The sending point: what its clock and the other one's do to the delays of this interval. It sets the clock_*
	 * members of the result; clock_offset_ns is then added to all delays. NULL: clocks are as they are.
	 */
	void (*clock)(void *arg, struct ow_exchange_clock *clock, struct ow_interval_result *result);
	/* The receiving point: the floor that the sending one has found, and the result that it came with. May be NULL.
	 */
	void (*floor)(void *arg, const struct ow_clock_floor *floor, const struct ow_interval_result *result);
	/* The clock by which messages and answers take their time. NULL: the host's steady clock. */
	int64_t (*steady_ns)(void *arg);
	void *arg;
};

struct ow_exchange;

int ow_exchange_create(const struct ow_exchange_options *options, const struct ow_exchange_sinks *sinks,
                       struct ow_exchange **ret_exchange);
void ow_exchange_free(struct ow_exchange *exchange);

/* The next closed interval of the lane; the exchange takes it over. clock: of this host, at the end of the interval. */
int ow_exchange_packets(struct ow_exchange *exchange, struct ow_interval_packets *packets,
                        const struct ow_clock_state *clock, int64_t now_ns);
/* A frame of this lane. -EPROTO if it cannot be decoded or is not allowed: err has the reason, nothing has changed. */
int ow_exchange_frame(struct ow_exchange *exchange, const uint8_t *frame, size_t size, int64_t now_ns,
                      struct ow_error *err);
/*
 * More intervals than intervals_max may wait for the peer as long as they take no more bytes than this; 0 (the default) =
 * none. At most OW_EXCHANGE_INTERVALS_MAX.
 */
void ow_exchange_retain(struct ow_exchange *exchange, size_t bytes);
#define OW_EXCHANGE_INTERVALS_MAX 4096
/* No peer has intervals this far ahead of the recorded ones: 12 days of seconds. Messages about them are refused. */
#define OW_EXCHANGE_AHEAD_MAX (INT64_C(1) << 20)
/* The connection exists again (it is assumed to exist at first): unanswered messages are sent again. */
void ow_exchange_connected(struct ow_exchange *exchange, int64_t now_ns);
/* The connection is lost: intervals wait, as many as fit into memory. */
void ow_exchange_disconnected(struct ow_exchange *exchange);
/* Gives up intervals that took too long. To be called regularly. */
void ow_exchange_tick(struct ow_exchange *exchange, int64_t now_ns);
/*
 * No more intervals follow: as soon as the last one is answered everything is final. why: what the other point is told
 * about later ones; NULL = that the recording has ended.
 */
void ow_exchange_finish(struct ow_exchange *exchange, const char *why);
/* The other point will not come back: finishes, and gives up everything that is not answered. */
void ow_exchange_abandon(struct ow_exchange *exchange, const char *cause, int64_t now_ns);
bool ow_exchange_done(const struct ow_exchange *exchange);

/*
 * How much, at least, the other point's clock was ahead of the one that is passed in here when it sent its last
 * synopsis: the travel time of the message is not included. INT64_MIN if there was none, or if this point is the
 * receiving one.
 */
int64_t ow_exchange_ahead_ns(const struct ow_exchange *exchange);

/* The run as one result. */
void ow_exchange_total(const struct ow_exchange *exchange, struct ow_interval_result *ret_total);
