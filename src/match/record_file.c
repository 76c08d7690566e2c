/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_file.h"

#include "base/temporary_file.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_ITEMS 64
/* Blocks in memory, for 65536 records: packets whose fate is decided at about the same time are near each other. */
#define BLOCKS 1024
/* 2^40 records: a larger number is invalid. */
#define NUMBER_MAX (UINT64_C(1) << 40)

struct block {
	uint64_t place; /* in the file + 1; 0 = empty */
	bool changed;
};

struct ow_record_file {
	int fd;
	size_t item_size, block_size;
	uint64_t written; /* blocks of the file, with those that were left out */
	uint64_t last;    /* number of a record */
	uint8_t *items;   /* of all blocks */
	struct block block[BLOCKS];
};

int ow_record_file_create(const char *folder, size_t item_size, struct ow_record_file **ret_file, struct ow_error *err)
{
	struct ow_record_file *file = calloc(1, sizeof *file);
	uint8_t *items = calloc(BLOCKS, BLOCK_ITEMS * item_size);
	int fd = file && items ? ow_temporary_file(folder) : -ENOMEM;
	if (fd < 0) {
		free(file);
		free(items);
		return ow_error_set(err, -fd, "cannot make a temporary file in %.200s: %s", folder, strerror(-fd));
	}
	file->fd = fd;
	file->item_size = item_size;
	file->block_size = BLOCK_ITEMS * item_size;
	file->items = items;
	*ret_file = file;
	return 0;
}

void ow_record_file_free(struct ow_record_file *file)
{
	if (!file)
		return;
	close(file->fd);
	free(file->items);
	free(file);
}

static uint8_t *items_of(const struct ow_record_file *file, const struct block *block)
{
	return file->items + (size_t)(block - file->block) * file->block_size;
}

static int failed(const char *what, struct ow_error *err)
{
	int code = errno;
	return ow_error_set(err, code, "%s notes about packets, in a temporary file: %s", what, strerror(code));
}

static int write_block(struct ow_record_file *file, struct block *block, struct ow_error *err)
{
	off_t at = (off_t)((block->place - 1) * file->block_size);
	size_t done = 0;
	while (block->changed && done < file->block_size) {
		ssize_t n = pwrite(file->fd, items_of(file, block) + done, file->block_size - done, at + (off_t)done);
		if (n < 0 && errno != EINTR)
			return failed("writing", err);
		done += n > 0 ? (size_t)n : 0;
	}
	if (block->changed && block->place > file->written)
		file->written = block->place;
	block->changed = false;
	return 0;
}

/* What was never written is 0. */
static int read_block(struct ow_record_file *file, struct block *block, uint64_t place, struct ow_error *err)
{
	off_t at = (off_t)((place - 1) * file->block_size);
	size_t done = 0;
	memset(items_of(file, block), 0, file->block_size);
	block->place = 0;
	while (place <= file->written && done < file->block_size) {
		ssize_t n = pread(file->fd, items_of(file, block) + done, file->block_size - done, at + (off_t)done);
		if (n < 0 && errno != EINTR)
			return failed("reading", err);
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	block->place = place;
	return 0;
}

static int find(struct ow_record_file *file, uint64_t number, struct block **ret_block, struct ow_error *err)
{
	if (number > NUMBER_MAX)
		return ow_error_set(err, ERANGE, "record %llu of a capture: too many", (unsigned long long)number);
	uint64_t place = number / BLOCK_ITEMS + 1;
	struct block *block = &file->block[place % BLOCKS];
	int r = 0;
	if (block->place != place) {
		r = write_block(file, block, err);
		if (r == 0)
			r = read_block(file, block, place, err);
	}
	*ret_block = block;
	return r;
}

int ow_record_file_change(struct ow_record_file *file, uint64_t number, void **ret_item, struct ow_error *err)
{
	struct block *block;
	int r = find(file, number, &block, err);
	if (r < 0)
		return r;
	block->changed = true;
	file->last = number > file->last ? number : file->last;
	*ret_item = items_of(file, block) + number % BLOCK_ITEMS * file->item_size;
	return 0;
}

int ow_record_file_get(struct ow_record_file *file, uint64_t number, const void **ret_item, struct ow_error *err)
{
	struct block *block;
	int r = find(file, number, &block, err);
	if (r == 0)
		*ret_item = items_of(file, block) + number % BLOCK_ITEMS * file->item_size;
	return r;
}

uint64_t ow_record_file_last(const struct ow_record_file *file)
{
	return file->last;
}
