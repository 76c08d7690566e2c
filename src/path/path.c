/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pair of points is matched, with all that `ow_match_files` does, in passes for all of them (path/rounds.h). Packets
 * that not all points show are in the logs of these passes, and are joined. If the logs do not have them all, or every packet
 * is wanted, one more joint pass reports them. If there can be no such pass, the pairs are read once more, each by a thread of
 * its own, and report their packets to this one. Memory depends on the packets that wait, as in a match of two points.
 */
#include "path/path.h"

#include "base/time.h"
#include "base/word.h"
#include "match/match.h"
#include "path/join.h"
#include "path/order.h"
#include "path/rounds.h"
#include "path/stream.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WARNINGS_MAX 200
#define UNSENT_FEW   0.05                /* share of packets without a sender that a warning is not about */
#define NOTES_MAX    (UINT32_C(1) << 18) /* of the logs of all pairs together: 16 MB */

/* A pair that is matched. */
struct pair {
	struct ow_path *path;
	unsigned number;
	struct ow_path_stream *stream;
	pthread_t thread;
	bool runs;
	int result;
	struct ow_match *match;
	struct ow_error err;
	struct ow_pass_log log;
	unsigned round; /* of its log; 0 = there is none */
	bool again;     /* it was matched twice, the second time by the clocks that the first one found */
	enum ow_clock_method clock;
	int64_t offset_error_ns;
};

struct ow_path {
	struct ow_path_options options;
	struct ow_path_report report;
	struct ow_order_found found;
	uint64_t seed;
	unsigned pairs;
	struct ow_path_pair place[OW_PATH_PAIRS]; /* [0]: both ends */
	struct pair pair[OW_PATH_PAIRS];
	struct ow_reader *reader[OW_PATH_POINTS]; /* for all pairs */
	unsigned rounds;
	unsigned phase, phases; /* of the run, for progress */
	double done;
	uint32_t clocks; /* bit p: the offset of point p is known */
	struct ow_path_join_result joined;
	struct ow_path_segment segment[OW_PATH_PAIRS];
	struct ow_match_report ends;
	char *warning[WARNINGS_MAX];
	uint64_t unsaid; /* warnings beyond these */
};

static const char *name(const struct ow_path *path, unsigned point)
{
	return path->report.point[point].name;
}

