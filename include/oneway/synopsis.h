/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_SYNOPSIS_H
#define ONEWAY_SYNOPSIS_H

#include <oneway/error.h>
#include <oneway/result.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Delay and loss from synopses of your own records. Two points, A (sending) and B (receiving), see the same records,
 * each at its own time. Each point adds the records that it saw in an interval to a sketch: a synopsis, the number of
 * records, and, for methods that need them, the records themselves. One point sends its sketch as bytes. The other
 * estimates from both sketches which records were lost and how long they took, with intervals of confidence.
 *
 * Memory: every sketch belongs to the caller, who frees it with ow_sketch_free. The library keeps no pointer to its
 * arguments.
 * Threads: different sketches are independent. A sketch is used by one thread at a time, also by functions that only
 * read it.
 * Errors: functions return 0 or a negative errno and then fill err (which may be NULL) with one line. After a failure
 * all arguments are unchanged, unless documented otherwise.
 *   -EINVAL  an argument out of range, sketches that do not fit together, bytes that are not a sketch
 *   -ERANGE  no allowed sketch reaches the wanted error
 *   -E2BIG   a parameter that this version of the library does not know
 *   -ENOMEM
 * Versions: structs that begin with their size grow only at their end. docs/library.md has the details.
 */

/* The methods. The values are those of the encoding and do not change. */
enum ow_sketch_kind {
	/* sums of times in buckets, without records: mean, deviation, loss. Needs records in order */
	OW_SKETCH_LDA = 1,
	OW_SKETCH_FINECOMB, /* LDA that detects reordering at the ends of the interval, and repairs some of it */
	OW_SKETCH_SRDA,     /* the simple form of RDA */
	/* finds the records that only one point saw; loss and mean are exact if it finds them all */
	OW_SKETCH_RDA,
	OW_SKETCH_FOLD,    /* the same in fewer bytes, with quantiles. The default, which oneway itself uses */
	OW_SKETCH_AMS,     /* counters: only the number of records that only one point saw */
	OW_SKETCH_BOTTOMK, /* a sample that is the same at both points: quantiles, mean, loss */
	OW_SKETCH_MOMENTS, /* sums of times by bucket, for buckets where both points saw the same records */
	OW_SKETCH_MINHASH, /* a rough number of records that only one point saw; for comparisons */
};

enum ow_sketch_keep { OW_KEEP_AUTO, OW_KEEP_NOT, OW_KEEP_RECORDS };

#define OW_SKETCH_BANKS_MAX    8
#define OW_SKETCH_MEMORY_MAX   (64u << 20) /* bytes of a synopsis */
#define OW_SKETCH_RECORDS_MAX  (1u << 28)  /* records that a sketch keeps */
#define OW_SKETCH_EXPECTED_MAX 1e12        /* records of an interval that a sketch can be sized for */

/*
 * The parameters of a sketch: its shape (if `cells` is not 0), its bytes of memory (if `memory` is not 0), or the
 * wanted error. ow_sketch_defaults fills in the rest. Both points must use the same parameters and the same seed.
 */
struct ow_sketch_params {
	size_t size; /* sizeof(struct ow_sketch_params) */
	enum ow_sketch_kind kind;
	/*
	 * Whether to keep the records (16 bytes each; 32 while estimating). OW_KEEP_AUTO: FOLD, RDA, SRDA and MOMENTS
	 * keep them, because they need them for delays; OW_KEEP_RECORDS is -EINVAL for the others. Kept records may
	 * have the same id: the n-th is compared with the n-th at the other point, in the order of time. Without
	 * records, ids must be different.
	 */
	enum ow_sketch_keep keep;
	/* A secret of the two points; any number. Somebody who knows it can choose records that collide. */
	uint64_t seed;

	/* What to expect. Used if `cells` is 0. */
	double records; /* of an interval, 1 to OW_SKETCH_EXPECTED_MAX; default 1e6 */
	/*
	 * share of them that is lost, 0 to 0.99; default 0.01. A value that is too high is better than one that is too
	 * low
	 */
	double loss;
	double reorder;   /* share of them that the other point counts in another interval, 0 to 1; default 0 */
	double variation; /* standard deviation of the delays divided by their mean, above 0 to 1000; default 1 */

	/* Bytes of memory of the synopsis, at most OW_SKETCH_MEMORY_MAX; it may use less. 0 = sized by the error. */
	size_t memory;
	/*
	 * The relative error that holds in 95 % of intervals if all is as expected, above 0 to below 1; default 0.05.
	 * LDA, FINECOMB: of the mean. SRDA, RDA, MOMENTS: of the standard deviation (their mean is exact). AMS: of the
	 * number of differences. BOTTOMK: of the rank of the median (0.01: between the quantiles 0.49 and 0.51).
	 * FOLD is sized for the expected differences, whatever the error. MINHASH cannot be sized by error: -EINVAL.
	 */
	double error;

	/*
	 * The shape. cells: buckets, cells, counters, entries or slots; of each bank where there are banks.
	 *   LDA, FINECOMB  1 to 8 banks, share[i] of the records that bank i takes; shares fall strictly. One bank
	 *                  with share[0] = 0 takes all. FINECOMB: `stash` entries at each end of the interval
	 *   RDA            1 to 8 banks           SRDA    1 to 4 cells for each record, as `banks`
	 *   FOLD           3 or 4 banks, cells 1 to 65536; 65536 can be encoded in fewer, see ow_sketch_expect
	 *   AMS            4 to 65536 counters, a power of two
	 *   BOTTOMK        1 to 2^21 entries      MOMENTS, MINHASH   buckets, slots
	 * banks = 0: the default of the kind (1; 4 for RDA, SRDA and FOLD).
	 */
	uint32_t cells, banks, stash;
	double share[OW_SKETCH_BANKS_MAX];
};

