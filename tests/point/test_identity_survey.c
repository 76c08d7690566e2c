/* SPDX-License-Identifier: Apache-2.0 */
/* The identity that samples of two points show, and the results that lead to a survey. */
#include "base/random.h"
#include "point/identity_survey.h"
#include "result/cause.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED UINT64_C(0x1234567)

static void add(struct ow_survey_sample *s, uint64_t id)
{
	assert_true(s->count < OW_SURVEY_IDS_MAX);
	if (!s->id)
		s->id = calloc(OW_SURVEY_IDS_MAX, sizeof *s->id);
	assert_non_null(s->id);
	s->id[s->count++] = id;
}

/*
 * Samples of `sent` packets, of which one in `lost` (0 = none) does not arrive, `others` more only at A. Under `same`
 * and everything that ignores more they are the same at both points; under others each has another id.
 */
static void traffic_of(uint64_t seed, struct ow_survey_samples samples[2], enum ow_variant same, size_t sent,
                       size_t lost, size_t others)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	memset(samples, 0, 2 * sizeof *samples);
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		enum ow_variant v = ow_survey_variant[i];
		bool alike = ow_variant_level(v) >= ow_variant_level(same) &&
		             ow_variant_inner(v) >= ow_variant_inner(same) &&
		             ow_variant_any_ip_id(v) >= ow_variant_any_ip_id(same);
		for (size_t n = 0; n < sent; n++) {
			uint64_t id = ow_random_u64(&random);
			add(&samples[0].of[i], id);
			if (!lost || n % lost)
				add(&samples[1].of[i], alike ? id : ow_random_u64(&random));
		}
		for (size_t n = 0; n < others; n++)
			add(&samples[0].of[i], ow_random_u64(&random));
	}
}

static void traffic(struct ow_survey_samples samples[2], enum ow_variant same, size_t sent, size_t lost, size_t others)
{
	traffic_of(7, samples, same, sent, lost, others);
}

static struct ow_identity_decision decide(struct ow_survey_samples samples[2], uint32_t allowed, bool whole,
                                          enum ow_variant now)
{
	struct ow_identity_decision d;
	assert_int_equal(ow_identity_survey_decide(&samples[0], &samples[1], SEED, allowed, whole, now, &d), 0);
	return d;
}

static void done(struct ow_survey_samples samples[2])
{
	ow_survey_samples_done(&samples[0]);
	ow_survey_samples_done(&samples[1]);
}

static void test_every_variant(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		struct ow_survey_samples samples[2];
		char text[OW_DECISION_TEXT];
		traffic(samples, ow_survey_variant[i], 400, 20, 0);
		struct ow_identity_decision d = decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP);
		assert_int_equal(d.variant, ow_survey_variant[i]);
		assert_int_equal(d.sampled, 380);
		assert_float_equal(d.share, 1, 0);
		ow_identity_decision_text(&d, OW_VARIANT_IP, text);
		assert_non_null(strstr(text, "100 % of 380 sampled packets"));
		/* And back, when ip is right again. */
		done(samples);
		traffic(samples, OW_VARIANT_IP, 400, 20, 0);
		assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, ow_survey_variant[i]).variant,
		                 OW_VARIANT_IP);
		done(samples);
	}
}

static void test_only_what_is_allowed(void **state)
{
	struct ow_survey_samples samples[2];
	bool outside = false;
	(void)state;
	traffic(samples, OW_VARIANT_IP_INNER, 400, 0, 0);
	assert_int_equal(decide(samples, ow_identity_allowed(&outside), true, OW_VARIANT_IP).variant, OW_VARIANT_IP);
	assert_int_equal(decide(samples, 0, true, OW_VARIANT_IP).variant, OW_VARIANT_IP);
	done(samples);
}

/* Nothing is in common, or a sample is empty: no change. */
static void test_no_evidence(void **state)
{
	struct ow_survey_samples samples[2], empty[2] = {0};
	(void)state;
	traffic(samples, OW_VARIANT_NAT, 1, 0, 0);
	samples[1].of[2].id[0] ^= 1;
	samples[1].of[3].id[0] ^= 1;
	samples[1].of[6].id[0] ^= 1;
	samples[1].of[7].id[0] ^= 1;
	assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_NAT).variant, OW_VARIANT_NAT);
	assert_int_equal(decide(empty, ow_identity_allowed(NULL), true, OW_VARIANT_IP_INNER).variant,
	                 OW_VARIANT_IP_INNER);
	done(samples);
}

