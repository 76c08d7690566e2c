/* SPDX-License-Identifier: Apache-2.0 */
/* Two exchanges, a wire in memory, traffic with truth: duet.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "duet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0          INT64_C(1700000000000000000)
#define TAIL        4 /* intervals after the last packet */
#define FRAMES_MAX  4096
#define PATIENCE_NS INT64_C(5000000000)
#define STEADY_NS   INT64_C(20000) /* from one look at the clock to the next */

struct packet {
	uint64_t id;
	int64_t time_ns;
};

struct flying {
	uint8_t *bytes;
	size_t size;
	int64_t due_ns;
	int to;
};

struct wire {
	struct duet *duet;
	struct ow_random random;
	struct flying frame[FRAMES_MAX];
	size_t frames;
	int64_t now_ns, steady_ns;
	bool down;
};

/* What a sink needs to know. */
struct end {
	struct wire *wire;
	int side;
};

/* -- wire --------------------------------------------------------------------------------------------------------- */

static void put(struct wire *wire, int to, const uint8_t *bytes, size_t size)
{
	assert_true(wire->frames < FRAMES_MAX);
	uint8_t *copy = malloc(size);
	memcpy(copy, bytes, size);
	if (ow_random_unit(&wire->random) < wire->duet->line.damage)
		copy[ow_random_below(&wire->random, size)] ^= (uint8_t)(1u << ow_random_below(&wire->random, 8));
	wire->frame[wire->frames++] = (struct flying){copy, size, wire->now_ns + wire->duet->line.delay_ns, to};
	if (wire->frames > 1 && ow_random_unit(&wire->random) < wire->duet->line.swap) {
		struct flying last = wire->frame[wire->frames - 1];
		size_t at = ow_random_below(&wire->random, wire->frames - 1);
		wire->frame[wire->frames - 1] = wire->frame[at];
		wire->frame[at] = last;
	}
}

static void on_send(void *arg, const uint8_t *frame, size_t size)
{
	struct end *end = arg;
	struct wire *wire = end->wire;
	wire->duet->bytes += size + 4;
	wire->duet->frames++;
	if (wire->down || ow_random_unit(&wire->random) < wire->duet->line.drop)
		return;
	put(wire, !end->side, frame, size);
	if (ow_random_unit(&wire->random) < wire->duet->line.twice)
		put(wire, !end->side, frame, size);
}

/* Hands on what is due at this time; answers may be due at once. */
static void deliver(struct wire *wire, int64_t now_ns)
{
	wire->now_ns = now_ns;
	for (size_t i = 0; i < wire->frames;) {
		if (wire->frame[i].due_ns > now_ns) {
			i++;
			continue;
		}
		struct flying f = wire->frame[i];
		memmove(wire->frame + i, wire->frame + i + 1, (wire->frames - i - 1) * sizeof f);
		wire->frames--;
		struct ow_error err = {""};
		if (wire->duet->line.mischief)
			wire->duet->line.mischief(wire->duet, f.to, f.bytes, f.size, now_ns);
		int r = ow_exchange_frame(wire->duet->x[f.to], f.bytes, f.size, now_ns, &err);
		if (r < 0 && !(wire->duet->line.damage > 0))
			fail_msg("frame refused: %s", err.text);
		assert_true(r == 0 || err.text[0]);
		wire->duet->refused += r < 0;
		free(f.bytes);
		i = 0;
	}
}

/* The same in each run: what a message takes must not depend on the machine. */
static int64_t on_steady_ns(void *arg)
{
	struct end *end = arg;
	return end->wire->steady_ns += STEADY_NS;
}

/* One clock for both points. */
static void on_clock(void *arg, struct ow_exchange_clock *clock, struct ow_interval_result *result)
{
	(void)arg;
	(void)clock;
	snprintf(result->clock_method, sizeof result->clock_method, "trusted");
	result->clock_offset_ns = (struct ow_value){.status = OW_VALUE_EXACT};
}

