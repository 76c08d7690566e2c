/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The summary of an interval's packets that a point keeps: one interface for all structures (lda, finecomb, srda, rda,
 * fold, ams, bottomk, moments). Two synopses can be merged, subtracted or compared only if their kind, parameters and
 * seed agree; otherwise the functions return -EINVAL and change nothing.
 *
 * Times are nanoseconds since the start of the interval. Sums of times are modulo 2^64, and a difference of two such
 * sums is signed, so that wrap-around is harmless. Positive delay = later at B than at A.
 */

/* A packet in a synopsis. The id is keyed and uniformly distributed (packet/identity). */
struct ow_sighting {
	uint64_t id;
	int64_t time_ns;
	uint32_t flow; /* number of its flow in the list that it belongs to (record/lane_flows.h); 0 = not known */
};
/* The earliest first. */
void ow_sightings_sort(struct ow_sighting *sightings, size_t count);
/* For qsort(3): equal ids, which identical packets have, stand together, the earliest first. */
int ow_sighting_by_id_and_time(const void *a, const void *b);

enum ow_synopsis_kind {
	OW_SYNOPSIS_LDA = 1,
	OW_SYNOPSIS_FINECOMB,
	OW_SYNOPSIS_SRDA,
	OW_SYNOPSIS_RDA,
	OW_SYNOPSIS_FOLD,
	OW_SYNOPSIS_AMS,
	OW_SYNOPSIS_BOTTOMK,
	OW_SYNOPSIS_MOMENTS,
	OW_SYNOPSIS_MINHASH,
};

/*
 * The traffic that a synopsis is sized for. Besides its own constructor, each structure has one that uses a number of
 * bytes (as counted by ops->memory, never more) as its paper recommends for this traffic:
 *
 *     int ow_NAME_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
 *                            struct ow_synopsis **ret_synopsis);
 *
 * -EINVAL if the memory is too small for the structure, -ENOMEM.
 */
struct ow_sizing {
	double packets; /* of an interval */
	double loss;    /* share of the packets that is lost */
	double reorder; /* share of the packets that the other point counts in another interval (FineComb's rho) */
};

struct ow_synopsis;

struct ow_synopsis_ops {
	const char *name;
	enum ow_synopsis_kind kind;
	void (*free)(struct ow_synopsis *synopsis);
	void (*reset)(struct ow_synopsis *synopsis);
	/* Bytes of memory of the structure (in a router: SRAM), without this header. */
	size_t (*memory)(const struct ow_synopsis *synopsis);
	/* Adds a batch without allocation, lock or system call. */
	void (*add)(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count);
	/* Removes packets that were added. NULL if the structure cannot (bottomk, minhash). */
	void (*remove)(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count);
	/* this += other, for several queues, ports or machines of one point. */
	int (*merge)(struct ow_synopsis *synopsis, const struct ow_synopsis *other);
	/* this -= other: what remains is what the two points do not share. NULL if it has no meaning. */
	int (*subtract)(struct ow_synopsis *synopsis, const struct ow_synopsis *other);
	/* The encoding without the common header, which ow_synopsis_encode writes: parameters, then contents. */
	size_t (*encoded_size)(const struct ow_synopsis *synopsis);
	void (*encode)(const struct ow_synopsis *synopsis, uint8_t *bytes);
	/* Any bytes give a valid synopsis or an error that says what is wrong; sizes are limited. */
	int (*decode)(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
	              struct ow_error *err);
	/* Whether the parameters are equal. (The caller compares kind and seed.) */
	bool (*same_shape)(const struct ow_synopsis *a, const struct ow_synopsis *b);
	/* A short description of the parameters for people, as snprintf: "2 banks of 1024, p 0.02". May be NULL. */
	void (*describe)(const struct ow_synopsis *synopsis, char *text, size_t size);
};

/* The first member of every structure. */
struct ow_synopsis {
	const struct ow_synopsis_ops *ops;
	uint64_t seed; /* secret of the session; positions, sampling and checks are derived from it */
};

/* The largest encoding that is accepted, and so the largest synopsis. */
#define OW_SYNOPSIS_BYTES_MAX (64u << 20)

/* As the ops, but they check kind, seed and shape first. free accepts NULL. */
static inline void ow_synopsis_free(struct ow_synopsis *synopsis)
{
	if (synopsis)
		synopsis->ops->free(synopsis);
}
int ow_synopsis_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err);
int ow_synopsis_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err);
/* -EINVAL with an error that names what differs. */
int ow_synopsis_comparable(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_error *err);

/*
 * The encoding, little-endian:
 *
 *    0  'O' 'W' 'S' version(1)
 *    4  kind (1), reserved (3, zero)
 *    8  check of the seed (8): a keyed hash, not the seed itself
 *   16  size of what follows (8)
 *   24  the encoding of the structure
 */
#define OW_SYNOPSIS_HEADER 24
size_t ow_synopsis_encoded_size(const struct ow_synopsis *synopsis);
void ow_synopsis_encode(const struct ow_synopsis *synopsis, uint8_t *bytes);
int ow_synopsis_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                       struct ow_error *err);
