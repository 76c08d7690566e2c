/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "estimate/clock_tracker.h"
#include "reconcile/key_sketch.h"
#include "result/interval_result.h"
#include <oneway/error.h>
#include <oneway/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Encoding of the messages between two points. docs/protocol.md has every byte. Everything is little-endian. A frame
 * is: length of what follows (4), type (1), lane and interval (numbers of variable length), body. HELLO, which two
 * points of any version can read, has a version instead. The codec knows neither sockets nor TLS (exchange/session.h
 * does), and its frames begin after the length.
 *
 * The messages of a lane (a class in one direction of a segment): the receiving point pushes a SYNOPSIS at the end of
 * an interval. The sending point compares, ASKs for another one if needed, and sends NAMES: packets to omit and packets
 * whose times it needs. The receiving point answers with TIMES; the sending point computes and returns RESULT.
 */
#define OW_WIRE_VERSION   2
#define OW_WIRE_FRAME_MAX (66u << 20) /* a synopsis of the largest size and its header */

enum ow_message_type {
	OW_MESSAGE_HELLO = 1, /* introduces a point: name, epoch, clock, versions */
	OW_MESSAGE_OPEN,      /* proposes a lane: segment, class, parameters, t0, length, seed */
	OW_MESSAGE_OPENED,    /* accepted */
	OW_MESSAGE_REFUSED,   /* with the reason */
	OW_MESSAGE_SYNOPSIS,  /* counts of an interval, and an encoded synopsis */
	OW_MESSAGE_ASK,       /* requests a (further) synopsis with parameters */
	OW_MESSAGE_NAMES,
	OW_MESSAGE_TIMES,
	OW_MESSAGE_RESULT,
	OW_MESSAGE_NONE, /* this interval cannot be served, with the reason */
	OW_MESSAGE_PING,
	OW_MESSAGE_BYE,    /* the connection ends; with a lane: the lane ends before this interval */
	OW_MESSAGE_SCOPE,  /* which flows the sending point has in this interval (reconcile/scope_keys.h) */
	OW_MESSAGE_SURVEY, /* asks for a sample of the lane's packets under several identities */
	OW_MESSAGE_SAMPLE, /* the answer */
	OW_MESSAGE_WANTED, /* asks for the next epoch of a recording of flows */
	OW_MESSAGE_EPOCH,  /* the answer */
	OW_MESSAGE_TYPES
};

/* The limits of a message. Texts: bytes with the terminating zero. */
#define OW_MESSAGE_NAME         64
#define OW_MESSAGE_TEXT         160 /* reasons */
#define OW_MESSAGE_FILTER       2048
#define OW_MESSAGE_SYNOPSIS_MAX ((64u << 20) + 64)  /* bytes of an encoded synopsis */
#define OW_MESSAGE_PACKETS_MAX  (UINT64_C(1) << 44) /* of an interval */
#define OW_MESSAGE_BYTES_MAX    (UINT64_C(1) << 60)
#define OW_MESSAGE_INTERVAL_MAX (INT64_C(1) << 44)
#define OW_MESSAGE_SHIFT_MAX    40
#define OW_MESSAGE_IDLE_MAX     64 /* intervals that one message is about */
#define OW_MESSAGE_HORIZON_MAX  1024
#define OW_MESSAGE_BUCKETS_MAX  65536u
#define OW_MESSAGE_SAMPLE_MAX   (1u << 20)
#define OW_MESSAGE_TIMES_MAX    (1u << 21) /* packets whose times are all sent */
#define OW_MESSAGE_CELLS_MAX    ((64u << 20) / 20)
#define OW_MESSAGE_NAMED_MAX    (1u << 21) /* packets of a NAMES or TIMES */
/* Bytes of a list of 40-bit keys, of which there are at most 131,072: 25 bits each, and less than 2^18 more. */
#define OW_MESSAGE_SCOPE_LIST_MAX (1u << 19)
#define OW_MESSAGE_LENGTH_MIN_NS  INT64_C(1000000) /* of an interval: as in record/recorder.h */
#define OW_MESSAGE_LENGTH_MAX_NS  INT64_C(300000000000)
#define OW_MESSAGE_CUT_MAX_NS     INT64_C(60000000000) /* shift of an interval */

struct ow_message_hello {
	uint8_t version_min, version_max; /* versions of this protocol that this point supports */
	char point[OW_MESSAGE_NAME];
	uint64_t epoch; /* a random number of this process: distinguishes a restart from a lost connection */
	int64_t now_ns; /* the real time when this message was written */
	struct ow_clock_state clock;
	uint64_t clock_identity; /* base/clock.h: two points with the same one have one clock; 0 = not known */
	char software[OW_MESSAGE_NAME];
};

