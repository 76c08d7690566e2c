/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/record.h"

/*
 * Finds the further copies of packets that a capture shows more than once: a mirror port that copies both directions,
 * or a capture on all interfaces of a router. Remembers the latest packets, up to 2^17 of them.
 */
struct ow_duplicate_filter;

/* Lags between a packet and its copy, in classes: up to a microsecond, then four to an octave. */
#define OW_LAG_CLASSES 68
#define OW_LAG_MOST_NS INT64_C(100000000) /* a longer lag is not that of a copy: it is in no class */

/* The class of a lag; OW_LAG_CLASSES if it is too long. */
unsigned ow_lag_class(int64_t lag_ns);
/* The least lag that is in no class up to this one. */
int64_t ow_lag_class_end(unsigned lag_class);

/* Which packets are copies: those that come at one of these lags after the first one. */
struct ow_copy_rule {
	int64_t within_ns; /* any lag up to this; negative: none of them */
	bool lag[OW_LAG_CLASSES];
	uint32_t most; /* copies of one packet; the next one is a packet of its own */
};

bool ow_copy_rule_has(const struct ow_copy_rule *rule, int64_t lag_ns);
/* The longest lag of the rule; negative if it has none. */
int64_t ow_copy_rule_longest(const struct ow_copy_rule *rule);

struct ow_duplicate_filter *ow_duplicate_filter_create(void);
void ow_duplicate_filter_free(struct ow_duplicate_filter *copies);
void ow_duplicate_filter_reset(struct ow_duplicate_filter *copies);
/* Notes the packet. Sets its lag after the first identical one, and `again` if it is a copy by the rule. */
void ow_duplicate_filter_note(struct ow_duplicate_filter *copies, const struct ow_copy_rule *rule,
                              struct ow_record *record);
