/* SPDX-License-Identifier: Apache-2.0 */
/* Two points of one process measure synthetic packets: liverun.h. */
#include "papers/liverun.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "papers/tlspair.h"
#include "base/array.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_NS    OW_NS_PER_S
#define HORIZON      1
#define PAYLOAD_BITS (1448 * 8.0) /* of a full TCP segment */
#define PACKET_BYTES 1500
#define MEAN_NS      50e3
/* The standard deviation in ns: a wave between these two values, with this many intervals. */
#define STDDEV_LOW  50e3
#define STDDEV_HIGH 1e6
#define WAVE        20.0
/* The longest delay. It is shorter than an interval, so that the next interval decides about every packet. */
#define DELAY_MAX_NS (OW_NS_PER_S / 2)
/*
 * Shares of packets that only one point sees, log-uniform between these: packets that the network loses, and packets
 * that a capture misses. With much fewer the paper's MinHash sees no difference at all, and its RDA gets a single cell
 * per bank.
 */
#define LOSS_LOW      1e-3
#define LOSS_HIGH     2e-2
#define SIGHTINGS_MAX (1u << 20)
#define PATIENCE_NS   (20 * OW_NS_PER_S)
#define LANE          1

/* -- packets ------------------------------------------------------------------------------------------------------ */

/* The packets that a point sees in an interval, with times since its start. */
struct seen {
	struct ow_sighting *sighting;
	size_t count, room;
};

struct traffic {
	struct ow_random random;
	struct seen a, b, later; /* later: packets that B sees in the next interval */
};

static int see(struct seen *seen, uint64_t id, int64_t time_ns)
{
	if (OW_GROW(seen->sighting, seen->room, seen->count + 1) < 0)
		return -ENOMEM;
	seen->sighting[seen->count++] = (struct ow_sighting){id, time_ns};
	return 0;
}

/* Log-normal with this mean and standard deviation: a long tail, as behind queues with other traffic. */
static int64_t delay_of(struct ow_random *random, double mean_ns, double stddev_ns)
{
	double ratio = stddev_ns / mean_ns, sigma2 = log1p(ratio * ratio);
	/* The method of Box and Muller. */
	double radius = sqrt(-2 * log1p(-ow_random_unit(random))),
	       normal = radius * cos(2 * M_PI * ow_random_unit(random));
	double delay = exp(log(mean_ns) - sigma2 / 2 + sqrt(sigma2) * normal);
	return delay < DELAY_MAX_NS ? (int64_t)delay : DELAY_MAX_NS;
}

/* The next interval: fills a and b, and the truth about what is sent in it. */
static int next_interval(struct traffic *t, unsigned interval, double scale, struct ow_liverun_truth *ret_truth)
{
	struct seen swap = t->b;
	t->b = t->later;
	t->later = swap;
	t->later.count = t->a.count = 0;
	double load = scale * 1e6 * (940 + 2 * ow_random_unit(&t->random));
	double loss = LOSS_LOW * pow(LOSS_HIGH / LOSS_LOW, ow_random_unit(&t->random));
	double height = (1 + sin(2 * M_PI * interval / WAVE)) / 2 * (0.5 + ow_random_unit(&t->random) / 2);
	double stddev = STDDEV_LOW * pow(STDDEV_HIGH / STDDEV_LOW, height);
	uint64_t packets = (uint64_t)(load / PAYLOAD_BITS);
	struct ow_liverun_truth truth = {.sent = packets, .load = load};
	double sum = 0, squares = 0;
	int r = 0;
	for (uint64_t i = 0; i < packets && r == 0; i++) {
		uint64_t id = ow_random_u64(&t->random);
		int64_t sent = (int64_t)((double)LENGTH_NS * (double)i / (double)packets);
		r = see(&t->a, id, sent);
		if (ow_random_unit(&t->random) < loss) {
			truth.lost++;
			continue;
		}
		int64_t delay = delay_of(&t->random, MEAN_NS, stddev), arrived = sent + delay;
		sum += (double)delay;
		squares += (double)delay * (double)delay;
		if (r == 0)
			r = arrived < LENGTH_NS ? see(&t->b, id, arrived) : see(&t->later, id, arrived - LENGTH_NS);
	}
	double arrived = (double)(truth.sent - truth.lost);
	truth.mean_ns = sum / arrived;
	truth.stddev_ns = sqrt(fmax(0, squares / arrived - truth.mean_ns * truth.mean_ns));
	ow_sightings_sort(t->b.sighting, t->b.count);
	*ret_truth = truth;
	return r;
}