/* Each identity has a sample of its own: that one of them has more in common by chance is no evidence. */
static void test_chance(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct ow_survey_samples samples[2];
		traffic_of(seed, samples, OW_VARIANT_IP, 300, 50, 300);
		for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++)
			samples[1].of[i].sample_shift = 2;
		assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP).variant,
		                 OW_VARIANT_IP);
		done(samples);
		/* Three in four packets are changed. */
		traffic_of(seed, samples, OW_VARIANT_IP_ANY_ID, 900, 50, 0);
		for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
			struct ow_survey_sample *b = &samples[1].of[i];
			memcpy(b->id, samples[0].of[i].id, b->count / 4 * sizeof *b->id);
			b->sample_shift = 2;
		}
		assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP).variant,
		                 OW_VARIANT_IP_ANY_ID);
		done(samples);
	}
}

/* Where nearly all that A sends goes elsewhere, nat would cost much: ip stays, whose results are unknown. */
static void test_nat_where_little_is_common(void **state)
{
	struct ow_survey_samples samples[2];
	(void)state;
	traffic(samples, OW_VARIANT_NAT, 400, 0, 400);
	assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP).variant, OW_VARIANT_NAT);
	done(samples);
	traffic(samples, OW_VARIANT_NAT_ANY_ID, 400, 0, 400);
	assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP).variant, OW_VARIANT_IP);
	done(samples);
	traffic(samples, OW_VARIANT_NAT, 40, 0, 400);
	struct ow_identity_decision d = decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP);
	assert_int_equal(d.variant, OW_VARIANT_IP);
	assert_true(d.partial && d.wanted == OW_VARIANT_NAT);
	assert_int_equal(decide(samples, ow_identity_allowed(NULL), false, OW_VARIANT_IP).variant, OW_VARIANT_NAT);
	done(samples);
	traffic(samples, OW_VARIANT_IP_ANY_ID, 400, 0, 400);
	assert_int_equal(decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP).variant, OW_VARIANT_IP_ANY_ID);
	done(samples);
}

/* One point has thinned its sample: what the other has of it is compared. */
static void test_different_shifts(void **state)
{
	struct ow_survey_samples samples[2];
	struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	(void)state;
	ow_identity_seed(&identity, SEED);
	traffic(samples, OW_VARIANT_NAT, 800, 0, 0);
	for (unsigned i = 0; i < OW_SURVEY_VARIANTS; i++) {
		struct ow_survey_sample *s = &samples[1].of[i];
		size_t kept = 0;
		for (size_t n = 0; n < s->count; n++) {
			if (ow_sampled(ow_sample_rank(&identity, s->id[n]), 2))
				s->id[kept++] = s->id[n];
		}
		s->count = kept;
		s->sample_shift = 2;
	}
	struct ow_identity_decision d = decide(samples, ow_identity_allowed(NULL), true, OW_VARIANT_IP);
	assert_int_equal(d.variant, OW_VARIANT_NAT);
	assert_float_equal(d.share, 1, 0);
	/* A quarter of 800; five standard deviations. */
	assert_true(fabs((double)d.sampled - 200) < 5 * sqrt(150));
	done(samples);
}

static void test_doubt(void **state)
{
	struct ow_interval_result r = {.status = OW_RESULT_MEASURED,
	                               .final = true,
	                               .total_sent = 1000,
	                               .total_received = 900,
	                               .sent = 1000,
	                               .received = 900,
	                               .matched = 900,
	                               .lost = 100};
	(void)state;
	assert_false(ow_identity_doubtful(&r)); /* loss */
	r.matched = 800, r.lost = 200, r.extra = 100;
	assert_true(ow_identity_doubtful(&r));
	r.duplicated = 100;
	assert_false(ow_identity_doubtful(&r));
	r = (struct ow_interval_result){
		.status = OW_RESULT_UNKNOWN, .final = true, .total_sent = 100, .total_received = 90};
	snprintf(r.cause, sizeof r.cause, ow_cause_nothing_shared, "two", "one");
	assert_true(ow_identity_doubtful(&r));
	snprintf(r.cause, sizeof r.cause, ow_cause_no_answer, "two");
	assert_false(ow_identity_doubtful(&r));
	r = (struct ow_interval_result){
		.status = OW_RESULT_MEASURED, .total_sent = 100, .total_received = 90, .sent = 100, .pending = 100};
	assert_true(ow_identity_doubtful(&r));
	r.matched = 1;
	assert_false(ow_identity_doubtful(&r));
}

static void test_shift(void **state)
{
	(void)state;
	assert_int_equal(ow_identity_survey_shift(0), 0);
	assert_int_equal(ow_identity_survey_shift(OW_SURVEY_IDS_MAX), 0);
	for (double packets = OW_SURVEY_IDS_MAX + 1; packets < 1e9; packets *= 1.7) {
		double sampled = packets / exp2(ow_identity_survey_shift(packets));
		assert_true(sampled <= OW_SURVEY_IDS_MAX / 2 && sampled > OW_SURVEY_IDS_MAX / 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant),
		cmocka_unit_test(test_only_what_is_allowed),
		cmocka_unit_test(test_no_evidence),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_nat_where_little_is_common),
		cmocka_unit_test(test_different_shifts),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_shift),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
