/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "active/stamp_socket.h"
#include "active/stamp.h"

/*
 * A STAMP reflector: answers each probe with the times when it arrived and when the reply leaves. Stateful: it numbers
 * the replies of a session (address, port, session identifier), so that the sender learns in which direction a probe
 * was lost. It answers every sender, as routers do. It cannot be misused with forged addresses: a reply is never longer
 * than its probe, replies are never answered, the rate of replies is limited in total and for each source, and memory
 * does not grow.
 */
struct ow_reflector;

#define OW_REFLECTOR_TOTAL_PPS  10000
#define OW_REFLECTOR_SOURCE_PPS 1000

struct ow_reflector_options {
	const char *listen; /* "host:port", ":port"; NULL = all addresses, port 862 */
	const struct ow_stamp_key *key;
	bool stateless, ptp;
	double total_pps, source_pps;
	const char *hardware; /* see stamp_socket.h */
	uint64_t seed;        /* for hashes; must not be guessable */
};

/* received = answered + all counts of reasons not to answer; replies that could not be sent count as failed. */
struct ow_reflector_counts {
	uint64_t received, answered;
	uint64_t malformed; /* too short, or truncated */
	uint64_t refused;   /* HMAC of another key */
	uint64_t small;     /* the reply would be longer */
	uint64_t replies;   /* not probes, but replies of another reflector */
	uint64_t limited;   /* too many from this source, or from all */
	uint64_t crowded;   /* no room for another source or session */
	uint64_t failed;
	/* How much later than their T3 replies have left, by the kernel's timestamps. */
	uint64_t gaps;
	int64_t gap_sum_ns, gap_max_ns;
	uint64_t unstamped; /* requests without a timestamp of the kernel */
};

int ow_reflector_create(const struct ow_reflector_options *options, struct ow_reflector **ret_reflector,
                        struct ow_error *err);
void ow_reflector_free(struct ow_reflector *reflector);
/* Readable when there is something to do. */
int ow_reflector_fd(const struct ow_reflector *reflector);
/* Sets the state of the clock, for the error estimate in replies. */
void ow_reflector_clock(struct ow_reflector *reflector, const struct ow_clock_state *clock);
int ow_reflector_work(struct ow_reflector *reflector, struct ow_error *err);
void ow_reflector_counts(const struct ow_reflector *reflector, struct ow_reflector_counts *ret_counts);
/* The addresses that it listens on, "0.0.0.0:862 [::]:862". */
#define OW_REFLECTOR_TEXT 200
void ow_reflector_text(const struct ow_reflector *reflector, char text[OW_REFLECTOR_TEXT]);

/* For tests: answers one request without a socket. 1: `reply`, as long as the request, is to be sent; 0: no answer.
 * now_ns: of the steady clock; sent_ns: T3 of the reply. */
int ow_reflector_answer(struct ow_reflector *reflector, const struct ow_stamp_datagram *datagram,
                        const uint8_t *request, int64_t now_ns, int64_t sent_ns, uint8_t *reply);
