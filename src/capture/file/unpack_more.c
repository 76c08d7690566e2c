/* SPDX-License-Identifier: Apache-2.0 */
/* zstd, lz4, xz and bzip2, each by its own library. Built into the program, not into liboneway. */
#include "capture/file/unpack_more.h"

#include "capture/file/unpack.h"
#include <bzlib.h>
#include <errno.h>
#include <limits.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_WINDOW_LOG 27 /* 128 MiB, as the zstd command accepts without options */
_Static_assert(1U << ZSTD_WINDOW_LOG == OW_UNPACK_WINDOW_MAX, "the limit of zstd is that of all");
#define XZ_EXTRA (1U << 20) /* what liblzma takes besides the dictionary: some 100 KiB */

static void advance(struct ow_unpack_io *io, size_t in, size_t out)
{
	io->in += in;
	io->in_bytes -= in;
	io->out += out;
	io->out_bytes -= out;
}

/*
 * zstd and lz4 tell nothing of what they have unpacked when they find damage, so they get one block at a time: as many
 * bytes as they ask for.
 */
#define FIRST_BYTES 7U /* the least header of an lz4 frame; that of zstd is smaller, and may come in parts */

struct by_block {
	size_t want;
	ZSTD_DCtx *zstd; /* one of the two */
	LZ4F_dctx *lz4;
};

static size_t next_bytes(const struct by_block *b, const struct ow_unpack_io *io)
{
	return io->in_bytes < b->want ? io->in_bytes : b->want;
}

static void *zstd_open(void)
{
	struct by_block *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->want = FIRST_BYTES;
	b->zstd = ZSTD_createDCtx();
	if (!b->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(b->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG))) {
		ZSTD_freeDCtx(b->zstd);
		free(b);
		return NULL;
	}
	return b;
}

static int zstd_step(void *state, struct ow_unpack_io *io)
{
	struct by_block *b = state;
	ZSTD_inBuffer in = {.src = io->in, .size = next_bytes(b, io)};
	ZSTD_outBuffer out = {.dst = io->out, .size = io->out_bytes};

	b->want = ZSTD_decompressStream(b->zstd, &out, &in);
	advance(io, in.pos, out.pos);
	if (b->want == 0)
		return OW_UNPACK_END;
	if (!ZSTD_isError(b->want))
		return OW_UNPACK_MORE;
	switch (ZSTD_getErrorCode(b->want)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_frameParameter_windowTooLarge:
		return OW_UNPACK_TOO_LARGE;
	default:
		return OW_UNPACK_DAMAGED;
	}
}

static int zstd_restart(void *state)
{
	struct by_block *b = state;

	b->want = FIRST_BYTES;
	return ZSTD_isError(ZSTD_DCtx_reset(b->zstd, ZSTD_reset_session_only)) ? -ENOMEM : 0;
}

static void zstd_close(void *state)
{
	struct by_block *b = state;

	ZSTD_freeDCtx(b->zstd);
	free(b);
}

static size_t zstd_memory(void *state)
{
	return ZSTD_sizeof_DCtx(((struct by_block *)state)->zstd);
}

/* lz4 looks back 64 KiB and has blocks of at most 4 MiB. */

static void *lz4_open(void)
{
	struct by_block *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->want = FIRST_BYTES;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&b->lz4, LZ4F_VERSION))) {
		free(b);
		return NULL;
	}
	return b;
}

static int lz4_step(void *state, struct ow_unpack_io *io)
{
	struct by_block *b = state;
	size_t in = next_bytes(b, io), out = io->out_bytes;

	b->want = LZ4F_decompress(b->lz4, io->out, &out, io->in, &in, NULL);
	if (LZ4F_isError(b->want))
		return OW_UNPACK_DAMAGED;
	advance(io, in, out);
	return b->want == 0 ? OW_UNPACK_END : OW_UNPACK_MORE;
}

static int lz4_restart(void *state)
{
	struct by_block *b = state;

	b->want = FIRST_BYTES;
	LZ4F_resetDecompressionContext(b->lz4);
	return 0;
}

