/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_MATCH_H
#define ONEWAY_MATCH_H

#include <oneway/details.h>
#include <oneway/error.h>
#include <oneway/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Exact one-way delay and loss from two captures of the same traffic.
 * Times are nanoseconds since the Unix epoch; positive delay = received later than sent.
 *
 * Versions: ow_match_options, ow_match_report and ow_packet_event begin with their size, and new members are only
 * appended. A program that was compiled with an older header runs with a newer library: members that it does not have
 * are 0, the default. A program with a newer header runs with an older library if the members that the library does not
 * know are 0; in a report, members beyond its `size` are not there. The other structs do not change within
 * liboneway.so.0. docs/library.md has the details.
 *
 * Threads: different matches are independent. One match is used by one thread at a time; its callbacks run in the
 * thread that called ow_match_files.
 */

enum ow_level { OW_LEVEL_AUTO, OW_LEVEL_IP, OW_LEVEL_NAT, OW_LEVEL_FRAME };
enum ow_toggle { OW_AUTO, OW_OFF, OW_ON };
enum ow_clock_method { OW_CLOCK_NONE, OW_CLOCK_GIVEN, OW_CLOCK_ESTIMATED };
enum ow_direction { OW_A_TO_B, OW_B_TO_A, OW_DIRECTIONS };
/* Times of packets: of the capture file; of a capture device, where frames have its stamps; or only of such. */
enum ow_stamps { OW_STAMPS_CAPTURE, OW_STAMPS_AUTO, OW_STAMPS_TRAILER };
/* Classes of packets: those of filters; the 64 DSCPs, as the sending point shows them; sizes of IP packets. */
enum ow_class_by { OW_CLASS_BY_FILTER, OW_CLASS_BY_DSCP, OW_CLASS_BY_SIZE };
enum ow_side { OW_SIDE_A, OW_SIDE_B, OW_SIDES };

/* The fate of one packet. For LOST and EXTRA, the number of the missing side is 0. */
enum ow_fate {
	OW_FATE_MATCHED,
	OW_FATE_LOST,
	OW_FATE_EXTRA,
	OW_FATE_DUPLICATED,
	OW_FATE_UNCLASSIFIED,
	OW_FATE_OUTSIDE
};

/* Addresses in network byte order (IPv4 in the first 4 bytes), ports in host order. */
struct ow_flow_key {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint8_t proto;      /* IP protocol; 0 for frames that are not IP (then the addresses are MACs) */
	uint8_t version;    /* 4, 6, or 0 for frames that are not IP */
	uint16_t ethertype; /* only if version is 0 */
};

struct ow_packet_event {
	size_t size; /* of the part that the library filled */
	enum ow_fate fate;
	enum ow_direction direction; /* not defined for UNCLASSIFIED */
	bool ambiguous;              /* matched, but identical packets make the delay uncertain */
	enum ow_side side;           /* the side that saw it, if only one did */
	uint64_t number[OW_SIDES];   /* 1-based record number in each file, 0 = not in this file */
	int64_t time_ns[OW_SIDES];   /* after clock correction; defined where number is not 0 */
	uint32_t packets;            /* wire packets this event stands for (superframes: more than 1) */
	uint32_t bytes;              /* length of the packet or segment, from the IP header on (or of the frame) */
	const struct ow_flow_key *flow;
	/* keyed hash of what the network must not change; the same at both points, and for identical packets */
	uint64_t id;
	bool estimated; /* ambiguous, and the delay is an estimate: it may be shorter by less_ns, or longer by more_ns
	                 */
	int64_t less_ns, more_ns;
	uint64_t part; /* of a superframe or a datagram: which part of the record this is; 0 = all of it */
	/* bit i: it is of class i of the options; by DSCP or size: the number of its class, OW_CLASSES_MAX = none */
	uint8_t classes;
	/*
	 * With details, of TCP data: the number of the last record before it, at the same point, that has bytes of it. 0: there
	 * is none.
	 */
	uint64_t resends;
};

#define OW_MATCH_CLASSES_MAX 8 /* filters */
#define OW_CLASSES_MAX       64
#define OW_PERCENTILES_MAX   16

