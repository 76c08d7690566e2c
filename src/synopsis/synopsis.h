/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SYNOPSIS_SYNOPSIS_H
#define OW_SYNOPSIS_SYNOPSIS_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a measurement point keeps of an interval's packets: one interface for all structures (lda, finecomb, srda, rda,
 * fold, ams, bottomk, moments). Two synopses can be merged, subtracted or compared only if their kind, parameters and
 * seed agree; everything else is refused with -EINVAL and leaves them as they were.
 *
 * Times are nanoseconds since the start of the interval; sums of times are modulo 2^64 and a difference of two such
 * sums is read as signed, so that wrap-around is harmless. Positive delay = later at B than at A.
 */

/* A packet as a synopsis sees it. The id is keyed and uniformly distributed (packet/identity). */
struct ow_sighting {
	uint64_t id;
	int64_t time_ns;
};

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
 * What a synopsis is sized for. Each structure has, beside its own constructor, one that spends a number of bytes (as
 * ops->memory counts them, never more) as its paper recommends for this traffic:
 *   int ow_NAME_create_for(size_t memory, const struct ow_sizing *sizing, uint64_t seed, struct ow_synopsis
 * **ret_synopsis); -EINVAL when the memory is too little for the structure, -ENOMEM.
 */
struct ow_sizing {
	double packets; /* of an interval */
	double loss;    /* share of them that is lost */
	double reorder; /* share of them that another interval counts at the other point (FineComb's rho) */
};

struct ow_synopsis;

struct ow_synopsis_ops {
	const char *name;
	enum ow_synopsis_kind kind;
	void (*free)(struct ow_synopsis *synopsis);
	void (*reset)(struct ow_synopsis *synopsis);
	/* Bytes of memory of the structure (a router's SRAM), without this header. */
	size_t (*memory)(const struct ow_synopsis *synopsis);
	/* In batches: no allocation, lock or system call. */
	void (*add)(struct ow_synopsis *synopsis, const struct ow_sighting *stamps, size_t count);
	/* Takes packets out again that were added. NULL where the structure cannot (bottomk, minhash). */
	void (*remove)(struct ow_synopsis *synopsis, const struct ow_sighting *stamps, size_t count);
	/* this += other: several queues, ports or machines of one point. */
	int (*merge)(struct ow_synopsis *synopsis, const struct ow_synopsis *other);
	/* this -= other: what the two points do not share. NULL where it has no meaning. */
	int (*subtract)(struct ow_synopsis *synopsis, const struct ow_synopsis *other);
	/* The encoding, after the common header that ow_synopsis_encode writes: parameters, then contents. */
	size_t (*encoded_size)(const struct ow_synopsis *synopsis);
	void (*encode)(const struct ow_synopsis *synopsis, uint8_t *bytes);
	/* Any bytes give a valid synopsis or an error that names what is wrong; sizes are capped. */
	int (*decode)(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
	              struct ow_error *err);
	/* Same parameters? (Kind and seed are compared by the caller.) */
	bool (*same_shape)(const struct ow_synopsis *a, const struct ow_synopsis *b);
	/* The parameters in a few words for people, as snprintf: "2 banks of 1024, p 0.02". May be NULL. */
	void (*describe)(const struct ow_synopsis *synopsis, char *text, size_t size);
};

/* The first member of every structure. */
struct ow_synopsis {
	const struct ow_synopsis_ops *ops;
	uint64_t seed; /* secret, of the session: positions, sampling and checks come from it */
};

/* Largest encoding that is accepted, and so the largest synopsis. */
#define OW_SYNOPSIS_BYTES_MAX (64u << 20)

/* The structure of this kind, or NULL. */
const struct ow_synopsis_ops *ow_synopsis_ops_of(enum ow_synopsis_kind kind);

/* What the ops say, with the checks of kind, seed and shape in front. NULL is fine for free. */
void ow_synopsis_free(struct ow_synopsis *synopsis);
int ow_synopsis_merge(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err);
int ow_synopsis_subtract(struct ow_synopsis *synopsis, const struct ow_synopsis *other, struct ow_error *err);
/* -EINVAL with a line that names what differs. */
int ow_synopsis_comparable(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_error *err);

/*
 * Bytes, little-endian:   0  'O' 'W' 'S' version(1)
 *                         4  kind (1), reserved (3, zero)
 *                         8  check of the seed (8): a keyed hash, not the seed itself
 *                        16  size of what follows (8)
 *                        24  what the structure writes
 */
#define OW_SYNOPSIS_HEADER 24
size_t ow_synopsis_encoded_size(const struct ow_synopsis *synopsis);
void ow_synopsis_encode(const struct ow_synopsis *synopsis, uint8_t *bytes);
int ow_synopsis_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_synopsis **ret_synopsis,
                       struct ow_error *err);

#endif
