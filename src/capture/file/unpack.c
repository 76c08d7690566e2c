/* SPDX-License-Identifier: Apache-2.0 */
/* The compressions by their magics, and gzip. */
#include "capture/file/unpack.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const struct {
	const char *name;
	uint8_t size, magic[OW_PACKING_MAGIC_MAX];
} kinds[OW_PACKINGS] = {
	[OW_PACKING_NONE] = {"", 0, {0}},
	[OW_PACKING_GZIP] = {"gzip", 2, {0x1f, 0x8b}},
	[OW_PACKING_ZSTD] = {"zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},
	[OW_PACKING_LZ4] = {"lz4", 4, {0x04, 0x22, 0x4d, 0x18}},
	[OW_PACKING_XZ] = {"xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
	[OW_PACKING_BZIP2] = {"bzip2", 3, {'B', 'Z', 'h'}},
};

/* Frames of metadata, which zstd and lz4 share; pzstd writes one before each frame of data. */
static bool is_skippable(const uint8_t *head, size_t size)
{
	return size >= 4 && (head[0] & 0xf0) == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18;
}

enum ow_packing ow_packing_of(const uint8_t *head, size_t size)
{
	for (int i = OW_PACKING_NONE + 1; i < OW_PACKINGS; i++) {
		if (size >= kinds[i].size && memcmp(head, kinds[i].magic, kinds[i].size) == 0)
			return (enum ow_packing)i;
	}
	return is_skippable(head, size) ? OW_PACKING_ZSTD : OW_PACKING_NONE;
}

const char *ow_packing_name(enum ow_packing packing)
{
	return kinds[packing].name;
}

static void *gzip_open(void)
{
	z_stream *z = calloc(1, sizeof *z);

	/* 16: a gzip header is required */
	if (z && inflateInit2(z, 15 + 16) != Z_OK) {
		free(z);
		z = NULL;
	}
	return z;
}

static int gzip_step(void *state, struct ow_unpack_io *io)
{
	z_stream *z = state;
	int r;

	z->next_in = (uint8_t *)io->in;
	z->avail_in = io->in_bytes < UINT_MAX ? (uInt)io->in_bytes : UINT_MAX;
	z->next_out = io->out;
	z->avail_out = io->out_bytes < UINT_MAX ? (uInt)io->out_bytes : UINT_MAX;
	r = inflate(z, Z_NO_FLUSH);
	io->in_bytes -= (size_t)(z->next_in - io->in);
	io->in = z->next_in;
	io->out_bytes -= (size_t)(z->next_out - io->out);
	io->out = z->next_out;
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r == Z_STREAM_END)
		return OW_UNPACK_END;
	return r == Z_OK || r == Z_BUF_ERROR ? OW_UNPACK_MORE : OW_UNPACK_DAMAGED;
}

static int gzip_restart(void *state)
{
	return inflateReset(state) == Z_OK ? 0 : -ENOMEM;
}

static void gzip_close(void *state)
{
	inflateEnd(state);
	free(state);
}

static const struct ow_unpack_method gzip = {gzip_open, gzip_step, gzip_restart, gzip_close, NULL};
static const struct ow_unpack_method *methods[OW_PACKINGS] = {[OW_PACKING_GZIP] = &gzip};

const struct ow_unpack_method *ow_unpack_method(enum ow_packing packing)
{
	return methods[packing];
}

void ow_unpack_allow(enum ow_packing packing, const struct ow_unpack_method *method)
{
	methods[packing] = method;
}
