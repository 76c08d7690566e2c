/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Compressed files: which compression it is, by the first bytes (names of files do not matter), and the functions that
 * unpack it. A compressed file has one or more members (streams, frames), each of which begins with the magic.
 *
 * liboneway itself unpacks gzip only, so that it needs no library but zlib. A program adds the other methods at its
 * start (capture/file/unpack_more.h).
 */
enum ow_packing {
	OW_PACKING_NONE,
	OW_PACKING_GZIP,
	OW_PACKING_ZSTD,
	OW_PACKING_LZ4,
	OW_PACKING_XZ,
	OW_PACKING_BZIP2,
	OW_PACKINGS,
};

/* The longest magic, in bytes. */
#define OW_PACKING_MAGIC_MAX 6U

/*
 * The most memory that unpacking one file may take for the data that it refers back to. zstd -19 and xz -9 need 8 and
 * 64 MiB; a file that asks for more is refused, whatever its header says.
 */
#define OW_UNPACK_WINDOW_MAX (128U << 20)

enum ow_packing ow_packing_of(const uint8_t *head, size_t size);
const char *ow_packing_name(enum ow_packing packing);

/* Packed bytes to read and room for unpacked ones. A step moves both pointers on. */
struct ow_unpack_io {
	const uint8_t *in;
	size_t in_bytes;
	uint8_t *out;
	size_t out_bytes;
};

/* Result of a step; negative: errno. If a step reads and writes nothing and returns OW_UNPACK_MORE, it needs input. */
enum ow_unpack_state {
	OW_UNPACK_MORE,
	OW_UNPACK_END,       /* of a member; restart before the next step */
	OW_UNPACK_DAMAGED,   /* the data is invalid */
	OW_UNPACK_TOO_LARGE, /* needs more than OW_UNPACK_WINDOW_MAX */
};

struct ow_unpack_method {
	void *(*open)(void); /* NULL if out of memory */
	int (*step)(void *state, struct ow_unpack_io *io);
	int (*restart)(void *state); /* for the beginning of a member; 0 or -ENOMEM */
	void (*close)(void *state);
	size_t (*memory)(void *state); /* bytes that it takes now; NULL: a few MB at most */
};

/* The method, or NULL if the program has not added it. */
const struct ow_unpack_method *ow_unpack_method(enum ow_packing packing);
/* A program calls it at its start, before it creates threads. */
void ow_unpack_allow(enum ow_packing packing, const struct ow_unpack_method *method);
