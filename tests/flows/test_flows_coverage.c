/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the 95 % intervals of per-flow means contain the truth, with one clean counter and with ten thousand.
 * Simulated flows whose delays are similar, differ by factors, are of two kinds, grow with the flow's size or change
 * with time, or are all the same; with and without loss, with flows of one packet and of up to 1000, with one that is larger
 * than all others, and with packets that two threads count.
 */
#include "../effort.h"
#include "base/random.h"
#include "flows/flows.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED   4
#define SPREAD 16 /* counters of a flow in COLATE's form */

enum shape { ALIKE, BY_FACTORS, TWO_KINDS, BY_SIZE, BY_TIME, SHAPES, SAME = SHAPES };
static const char *const shape_name[] = {"alike", "by factors", "two kinds", "by size", "by time", "same"};

struct scenario {
	enum shape shape;
	enum ow_flow_estimator estimator;
	size_t counters;  /* in all */
	size_t clean;     /* so many of them stay clean; 0 = all that the loss leaves */
	unsigned packets; /* of a flow, at most */
	double loss;
	int runs;
	size_t for_stddev; /* counters beside the banks; then standard deviations are judged */
	unsigned huge;     /* packets of the first flow; 0 = as the others */
	bool threads;      /* two threads at each point, which both see packets of each flow */
};

struct count {
	double flows, exact, said, held;
};

/* One recording: what both points have, and the truth. */
struct scene {
	struct ow_colate *a, *b, *other_a, *other_b; /* other: of a second thread */
	struct ow_flow_load *load;
	double *mean, *stddev;
	size_t flows;
	struct ow_flows data;
};