/* Largest time in the options: 146 years. */
#define OW_MATCH_TIME_MAX (INT64_MAX / 2)

/* Set by ow_match_defaults; every default is 0. For a value out of range ow_match_files returns -EINVAL. */
struct ow_match_options {
	size_t size;                /* sizeof(struct ow_match_options) */
	enum ow_level level;        /* OW_LEVEL_AUTO: ip, or a level that clearly matches more packets */
	enum ow_toggle inner;       /* enter tunnels */
	enum ow_toggle segments;    /* cut superframes into wire segments */
	enum ow_clock_method clock; /* NONE: trust the clocks; GIVEN: offset_ns; ESTIMATED: estimate it */
	int64_t offset_ns;          /* added to B's timestamps if clock is GIVEN; +- OW_MATCH_TIME_MAX */
	int64_t window_ns;          /* the waiting time after which a packet is lost; 0 = automatic */
	/*
	 * Ignore copies that one capture shows within this time. 0 = only in a capture that shows the packets it sends
	 * twice; below 0 = keep all copies.
	 */
	int64_t dedup_ns;
	int64_t interval_ns; /* length of the intervals of the report; 0 = none */
	bool one_direction;  /* all traffic goes from A to B: no packet is unclassified */
	unsigned threads;    /* 0 = automatic, 1, 2 or 3 */
	/*
	 * Seed of the packets' ids; 0 = random, so that a crafted capture cannot force hash collisions. The results of
	 * a match do not depend on it.
	 */
	uint64_t seed;
	/*
	 * Called for every packet with its final fate, in the order of time as far as matching allows; NULL = no calls.
	 * The event is valid until the callback returns. A return value other than 0 (negative errno) stops the run,
	 * and ow_match_files returns it.
	 */
	int (*on_packet)(void *arg, const struct ow_packet_event *event);
	/* Called repeatedly with the share done, 0..1, over all passes; NULL = no calls. */
	void (*on_progress)(void *arg, double done);
	void *arg; /* for both callbacks; the library does not use it */
	/* Only packets that this filter of pcap-filter(7) accepts, inside of tunnels that are entered; NULL = all. */
	const char *filter;
	/*
	 * Only packets that were captured from since on, and before until; 0 = from the first, to the last. By the clock of
	 * A; B's times are corrected first if clock is GIVEN.
	 */
	int64_t since_ns, until_ns;
	/* Filters of classes: bit i of the event's `classes` says that a packet is of class i. */
	const char *const *class_filter;
	unsigned classes; /* number of filters, at most OW_MATCH_CLASSES_MAX */
	enum ow_stamps stamps;
	/* Percentiles of the delay to report in addition: each above 0, at most 100; at most OW_PERCENTILES_MAX. */
	const double *percentile;
	unsigned percentiles;
	enum ow_class_by class_by; /* DSCP and SIZE: without filters of classes */
	bool details; /* numbers about the order of packets, and retransmissions, at the cost of another pass */
};

struct ow_capture_info {
	const char *path;
	uint64_t packets; /* records in the file */
	int64_t first_ns, last_ns;
	const char *linktype;  /* "EN10MB", "RAW", ... or "mixed" */
	int64_t resolution_ns; /* 1000 for microsecond files, 1 for nanoseconds or finer */
};

struct ow_interval {
	int64_t start_ns;
	struct ow_result direction[OW_DIRECTIONS];
};

/*
 * A time in which a capture shows nothing at all, while the other one shows packets that passed this point. These
 * packets are outside the time that both captures cover, and not lost.
 */
struct ow_hole {
	enum ow_side side;           /* the capture that shows nothing */
	int64_t start_ns, length_ns; /* after clock correction */
	uint64_t packets;            /* packets of the other capture that are not counted because of it */
	bool certain;                /* false: it may also be an outage of everything that this capture sees */
};

/* A percentile that was asked for. If identical packets make delays uncertain, it is between low and high. */
struct ow_percentile {
	double percent;
	double delay_ns, low_ns, high_ns;
};