static void traffic_done(struct traffic *t)
{
	free(t->a.sighting);
	free(t->b.sighting);
	free(t->later.sighting);
}

/* -- points ------------------------------------------------------------------------------------------------------- */

struct run;

struct side {
	struct run *run;
	struct ow_session *session;
	struct ow_interval_log *log;
	struct ow_exchange *exchange;
	struct ow_interval_packets *packets; /* packets of the current interval */
	int code;
	struct ow_error err;
};

struct run {
	const struct ow_liverun_options *options;
	struct ow_liverun *to;
	unsigned intervals; /* one more than asked for: its packets decide about the last interval */
	struct ow_tlspair pair;
	struct side side[2]; /* the sending point and the receiving one */
	int64_t t0_ns;
	pthread_barrier_t barrier;
	atomic_int answered; /* number of intervals that have a first result; intervals + 1: all results are final */
	atomic_bool failed;
	unsigned interval;
	int64_t origin_ns; /* steady time at the end of the interval */
	uint64_t *known;   /* bits of each interval: 1 = there is a first result, 2 = there is a final one */
};

/* The real time, as if the current interval had ended when its measurement started. */
static int64_t now_of(const struct run *run)
{
	return run->t0_ns + (int64_t)(run->interval + 1) * LENGTH_NS + ow_clock_steady_ns() - run->origin_ns;
}

static void on_send(void *arg, const uint8_t *frame, size_t size)
{
	struct side *side = arg;
	int r = ow_session_send(side->session, frame, size);
	if (r < 0 && side->code == 0)
		side->code = ow_error_set(&side->err, -r, "a message of %zu bytes could not be sent", size);
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	struct side *side = arg;
	struct run *run = side->run;
	if (side != &run->side[0] || result->interval < 0 || result->interval >= run->intervals)
		return;
	struct ow_interval_result *keep = &run->to->result[result->interval];
	struct ow_result_cost first = keep->cost;
	*keep = *result;
	/* The time until this result, not until the last message. */
	keep->cost.ready_ns = now_of(run) - result->start_ns - result->length_ns;
	/* The stages of an interval are those of its first result, because the final result only waits. */
	if (run->known[result->interval])
		keep->cost = first;
	run->known[result->interval] |= result->final ? 3 : 1;
	int through = atomic_load(&run->answered);
	while (through < (int)run->intervals && run->known[through])
		through++;
	atomic_store(&run->answered, through);
}

static void on_shift(void *arg, unsigned sample_shift)
{
	(void)sample_shift;
	struct side *side = arg;
	if (side->code == 0)
		side->code = ow_error_set(&side->err, EDOM, "a point samples although nothing is too large");
}

/* Passes frames to the exchange until the condition holds. */
static void serve(struct side *side, int until)
{
	struct run *run = side->run;
	int64_t give_up = ow_clock_steady_ns() + PATIENCE_NS;
	while (side->code == 0 && !atomic_load(&run->failed) && atomic_load(&run->answered) < until) {
		const uint8_t *frame;
		size_t size;
		side->code = ow_tlspair_receive(side->session, ow_clock_steady_ns() + OW_NS_PER_MS, &frame, &size,
		                                &side->err);
		if (side->code == 0 && frame)
			side->code = ow_exchange_frame(side->exchange, frame, size, now_of(run), &side->err);
		if (side->code == 0 && side == &run->side[0] && ow_exchange_done(side->exchange))
			atomic_store(&run->answered, (int)run->intervals + 1);
		if (side->code == 0 && ow_clock_steady_ns() > give_up)
			side->code = ow_error_set(&side->err, ETIMEDOUT, "no result of interval %u", run->interval);
	}
	if (side->code < 0)
		atomic_store(&run->failed, true);
}