static void drop_all(struct wire *wire)
{
	while (wire->frames)
		free(wire->frame[--wire->frames].bytes);
}

/* -- results ------------------------------------------------------------------------------------------------------ */

static void check_value(const struct ow_value *v)
{
	if (v->status == OW_VALUE_NONE)
		assert_true(v->reason);
	else
		assert_true(v->low <= v->value && v->value <= v->high);
}

/* The point that has the delays has all of them in the end, or those that a sample stands for. */
static void check_buckets(const struct ow_interval_result *r, bool sending)
{
	uint64_t packets = 0;
	for (unsigned b = 0; b <= OW_BUCKETS; b++)
		packets += r->delay_bucket[b];
	bool known = sending && r->final && r->quantile_ns[0].status != OW_VALUE_NONE;
	/* Numbers of a part may be estimates without single delays. */
	if (known && (packets || r->status == OW_RESULT_MEASURED))
		assert_int_equal(packets, r->matched + r->late - r->ambiguous);
	else
		assert_int_equal(packets, 0);
}

/* Both points have the histogram, of the same packets; what it says of quantiles does not contradict the result. */
static void check_histogram(const struct ow_interval_result *r)
{
	bool known = r->final && r->quantile_ns[0].status != OW_VALUE_NONE;
	if (!known || (!r->delays.packets && r->status != OW_RESULT_MEASURED)) {
		assert_int_equal(r->delays.packets, 0);
		return;
	}
	assert_int_equal(r->delays.packets, (r->matched + r->late - r->ambiguous) << r->sample_shift);
	for (int q = 0; q < OW_QUANTILES; q++) {
		struct ow_value v = ow_delay_histogram_quantile(&r->delays, ow_quantile_level[q], 0);
		if (!(v.low <= r->quantile_ns[q].high + 1 && r->quantile_ns[q].low <= v.high + 1))
			fail_msg("quantile %g to %g instead of %g to %g", v.low, v.high, r->quantile_ns[q].low,
			         r->quantile_ns[q].high);
	}
}

static void on_result(void *arg, const struct ow_interval_result *r)
{
	struct end *end = arg;
	struct duet *duet = end->wire->duet;
	struct outcomes *got = &duet->got[end->side];
	assert_int_equal(r->sent, r->matched + r->late + r->lost + r->pending);
	assert_int_equal(r->received, r->matched + r->late_received + r->extra);
	assert_true(r->duplicated <= r->extra && r->ambiguous <= r->matched + r->late);
	assert_true(r->coverage >= 0 && r->coverage <= 1);
	assert_true(r->status == OW_RESULT_MEASURED || r->cause[0]);
	assert_string_equal(r->from, "a");
	assert_string_equal(r->to, "b");
	assert_int_equal(r->start_ns, T0 + r->interval * duet->traffic.length_ns);
	check_value(&r->mean_ns);
	check_value(&r->stddev_ns);
	check_value(&r->loss_ratio);
	check_buckets(r, end->side == 0);
	check_histogram(r);
	for (int q = 0; q < OW_QUANTILES; q++)
		check_value(&r->quantile_ns[q]);
	assert_true(r->interval >= 0 && r->interval < duet->intervals);
	/* Each once, in order. */
	bool *has = r->final ? got->has_final : got->has_provisional;
	assert_false(has[r->interval]);
	has[r->interval] = true;
	(r->final ? got->final : got->provisional)[r->interval] = *r;
	if (r->final) {
		assert_true(r->interval > got->last_final);
		got->last_final = r->interval;
	}
	got->results++;
}

static void on_shift(void *arg, unsigned shift)
{
	struct end *end = arg;
	assert_true(shift != end->wire->duet->got[end->side].shift);
	end->wire->duet->got[end->side].shift = shift;
}

