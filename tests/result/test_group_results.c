/* SPDX-License-Identifier: Apache-2.0 */
/* Several receivers: a packet is lost if none of them got it, and never because one did not tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "result/cause.h"
#include "result/group_results.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH    INT64_C(1000000)
#define INTERVALS 24
#define PACKETS   4000 /* of all intervals */
#define WAITING   4
#define NOWHERE   INT64_MAX

struct packet {
	uint64_t id, name;
	int64_t sent_ns;
	int64_t got_ns[OW_GROUP_MEMBERS_MAX]; /* NOWHERE: this member did not get it */
};

/* Packets by sending time; how members cut their intervals. */
struct world {
	unsigned members;
	struct packet packet[PACKETS];
	size_t packets;
	int64_t shift_ns[2][OW_GROUP_MEMBERS_MAX]; /* before this interval, and from it on: */
	int64_t shifted[OW_GROUP_MEMBERS_MAX];
};

struct results {
	struct ow_interval_result final[INTERVALS + 1];
	size_t finals;
	struct ow_group_results *group;
};

static void on_result(void *arg, const struct ow_interval_result *r)
{
	struct results *got = arg;
	assert_int_equal(r->sent, r->matched + r->late + r->lost + r->pending);
	assert_int_equal(r->received, r->matched + r->late_received + r->extra);
	assert_int_equal(r->mean_ns.status, OW_VALUE_NONE);
	if (!r->final)
		return;
	assert_true(got->finals <= INTERVALS);
	got->final[got->finals++] = *r;
}

static void open_group(struct results *got, unsigned members)
{
	struct ow_group_results_options o = {.names = {.segment = "x", .class_name = "all", .from = "a", .to = "b1+b2"},
	                                     .members = members,
	                                     .length_ns = LENGTH,
	                                     .horizon = 2,
	                                     .waiting = WAITING};
	for (unsigned k = 0; k < members; k++)
		snprintf(o.member[k], sizeof o.member[k], "b%u", k + 1);
	*got = (struct results){0};
	assert_int_equal(ow_group_results_create(&o, on_result, NULL, got, &got->group), 0);
}

static void close_group(struct results *got)
{
	ow_group_results_finish(got->group);
	ow_group_results_free(got->group);
}

static int64_t interval_of(int64_t time_ns)
{
	return time_ns / LENGTH;
}

/* By which a member cuts the start of this interval later. */
static int64_t shift_of(const struct world *w, unsigned member, int64_t interval)
{
	return w->shift_ns[interval >= w->shifted[member]][member];
}

static bool is_within(const struct world *w, unsigned member, int64_t interval, int64_t time_ns)
{
	return time_ns != NOWHERE && time_ns >= interval * LENGTH + shift_of(w, member, interval) &&
	       time_ns < (interval + 1) * LENGTH + shift_of(w, member, interval + 1);
}

/* What the lane to a member makes of an interval. Copies of a name are matched in their order. */
static void tell(struct results *got, const struct world *w, unsigned member, int64_t interval, unsigned identity)
{
	static struct ow_sighting sent[PACKETS], only_b[PACKETS];
	static uint8_t matched[PACKETS];
	static uint64_t name[PACKETS];
	static int64_t delay_ns[PACKETS];
	struct ow_interval_results_input in = {
		.packet = sent, .is_matched = matched, .only_b = only_b, .delay_ns = delay_ns};
	int64_t start_ns = interval * LENGTH, shift_ns = shift_of(w, member, interval);
	memset(matched, 0, sizeof matched);
	for (size_t i = 0; i < w->packets; i++) {
		const struct packet *p = &w->packet[i];
		if (interval_of(p->sent_ns) != interval)
			continue;
		name[in.packets] = p->name;
		sent[in.packets++] = (struct ow_sighting){p->id, p->sent_ns - start_ns, 0};
	}
	for (size_t i = 0; i < w->packets; i++) {
		const struct packet *p = &w->packet[i];
		if (!is_within(w, member, interval, p->got_ns[member]))
			continue;
		size_t at = 0;
		while (at < in.packets && (name[at] != p->name || matched[at]))
			at++;
		if (at < in.packets) {
			matched[at] = 1;
			in.result.ambiguous += name[at] != sent[at].id;
			delay_ns[in.delays++] = p->got_ns[member] - start_ns - sent[at].time_ns;
		} else {
			only_b[in.only_bs++] = (struct ow_sighting){p->name, p->got_ns[member] - start_ns, 1};
		}
	}
	in.shift_ns = shift_ns;
	in.result = (struct ow_interval_result){.start_ns = start_ns,
	                                        .length_ns = LENGTH,
	                                        .total_sent = in.packets,
	                                        .ambiguous = in.result.ambiguous,
	                                        .clock_from = {true, 1000},
	                                        .clock_to = {true, 1000}};
	ow_group_results_compared(got->group, member, identity, &in, name);
}

