/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 14 and 15 of the RDA paper: how the parts of a live measurement grow with buckets and with records. Data is
 * sent through the messages and the TLS session of points, over the loopback interface (in the paper: a gigabit
 * switch), between two threads. Times are medians; the spread is that of the middle half.
 */
#include "papers/figures_rda.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/sort.h"
#include "base/time.h"
#include "estimate/paired.h"
#include "estimate/rda_estimate.h"
#include "papers/tlspair.h"
#include "synopsis/rda.h"
#include "exchange/message.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS     (10 * OW_NS_PER_S)
#define REPEATS_MAX 101
#define RDA_SEED    1234

/* Times of repeated measurements. */
struct times {
	double s[REPEATS_MAX];
	unsigned count;
};

static double median_of(struct times *t)
{
	ow_sort_doubles(t->s, t->count);
	return t->s[t->count / 2];
}

static int times_point(struct ow_figure_run *run, const char *series, double x, struct times *t)
{
	double median = median_of(t);
	return ow_figure_point(run, series, x, median, t->s[t->count / 4], t->s[3 * t->count / 4]);
}

/* The exponent by which the times grow from the first to the last point. */
static double exponent_of(double x1, double s1, double x2, double s2)
{
	return log(s2 / s1) / log(x2 / x1);
}

/*
 * Makes two RDAs as published with `buckets` buckets in two banks and ten packets for each bucket, each delayed by
 * about 50 us.
 */
static int make_rdas(uint32_t buckets, uint64_t seed, struct ow_synopsis **ret_a, struct ow_synopsis **ret_b)
{
	struct ow_rda_params params = {2, buckets / 2, false};
	struct ow_synopsis *a = NULL, *b = NULL;
	struct ow_random random;
	ow_random_seed(&random, seed);
	int r = ow_rda_create(&params, RDA_SEED, &a);
	if (r == 0)
		r = ow_rda_create(&params, RDA_SEED, &b);
	for (uint64_t i = 0; i < 5 * (uint64_t)buckets && r == 0; i++) {
		struct ow_sighting p = {ow_random_u64(&random), (int64_t)(i * 1000)};
		a->ops->add(a, &p, 1);
		p.time_ns += 50000 + (int64_t)(ow_random_u64(&random) % 100000);
		b->ops->add(b, &p, 1);
	}
	if (r < 0) {
		ow_synopsis_free(a);
		ow_synopsis_free(b);
		return r;
	}
	*ret_a = a;
	*ret_b = b;
	return 0;
}

/* -- figure 14: sending ------------------------------------------------------------------------------------------- */

/* The point that answers: ASK with a table of this many cells, NAMES with as many times. */
struct answerer {
	struct ow_session *session;
	struct ow_synopsis *rda; /* the answer; prepared before, so that only sending is measured */
	uint8_t *bytes;
	int64_t *time_ns;
	atomic_bool stop;
	int code;
	struct ow_error err;
};

static int reply(struct answerer *w, const struct ow_message *message)
{
	uint8_t *frame;
	size_t size;
	int r = ow_message_encode(message, &frame, &size, &w->err);
	if (r < 0)
		return r;
	r = ow_session_send(w->session, frame, size);
	free(frame);
	return r < 0 ? ow_error_set(&w->err, -r, "an answer of %zu bytes could not be sent", size) : 0;
}

static int answer(struct answerer *w, const uint8_t *frame, size_t size)
{
	struct ow_message question, message = {.lane = 1};
	int r = ow_message_decode(frame, size, &question, &w->err);
	if (r < 0)
		return r;
	if (question.type == OW_MESSAGE_ASK) {
		message.type = OW_MESSAGE_SYNOPSIS;
		ow_synopsis_encode(w->rda, w->bytes);
		message.synopsis = (struct ow_message_synopsis){
			.part = OW_MESSAGE_TABLE,
			.synopsis = w->bytes,
			.synopsis_size = (uint32_t)ow_synopsis_encoded_size(w->rda),
		};
	} else {
		message.type = OW_MESSAGE_TIMES;
		message.times =
			(struct ow_message_times){.time_ns = w->time_ns, .times = question.names.wanted_size / 8};
	}
	ow_message_done(&question);
	return reply(w, &message);
}

