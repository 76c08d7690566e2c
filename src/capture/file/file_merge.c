/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each file is opened once to learn when it begins; then the files are read in that order. While several files cover
 * the same time, the earliest of their next frames is returned. A frame that two of these files have, with the same time
 * and the same bytes, is returned once: the files overlap.
 *
 * Frames are pointers into the files' buffers. A file is read further only at the start of a call, so that the frames of
 * the call before stay valid.
 */
#include "capture/file/file_merge.h"

#include "base/time.h"
#include "base/word.h"
#include "capture/file/file_reader.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define BATCH     64   /* frames read of a file at a time */
#define SAME_MOST 1024 /* frames with the same time that are compared with those of other files */
/*
 * A part of a sum that shows nothing for this many times as long as it usually is between two frames, at its start, its
 * end, or between two of its files, may have missed packets. Frames that come at random are that far apart once in 10^8.
 */
#define FRAMES_APART 20

/* A file with frames. */
struct member {
	const char *path;
	unsigned part;
	int64_t first_ns;
	uint64_t size_bytes;
};

/* A file that covers the time that is being read. */
struct opened {
	struct ow_file_reader *reader;
	const struct member *member;
	int next, count;
	int64_t time_ns; /* of the next frame; that of the frame before, if it has none */
	size_t memory;   /* bytes for unpacking */
	struct ow_frame frame[BATCH];
};

struct ow_file_merge {
	struct ow_reader_info info;
	struct member *member; /* in the order of their first frames */
	size_t members, begun;
	struct opened *opened[OW_FILE_MERGE_OPEN];
	unsigned open;
	const struct member *last; /* of the frame that was returned last */
	size_t memory;             /* of the open files */
	uint64_t number;
	uint64_t passed_bytes; /* of the files that were read to their end */
	size_t ignored;        /* files that are empty, or of a folder and no captures */
	const char *ignored_path;
	/* Frames of the time same_ns that may be in other files as well. */
	int64_t same_ns;
	unsigned same;
	struct {
		uint64_t hash;
		const struct member *member;
		bool repeated;
	} known[SAME_MOST];
	uint64_t repeated;
	struct part {
		int64_t first_ns, last_ns;
		uint64_t frames;
		unsigned open;     /* files */
		int64_t missed_ns; /* time between files that none of the part covers */
	} part[OW_FILE_SET_PARTS];
	unsigned parts;
	size_t damaged, empty_damaged; /* empty: without a frame, known from the start */
	struct ow_error damage, note;
};

/* -- the files and when they begin -------------------------------------------------------------------------------- */

static void note_info(struct ow_file_merge *m, const struct ow_reader_info *of, bool first)
{
	struct ow_reader_info *info = &m->info;
	if (first) {
		info->format = of->format;
		info->linktype = of->linktype;
		info->snaplen = of->snaplen;
	}
	info->compressed |= of->compressed;
	info->wrong_unit |= of->wrong_unit;
	/* The shortest limit holds for all. */
	if (of->snaplen && (!info->snaplen || of->snaplen < info->snaplen))
		info->snaplen = of->snaplen;
	if (of->resolution_ns > info->resolution_ns)
		info->resolution_ns = of->resolution_ns;
	info->size_bytes += of->size_bytes;
}

/* The time of the first frame that has one. Returns whether the file has a frame, or a negative errno. */
static int first_time(struct ow_file_reader *reader, int64_t *ret_ns, struct ow_error *err)
{
	struct ow_frame frame[BATCH];
	int n = ow_file_reader_read(reader, frame, BATCH, err);
	*ret_ns = 0;
	for (int i = 0; i < n && *ret_ns == 0; i++)
		*ret_ns = frame[i].time_ns;
	return n < 0 ? n : n > 0;
}

/* The set was listed before: what is in the place of a file now may be a pipe, and opening that would wait for a writer. */
static int open_member(const char *path, struct ow_file_reader **ret_reader, struct ow_error *err)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return ow_error_set(err, EIO, "%s: is not a file any more", path);
	return ow_file_reader_open(path, ret_reader, err);
}

