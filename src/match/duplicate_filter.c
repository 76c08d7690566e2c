/* SPDX-License-Identifier: Apache-2.0 */
#include "match/duplicate_filter.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* 2^17 packets: with 50,000 others before the copy, one in a hundred is forgotten; with 20,000, one in 25,000. */
#define SETS 16384u /* power of two */
#define WAYS 8u

#define FIRST_CLASS_BITS 10 /* the first class: below 2^10 ns */

struct slot {
	uint64_t id; /* 0 = free */
	int64_t time_ns;
	uint32_t copies; /* copies of it that were shown */
};

struct ow_duplicate_filter {
	struct slot slot[SETS][WAYS];
};

unsigned ow_lag_class(int64_t lag_ns)
{
	if (lag_ns > OW_LAG_MOST_NS)
		return OW_LAG_CLASSES;
	if (lag_ns < INT64_C(1) << FIRST_CLASS_BITS)
		return 0;
	unsigned octave = 63u - (unsigned)__builtin_clzll((unsigned long long)lag_ns);
	unsigned quarter = (unsigned)(lag_ns >> (octave - 2)) & 3;
	return 1 + 4 * (octave - FIRST_CLASS_BITS) + quarter;
}

int64_t ow_lag_class_end(unsigned lag_class)
{
	unsigned octave = lag_class / 4 + FIRST_CLASS_BITS;
	return (int64_t)(4 + lag_class % 4) << (octave - 2);
}

bool ow_copy_rule_has(const struct ow_copy_rule *rule, int64_t lag_ns)
{
	unsigned class = ow_lag_class(lag_ns);
	return lag_ns <= rule->within_ns || (class < OW_LAG_CLASSES && rule->lag[class]);
}

int64_t ow_copy_rule_longest(const struct ow_copy_rule *rule)
{
	int64_t longest = rule->within_ns;
	for (unsigned i = 0; i < OW_LAG_CLASSES; i++) {
		if (rule->lag[i] && ow_lag_class_end(i) > longest)
			longest = ow_lag_class_end(i);
	}
	return longest;
}

struct ow_duplicate_filter *ow_duplicate_filter_create(void)
{
	return calloc(1, sizeof(struct ow_duplicate_filter));
}

void ow_duplicate_filter_free(struct ow_duplicate_filter *copies)
{
	free(copies);
}

void ow_duplicate_filter_reset(struct ow_duplicate_filter *copies)
{
	memset(copies, 0, sizeof *copies);
}

static uint64_t lag_behind(const struct slot *slot, int64_t time_ns)
{
	/* Timestamps may go backwards a little. */
	uint64_t lag = (uint64_t)time_ns - (uint64_t)slot->time_ns;
	return time_ns < slot->time_ns ? -lag : lag;
}

/* Free slots first, then the oldest. */
static bool replaces(const struct slot *slot, const struct slot *than)
{
	return !slot->id || (than->id && slot->time_ns < than->time_ns);
}

/* A packet that a host repeats before its copy is shown has its own slot: copies come in the order of packets. */
void ow_duplicate_filter_note(struct ow_duplicate_filter *copies, const struct ow_copy_rule *rule,
                              struct ow_record *record)
{
	/* A segment of a superframe is the same only if it is the same part. */
	uint64_t id = record->len ? ow_mix64(record->id ^ ((uint64_t)record->seq << 32 | record->len)) : record->id;
	id += id == 0;
	struct slot *set = copies->slot[(size_t)(id >> 40) & (SETS - 1)], *oldest = set, *first = NULL;
	uint64_t least = UINT64_MAX;
	for (struct slot *slot = set; slot < set + WAYS; slot++) {
		uint64_t lag = slot->id == id ? lag_behind(slot, record->time_ns) : UINT64_MAX;
		bool possible = lag <= INT64_MAX && slot->copies < rule->most && ow_copy_rule_has(rule, (int64_t)lag);
		least = lag < least ? lag : least;
		if (possible && (!first || slot->time_ns < first->time_ns))
			first = slot;
		if (replaces(slot, oldest))
			oldest = slot;
	}
	record->lag_ns = least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
	record->again = first != NULL;
	if (first)
		first->copies++;
	else
		*oldest = (struct slot){id, record->time_ns, 0};
}
