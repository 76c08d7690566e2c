/* SPDX-License-Identifier: Apache-2.0 */
/* Reads results of points from stores and lines of JSON, once or continuously. */
#include "station/input.h"
#include "base/clock.h"
#include "base/time.h"
#include "result/result_read.h"
#include "station/stream.h"
#include "store/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long before its last result, and four minutes of minutes, a store is read again: lanes do not end at one time. */
#define OVERLAP_NS (60 * OW_NS_PER_S)

/* How often a store that is followed is read, and one that is away is asked again. */
#define STORE_NS (OW_NS_PER_S / 2)
#define AWAY_NS  (2 * OW_NS_PER_S)
/* So much of the past is read at once. */
#define SLICE_NS (600 * OW_NS_PER_S)
/* Where a store is followed from, unless the caller says so. */
#define HISTORY_NS (3 * 3600 * OW_NS_PER_S)

enum kind { LINES, STORE, STREAM };

struct source {
	const char *path;
	enum kind kind;
	struct ow_station_stream *stream;
	struct ow_stored *stored; /* NULL: it is away */
	int64_t polled_ns;        /* when the store was asked last, by the steady clock */
	bool failing, has_news;
	struct ow_error news;
	int fd;     /* of lines; -1 = ended */
	char *line; /* the bytes read so far of the next lines; room for one line of the largest size */
	size_t length;
	unsigned number;                        /* number of the line */
	int64_t since_ns[OW_PERIOD_MINUTE + 1]; /* of intervals and of minutes */
};

struct ow_station_input {
	bool follow;
	/* Stores are followed from the past on in slices, all of them at the same pace: results before this. INT64_MAX: all
	 * that there are. */
	int64_t horizon_ns;
	int count;
	struct source source[];
};

static bool is_store(int fd)
{
	char start[16] = "";
	return pread(fd, start, sizeof(start), 0) == sizeof(start) && memcmp(start, "SQLite format 3", 16) == 0;
}

/* The source is a store. */
static void become_store(struct source *source, bool follow)
{
	int64_t *since_ns = source->since_ns;
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	source->kind = STORE;
	/* What is usual is learned from the last hours, not from years. */
	if (follow && since_ns[OW_PERIOD_INTERVAL] <= 0)
		since_ns[OW_PERIOD_INTERVAL] = since_ns[OW_PERIOD_MINUTE] = ow_clock_real_ns() - HISTORY_NS;
}

/* A store without tables is being made by a point: it is asked again. */
static int open_store(struct source *source, bool follow, struct ow_error *err)
{
	int r = ow_stored_open(source->path, &source->stored, err);
	return follow && r == -ENODATA ? 0 : r;
}

static bool begins(const char *path, const char *scheme)
{
	return strncmp(path, scheme, strlen(scheme)) == 0;
}

static bool is_database(const char *path)
{
	return begins(path, "postgresql://") || begins(path, "postgres://");
}

static bool is_stream(const char *path)
{
	return begins(path, "nats://") || begins(path, "tls://");
}

static int open_stream(struct source *source, bool follow, const struct ow_station_access *access, struct ow_error *err)
{
	static const struct ow_station_access none;
	source->kind = STREAM;
	if (!follow)
		return ow_error_set(err, EINVAL, "a stream has no past: follow it, or name a database");
	return ow_station_stream_open(source->path, access ? access : &none, &source->stream, err);
}

static int open_source(struct source *source, const char *path, bool follow, int64_t since_ns,
                       const struct ow_station_access *access, struct ow_error *err)
{
	source->path = path;
	source->since_ns[OW_PERIOD_INTERVAL] = source->since_ns[OW_PERIOD_MINUTE] = since_ns;
	source->fd = -1;
	if (is_stream(path))
		return open_stream(source, follow, access, err);
	if (is_database(path)) {
		become_store(source, follow);
		return open_store(source, follow, err);
	}
	source->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	if (is_store(source->fd)) {
		become_store(source, follow);
		return open_store(source, follow, err);
	}
	source->line = malloc(OW_RESULT_LINE_MAX + 1);
	return source->line ? 0 : ow_error_set(err, ENOMEM, "%s: out of memory", path);
}

/*
 * The first slice begins with the first result. Lines have no order that could be kept beside it: with them, everything
 * is read at once.
 */
static void begin_slices(struct ow_station_input *input)
{
	struct ow_error ignored;
	int64_t start_ns = INT64_MAX, first_ns, last_ns;
	for (int i = 0; i < input->count; i++) {
		struct source *source = &input->source[i];
		if (source->kind == LINES)
			return;
		if (!source->stored || ow_stored_span(source->stored, &first_ns, &last_ns, &ignored) < 0)
			continue;
		if (first_ns < source->since_ns[OW_PERIOD_INTERVAL])
			first_ns = source->since_ns[OW_PERIOD_INTERVAL];
		start_ns = first_ns < start_ns ? first_ns : start_ns;
	}
	if (start_ns < ow_clock_real_ns() - SLICE_NS)
		input->horizon_ns = start_ns + SLICE_NS;
}