/* -- traffic ------------------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void count_delay(struct truth *t, int64_t delay_ns)
{
	t->delay_sum += (double)delay_ns;
	t->delay_sum2 += (double)delay_ns * (double)delay_ns;
	t->min_ns = t->min_ns && t->min_ns < delay_ns ? t->min_ns : delay_ns;
	t->max_ns = t->max_ns > delay_ns ? t->max_ns : delay_ns;
}

/* One packet; appends its arrivals. */
static size_t send_packet(struct duet *duet, struct ow_random *random, const struct packet *p, struct packet *arrivals)
{
	const struct traffic *t = &duet->traffic;
	struct truth *truth = &duet->truth[p->time_ns / t->length_ns];
	size_t count = 1;
	bool lost = ow_random_unit(random) < t->loss;
	for (unsigned shift = 0; shift < SHIFTS; shift++) {
		bool sampled = ow_sampled(ow_sample_rank(&duet->identity, p->id), shift);
		truth->sent_at[shift] += sampled;
		truth->lost_at[shift] += sampled && lost;
	}
	truth->sent++;
	truth->lost += lost;
	if (lost)
		return 0;
	int64_t delay = t->delay_ns + (int64_t)(-log(1 - ow_random_unit(random)) * (double)t->jitter_ns);
	if (t->slow > 0 && ow_random_unit(random) < t->slow)
		delay += t->slow_ns;
	int64_t blind_ns = (int64_t)t->blind_at * t->length_ns;
	if (p->time_ns < blind_ns && 5 * (blind_ns - p->time_ns) <= t->length_ns)
		delay += t->length_ns / 2;
	arrivals[0] = (struct packet){p->id, p->time_ns + delay};
	truth->arrived_late += arrivals[0].time_ns / t->length_ns != p->time_ns / t->length_ns;
	count_delay(truth, delay);
	if (ow_random_unit(random) < t->duplicate)
		arrivals[count++] =
			(struct packet){p->id, arrivals[0].time_ns + 1 + (int64_t)ow_random_below(random, 1000)};
	return count;
}

/* Those that were sent before the points began only arrive. */
static void add_beats(struct duet *duet, struct ow_random *random, struct packet *p[2], size_t count[2])
{
	const struct traffic *t = &duet->traffic;
	int64_t end_ns = (int64_t)t->intervals * t->length_ns;
	if (!t->beat_ns)
		return;
	for (int64_t ns = t->beat_ns / 3 - 4 * t->delay_ns / t->beat_ns * t->beat_ns; ns < end_ns; ns += t->beat_ns) {
		struct packet beat = {ow_mix64(t->seed), ns};
		if (ns >= 0) {
			p[0][count[0]++] = beat;
			count[1] += send_packet(duet, random, &beat, p[1] + count[1]);
		} else if (ns + t->delay_ns >= 0) {
			p[1][count[1]++] = (struct packet){beat.id, ns + t->delay_ns};
		}
	}
	qsort(p[0], count[0], sizeof *p[0], by_time);
}

/* All packets as both points see them. */
static void make_packets(struct duet *duet, struct packet *p[2], size_t count[2])
{
	const struct traffic *t = &duet->traffic;
	size_t all = t->packets * t->intervals, n = 0;
	struct ow_random random;
	ow_random_seed(&random, t->seed);
	size_t beats =
		t->beat_ns
			? (size_t)((int64_t)t->intervals * t->length_ns / t->beat_ns + 8 * t->delay_ns / t->beat_ns + 2)
			: 0;
	p[0] = malloc((2 * (all + beats) + 1) * sizeof *p[0]);
	p[1] = malloc((2 * (all + beats) + 1) * sizeof *p[1]);
	assert_true(p[0] && p[1]);
	for (size_t i = 0; i < all; i++) {
		if (t->calm && i / t->packets >= t->calm_from && i % t->calm)
			continue;
		p[0][n++] = (struct packet){ow_mix64(t->seed ^ (i + 1) << 8),
		                            (int64_t)((double)i / (double)t->packets * (double)t->length_ns)};
	}
	count[0] = all = n;
	count[1] = 0;
	for (size_t i = 0; i < all; i++) {
		bool alike = i && ow_random_unit(&random) < t->identical;
		if (alike)
			p[0][i].id = p[0][i - 1 - ow_random_below(&random, i < 20 ? i : 20)].id;
		count[1] += send_packet(duet, &random, &p[0][i], p[1] + count[1]);
	}
	add_beats(duet, &random, p, count);
	qsort(p[1], count[1], sizeof *p[1], by_time);
	for (size_t i = 0; t->mirrored_ns && i < all; i++)
		p[0][count[0]++] = (struct packet){p[0][i].id, p[0][i].time_ns + t->mirrored_ns};
	qsort(p[0], count[0], sizeof *p[0], by_time);
}