/* What was said already is not said again. */
static int warn(struct ow_path *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int warn(struct ow_path *path, const char *format, ...)
{
	char *text;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	bool said = false;
	for (size_t i = 0; i < path->report.warnings && !said; i++)
		said = strcmp(path->warning[i], text) == 0;
	if (!said && path->report.warnings < WARNINGS_MAX) {
		path->warning[path->report.warnings++] = text;
		return 0;
	}
	path->unsaid += !said;
	free(text);
	return 0;
}

/* How many there were beyond the last one: in place of it. */
static int warn_unsaid(struct ow_path *path)
{
	char *text;
	if (!path->unsaid)
		return 0;
	if (asprintf(&text, "%llu more warnings are not shown", (unsigned long long)path->unsaid + 1) < 0)
		return -ENOMEM;
	free(path->warning[WARNINGS_MAX - 1]);
	path->warning[WARNINGS_MAX - 1] = text;
	return 0;
}

/* -- points and pairs --------------------------------------------------------------------------------------------- */

static void add_pair(struct ow_path *path, unsigned from, unsigned to)
{
	if (path->pairs < OW_PATH_PAIRS)
		path->place[path->pairs++] = (struct ow_path_pair){from, to};
}

/* Both ends; neighbours; and points between which packets pass all others unseen. */
static void choose_pairs(struct ow_path *path)
{
	unsigned points = path->report.points;
	add_pair(path, 0, points - 1);
	for (unsigned i = 0; i + 1 < points; i++)
		add_pair(path, i, i + 1);
	for (unsigned i = 0; i + 2 < points; i++) {
		for (unsigned k = i + 2; k < points && path->found.partial[path->report.argument[k - 1]]; k++) {
			if (i != 0 || k != points - 1)
				add_pair(path, i, k);
		}
	}
}

static int warn_unknown_order(struct ow_path *path)
{
	const struct ow_path_report *report = &path->report;
	char lone[600] = "";
	for (unsigned i = 0; i < report->points; i++) {
		if (path->found.lone[report->argument[i]])
			snprintf(lone + strlen(lone), sizeof lone - strlen(lone), "%s%.40s", *lone ? ", " : "",
			         report->point[i].name);
	}
	return warn(path,
	            "the packets do not show the order of all points: where they do not, it is that of the arguments "
	            "(--order given says that it is right)%s%s%s",
	            path->found.apart ? "; points that captured at different times may be in the wrong order" : "",
	            *lone ? "; put between the others, because no packet is the same as theirs: " : "", lone);
}

static int order_points(struct ow_path *path, const struct ow_path_point *point, struct ow_error *err)
{
	struct ow_path_report *report = &path->report;
	bool trusted = path->options.match.clock != OW_CLOCK_ESTIMATED, moved = false;
	int r = ow_path_find_order(point, report->points, trusted, path->seed, &path->found, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < report->points; i++)
		moved |= path->found.place[i] != i;
	for (unsigned i = 0; i < report->points; i++) {
		report->argument[i] = path->options.keep_order ? i : path->found.place[i];
		report->point[i] = point[report->argument[i]];
	}
	report->order = path->options.keep_order ? OW_ORDER_GIVEN : path->found.by;
	if (moved && path->options.keep_order && path->found.by != OW_ORDER_UNKNOWN) {
		char text[600] = "";
		for (unsigned i = 0; i < report->points; i++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.40s", i ? ", " : "",
			         point[path->found.place[i]].name);
		r = warn(path, "the given order is not that of the path: %s %s %s",
		         path->found.by == OW_ORDER_HOPS ? "TTLs" : "times", "show the order", text);
	}
	if (r == 0 && report->order == OW_ORDER_UNKNOWN)
		r = warn_unknown_order(path);
	return r < 0 ? ow_error_set(err, ENOMEM, "out of memory") : 0;
}

/* -- clocks ------------------------------------------------------------------------------------------------------- */

/*
 * The offsets of all points are the same along every way: each is the sum of those of neighbours, whose bounds are the
 * narrowest. The bounds of points farther apart contain it, because no packet is faster than its hops.
 */
static void note_clock(struct ow_path *path, unsigned k)
{
	const struct ow_path_pair *place = &path->place[k];
	const struct ow_match_report *pair = ow_match_report(path->pair[k].match);
	struct ow_path_report *report = &path->report;
	report->clocks_joined &= pair->drift_ppb == 0;
	if (!(path->clocks >> place->from & 1) || path->clocks >> place->to & 1)
		return;
	bool known = pair->offset_error_ns >= 0 && report->error_ns[place->from] >= 0;
	report->offset_ns[place->to] = report->offset_ns[place->from] + pair->offset_ns;
	report->error_ns[place->to] = known ? report->error_ns[place->from] + pair->offset_error_ns : -1;
	path->clocks |= UINT32_C(1) << place->to;
}

/* The offset of a pair whose points are known by others is not estimated again. */
static void set_clock(const struct ow_path *path, unsigned k, struct ow_match_options *options)
{
	const struct ow_path_pair *place = &path->place[k];
	if (options->clock != OW_CLOCK_ESTIMATED || !path->report.clocks_joined || !(path->clocks >> place->from & 1) ||
	    !(path->clocks >> place->to & 1))
		return;
	options->clock = OW_CLOCK_GIVEN;
	options->offset_ns = path->report.offset_ns[place->to] - path->report.offset_ns[place->from];
}

/* -- matching ----------------------------------------------------------------------------------------------------- */

static struct ow_path_event path_event(const struct ow_packet_event *event)
{
	return (struct ow_path_event){
		.number = {event->number[0], event->number[1]},
		.time_ns = {event->time_ns[0], event->time_ns[1]},
		.part = event->part,
		.flow = *event->flow,
		.packets = event->packets,
		.bytes = event->bytes,
		.fate = (uint8_t)event->fate,
		.direction = (uint8_t)event->direction,
		.side = (uint8_t)event->side,
		.ambiguous = event->ambiguous,
	};
}

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	struct pair *pair = arg;
	const struct ow_match_options *options = &pair->path->options.match;
	int r = pair->number == 0 && options->on_packet ? options->on_packet(options->arg, event) : 0;
	if (r != 0)
		return r;
	struct ow_path_event told = path_event(event);
	return ow_path_stream_put(pair->stream, &told);
}

/* How much of this phase is done. The pairs do not know how many passes are left: it never goes back. */
static void show_progress(struct ow_path *path, double done)
{
	double all = (path->phase + (done < 1 ? done : 1)) / path->phases;
	if (all <= path->done)
		return;
	path->done = all;
	path->options.match.on_progress(path->options.match.arg, all);
}

static void on_progress(void *arg, double done)
{
	show_progress(((const struct pair *)arg)->path, done);
}

/* Whether all packets are told, and not only those that not all points show. */
static bool wants_every(const struct ow_path *path)
{
	return path->options.match.on_packet || path->options.on_path_packet;
}

static int open_readers(struct ow_path *path, struct ow_error *err)
{
	/* Stamps of capture devices are found out by each pair. */
	if (path->options.match.stamps != OW_STAMPS_CAPTURE)
		return 0;
	int r = 0;
	for (unsigned i = 0; i < path->report.points && r == 0; i++)
		r = ow_reader_open(path->report.point[i].path, &path->reader[i], err);
	return r;
}

