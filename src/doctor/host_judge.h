/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "capture/iface/iface.h"
#include "doctor/diagnoses.h"
#include "result/period.h"

#include <net/if.h>
#include <stdint.h>

/*
 * Judges whether this host can measure well. Facts come from doctor/host_facts.h or from a test; judging reads nothing
 * else. A fact that could not be read has the errno of the attempt, or -1, and its finding says so.
 */

/* Programs that are looked for, one bit each. */
enum ow_program {
	OW_PROGRAM_CHRONYD = 1,
	OW_PROGRAM_NTPD = 2,
	OW_PROGRAM_TIMESYNCD = 4,
	OW_PROGRAM_PTP4L = 8,
	OW_PROGRAM_PHC2SYS = 16,
	OW_PROGRAM_TS2PHC = 32,
	OW_PROGRAM_IRQBALANCE = 64,
};

struct ow_clock_facts {
	int error; /* of adjtimex; if set, the next five members are not valid */
	struct ow_clock_state kernel;
	int64_t estimated_ns; /* estimated error, as reported by the daemon to the kernel */
	double rate_ppm;      /* how much faster than its oscillator the kernel makes the clock run */
	int leap;             /* leap second at the end of this UTC day: 1 inserted, -1 deleted */
	int tai_s;            /* TAI - UTC; 0 = not set */
	bool chrony;          /* chronyd answers; then: */
	struct ow_clock_state chrony_state;
	unsigned programs;     /* enum ow_program */
	bool programs_hidden;  /* processes of other users are not visible */
	char source[32];       /* current clock source; "" = not known */
	char alternatives[96]; /* all available clock sources */
};
void ow_judge_clock(struct ow_diagnoses *findings, const struct ow_clock_facts *facts);
#define OW_TAI_UTC_S 37 /* since 2017 */

struct ow_host_facts {
	unsigned kernel_major, kernel_minor; /* 0.0 = not known */
	char kernel[64];
	int packet_error; /* of socket(AF_PACKET) */
	bool net_raw, net_admin;
	bool wants_net_admin;                   /* the configuration asks for hardware timestamps */
	bool wants_kernel;                      /* the configuration asks for recording in the kernel */
	char no_kernel[160];                    /* why that is not possible; "" = it is */
	uint64_t wanted_memory, wanted_ring;    /* bytes */
	uint64_t wanted_charged;                /* of wanted_ring: rings that the kernel charges to the cgroup */
	int64_t memory_available, memory_limit; /* -1 not known; limit of the cgroup, INT64_MAX = none */
	unsigned cpus, wanted_threads;          /* cpus: CPUs that this process may use; 0 = not known */
	double cpu_quota;                       /* of the cgroup, in CPUs; 0 = none */
	char isolated[64];                      /* CPUs that the scheduler does not use by default */
	char governor[32];                      /* CPU frequency governor; "" = not known or none */
	uint64_t files, wanted_files;           /* open files */
	int64_t backlog_dropped;                /* packets since boot, all interfaces; -1 = not known */
	int stamp_early;                        /* net.core.netdev_tstamp_prequeue; -1 = not known */
};
void ow_judge_host(struct ow_diagnoses *findings, const struct ow_host_facts *facts);

enum ow_feature {
	OW_FEATURE_TSO4,
	OW_FEATURE_TSO6,
	OW_FEATURE_GSO,
	OW_FEATURE_GRO,
	OW_FEATURE_GRO_HW,
	OW_FEATURE_LRO,
	OW_FEATURE_UDP_SEGMENTS, /* sends UDP superframes */
	OW_FEATURE_UDP_GRO,      /* joins UDP packets that the host forwards */
	OW_FEATURE_GRO_LIST,
	OW_FEATURE_SCTP_SEGMENTS,
	OW_FEATURE_VLAN,
	OW_FEATURE_RX_CHECKSUM,
	OW_FEATURE_RX_ALL,
	OW_FEATURES
};

struct ow_link_counters {
	uint64_t in, out;                 /* packets */
	uint64_t missed;                  /* the card had no room: no capture on this host has seen them */
	uint64_t in_dropped, in_errors;   /* dropped by the kernel; damaged */
	uint64_t out_dropped, out_errors; /* after a capture has seen them */
};