/* A record: its name, the same at both points, and the time when this point saw it. */
struct ow_sketch_record {
	uint64_t id;     /* any number; need not be random */
	int64_t time_ns; /* nanoseconds since any moment that is the same for both points */
};

enum ow_sketch_status {
	OW_SKETCH_NONE,      /* not known: `reason` gives the reason; the numbers are 0 */
	OW_SKETCH_ESTIMATED, /* low <= value <= high contains the truth in 95 % of cases; high may be INFINITY */
	OW_SKETCH_EXACT,     /* low = value = high */
};

/* Does not change within liboneway.so.0. */
struct ow_sketch_value {
	enum ow_sketch_status status;
	double value, low, high;
	const char *reason; /* static English text if the status is NONE, otherwise NULL */
};

struct ow_sketch_estimate {
	size_t size;                        /* set it to sizeof(struct ow_sketch_estimate) before the call */
	uint64_t sent, received;            /* records of A and of B */
	uint64_t samples;                   /* number of delays that the numbers are based on */
	bool complete;                      /* every difference between the points is known */
	struct ow_sketch_value lost, extra; /* records that only A saw, and that only B saw, in the interval */
	struct ow_sketch_value loss_ratio;  /* lost / sent */
	struct ow_sketch_value differences; /* records that only one point saw */
	struct ow_sketch_value mean_ns, stddev_ns;
	struct ow_sketch_value quantile_ns[OW_QUANTILES]; /* ow_quantile_level */
};

struct ow_sketch;

/* Fills `size` bytes of parameters with the defaults. Programs call ow_sketch_defaults. */
void ow_sketch_params_init(struct ow_sketch_params *ret_params, size_t size, enum ow_sketch_kind kind);

/* The parameters of a kind, sized for 1e6 records of which 1 % is lost, seed 0. */
static inline void ow_sketch_defaults(struct ow_sketch_params *ret_params, enum ow_sketch_kind kind)
{
	ow_sketch_params_init(ret_params, sizeof *ret_params, kind);
}

/* Creates an empty sketch. */
int ow_sketch_create(const struct ow_sketch_params *params, struct ow_sketch **ret_sketch, struct ow_error *err);
/* Does nothing for NULL. */
void ow_sketch_free(struct ow_sketch *sketch);
/* Makes the sketch empty, for the next interval. */
void ow_sketch_reset(struct ow_sketch *sketch);

/* The bytes of the synopsis, without kept records. */
size_t ow_sketch_memory(const struct ow_sketch *sketch);
/* A short description of kind and parameters, always terminated: "lda: 1024 buckets, p 0.1". */
void ow_sketch_describe(const struct ow_sketch *sketch, char *text, size_t size);

/* Adds records of the interval, in the order in which they were seen; FINECOMB and LDA depend on the order. */
int ow_sketch_add(struct ow_sketch *sketch, const struct ow_sketch_record *records, size_t count, struct ow_error *err);
/* Adds one record that is named by bytes: they are hashed with the seed. */
int ow_sketch_add_bytes(struct ow_sketch *sketch, const void *bytes, size_t size, int64_t time_ns,
                        struct ow_error *err);
/*
 * FINECOMB, receiving point: adds records from just before (after = false) or after the interval, which it uses for
 * repairs.
 */
int ow_sketch_add_near(struct ow_sketch *sketch, bool after, const struct ow_sketch_record *records, size_t count,
                       struct ow_error *err);

/* sketch += other: for two queues, ports or machines of one point. Parameters and seed must be equal. */
int ow_sketch_merge(struct ow_sketch *sketch, struct ow_sketch *other, struct ow_error *err);
/*
 * sketch -= other: removes records that were added before, such as an earlier state of a growing sketch. -EINVAL if
 * other has more records; if both keep records and other has one that sketch does not have; and for kinds that do not
 * support it (BOTTOMK, MINHASH). A sketch without kept records cannot check that it contained the others.
 */
int ow_sketch_subtract(struct ow_sketch *sketch, struct ow_sketch *other, struct ow_error *err);

/*
 * FOLD of 65536 cells: the encoding will have room for this many differences between the points. No effect on other
 * kinds.
 */
void ow_sketch_expect(struct ow_sketch *sketch, double differences);
/*
 * Encodes a sketch; the bytes are the same on every machine. with_records: include the records that it keeps, if any,
 * 16 bytes each. Without them a FOLD gives losses but no delays, and RDA and SRDA give less about delays. The caller
 * frees *ret_bytes with free().
 */
int ow_sketch_encode(struct ow_sketch *sketch, bool with_records, uint8_t **ret_bytes, size_t *ret_size,
                     struct ow_error *err);
/*
 * Decodes a sketch from bytes of any origin: any bytes are a sketch or an error. It uses at most OW_SKETCH_MEMORY_MAX
 * and 16 bytes for each record that the bytes contain. The seed must be that of the sketch.
 */
int ow_sketch_decode(const uint8_t *bytes, size_t size, uint64_t seed, struct ow_sketch **ret_sketch,
                     struct ow_error *err);

/*
 * Estimates what happened between A and B. a: of the sending point, b: of the receiving one; one of them may be
 * decoded. Every number is exact, estimated with a 95 % interval, or absent with a reason. ret_estimate->size must be
 * set. Time and memory are those of sorting the kept records.
 */
int ow_sketch_estimate(struct ow_sketch *a, struct ow_sketch *b, struct ow_sketch_estimate *ret_estimate,
                       struct ow_error *err);

#ifdef __cplusplus
}
#endif

#endif
