/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_DOCTOR_HOST_JUDGE_H
#define OW_DOCTOR_HOST_JUDGE_H

#include "base/clock.h"
#include "capture/iface/iface.h"
#include "doctor/diagnoses.h"

#include <net/if.h>
#include <stdint.h>

/*
 * Is this host fit to measure? Facts, and what they mean. Facts come from doctor/host_facts.h, or from a test: judging
 * asks nobody. A fact that could not be read has the errno of the attempt, or -1, and its finding says so.
 */

/* Programs that matter, a bit each. */
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
	int error; /* of adjtimex, then the next five are of no meaning */
	struct ow_clock_state kernel;
	int64_t estimated_ns; /* error, as the daemon told the kernel */
	double rate_ppm;      /* how much faster the kernel makes the clock run than its oscillator */
	int leap;             /* second to come at the end of the UTC day: 1 inserted, -1 deleted */
	int tai_s;            /* TAI - UTC; 0 = nobody has set it */
	bool chrony;          /* chronyd answers: */
	struct ow_clock_state chrony_state;
	unsigned programs;     /* enum ow_program */
	bool programs_hidden;  /* those of other users are not to be seen */
	char source[32];       /* clock source; "" = not known */
	char alternatives[96]; /* all of them */
};
void ow_judge_clock(struct ow_diagnoses *findings, const struct ow_clock_facts *facts);
#define OW_TAI_UTC_S 37 /* since 2017 */

struct ow_host_facts {
	unsigned kernel_major, kernel_minor; /* 0.0 = not known */
	char kernel[64];
	int packet_error; /* of socket(AF_PACKET) */
	bool net_raw, net_admin;
	bool wants_net_admin;                   /* the configuration asks for hardware timestamps */
	uint64_t wanted_memory, wanted_ring;    /* bytes */
	int64_t memory_available, memory_limit; /* -1 not known; limit of the cgroup, INT64_MAX = none */
	unsigned cpus, wanted_threads;          /* cpus: that this process may use; 0 = not known */
	double cpu_quota;                       /* of the cgroup, in CPUs; 0 = none */
	char isolated[64];                      /* CPUs that the scheduler leaves alone */
	char governor[32];                      /* of the CPUs' frequency; "" = not known or none */
	uint64_t files, wanted_files;           /* open at once */
	int64_t backlog_dropped;                /* packets, since boot, all interfaces; -1 = not known */
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
	OW_FEATURE_UDP_GRO,      /* joins UDP that it forwards */
	OW_FEATURE_GRO_LIST,
	OW_FEATURE_SCTP_SEGMENTS,
	OW_FEATURE_VLAN,
	OW_FEATURE_RX_CHECKSUM,
	OW_FEATURE_RX_ALL,
	OW_FEATURES
};

struct ow_link_counters {
	uint64_t in, out;                 /* packets */
	uint64_t missed;                  /* the card had no room: nobody here has seen them */
	uint64_t in_dropped, in_errors;   /* by the kernel; damaged */
	uint64_t out_dropped, out_errors; /* after the capture has seen them */
};

struct ow_link_facts {
	char name[IF_NAMESIZE];
	unsigned index, master_index, parent_index, hardware /* ARPHRD_ */;
	bool up, carrier, loopback, promiscuous, xdp, foreign /* its other end is in another namespace */;
	char kind[16];                             /* veth, bridge, vlan, ...; "" = a card, or it does not say */
	char master[IF_NAMESIZE], master_kind[16]; /* "" = member of nothing */
	char parent[IF_NAMESIZE];                  /* a VLAN's interface; "" = none or in another namespace */
	uint32_t mtu, gso_max;
	struct ow_link_counters counters;
	bool detailed; /* the rest is filled: */
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
	bool stamp_active;                   /* the card stamps all packets now */
	int phc;                             /* number of its clock, -1 = none */
	int phc_error;
	int64_t phc_ahead_ns;            /* of this host's clock */
	unsigned queues, irqs, irq_cpus; /* for receiving; 0 = not known */
	bool wants_hardware;             /* the configuration asks for its timestamps */
};
/* What it is and at which level to measure, link, drops, queues; offloads; timestamps. kernel as in the host's facts.
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
	double seconds;
	struct ow_iface_counts counts;
	uint64_t in, out, superframes;    /* frames */
	uint64_t packets;                 /* of IP on the wire, superframes cut */
	uint64_t uncut;                   /* superframes that stay one packet */
	int64_t stamp_ahead_ns;           /* of this host's clock: of the frame that was furthest, by its amount */
	struct ow_link_counters counters; /* how far these went up meanwhile */
};
void ow_judge_trial(struct ow_diagnoses *findings, const struct ow_link_facts *link,
                    const struct ow_trial_facts *facts);

/* A configuration, and what it names. */
struct ow_setup_facts {
	const char *path, *point;
	unsigned interfaces, segments;
	int code; /* errno of ow_config_check; EACCES with `denied`: a file that this user may not read */
	bool denied;
	char error[256];
};
void ow_judge_setup(struct ow_diagnoses *findings, const struct ow_setup_facts *facts);
/* An interface that the configuration names and this host does not have. */
void ow_judge_absent(struct ow_diagnoses *findings, const char *name, const char *near);

struct ow_store_facts {
	const char *path;
	int error;
	uint64_t free_bytes, day_bytes; /* what a day of results takes */
};
void ow_judge_store(struct ow_diagnoses *findings, const struct ow_store_facts *facts);

struct ow_peer_facts {
	const char *peer, *address;
	char error[256]; /* "" = it answers */
	int64_t took_ns; /* to connect */
};
void ow_judge_peer(struct ow_diagnoses *findings, const struct ow_peer_facts *facts);

struct ow_listen_facts {
	const char *address;
	int code; /* errno; 0 = it is free */
	char error[256];
};
void ow_judge_listen(struct ow_diagnoses *findings, const struct ow_listen_facts *facts);

struct ow_certificate_facts {
	const char *path;
	char error[256];
	double days_left;  /* below 0: over */
	double days_until; /* above 0: not valid yet */
};
void ow_judge_certificate(struct ow_diagnoses *findings, const struct ow_certificate_facts *facts);

#endif
