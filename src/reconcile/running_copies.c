/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/running_copies.h"

#include "synopsis/synopsis.h"

#define AMID 4 /* packets of which the first one would have been seen */

/* All packets of this point that were sent before have arrived, or are lost. */
static bool is_drained(const struct ow_running_interval *i, int64_t pause_ns, int64_t gap_ns)
{
	int64_t most_ns = i->most_ns < i->lost_ns ? i->most_ns : i->lost_ns;
	return pause_ns > most_ns && pause_ns > AMID * gap_ns;
}

/* By the first packets: whether most are copies, and the first one was sent too soon to be the first of all. */
static bool looks_amid(const struct ow_running_copies *running, size_t others)
{
	if (others || running->packets < 2)
		return false;
	int64_t gap_ns = (running->last_ns - running->first_ns) / (int64_t)(running->packets - 1);
	return 2 * running->copies >= running->packets && running->first_ns - running->begun_ns < AMID * gap_ns;
}

int64_t ow_running_copies_doubt(struct ow_running_copies *running, const struct ow_running_interval *i)
{
	if (!i->compared) {
		*running = (struct ow_running_copies){.unsure = i->unsure};
		return 0;
	}
	if (!running->begun)
		*running = (struct ow_running_copies){.begun = true, .begun_ns = i->begun_ns};
	running->unsure = i->unsure;
	running->longer = false;
	if (!i->count)
		return 0;
	int64_t first_ns = i->start_ns + i->sent[0].time_ns, last_ns = i->start_ns + i->sent[i->count - 1].time_ns;
	int64_t pause_ns = running->packets ? first_ns - running->last_ns : 0;
	int64_t gap_ns = i->count > 1 ? (last_ns - first_ns) / (int64_t)(i->count - 1) : pause_ns;
	/* One packet in each interval: no interval has copies. */
	bool again = running->packets && running->id == i->sent[0].id;
	size_t copies = i->copies + again,
	       others = i->others > (again && !i->copies) ? i->others - (again && !i->copies) : 0;
	bool start = running->packets < AMID;
	if (!running->packets)
		running->first_ns = first_ns;
	running->packets += i->count;
	running->copies += copies;
	running->last_ns = last_ns;
	running->id = i->sent[0].id;
	if (start)
		running->amid = looks_amid(running, others);
	else if ((i->aligned && others && !i->unsure) || is_drained(i, pause_ns, gap_ns))
		running->amid = false;
	running->longer = running->amid && copies && gap_ns < i->most_ns;
	return running->longer ? gap_ns : 0;
}
