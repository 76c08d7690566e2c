/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#define SPARE ((size_t)64 << 10) /* more than any header and loss of compression of small files */

static size_t pack_gzip(const struct craft *c, uint8_t *out, size_t room)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)c->bytes;
	z.avail_in = (uInt)c->size;
	z.next_out = out;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	room -= z.avail_out;
	deflateEnd(&z);
	return room;
}

static size_t pack_zstd(const struct craft *c, uint8_t *out, size_t room)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	room = ZSTD_compress2(zstd, out, room, c->bytes, c->size);
	assert_false(ZSTD_isError(room));
	ZSTD_freeCCtx(zstd);
	return room;
}

static size_t pack_lz4(const struct craft *c, uint8_t *out, size_t room)
{
	LZ4F_preferences_t how = {.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled,
	                          .frameInfo.blockSizeID = LZ4F_max4MB};

	room = LZ4F_compressFrame(out, room, c->bytes, c->size, &how);
	assert_false(LZ4F_isError(room));
	return room;
}

static size_t pack_xz(const struct craft *c, uint8_t *out, size_t room)
{
	size_t size = 0;

	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, c->bytes, c->size, out, &size, room),
	                 LZMA_OK);
	return size;
}

static size_t pack_bzip2(const struct craft *c, uint8_t *out, size_t room)
{
	unsigned size = (unsigned)room;

	assert_int_equal(BZ2_bzBuffToBuffCompress((char *)out, &size, (char *)c->bytes, (unsigned)c->size, 1, 0, 0),
	                 BZ_OK);
	return size;
}

uint8_t *pack(const struct craft *c, enum ow_packing packing, size_t *ret_size)
{
	static size_t (*const how[OW_PACKINGS])(const struct craft *, uint8_t *, size_t) = {
		[OW_PACKING_GZIP] = pack_gzip, [OW_PACKING_ZSTD] = pack_zstd,   [OW_PACKING_LZ4] = pack_lz4,
		[OW_PACKING_XZ] = pack_xz,     [OW_PACKING_BZIP2] = pack_bzip2,
	};
	size_t room = c->size * 2 + SPARE;
	uint8_t *out = malloc(room);

	assert_non_null(out);
	*ret_size = how[packing](c, out, room);
	return out;
}
