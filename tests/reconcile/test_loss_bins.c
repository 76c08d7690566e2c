/* SPDX-License-Identifier: Apache-2.0 */
/* Losses in time, and whether a flow of which nothing arrives is lost. */
#include "reconcile/loss_bins.h"
#include "reconcile/whole_flow.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define BIN (INT64_C(1) << OW_LOSS_BIN_SHIFT)

static void count(struct ow_loss_bins *bins, int64_t at_ns, uint32_t sent, uint32_t lost)
{
	struct ow_loss_bin *bin = ow_loss_bin_at(bins, at_ns);
	assert_non_null(bin);
	bin->sent += sent;
	bin->lost += lost;
}

/* The logarithm of the likelihood that one packet of a flow at each of these bins is lost. */
static double likelihood(const struct ow_loss_bins *bins, int64_t first, int64_t packets, double q)
{
	struct ow_flow_loss loss = {0};
	for (int64_t i = 0; i < packets; i++) {
		assert_true(ow_flow_loss_begins(bins, &loss, (first + i) * BIN));
		assert_false(ow_flow_loss_begins(bins, &loss, (first + i) * BIN + BIN - 1)); /* shares its fate */
		ow_flow_loss_add(bins, &loss, (first + i) * BIN, q);
	}
	return (double)loss.log_like + loss.quiet * log(q);
}

static void bursts_make_losses_likely(void **state)
{
	struct ow_loss_bins bins;
	const double q = 1e-3;
	(void)state;
	assert_int_equal(ow_loss_bins_create(&bins, 1000 * BIN), 0);
	for (int64_t i = 0; i < 200; i++)
		count(&bins, i * BIN, 100, i / 8 == 10 ? 100 : 0);
	assert_float_equal(likelihood(&bins, 8, 3, q), 3 * log(q), 1e-6);
	assert_true(likelihood(&bins, 80, 3, q) > log(.9));
	/* Nothing is known of this bin, but of those around it. */
	count(&bins, 400 * BIN, 100, 50);
	assert_float_equal(likelihood(&bins, 401, 1, q), log((50 + 3 * q) / 103), 1e-6);
	ow_loss_bins_clear(&bins);
	assert_float_equal(likelihood(&bins, 80, 1, q), log(q), 1e-6);
	ow_loss_bins_done(&bins);
}

/* The newest time has its bins; what is older has none, and is not mixed up with it. */
static void old_bins_go(void **state)
{
	struct ow_loss_bins bins;
	(void)state;
	assert_int_equal(ow_loss_bins_create(&bins, 100 * BIN), 0);
	count(&bins, 7 * BIN, 100, 100);
	count(&bins, (7 + bins.mask + 1) * BIN, 100, 0);
	assert_null(ow_loss_bin_at(&bins, 7 * BIN));
	assert_float_equal(likelihood(&bins, 7, 1, 1e-3), log(1e-3), 1e-6);
	assert_float_equal(likelihood(&bins, 7 + bins.mask + 1, 1, 1e-3), log(1e-3), 1e-6);
	ow_loss_bins_done(&bins);
	/* A span of days has wider bins, not more memory. */
	assert_int_equal(ow_loss_bins_create(&bins, INT64_MAX / 2), 0);
	assert_true(bins.mask < 1 << 18);
	count(&bins, INT64_MAX / 3, 1, 0);
	ow_loss_bins_done(&bins);
}

static bool is_lost(const struct ow_flow_share *network, double wider, double packets, double q)
{
	return ow_absent_chance(ow_absent_share(network, wider), packets * log(q)) <= OW_ABSENT_RATHER;
}

static void lost_or_another_way(void **state)
{
	(void)state;
	const double never = ow_absent_usual(0, 1000), half = ow_absent_usual(510, 1000);
	const struct ow_flow_share all_pass = {0, 100}, half_pass = {50, 100};
	assert_true(is_lost(&all_pass, never, 1, .01));
	assert_true(is_lost(&all_pass, never, 2, .01));
	assert_false(is_lost(&all_pass, never, 3, .01));
	assert_true(is_lost(&all_pass, never, 100, .95));
	assert_false(is_lost(&half_pass, never, 1, .01));
	assert_true(is_lost(&half_pass, never, 1, .95)); /* more is lost than goes elsewhere */
	assert_false(is_lost(NULL, half, 1, .01));       /* what little is known counts */
	assert_true(is_lost(NULL, never, 1, .01));
	assert_float_equal(ow_usual_loss(0, 1e9), 1e-6, 1e-12);
	assert_float_equal(ow_usual_loss(1e6, 1e6), .95, 1e-12);
	assert_float_equal(ow_usual_loss(99.9, 9900), .01, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_make_losses_likely),
		cmocka_unit_test(old_bins_go),
		cmocka_unit_test(lost_or_another_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