/* The packets up to the end of the interval go through the interval log; returns those of the interval. */
static struct ow_interval_packets *make_page(struct duet *duet, struct ow_interval_log *ledger, const struct packet *p,
                                             size_t count, size_t *at, int64_t interval, int side,
                                             const struct ow_identity *identity)
{
	int64_t length = duet->traffic.length_ns, end = (interval + 1) * length;
	unsigned shift =
		duet->traffic.shift[side] > duet->got[side].shift ? duet->traffic.shift[side] : duet->got[side].shift;
	while (*at < count && p[*at].time_ns < end) {
		struct ow_chunk *chunk = calloc(1, sizeof *chunk + OW_CHUNK_STAMPS * sizeof *chunk->sighting);
		chunk->interval = interval;
		chunk->sample_shift = shift;
		chunk->session = !duet->traffic.elsewhere;
		for (; *at < count && p[*at].time_ns < end && chunk->count < OW_CHUNK_STAMPS; ++*at) {
			chunk->packets++;
			chunk->bytes += 500;
			if (ow_sampled(ow_sample_rank(identity, p[*at].id), shift))
				chunk->sighting[chunk->count++] =
					(struct ow_sighting){p[*at].id, p[*at].time_ns - interval * length};
		}
		assert_int_equal(ow_interval_log_add(ledger, chunk), 0);
		free(chunk);
	}
	struct ow_drops drops = {duet->traffic.drops[side], T0 + interval * length, T0 + interval * length};
	ow_interval_log_drops(ledger, &drops);
	struct ow_interval_packets *page = ow_interval_log_next(ledger, T0 + end);
	assert_non_null(page);
	assert_int_equal(page->interval, interval);
	if (side == 1 && duet->traffic.blind_at && interval == duet->traffic.blind_at)
		snprintf(page->blind, sizeof page->blind, "eth0 was down");
	return page;
}

/* -- run ---------------------------------------------------------------------------------------------------------- */

static void open_outcomes(struct outcomes *got, unsigned intervals)
{
	got->provisional = calloc(intervals, sizeof *got->provisional);
	got->final = calloc(intervals, sizeof *got->final);
	got->has_provisional = calloc(intervals, sizeof *got->has_provisional);
	got->has_final = calloc(intervals, sizeof *got->has_final);
	got->last_final = -1;
}

static void open_points(struct duet *duet, const struct ow_exchange_options *options, struct end end[2],
                        struct ow_interval_log *ledger[2], struct ow_exchange_options *o)
{
	*o = *options;
	o->lane = 9;
	memcpy(o->segment, "a-b", 4);
	memcpy(o->class_name, "all", 4);
	memcpy(o->from, "a", 2);
	memcpy(o->to, "b", 2);
	o->identity = (struct ow_identity){.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&o->identity, duet->traffic.seed);
	duet->identity = o->identity;
	o->seed = duet->traffic.seed + 1;
	o->t0_ns = T0;
	o->length_ns = duet->traffic.length_ns;
	o->horizon = o->horizon ? o->horizon : 2;
	o->patience_ns = PATIENCE_NS;
	o->intervals_max = o->intervals_max ? o->intervals_max : 16;
	for (int side = 0; side < 2; side++) {
		size_t most = duet->traffic.sightings_max[side];
		o->sending = side == 0;
		struct ow_exchange_sinks sinks = {.send = on_send,
		                                  .result = on_result,
		                                  .shift = on_shift,
		                                  .steady_ns = on_steady_ns,
		                                  .clock = duet->traffic.trusted ? on_clock : NULL,
		                                  .arg = &end[side]};
		assert_int_equal(ow_exchange_create(o, &sinks, &duet->x[side]), 0);
		struct ow_interval_log_options books = {o->identity, T0, o->length_ns, most ? most : SIZE_MAX / 64, 4};
		assert_int_equal(ow_interval_log_create(&books, &ledger[side]), 0);
		open_outcomes(&duet->got[side], duet->intervals);
	}
}

