/* SPDX-License-Identifier: Apache-2.0 */
/* Matches replies to the probes that were sent, by interval. */
#include "active/probes_private.h"

#include "base/time.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If a reflector's number is this far from the last one, the reflector has restarted. */
#define RENUMBERED (1 << 16)

static bool copy_name(char to[OW_RESULT_NAME], const char *from)
{
	return (size_t)snprintf(to, OW_RESULT_NAME, "%s", from) < OW_RESULT_NAME;
}

static int name_all(struct ow_probes *p, const struct ow_probes_options *o)
{
	char round[2 * OW_RESULT_NAME];
	bool all = strcmp(o->class_name, "all") == 0;
	snprintf(round, sizeof round, "%.*s%s" OW_PROBES_ROUND_NAME, all ? 0 : OW_RESULT_NAME, o->class_name,
	         all ? "" : "/");
	snprintf(p->method, sizeof p->method, "%s", o->method);
	bool fits = copy_name(p->segment, o->segment) && copy_name(p->class_name, o->class_name) &&
	            copy_name(p->round_name, round) && copy_name(p->from, o->from) && copy_name(p->to, o->to);
	return fits ? 0 : -ENAMETOOLONG;
}

int ow_probes_create(const struct ow_probes_options *options, struct ow_probes **ret_probes)
{
	const struct ow_probes_options *o = options;
	if (o->length_ns <= 0 || o->wait_ns < 0 || o->wait_ns / o->length_ns + 4 > OW_PROBES_OPEN_MAX ||
	    o->window > OW_PROBES_WINDOW_MAX)
		return -EINVAL;
	struct ow_probes *p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->options = *o;
	p->window = 64;
	while (p->window < o->window)
		p->window *= 2;
	p->intervals_max = (uint32_t)(o->wait_ns / o->length_ns) + 4;
	p->slot = calloc(p->window, sizeof *p->slot);
	p->scratch = calloc(p->window, sizeof *p->scratch);
	p->interval = calloc(p->intervals_max, sizeof *p->interval);
	int r = name_all(p, o);
	bool all = p->slot && p->scratch && p->interval;
	for (int i = 0; i < OW_PROBES_LANES; i++)
		all = ow_delays_create(&p->sum[i].delays) == 0 && all;
	if (r == 0 && !all)
		r = -ENOMEM;
	if (r < 0)
		ow_probes_free(p);
	else
		*ret_probes = p;
	return r;
}

void ow_probes_free(struct ow_probes *probes)
{
	if (!probes)
		return;
	for (int i = 0; i < OW_PROBES_LANES; i++)
		ow_delays_free(probes->sum[i].delays);
	free(probes->slot);
	free(probes->scratch);
	free(probes->interval);
	free(probes);
}

/* -- sending ------------------------------------------------------------------------------------------------------ */

uint32_t ow_probes_next(const struct ow_probes *probes)
{
	return (uint32_t)probes->next;
}

int ow_probes_room(const struct ow_probes *probes)
{
	/* One more for the number that is skipped. */
	return probes->next - probes->settled + 2 > probes->window ? -ENOBUFS : 0;
}

/* Opens the interval of a time that is not before the start of the newest one, and those in between, as long as there
 * is room. ow_probes_work makes room every interval. */
static void open_until(struct ow_probes *p, int64_t time_ns)
{
	const int64_t length_ns = p->options.length_ns;
	if (!p->open) {
		*ow_probes_interval(p, p->open++) = (struct ow_probes_interval){
			.start_ns = ow_floor_div(time_ns, length_ns) * length_ns, .first = p->next};
		return;
	}
	while (p->open < p->intervals_max) {
		int64_t end_ns = ow_probes_interval(p, p->open - 1)->start_ns + length_ns;
		if (time_ns < end_ns)
			return;
		*ow_probes_interval(p, p->open++) = (struct ow_probes_interval){.start_ns = end_ns, .first = p->next};
	}
}

