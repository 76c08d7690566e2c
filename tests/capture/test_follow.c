/* SPDX-License-Identifier: Apache-2.0 */
/* The follower of pcapng gives the same result however the stream is divided, and never reads beyond its input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/file/follow.h"
#include "craft.h"
#include <stdlib.h>
#include <string.h>

static struct craft *sample(bool big_endian)
{
	struct craft *craft = craft_new(big_endian);
	craft_section(craft);
	craft_interface(craft, 1, 96, 9);
	craft_interface(craft, 101, 0, -1);
	craft_packet(craft, 0, 5, 60, 60);
	craft_packet(craft, 1, 6, 33, 40);
	craft_interface(craft, 276, 65535, 3);
	craft_packet(craft, 2, 7, 1, 1);
	craft_packet_after(craft, 30, 1, 7, 61);
	craft_packet_after(craft, 70001, 0, 8, 64); /* 1 more than the statistics say */
	craft_packet_after(craft, 12, 1, 9, 0);
	craft_packet(craft, 2, 9, 1, 1);
	craft_statistics(craft, 0, 70000, 70000);
	craft_statistics(craft, 2, 1, UINT64_C(5000000000));
	return craft;
}

/* A copy of each piece with nothing behind it, so that a sanitizer sees a read beyond it. */
static void feed(struct ow_follow *f, uint8_t *bytes, size_t size, size_t piece)
{
	for (size_t at = 0; at < size;) {
		size_t n = size - at < piece ? size - at : piece;
		uint8_t *copy = malloc(n);
		assert_non_null(copy);
		memcpy(copy, bytes + at, n);
		size_t taken = ow_follow_feed(f, copy, n);
		assert_true(taken > 0 && taken <= n);
		memcpy(bytes + at, copy, taken);
		free(copy);
		at += taken;
	}
}

static void test_pieces(void **state)
{
	(void)state;
	struct ow_follow *f = calloc(1, sizeof *f);
	assert_non_null(f);
	for (int big_endian = 0; big_endian < 2; big_endian++) {
		struct craft *craft = sample(big_endian);
		uint8_t *first = NULL, *bytes = malloc(craft->size);
		assert_non_null(bytes);
		for (size_t piece = 1; piece <= craft->size; piece++) {
			memcpy(bytes, craft->bytes, craft->size);
			feed(f, bytes, craft->size, piece);
			assert_false(f->lost || f->mixed_order || f->too_fine);
			assert_int_equal(f->offset, craft->size);
			assert_int_equal(f->pos, 0);
			assert_int_equal(f->big_endian, big_endian);
			assert_int_equal(f->sections, 1);
			assert_int_equal(f->interfaces, 3);
			assert_int_equal(f->linktype, 1);
			assert_int_equal(f->snaplen, 96);
			assert_int_equal(f->packet_linktype, 276);
			assert_int_equal(f->dropped, UINT64_C(5000070043)); /* the greater of each */
			assert_int_equal(f->resolution_ns, 1000000);        /* the coarsest */
			/* What libpcap sees is the same, too: interfaces that are alike. */
			if (!first) {
				first = malloc(craft->size);
				assert_non_null(first);
				memcpy(first, bytes, craft->size);
			}
			assert_memory_equal(bytes, first, craft->size);
			ow_follow_reset(f);
		}
		assert_memory_not_equal(first, craft->bytes, craft->size);
		free(first);
		free(bytes);
		free(craft);
	}
	free(f);
}

/* Each of the bytes wrong in turn, and cut anywhere: it ends, lost or not. */
static void test_damaged(void **state)
{
	(void)state;
	struct ow_follow *f = calloc(1, sizeof *f);
	struct craft *craft = sample(false);
	uint8_t *bytes = malloc(craft->size);
	assert_non_null(f);
	assert_non_null(bytes);
	for (size_t i = 0; i < craft->size; i++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(bytes, craft->bytes, craft->size);
			bytes[i] ^= (uint8_t)(1 << bit);
			feed(f, bytes, craft->size, 37);
			assert_true(f->lost || f->offset == craft->size);
			ow_follow_reset(f);
		}
		memcpy(bytes, craft->bytes, craft->size);
		feed(f, bytes, i, 37);
		assert_false(f->lost);
		assert_int_equal(f->offset, i);
		ow_follow_reset(f);
	}
	free(bytes);
	free(craft);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_damaged)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