/* The method of comparison of a lane. */
enum ow_message_method { OW_MESSAGE_FOLD, OW_MESSAGE_RDA, OW_MESSAGE_METHODS };
/* As enum ow_level of the public header: the two levels that are possible between points. */
enum ow_message_level { OW_MESSAGE_LEVEL_IP = 1, OW_MESSAGE_LEVEL_NAT = 2 };

struct ow_message_open {
	char segment[OW_MESSAGE_NAME], class_name[OW_MESSAGE_NAME];
	char filter[OW_MESSAGE_FILTER]; /* pcap-filter(7); empty = all IP packets */
	/* the packets go from the proposer to the other point, otherwise towards the proposer */
	bool sends;
	enum ow_message_method method;
	enum ow_message_level level;
	bool inner;
	bool any_ip_id;   /* ids do not contain the IPv4 identification */
	bool tcp_headers; /* ids contain no payload of TCP */
	bool pieces;      /* a packet and its first fragment have the same id */
	bool shared;      /* only packets of flows that pass both points can be lost */
	bool exact;       /* the times of all common packets are exchanged */
	uint32_t hash_limit;
	uint64_t identity_seed, synopsis_seed;
	int64_t t0_ns, length_ns, wait_ns;
	uint32_t horizon, buckets, sample;
	uint8_t sample_shift;
};

struct ow_message_opened {
	int64_t now_ns;
	int64_t t0_ns; /* that of OPEN plus a whole number of intervals: in the future by both clocks */
	/* Those of OPEN; or others, if the packets come from the answering point, and go to several. */
	uint64_t identity_seed, synopsis_seed;
};

/* Samples of the packets of a time under the identities of point/identity_survey.h, in that order. */
#define OW_MESSAGE_IDENTITIES    8
#define OW_MESSAGE_IDS_MAX       1024u /* of a sample */
#define OW_MESSAGE_SURVEY_MAX_NS INT64_C(10000000000)

struct ow_message_survey {
	int64_t t0_ns, length_ns;
	uint64_t seed;        /* of the ids; the answer repeats it */
	uint8_t sample_shift; /* the least one of the samples */
};

struct ow_message_sample {
	uint64_t seed;
	uint8_t sample_shift[OW_MESSAGE_IDENTITIES];
	uint32_t count[OW_MESSAGE_IDENTITIES];
	const uint8_t *ids[OW_MESSAGE_IDENTITIES]; /* 8 bytes each; points into the frame */
};

/* Recordings of flows that both points make of the same packets: docs/epochs.md. */
#define OW_MESSAGE_RECORDINGS     8
#define OW_MESSAGE_INFO_BYTES_MAX 8192u
#define OW_MESSAGE_EPOCH_MAX      (64u << 20)

struct ow_message_wanted {
	uint8_t recording;      /* of the asking point: the answer repeats it */
	uint8_t heading;        /* of its packets there: 0 both, 1 in, 2 out */
	uint64_t epochs, check; /* that it has of the other point's, and the check of the last one */
	const uint8_t *info;    /* the description of its recording, encoded (flows/epoch.h); points into the frame */
	uint32_t info_size;
};

enum ow_message_epoch_state {
	OW_MESSAGE_EPOCH_NEXT,    /* here it is */
	OW_MESSAGE_EPOCH_NONE,    /* it is not there yet */
	OW_MESSAGE_EPOCH_NO_SUCH, /* this point does not record the same packets in the same way for the other one */
	OW_MESSAGE_EPOCH_OTHER,   /* the file begins with other epochs */
	OW_MESSAGE_EPOCH_FAILED,  /* it cannot be read, or is too large */
	OW_MESSAGE_EPOCH_STATES
};

struct ow_message_epoch {
	uint8_t recording;
	uint64_t epochs; /* of WANTED: answers to earlier questions are told apart */
	enum ow_message_epoch_state state;
	uint32_t count_bytes;
	const uint8_t *bytes; /* points into the frame */
	uint32_t size;
};

struct ow_message_text {
	char text[OW_MESSAGE_TEXT];
};

/* The part of the comparison that a SYNOPSIS or an ASK is about. */
enum ow_message_part {
	OW_MESSAGE_PUSHED, /* the synopsis that comes without a request (fold), or only the counts (rda) */
	OW_MESSAGE_AGAIN,  /* the same for the packets that remain with a larger shift */
	OW_MESSAGE_SECOND, /* a second fold with permuted cells */
	OW_MESSAGE_MINHASH,
	OW_MESSAGE_TABLE, /* an RDA */
	OW_MESSAGE_FLOWS, /* ASK only, from the receiving point: SCOPE of the interval and of those before it */
	OW_MESSAGE_KEYS,  /* ASK only, from the receiving point: SCOPE of the interval with a list of keys */
	OW_MESSAGE_PARTS
};

