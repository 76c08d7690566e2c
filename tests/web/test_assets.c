// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "web/assets.h"

/* What a first visit may cost in all. */
enum { FIRST_PAINT_BYTES = 200000 };

static void gzip_bytes_are_the_same_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < ow_asset_count; i++) {
		const struct ow_asset *asset = &ow_assets[i];
		unsigned char *plain = malloc(asset->length + 1);
		z_stream stream = {.next_in = (Bytef *)(uintptr_t)asset->gzip,
		                   .avail_in = (uInt)asset->gzip_length,
		                   .next_out = plain,
		                   .avail_out = (uInt)asset->length + 1};

		assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
		assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
		assert_int_equal(stream.total_out, asset->length);
		assert_memory_equal(plain, asset->bytes, asset->length);
		inflateEnd(&stream);
		free(plain);
	}
}

static void root_is_the_index(void **state)
{
	(void)state;
	const struct ow_asset *root = ow_asset_find("/");

	assert_non_null(root);
	assert_ptr_equal(root->bytes, ow_asset_find("/index.html")->bytes);
	assert_string_equal(root->media_type, "text/html; charset=utf-8");
	assert_int_equal(strlen(root->etag), 18);
	assert_null(ow_asset_find("/nothing"));
	assert_null(ow_asset_find(""));
}

/* Without compression, so that it holds for every browser. */
static void first_paint_is_small(void **state)
{
	(void)state;
	size_t sum = 0;

	for (size_t i = 0; i < ow_asset_count; i++)
		if (strcmp(ow_assets[i].path, "/") != 0)
			sum += ow_assets[i].length;
	assert_in_range(sum, 1, FIRST_PAINT_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_bytes_are_the_same_file),
		cmocka_unit_test(root_is_the_index),
		cmocka_unit_test(first_paint_is_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