int ow_station_input_open(char *const *paths, int count, bool follow, int64_t since_ns,
                          const struct ow_station_access *access, struct ow_station_input **ret_input,
                          struct ow_error *err)
{
	struct ow_station_input *input = calloc(1, sizeof(*input) + (size_t)count * sizeof(input->source[0]));
	if (!input)
		return ow_error_set(err, ENOMEM, "out of memory");
	input->follow = follow;
	input->horizon_ns = INT64_MAX;
	for (int i = 0; i < count; i++) {
		input->count++;
		int r = open_source(&input->source[i], paths[i], follow, since_ns, access, err);
		if (r < 0) {
			ow_station_input_close(input);
			return r;
		}
	}
	if (follow)
		begin_slices(input);
	*ret_input = input;
	return 0;
}

void ow_station_input_close(struct ow_station_input *input)
{
	if (!input)
		return;
	for (int i = 0; i < input->count; i++) {
		struct source *source = &input->source[i];
		ow_stored_close(source->stored);
		ow_station_stream_close(source->stream);
		if (source->fd >= 0)
			close(source->fd);
		free(source->line);
	}
	free(input);
}

/* -- lines ------------------------------------------------------------------------------------------------------------
 */

static int hand_on(struct source *source, const char *line, size_t length, ow_station_sink *sink, void *arg,
                   struct ow_error *err)
{
	struct ow_interval_result result;
	struct ow_error why;
	source->number++;
	if (length == 0)
		return 0;
	int r = ow_result_json_read(line, length, &result, &why);
	if (r < 0)
		return ow_error_set(err, EINVAL, "%s:%u: %.300s", source->path, source->number, why.text);
	return r && result.final && result.start_ns >= source->since_ns[OW_PERIOD_INTERVAL] ? sink(arg, &result) : 0;
}

static int whole_lines(struct source *source, bool at_end, ow_station_sink *sink, void *arg, struct ow_error *err)
{
	char *start = source->line, *end = source->line + source->length, *stop;
	int r = 0;
	while (r == 0 && (stop = memchr(start, '\n', (size_t)(end - start)))) {
		r = hand_on(source, start, (size_t)(stop - start), sink, arg, err);
		start = stop + 1;
	}
	if (r == 0 && at_end && start < end) {
		r = hand_on(source, start, (size_t)(end - start), sink, arg, err);
		start = end;
	}
	source->length = (size_t)(end - start);
	memmove(source->line, start, source->length);
	if (r == 0 && source->length > OW_RESULT_LINE_MAX)
		return ow_error_set(err, EINVAL, "%s:%u: the line has more than %u bytes", source->path,
		                    source->number + 1, OW_RESULT_LINE_MAX);
	return r;
}

/* Reads everything that is available without waiting. */
static int poll_lines(struct source *source, bool follow, ow_station_sink *sink, void *arg, struct ow_error *err)
{
	while (source->fd >= 0) {
		struct pollfd ready = {.fd = source->fd, .events = POLLIN};
		if (follow && poll(&ready, 1, 0) == 0)
			return 0;
		ssize_t n = read(source->fd, source->line + source->length, OW_RESULT_LINE_MAX + 1 - source->length);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return 0;
		if (n < 0)
			return ow_error_set(err, errno, "%s: %s", source->path, strerror(errno));
		bool is_pipe = lseek(source->fd, 0, SEEK_CUR) < 0;
		bool ended = n == 0 && (!follow || is_pipe);
		source->length += (size_t)n;
		int r = whole_lines(source, ended, sink, arg, err);
		if (ended) {
			close(source->fd);
			source->fd = -1;
		}
		if (r != 0 || n == 0)
			return r;
	}
	return 0;
}

/* -- stores -----------------------------------------------------------------------------------------------------------
 */

struct relay {
	struct source *source;
	ow_station_sink *sink;
	void *arg;
	int64_t now_ns, last_ns;
	int result; /* of the sink */
};

static int each(void *arg, const struct ow_interval_result *result)
{
	struct relay *relay = arg;
	/* A result of a clock that is ahead must not move the place from which the store is read again. */
	if (result->start_ns > relay->last_ns && result->start_ns <= relay->now_ns)
		relay->last_ns = result->start_ns;
	relay->result = relay->sink(relay->arg, result);
	return relay->result;
}