struct ow_link_facts {
	char name[IF_NAMESIZE];
	unsigned index, master_index, parent_index, hardware /* ARPHRD_ */;
	bool up, carrier, loopback, promiscuous, xdp, foreign /* foreign: its other end is in another namespace */;
	char kind[16];                             /* veth, bridge, vlan, ...; "" = a card, or not known */
	char master[IF_NAMESIZE], master_kind[16]; /* "" = not a member */
	char parent[IF_NAMESIZE];                  /* a VLAN's interface; "" = none, or in another namespace */
	char qdisc[16];                            /* of packets that go out; "" = not known */
	uint32_t mtu, gso_max;
	struct ow_link_counters counters;
	bool detailed; /* the members below are filled in */
	char driver[32];
	int64_t speed_mbps; /* -1 = not known */
	int full_duplex;    /* -1 = not known */
	int feature_error;
	bool feature[OW_FEATURES], changeable[OW_FEATURES];
	int ring_error;
	uint32_t ring_in, ring_in_max, ring_out, ring_out_max;
	int coalesce_error;
	uint32_t coalesce_us;
	bool coalesce_adaptive;
	int stamp_error;
	uint32_t stamp_flags, stamp_filters; /* SOF_TIMESTAMPING_ and bits of HWTSTAMP_FILTER_ */
	bool stamp_active;                   /* the card timestamps all packets now */
	int phc;                             /* number of its clock, -1 = none */
	int phc_error;
	int64_t phc_ahead_ns;            /* relative to this host's clock */
	unsigned queues, irqs, irq_cpus; /* for receiving; 0 = not known */
	bool wants_hardware;             /* the configuration asks for hardware timestamps */
	bool wants_kernel;               /* it is to be recorded in the kernel, and may be */
	const char *needs_ring;          /* why the configuration excludes that although it asks for it, or NULL */
	const char *mixed_with; /* an interface of a segment of it that is recorded in the other way, or NULL */
	bool faces_away;        /* all its segments have 'facing: away' */
	uint64_t capture_ring, capture_ring_usual; /* bytes for each thread: as configured, and as the speed asks for */
	uint64_t capture_speed;                    /* bit/s that it follows; 0 = not known */
};
/*
 * Judges what the interface is and the level to measure at, link, drops, queues, offloads and timestamps. kernel: as in
 * the host's facts.
 */
void ow_judge_link(struct ow_diagnoses *findings, const struct ow_link_facts *facts, const struct ow_host_facts *host,
                   const struct ow_clock_facts *clock);
void ow_judge_offloads(struct ow_diagnoses *findings, const struct ow_link_facts *facts,
                       const struct ow_host_facts *host);
void ow_judge_stamps(struct ow_diagnoses *findings, const struct ow_link_facts *facts,
                     const struct ow_clock_facts *clock);

/* A short capture. */
struct ow_trial_facts {
	char error[256];
	int code; /* errno of the error; 0 = it ran */
	char kind[16];
	char note[160]; /* why it is not recorded in the kernel, if it is to be */
	double seconds;
	struct ow_iface_counts counts;
	uint64_t in, out, superframes;    /* frames */
	uint64_t packets;                 /* IP packets on the wire, after cutting superframes */
	uint64_t uncut;                   /* superframes that could not be cut */
	int64_t stamp_ahead_ns;           /* relative to this host's clock; of the frame with the largest difference */
	struct ow_link_counters counters; /* increase during the trial */
};
void ow_judge_trial(struct ow_diagnoses *findings, const struct ow_link_facts *link,
                    const struct ow_trial_facts *facts);

/* A configuration, and the things that it names. */
struct ow_setup_facts {
	const char *path, *point;
	unsigned interfaces, segments;
	int code; /* errno of ow_config_check; EACCES with `denied`: a file that this user may not read */
	bool denied;
	char error[256];
};
void ow_judge_setup(struct ow_diagnoses *findings, const struct ow_setup_facts *facts);
/* An interface that the configuration names and that does not exist on this host. */
void ow_judge_absent(struct ow_diagnoses *findings, const char *name, const char *near);

struct ow_store_facts {
	const char *path;
	int error;
	uint64_t free_bytes, day_bytes; /* day_bytes: size of the results of a day */
};
void ow_judge_store(struct ow_diagnoses *findings, const struct ow_store_facts *facts);

/* What the store has of a segment after a year: results of intervals, minutes, hours and days. */
struct ow_history_facts {
	const char *segment;
	double days[OW_PERIODS];    /* how long each is kept */
	uint64_t bytes[OW_PERIODS]; /* and what it takes */
	uint64_t all_bytes;         /* of all segments */
	uint64_t most_bytes;        /* store_max; 0 = no limit */
};
void ow_judge_history(struct ow_diagnoses *findings, const struct ow_history_facts *facts);

struct ow_peer_facts {
	const char *peer, *address;
	char error[256]; /* "" = the peer answers */
	int64_t took_ns; /* time to connect */
};
void ow_judge_peer(struct ow_diagnoses *findings, const struct ow_peer_facts *facts);

struct ow_listen_facts {
	const char *address;
	int code; /* errno; 0 = the address is free */
	char error[256];
};
void ow_judge_listen(struct ow_diagnoses *findings, const struct ow_listen_facts *facts);

struct ow_certificate_facts {
	const char *path;
	char error[256];
	double days_left;  /* negative = expired */
	double days_until; /* positive = not valid yet */
	bool renewed;      /* by the fleet, when half of its time is over */
};
void ow_judge_certificate(struct ow_diagnoses *findings, const struct ow_certificate_facts *facts);