/* Measures an interval at one point; both points start at the same time. */
static void measure(struct side *side)
{
	static const struct ow_clock_state clock = {true, 0};
	struct run *run = side->run;
	struct ow_interval_packets *packets = side->packets;
	side->packets = NULL;
	if (side->code == 0)
		side->code = ow_exchange_packets(side->exchange, packets, &clock, now_of(run));
	serve(side, (int)run->interval + 1);
}

static void *receiving_point(void *arg)
{
	struct side *side = arg;
	struct run *run = side->run;
	for (;;) {
		pthread_barrier_wait(&run->barrier);
		if (run->interval == run->intervals || atomic_load(&run->failed))
			break;
		measure(side);
		pthread_barrier_wait(&run->barrier);
	}
	ow_exchange_finish(side->exchange, NULL);
	serve(side, (int)run->intervals + 1);
	return NULL;
}

/* Records the packets of an interval through the interval log. */
static int make_packets(struct side *side, const struct seen *seen, unsigned interval)
{
	struct ow_chunk *chunk = malloc(sizeof *chunk + OW_CHUNK_STAMPS * sizeof *chunk->sighting);
	int r = chunk ? 0 : -ENOMEM;
	for (size_t first = 0; first < seen->count && r == 0; first += OW_CHUNK_STAMPS) {
		size_t count = seen->count - first < OW_CHUNK_STAMPS ? seen->count - first : OW_CHUNK_STAMPS;
		*chunk = (struct ow_chunk){.lane = LANE,
		                           .count = (uint32_t)count,
		                           .interval = interval,
		                           .packets = count,
		                           .bytes = count * PACKET_BYTES};
		memcpy(chunk->sighting, seen->sighting + first, count * sizeof *seen->sighting);
		r = ow_interval_log_add(side->log, chunk);
	}
	free(chunk);
	if (r == 0)
		side->packets = ow_interval_log_next(side->log, side->run->t0_ns + (int64_t)(interval + 1) * LENGTH_NS);
	return r < 0 ? r : side->packets ? 0 : -ENOMEM;
}

static int side_create(struct run *run, int which)
{
	struct side *side = &run->side[which];
	struct ow_exchange_options options = {.lane = LANE,
	                                      .sending = which == 0,
	                                      .method = run->options->method,
	                                      .segment = "rack",
	                                      .class_name = "all",
	                                      .from = "a",
	                                      .to = "b",
	                                      .identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX},
	                                      .seed = run->options->seed,
	                                      .t0_ns = run->t0_ns,
	                                      .length_ns = LENGTH_NS,
	                                      .horizon = HORIZON,
	                                      .patience_ns = PATIENCE_NS,
	                                      .intervals_max = 4};
	ow_identity_seed(&options.identity, run->options->seed);
	struct ow_interval_log_options of_log = {options.identity, run->t0_ns, LENGTH_NS, SIGHTINGS_MAX, 4};
	struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result, .shift = on_shift, .arg = side};
	side->run = run;
	side->session = run->pair.session[which];
	int r = ow_interval_log_create(&of_log, &side->log);
	return r < 0 ? r : ow_exchange_create(&options, &sinks, &side->exchange);
}

static void side_done(struct side *side)
{
	ow_interval_packets_free(side->packets);
	ow_exchange_free(side->exchange);
	ow_interval_log_free(side->log);
}

/* -- the run ------------------------------------------------------------------------------------------------------ */

