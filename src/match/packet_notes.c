/* SPDX-License-Identifier: Apache-2.0 */
#include "match/packet_notes.h"

#include "base/temporary_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_NOTES 64
/* Blocks in memory, about 6 MB: the packets whose fate is decided at about the same time are near each other. */
#define BLOCKS 1024
/* 2^40 records: a larger number is invalid. */
#define NUMBER_MAX (UINT64_C(1) << 40)

struct block {
	uint64_t place; /* in the file + 1; 0 = empty */
	bool changed;
	struct ow_packet_note note[BLOCK_NOTES];
};

struct ow_packet_notes {
	int fd;
	uint64_t written; /* blocks of the file, with those that were left out */
	uint64_t last;    /* number of a record */
	struct block block[BLOCKS];
};

int ow_packet_notes_create(const char *folder, struct ow_packet_notes **ret_notes, struct ow_error *err)
{
	struct ow_packet_notes *notes = calloc(1, sizeof *notes);
	if (!notes)
		return ow_error_set(err, ENOMEM, "not enough memory for notes about packets");
	notes->fd = ow_temporary_file(folder);
	if (notes->fd < 0) {
		int code = -notes->fd;
		free(notes);
		return ow_error_set(err, code, "cannot make a temporary file in %.200s: %s", folder, strerror(code));
	}
	*ret_notes = notes;
	return 0;
}

void ow_packet_notes_free(struct ow_packet_notes *notes)
{
	if (!notes)
		return;
	close(notes->fd);
	free(notes);
}

static int failed(const char *what, struct ow_error *err)
{
	int code = errno;
	return ow_error_set(err, code, "%s the notes about packets, in a temporary file: %s", what, strerror(code));
}

static int write_block(struct ow_packet_notes *notes, struct block *block, struct ow_error *err)
{
	off_t at = (off_t)((block->place - 1) * sizeof block->note);
	size_t done = 0;
	while (block->changed && done < sizeof block->note) {
		ssize_t n = pwrite(notes->fd, (char *)block->note + done, sizeof block->note - done, at + (off_t)done);
		if (n < 0 && errno != EINTR)
			return failed("writing", err);
		done += n > 0 ? (size_t)n : 0;
	}
	if (block->changed && block->place > notes->written)
		notes->written = block->place;
	block->changed = false;
	return 0;
}

/* What was never written is 0. */
static int read_block(struct ow_packet_notes *notes, struct block *block, uint64_t place, struct ow_error *err)
{
	off_t at = (off_t)((place - 1) * sizeof block->note);
	size_t done = 0;
	memset(block->note, 0, sizeof block->note);
	block->place = 0;
	while (place <= notes->written && done < sizeof block->note) {
		ssize_t n = pread(notes->fd, (char *)block->note + done, sizeof block->note - done, at + (off_t)done);
		if (n < 0 && errno != EINTR)
			return failed("reading", err);
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	block->place = place;
	return 0;
}

static int find(struct ow_packet_notes *notes, uint64_t number, struct block **ret_block, struct ow_error *err)
{
	if (number > NUMBER_MAX)
		return ow_error_set(err, ERANGE, "record %llu of a capture: too many", (unsigned long long)number);
	uint64_t place = number / BLOCK_NOTES + 1;
	struct block *block = &notes->block[place % BLOCKS];
	int r = 0;
	if (block->place != place) {
		r = write_block(notes, block, err);
		if (r == 0)
			r = read_block(notes, block, place, err);
	}
	*ret_block = block;
	return r;
}

/* The first part of a superframe stands for all of it, of those that arrived if any did. */
static bool stands_for_all(const struct ow_packet_note *note, const struct ow_packet_event *event)
{
	bool arrived = event->fate == OW_FATE_MATCHED;
	if (!note->id || arrived != (note->other_number != 0))
		return !note->id || arrived;
	return event->part < note->part;
}

static void take_over(struct ow_packet_note *note, enum ow_side side, const struct ow_packet_event *event)
{
	note->id = event->id ? event->id : 1;
	note->part = event->part;
	note->time_ns = event->time_ns[side];
	note->fate = (uint8_t)event->fate;
	note->direction = event->fate == OW_FATE_UNCLASSIFIED ? OW_DIRECTIONS : (uint8_t)event->direction;
	note->other_number = event->number[!side];
	note->other_time_ns = event->number[!side] ? event->time_ns[!side] : 0;
	note->timed = ow_event_delay(event, &note->delay_ns);
	note->ambiguous = event->ambiguous;
	note->less_ns = event->less_ns;
	note->more_ns = event->more_ns;
}

int ow_packet_notes_add(struct ow_packet_notes *notes, enum ow_side side, const struct ow_packet_event *event,
                        struct ow_error *err)
{
	struct block *block;
	uint64_t number = event->number[side];
	if (!number)
		return 0;
	int r = find(notes, number, &block, err);
	if (r < 0)
		return r;
	struct ow_packet_note *note = &block->note[number % BLOCK_NOTES];
	block->changed = true;
	notes->last = number > notes->last ? number : notes->last;
	if (stands_for_all(note, event))
		take_over(note, side, event);
	note->packets[event->fate] += event->packets;
	return 0;
}

int ow_packet_notes_get(struct ow_packet_notes *notes, uint64_t number, const struct ow_packet_note **ret_note,
                        struct ow_error *err)
{
	struct block *block;
	int r = find(notes, number, &block, err);
	if (r == 0)
		*ret_note = &block->note[number % BLOCK_NOTES];
	return r;
}

uint64_t ow_packet_notes_last(const struct ow_packet_notes *notes)
{
	return notes->last;
}