static void put(struct ow_probes *p, int64_t sent_ns, bool skipped)
{
	*ow_probes_slot(p, p->next) = (struct ow_probes_slot){.sent_ns = sent_ns, .skipped = skipped};
	p->next++;
}

void ow_probes_sent(struct ow_probes *probes, int64_t sent_ns, uint32_t bytes)
{
	open_until(probes, sent_ns);
	ow_probes_interval(probes, probes->open - 1)->bytes += bytes;
	put(probes, sent_ns, false);
	if (probes->next == OW_PROBES_SKIPPED)
		put(probes, sent_ns, true);
}

/* The probe with this sequence number; UINT64_MAX: it was not sent, or is too old. */
static uint64_t find(const struct ow_probes *p, uint32_t sequence)
{
	uint32_t back = (uint32_t)p->next - sequence;
	uint64_t n = p->next - back;
	if (back == 0 || back > p->next || back > p->window || ow_probes_slot(p, n)->skipped)
		return UINT64_MAX;
	return n;
}

void ow_probes_stamped(struct ow_probes *probes, uint32_t sequence, int64_t sent_ns)
{
	uint64_t n = find(probes, sequence);
	/* The probe stays in its interval. */
	if (n != UINT64_MAX && n >= probes->settled)
		ow_probes_slot(probes, n)->sent_ns = sent_ns;
}

bool ow_probes_find(const struct ow_probes *probes, uint32_t sequence, int64_t *ret_sent_ns)
{
	uint64_t n = find(probes, sequence);
	if (n == UINT64_MAX)
		return false;
	*ret_sent_ns = ow_probes_slot(probes, n)->sent_ns;
	return true;
}

/* -- replies ------------------------------------------------------------------------------------------------------ */

/* Converts the reflector's number to one that does not wrap. */
static int64_t count_on(struct ow_probes *p, uint32_t number)
{
	int32_t step = (int32_t)(number - (uint32_t)p->newest);
	if (!p->numbered || step > RENUMBERED || step < -RENUMBERED) {
		p->epoch += p->numbered;
		p->numbered = true;
		return p->newest = number;
	}
	return p->newest + step;
}

static struct ow_probes_interval *interval_of(struct ow_probes *p, uint64_t n)
{
	uint32_t i = p->open;
	while (i > 1 && ow_probes_interval(p, i - 1)->first > n)
		i--;
	return ow_probes_interval(p, i - 1);
}

static void worse(struct ow_probes_interval *in, const struct ow_clock_state *far)
{
	if (!in->heard)
		in->far = *far;
	in->heard = true;
	in->far.synchronised &= far->synchronised;
	if (far->error_ns > in->far.error_ns)
		in->far.error_ns = far->error_ns;
}

static void answer(struct ow_probes *p, uint64_t n, const struct ow_probes_reply *reply, int64_t number)
{
	struct ow_probes_slot *slot = ow_probes_slot(p, n);
	int64_t there = reply->t2_ns - slot->sent_ns, back = reply->t4_ns - reply->t3_ns;
	int64_t stay = reply->t3_ns - reply->t2_ns, whole = reply->t4_ns - slot->sent_ns;
	slot->answered = true;
	slot->low = slot->high = number;
	slot->epoch = p->epoch;
	/* The time at the reflector must be at least 0 and at most the round-trip time. */
	slot->timed = reply->timed && stay >= 0 && stay <= whole;
	slot->delay_ns[OW_PROBES_THERE] = there;
	slot->delay_ns[OW_PROBES_BACK] = back;
	slot->delay_ns[OW_PROBES_ROUND] = whole - stay;
}

/* Compares the order of arrival with the order of sending by the reflector. */
static void note_order(struct ow_probes *p, struct ow_probes_interval *in, uint64_t n, int64_t number)
{
	in->reordered[OW_PROBES_BACK] += number < p->newest;
	in->reordered[OW_PROBES_ROUND] += n + 1 < p->newest_answered;
	if (n + 1 > p->newest_answered)
		p->newest_answered = n + 1;
}

