/* SPDX-License-Identifier: Apache-2.0 */
/* Live measurement between two interfaces of one host: both.h says how it is put together. */
#include "point/both.h"

#include "base/steps.h"
#include "base/time.h"
#include "point/join.h"
#include "point/span.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Recorded before the first interval: packets that were sent up to this long before it are known. */
#define LEAD_NS (200 * OW_NS_PER_MS)
/* Lanes are set up before the first interval begins. */
#define SETUP_NS (20 * OW_NS_PER_MS)
/* Intervals that may be open: the recorder lags by less than this, files by a few intervals. */
#define OPEN_NS  (2 * OW_NS_PER_S)
#define OPEN_MIN 64
/* After it was stopped, packets under way are waited for this long, */
#define GRACE_NS (200 * OW_NS_PER_MS)
/* and for a recorder that does not go on so much longer. */
#define PATIENCE_NS OW_NS_PER_S
/* Fewer packets a page are no measurement. */
#define STAMPS_MIN 4096

enum { FROM, TO, SIDES };  /* sources */
enum { SENDER, RECEIVER }; /* ledgers of a lane */

struct book {
	uint32_t lane; /* of the recorder */
	struct ow_ledger *ledger;
	struct ow_page *page; /* closed, not compared yet */
	uint64_t misplaced;   /* told so far */
	unsigned source;
};

struct lane {
	struct ow_live_result names;
	struct book book[2];
	struct ow_settle *settle;
	struct ow_page *before; /* what arrived in the interval before */
};

struct ow_both {
	struct ow_both_options options;
	struct ow_recorder *recorder;
	struct lane *lane;
	size_t lanes;
	uint32_t *owner; /* of the recorder's lanes: 2 * lane + ledger */
	uint32_t owners;
	bool files;
	struct ow_steps steps;
	int64_t t0_ns;               /* of interval 0, by the clock as it is now */
	int64_t base;                /* the interval with which the ledgers begin: 0, or since the clock was set */
	int64_t lead;                /* intervals before the first that counts */
	int64_t next;                /* the interval that is compared next */
	int64_t split;               /* 1 when an interval was split where the run ends: later ones count on */
	int64_t end_ns;              /* nothing that was sent from here on counts, */
	int64_t stop_ns;             /* and from here on nothing is looked at; INT64_MAX = open */
	int64_t over_ns[SIDES];      /* where a file ends: what would be seen from here on is not; INT64_MAX = open */
	bool stopped;                /* in the middle of things */
	int64_t since_ns;            /* when, by the steady clock */
	int64_t passed_ns;           /* up to where the recorder is complete */
	struct ow_live_result *held; /* results of the end, to be told in the order of their intervals */
	size_t helds, held_room;
	bool holding;
	int failed; /* a source did: its errno, */
	struct ow_error err;
	bool done;
};

/* -- setting up ---------------------------------------------------------------------------------------------------- */