static void lz4_close(void *state)
{
	struct by_block *b = state;

	LZ4F_freeDecompressionContext(b->lz4);
	free(b);
}

static int xz_restart(void *state)
{
	return lzma_stream_decoder(state, OW_UNPACK_WINDOW_MAX + XZ_EXTRA, 0) == LZMA_OK ? 0 : -ENOMEM;
}

static void xz_close(void *state)
{
	lzma_end(state);
	free(state);
}

static void *xz_open(void)
{
	lzma_stream *xz = calloc(1, sizeof *xz); /* zeros are LZMA_STREAM_INIT */

	if (xz && xz_restart(xz) < 0) {
		xz_close(xz);
		xz = NULL;
	}
	return xz;
}

static int xz_step(void *state, struct ow_unpack_io *io)
{
	lzma_stream *xz = state;
	lzma_ret r;

	xz->next_in = io->in;
	xz->avail_in = io->in_bytes;
	xz->next_out = io->out;
	xz->avail_out = io->out_bytes;
	r = lzma_code(xz, LZMA_RUN);
	advance(io, io->in_bytes - xz->avail_in, io->out_bytes - xz->avail_out);
	switch (r) {
	case LZMA_OK:
	case LZMA_BUF_ERROR: /* no progress */
		return OW_UNPACK_MORE;
	case LZMA_STREAM_END:
		return OW_UNPACK_END;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return OW_UNPACK_TOO_LARGE;
	default:
		return OW_UNPACK_DAMAGED;
	}
}

static size_t xz_memory(void *state)
{
	return lzma_memusage(state);
}

/* bzip2 takes 4 MB at most. */

static void *bzip2_open(void)
{
	bz_stream *bz = calloc(1, sizeof *bz);

	if (bz && BZ2_bzDecompressInit(bz, 0, 0) != BZ_OK) {
		free(bz);
		bz = NULL;
	}
	return bz;
}

static int bzip2_step(void *state, struct ow_unpack_io *io)
{
	bz_stream *bz = state;
	unsigned in = io->in_bytes < UINT_MAX ? (unsigned)io->in_bytes : UINT_MAX;
	unsigned out = io->out_bytes < UINT_MAX ? (unsigned)io->out_bytes : UINT_MAX;
	int r;

	bz->next_in = (char *)io->in;
	bz->avail_in = in;
	bz->next_out = (char *)io->out;
	bz->avail_out = out;
	r = BZ2_bzDecompress(bz);
	advance(io, in - bz->avail_in, out - bz->avail_out);
	if (r == BZ_MEM_ERROR)
		return -ENOMEM;
	if (r == BZ_STREAM_END)
		return OW_UNPACK_END;
	return r == BZ_OK ? OW_UNPACK_MORE : OW_UNPACK_DAMAGED;
}

static int bzip2_restart(void *state)
{
	BZ2_bzDecompressEnd(state);
	return BZ2_bzDecompressInit(state, 0, 0) == BZ_OK ? 0 : -ENOMEM;
}

static void bzip2_close(void *state)
{
	BZ2_bzDecompressEnd(state);
	free(state);
}

void ow_unpack_more(void)
{
	static const struct ow_unpack_method zstd = {zstd_open, zstd_step, zstd_restart, zstd_close, zstd_memory},
					     lz4 = {lz4_open, lz4_step, lz4_restart, lz4_close, NULL},
					     xz = {xz_open, xz_step, xz_restart, xz_close, xz_memory},
					     bzip2 = {bzip2_open, bzip2_step, bzip2_restart, bzip2_close, NULL};

	ow_unpack_allow(OW_PACKING_ZSTD, &zstd);
	ow_unpack_allow(OW_PACKING_LZ4, &lz4);
	ow_unpack_allow(OW_PACKING_XZ, &xz);
	ow_unpack_allow(OW_PACKING_BZIP2, &bzip2);
}