static double normal(struct ow_random *random)
{
	double u = ow_random_unit(random) + 0x1p-54, v = ow_random_unit(random);
	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static double own_delay(struct ow_random *random, enum shape shape, double packets, double at)
{
	switch (shape) {
	case SAME:
		return 8e6;
	case ALIKE:
		return 8e6 + 1e6 * normal(random);
	case BY_FACTORS:
		return 5e6 * exp(normal(random));
	case TWO_KINDS:
		return ow_random_unit(random) < 0.1 ? 50e6 : 1e6;
	case BY_SIZE:
		return 1e6 * sqrt(packets) * exp(0.3 * normal(random));
	default:
		return 1e6 * (1.1 + sin(7 * at)) * exp(0.2 * normal(random));
	}
}

static struct ow_colate_params params_of(const struct scenario *s, uint64_t seed)
{
	bool colate = s->estimator == OW_FLOWS_COLATE;
	uint32_t banks = s->estimator == OW_FLOWS_BANKS ? 3 : 1;
	struct ow_colate_params params = {.layers = 1, .unit_ns = 1, .seed = seed};
	params.layer[0] = (struct ow_colate_layer){.form = colate ? OW_COLATE_HASHED : OW_COLATE_BANKS,
	                                           .counters = (uint32_t)(s->counters + banks - 1) / banks * banks,
	                                           .spread = colate ? SPREAD : banks,
	                                           .bits = 48,
	                                           .check_bits = 32,
	                                           .last = OW_COLATE_SHARE};
	if (s->for_stddev) {
		params.layer[1] = params.layer[0];
		params.layer[1].form = OW_COLATE_HASHED;
		params.layer[1].counters = (uint32_t)s->for_stddev;
		params.layer[1].spread = SPREAD;
		params.layer[1].count_bits = 8;
		params.layers = 2;
	}
	return params;
}

static void add_flow(struct scene *scene, const struct scenario *s, struct ow_random *random, size_t f)
{
	uint64_t flow = ow_random_u64(random);
	unsigned packets = (unsigned)fmin(s->packets, 1 / (ow_random_unit(random) + 1e-9)), received = 0;
	packets = f == 0 && s->huge ? s->huge : packets;
	double start = ow_random_unit(random), own = own_delay(random, s->shape, packets, start);
	int64_t first = (int64_t)(1e9 * start);
	for (unsigned i = 0; i < packets; i++) {
		uint64_t id = ow_random_u64(random);
		double jitter = s->shape == SAME ? 1 : 0.9 + 0.2 * ow_random_unit(random);
		int64_t sent = first + i * 1000, delay = (int64_t)(own * jitter);
		ow_colate_add(s->threads && i % 2 ? scene->other_a : scene->a,
		              &(struct ow_flow_sighting){flow, id, sent}, 1);
		if (ow_random_unit(random) < s->loss)
			continue;
		ow_colate_add(s->threads && i % 3 ? scene->other_b : scene->b,
		              &(struct ow_flow_sighting){flow, id, sent + delay}, 1);
		scene->mean[f] += (double)delay;
		scene->stddev[f] += (double)delay * (double)delay;
		received++;
	}
	scene->load[f] = (struct ow_flow_load){.flow = flow,
	                                       .packets = received,
	                                       .first_ns = first,
	                                       .last_ns = first + packets * 1000,
	                                       .whole = received == packets};
	for (int l = 0; l < OW_COLATE_LAYERS_MAX; l++)
		scene->load[f].in_layer[l] = -1;
	scene->mean[f] /= received ? received : 1;
	scene->stddev[f] =
		sqrt(fmax(scene->stddev[f] / (received ? received : 1) - scene->mean[f] * scene->mean[f], 0));
}

/* Leaves `clean` of the counters that hold packets clean, whichever they are. */
static void soil(struct scene *scene, size_t clean, struct ow_random *random)
{
	struct ow_flows_layer *layer = &scene->data.layer[0];
	const uint64_t *counter = ow_colate_counters(scene->a, 0);
	size_t used = 0;
	for (uint32_t c = 0; c < layer->layer.counters; c++)
		used += counter[c] != 0;
	for (uint32_t c = 0; c < layer->layer.counters; c++) {
		bool keep = counter[c] && ow_random_unit(random) * (double)used-- < (double)clean;
		clean -= keep;
		layer->clean[c] = layer->clean[c] && keep;
	}
}

static void scene_init(struct scene *scene, const struct scenario *s, struct ow_random *random)
{
	struct ow_colate_params params = params_of(s, ow_random_u64(random));
	*scene = (struct scene){.flows = 2 * s->counters};
	scene->load = calloc(scene->flows, sizeof *scene->load);
	scene->mean = calloc(scene->flows, sizeof *scene->mean);
	scene->stddev = calloc(scene->flows, sizeof *scene->stddev);
	assert_true(scene->load && scene->mean && scene->stddev);
	assert_int_equal(ow_colate_create(&params, &scene->a, NULL), 0);
	assert_int_equal(ow_colate_create(&params, &scene->b, NULL), 0);
	assert_int_equal(ow_colate_create(&params, &scene->other_a, NULL), 0);
	assert_int_equal(ow_colate_create(&params, &scene->other_b, NULL), 0);
	for (size_t f = 0; f < scene->flows; f++)
		add_flow(scene, s, random, f);
	assert_int_equal(ow_colate_merge(scene->a, scene->other_a, NULL), 0);
	assert_int_equal(ow_colate_merge(scene->b, scene->other_b, NULL), 0);
	assert_int_equal(ow_flows_difference(scene->a, scene->b, &scene->data, NULL), 0);
	scene->data.flow = scene->load;
	scene->data.flows = scene->flows;
	if (s->clean)
		soil(scene, s->clean, random);
}

static void scene_done(struct scene *scene)
{
	ow_flows_done(&scene->data);
	ow_colate_free(scene->a);
	ow_colate_free(scene->b);
	ow_colate_free(scene->other_a);
	ow_colate_free(scene->other_b);
	free(scene->load);
	free(scene->mean);
	free(scene->stddev);
}

static void run(const struct scenario *s, struct ow_random *random, struct count *count)
{
	struct scene scene;
	scene_init(&scene, s, random);
	struct ow_flow_estimate *e = calloc(scene.flows, sizeof *e);
	struct ow_flows_options options = {.estimator = s->estimator};
	assert_non_null(e);
	assert_int_equal(ow_flows_estimate(&scene.data, &options, e, NULL), 0);
	for (size_t f = 0; f < scene.flows; f++) {
		const struct ow_value *v = s->for_stddev ? &e[f].stddev_ns : &e[f].mean_ns;
		double truth = s->for_stddev ? scene.stddev[f] : scene.mean[f];
		count->flows += scene.load[f].packets > 0;
		if (v->status == OW_VALUE_EXACT) {
			count->exact++;
			/* The truth was summed up in another order. */
			assert_true(fabs(v->value - truth) <= 1e-9 * truth);
		} else if (v->status == OW_VALUE_ESTIMATED) {
			count->said++;
			/* Where all banks together determine a flow, what is left is rounding. */
			count->held += v->low - 1 <= truth && truth <= v->high + 1;
		}
	}
	free(e);
	scene_done(&scene);
}

static struct count judge(const struct scenario *s, struct ow_random *random)
{
	struct count count = {0};
	for (int i = 0; i < s->runs; i++)
		run(s, random, &count);
	printf("  %-8s %-10s %6zu counters, %5zu clean, loss %g, up to %4u packets: %5.1f %% exact, %5.1f %% said, of "
	       "these %6.2f %% held\n",
	       ow_flow_estimator_name(s->estimator), shape_name[s->shape], s->counters, s->clean, s->loss, s->packets,
	       100 * count.exact / count.flows, 100 * count.said / count.flows,
	       count.said > 0 ? 100 * count.held / count.said : 100);
	/* Four deviations of a binomial distribution. Where flows differ more than their packets, only those whose mean
	 * is far off look as if their packets deviated: there a deviation is said of few flows, and rightly of fewer.
	 */
	double wrong = s->for_stddev ? 0.002 * count.flows : 0;
	assert_true(count.held >= 0.95 * count.said - 4 * sqrt(count.said * 0.95 * 0.05) - wrong);
	return count;
}

/* From one clean counter on; the others lost packets. */
static void test_clean_counters(void **state)
{
	(void)state;
	static const size_t clean[] = {1, 2, 3, 5, 10, 20, 100};
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int estimator = OW_FLOWS_BLUP; estimator <= OW_FLOWS_BANKS; estimator++)
		for (int shape = 0; shape < SHAPES; shape++)
			for (size_t i = 0; i < sizeof clean / sizeof *clean; i++) {
				struct scenario s = {.shape = (enum shape)shape,
				                     .estimator = (enum ow_flow_estimator)estimator,
				                     .counters = clean[i] < 10 ? 12 : clean[i] + clean[i] / 5,
				                     .clean = clean[i],
				                     .packets = shape % 2 ? 1 : 1000,
				                     .runs = RUN_COUNT(clean[i] < 100 ? 100 : 20)};
				struct count count = judge(&s, &random);
				/* Flows that share their counters cannot be told apart by so few. */
				assert_true(clean[i] > 5 || count.said == 0);
			}
}