static void set_pair(struct ow_path *path, unsigned k, struct ow_rounds_pair *ret_pair)
{
	struct pair *pair = &path->pair[k];
	const unsigned point[OW_SIDES] = {path->place[k].from, path->place[k].to};
	pair->path = path;
	pair->number = k;
	*ret_pair = (struct ow_rounds_pair){.place = path->place[k], .options = path->options.match};
	ret_pair->log.most = NOTES_MAX / path->pairs; /* NOLINT(clang-analyzer-core.DivideZero): there are pairs */
	for (unsigned side = 0; side < OW_SIDES; side++) {
		ret_pair->path[side] = path->report.point[point[side]].path;
		ret_pair->reader[side] = path->reader[point[side]];
	}
	struct ow_match_options *options = &ret_pair->options;
	options->on_packet = NULL;
	options->on_progress = options->on_progress ? on_progress : NULL;
	options->arg = pair;
	/* One identity of a packet for all pairs. */
	options->seed = options->seed ? options->seed : path->seed | 1;
	if (k != 0)
		options->interval_ns = 0;
	ret_pair->estimates = options->clock == OW_CLOCK_ESTIMATED;
	set_clock(path, k, options);
}

/* Neighbours may have nothing in common; both ends must. */
static int take_pair(struct ow_path *path, unsigned k, struct ow_rounds_pair *matched, struct ow_error *err)
{
	struct pair *pair = &path->pair[k];
	pair->match = matched->match;
	pair->err = matched->err;
	pair->log = matched->log;
	pair->round = matched->round;
	if (matched->result == 0)
		note_clock(path, k);
	return 0 == matched->result || (matched->result == -ENOMSG && k != 0)
	               ? 0
	               : ow_error_set(err, -matched->result, "%s", matched->err.text);
}

/* Matches the pairs first .. last - 1 together, and both ends with them if `ends`. */
static int match_together(struct ow_path *path, unsigned first, unsigned last, bool ends, struct ow_error *err)
{
	unsigned count = 0, number[OW_PATH_PAIRS];
	struct ow_rounds_pair *pair = calloc(OW_PATH_PAIRS, sizeof *pair);
	if (!pair)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned k = first; k < last; k++)
		number[count++] = k;
	if (ends)
		number[count++] = 0;
	for (unsigned i = 0; i < count; i++)
		set_pair(path, number[i], &pair[i]);
	int r = ow_rounds_run(pair, count, &path->rounds);
	if (r < 0)
		ow_error_set(err, -r, "%s", r == -ENOMEM ? "out of memory" : "no thread can be started");
	for (unsigned i = 0; i < count; i++) {
		int taken = take_pair(path, number[i], &pair[i], r == 0 ? err : NULL);
		r = r == 0 ? taken : r;
	}
	free(pair);
	return r;
}

static bool clocks_known(const struct ow_path *path)
{
	return path->clocks == (UINT32_C(1) << path->report.points) - 1;
}

/* If the clocks are estimated, neighbours come first, and both ends by the clocks of the others. */
static int match_pairs(struct ow_path *path, struct ow_error *err)
{
	bool estimated = path->options.match.clock == OW_CLOCK_ESTIMATED;
	unsigned neighbours = path->report.points;
	path->clocks = 1;
	path->phases = 1 + estimated + wants_every(path);
	path->report.clocks_joined = estimated;
	int r = open_readers(path, err);
	if (r == 0 && !estimated)
		r = match_together(path, 1, path->pairs, true, err);
	if (r == 0 && estimated) {
		r = match_together(path, 1, neighbours, false, err);
		path->phase++;
		bool all = clocks_known(path);
		for (unsigned k = neighbours; k < path->pairs && r == 0 && !all; k++)
			r = match_together(path, k, k + 1, false, err);
		if (r == 0)
			r = match_together(path, all ? neighbours : path->pairs, path->pairs, true, err);
	}
	path->report.clocks_joined &= clocks_known(path);
	return r;
}

/* Whether superframes of the pair can be cut: their segments are recognised by TCP's numbers. */
static bool can_cut(const struct ow_match *match)
{
	const struct ow_match_report *report = ow_match_report(match);
	return report->tcp_numbers && report->level != OW_LEVEL_FRAME && ow_match_keeps_superframes(match);
}

/* Matches a pair again, by the clocks that were found. */
static int match_again(struct ow_path *path, unsigned k, struct ow_error *err)
{
	struct pair *pair = &path->pair[k];
	const struct ow_match_report *found = ow_match_report(pair->match);
	struct pair next = {.again = true, .clock = found->clock, .offset_error_ns = found->offset_error_ns};
	free(pair->log.note);
	ow_match_free(pair->match);
	*pair = next;
	return match_together(path, k, k + 1, false, err);
}