/* Lists are coded as those of NAMES, with keys of 40 bits; exchange/message_scope.h. They point into the frame. */
struct ow_message_scope {
	uint32_t idle; /* so many intervals directly before have the same update, which is empty */
	bool quiet;    /* intervals after this one may be announced later, if they are idle, too */
	uint16_t generation;
	bool reset;
	uint64_t digest;
	const uint8_t *hot, *fine, *keys;
	uint32_t hot_size, fine_size, keys_size;
	struct ow_key_sketch sketch; /* instead of the keys, if its capacity is not 0, */
	uint32_t check;              /* and their check */
};

/* What SYNOPSIS has after the synopsis, where a lane has scope: the answer to SCOPE of the same interval. */
struct ow_message_scope_answer {
	bool there; /* else nothing of it is in the message */
	uint64_t digest;
	const uint8_t *seen, *late, *fine, *rerouted, *change;
	uint32_t seen_size, late_size, fine_size, rerouted_size;
	uint32_t changes; /* one byte for each rerouted pair */
	uint32_t strange; /* new keys of this point that were not announced */
};

struct ow_message_synopsis {
	enum ow_message_part part;
	uint32_t idle; /* so many intervals directly before had as little: nothing */
	uint8_t sample_shift;
	struct ow_clock_state clock;         /* at the end of the interval */
	uint64_t packets;                    /* of the sample */
	uint64_t total_packets, total_bytes; /* including those outside the sample */
	uint64_t ring_drops, unreadable;     /* frames */
	uint64_t unshared;                   /* packets that are not from the other point, and not in the synopsis */
	int64_t shift_ns, end_shift_ns;      /* of the interval's start and end: record/interval_cuts.h */
	int64_t oldest;                      /* the oldest interval whose packets this point still has */
	int64_t settled;                     /* this point has the final results of all intervals before this one */
	int64_t lag_ns;                      /* real time of sending less the end of the interval, without its shift */
	int64_t work_ns;                     /* time it took to build */
	const uint8_t *synopsis;             /* encoded (synopsis/synopsis.h); points into the frame */
	uint32_t synopsis_size;              /* 0 = none: there are no packets, or the method pushes only counts */
	struct ow_message_scope_answer scope;
};

/* The receiving point had nothing in the interval. */
static inline bool ow_synopsis_is_idle(const struct ow_message_synopsis *m)
{
	return m->part == OW_MESSAGE_PUSHED && !m->total_packets && !m->unshared && !m->ring_drops && !m->unreadable &&
	       !m->synopsis_size && !m->scope.seen_size && !m->scope.late_size && !m->scope.fine_size &&
	       !m->scope.rerouted_size && m->shift_ns == m->end_shift_ns;
}

struct ow_message_ask {
	enum ow_message_part part; /* not PUSHED */
	uint8_t sample_shift;      /* AGAIN: the smallest shift; 0 for other parts */
	uint8_t order;             /* SECOND: 1 .. 255 */
	uint8_t banks;             /* TABLE: 1 .. 8 */
	uint32_t cells;            /* SECOND, TABLE: of a bank; MINHASH: slots */
};

/* What TIMES must contain in addition to the times of the named packets. */
enum ow_message_sums {
	OW_MESSAGE_NO_SUMS,
	OW_MESSAGE_SUMS,  /* a sum of times for each bucket, times of a sample: if both points have the same packets */
	OW_MESSAGE_CLEAN, /* count, digest and sum for each bucket, ranks and times of a sample: if they do not */
	OW_MESSAGE_SUMS_KINDS
};

struct ow_message_names {
	enum ow_message_sums sums;
	/* the lists contain ids, 8 bytes each, in rising order; otherwise keys (reconcile/key_list.h) */
	bool wide;
	uint32_t buckets;   /* 0 = all times (SUMS) */
	uint8_t low, bits;  /* SUMS: the bits of a time of the sample (estimate/low_bits.h) */
	uint8_t width;      /* SUMS with buckets: bytes of a sum, 1 .. 8, the lowest ones */
	uint32_t sample;    /* packets */
	double differences; /* CLEAN: about this many packets are at one point only and unknown */
	/* Packets to omit whose times are wanted, and further packets to omit. Point into the frame. */
	const uint8_t *wanted, *others;
	uint32_t wanted_size, others_size;
};

/* A named packet that is a further copy. */
struct ow_message_copy {
	uint32_t index; /* among the wanted packets */
	uint64_t base;  /* key (or id, if wide) of the packet that it is a copy of */
};

struct ow_message_bucket {
	uint64_t time, digest;
	uint32_t packets;
};