static void *answer_all(void *arg)
{
	struct answerer *w = arg;
	while (w->code == 0 && !atomic_load(&w->stop)) {
		const uint8_t *frame;
		size_t size;
		w->code = ow_tlspair_receive(w->session, ow_clock_steady_ns() + 50 * OW_NS_PER_MS, &frame, &size,
		                             &w->err);
		if (w->code == 0 && frame)
			w->code = answer(w, frame, size);
	}
	return NULL;
}

/* Sends the question. Returns the time until its answer has arrived and was decoded. */
static int ask_once(struct ow_session *session, const struct ow_message *question, double *ret_s, struct ow_error *err)
{
	uint8_t *out;
	const uint8_t *in;
	size_t size;
	int64_t start = ow_clock_steady_ns();
	int r = ow_message_encode(question, &out, &size, err);
	if (r < 0)
		return r;
	r = ow_session_send(session, out, size);
	free(out);
	if (r < 0)
		return ow_error_set(err, -r, "a question of %zu bytes could not be sent", size);
	r = ow_tlspair_receive(session, start + WAIT_NS, &in, &size, err);
	if (r < 0)
		return r;
	if (!in)
		return ow_error_set(err, ETIMEDOUT, "no answer through the loopback interface");
	struct ow_message message;
	r = ow_message_decode(in, size, &message, err);
	if (r < 0)
		return r;
	struct ow_synopsis *rda = NULL;
	if (message.type == OW_MESSAGE_SYNOPSIS)
		r = ow_synopsis_decode(message.synopsis.synopsis, message.synopsis.synopsis_size, RDA_SEED, &rda, err);
	ow_synopsis_free(rda);
	ow_message_done(&message);
	*ret_s = (double)(ow_clock_steady_ns() - start) / 1e9;
	return r;
}

/*
 * Asks as often as there is room for times, after one question that does not count: it fills caches and the TCP window.
 */
static int ask_often(struct ow_tlspair *pair, struct answerer *w, const struct ow_message *question,
                     struct times *times, struct ow_error *err)
{
	pthread_t thread;
	w->session = pair->session[1];
	if (pthread_create(&thread, NULL, answer_all, w) != 0)
		return ow_error_set(err, EAGAIN, "no thread");
	double s;
	int r = ask_once(pair->session[0], question, &s, err);
	for (unsigned i = 0; i < times->count && r == 0; i++)
		r = ask_once(pair->session[0], question, &times->s[i], err);
	atomic_store(&w->stop, true);
	pthread_join(thread, NULL);
	if (w->code < 0) {
		*err = w->err;
		return w->code;
	}
	return r;
}

static int send_rda(struct ow_tlspair *pair, uint32_t buckets, uint64_t seed, struct times *times, struct ow_error *err)
{
	struct answerer w = {0};
	struct ow_synopsis *other;
	int r = make_rdas(buckets, seed, &other, &w.rda);
	if (r < 0)
		return r;
	w.bytes = malloc(ow_synopsis_encoded_size(w.rda));
	struct ow_message ask = {.type = OW_MESSAGE_ASK, .lane = 1};
	ask.ask = (struct ow_message_ask){.part = OW_MESSAGE_TABLE, .banks = 2, .cells = buckets / 2};
	r = w.bytes ? ask_often(pair, &w, &ask, times, err) : -ENOMEM;
	ow_synopsis_free(w.rda);
	ow_synopsis_free(other);
	free(w.bytes);
	return r;
}

