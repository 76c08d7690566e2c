/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ACTIVE_REFLECTOR_H
#define OW_ACTIVE_REFLECTOR_H

#include "base/clock.h"
#include "active/stamp_socket.h"
#include "active/stamp.h"

/*
 * A reflector of STAMP: answers each probe with when it came and when it leaves. Stateful: replies of a session
 * (address, port, session identifier) are numbered, which tells the sender which way a probe was lost. It serves
 * whoever asks, as routers do, and is of no use to those who ask in others' names: an answer is never longer than its
 * question, a reply is never answered, answers are limited in total and to each source, and memory does not grow.
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
	uint64_t seed;        /* of hashes: not to be guessed */
};

/* received = answered + each reason not to; answers that could not be sent count as failed. */
struct ow_reflector_counts {
	uint64_t received, answered;
	uint64_t malformed; /* too short, or cut */
	uint64_t refused;   /* HMAC of another key */
	uint64_t small;     /* an answer would be longer */
	uint64_t replies;   /* no probes: answers of another reflector */
	uint64_t limited;   /* too many of this source, or of all */
	uint64_t crowded;   /* no place for another source or session */
	uint64_t failed;
	/* How much later than the time in them replies have left, by the kernel's stamps. */
	uint64_t gaps;
	int64_t gap_sum_ns, gap_max_ns;
	uint64_t unstamped; /* requests that the kernel did not stamp */
};

int ow_reflector_create(const struct ow_reflector_options *options, struct ow_reflector **ret_reflector,
                        struct ow_error *err);
void ow_reflector_free(struct ow_reflector *reflector);
/* Readable when there is something to do. */
int ow_reflector_fd(const struct ow_reflector *reflector);
/* The clock that replies speak of. */
void ow_reflector_clock(struct ow_reflector *reflector, const struct ow_clock_state *clock);
int ow_reflector_work(struct ow_reflector *reflector, struct ow_error *err);
void ow_reflector_counts(const struct ow_reflector *reflector, struct ow_reflector_counts *ret_counts);
/* Where it listens, "0.0.0.0:862 [::]:862". */
#define OW_REFLECTOR_TEXT 200
void ow_reflector_text(const struct ow_reflector *reflector, char text[OW_REFLECTOR_TEXT]);

/* For tests: one request without a socket. 1: `reply`, as long as the request, is to be sent; 0: no answer. now_ns: of
 * the steady clock; sent_ns: the time that the reply shall tell. */
int ow_reflector_answer(struct ow_reflector *reflector, const struct ow_stamp_datagram *datagram,
                        const uint8_t *request, int64_t now_ns, int64_t sent_ns, uint8_t *reply);

#endif