struct ow_message_times {
	enum ow_message_sums sums;
	uint8_t sample_shift;  /* if it is not that of the synopsis, the answer is about other packets */
	uint32_t unknown;      /* number of names without a packet at this point; if it is not 0, nothing follows */
	uint64_t kept, digest; /* packets that were not omitted; sum of their digests */
	/* Arrays: the encoder keeps its own; after decoding ow_message_done frees them. */
	const int64_t *time_ns; /* of the wanted packets, in the order of their names */
	const int64_t *place;   /* SUMS without buckets: of the wanted packets, in the order of arrival of all */
	const struct ow_message_copy *copy;
	const struct ow_message_bucket *bucket; /* SUMS: time only */
	uint32_t times, copies, buckets, samples;
	/* SUMS: bits of the times of the sample, in the order of ranks, the largest first; points into the frame. */
	const uint8_t *sample;
	uint8_t low, bits;       /* as in NAMES */
	uint8_t width;           /* as in NAMES. If it is less than 8, the sums that were decoded are incomplete */
	uint64_t sums_check;     /* of the whole sums, if there are buckets */
	uint64_t sample_check;   /* of the whole times */
	uint64_t order_check;    /* of the order of arrival, if these are all packets (estimate/arrivals.h) */
	const uint8_t *synopsis; /* CLEAN: a bottomk sample; points into the frame */
	uint32_t synopsis_size;
	/* A bit for each of `times`: packets of its flow were not named. Points into the frame. Empty if the lane compares
	 * all packets. */
	const uint8_t *shared;
	uint32_t shared_size;
};

/* 1 if packets of the flow of this one were not named, or the lane compares all packets; else 0. */
static inline uint32_t ow_times_shared(const struct ow_message_times *times, size_t i)
{
	return !times->shared_size || times->shared[i / 8] >> i % 8 & 1;
}

/* RESULT. Fields that are not in the message have their default: 0, none, or not counted; coverage is 1. */
struct ow_message_result {
	/* The fields that have a place in the message; both points know the others. */
	struct ow_interval_result result;
	/* Bit n - 1: the field at place n is in the message (result/fields.h); for a flag: it is true. */
	uint64_t present;
	/* Fields that are not in the message are as in the provisional result of the interval. */
	bool changes;
	uint32_t idle; /* so many intervals directly before have the same result, but for the cost */
	/* Number of packets at one point only in this interval: it determines the size of the next fold. */
	uint64_t differences;
	/* The fastest packets of the interval, by both clocks as they are (estimate/clock_tracker.h); samples 0 = none.
	 */
	struct ow_clock_floor floor;
	/* By how much the receiver should shift its intervals. */
	int64_t cut_shift_ns;
};

struct ow_message_ping {
	uint64_t token;
	bool answer; /* answers a PING with this token; otherwise asks for an answer */
};

struct ow_message {
	enum ow_message_type type;
	uint32_t lane;    /* 0 in HELLO, PING, and the BYE of a connection */
	int64_t interval; /* 0 unless the message is about an interval */
	union {
		struct ow_message_hello hello;
		struct ow_message_open open;
		struct ow_message_opened opened;
		struct ow_message_text text; /* REFUSED, NONE, BYE: the reason */
		struct ow_message_synopsis synopsis;
		struct ow_message_scope scope;
		struct ow_message_ask ask;
		struct ow_message_names names;
		struct ow_message_times times;
		struct ow_message_result told;
		struct ow_message_ping ping;
		struct ow_message_survey survey;
		struct ow_message_sample sample;
		struct ow_message_wanted wanted;
		struct ow_message_epoch epoch;
	};
};

/* The caller frees *ret_frame. -EINVAL if the message breaks the rules that decoding checks, -EMSGSIZE, -ENOMEM. */
int ow_message_encode(const struct ow_message *message, uint8_t **ret_frame, size_t *ret_size, struct ow_error *err);
/*
 * -EPROTO with an error that names message and field: a value out of range, missing, or beyond the end. -ENOMEM. The
 * message may point into the frame and own memory: ow_message_done.
 */
int ow_message_decode(const uint8_t *frame, size_t size, struct ow_message *ret_message, struct ow_error *err);
void ow_message_done(struct ow_message *message);

/* Chooses what RESULT contains: what differs from the defaults or, if before is not NULL, from this provisional one. */
void ow_message_choose(struct ow_message_result *told, const struct ow_interval_result *before);
/* The whole result, the opposite. -EPROTO: it breaks the rules of counts. */
int ow_message_complete(const struct ow_message_result *told, const struct ow_interval_result *before,
                        struct ow_interval_result *ret_result, struct ow_error *err);

/* The lane of a frame, without decoding it; -EPROTO. */
int ow_message_peek(const uint8_t *frame, size_t size, enum ow_message_type *ret_type, uint32_t *ret_lane,
                    struct ow_error *err);
/* "SYNOPSIS"; "?" for others. */
const char *ow_message_name(enum ow_message_type type);