static void tell_unknown(struct results *got, unsigned member, int64_t interval, const char *cause)
{
	struct ow_interval_result r = {.start_ns = interval * LENGTH, .length_ns = LENGTH};
	snprintf(r.cause, sizeof r.cause, "%s", cause);
	ow_group_results_unknown(got->group, member, &r);
}

static struct packet *add(struct world *w, uint64_t id, int64_t sent_ns)
{
	assert_true(w->packets < PACKETS);
	struct packet *p = &w->packet[w->packets++];
	*p = (struct packet){.id = id, .name = id, .sent_ns = sent_ns};
	for (unsigned k = 0; k < OW_GROUP_MEMBERS_MAX; k++)
		p->got_ns[k] = NOWHERE;
	return p;
}

static uint64_t truly_lost(const struct world *w, int64_t interval)
{
	uint64_t lost = 0;
	for (size_t i = 0; i < w->packets; i++) {
		bool got = false;
		for (unsigned k = 0; k < w->members; k++)
			got |= w->packet[i].got_ns[k] != NOWHERE;
		lost += !got && interval_of(w->packet[i].sent_ns) == interval;
	}
	return lost;
}

static int by_time(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;
	return (x->sent_ns > y->sent_ns) - (x->sent_ns < y->sent_ns);
}

/*
 * Packets are divided at random, or by the low bits of a flow. Each way has its own delay, up to half an interval, with
 * jitter, and the member cuts its intervals later by about that; a few packets are lost, or get to two members.
 */
static void make_world(struct world *w, struct ow_random *random)
{
	*w = (struct world){.members = 2 + (unsigned)ow_random_below(random, 3)};
	bool by_flow = ow_random_below(random, 2);
	int64_t delay_ns[OW_GROUP_MEMBERS_MAX];
	for (unsigned k = 0; k < w->members; k++) {
		delay_ns[k] = (int64_t)ow_random_below(random, LENGTH / 2);
		for (unsigned later = 0; later < 2; later++)
			w->shift_ns[later][k] = ow_random_below(random, 3) ? delay_ns[k] + LENGTH / 200 : 0;
		w->shifted[k] = (int64_t)ow_random_below(random, INTERVALS);
	}
	for (size_t i = 0; i < PACKETS; i++) {
		uint64_t flow = ow_random_below(random, 40);
		struct packet *p = add(w, i + 1, (int64_t)ow_random_below(random, (INTERVALS - 3) * LENGTH));
		unsigned way = (unsigned)(by_flow ? flow : ow_random_below(random, w->members)) % w->members;
		if (ow_random_below(random, 50) == 0)
			continue;
		p->got_ns[way] = p->sent_ns + delay_ns[way] + (int64_t)ow_random_below(random, LENGTH / 100);
		way = (way + 1) % w->members;
		if (ow_random_below(random, 100) == 0)
			p->got_ns[way] = p->sent_ns + delay_ns[way] + (int64_t)ow_random_below(random, LENGTH / 100);
	}
	qsort(w->packet, w->packets, sizeof *w->packet, by_time);
}