static bool cuts(const struct ow_path *path)
{
	bool cut = false;
	for (unsigned k = 0; k < path->pairs; k++)
		cut |= path->pair[k].match && path->pair[k].match->pass.plan.identity.segments;
	return cut;
}

/*
 * Where two points show the same superframes, their pair does not need to cut them. If another one does, all do: the
 * packets of all hops are those of the wire then, and a lost one can be followed.
 */
static int cut_alike(struct ow_path *path, struct ow_error *err)
{
	int r = 0;
	if (path->options.match.segments != OW_AUTO || !cuts(path))
		return 0;
	path->options.match.segments = OW_ON;
	for (unsigned k = 0; k < path->pairs && r == 0; k++) {
		if (path->pair[k].match && can_cut(path->pair[k].match))
			r = match_again(path, k, err);
	}
	return r;
}

/* -- packets ------------------------------------------------------------------------------------------------------ */

/* Whether there is a packet that not all points show. */
static bool has_singles(const struct ow_path *path)
{
	for (unsigned k = 0; k < path->pairs; k++) {
		const struct ow_match_report *report =
			path->pair[k].match ? ow_match_report(path->pair[k].match) : NULL;
		if (!report)
			return true;
		for (unsigned i = 0; i < OW_DIRECTIONS; i++) {
			if (report->direction[i].lost || report->direction[i].extra || report->unclassified[i])
				return true;
		}
	}
	return false;
}

static void *tell_pair(void *arg)
{
	struct pair *pair = arg;
	pair->result = pair->match ? ow_match_tell(pair->match, on_packet, pair, &pair->err) : 0;
	ow_path_stream_end(pair->stream);
	return NULL;
}

static int start_pair(struct pair *pair)
{
	int r = ow_path_stream_create(&pair->stream);
	if (r == 0)
		r = -pthread_create(&pair->thread, NULL, tell_pair, pair);
	pair->runs = r == 0;
	return r;
}

static void wait_for(struct pair *pair)
{
	if (pair->runs)
		pthread_join(pair->thread, NULL);
	pair->runs = false;
}

static void cancel_all(struct ow_path *path)
{
	for (unsigned k = 0; k < path->pairs; k++) {
		if (path->pair[k].stream)
			ow_path_stream_cancel(path->pair[k].stream);
	}
	for (unsigned k = 0; k < path->pairs; k++)
		wait_for(&path->pair[k]);
}

/* The pair that is farthest behind. */
static unsigned farthest_behind(const struct ow_path *path, const int64_t *now_ns)
{
	unsigned behind = path->pairs;
	for (unsigned k = 0; k < path->pairs; k++) {
		if (path->pair[k].runs && (behind == path->pairs || now_ns[k] < now_ns[behind]))
			behind = k;
	}
	return behind;
}

static int end_pair(struct ow_path *path, struct ow_path_join *join, unsigned k, struct ow_error *err)
{
	struct pair *pair = &path->pair[k];
	wait_for(pair);
	if (pair->result < 0)
		return ow_error_set(err, -pair->result, "%s", pair->err.text);
	return ow_path_join_end(join, k, pair->match != NULL);
}