/* The match owns the report and everything that it points to. */
struct ow_match_report {
	size_t size; /* of the part that the library filled */
	struct ow_capture_info capture[OW_SIDES];
	enum ow_level level; /* the level that was used */
	bool inner, segments;
	bool fragments;   /* whole packets were matched with their fragments; the counts are of fragments */
	bool ip_id;       /* false: the IPv4 identification was ignored, because it is rewritten on the way */
	bool tcp_numbers; /* false: TCP sequence numbers, acknowledgements and options were ignored */
	bool tcp_options; /* false: TCP options were ignored, with or without the numbers */
	enum ow_clock_method clock;
	int64_t offset_ns; /* added to B's timestamps */
	/*
	 * Offsets with which no packet arrives before it was sent: from low (INT64_MIN: no bound) to high (INT64_MAX:
	 * no bound). low > high: there is no such offset. Only packets without identical ones are used.
	 */
	int64_t offset_low_ns, offset_high_ns;
	int64_t offset_error_ns; /* largest error of an estimated offset; -1: not known */
	/* drift of B's clock against A's, corrected if the clock is estimated; 0 = none found */
	double drift_ppb;
	int64_t window_ns; /* the waiting time used */
	struct ow_result direction[OW_DIRECTIONS];
	bool has_direction[OW_DIRECTIONS];  /* B to A: false if no packet went that way */
	uint64_t unclassified[OW_SIDES];    /* packets of flows that never matched: not lost */
	uint64_t outside_overlap[OW_SIDES]; /* packets outside the time that both captures cover, and those in holes */
	const struct ow_hole *hole;
	size_t holes;
	/* frames that cannot be compared at this level (ARP, too short, ...), and ignored copies */
	uint64_t skipped[OW_SIDES];
	const struct ow_interval *interval;
	size_t intervals;
	const char *const *warning;
	size_t warnings;
	uint32_t files[OW_SIDES]; /* capture files of a set of files; 0 = the path is one file */
	/* Packets that a capture dropped, as the file itself says; part of them may count as lost or extra. */
	uint64_t dropped[OW_SIDES];
	uint64_t filtered[OW_SIDES];  /* frames that the filter does not accept */
	const char *stamps[OW_SIDES]; /* whose times were used: "capture", "MetaWatch trailer", ... */
	/* As many as the options ask for; not defined for a direction without samples of the delay. */
	struct ow_percentile percentile[OW_DIRECTIONS][OW_PERCENTILES_MAX];
	unsigned percentiles;
	const struct ow_details *details[OW_DIRECTIONS]; /* NULL if they were not asked for */
	/* Of each class: packets that arrived after one of the same class that was sent later. */
	uint64_t class_reordered[OW_CLASSES_MAX][OW_DIRECTIONS];
	/*
	 * Of interval i and direction d: `percentiles` from [(i * OW_DIRECTIONS + d) * percentiles] on; not defined without
	 * samples of the delay. NULL if there are none.
	 */
	const struct ow_percentile *interval_percentile;
};

struct ow_match;

/* Fills `size` bytes of options with the defaults. Programs call ow_match_defaults. */
void ow_match_options_init(struct ow_match_options *ret_options, size_t size);

/* Fills the options with the defaults, and sets their size. */
static inline void ow_match_defaults(struct ow_match_options *ret_options)
{
	ow_match_options_init(ret_options, sizeof *ret_options);
}

/*
 * Matches the two captures: pcap or pcapng, each may be compressed with gzip. A path is a file, a folder of files, a
 * pattern of the shell, or several of these joined by +; the files of a set are read in the order of time. options: NULL = the defaults; not used after
 * the return. On success *ret_match owns the report, and the caller frees it with ow_match_free; on failure it is not
 * set. err may be NULL.
 *   -ENOMSG  the captures have nothing in common (the error gives the reason)
 *   -EINVAL  a file that is not a capture, an option out of range
 *   -E2BIG   an option that this version of the library does not know
 *   -ENOMEM, -errno for I/O errors, and what on_packet returned
 */
int ow_match_files(const char *path_a, const char *path_b, const struct ow_match_options *options,
                   struct ow_match **ret_match, struct ow_error *err);

/* Valid until the match is freed. */
const struct ow_match_report *ow_match_report(const struct ow_match *match);
/* Does nothing for NULL. */
void ow_match_free(struct ow_match *match);

#ifdef __cplusplus
}
#endif

#endif
