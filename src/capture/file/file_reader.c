/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the format of a capture file by its first bytes and opens the cursor for it. */
#include "capture/file/file_reader.h"

#include "base/bytes.h"
#include "capture/file/capture_format.h"
#include "capture/file/erf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ow_file_reader {
	struct ow_source *source;
	struct ow_file_cursor *walk;
	struct ow_reader_info info;
	char *path;
	bool ended;
};

static int refuse(const struct ow_source *source, const uint8_t *head, size_t size, struct ow_error *err)
{
	const char *name = ow_source_name(source), *damage = ow_source_damage(source);

	if (damage)
		return ow_error_set(err, EINVAL, "%s: not a capture file (%s)", name, damage);
	if (size == 0)
		return ow_error_set(err, EINVAL, "%s: not a capture file (it is empty)", name);
	if (size < 4)
		return ow_error_set(err, EINVAL, "%s: not a capture file (it has only %zu bytes)", name, size);
	return ow_error_set(err, EINVAL, "%s: not a capture file (starts with %02x %02x %02x %02x)", name, head[0],
	                    head[1], head[2], head[3]);
}

/* Opens an ERF file, or refuses the file. */
static int try_erf(struct ow_file_reader *r, const uint8_t *head, size_t size, struct ow_error *err)
{
	uint8_t *look = malloc(OW_ERF_LOOK_BYTES);
	size_t got = 0;
	int result = look ? ow_source_rewind(r->source, err)
	                  : ow_error_set(err, ENOMEM, "%s: out of memory", ow_source_name(r->source));

	if (result == 0)
		result = ow_source_read(r->source, look, OW_ERF_LOOK_BYTES, &got, err);
	bool is_erf = result == 0 && ow_file_is_erf(look, got);
	uint16_t linktype = is_erf ? ow_erf_first_link(look, got) : OW_LINK_UNKNOWN;
	free(look);
	if (result < 0)
		return result;
	if (!is_erf)
		return refuse(r->source, head, size, err);
	result = ow_source_rewind(r->source, err);
	return result < 0 ? result : ow_file_cursor_erf(r->source, linktype, &r->info, &r->walk, err);
}

static int start_walk(struct ow_file_reader *r, struct ow_error *err)
{
	uint8_t head[OW_PCAP_HEADER_BYTES] = {0};
	size_t got;
	int result = ow_source_read(r->source, head, sizeof head, &got, err);

	if (result < 0)
		return result;
	switch (ow_file_kind(head, got)) {
	case OW_FILE_KIND_CLASSIC:
		if (got < sizeof head && ow_source_damage(r->source))
			return refuse(r->source, head, got, err);
		if (got < sizeof head)
			return ow_error_set(err, EINVAL, "%s: cut off in the file header (%zu of %zu bytes)",
			                    ow_source_name(r->source), got, sizeof head);
		return ow_file_cursor_classic(r->source, head, &r->info, &r->walk, err);
	case OW_FILE_KIND_VARIANT:
	case OW_FILE_KIND_PCAPNG:
		result = ow_source_rewind(r->source, err);
		return result < 0 ? result : ow_file_cursor_foreign(r->source, &r->info, &r->walk, err);
	case OW_FILE_KIND_SNOOP:
		if (got < OW_PCAP_RECORD_BYTES)
			return ow_error_set(err, EINVAL, "%s: cut off in the file header (%zu of 16 bytes)",
			                    ow_source_name(r->source), got);
		result = ow_source_rewind(r->source, err);
		return result < 0 ? result : ow_file_cursor_snoop(r->source, head, &r->info, &r->walk, err);
	default:
		return try_erf(r, head, got, err);
	}
}

int ow_file_reader_open(const char *path, struct ow_file_reader **ret_reader, struct ow_error *err)
{
	struct ow_file_reader *r = calloc(1, sizeof *r);
	int result;

	if (r)
		r->path = strdup(path);
	if (!r || !r->path) {
		ow_file_reader_close(r);
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	}
	result = ow_source_open(path, &r->source, err);
	if (result == 0) {
		r->info.path = r->path;
		r->info.compressed = ow_source_compressed(r->source);
		r->info.size_bytes = ow_source_size(r->source);
		result = start_walk(r, err);
	}
	if (result < 0) {
		ow_file_reader_close(r);
		return result;
	}
	*ret_reader = r;
	return 0;
}

void ow_file_reader_close(struct ow_file_reader *r)
{
	if (!r)
		return;
	if (r->walk)
		r->walk->ops->free(r->walk);
	ow_source_close(r->source);
	free(r->path);
	free(r);
}

const struct ow_reader_info *ow_file_reader_info(const struct ow_file_reader *r)
{
	return &r->info;
}

int ow_file_reader_read(struct ow_file_reader *r, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	int n;

	if (r->ended || max == 0)
		return 0;
	n = r->walk->ops->read(r->walk, frames, max, err);
	r->ended = n <= 0;
	return n;
}

const char *ow_file_reader_damage(const struct ow_file_reader *r)
{
	return r->walk->damage.text[0] ? r->walk->damage.text : NULL;
}

size_t ow_file_reader_memory(const struct ow_file_reader *r)
{
	return ow_source_memory(r->source);
}

uint64_t ow_file_reader_position(const struct ow_file_reader *r)
{
	return ow_source_position(r->source);
}

int ow_file_reader_rewind(struct ow_file_reader *r, struct ow_error *err)
{
	int result = ow_source_rewind(r->source, err);

	if (result < 0)
		return result;
	r->walk->number = 0;
	r->walk->damage.text[0] = 0;
	result = r->walk->ops->rewind(r->walk, err);
	r->ended = result < 0;
	return result;
}