/* tcpdump writes the header of a new file with its first packets. */
static bool is_empty(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

static int note_member(struct ow_file_merge *m, const struct ow_file_set_file *file, struct ow_error *err)
{
	struct ow_file_reader *reader;
	int64_t first_ns;
	/* An empty file is not opened: those of /proc and /sys may block, or never end. */
	int r = is_empty(file->path) ? -EINVAL : open_member(file->path, &reader, err);
	if (r == -EINVAL && (file->of_folder || is_empty(file->path))) {
		m->ignored_path = m->ignored++ ? m->ignored_path : file->path;
		return 0;
	}
	if (r < 0)
		return r;
	r = first_time(reader, &first_ns, err);
	if (r >= 0)
		note_info(m, ow_file_reader_info(reader), m->info.files++ == 0);
	if (r > 0)
		m->member[m->members++] = (struct member){.path = file->path,
		                                          .part = file->part,
		                                          .first_ns = first_ns,
		                                          .size_bytes = ow_file_reader_info(reader)->size_bytes};
	else if (r == 0 && ow_file_reader_damage(reader) && m->empty_damaged++ == 0)
		ow_error_set(&m->damage, EINVAL, "%s", ow_file_reader_damage(reader));
	ow_file_reader_close(reader);
	return r < 0 ? r : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

int ow_file_merge_open(const char *name, const struct ow_file_set *set, struct ow_file_merge **ret_merge,
                       struct ow_error *err)
{
	struct ow_file_merge *m = calloc(1, sizeof *m);
	int r = 0;
	if (!m || !(m->member = calloc(set->count, sizeof *m->member))) {
		ow_file_merge_close(m);
		return ow_error_set(err, ENOMEM, "%s: out of memory", name);
	}
	m->info.path = name;
	m->parts = set->parts;
	for (size_t i = 0; i < set->count && r == 0; i++)
		r = note_member(m, &set->file[i], err);
	if (r == 0 && !m->info.files)
		r = ow_error_set(err, EINVAL, "%s: none of its files is a capture", name);
	if (r < 0) {
		ow_file_merge_close(m);
		return r;
	}
	m->damaged = m->empty_damaged;
	qsort(m->member, m->members, sizeof *m->member, by_start);
	*ret_merge = m;
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

static void close_opened(struct ow_file_merge *m, unsigned i)
{
	struct opened *file = m->opened[i];
	m->memory -= file->memory;
	ow_file_reader_close(file->reader);
	free(file);
	memmove(&m->opened[i], &m->opened[i + 1], (--m->open - i) * sizeof *m->opened);
}

/* A file was read to its end. */
static void end_file(struct ow_file_merge *m, unsigned i)
{
	const struct opened *file = m->opened[i];
	const char *damage = ow_file_reader_damage(file->reader);
	m->info.dropped += ow_file_reader_info(file->reader)->dropped;
	m->info.excess += ow_file_reader_info(file->reader)->excess;
	m->passed_bytes += file->member->size_bytes;
	if (damage && m->damaged++ == 0)
		ow_error_set(&m->damage, EINVAL, "%s", damage);
	m->part[file->member->part].open--;
	close_opened(m, i);
}

static void note_part(struct ow_file_merge *m, const struct opened *file)
{
	struct part *part = &m->part[file->member->part];
	if (!part->frames || file->time_ns < part->first_ns)
		part->first_ns = file->time_ns;
	if (!part->frames || file->time_ns > part->last_ns)
		part->last_ns = file->time_ns;
}

/* Whether a part would show a frame in this time. */
static bool is_long(const struct part *part, int64_t ns)
{
	return part->frames && ns / FRAMES_APART > (part->last_ns - part->first_ns) / (int64_t)part->frames;
}

/* The window of a packed file can be large, and is known when its data is read. */
static int note_memory(struct ow_file_merge *m, struct opened *file, struct ow_error *err)
{
	size_t memory = ow_file_reader_memory(file->reader);
	m->memory += memory - file->memory;
	file->memory = memory;
	if (m->memory <= OW_FILE_MERGE_UNPACK_BYTES || m->open == 1)
		return 0;
	return ow_error_set(err, ENOMEM,
	                    "%s: %u files cover the same time, and unpacking them takes more than %zu MiB: unpack them "
	                    "first",
	                    m->info.path, m->open, OW_FILE_MERGE_UNPACK_BYTES >> 20);
}

/* Reads the next frames of a file if all were returned. Returns whether it has frames, or a negative errno. */
static int refill(struct ow_file_merge *m, struct opened *file, struct ow_error *err)
{
	if (file->next < file->count)
		return 1;
	if (file->count)
		note_part(m, file);
	file->next = 0;
	file->count = ow_file_reader_read(file->reader, file->frame, BATCH, err);
	if (file->count <= 0)
		return file->count;
	if (file->frame[0].time_ns)
		file->time_ns = file->frame[0].time_ns;
	note_part(m, file);
	m->part[file->member->part].frames += (uint64_t)file->count;
	int r = note_memory(m, file, err);
	return r < 0 ? r : 1;
}

static int refill_all(struct ow_file_merge *m, struct ow_error *err)
{
	for (unsigned i = 0; i < m->open;) {
		int r = refill(m, m->opened[i], err);
		if (r < 0)
			return r;
		if (r == 0)
			end_file(m, i);
		else
			i++;
	}
	return 0;
}

static struct opened *earliest(const struct ow_file_merge *m)
{
	struct opened *first = m->open ? m->opened[0] : NULL;
	for (unsigned i = 1; i < m->open; i++) {
		if (m->opened[i]->time_ns < first->time_ns)
			first = m->opened[i];
	}
	return first;
}

static int open_next(struct ow_file_merge *m, struct ow_error *err)
{
	const struct member *member = &m->member[m->begun];
	if (m->open == OW_FILE_MERGE_OPEN)
		return ow_error_set(err, EMFILE, "%s: more than %u files cover the same time", m->info.path,
		                    OW_FILE_MERGE_OPEN);
	struct opened *file = calloc(1, sizeof *file);
	if (!file)
		return ow_error_set(err, ENOMEM, "%s: out of memory", m->info.path);
	int r = open_member(member->path, &file->reader, err);
	if (r < 0) {
		free(file);
		return r;
	}
	file->member = member;
	file->time_ns = member->first_ns;
	m->opened[m->open++] = file;
	m->begun++;
	struct part *part = &m->part[member->part];
	int64_t gap_ns = member->first_ns - part->last_ns;
	if (part->open++ == 0 && is_long(part, gap_ns))
		part->missed_ns += gap_ns;
	return 0;
}

static bool next_is_due(const struct ow_file_merge *m)
{
	const struct opened *first = earliest(m);
	return m->begun < m->members && (!first || m->member[m->begun].first_ns <= first->time_ns);
}

/* Opens the files that begin before the next frame. */
static int open_due(struct ow_file_merge *m, struct ow_error *err)
{
	while (next_is_due(m)) {
		int r = open_next(m, err);
		if (r == 0)
			r = refill_all(m, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether another file has shown this frame: the n-th copy in a file repeats the n-th that was returned. */
static bool is_repeated(struct ow_file_merge *m, const struct opened *file, const struct ow_frame *frame)
{
	if (frame->time_ns == 0 || (m->open == 1 && frame->time_ns != m->same_ns))
		return false;
	if (frame->time_ns != m->same_ns)
		m->same = 0;
	m->same_ns = frame->time_ns;
	uint64_t hash = XXH3_64bits_withSeed(frame->data, frame->caplen, frame->len);
	unsigned own = 0, returned = 0;
	for (unsigned i = 0; i < m->same; i++) {
		own += m->known[i].hash == hash && m->known[i].member == file->member;
		returned += m->known[i].hash == hash && !m->known[i].repeated;
	}
	bool repeated = own < returned;
	if (m->same < SAME_MOST) {
		m->known[m->same].hash = hash;
		m->known[m->same].member = file->member;
		m->known[m->same++].repeated = repeated;
	}
	return repeated;
}

/* Returns the next frame of a file, unless it is repeated. */
static size_t take(struct ow_file_merge *m, struct opened *file, struct ow_frame *ret_frame)
{
	const struct ow_frame *frame = &file->frame[file->next++];
	bool repeated = is_repeated(m, file, frame);
	if (file->next < file->count && file->frame[file->next].time_ns)
		file->time_ns = file->frame[file->next].time_ns;
	m->repeated += repeated;
	if (repeated)
		return 0;
	*ret_frame = *frame;
	ret_frame->number = ++m->number;
	m->last = file->member;
	return 1;
}

/* The usual case: frames of the only file that covers this time, as long as no other is due. */
static size_t take_many(struct ow_file_merge *m, struct ow_frame *frames, size_t max)
{
	struct opened *file = m->opened[0];
	int64_t until_ns = m->begun < m->members ? m->member[m->begun].first_ns : INT64_MAX;
	size_t n = 0;
	for (; n < max && file->next < file->count; n++) {
		const struct ow_frame *frame = &file->frame[file->next];
		if (frame->time_ns >= until_ns || frame->time_ns == m->same_ns || frame->time_ns == 0)
			break;
		file->time_ns = frame->time_ns;
		frames[n] = *frame;
		frames[n].number = ++m->number;
		file->next++;
	}
	if (file->next < file->count && file->frame[file->next].time_ns)
		file->time_ns = file->frame[file->next].time_ns;
	m->last = n ? file->member : m->last;
	return n;
}

int ow_file_merge_read(struct ow_file_merge *m, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	int r = refill_all(m, err);
	size_t n = 0;
	if (r < 0)
		return r;
	m->info.after_gap = false;
	while (n < max) {
		if (!n && !m->open && m->begun)
			m->info.after_gap = m->begun < m->members;
		r = open_due(m, err);
		if (r < 0)
			return r;
		struct opened *file = earliest(m);
		if (!file)
			break;
		m->info.mapped = m->open == 1 && ow_file_reader_info(file->reader)->mapped;
		size_t many = m->open == 1 ? take_many(m, frames + n, max - n) : 0;
		n += many ? many : take(m, file, &frames[n]);
		if (file->next < file->count)
			continue;
		if (n)
			break;
		r = refill_all(m, err);
		if (r < 0)
			return r;
	}
	return (int)n;
}

const char *ow_file_merge_file(const struct ow_file_merge *m, size_t i)
{
	return i < m->members ? m->member[i].path : NULL;
}

const char *ow_file_merge_last_file(const struct ow_file_merge *m)
{
	return m->last ? m->last->path : NULL;
}

int ow_file_merge_rewind(struct ow_file_merge *m, struct ow_error *err)
{
	(void)err;
	while (m->open)
		close_opened(m, m->open - 1);
	m->begun = 0;
	m->damaged = m->empty_damaged;
	m->number = m->passed_bytes = m->repeated = m->info.dropped = m->info.excess = 0;
	m->same = 0;
	m->same_ns = 0;
	memset(m->part, 0, sizeof m->part);
	return 0;
}

void ow_file_merge_close(struct ow_file_merge *m)
{
	if (!m)
		return;
	while (m->open)
		close_opened(m, m->open - 1);
	free(m->member);
	free(m);
}

/* -- what was found ----------------------------------------------------------------------------------------------- */

const struct ow_reader_info *ow_file_merge_info(const struct ow_file_merge *m)
{
	return &m->info;
}

const char *ow_file_merge_damage(const struct ow_file_merge *m)
{
	return m->damaged ? m->damage.text : NULL;
}

uint64_t ow_file_merge_position(const struct ow_file_merge *m)
{
	uint64_t position = m->passed_bytes;
	for (unsigned i = 0; i < m->open; i++)
		position += ow_file_reader_position(m->opened[i]->reader);
	return position;
}

/* The longest time that a part of a sum does not cover, though others do. */
static int64_t uncovered(const struct ow_file_merge *m)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN, most_ns = 0;
	for (const struct part *p = m->part; p < m->part + m->parts; p++) {
		first_ns = p->frames && p->first_ns < first_ns ? p->first_ns : first_ns;
		last_ns = p->frames && p->last_ns > last_ns ? p->last_ns : last_ns;
	}
	for (const struct part *p = m->part; p < m->part + m->parts; p++) {
		if (!p->frames)
			continue;
		int64_t late = p->first_ns - first_ns, early = last_ns - p->last_ns;
		int64_t missed_ns = p->missed_ns + (is_long(p, late) ? late : 0) + (is_long(p, early) ? early : 0);
		most_ns = missed_ns > most_ns ? missed_ns : most_ns;
	}
	return most_ns;
}

/* Parts of a sum without a frame. */
static unsigned idle_parts(const struct ow_file_merge *m)
{
	unsigned idle = 0;
	for (const struct part *p = m->part; p < m->part + m->parts; p++)
		idle += p->frames == 0;
	return idle;
}

const char *ow_file_merge_note(struct ow_file_merge *m)
{
	char length[OW_DURATION_TEXT], *text = m->note.text;
	size_t size = sizeof m->note.text, used = 0;
	text[0] = 0;
	if (m->repeated)
		used += (size_t)snprintf(
			text, size, "%llu %s in another of the files, with the same time: counted once",
			(unsigned long long)m->repeated, ow_plural(m->repeated, "frame is", "frames are"));
	if (m->ignored && used < size)
		used += (size_t)snprintf(
			text + used, size - used, "%s%zu %s: ignored (%.80s)", used ? "; " : "", m->ignored,
			ow_plural(m->ignored, "file is no capture", "files are no captures"), m->ignored_path);
	if (m->damaged > 1 && used < size)
		used += (size_t)snprintf(text + used, size - used, "%s%zu files are damaged", used ? "; " : "",
		                         m->damaged);
	if (m->parts > 1 && idle_parts(m) && used < size)
		used += (size_t)snprintf(
			text + used, size - used,
			"%s%u of the %u captures joined by + %s no packet: what passed there counts as "
			"lost",
			used ? "; " : "", idle_parts(m), m->parts, ow_plural(idle_parts(m), "shows", "show"));
	if (m->parts > 1 && uncovered(m) && used < size) {
		ow_duration_text((double)uncovered(m), length);
		snprintf(text + used, size - used,
		         "%sone of the captures joined by + shows nothing for %s of the time of the others: packets "
		         "that passed "
		         "there then count as lost",
		         used ? "; " : "", length);
	}
	return text[0] ? text : NULL;
}
