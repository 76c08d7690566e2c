/* SPDX-License-Identifier: Apache-2.0 */
/* Results that wait for the others of their interval. */
#include "station/wait.h"

#include "base/array.h"
#include "base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A result waits at most this long for others of its interval. */
#define PATIENCE_NS (3 * OW_NS_PER_S)
#define WAITING_MAX (1u << 22)

struct waiting {
	const char *place;
	struct ow_watch_sample sample;
	char *cause;     /* of the sample, to be freed */
	int64_t came_ns; /* by the steady clock */
};

struct ow_wait {
	struct waiting *waiting;
	size_t first, count, room; /* those from first on still wait */
	bool sorted;
	int64_t left_ns; /* the end of the last interval that left: others of it leave as well */
};

int ow_wait_create(struct ow_wait **ret_wait)
{
	*ret_wait = calloc(1, sizeof(**ret_wait));
	if (!*ret_wait)
		return -ENOMEM;
	(*ret_wait)->left_ns = INT64_MIN;
	return 0;
}

void ow_wait_free(struct ow_wait *wait)
{
	if (!wait)
		return;
	for (size_t i = 0; i < wait->count; i++)
		free(wait->waiting[i].cause);
	free(wait->waiting);
	free(wait);
}

/* Frees those that have left. */
static void close_up(struct ow_wait *wait)
{
	if (!wait->first)
		return;
	for (size_t i = 0; i < wait->first; i++)
		free(wait->waiting[i].cause);
	wait->count -= wait->first;
	memmove(wait->waiting, wait->waiting + wait->first, wait->count * sizeof(*wait->waiting));
	wait->first = 0;
}

int ow_wait_add(struct ow_wait *wait, const char *place, const struct ow_watch_sample *sample, int64_t now_ns,
                struct ow_error *err)
{
	close_up(wait);
	if (wait->count == WAITING_MAX)
		return ow_error_set(err, E2BIG, "more than %u results at once: select fewer with --since", WAITING_MAX);
	if (OW_GROW(wait->waiting, wait->room, wait->count + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct waiting *waiting = &wait->waiting[wait->count];
	*waiting = (struct waiting){place, *sample, sample->cause ? strdup(sample->cause) : NULL, now_ns};
	if (sample->cause && !waiting->cause)
		return ow_error_set(err, ENOMEM, "out of memory");
	waiting->sample.cause = NULL;
	wait->count++;
	wait->sorted = false;
	return 0;
}

static int64_t end_of(const struct waiting *waiting)
{
	return waiting->sample.start_ns + waiting->sample.length_ns;
}

/* How much a result knows. */
static int knows(const struct waiting *waiting)
{
	return 2 * waiting->sample.has_loss + waiting->sample.has_delay;
}

static int by_end(const void *pa, const void *pb)
{
	const struct waiting *a = pa, *b = pb;
	int order = (end_of(a) > end_of(b)) - (end_of(a) < end_of(b));
	if (!order)
		order = strcmp(a->place, b->place);
	if (!order)
		order = (a->sample.length_ns > b->sample.length_ns) - (a->sample.length_ns < b->sample.length_ns);
	return order ? order : knows(b) - knows(a);
}

bool ow_wait_next(struct ow_wait *wait, bool all, int64_t now_ns, const char **ret_place,
                  struct ow_watch_sample *ret_sample)
{
	if (wait->first == wait->count)
		return false;
	if (!wait->sorted)
		qsort(wait->waiting + wait->first, wait->count - wait->first, sizeof(*wait->waiting), by_end);
	wait->sorted = true;
	struct waiting *waiting = &wait->waiting[wait->first];
	int64_t newest_ns = end_of(&wait->waiting[wait->count - 1]);
	if (!all && end_of(waiting) > wait->left_ns && newest_ns - end_of(waiting) < 2 * waiting->sample.length_ns &&
	    now_ns - waiting->came_ns < PATIENCE_NS)
		return false;
	if (end_of(waiting) > wait->left_ns)
		wait->left_ns = end_of(waiting);
	wait->first++;
	*ret_place = waiting->place;
	*ret_sample = waiting->sample;
	ret_sample->cause = waiting->cause;
	return true;
}