static int join_pairs(struct ow_path *path, struct ow_path_join *join, struct ow_error *err)
{
	struct ow_path_event *event = malloc(OW_PATH_BATCH * sizeof *event);
	int64_t now_ns[OW_PATH_PAIRS];
	int r = event ? 0 : -ENOMEM;
	for (unsigned k = 0; k < OW_PATH_PAIRS; k++)
		now_ns[k] = INT64_MIN;
	for (unsigned k; r == 0 && (k = farthest_behind(path, now_ns)) < path->pairs;) {
		unsigned count = ow_path_stream_take(path->pair[k].stream, event);
		if (!count)
			r = end_pair(path, join, k, err);
		for (unsigned i = 0; i < count && r == 0; i++) {
			int64_t time_ns = event[i].time_ns[event[i].number[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B] +
			                  path->report.offset_ns[path->place[k].from];
			now_ns[k] = time_ns > now_ns[k] ? time_ns : now_ns[k];
			r = ow_path_join_add(join, k, &event[i]);
		}
	}
	free(event);
	return r;
}

static void fill_captures(struct ow_path *path)
{
	struct ow_path_report *report = &path->report;
	for (unsigned i = 0; i < report->points; i++)
		report->capture[i].path = report->point[i].path;
	for (unsigned k = 0; k < path->pairs; k++) {
		const struct ow_match_report *pair = path->pair[k].match ? ow_match_report(path->pair[k].match) : NULL;
		const unsigned point[OW_SIDES] = {path->place[k].from, path->place[k].to};
		for (unsigned side = 0; side < OW_SIDES && pair; side++) {
			report->capture[point[side]] = pair->capture[side];
			report->files[point[side]] = pair->files[side];
		}
	}
}

/* -- logs --------------------------------------------------------------------------------------------------------- */

/* Whether the logs of all pairs are of one pass, and have all packets. */
static bool has_logs(const struct ow_path *path)
{
	unsigned round = 0;
	for (unsigned k = 0; k < path->pairs; k++) {
		const struct pair *pair = &path->pair[k];
		if (!pair->match)
			continue;
		if (!pair->round || pair->log.full || (round && pair->round != round))
			return false;
		round = pair->round;
	}
	return round != 0;
}

/* The pairs whose packets are joined. */
struct joining {
	struct ow_path *path;
	struct ow_path_join *join;
	int64_t now_ns[OW_PATH_PAIRS];
	uint64_t matched[OW_DIRECTIONS]; /* that were added, of both ends */
	int failed;                      /* negative errno: of any pair, and nothing more is added */
};

static int join_event(struct joining *j, unsigned k, const struct ow_packet_event *event)
{
	struct ow_path_event told = path_event(event);
	int64_t time_ns = told.time_ns[told.number[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B] +
	                  j->path->report.offset_ns[j->path->place[k].from];
	j->now_ns[k] = time_ns > j->now_ns[k] ? time_ns : j->now_ns[k];
	if (k == 0 && event->fate == OW_FATE_MATCHED)
		j->matched[event->direction] += event->packets;
	if (j->failed == 0)
		j->failed = ow_path_join_add(j->join, k, &told);
	return j->failed;
}

static int join_note(struct joining *j, unsigned k, const struct ow_pass_note *note)
{
	struct ow_packet_event event;
	ow_match_pass_event(&j->path->pair[k].match->pass, note, &event);
	return join_event(j, k, &event);
}

/* Packets that all points show are not added. */
static void join_others(const struct joining *j)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		uint64_t matched = ow_match_report(j->path->pair[0].match)->direction[d].matched;
		ow_path_join_everywhere(j->join, d, matched > j->matched[d] ? matched - j->matched[d] : 0);
	}
}

static int join_logs(struct joining *j)
{
	struct ow_path *path = j->path;
	size_t at[OW_PATH_PAIRS] = {0};
	int r = 0;
	for (unsigned k = 0; k < path->pairs; k++)
		path->pair[k].runs = true;
	for (unsigned k; r == 0 && (k = farthest_behind(path, j->now_ns)) < path->pairs;) {
		const struct ow_pass_log *log = &path->pair[k].log;
		for (unsigned i = 0; i < OW_PATH_BATCH && at[k] < log->notes && r == 0; i++)
			r = join_note(j, k, &log->note[at[k]++]);
		if (r == 0 && at[k] == log->notes) {
			path->pair[k].runs = false;
			r = ow_path_join_end(j->join, k, path->pair[k].match != NULL);
		}
	}
	for (unsigned k = 0; k < path->pairs; k++)
		path->pair[k].runs = false;
	join_others(j);
	return r;
}

struct teller {
	struct joining *joining;
	unsigned pair;
};

static int on_note(void *arg, const struct ow_pass_note *note)
{
	const struct teller *teller = arg;
	return join_note(teller->joining, teller->pair, note);
}

static int on_event(void *arg, const struct ow_packet_event *event)
{
	const struct teller *teller = arg;
	const struct ow_match_options *options = &teller->joining->path->options.match;
	struct joining *joining = teller->joining;
	if (teller->pair == 0 && options->on_packet && joining->failed == 0)
		joining->failed = options->on_packet(options->arg, event);
	return joining->failed == 0 ? join_event(joining, teller->pair, event) : joining->failed;
}

/* What was told cannot be told again: the pass must not fail for a reason that an earlier one shows. */
static bool can_join_pass(const struct ow_path *path, struct ow_joint_pass *ret_set)
{
	bool can = true;
	*ret_set = (struct ow_joint_pass){.passes = 0};
	for (unsigned k = 0; k < path->pairs; k++) {
		if (!path->pair[k].match)
			continue;
		ret_set->pair[ret_set->passes] = path->place[k];
		ret_set->pass[ret_set->passes++] = &path->pair[k].match->pass;
		path->pair[k].match->pass.intervals = NULL;
		for (unsigned side = 0; side < OW_SIDES; side++)
			can &= ow_record_reader_can_lend(&path->pair[k].match->pass.input[side]);
	}
	return can && ow_joint_pass_select(ret_set) == ret_set->passes;
}

/* The pass of the pair that reads for all. */
static void on_joint_progress(void *arg)
{
	struct pair *pair = arg;
	const struct ow_match_pass *pass = &pair->match->pass;
	double done = 0, size = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		done += (double)pass->position[side];
		size += (double)ow_reader_info(pass->input[side].reader)->size_bytes;
	}
	if (size > 0)
		show_progress(pair->path, done / size);
}

