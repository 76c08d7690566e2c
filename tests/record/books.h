/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/interval_log.h"

/*
 * A recorder with an interval log for each lane, as programs use them: takes chunks, closes intervals, checks
 * invariants.
 */
#define BOOKS_LANES 16

struct books_lane {
	uint32_t lane;
	int64_t t0_ns, length_ns;
	bool removed;
	struct ow_interval_log *ledger;
	uint64_t chunk_packets, chunk_bytes; /* what the chunks say */
	struct ow_interval_packets **page;   /* closed so far, in order */
	size_t pages;
	uint64_t packets, stamps, unreadable; /* counts of the intervals */
};

struct books {
	struct ow_recorder *recorder;
	struct books_lane lane[BOOKS_LANES];
	unsigned lanes;
	/* of the interval logs: enough for files; interfaces do not wait for a reader that is delayed */
	size_t open_max;
	int64_t passed_ns;
	int failed; /* what the last take returned, if not 0 */
	unsigned failures;
	struct ow_error err;
};

/* Sources given as in ow_recorder_open; fails the test with its message if that does not work. */
void books_open(struct books *books, const struct ow_source_options *sources, unsigned count);
/* Returns its index. */
unsigned books_add(struct books *books, const struct ow_lane_options *options, size_t sightings_max);
void books_remove(struct books *books, unsigned index);
/* Takes once, after waiting for up to timeout_ms. */
void books_step(struct books *books, int timeout_ms);
/* Until the recorder has passed this time; INT64_MAX: all files are at their end. Fails after a long while. */
void books_run(struct books *books, int64_t until_ns);
void books_close(struct books *books);

/* All stamps of a lane with absolute times, sorted by id; the caller frees them. */
struct ow_sighting *books_stamps(const struct books *books, unsigned index, size_t *ret_count);

/* Level ip, whole packets, and a seed. */
struct ow_identity books_identity(uint64_t seed);