/* Whatever members tell, in whatever order: no loss that is not there, and all of it where all have told. */
static void never_a_false_loss(void **state)
{
	(void)state;
	static struct world w;
	static struct results got;
	struct ow_random random;
	ow_random_seed(&random, 7);
	for (unsigned run = 0; run < 60; run++) {
		make_world(&w, &random);
		open_group(&got, w.members);
		bool complete = run % 3 == 0;
		uint64_t lost = 0, found = 0, pending = 0, copies = 0, extra = 0, before = 0;
		unsigned away = (unsigned)ow_random_below(&random, w.members);
		int64_t from = 5 + (int64_t)ow_random_below(&random, 10),
			until = from + 1 + (int64_t)ow_random_below(&random, 7);
		for (int64_t i = 0; i < INTERVALS; i++) {
			for (unsigned k = 0; k < w.members; k++) {
				bool silent = !complete && k == away && i >= from && i < until;
				/* A member tells, says that it cannot, or says nothing. */
				if (!silent)
					tell(&got, &w, k, i, 0);
				else if (run % 2)
					tell_unknown(&got, k, i, "out of memory");
			}
		}
		close_group(&got);
		assert_int_equal(got.finals, INTERVALS);
		for (int64_t i = 0; i < INTERVALS; i++) {
			const struct ow_interval_result *r = &got.final[i];
			uint64_t truth = truly_lost(&w, i);
			if (r->lost > truth || r->lost + r->pending < truth ||
			    (r->status == OW_RESULT_MEASURED && r->lost != truth))
				fail_msg("run %u, interval %d: %d lost, %d pending, %d in truth (%s)", run, (int)i,
				         (int)r->lost, (int)r->pending, (int)truth, r->cause);
			lost += truth;
			found += r->lost;
			pending += r->pending;
			extra += r->extra;
		}
		for (size_t i = 0; i < w.packets; i++) {
			unsigned gets = 0;
			for (unsigned k = 0; k < w.members; k++) {
				gets += w.packet[i].got_ns[k] != NOWHERE;
				before += w.packet[i].got_ns[k] < shift_of(&w, k, 0);
			}
			copies += gets > 1 ? gets - 1 : 0;
		}
		if (complete) {
			/* What is sent at the beginning may have arrived before it, where intervals are shifted. */
			assert_true(found <= lost && lost <= found + pending);
			assert_int_equal(pending, got.final[0].pending);
			assert_true(extra <= copies && copies <= extra + before);
		} else {
			assert_true(found > 0 && pending > 0);
		}
	}
}

/* Two members got two of four identical packets each; then one of four is lost; then one is late. */
static void identical_packets(void **state)
{
	(void)state;
	static struct world w;
	static struct results got;
	w = (struct world){.members = 2};
	for (int64_t i = 0; i < 3; i++) {
		for (uint64_t n = 0; n < 40; n++)
			add(&w, 1000 * (uint64_t)(i + 1) + n, i * LENGTH + (int64_t)n)->got_ns[n % 2] =
				i * LENGTH + (int64_t)n + 10;
		for (uint64_t n = 0; n < 4; n++) {
			struct packet *p = add(&w, 10 * (uint64_t)(i + 1) + n, i * LENGTH + 100 + (int64_t)n);
			p->name = 7;
			if (i != 1 || n != 2)
				p->got_ns[n % 2] = p->sent_ns + 10;
		}
	}
	/* Sent at the end of interval 2, it arrives in the next one. */
	w.packet[w.packets - 1].sent_ns = 3 * LENGTH - 1;
	w.packet[w.packets - 1].got_ns[1] = 3 * LENGTH + 9;
	open_group(&got, 2);
	for (int64_t i = 0; i < 8; i++) {
		tell(&got, &w, 0, i, 0);
		tell(&got, &w, 1, i, 0);
	}
	close_group(&got);
	assert_int_equal(got.final[0].lost, 0);
	assert_int_equal(got.final[0].matched, 44);
	assert_int_equal(got.final[0].extra, 0);
	assert_int_equal(got.final[0].ambiguous, 4);
	/* Of those that wait, the oldest is the late one: which of them is lost nobody can tell. */
	assert_int_equal(got.final[1].lost + got.final[2].lost, 1);
	assert_int_equal(got.final[1].late + got.final[2].late, 1);
	assert_int_equal(got.final[3].extra, 0);
}