static int poll_period(struct source *source, enum ow_period period, int64_t until_ns, ow_station_sink *sink, void *arg,
                       bool *ret_of_sink, struct ow_error *err)
{
	int64_t *since_ns = &source->since_ns[period], now_ns = ow_clock_real_ns(),
		overlap_ns = OVERLAP_NS + 4 * ow_periods[period].length_ns;
	struct relay relay = {source, sink, arg, now_ns, INT64_MIN, 0};
	struct ow_stored_filter filter = {.since_ns = *since_ns, .until_ns = until_ns, .final = true, .period = period};
	int r = ow_stored_choose(source->stored, &filter, err);
	if (r == 0)
		r = ow_stored_list(source->stored, 0, each, &relay, err);
	if (r == 0 && relay.last_ns != INT64_MIN && relay.last_ns - overlap_ns > *since_ns)
		*since_ns = relay.last_ns - overlap_ns;
	*ret_of_sink = relay.result != 0;
	return r;
}

/* A store of a point has all its intervals; a server has minutes of all points, and intervals of some. */
static int poll_store(struct source *source, int64_t until_ns, ow_station_sink *sink, void *arg, bool *ret_of_sink,
                      struct ow_error *err)
{
	int r = 0;
	*ret_of_sink = false;
	if (ow_stored_finest(source->stored) != OW_PERIOD_INTERVAL)
		r = poll_period(source, OW_PERIOD_MINUTE, until_ns, sink, arg, ret_of_sink, err);
	return r != 0 ? r : poll_period(source, OW_PERIOD_INTERVAL, until_ns, sink, arg, ret_of_sink, err);
}

static void tell(struct source *source, bool fails, const char *why)
{
	if (source->failing == fails)
		return;
	source->failing = fails;
	source->has_news = true;
	if (fails)
		ow_error_set(&source->news, EIO, "%.400s; it is asked again", why);
	else
		ow_error_set(&source->news, 0, "%.200s answers again",
		             source->stored ? ow_stored_where(source->stored) : "the database");
}

/* A store that is followed may be away for a while: a database that restarts, a file that is replaced. */
static int follow_store(struct source *source, int64_t until_ns, ow_station_sink *sink, void *arg, struct ow_error *err)
{
	struct ow_error why = {""};
	bool of_sink = false;
	int64_t now_ns = ow_clock_steady_ns();
	int64_t pause_ns = source->failing ? AWAY_NS : until_ns == INT64_MAX ? STORE_NS : 0;
	if (source->polled_ns && now_ns - source->polled_ns < pause_ns)
		return 0;
	int r = source->stored ? 0 : ow_stored_open(source->path, &source->stored, &why);
	if (r == 0)
		r = poll_store(source, until_ns, sink, arg, &of_sink, &why);
	source->polled_ns = ow_clock_steady_ns();
	if (r != 0 && of_sink)
		return r < 0 && *why.text ? ow_error_set(err, -r, "%s", why.text) : r;
	tell(source, r < 0, why.text);
	if (r < 0) {
		ow_stored_close(source->stored);
		source->stored = NULL;
	}
	return 0;
}

int ow_station_input_poll(struct ow_station_input *input, ow_station_sink *sink, void *arg, bool *ret_ended,
                          struct ow_error *err)
{
	bool ended = true;
	int r = 0;
	for (int i = 0; r == 0 && i < input->count; i++) {
		struct source *source = &input->source[i];
		bool of_sink;
		/* A store that a point was about to make when it was opened. */
		if (source->kind == LINES && source->number == 0 && source->length == 0 && is_store(source->fd))
			become_store(source, input->follow);
		if (source->kind == STREAM)
			r = ow_station_stream_poll(source->stream, sink, arg, err);
		else if (source->kind == LINES)
			r = poll_lines(source, input->follow, sink, arg, err);
		else if (input->follow || !source->stored)
			r = follow_store(source, input->horizon_ns, sink, arg, err);
		else
			r = poll_store(source, INT64_MAX, sink, arg, &of_sink, err);
		ended &= source->kind == LINES ? source->fd < 0 : !input->follow;
	}
	if (input->horizon_ns < INT64_MAX)
		input->horizon_ns = input->horizon_ns < ow_clock_real_ns() ? input->horizon_ns + SLICE_NS : INT64_MAX;
	*ret_ended = ended;
	return r;
}

bool ow_station_input_is_current(const struct ow_station_input *input)
{
	return input->horizon_ns == INT64_MAX;
}

bool ow_station_input_publishes(const struct ow_station_input *input)
{
	for (int i = 0; i < input->count; i++)
		if (input->source[i].stream)
			return true;
	return false;
}

int ow_station_input_publish(struct ow_station_input *input, const char *json, size_t length)
{
	int r = 0;
	for (int i = 0; i < input->count && r == 0; i++)
		if (input->source[i].stream)
			r = ow_station_stream_publish(input->source[i].stream, json, length);
	return r;
}

bool ow_station_input_news(struct ow_station_input *input, struct ow_error *ret_line)
{
	for (int i = 0; i < input->count; i++) {
		struct source *source = &input->source[i];
		if (source->stream && ow_station_stream_news(source->stream, ret_line))
			return true;
		if (!source->has_news)
			continue;
		source->has_news = false;
		*ret_line = source->news;
		return true;
	}
	return false;
}