enum ow_probes_verdict ow_probes_reply(struct ow_probes *probes, const struct ow_probes_reply *reply)
{
	struct ow_probes *p = probes;
	uint64_t n = find(p, reply->sequence);
	if (n == UINT64_MAX || !p->open)
		return n == UINT64_MAX ? OW_PROBES_UNASKED : OW_PROBES_LATE;
	int64_t number = count_on(p, reply->number);
	struct ow_probes_slot *slot = ow_probes_slot(p, n);
	/* The first probe has number 0 with both kinds of reflectors. */
	if (n > OW_PROBES_SKIPPED) {
		p->stateful |= reply->number != reply->sequence;
		p->told = true;
	}
	struct ow_probes_interval *in = n < p->settled ? ow_probes_interval(p, p->open - 1) : interval_of(p, n);
	in->reply_bytes += reply->bytes;
	enum ow_probes_verdict verdict = OW_PROBES_ANSWER;
	if (slot->answered) {
		bool copied_there = slot->epoch == p->epoch && (number < slot->low || number > slot->high);
		in->duplicated[copied_there ? OW_PROBES_THERE : OW_PROBES_BACK]++;
		in->duplicated[OW_PROBES_ROUND]++;
		slot->low = copied_there && number < slot->low ? number : slot->low;
		slot->high = copied_there && number > slot->high ? number : slot->high;
		verdict = OW_PROBES_DUPLICATE;
	} else if (n < p->settled) {
		in->late++;
		/* A further reply is a duplicate. */
		slot->answered = true;
		slot->low = slot->high = number;
		slot->epoch = p->epoch;
		verdict = OW_PROBES_LATE;
	} else {
		answer(p, n, reply, number);
		note_order(p, in, n, number);
		worse(in, &reply->far);
	}
	if (number > p->newest)
		p->newest = number;
	return verdict;
}

/* -- time --------------------------------------------------------------------------------------------------------- */

static void close_oldest(struct ow_probes *p, int64_t length_ns, int64_t closing_ns, int64_t now_ns,
                         const struct ow_clock_state *near, const char *cut)
{
	struct ow_probes_fate fate;
	uint64_t end = p->open > 1 ? ow_probes_interval(p, 1)->first : p->next;
	ow_probes_settle(p, p->settled, end, closing_ns, &fate);
	ow_probes_report(p, end, length_ns, &fate, now_ns, near, cut);
	p->settled = end;
	p->oldest = (p->oldest + 1) % p->intervals_max;
	p->open--;
	p->number++;
}

void ow_probes_work(struct ow_probes *probes, int64_t now_ns, const struct ow_clock_state *near)
{
	const int64_t length_ns = probes->options.length_ns;
	if (!probes->open)
		return;
	for (;;) {
		open_until(probes, now_ns);
		int64_t end_ns = ow_probes_interval(probes, 0)->start_ns + length_ns;
		if (now_ns - probes->options.wait_ns < end_ns || probes->open < 2)
			return;
		close_oldest(probes, length_ns, INT64_MAX, now_ns, near, NULL);
	}
}

void ow_probes_close(struct ow_probes *probes, int64_t now_ns, const struct ow_clock_state *near, const char *why)
{
	const int64_t length_ns = probes->options.length_ns;
	while (probes->open) {
		int64_t start_ns = ow_probes_interval(probes, 0)->start_ns, whole_ns = length_ns;
		/* The last interval ends now, if now is within it. */
		if (probes->open == 1 && now_ns > start_ns && now_ns - start_ns < length_ns)
			whole_ns = now_ns - start_ns;
		close_oldest(probes, whole_ns, now_ns - probes->options.wait_ns, now_ns, near, why);
	}
	probes->left_gap = 0;
	probes->left = false;
}
