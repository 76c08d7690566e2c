/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "active/probes.h"
#include "active/stamp_socket.h"
#include "active/stamp.h"

/*
 * A STAMP sender: sends probes to several reflectors as a Poisson process, so that they are a fair sample of what the
 * network does (RFC 7312, RFC 2330 section 11.1), and computes results for each (active/probes.h). One thread, driven
 * by its file descriptor.
 */
struct ow_prober;

#define OW_PROBER_TARGETS_MAX 256
#define OW_PROBER_RATE_MAX    1000.0  /* probes a second to one reflector */
#define OW_PROBER_TOTAL_MAX   10000.0 /* to all reflectors together */
#define OW_PROBER_RATE_MIN    (1.0 / 3600)
#define OW_PROBER_LENGTH_MAX  (300 * INT64_C(1000000000))
#define OW_PROBER_WAIT_MAX    (60 * INT64_C(1000000000))

struct ow_prober_target {
	const char *address; /* "host", "host:port" */
	const char *segment, *class_name, *from, *to;
};

struct ow_prober_options {
	const struct ow_prober_target *target;
	unsigned targets;
	double rate_pps;                    /* to each reflector */
	int64_t length_ns, wait_ns, run_ns; /* run_ns: 0 = until ow_prober_stop */
	const struct ow_stamp_key *key;
	size_t size; /* octets of UDP payload; 0 = the base */
	uint8_t dscp;
	bool ptp;
	int family; /* AF_UNSPEC, AF_INET6 */
	const char *hardware;
	uint64_t seed; /* for the spacing and the session identifiers */
	ow_probes_sink sink;
	void *arg;
};

/* Counts of one reflector. replies = answers + duplicates + late + unasked + malformed + refused. */
struct ow_prober_counts {
	uint64_t sent, failed; /* failed: the kernel refused it; it was not sent */
	uint64_t replies, verdict[OW_PROBES_VERDICTS];
	uint64_t malformed, refused; /* too short; HMAC of another key */
	uint64_t unreachable;        /* reported by ICMP */
	uint64_t untimed;            /* replies with invalid times */
	/* T1: by the card, by the kernel, or read before sending; T4: by the card or by the kernel. */
	uint64_t sent_by_card, sent_by_kernel, received_by_card, received_by_kernel;
	uint64_t gaps; /* time from T1 in the packet to the kernel's timestamp */
	int64_t gap_sum_ns, gap_max_ns;
	unsigned hops_there, hops_back; /* from the TTLs of the last reply, if they started at 255 */
	bool ttl_there, ttl_back;       /* known */
};

/* Resolves names, which can block, and opens all sockets. */
int ow_prober_create(const struct ow_prober_options *options, struct ow_prober **ret_prober, struct ow_error *err);
void ow_prober_free(struct ow_prober *prober);
int ow_prober_fd(const struct ow_prober *prober);
/* Sets the state of this host's clock; to be called regularly. */
void ow_prober_clock(struct ow_prober *prober, const struct ow_clock_state *clock);
/* Sends probes that are due and reads replies. 1: the run is over, and all results were reported. */
int ow_prober_work(struct ow_prober *prober, struct ow_error *err);
/* Sends no more probes, but waits for replies. A second call also ends the waiting. */
void ow_prober_stop(struct ow_prober *prober);

void ow_prober_total(const struct ow_prober *prober, unsigned target, enum ow_probes_lane lane,
                     struct ow_interval_result *ret_total);
void ow_prober_counts(const struct ow_prober *prober, unsigned target, struct ow_prober_counts *ret_counts);