/* Lets a pair tell its packets in the next pass: every one, or those that not all points show. */
static void tell_to(struct pair *pair, struct teller *teller, bool every)
{
	struct ow_match *match = pair->match;
	pair->log.tell = on_note;
	pair->log.arg = teller;
	if (!match)
		return;
	match->pass.log = every ? NULL : &pair->log;
	match->pass.events = every;
	match->options.on_packet = every ? on_event : NULL;
	match->options.arg = teller;
	match->pass.progress = every && pair->path->options.match.on_progress ? on_joint_progress : NULL;
	match->pass.progress_arg = pair;
}

/* One more pass for all pairs, by their final plans, in which they tell their packets. */
static int join_pass(struct joining *j, const struct ow_joint_pass *set, bool every, struct ow_error *err)
{
	struct ow_path *path = j->path;
	struct teller teller[OW_PATH_PAIRS];
	for (unsigned k = 0; k < path->pairs; k++) {
		teller[k] = (struct teller){j, k};
		tell_to(&path->pair[k], &teller[k], every);
	}
	int r = ow_joint_pass_run(set, err);
	for (unsigned k = 0; k < path->pairs; k++) {
		struct ow_match *match = path->pair[k].match;
		if (match) {
			match->pass.log = NULL;
			match->pass.events = false;
			match->options.on_packet = NULL;
		}
		if (match && r == 0)
			r = ow_match_refresh(match);
		if (r == 0)
			r = ow_path_join_end(j->join, k, match != NULL);
	}
	join_others(j);
	return r;
}

static int join_streams(struct ow_path *path, struct ow_path_join *join, struct ow_error *err)
{
	int r = 0;
	for (unsigned k = 0; k < path->pairs && r == 0; k++) {
		r = path->pair[k].match ? ow_match_leave_host(path->pair[k].match, err) : 0;
		if (r == 0)
			r = start_pair(&path->pair[k]);
	}
	return r == 0 ? join_pairs(path, join, err) : r;
}

static int follow_packets(struct ow_path *path, struct ow_error *err)
{
	bool every = wants_every(path);
	struct joining joining = {.path = path};
	struct ow_joint_pass set;
	int64_t window_ns = OW_NS_PER_S;
	for (unsigned k = 0; k < path->pairs; k++) {
		const struct ow_match_report *report =
			path->pair[k].match ? ow_match_report(path->pair[k].match) : NULL;
		window_ns = report && report->window_ns > window_ns ? report->window_ns : window_ns;
	}
	struct ow_path_join_options options = {.points = path->report.points,
	                                       .pairs = path->pairs,
	                                       .wait_ns = window_ns < OW_MATCH_TIME_MAX / 4 ? 2 * window_ns : window_ns,
	                                       .seed = path->seed,
	                                       .on_packet = path->options.on_path_packet,
	                                       .arg = path->options.match.arg,
	                                       .report = &path->report};
	struct ow_path_join *join = NULL;
	fill_captures(path);
	for (unsigned i = 0; i < path->report.points; i++) {
		const struct ow_capture_info *info = &path->report.capture[i];
		if (!info->packets)
			continue;
		options.edge_ns[options.edges++] = info->first_ns + path->report.offset_ns[i];
		options.edge_ns[options.edges++] = info->last_ns + path->report.offset_ns[i];
	}
	memcpy(options.pair, path->place, sizeof options.pair);
	memcpy(options.offset_ns, path->report.offset_ns, sizeof options.offset_ns);
	int r = ow_path_join_create(&options, &join);
	joining.join = join;
	for (unsigned k = 0; k < OW_PATH_PAIRS; k++)
		joining.now_ns[k] = INT64_MIN;
	if (r == 0 && !every && has_logs(path))
		r = join_logs(&joining);
	else if (r == 0)
		r = can_join_pass(path, &set) ? join_pass(&joining, &set, every, err) : -EAGAIN;
	if (r == -EAGAIN) {
		ow_path_join_free(join);
		join = NULL;
		r = ow_path_join_create(&options, &join);
		r = r == 0 ? join_streams(path, join, err) : r;
	}
	if (r == 0)
		r = ow_path_join_finish(join, &path->joined);
	cancel_all(path);
	ow_path_join_free(join);
	if (r == -ENOMEM || r == -EAGAIN)
		ow_error_set(err, -r, "%s", r == -ENOMEM ? "out of memory" : "no thread can be started");
	return r;
}