/* An interval waits for a member, but not for ever. */
static void waits_for_members(void **state)
{
	(void)state;
	static struct world w;
	static struct results got;
	w = (struct world){.members = 2};
	for (int64_t i = 0; i < 10; i++) {
		add(&w, 2 * (uint64_t)i + 1, i * LENGTH + 100)->got_ns[0] = i * LENGTH + 110;
		add(&w, 2 * (uint64_t)i + 2, i * LENGTH + 200)->got_ns[1] = i * LENGTH + 210;
	}
	open_group(&got, 2);
	for (int64_t i = 0; i < 3; i++)
		tell(&got, &w, 0, i, 0);
	for (int64_t i = 0; i < 3; i++)
		tell(&got, &w, 1, i, 0);
	assert_int_equal(got.finals, 1);
	/* From now on nothing of the second one for so long that two intervals cannot wait. */
	for (int64_t i = 3; i < 3 + WAITING + 2; i++)
		tell(&got, &w, 0, i, 0);
	for (int64_t i = 3; i < 10; i++)
		tell(&got, &w, 1, i, 0);
	tell(&got, &w, 0, 9, 0);
	close_group(&got);
	assert_int_equal(got.finals, 10);
	for (size_t i = 0; i < 10; i++) {
		const struct ow_interval_result *r = &got.final[i];
		bool incomplete = i == 3 || i == 4;
		assert_int_equal(r->interval, i);
		assert_int_equal(r->status, incomplete ? OW_RESULT_PARTIAL : OW_RESULT_MEASURED);
		assert_int_equal(r->sent, 2);
		assert_int_equal(r->matched, incomplete ? 1 : 2);
		assert_int_equal(r->pending, incomplete ? 1 : 0);
	}
	assert_int_equal(ow_cause_of(got.final[3].cause), OW_CAUSE_NO_ANSWER);
	assert_non_null(strstr(got.final[3].cause, "no answer from b2; 1 packet undecided"));
}

/* Lanes that cannot be joined, and packets that only one lane has. */
static void lanes_that_differ(void **state)
{
	(void)state;
	static struct world w, more;
	static struct results got;
	struct ow_interval_result total;
	w = (struct world){.members = 2};
	add(&w, 1, 100)->got_ns[0] = 110;
	add(&w, 2, LENGTH + 100)->got_ns[0] = LENGTH + 110;
	more = w;
	add(&more, 3, LENGTH + 200);
	open_group(&got, 2);
	tell(&got, &w, 0, 0, 0);
	tell(&got, &w, 1, 0, 1);
	tell(&got, &more, 0, 1, 0);
	tell(&got, &w, 1, 1, 0);
	tell_unknown(&got, 0, 2, "b1 was restarted");
	tell_unknown(&got, 1, 2, "out of memory");
	ow_group_results_finish(got.group);
	ow_group_results_total(got.group, &total);
	assert_int_equal(got.final[0].status, OW_RESULT_PARTIAL);
	assert_string_equal(got.final[0].cause, "b2: its packets have another identity than those of the other peers");
	assert_int_equal(got.final[1].status, OW_RESULT_MEASURED);
	assert_int_equal(got.final[1].sent, 1);
	assert_int_equal(got.final[1].unshared_sent, 1);
	assert_int_equal(got.final[2].status, OW_RESULT_UNKNOWN);
	assert_string_equal(got.final[2].cause, "b1 was restarted; b2: out of memory");
	assert_int_equal(total.sent, 2);
	assert_int_equal(total.mean_ns.reason, OW_REASON_EACH_PEER);
	ow_group_results_free(got.group);
}

static void names(void **state)
{
	(void)state;
	assert_true(ow_group_has("b1+b2+b10", "b1"));
	assert_true(ow_group_has("b1+b2+b10", "b2"));
	assert_true(ow_group_has("b1+b2+b10", "b10"));
	assert_false(ow_group_has("b1+b2+b10", "b"));
	assert_false(ow_group_has("b1+b2+b10", "1"));
	assert_false(ow_group_has("b1", "b1"));
	assert_false(ow_group_has("b1+b2", "b1+b2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_a_false_loss),
		cmocka_unit_test(identical_packets),
		cmocka_unit_test(waits_for_members),
		cmocka_unit_test(lanes_that_differ),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