static int64_t floor_to(int64_t time_ns, int64_t step_ns)
{
	int64_t rest = time_ns % step_ns;
	return time_ns - (rest < 0 ? rest + step_ns : rest);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Of files: where both have begun, and where the first of them ends. */
static int plan_files(struct ow_both *both, int64_t *ret_start_ns, struct ow_error *err)
{
	const char *from = both->options.from.live.name, *to = both->options.to.live.name;
	struct ow_span a = {0}, b = {0};
	int r = ow_span_of_file(from, &a, err);
	if (r == 0)
		r = ow_span_of_file(to, &b, err);
	if (r < 0)
		return r;
	*ret_start_ns = a.first_ns > b.first_ns ? a.first_ns : b.first_ns;
	both->over_ns[FROM] = a.last_ns + 1;
	both->over_ns[TO] = b.last_ns + 1;
	both->end_ns = least(a.last_ns, b.last_ns) + 1;
	if (*ret_start_ns >= both->end_ns)
		return ow_error_set(err, EINVAL, "%.200s and %.200s were not taken at the same time", from, to);
	return 0;
}

/* When to begin, how much earlier to record, and where to end. */
static int plan_time(struct ow_both *both, struct ow_error *err)
{
	const struct ow_both_options *o = &both->options;
	int64_t lead_ns = least(o->wait_ns, LEAD_NS), start_ns;
	both->lead = (lead_ns + o->length_ns - 1) / o->length_ns;
	both->end_ns = both->stop_ns = both->over_ns[FROM] = both->over_ns[TO] = INT64_MAX;
	if (both->files) {
		int r = plan_files(both, &start_ns, err);
		if (r < 0)
			return r;
	} else {
		int64_t step_ns = least(o->length_ns, OW_NS_PER_S);
		start_ns = floor_to(ow_recorder_now_ns(both->recorder) + SETUP_NS + lead_ns, step_ns) + step_ns;
	}
	both->t0_ns = start_ns - both->lead * o->length_ns;
	if (o->intervals && o->intervals < (uint64_t)((INT64_MAX - start_ns) / o->length_ns))
		both->end_ns = least(both->end_ns, start_ns + (int64_t)o->intervals * o->length_ns);
	if (both->end_ns < INT64_MAX - o->wait_ns)
		both->stop_ns = both->end_ns + o->wait_ns;
	return 0;
}

static int add_book(struct ow_both *both, size_t lane, int side, const char *filter, bool backward,
                    struct ow_error *err)
{
	const struct ow_both_options *o = &both->options;
	struct book *book = both->lane[lane].book + side;
	/* Forward it comes in at `from` and goes out at `to`; backward the other way round. */
	book->source = (side == SENDER) != backward ? FROM : TO;
	struct ow_lane_options lane_options = {
		.identity = o->identity,
		.sources = 1u << book->source,
		.heading = o->forward       ? OW_HEADING_UNKNOWN
	                   : side == SENDER ? OW_HEADING_IN
	                                    : OW_HEADING_OUT,
		.filter = filter,
		.way = o->forward,
		.way_not = backward,
		.t0_ns = both->t0_ns + both->base * o->length_ns,
		.length_ns = o->length_ns,
	};
	uint64_t memory = o->memory ? o->memory : OW_BOTH_MEMORY;
	/* Two pages a ledger: one is filled while the other is compared. */
	uint64_t stamps = memory / (2 * 2 * both->lanes * sizeof(struct ow_stamp)), open = OPEN_NS / o->length_ns;
	struct ow_ledger_options ledger_options = {
		.identity = o->identity,
		.t0_ns = lane_options.t0_ns,
		.length_ns = o->length_ns,
		.stamps_max = stamps > STAMPS_MIN ? stamps : STAMPS_MIN,
		.open_max = open > OPEN_MIN ? open : OPEN_MIN,
	};
	int r = ow_ledger_create(&ledger_options, &book->ledger);
	if (r < 0)
		return ow_error_set(err, -r, "cannot keep books of packets: %s", strerror(-r));
	r = ow_recorder_add_lane(both->recorder, &lane_options, &book->lane, err);
	if (r < 0)
		return r;
	if (book->lane >= both->owners) {
		uint32_t *owner = realloc(both->owner, (book->lane + (size_t)1) * sizeof *owner);
		if (!owner)
			return ow_error_set(err, ENOMEM, "out of memory");
		memset(owner + both->owners, 0xff, (book->lane + (size_t)1 - both->owners) * sizeof *owner);
		both->owner = owner;
		both->owners = book->lane + 1;
	}
	both->owner[book->lane] = (uint32_t)(2 * lane) + (uint32_t)side;
	return 0;
}

/* A lane tells of several intervals at a time, at the end of many: in the order of the intervals, if there is memory.
 */
static void on_result(void *arg, const struct ow_live_result *result)
{
	struct ow_both *both = arg;
	if (both->holding && both->helds == both->held_room) {
		size_t room = both->held_room ? 2 * both->held_room : 64;
		struct ow_live_result *more = realloc(both->held, room * sizeof *more);
		if (more) {
			both->held = more;
			both->held_room = room;
		}
	}
	if (both->holding && both->helds < both->held_room)
		both->held[both->helds++] = *result;
	else
		both->options.sink(both->options.arg, result);
}

/* Intervals that a packet is waited for. Files end anywhere, and an interval that is split there is two. Interfaces do,
 * too, when somebody stops the run; but results of every interval would be late because of the last one. */
static int64_t horizon_of(const struct ow_both_options *options)
{
	return (options->wait_ns + options->length_ns - 1) / options->length_ns +
	       (options->from.live.kind == OW_LIVE_FILE);
}

static int add_books(struct ow_both *both, size_t index, struct ow_error *err)
{
	const char *filter = both->options.classes[index / 2].filter;
	int r = add_book(both, index, SENDER, filter, index % 2, err);
	return r < 0 ? r : add_book(both, index, RECEIVER, filter, index % 2, err);
}

static int add_lane(struct ow_both *both, size_t index, struct ow_error *err)
{
	const struct ow_both_options *o = &both->options;
	const struct ow_both_class *class = o->classes + index / 2;
	bool backward = index % 2;
	struct lane *lane = both->lane + index;
	const char *from = o->from_name, *to = o->to_name;
	snprintf(lane->names.segment, sizeof lane->names.segment, "%s", o->segment);
	snprintf(lane->names.class_name, sizeof lane->names.class_name, "%s", class->name);
	snprintf(lane->names.from, sizeof lane->names.from, "%s", backward ? to : from);
	snprintf(lane->names.to, sizeof lane->names.to, "%s", backward ? from : to);
	int r = ow_settle_create((uint32_t)horizon_of(o), on_result, both, &lane->settle);
	if (r < 0)
		return ow_error_set(err, -r, "cannot keep late packets: %s", strerror(-r));
	return add_books(both, index, err);
}

static int check(const struct ow_both_options *o, struct ow_error *err)
{
	if (o->length_ns < OW_INTERVAL_MIN_NS || o->length_ns > OW_INTERVAL_MAX_NS)
		return ow_error_set(err, EINVAL, "an interval has 1ms to 5min");
	if (o->wait_ns < 1 || (o->wait_ns - 1) / o->length_ns >= OW_BOTH_WAIT_MAX)
		return ow_error_set(err, EINVAL, "the waiting time is at most %d intervals", OW_BOTH_WAIT_MAX);
	if (!o->class_count || 4 * o->class_count > OW_LANES_MAX)
		return ow_error_set(err, EINVAL, "there can be 1 to %d classes", OW_LANES_MAX / 4);
	return 0;
}

int ow_both_create(const struct ow_both_options *options, struct ow_both **ret_both, struct ow_error *err)
{
	int r = check(options, err);
	if (r < 0)
		return r;
	struct ow_both *both = calloc(1, sizeof *both);
	if (!both)
		return ow_error_set(err, ENOMEM, "out of memory");
	both->options = *options;
	both->files = options->from.live.kind == OW_LIVE_FILE;
	both->lanes = 2 * options->class_count;
	both->passed_ns = INT64_MIN;
	both->lane = calloc(both->lanes + 1, sizeof *both->lane);
	r = both->lane ? 0 : ow_error_set(err, ENOMEM, "out of memory");
	struct ow_source_options sources[SIDES] = {[FROM] = options->from, [TO] = options->to};
	if (r == 0)
		r = ow_recorder_open(sources, SIDES, &both->recorder, err);
	if (r == 0)
		r = plan_time(both, err);
	for (size_t i = 0; r == 0 && i < both->lanes; i++)
		r = add_lane(both, i, err);
	if (r == 0 && options->opened)
		r = options->opened(options->opened_arg, err);
	if (r == 0)
		r = ow_recorder_start(both->recorder, err);
	if (r < 0) {
		ow_both_free(both);
		return r;
	}
	*ret_both = both;
	return 0;
}

void ow_both_free(struct ow_both *both)
{
	if (!both)
		return;
	ow_recorder_free(both->recorder);
	for (size_t i = 0; both->lane && i < both->lanes; i++) {
		for (int side = 0; side < 2; side++) {
			ow_page_free(both->lane[i].book[side].page);
			ow_ledger_free(both->lane[i].book[side].ledger);
		}
		ow_settle_free(both->lane[i].settle);
		ow_page_free(both->lane[i].before);
	}
	free(both->lane);
	free(both->owner);
	free(both->held);
	free(both);
}

/* -- intervals ----------------------------------------------------------------------------------------------------- */

static int64_t start_of(const struct ow_both *both, int64_t interval)
{
	return both->t0_ns + interval * both->options.length_ns;
}

/* From here on nothing of a lane is looked at: a file that has ended cannot show who arrives. */
static int64_t stop_of(const struct ow_both *both, const struct lane *lane)
{
	return least(both->stop_ns, both->over_ns[lane->book[RECEIVER].source]);
}

/* Leaves out what was seen from some time on. Names of copies that are gone do no harm. */
static void cut_page(struct ow_page *page, int64_t end_ns)
{
	size_t kept = 0, before = page->count;
	for (size_t i = 0; i < page->count; i++) {
		if (page->stamp[i].time_ns < end_ns - page->start_ns)
			page->stamp[kept++] = page->stamp[i];
	}
	page->count = kept;
	page->length_ns = end_ns - page->start_ns;
	if (before) {
		double share = (double)kept / (double)before;
		page->total_bytes = (uint64_t)(share * (double)page->total_bytes);
		page->total_packets = (uint64_t)(share * (double)page->total_packets + 0.5);
	}
}

/* What was seen from some time on as a page of its own. NULL without memory. */
static struct ow_page *rest_of_page(const struct ow_page *page, int64_t from_ns)
{
	struct ow_page *rest = malloc(sizeof *rest);
	if (!rest)
		return NULL;
	*rest = *page;
	rest->interval++;
	rest->start_ns = from_ns;
	rest->length_ns = page->start_ns + page->length_ns - from_ns;
	rest->stamp = malloc((page->count + 1) * sizeof *rest->stamp);
	rest->copy = malloc((page->copies + 1) * sizeof *rest->copy);
	rest->count = 0;
	if (!rest->stamp || !rest->copy) {
		ow_page_free(rest);
		return NULL;
	}
	if (page->copies)
		memcpy(rest->copy, page->copy, page->copies * sizeof *rest->copy);
	int64_t shift_ns = from_ns - page->start_ns;
	for (size_t i = 0; i < page->count; i++) {
		if (page->stamp[i].time_ns >= shift_ns)
			rest->stamp[rest->count++] =
				(struct ow_stamp){page->stamp[i].id, page->stamp[i].time_ns - shift_ns};
	}
	return rest;
}

/* What cannot be told by the packets themselves. */
static void complete(struct ow_both *both, struct lane *lane, struct ow_live_result *r)
{
	memcpy(r->segment, lane->names.segment, sizeof r->segment);
	memcpy(r->class_name, lane->names.class_name, sizeof r->class_name);
	memcpy(r->from, lane->names.from, sizeof r->from);
	memcpy(r->to, lane->names.to, sizeof r->to);
	/* One clock stamps both; who stamped files nobody knows. */
	r->clock_from = r->clock_to =
		both->files ? (struct ow_clock_state){false, OW_CLOCK_UNKNOWN} : (struct ow_clock_state){true, 0};
	uint64_t misplaced = 0;
	for (int side = 0; side < 2; side++) {
		struct book *book = lane->book + side;
		uint64_t all = ow_ledger_misplaced(book->ledger);
		misplaced += all - book->misplaced;
		book->misplaced = all;
	}
	if (misplaced) {
		r->status = OW_LIVE_PARTIAL;
		snprintf(r->cause, sizeof r->cause, "%llu packets out of time: was the clock set?",
		         (unsigned long long)misplaced);
	}
	if (!both->files)
		r->cost.ready_ns = ow_recorder_now_ns(both->recorder) - (r->start_ns + r->length_ns);
}

static int compare(struct ow_both *both, struct lane *lane, const struct ow_page *a, const struct ow_page *b)
{
	struct ow_settle_input input;
	struct ow_joined joined;
	int64_t before_ns = ow_clock_steady_ns();
	int r = ow_join_pages(a, b, &(struct ow_join_past){lane->settle, lane->before}, &input, &joined);
	if (r < 0)
		return r;
	complete(both, lane, &input.result);
	input.quiet = a->interval < both->lead || a->start_ns >= both->end_ns;
	input.result.interval = a->interval - both->lead;
	input.result.cost.compute_ns = ow_clock_steady_ns() - before_ns;
	r = ow_settle_step(lane->settle, &input);
	ow_joined_done(&joined);
	return r;
}

/* The run ends in the middle of the interval: the rest is there for packets that are under way. */
static int compare_split(struct ow_both *both, struct lane *lane, struct ow_page *a, struct ow_page *b)
{
	struct ow_page *rest_a = rest_of_page(a, both->end_ns), *rest_b = rest_of_page(b, both->end_ns);
	int r = rest_a && rest_b ? 0 : -ENOMEM;
	cut_page(a, both->end_ns);
	cut_page(b, both->end_ns);
	if (r == 0)
		r = compare(both, lane, a, b);
	if (r == 0)
		r = compare(both, lane, rest_a, rest_b);
	ow_page_free(rest_a);
	ow_page_free(rest_b);
	return r;
}

static int compare_pages(struct ow_both *both, struct lane *lane, struct ow_page *a, struct ow_page *b)
{
	unsigned shift = a->sample_shift > b->sample_shift ? a->sample_shift : b->sample_shift;
	ow_page_resample(a, &both->options.identity, shift);
	ow_page_resample(b, &both->options.identity, shift);
	int64_t stop_ns = stop_of(both, lane);
	if (a->start_ns + a->length_ns > stop_ns) {
		cut_page(a, stop_ns);
		cut_page(b, stop_ns);
	}
	a->interval += both->split;
	b->interval += both->split;
	if (a->start_ns < both->end_ns && both->end_ns < a->start_ns + a->length_ns)
		return compare_split(both, lane, a, b);
	return compare(both, lane, a, b);
}

static struct ow_page *next_page(const struct ow_both *both, struct ow_ledger *ledger, int64_t passed_ns)
{
	struct ow_page *page = ow_ledger_next(ledger, passed_ns);
	if (page)
		page->interval += both->base;
	return page;
}

/* The page of an interval; an empty one where the ledger has none. NULL without memory. */
static struct ow_page *take_page(struct ow_both *both, struct book *book, int64_t interval, int64_t passed_ns)
{
	if (!book->page)
		book->page = next_page(both, book->ledger, passed_ns);
	struct ow_page *page = book->page;
	while (page && page->interval < interval) {
		ow_page_free(page);
		page = next_page(both, book->ledger, passed_ns);
	}
	book->page = page;
	if (page && page->interval == interval) {
		book->page = NULL;
		return page;
	}
	/* What there is no memory for is not empty: all of it would seem lost. */
	if (!page && ow_ledger_due(book->ledger, passed_ns))
		return NULL;
	page = calloc(1, sizeof *page);
	if (page) {
		page->interval = interval;
		page->start_ns = start_of(both, interval);
		page->length_ns = both->options.length_ns;
	}
	return page;
}

static int compare_interval(struct ow_both *both, struct lane *lane, int64_t passed_ns)
{
	struct ow_page *a = take_page(both, lane->book + SENDER, both->next, passed_ns);
	struct ow_page *b = take_page(both, lane->book + RECEIVER, both->next, passed_ns);
	int r = a && b ? compare_pages(both, lane, a, b) : -ENOMEM;
	ow_page_free(a);
	ow_page_free(lane->before);
	lane->before = b;
	return r;
}

static bool something_waits(const struct ow_both *both)
{
	for (size_t i = 0; i < both->lanes; i++) {
		if (ow_settle_waiting(both->lane[i].settle))
			return true;
	}
	return false;
}

/* Is the next interval complete, or as complete as it will be? */
static bool is_due(const struct ow_both *both)
{
	int64_t end_ns = least(start_of(both, both->next + 1), both->stop_ns);
	return both->passed_ns >= end_ns ||
	       (both->stopped && ow_clock_steady_ns() - both->since_ns > GRACE_NS + PATIENCE_NS);
}

/* Tells of what was held back: interval by interval, within each in the order of the lanes. */
static void release(struct ow_both *both)
{
	both->holding = false;
	for (size_t told = 0; told < both->helds;) {
		int64_t interval = INT64_MAX;
		for (size_t i = 0; i < both->helds; i++)
			interval = least(interval, both->held[i].interval);
		for (size_t i = 0; i < both->helds; i++) {
			if (both->held[i].interval != interval)
				continue;
			both->options.sink(both->options.arg, both->held + i);
			both->held[i].interval = INT64_MAX; /* is told */
			told++;
		}
	}
	both->helds = 0;
}

static int finish(struct ow_both *both)
{
	both->holding = true;
	for (size_t i = 0; i < both->lanes; i++)
		ow_settle_finish(both->lane[i].settle);
	release(both);
	both->done = true;
	return 1;
}

/* Compares all intervals that are complete. 1 when that was the end. */
static int compare_intervals(struct ow_both *both)
{
	while (is_due(both)) {
		int64_t start_ns = start_of(both, both->next), end_ns = start_ns + both->options.length_ns;
		/* The ledgers give a page up when its interval has ended; the last one ends now. */
		int64_t passed_ns = end_ns > both->stop_ns || both->stopped ? INT64_MAX : both->passed_ns;
		int r = 0;
		both->holding = true;
		for (size_t i = 0; r >= 0 && i < both->lanes; i++) {
			if (start_ns < stop_of(both, both->lane + i))
				r = compare_interval(both, both->lane + i, passed_ns);
		}
		release(both);
		if (r < 0)
			return r;
		both->next++;
		both->split += start_ns < both->end_ns && both->end_ns < end_ns;
		if (end_ns >= both->stop_ns || (end_ns >= both->end_ns && !something_waits(both)))
			return finish(both);
	}
	return 0;
}

/* -- a clock that is set ------------------------------------------------------------------------------------------- */

static void forget_books(struct ow_both *both, struct lane *lane)
{
	for (int side = 0; side < 2; side++) {
		struct book *book = lane->book + side;
		ow_recorder_remove_lane(both->recorder, book->lane);
		both->owner[book->lane] = UINT32_MAX;
		ow_ledger_free(book->ledger);
		ow_page_free(book->page);
		*book = (struct book){.source = book->source};
	}
	ow_page_free(lane->before);
	lane->before = NULL;
}

/* What the step has cut is unknown, and what waits for its arrival undecided: the next interval has another clock. */
static int tell_step(struct ow_both *both, struct lane *lane, int64_t last, const char *cause)
{
	int r = 0;
	for (int64_t i = both->next; r == 0 && i <= last; i++) {
		struct ow_live_result result = {.interval = i + both->split - both->lead,
		                                .start_ns = start_of(both, i),
		                                .length_ns = both->options.length_ns,
		                                .reordered = OW_LIVE_NOT_COUNTED};
		complete(both, lane, &result);
		snprintf(result.cause, sizeof result.cause, "%s", cause);
		if (i >= both->lead && result.start_ns < both->end_ns)
			r = ow_settle_unknown(lane->settle, &result);
	}
	ow_settle_finish(lane->settle);
	return r;
}

/*
 * The clock was set, as packets were taken that are not in any page yet: all that is not compared is of two clocks. New
 * lanes begin by the new one, with the interval after the one that was cut. 1 when the run was about to end.
 */
static int on_step(struct ow_both *both, int64_t step_ns, struct ow_error *err)
{
	const struct ow_both_options *o = &both->options;
	char size[OW_STEP_TEXT], cause[OW_STEP_TEXT + 32];
	int64_t now_ns = ow_steps_now_ns(&both->steps), grid_ns = least(o->length_ns, OW_NS_PER_S);
	int64_t last = (now_ns - step_ns - both->t0_ns) / o->length_ns;
	int r = 0;
	ow_step_text(step_ns, size);
	snprintf(cause, sizeof cause, "clock stepped by %s", size);
	both->holding = true;
	for (size_t i = 0; r == 0 && i < both->lanes; i++) {
		r = tell_step(both, both->lane + i, last, cause);
		forget_books(both, both->lane + i);
	}
	release(both);
	both->next = last + 1 > both->next ? last + 1 : both->next;
	both->base = both->next;
	int64_t start_ns = floor_to(now_ns + SETUP_NS, grid_ns) + grid_ns;
	int64_t shift_ns = start_ns - start_of(both, both->next);
	both->t0_ns += shift_ns;
	both->end_ns += both->end_ns == INT64_MAX ? 0 : shift_ns;
	both->stop_ns += both->stop_ns == INT64_MAX ? 0 : shift_ns;
	ow_recorder_clock_set(both->recorder);
	both->passed_ns = INT64_MIN;
	for (size_t i = 0; r == 0 && i < both->lanes; i++)
		r = add_books(both, i, err);
	if (r == 0 && both->stopped)
		both->done = true;
	return r;
}

static int look_at_clock(struct ow_both *both, struct ow_error *err)
{
	struct ow_steps_reading reading;
	if (both->files)
		return 0;
	/* One clock stamps both sides: no error of it matters but a step. */
	ow_steps_read(OW_STEPS_LEAST_NS / 2, &reading);
	int64_t step = ow_steps_check(&both->steps, &reading, OW_STEPS_LEAST_NS);
	return step ? on_step(both, step, err) : 0;
}

/* -- work ---------------------------------------------------------------------------------------------------------- */

int ow_both_fd(const struct ow_both *both)
{
	return ow_recorder_fd(both->recorder);
}

static void enter_chunks(struct ow_both *both, struct ow_chunk *chunk)
{
	for (struct ow_chunk *next; chunk; chunk = next) {
		next = chunk->next;
		uint32_t owner = chunk->lane < both->owners ? both->owner[chunk->lane] : UINT32_MAX;
		/* Without memory the page is sampled, and says so. */
		if (owner != UINT32_MAX)
			ow_ledger_add(both->lane[owner / 2].book[owner % 2].ledger, chunk);
		free(chunk);
	}
}

/* Frames that a ring lost could have been of any lane. */
static void enter_drops(struct ow_both *both)
{
	for (unsigned source = 0; source < SIDES; source++) {
		struct ow_drops drops;
		ow_recorder_drops(both->recorder, source, &drops);
		for (size_t i = 0; drops.frames && i < 2 * both->lanes; i++) {
			struct book *book = both->lane[i / 2].book + i % 2;
			if (book->source == source)
				ow_ledger_drops(book->ledger, &drops);
		}
	}
}

int ow_both_work(struct ow_both *both, struct ow_error *err)
{
	struct ow_chunk *chunks = NULL;
	struct ow_error reason = {"no reason given"};
	if (both->done)
		return 1;
	int r = ow_recorder_take(both->recorder, &chunks, &both->passed_ns, &reason);
	/* Before anything is done with what was taken. */
	int stepped = look_at_clock(both, err);
	enter_drops(both);
	enter_chunks(both, chunks);
	if (r < 0 && !both->failed) {
		both->failed = r;
		both->err = reason;
		/* The other interface alone says nothing: what was seen until now is the result. Where a damaged file
		 * ends is known. */
		if (!both->files)
			ow_both_stop(both);
	}
	if (stepped < 0)
		return stepped;
	if (both->done)
		return 1;
	r = compare_intervals(both);
	if (r < 0)
		return ow_error_set(err, -r, "cannot compare packets: %s", strerror(-r));
	if (r == 1 && both->failed) {
		*err = both->err;
		return both->failed;
	}
	return r;
}

void ow_both_stop(struct ow_both *both)
{
	if (both->stopped)
		return;
	int64_t now_ns = both->files ? both->passed_ns : ow_recorder_now_ns(both->recorder);
	both->stopped = true;
	both->since_ns = ow_clock_steady_ns();
	both->end_ns = least(both->end_ns, now_ns);
	both->stop_ns = least(both->stop_ns, now_ns + (both->files ? 0 : least(GRACE_NS, both->options.wait_ns)));
}

size_t ow_both_lanes(const struct ow_both *both)
{
	return both->lanes;
}

void ow_both_total(const struct ow_both *both, size_t lane, struct ow_live_result *ret_total)
{
	assert(lane < both->lanes);
	ow_settle_total(both->lane[lane].settle, ret_total);
	const struct ow_live_result *names = &both->lane[lane].names;
	memcpy(ret_total->segment, names->segment, sizeof ret_total->segment);
	memcpy(ret_total->class_name, names->class_name, sizeof ret_total->class_name);
	memcpy(ret_total->from, names->from, sizeof ret_total->from);
	memcpy(ret_total->to, names->to, sizeof ret_total->to);
}

void ow_both_counts(const struct ow_both *both, unsigned source, struct ow_recorder_counts *ret_counts)
{
	ow_recorder_counts(both->recorder, source, ret_counts);
}
