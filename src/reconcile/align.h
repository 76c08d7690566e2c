/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decides which of the identical packets that arrived is which of those that were sent. Takes the sending times and the
 * arrival times of the copies of one packet, each in order, and finds the order-preserving assignment with the lowest
 * cost: a lost packet, an arrival that is not a first arrival, and a change of the delay from one packet to the next
 * have a price. For each pair it gives the range of delays of all assignments that are about as plausible.
 */

/* What is known of the path and of the captures. Delay = arrival time minus sending time. */
struct ow_align_model {
	int64_t window_ns;       /* longest delay */
	int64_t soonest_ns;      /* shortest delay: below 0 as far as clocks are inaccurate */
	double sigma_ns;         /* usual change of the delay between neighbours */
	double jump;             /* largest price of a change of the delay: about -log of the share of large ones */
	double loss;             /* price of a lost packet: -log of the loss ratio */
	double copy;             /* price of an arrival that is a copy of the previous one */
	bool ranged;             /* the usual delays of other packets are known: */
	int64_t least_ns;        /* hardly any is shorter; 0 or below = not known */
	int64_t low_ns, high_ns; /* nearly all are within these, generously */
	bool causal;             /* delays below 0 are implausible */
	double plausible;   /* assignments that cost this much more than the best are not plausible; 0 = the usual */
	int64_t reorder_ns; /* packets that were sent this much later may have arrived before */
	/* What the captures cover; INT64_MIN and INT64_MAX: more than the time of these packets. */
	int64_t sent_from_ns, sent_to_ns, received_from_ns, received_to_ns;
	bool ends; /* no further copy follows */
	/* By arrival: the time when it was sent, if the path keeps order (fifo.h); NULL = not known. */
	const int64_t *not_before_ns, *not_after_ns;
};

#define OW_ALIGN_NO_COPIES \
	40.0 /* price of a copy if there are none: more than the price of slow packets that arrive together */
#define OW_ALIGN_COPY 7.0 /* the same if there are some */
#define OW_ALIGN_NONE UINT32_MAX
#define OW_ALIGN_KEPT 3 /* arrivals before an undecided one with which its delay is compared */

/* The state that is kept when some of the copies have been decided. */
struct ow_align_carry;

/* The result for one arrival. */
struct ow_align_arrival {
	uint32_t sent; /* index of the packet, or OW_ALIGN_NONE */
	bool forced;   /* paired only because both were left: it gives no information about the path */
	/* without a packet, and so soon after the previous arrival that it may be a copy of it */
	bool copy;
	int64_t less_ns, more_ns; /* its delay may be shorter, or longer, by this much */
	int64_t step_ns;          /* if several assignments are plausible: the difference of the nearest two */
};

struct ow_aligner;

int ow_aligner_create(struct ow_aligner **ret_aligner);
void ow_aligner_free(struct ow_aligner *aligner);

/*
 * Aligns `sents` sending times and `receiveds` arrival times, both ascending. *carry: from the decided copies before
 * these, or NULL. ret_arrival has room for `receiveds`; NULL: only ow_align_sigma is needed. Returns 0 or -ENOMEM.
 * crowded is set if more copies were in flight than are compared.
 */
int ow_align(struct ow_aligner *aligner, const struct ow_align_model *model, const struct ow_align_carry *carry,
             const int64_t *sent_ns, uint32_t sents, const int64_t *received_ns, uint32_t receiveds,
             struct ow_align_arrival *ret_arrival, bool *ret_crowded);

/* The same several times: the result gives the usual change of the delay and the price of a jump, with which it is
 * repeated. They are left in *model, if there are enough pairs to know them. */
int ow_align_fit(struct ow_aligner *aligner, struct ow_align_model *model, const struct ow_align_carry *carry,
                 const int64_t *sent_ns, uint32_t sents, const int64_t *received_ns, uint32_t receiveds,
                 bool *ret_crowded);

/* After ow_align: its first `sents` and `receiveds` are decided. Replaces *carry by what the next call needs. */
int ow_align_decide(struct ow_aligner *aligner, uint32_t sents, uint32_t receiveds, struct ow_align_carry **carry);
void ow_align_carry_free(struct ow_align_carry *carry);

#define OW_ALIGN_SIGMA_LEAST_NS 1000.0
/* The price of a lost packet, if so many of those that were sent are. */
double ow_align_loss(double lost, double sent);

#define OW_ALIGN_JUMP 10.0 /* the price of a jump if there are hardly any */
/* The price of a jump, from the last result. */
double ow_align_jump(const struct ow_aligner *aligner);
/* The usual change of the delay in the last result; below 0 if it has too few pairs. */
double ow_align_sigma(const struct ow_aligner *aligner);