static void test_many_counters(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED + 1);
	for (int shape = 0; shape < SHAPES; shape++) {
		struct scenario s = {(enum shape)shape, OW_FLOWS_BANKS, 10000, 0, 1000, 0, 1, 0};
		struct count count = judge(&s, &random);
		assert_true(count.said > 0.5 * count.flows);
		s.estimator = OW_FLOWS_BLUP;
		s.packets = 1;
		judge(&s, &random);
	}
}

static void test_loss(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED + 2);
	for (int estimator = OW_FLOWS_BLUP; estimator <= OW_FLOWS_BANKS; estimator++)
		for (int shape = 0; shape < SHAPES; shape++)
			for (size_t counters = 4; counters <= 4000; counters *= 10) {
				struct scenario s = {(enum shape)shape,
				                     (enum ow_flow_estimator)estimator,
				                     counters,
				                     0,
				                     1000,
				                     0.05,
				                     RUN_COUNT(counters < 400 ? 50 : 1),
				                     0};
				judge(&s, &random);
			}
}

/* COLATE as published knows nothing of the other flows: wide intervals, and they hold. */
static void test_colate(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED + 3);
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t counters = 20; counters <= 2000; counters *= 10) {
			struct scenario s = {(enum shape)shape,
			                     OW_FLOWS_COLATE,
			                     counters,
			                     0,
			                     1000,
			                     0,
			                     RUN_COUNT(counters < 2000 ? 50 : 2),
			                     0};
			judge(&s, &random);
		}
}

/* Flows that are all the same, one that is larger than all others together, points with two threads. */
static void test_hard(void **state)
{
	(void)state;
	static const size_t counters[] = {12, 100, 1000};
	struct ow_random random;
	ow_random_seed(&random, SEED + 5);
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		for (int loss = 0; loss < 2; loss++) {
			struct scenario s = {.shape = SAME,
			                     .estimator = OW_FLOWS_BANKS,
			                     .counters = counters[i],
			                     .packets = 1000,
			                     .loss = loss ? 0.02 : 0,
			                     .runs = RUN_COUNT(i < 2 ? 30 : 3)};
			judge(&s, &random);
			for (s.shape = ALIKE; s.shape < SHAPES; s.shape++) {
				s.huge = 100 * (unsigned)counters[i];
				s.threads = false;
				judge(&s, &random);
				s.huge = 0;
				s.threads = true;
				judge(&s, &random);
			}
		}
}

static void test_stddev(void **state)
{
	(void)state;
	static const size_t counters[] = {100, 1000};
	struct ow_random random;
	ow_random_seed(&random, SEED + 4);
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t i = 0; i < 2; i++)
			for (size_t each = 1; each <= 16; each *= 4) {
				struct scenario s = {
					(enum shape)shape, OW_FLOWS_BANKS,        counters[i],       0, 1000,
					i % 2 ? 0.001 : 0, RUN_COUNT(i ? 2 : 20), each * counters[i]};
				judge(&s, &random);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_counters), cmocka_unit_test(test_many_counters),
		cmocka_unit_test(test_loss),           cmocka_unit_test(test_colate),
		cmocka_unit_test(test_stddev),         cmocka_unit_test(test_hard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
