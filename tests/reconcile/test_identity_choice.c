/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an identity from what samples have in common under each. */
#include "reconcile/identity_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define ALL ((UINT32_C(1) << OW_VARIANTS) - 1)

static struct ow_sample_overlap overlap(size_t common, size_t unique, size_t of)
{
	return (struct ow_sample_overlap){.share = (double)common / (double)of,
	                                  .packets = (double)common,
	                                  .common = common,
	                                  .squares = (double)common,
	                                  .rate = 1,
	                                  .unique = unique};
}

static void test_preferred_unless_clearly_less(void **state)
{
	struct ow_sample_overlap c[OW_VARIANTS] = {0};
	(void)state;
	c[OW_VARIANT_IP] = overlap(300, 300, 400);
	c[OW_VARIANT_NAT] = overlap(340, 340, 400);
	assert_int_equal(ow_identity_choose(c, ALL, false), OW_VARIANT_IP);
	c[OW_VARIANT_NAT] = overlap(390, 390, 400);
	assert_int_equal(ow_identity_choose(c, ALL, false), OW_VARIANT_NAT);
	assert_int_equal(ow_identity_choose(c, ALL & ~(UINT32_C(1) << OW_VARIANT_NAT), false), OW_VARIANT_IP);
}

/* An identity is found behind every change, and no looser one than necessary. */
static void test_every_change(void **state)
{
	static const enum ow_variant way[] = {
		OW_VARIANT_IP,        OW_VARIANT_IP_INNER,        OW_VARIANT_NAT,        OW_VARIANT_NAT_INNER,
		OW_VARIANT_IP_ANY_ID, OW_VARIANT_IP_INNER_ANY_ID, OW_VARIANT_NAT_ANY_ID, OW_VARIANT_NAT_INNER_ANY_ID};
	(void)state;
	for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
		struct ow_sample_overlap c[OW_VARIANTS] = {0};
		enum ow_variant v = way[i];
		/* Whatever ignores more also matches. */
		for (enum ow_variant w = 0; w < OW_VARIANTS; w++) {
			if (w != OW_VARIANT_FRAME && ow_variant_level(w) >= ow_variant_level(v) &&
			    ow_variant_inner(w) >= ow_variant_inner(v) &&
			    ow_variant_any_ip_id(w) >= ow_variant_any_ip_id(v))
				c[w] = overlap(400, 400, 400);
		}
		assert_int_equal(ow_identity_choose(c, ALL, false), v);
	}
}

/* Polls that are alike without their IP id are in both samples, by chance. */
static void test_identical_packets_are_no_evidence(void **state)
{
	struct ow_sample_overlap c[OW_VARIANTS] = {0};
	(void)state;
	c[OW_VARIANT_IP_ANY_ID] = overlap(100, 0, 400);
	assert_int_equal(ow_identity_choose(c, ALL, false), OW_VARIANT_IP);
	c[OW_VARIANT_IP_ANY_ID] = overlap(390, 300, 400);
	assert_int_equal(ow_identity_choose(c, ALL, false), OW_VARIANT_IP_ANY_ID);
}

static void test_text(void **state)
{
	char text[OW_VARIANT_TEXT];
	(void)state;
	ow_variant_text(OW_VARIANT_IP, text);
	assert_string_equal(text, "ip");
	ow_variant_text(OW_VARIANT_NAT_INNER_ANY_ID, text);
	assert_string_equal(text, "nat inside tunnels without IP id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preferred_unless_clearly_less),
		cmocka_unit_test(test_every_change),
		cmocka_unit_test(test_identical_packets_are_no_evidence),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
