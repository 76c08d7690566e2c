/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/writer.h"
#include <oneway/error.h>
#include <oneway/match.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Makes the captures of two measurement points of the same traffic, and the truth about it. The same options and seed
 * give the same bytes. Times are nanoseconds, rates bits or packets a second, sizes bytes of the IP packet.
 */

/* One delay model. A time is in ns. */
enum ow_sim_delay_kind {
	OW_SIM_CONSTANT, /* a = delay */
	OW_SIM_NORMAL,   /* a = mean, b = standard deviation; redrawn below 0 */
	OW_SIM_WEIBULL,  /* a = scale, b = shape: F(x) = 1 - exp(-(x/a)^b) */
	OW_SIM_PARETO,   /* a = scale, b = shape: F(x) = 1 - (a/x)^b, x >= a */
	OW_SIM_FIFO,     /* a = bits/s, b = buffer in bytes (0 = unlimited): tail drop */
	OW_SIM_RED,      /* a = bits/s: random early detection, parameters in sim/queue.h */
};

struct ow_sim_model {
	enum ow_sim_delay_kind kind;
	double a, b;
	double weight; /* share of the packets (or flows) that take this path */
};

#define OW_SIM_PATHS 8
struct ow_sim_delay {
	struct ow_sim_model path[OW_SIM_PATHS];
	unsigned paths;
	bool by_flow; /* a flow stays on its path (ECMP); else every packet chooses */
};

struct ow_sim_loss {
	double ratio;
	double episode; /* mean packets of a loss episode; 0 = packets are lost independently */
};

enum ow_sim_size_kind { OW_SIM_SIZE_IMIX, OW_SIM_SIZE_CONSTANT, OW_SIM_SIZE_UNIFORM };
struct ow_sim_size {
	enum ow_sim_size_kind kind;
	uint32_t min, max; /* constant: both the same */
};

/* AUTO: Ethernet, or as in the traffic file if its frames pass unchanged. */
enum ow_sim_link {
	OW_SIM_LINK_AUTO,
	OW_SIM_ETHERNET,
	OW_SIM_RAW,
	OW_SIM_SLL,
	OW_SIM_SLL2,
	OW_SIM_PPP,
	OW_SIM_NULL,
	OW_SIM_LOOP,
	OW_SIM_RADIOTAP,
	OW_SIM_LINKS
};

enum ow_sim_encap_kind {
	OW_SIM_VLAN,
	OW_SIM_QINQ,
	OW_SIM_MPLS,
	OW_SIM_PPPOE,
	OW_SIM_VXLAN,
	OW_SIM_GENEVE,
	OW_SIM_GRE,
	OW_SIM_IPIP,
	OW_SIM_GTPU,
	OW_SIM_ENCAPS
};
struct ow_sim_encap {
	enum ow_sim_encap_kind kind;
	uint32_t id; /* VLAN id, label, session, VNI, TEID */
};

#define OW_SIM_ENCAP_MAX 6

/* How one measurement point sees the traffic and stores it. */
struct ow_sim_side {
	const char *path;
	enum ow_sim_link link;
	struct ow_sim_encap encap[OW_SIM_ENCAP_MAX]; /* outermost first */
	unsigned encaps;
	bool superframes; /* a host with TSO and GRO: bursts are one frame */
	bool zero_timestamps;
	int64_t skip_ns;  /* the capture starts this much later than the traffic */
	int64_t early_ns; /* and ends this much before the last packet is sent */
	enum ow_file_format format;
	bool microseconds; /* resolution of the file; false = nanoseconds */
	bool big_endian, gzip;
	uint32_t snaplen;    /* 0 = whole frames */
	unsigned interfaces; /* pcapng: interface blocks, frames go round robin; 0 = 1 */
	int64_t tsoffset_s;  /* pcapng: if_tsoffset */
	int tsresol;         /* pcapng: if_tsresol byte, 9 .. 12 or 0x80 | 30 .. 34; 0 = as `microseconds` says */
};

