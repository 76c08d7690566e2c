/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the log, and a memory of recent ones. */
#include "point/journal.h"

#include "base/hash.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How often a line is printed in a window: refusals once, lines about states more often. */
#define SAID_WARNING 1
#define SAID_OTHER   10

#define LINE 600

struct kind {
	uint64_t key; /* 0 = free */
	enum ow_event level;
	int64_t since_ns, window_ns;
	unsigned said;
	uint64_t kept; /* not printed in this window */
	char line[LINE];
};

struct ow_journal {
	FILE *out;
	char point[OW_RESULT_NAME];
	bool journald;
	struct kind kind[OW_JOURNAL_KINDS];
	uint64_t flooded; /* warnings for which there was no slot */
	int64_t flooded_ns;
};

bool ow_journal_is_stream(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char here[64];
	if (!stream || fstat(fd, &st) < 0)
		return false;
	snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, here) == 0;
}

int ow_journal_create(FILE *out, const char *point, bool journald, struct ow_journal **ret_journal)
{
	struct ow_journal *j = calloc(1, sizeof *j);
	if (!j)
		return -ENOMEM;
	j->out = out;
	snprintf(j->point, sizeof j->point, "%s", point);
	j->journald = journald;
	*ret_journal = j;
	return 0;
}

static void write_line(const struct ow_journal *j, enum ow_event level, const char *text)
{
	char line[LINE + 80];
	/* Names, reasons and paths in it come from outside. */
	snprintf(line, sizeof line, "%s", text);
	ow_utf8_clean(line);
	struct timespec now;
	struct tm tm;
	char when[32] = "";
	if (j->journald) {
		fprintf(j->out, "<%d>%s\n", (int)level, line);
	} else {
		clock_gettime(CLOCK_REALTIME, &now);
		if (gmtime_r(&now.tv_sec, &tm))
			strftime(when, sizeof when, "%H:%M:%S", &tm);
		fprintf(j->out, "%s.%03ld %s: %s%s\n", when, now.tv_nsec / 1000000, j->point,
		        level <= OW_EVENT_ERROR     ? "error: "
		        : level == OW_EVENT_WARNING ? "warning: "
		                                    : "",
		        line);
	}
	fflush(j->out);
}

/* The hash of the line up to its first comma, without ports. Two digits after a colon are a time of day. */
static uint64_t key_of(const char *line)
{
	uint64_t key = 1;
	for (const char *c = line; *c && *c != ','; c++) {
		key = ow_mix64(key ^ (unsigned char)*c);
		size_t digits = *c == ':' ? strspn(c + 1, "0123456789") : 0;
		c += digits == 2 ? 0 : digits;
	}
	return key ? key : 1;
}

static struct kind *find(struct ow_journal *j, uint64_t key)
{
	struct kind *room = NULL;
	for (unsigned i = 0; i < OW_JOURNAL_KINDS; i++) {
		if (j->kind[i].key == key)
			return &j->kind[i];
		if (j->kind[i].key == 0)
			room = &j->kind[i];
	}
	return room;
}

static void tell_kept(const struct ow_journal *j, const struct kind *k, int64_t now_ns)
{
	char text[LINE + 80], lasted[OW_DURATION_TEXT];
	ow_duration_text((double)(now_ns - k->since_ns), lasted);
	snprintf(text, sizeof text, "%s (%ju more %s in %s)", k->line, (uintmax_t)k->kept,
	         ow_plural(k->kept, "time", "times"), lasted);
	write_line(j, k->level, text);
}

/*
 * A window is over: the count is printed; the next window of a continuing line is longer; a line that has ended is
 * forgotten.
 */
static void turn(const struct ow_journal *j, struct kind *k, int64_t now_ns)
{
	if (k->kept == 0) {
		k->key = 0;
		return;
	}
	tell_kept(j, k, now_ns);
	k->kept = 0;
	k->since_ns = now_ns;
	k->window_ns = 2 * k->window_ns > OW_JOURNAL_LONGEST_NS ? OW_JOURNAL_LONGEST_NS : 2 * k->window_ns;
}

static void tell_flood(struct ow_journal *j)
{
	char text[80];
	if (j->flooded == 0)
		return;
	snprintf(text, sizeof text, "%ju further warnings of other kinds were not logged", (uintmax_t)j->flooded);
	write_line(j, OW_EVENT_WARNING, text);
	j->flooded = 0;
}

void ow_journal_tick(struct ow_journal *j, int64_t now_ns)
{
	for (unsigned i = 0; i < OW_JOURNAL_KINDS; i++) {
		struct kind *k = &j->kind[i];
		if (k->key && now_ns - k->since_ns >= k->window_ns)
			turn(j, k, now_ns);
	}
	if (now_ns - j->flooded_ns < OW_JOURNAL_WINDOW_NS)
		return;
	j->flooded_ns = now_ns;
	tell_flood(j);
}

void ow_journal_line(struct ow_journal *j, enum ow_event level, const char *line, int64_t now_ns)
{
	ow_journal_tick(j, now_ns);
	uint64_t key = key_of(line);
	struct kind *k = find(j, key);
	if (!k) {
		/*
		 * Lines that unauthenticated clients can cause must not fill the log; agreements with peers are
		 * printed.
		 */
		if (level <= OW_EVENT_WARNING && level > OW_EVENT_ERROR)
			j->flooded++;
		else
			write_line(j, level, line);
		return;
	}
	if (k->key == 0) {
		*k = (struct kind){.key = key, .since_ns = now_ns, .window_ns = OW_JOURNAL_WINDOW_NS};
	}
	k->level = level;
	if (k->said < (level == OW_EVENT_WARNING ? SAID_WARNING : SAID_OTHER)) {
		k->said++;
		write_line(j, level, line);
		return;
	}
	k->kept++;
	snprintf(k->line, sizeof k->line, "%s", line);
}

void ow_journal_free(struct ow_journal *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < OW_JOURNAL_KINDS; i++) {
		if (j->kind[i].key && j->kind[i].kept > 0)
			tell_kept(j, &j->kind[i], ow_clock_steady_ns());
	}
	tell_flood(j);
	free(j);
}