static int send_records(struct ow_tlspair *pair, uint32_t records, uint64_t seed, struct times *times,
                        struct ow_error *err)
{
	struct answerer w = {.time_ns = malloc(records * sizeof *w.time_ns)};
	uint8_t *ids = malloc(8 * (size_t)records);
	struct ow_random random;
	ow_random_seed(&random, seed);
	int r = w.time_ns && ids ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < records && r == 0; i++) {
		/* Ids are sent in rising order, times are not. */
		ow_store_le64(ids + 8 * (size_t)i, UINT64_MAX / records * i + ow_random_u64(&random) % 1000);
		w.time_ns[i] = (int64_t)(ow_random_u64(&random) % OW_NS_PER_S);
	}
	struct ow_message names = {.type = OW_MESSAGE_NAMES, .lane = 1};
	names.names = (struct ow_message_names){.wide = true, .wanted = ids, .wanted_size = 8 * records};
	if (r == 0)
		r = ask_often(pair, &w, &names, times, err);
	free(ids);
	free(w.time_ns);
	return r;
}

int ow_figure_rda_14(struct ow_figure_run *run, struct ow_error *err)
{
	static const uint32_t sizes[] = {100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	struct ow_tlspair pair;
	int r = ow_tlspair_create(&pair, err);
	if (r < 0)
		return r;
	double median[2][SIZES] = {0};
	for (unsigned i = 0; i < SIZES && r == 0; i++) {
		for (int records = 0; records < 2 && r == 0; records++) {
			struct times times = {.count = ow_figure_quick(run) ? 15 : REPEATS_MAX};
			r = (records ? send_records : send_rda)(&pair, sizes[i], ow_figure_seed(run) + i, &times, err);
			if (r == 0)
				r = times_point(run, records ? "(b) records of missing packets" : "(a) RDA, buckets",
				                sizes[i], &times);
			median[records][i] = times.s[times.count / 2];
		}
		ow_figure_progress(run, (i + 1.) / SIZES);
	}
	ow_tlspair_done(&pair);
	if (r < 0)
		return r;
	char text[160];
	snprintf(text, sizeof text, "%.2f ms for 1000, %.2f for 20,000, %.1f for 100,000 buckets", 1e3 * median[0][3],
	         1e3 * median[0][7], 1e3 * median[0][9]);
	/*
	 * A loose limit: for ten times the buckets, the time may grow at most this much. It detects jumps on any
	 * machine.
	 */
	r = ow_figure_claim(run, "(a) the time to send an RDA grows modestly with the number of buckets",
	                    exponent_of(sizes[6], median[0][6], sizes[9], median[0][9]) < 1.5, "%s", text);
	double power = exponent_of(sizes[6], median[1][6], sizes[9], median[1][9]);
	return r < 0 ? r
	             : ow_figure_claim(run, "(b) the time to request missing packets grows linearly with the records",
	                               power > 0.5 && power < 1.5,
	                               "%.2f ms for 1000, %.2f for 10,000, %.1f for 100,000 records: as n^%.1f",
	                               1e3 * median[1][3], 1e3 * median[1][6], 1e3 * median[1][9], power);
}

/* -- figure 15: computing ----------------------------------------------------------------------------------------- */

/* The average over the buckets that agree, and the list of these: one pass over all buckets, as in the paper. */
static double average_of(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_clean_bucket *list,
                         size_t in_bank[2])
{
	const struct ow_rda *x = ow_rda_of(a), *y = ow_rda_of(b);
	size_t n = 0;
	double delay = 0, packets = 0;
	for (uint32_t bank = 0; bank < 2; bank++) {
		size_t first = n;
		for (size_t i = (size_t)bank * x->params.cells, end = i + x->params.cells; i < end; i++) {
			if (x->cell[i].id != y->cell[i].id || x->cell[i].count != y->cell[i].count || !x->cell[i].count)
				continue;
			list[n] = (struct ow_clean_bucket){(int64_t)(y->cell[i].ts - x->cell[i].ts), x->cell[i].count};
			delay += (double)list[n].delay_ns;
			packets += list[n++].packets;
		}
		in_bank[bank] = n - first;
	}
	return packets > 0 ? delay / packets : 0;
}

enum { AVERAGE, STDDEV, ALL_PUBLISHED, ALL_CORRECTED, STAGES };
static const char *const stage_name[STAGES] = {"(a) average", "(b) standard deviation, collapsed pairs",
                                               "all, with decoding, as published",
                                               "all, with decoding, centred deviation"};

static double since(int64_t start_ns)
{
	return (double)(ow_clock_steady_ns() - start_ns) / 1e9;
}

static int compute_once(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_clean_bucket *list,
                        double ret_s[STAGES])
{
	size_t in_bank[2];
	int64_t start = ow_clock_steady_ns();
	double mean = average_of(a, b, list, in_bank);
	ret_s[AVERAGE] = since(start);
	const struct ow_clean_bucket *bank[2] = {list, list + in_bank[0]};
	struct ow_value stddev;
	start = ow_clock_steady_ns();
	ow_paired_stddev(bank, in_bank, 2, mean, &stddev);
	ret_s[STDDEV] = since(start);
	struct ow_view va = {.synopsis = a}, vb = {.synopsis = b};
	for (int corrected = 0; corrected < 2; corrected++) {
		struct ow_rda_estimate_options options = {.published = !corrected};
		struct ow_estimate estimate;
		start = ow_clock_steady_ns();
		int r = ow_rda_estimate_with(&va, &vb, &options, &estimate);
		if (r < 0)
			return r;
		ret_s[ALL_PUBLISHED + corrected] = since(start);
		/* The timed scan must give the same result as the estimator. */
		if (!(fabs(estimate.mean_ns.value - mean) <= 1e-6 * mean))
			return -EDOM;
	}
	return 0;
}

static int compute_often(uint32_t buckets, uint64_t seed, unsigned repeats, struct times times[STAGES],
                         struct ow_error *err)
{
	struct ow_synopsis *a, *b;
	int r = make_rdas(buckets, seed, &a, &b);
	if (r < 0)
		return r;
	struct ow_clean_bucket *list = malloc(buckets * sizeof *list);
	r = list ? 0 : -ENOMEM;
	for (unsigned i = 0; i < repeats && r == 0; i++) {
		double s[STAGES];
		r = compute_once(a, b, list, s);
		for (int k = 0; k < STAGES && r == 0; k++)
			times[k].s[times[k].count++] = s[k];
	}
	if (r == -EDOM)
		ow_error_set(err, EDOM, "two ways to compute the average of %u buckets disagree", buckets);
	free(list);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	return r;
}

int ow_figure_rda_15(struct ow_figure_run *run, struct ow_error *err)
{
	static const uint32_t sizes[] = {1000, 2000, 5000, 10000, 20000, 50000, 100000};
	enum { SIZES = sizeof sizes / sizeof *sizes };
	double median[STAGES][SIZES] = {{0}};
	int r = 0;
	for (unsigned i = 0; i < SIZES && r == 0; i++) {
		struct times times[STAGES] = {0};
		r = compute_often(sizes[i], ow_figure_seed(run) + i, ow_figure_quick(run) ? 15 : REPEATS_MAX, times,
		                  err);
		for (int k = 0; k < STAGES && r == 0; k++) {
			median[k][i] = median_of(&times[k]);
			r = times_point(run, stage_name[k], sizes[i], &times[k]);
		}
		ow_figure_progress(run, (i + 1.) / SIZES);
	}
	if (r < 0)
		return r;
	double power = exponent_of(sizes[2], median[AVERAGE][2], sizes[6], median[AVERAGE][6]);
	r = ow_figure_claim(run, "(a) the average over 20,000 buckets takes 3 ms, and grows linearly",
	                    median[AVERAGE][4] < 3e-3, "%.3f ms for 20,000 buckets, as n^%.1f",
	                    1e3 * median[AVERAGE][4], power);
	power = exponent_of(sizes[2], median[STDDEV][2], sizes[6], median[STDDEV][6]);
	return r < 0 ? r
	             : ow_figure_claim(run, "(b) the standard deviation takes super-linear time", power > 1.2,
	                               "%.3f ms for 20,000 buckets, as n^%.1f; all of it with decoding %.2f ms",
	                               1e3 * median[STDDEV][4], power, 1e3 * median[ALL_CORRECTED][4]);
}