/* The sending point; runs on the caller's thread. */
static int all_intervals(struct run *run, struct traffic *traffic)
{
	const struct ow_liverun_options *o = run->options;
	struct side *a = &run->side[0], *b = &run->side[1];
	int r = 0;
	for (unsigned i = 0; i < run->intervals && r == 0; i++) {
		r = next_interval(traffic, i, o->scale, &run->to->truth[i]);
		if (r == 0)
			r = make_packets(a, &traffic->a, i);
		if (r == 0)
			r = make_packets(b, &traffic->b, i);
		if (r < 0)
			break;
		run->interval = i;
		run->origin_ns = ow_clock_steady_ns();
		pthread_barrier_wait(&run->barrier);
		measure(a);
		pthread_barrier_wait(&run->barrier);
		r = atomic_load(&run->failed) ? -EPROTO : 0;
		if (o->on_progress)
			o->on_progress(o->arg, (i + 1.) / run->intervals);
	}
	if (r < 0)
		atomic_store(&run->failed, true);
	run->interval = run->intervals;
	pthread_barrier_wait(&run->barrier);
	ow_exchange_finish(a->exchange, NULL);
	serve(a, (int)run->intervals + 1);
	return r;
}

/* Checks that every interval has a final result with all packets, and that the losses are the true ones. */
static int check(const struct run *run, struct ow_error *err)
{
	for (unsigned i = 0; i < run->options->intervals; i++) {
		const struct ow_interval_result *r = &run->to->result[i];
		const struct ow_liverun_truth *t = &run->to->truth[i];
		if (!(run->known[i] & 2))
			return ow_error_set(err, EDOM, "interval %u has no final result", i);
		if (r->status == OW_RESULT_UNKNOWN)
			return ow_error_set(err, EDOM, "interval %u has no numbers: %s", i, r->cause);
		if (r->sent != t->sent || r->sent != r->matched + r->late + r->lost + r->pending)
			return ow_error_set(err, EDOM,
			                    "interval %u: %" PRIu64 " packets sent, %" PRIu64 " accounted for", i,
			                    t->sent, r->matched + r->late + r->lost + r->pending);
	}
	return 0;
}

static int run_threads(struct run *run, struct ow_error *err)
{
	struct traffic traffic = {0};
	pthread_t thread;
	ow_random_seed(&traffic.random, run->options->seed);
	if (pthread_barrier_init(&run->barrier, NULL, 2) != 0)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		ow_exchange_connected(run->side[i].exchange, now_of(run));
	int r = pthread_create(&thread, NULL, receiving_point, &run->side[1]) == 0 ? 0 : -EAGAIN;
	if (r == 0) {
		r = all_intervals(run, &traffic);
		pthread_join(thread, NULL);
	}
	pthread_barrier_destroy(&run->barrier);
	traffic_done(&traffic);
	for (int i = 0; i < 2; i++) {
		if (run->side[i].code < 0) {
			*err = run->side[i].err;
			return run->side[i].code;
		}
	}
	return r < 0 ? r : check(run, err);
}

int ow_liverun(const struct ow_liverun_options *options, struct ow_liverun *ret_run, struct ow_error *err)
{
	struct ow_liverun made = {.intervals = options->intervals};
	struct run run = {.options = options, .to = &made, .t0_ns = ow_clock_real_ns()};
	run.origin_ns = ow_clock_steady_ns();
	run.intervals = options->intervals + 1;
	made.truth = calloc(run.intervals, sizeof *made.truth);
	made.result = calloc(run.intervals, sizeof *made.result);
	run.known = calloc(run.intervals, sizeof *run.known);
	int r = made.truth && made.result && run.known ? ow_tlspair_create(&run.pair, err) : -ENOMEM;
	for (int i = 0; i < 2 && r == 0; i++)
		r = side_create(&run, i);
	if (r == 0)
		r = run_threads(&run, err);
	for (int i = 0; i < 2; i++)
		side_done(&run.side[i]);
	ow_tlspair_done(&run.pair);
	free(run.known);
	if (r < 0) {
		ow_liverun_done(&made);
		return r;
	}
	*ret_run = made;
	return 0;
}

void ow_liverun_done(struct ow_liverun *run)
{
	free(run->truth);
	free(run->result);
}