/* -- the report --------------------------------------------------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void fill_segment(struct ow_path *path, unsigned k)
{
	struct ow_path_segment *segment = &path->segment[path->report.segments++];
	const struct pair *pair = &path->pair[k];
	*segment = (struct ow_path_segment){.from = path->place[k].from, .to = path->place[k].to};
	if (!pair->match) {
		segment->reason = pair->err.text;
		return;
	}
	if (pair->again && path->report.clocks_joined) {
		pair->match->report.clock = pair->clock;
		pair->match->report.offset_error_ns = pair->offset_error_ns;
	}
	segment->report = ow_match_report(pair->match);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_path_correction *c = &path->joined.correction[k][d];
		struct ow_result *result = &segment->result[d];
		*result = segment->report->direction[d];
		result->lost = less(result->lost, c->around_to + c->undecided);
		result->sent = result->matched + result->lost;
		result->extra = less(result->extra, c->around_from);
		result->received = result->matched + result->extra;
		result->duplicated = result->duplicated < result->extra ? result->duplicated : result->extra;
		segment->correction[d] = *c;
	}
}

static int warn_around(struct ow_path *path)
{
	static const enum ow_direction both[] = {OW_A_TO_B, OW_B_TO_A};
	struct ow_path_report *report = &path->report;
	int r = 0;
	for (unsigned p = 1; p + 1 < report->points && r == 0; p++) {
		for (unsigned i = 0; i < 2 && r == 0; i++) {
			unsigned d = both[i];
			unsigned long long around = report->around[d][p], seen = path->joined.seen[d][p];
			if (around)
				r = warn(path,
				         "%s does not show %llu of %llu packets that went from %s to %s: its capture "
				         "dropped them, or they take another way; they do not count as lost",
				         name(path, p), around, around + seen, name(path, d ? report->points - 1 : 0),
				         name(path, d ? 0 : report->points - 1));
		}
	}
	return r;
}

static int warn_clocks(struct ow_path *path)
{
	if (path->options.match.clock != OW_CLOCK_ESTIMATED || path->report.clocks_joined)
		return 0;
	return warn(path,
	            "the clocks drift, or some points have no packets in common: each pair of points was estimated by "
	            "itself, and the delays of hops need not add up to those from end to end");
}

static int warn_unknown(struct ow_path *path)
{
	unsigned long long lost = path->report.lost_unknown[OW_A_TO_B] + path->report.lost_unknown[OW_B_TO_A];
	if (!lost)
		return 0;
	return warn(
		path,
		"where %llu of the lost packets were lost is not known: identical packets, parts of superframes, or "
		"packets that a point cannot compare",
		lost);
}

static int warn_superframes(struct ow_path *path)
{
	int r = 0;
	for (unsigned k = 0; k < path->pairs && r == 0 && cuts(path); k++) {
		const struct ow_path_pair *place = &path->place[k];
		if (path->pair[k].match && ow_match_keeps_superframes(path->pair[k].match))
			r = warn(
				path,
				"%s to %s: superframes (TSO, GSO, GRO) could not be cut there, and count as one packet "
				"each; elsewhere they were cut",
				name(path, place->from), name(path, place->to));
	}
	return r;
}

/* What a pair says of one capture is said of that point, once: its other pairs find the same. */
static int warn_pair(struct ow_path *path, const char *from, const char *to, const char *text)
{
	bool of_one = strncmp(text, "A: ", 3) == 0 || strncmp(text, "B: ", 3) == 0;
	return of_one ? warn(path, "%s: %s", text[0] == 'A' ? from : to, text + 3)
	              : warn(path, "%s (A) and %s (B) by themselves: %s", from, to, text);
}

/* What a pair takes for packets that were not sent, another point shows as sent: the path says so. */
static bool is_explained(const struct ow_path *path, unsigned k, const char *text)
{
	const struct ow_match *match = path->pair[k].match;
	bool explained = false;
	for (unsigned d = 0; d < OW_DIRECTIONS && k > 0; d++) {
		const struct ow_result *pair = &ow_match_report(match)->direction[d];
		const struct ow_result *left = &path->segment[k - 1].result[d];
		explained |= text == match->unsent[d] && (double)(left->extra - left->duplicated) <=
		                                                 UNSENT_FEW * (double)(pair->extra - pair->duplicated);
	}
	return explained;
}

/* Packets that a point did not show are no loss where others show them: what a pair says of them is said otherwise. */
static int warn_dropped(struct ow_path *path, unsigned k)
{
	const unsigned point[] = {path->place[k].from, path->place[k].to};
	int r = 0;
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		uint64_t dropped = ow_match_report(path->pair[k].match)->dropped[side];
		if (dropped)
			r = warn(path,
			         "%s: the capture dropped %llu %s, as it says itself: that is no loss of the network, "
			         "but may count as loss where no other point shows the packets",
			         name(path, point[side]), (unsigned long long)dropped,
			         ow_plural(dropped, "packet", "packets"));
	}
	return r;
}