static void break_and_mend(struct duet *duet, struct wire *wire, int64_t interval, int64_t now_ns)
{
	if (!duet->line.cut_at)
		return;
	if (interval % 3 == 1) {
		drop_all(wire);
		wire->down = true;
	} else if (interval % 3 == 2) {
		wire->down = false;
		ow_exchange_connected(duet->x[0], now_ns);
		ow_exchange_connected(duet->x[1], now_ns);
	}
}

void duet_run(struct duet *duet, const struct traffic *traffic, const struct line *line,
              const struct ow_exchange_options *options)
{
	memset(duet, 0, sizeof *duet);
	duet->traffic = *traffic;
	duet->line = *line;
	duet->intervals = traffic->intervals + TAIL;
	duet->truth = calloc(duet->intervals, sizeof *duet->truth);
	struct wire *wire = calloc(1, sizeof *wire);
	wire->duet = duet;
	ow_random_seed(&wire->random, traffic->seed + 2);
	struct end end[2] = {{wire, 0}, {wire, 1}};
	struct ow_interval_log *ledger[2];
	struct ow_exchange_options o;
	struct packet *p[2];
	size_t count[2], at[2] = {0, 0};
	open_points(duet, options, end, ledger, &o);
	make_packets(duet, p, count);
	struct ow_clock_state clock = {true, 1000};
	int64_t now = T0;
	for (int64_t i = 0; i < duet->intervals; i++) {
		now = T0 + (i + 1) * traffic->length_ns;
		deliver(wire, now);
		break_and_mend(duet, wire, i, now);
		/* Now one, now the other is first. */
		for (int k = 0; k < 2; k++) {
			int side = (int)((i + k) & 1);
			struct ow_interval_packets *page =
				make_page(duet, ledger[side], p[side], count[side], &at[side], i, side, &o.identity);
			wire->now_ns = now;
			assert_int_equal(ow_exchange_packets(duet->x[side], page, &clock, now + 1000), 0);
		}
		deliver(wire, now + 2000);
		ow_exchange_tick(duet->x[0], now + 3000);
		ow_exchange_tick(duet->x[1], now + 3000);
	}
	ow_exchange_finish(duet->x[0], NULL);
	ow_exchange_finish(duet->x[1], NULL);
	for (int i = 0; i < 400 && !(ow_exchange_done(duet->x[0]) && ow_exchange_done(duet->x[1])); i++) {
		now += 100000000;
		deliver(wire, now);
		ow_exchange_tick(duet->x[0], now);
		ow_exchange_tick(duet->x[1], now);
	}
	for (int side = 0; side < 2; side++) {
		assert_true(ow_exchange_done(duet->x[side]));
		ow_exchange_total(duet->x[side], &duet->total[side]);
		ow_exchange_free(duet->x[side]);
		ow_interval_log_free(ledger[side]);
		free(p[side]);
	}
	drop_all(wire);
	free(wire);
}

void duet_done(struct duet *duet)
{
	for (int side = 0; side < 2; side++) {
		free(duet->got[side].provisional);
		free(duet->got[side].final);
		free(duet->got[side].has_provisional);
		free(duet->got[side].has_final);
	}
	free(duet->truth);
}