struct ow_sim_options {
	uint64_t seed;
	/* Traffic */
	uint64_t packets; /* on the wire, both directions together; 0 = 1 million, or the whole traffic file */
	double rate_pps;
	bool constant_rate; /* else Poisson */
	int64_t start_ns;   /* time of the start, since the Unix epoch */
	struct ow_sim_size size;
	uint32_t flows;
	double flow_skew;          /* Zipf exponent; 0 = all flows equal */
	double tcp;                /* share of the flows that are TCP, the others are UDP */
	double ipv6;               /* share of the flows */
	double ipv6_extensions;    /* share of the IPv6 packets */
	double fragments;          /* share of the UDP datagrams that are cut in two */
	double identical;          /* share of the packets that are identical */
	double retransmissions;    /* share of the TCP segments that are sent again */
	double reverse;            /* share of the packets that go from B to A */
	const char *traffic;       /* capture file that gives packets and times instead of all the above; NULL = none */
	bool ip_only;              /* leave out frames of that file that are not IP packets */
	uint32_t mtu;              /* of the segments of superframes */
	uint32_t superframe_bytes; /* largest IP packet of a superframe */
	/* The path */
	struct ow_sim_delay delay;
	int64_t base_delay_ns; /* added to every delay */
	bool in_order;         /* no packet overtakes another */
	struct ow_sim_loss loss;
	double duplicate;
	uint32_t tuple[4];   /* FineComb: pre-start, post-start, pre-end, post-end packets at interval boundaries */
	int64_t interval_ns; /* for the tuple */
	bool router;         /* TTL, MACs, IPv4 checksum */
	int dscp;            /* -1 = unchanged */
	double ecn_mark;
	bool nat;
	/* The clocks, and other errors of a capture */
	int64_t offset_ns; /* B's clock is ahead by this */
	double drift_ppb;  /* and gains this many ns a second */
	double backwards;  /* share of the records with a timestamp that is a few us too early */
	struct ow_sim_side side[OW_SIDES];
	int64_t rotate_ns; /* a new file each time, see sim/rotation.h; 0 = one file */
	/* Called from time to time with the share done, 0..1; NULL = not wanted. */
	void (*on_progress)(void *arg, double done);
	void *arg;
};

struct ow_sim_truth {
	struct ow_result direction[OW_DIRECTIONS];
	bool has_direction[OW_DIRECTIONS];
	uint64_t records[OW_SIDES];     /* frames written */
	uint64_t outside[OW_SIDES];     /* wire packets in the file that the truth does not count (the other file missed
	                                   them) */
	uint64_t superframes[OW_SIDES]; /* frames that contain more than one wire packet */
	uint64_t retransmitted, identical, fragments;
	uint64_t dropped;          /* losses made by a queue, out of `lost` */
	uint64_t drifted[4];       /* FineComb: packets that changed their interval, by type */
	int64_t first_ns, last_ns; /* true times of the first and the last packet sent */
	int64_t offset_ns;         /* as in the options: to be subtracted from B's timestamps */
	double drift_ppb;
	uint64_t seed;
};

void ow_sim_defaults(struct ow_sim_options *ret_options);

/* -EINVAL: options that contradict each other, the message names them as on the command line. Else -errno of I/O. */
int ow_sim_run(const struct ow_sim_options *options, struct ow_sim_truth *ret_truth, struct ow_error *err);

/* The truth as JSON: the RESULT of A to B at the top, more fields after it. */
int ow_sim_truth_write(const char *path, const struct ow_sim_truth *truth, struct ow_error *err);

/* Parsers of the command line's notations. */
int ow_sim_delay_parse(const char *text, struct ow_sim_delay *ret_delay, struct ow_error *err);
int ow_sim_loss_parse(const char *text, struct ow_sim_loss *ret_loss, struct ow_error *err);
int ow_sim_size_parse(const char *text, struct ow_sim_size *ret_size, struct ow_error *err);
int ow_sim_link_parse(const char *text, enum ow_sim_link *ret_link, struct ow_error *err);
int ow_sim_encap_parse(const char *text, struct ow_sim_side *side, struct ow_error *err);