static int warn_pairs(struct ow_path *path)
{
	int r = 0;
	for (unsigned k = 0; k < path->pairs && r == 0; k++) {
		const struct ow_path_pair *place = &path->place[k];
		const char *from = name(path, place->from), *to = name(path, place->to);
		const struct pair *pair = &path->pair[k];
		bool neighbours = place->to == place->from + 1;
		if (!pair->match && neighbours)
			r = warn(path, "%s and %s: %s", from, to, pair->err.text);
		const struct ow_match_report *report = pair->match ? ow_match_report(pair->match) : NULL;
		for (size_t i = 0; report && (neighbours || k == 0) && i < report->warnings && r == 0; i++) {
			const char *text = report->warning[i];
			if (text == pair->match->missed[OW_SIDE_A] || text == pair->match->missed[OW_SIDE_B])
				r = warn_dropped(path, k);
			else if (!is_explained(path, k, text))
				r = warn_pair(path, from, to, text);
		}
	}
	return r;
}

/* The report of both ends has the clocks as all points show them, and the warnings of all. */
static void fill_ends(struct ow_path *path)
{
	unsigned last = path->report.points - 1;
	if (path->report.clocks_joined) {
		path->ends.clock = OW_CLOCK_ESTIMATED;
		path->ends.offset_error_ns = path->report.error_ns[last];
	}
	path->ends.warning = path->report.warning;
	path->ends.warnings = path->report.warnings;
}

static int fill_report(struct ow_path *path)
{
	struct ow_path_report *report = &path->report;
	path->ends = *ow_match_report(path->pair[0].match);
	report->ends = &path->ends;
	fill_captures(path);
	for (unsigned k = 1; k < path->pairs; k++)
		fill_segment(path, k);
	report->segment = path->segment;
	memcpy(report->lost_at, path->joined.lost_at, sizeof report->lost_at);
	memcpy(report->around, path->joined.around, sizeof report->around);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		uint64_t known = 0;
		for (unsigned i = 0; i < OW_PATH_POINTS * OW_PATH_POINTS; i++)
			known += report->lost_at[d][i / OW_PATH_POINTS][i % OW_PATH_POINTS];
		report->lost_unknown[d] = less(report->ends->direction[d].lost, known);
	}
	int r = warn_around(path);
	if (r == 0)
		r = warn_unknown(path);
	if (r == 0)
		r = warn_clocks(path);
	if (r == 0)
		r = warn_superframes(path);
	if (r == 0)
		r = warn_pairs(path);
	if (r == 0)
		r = warn_unsaid(path);
	fill_ends(path);
	return r;
}

int ow_path_match(const struct ow_path_point *point, unsigned points, const struct ow_path_options *options,
                  struct ow_path **ret_path, struct ow_error *err)
{
	if (points < 2 || points > OW_PATH_POINTS)
		return ow_error_set(err, EINVAL, "a path has 2 to %u points, not %u", OW_PATH_POINTS, points);
	struct ow_path *path = calloc(1, sizeof *path);
	if (!path)
		return ow_error_set(err, ENOMEM, "out of memory");
	path->options = *options;
	path->report.points = points;
	path->report.warning = (const char *const *)path->warning;
	int r = getrandom(&path->seed, sizeof path->seed, 0) == (ssize_t)sizeof path->seed
	                ? 0
	                : ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	if (r == 0)
		r = order_points(path, point, err);
	if (r == 0)
		choose_pairs(path);
	if (r == 0)
		r = match_pairs(path, err);
	if (r == 0)
		r = cut_alike(path, err);
	path->phase = path->phases - wants_every(path);
	if (r == 0 && (wants_every(path) || has_singles(path)))
		r = follow_packets(path, err);
	if (r == 0 && (r = fill_report(path)) < 0)
		ow_error_set(err, -r, "out of memory");
	if (r < 0) {
		ow_path_free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}

bool ow_path_delay_share(const struct ow_path_report *report, const struct ow_path_segment *segment,
                         enum ow_direction direction, double *ret_share)
{
	const struct ow_delay *hop = &segment->result[direction].delay,
			      *all = &report->ends->direction[direction].delay;
	if (!segment->report || !hop->samples || !all->samples || hop->mean_ns < 0 || all->mean_ns <= 0 ||
	    hop->mean_ns > all->mean_ns)
		return false;
	*ret_share = hop->mean_ns / all->mean_ns;
	return true;
}

int ow_path_last_seen(const struct ow_path_packet *packet)
{
	if (packet->direction == OW_A_TO_B)
		return 31 - __builtin_clz(packet->seen);
	return packet->direction == OW_B_TO_A ? __builtin_ctz(packet->seen) : -1;
}

const struct ow_path_report *ow_path_report(const struct ow_path *path)
{
	return &path->report;
}

void ow_path_free(struct ow_path *path)
{
	if (!path)
		return;
	for (unsigned k = 0; k < path->pairs; k++) {
		ow_match_free(path->pair[k].match);
		ow_path_stream_free(path->pair[k].stream);
		free(path->pair[k].log.note);
	}
	for (unsigned i = 0; i < path->report.points; i++)
		ow_reader_close(path->reader[i]);
	for (size_t i = 0; i < path->report.warnings; i++)
		free(path->warning[i]);
	free(path);
}
