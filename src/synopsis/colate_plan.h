/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/colate.h"

/* The user's settings for a recording, with defaults; they must be the same at both points. */
struct ow_colate_plan {
	enum ow_colate_form form;
	uint32_t
		counters; /* in all, without those for `repair`; rounded up so that vectors and banks have equal sizes */
	uint32_t spread;  /* banks, or counters a flow; 0 = default of the form */
	uint32_t vectors; /* COLATE's solution for losses: vector i takes 2^-i of the packets, the last one the rest */
	uint8_t bits, check_bits, count_bits;
	/* An additional vector for the deviation within flows: all packets, COLATE's form, with counts. */
	uint32_t stddev_counters; /* 0 = none */
	uint32_t stddev_spread;   /* counters a flow; 0 = OW_COLATE_STDDEV_SPREAD */
	uint32_t unit_ns;
	uint64_t seed;
	/* Lost packets of an epoch that a query can find and take out of the counters; 0 = none. */
	uint32_t repair;
};

#define OW_COLATE_BANKS_DEFAULT    3
#define OW_COLATE_SPREAD_DEFAULT   20 /* the paper's m for alpha = .95, beta = .05 */
#define OW_COLATE_COUNTERS_DEFAULT 65536
#define OW_COLATE_STDDEV_SPREAD    16 /* a deviation has an error of at least 1 / sqrt(2 * 15) = 18 % */
#define OW_COLATE_STDDEV_COUNTS    8  /* bits of the packet counts; the expected count gives the upper bits */
#define OW_COLATE_SEED_DEFAULT     UINT64_C(1)
#define OW_COLATE_REPAIR_DEFAULT   8192
/* Times of lost packets are in units of 16 ns: 40 bits are enough for an epoch of 4.8 hours. */
#define OW_COLATE_REPAIR_SHIFT 4
#define OW_COLATE_REPAIR_MAX   5000000
/*
 * Banks get one counter more for so many packets that may be lost. The times of lost packets are known less well than
 * others, so a counter with a lost packet tells less; if there are more counters, each has fewer of them. With this many
 * the means of 10,000 flows are as good at 1 % loss as they are without loss and without the counters, and better at 5
 * and 10 % (tests/cli/check-flows-repair --table).
 */
#define OW_COLATE_REPAIR_A_COUNTER 4

void ow_colate_plan_defaults(struct ow_colate_plan *ret_plan);
/* -EINVAL with an error text. */
int ow_colate_plan_params(const struct ow_colate_plan *plan, struct ow_colate_params *ret_params, struct ow_error *err);

/* A table with room for so many lost packets, and the counters that they need. */
void ow_colate_plan_repair(struct ow_colate_params *params, uint32_t packets);

/* "banks", "colate", "colate-random"; and the form for a name, or -EINVAL with an error that lists them. */
const char *ow_colate_form_name(enum ow_colate_form form);
int ow_colate_form_parse(const char *name, enum ow_colate_form *ret_form, struct ow_error *err);
/* A short description: "3 banks of 21,846 counters, 48 + 16 bits"; always 0-terminated. */
#define OW_COLATE_TEXT 160
void ow_colate_params_text(const struct ow_colate_params *params, char text[OW_COLATE_TEXT]);
