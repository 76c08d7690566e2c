/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: proposed by the point that connects, checked by the other one, then recorded, kept in books and compared. What
 * was agreed on holds as long as both processes live, also without a connection: pages wait for it.
 */
#include "point/daemon_parts.h"

#include "base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Comes and goes. */

struct ow_daemon_lane *ow_daemon_lane_of_wire(struct ow_daemon_peer *peer, uint32_t wire)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->peer == peer && d->lanes[i]->wire == wire)
			return d->lanes[i];
	}
	return NULL;
}

static void stop_recording(struct ow_daemon_lane *lane)
{
	if (!lane->ledger)
		return;
	ow_recorder_remove_lane(lane->daemon->recorder, lane->recorded);
	ow_ledger_free(lane->ledger);
	lane->ledger = NULL;
}

static void free_lane(struct ow_daemon_lane *lane)
{
	stop_recording(lane);
	ow_exchange_free(lane->exchange);
	lane->daemon->memory_left += lane->granted;
	free(lane);
}

static void remove_lane(struct ow_daemon_lane *lane)
{
	struct ow_daemon *d = lane->daemon;
	unsigned i = 0;
	while (d->lanes[i] != lane)
		i++;
	for (d->lane_count--; i < d->lane_count; i++)
		d->lanes[i] = d->lanes[i + 1];
	free_lane(lane);
}

static struct ow_daemon_lane *add_lane(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                       const struct ow_message_open *open, uint32_t wire, bool sending)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_daemon_lane *lane = d->lane_count < OW_LANES_MAX ? calloc(1, sizeof *lane) : NULL;
	if (!lane)
		return NULL;
	*lane = (struct ow_daemon_lane){.daemon = d,
	                                .peer = peer,
	                                .segment = segment,
	                                .open = *open,
	                                .wire = wire,
	                                .sending = sending,
	                                .until = INT64_MAX};
	d->lanes[d->lane_count++] = lane;
	return lane;
}

/* "x/all to paris" */
#define LANE_TEXT (3 * OW_LIVE_NAME + 16)
static void lane_text(const struct ow_daemon_lane *lane, char text[LANE_TEXT])
{
	snprintf(text, LANE_TEXT, "%s/%s %s %s", lane->open.segment, lane->open.class_name,
	         lane->sending ? "to" : "from", lane->peer->name);
}

static void log_agreed(const struct ow_daemon_lane *lane, size_t stamps)
{
	char name[LANE_TEXT], length[OW_DURATION_TEXT], when[40] = "";
	time_t start = (time_t)(lane->open.t0_ns / OW_NS_PER_S);
	struct tm tm;
	lane_text(lane, name);
	ow_duration_text((double)lane->open.length_ns, length);
	if (gmtime_r(&start, &tm))
		strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	ow_daemon_log(lane->daemon, "%s: agreed on %s: intervals of %s from %s.%03dZ, %s, up to %zu packets each",
	              lane->peer->name, name, length, when, (int)(lane->open.t0_ns % OW_NS_PER_S / OW_NS_PER_MS),
	              lane->open.method == OW_MESSAGE_RDA ? "rda" : "fold", stamps);
}

/* The run of a lane is over: its sum. */
static void tell_total(struct ow_daemon_lane *lane)
{
	struct ow_live_result total;
	if (!lane->exchange || lane->next == 0)
		return;
	ow_exchange_total(lane->exchange, &total);
	lane->daemon->options.sink.total(lane->daemon->options.sink.arg, &total);
	lane->daemon->has_results = true;
}

/* Gives up on everything that is not answered, and on the lane. */
static void end_lane(struct ow_daemon_lane *lane, const char *cause)
{
	if (lane->exchange) {
		ow_exchange_abandon(lane->exchange, cause, ow_daemon_now_ns(lane->daemon));
		tell_total(lane);
	}
	remove_lane(lane);
}

void ow_daemon_lanes_end(struct ow_daemon_peer *peer, const char *how)
{
	struct ow_daemon *d = peer->daemon;
	char cause[OW_LIVE_NAME + 32];
	snprintf(cause, sizeof cause, "%s %s", peer->name, how);
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (d->lanes[i]->peer == peer)
			end_lane(d->lanes[i], cause);
	}
}

/* Sinks of the exchange. */

static void send_frame(void *arg, const uint8_t *frame, size_t size)
{
	struct ow_daemon_lane *lane = arg;
	/* Without connection it is lost: the exchange sends again what was not answered. */
	if (lane->peer->link && lane->peer->link->ready)
		ow_daemon_link_send_frame(lane->peer->link, frame, size);
}

static void on_result(void *arg, const struct ow_live_result *result)
{
	struct ow_daemon_lane *lane = arg;
	lane->daemon->options.sink.result(lane->daemon->options.sink.arg, result);
	lane->daemon->has_results = true;
}

static void on_shift(void *arg, unsigned sample_shift)
{
	struct ow_daemon_lane *lane = arg;
	if (lane->ledger)
		ow_recorder_set_shift(lane->daemon->recorder, lane->recorded, sample_shift);
}

/* Starting. */

static int start_exchange(struct ow_daemon_lane *lane, const struct ow_retention *retention)
{
	const struct ow_message_open *o = &lane->open;
	const char *here = lane->daemon->config->point, *there = lane->peer->name;
	struct ow_exchange_options options = {
		.lane = lane->wire,
		.sending = lane->sending,
		.method = o->method == OW_MESSAGE_RDA ? OW_METHOD_RDA : OW_METHOD_FOLD,
		.identity = lane->identity,
		.seed = o->synopsis_seed,
		.t0_ns = o->t0_ns,
		.length_ns = o->length_ns,
		.horizon = o->horizon,
		.patience_ns = retention->patience_ns,
		.pages_max = retention->pages_max,
		.buckets = o->buckets,
		.sample = o->sample,
	};
	snprintf(options.segment, sizeof options.segment, "%s", o->segment);
	snprintf(options.class_name, sizeof options.class_name, "%s", o->class_name);
	snprintf(options.from, sizeof options.from, "%s", lane->sending ? here : there);
	snprintf(options.to, sizeof options.to, "%s", lane->sending ? there : here);
	struct ow_exchange_sinks sinks = {.send = send_frame, .result = on_result, .shift = on_shift, .arg = lane};
	return ow_exchange_create(&options, &sinks, &lane->exchange);
}

/* What goes to the peer goes out here (or comes in, if this side of the box faces away from it). */
static enum ow_heading heading_of(const struct ow_config_segment *segment, bool sending)
{
	if (segment->to_peer)
		return OW_HEADING_UNKNOWN;
	return sending == segment->away ? OW_HEADING_IN : OW_HEADING_OUT;
}

static int start_recording(struct ow_daemon_lane *lane, struct ow_error *err)
{
	struct ow_lane_options options = {
		.identity = lane->identity,
		.sources = lane->segment->interfaces,
		.heading = heading_of(lane->segment, lane->sending),
		.filter = lane->filter,
		.way = lane->segment->to_peer,
		.way_not = !lane->sending,
		.t0_ns = lane->open.t0_ns,
		.length_ns = lane->open.length_ns,
		.sample_shift = lane->open.sample_shift,
	};
	return ow_recorder_add_lane(lane->daemon->recorder, &options, &lane->recorded, err);
}

static void set_identity(struct ow_daemon_lane *lane)
{
	const struct ow_message_open *o = &lane->open;
	lane->identity = (struct ow_identity){.level = o->level == OW_MESSAGE_LEVEL_NAT ? OW_LEVEL_NAT : OW_LEVEL_IP,
	                                      .inner = o->inner,
	                                      .hash_limit = o->hash_limit};
	ow_identity_seed(&lane->identity, o->identity_seed);
}

/* Lanes that have no memory yet: those of the configuration, or more, if a peer has asked for more. */
static unsigned expected_lanes(const struct ow_daemon *d, bool *ret_open_ended)
{
	unsigned expected = 0;
	*ret_open_ended = false;
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		unsigned planned = 2 * (s->class_count ? s->class_count : 1), there = 0, granted = 0;
		for (unsigned k = 0; k < d->lane_count; k++) {
			there += d->lanes[k]->segment == s;
			granted += d->lanes[k]->segment == s && d->lanes[k]->granted > 0;
		}
		expected += (there > planned ? there : planned) - granted;
		*ret_open_ended = *ret_open_ended || s->class_count == 0;
	}
	return expected;
}

/* Memory of the budget, and the books. */
static int start_books(struct ow_daemon_lane *lane, const struct ow_retention *retention, size_t *ret_stamps,
                       struct ow_error *err)
{
	struct ow_daemon *d = lane->daemon;
	bool open_ended;
	unsigned expected = expected_lanes(d, &open_ended);
	uint64_t bytes = ow_agree_share(d->memory_left, expected, open_ended);
	*ret_stamps = ow_agree_stamps(bytes, retention);
	if (*ret_stamps == 0)
		return ow_error_set(err, ENOMEM, "the memory budget is used up by %u lanes", d->lane_count - 1);
	struct ow_ledger_options options = {.identity = lane->identity,
	                                    .t0_ns = lane->open.t0_ns,
	                                    .length_ns = lane->open.length_ns,
	                                    .stamps_max = *ret_stamps,
	                                    .open_max = retention->open_max};
	int r = ow_ledger_create(&options, &lane->ledger);
	if (r < 0)
		return ow_error_set(err, -r, "%s", strerror(-r));
	lane->granted = bytes;
	d->memory_left -= bytes;
	return 0;
}

/* All that a lane needs, as open says. On failure the lane is as good as not there: the caller removes it. */
static int start_lane(struct ow_daemon_lane *lane, struct ow_error *err)
{
	struct ow_daemon *d = lane->daemon;
	struct ow_retention retention;
	size_t stamps;
	ow_agree_retention(lane->open.length_ns, lane->peer->ahead_ns, d->speed, &retention);
	set_identity(lane);
	int r = start_exchange(lane, &retention);
	if (r < 0)
		return ow_error_set(err, -r, "%s", strerror(-r));
	r = start_recording(lane, err);
	if (r < 0)
		return r;
	r = start_books(lane, &retention, &stamps, err);
	if (r < 0) {
		ow_recorder_remove_lane(d->recorder, lane->recorded);
		return r;
	}
	lane->state = OW_LANE_RUNNING;
	ow_exchange_connected(lane->exchange, ow_daemon_now_ns(d));
	log_agreed(lane, stamps);
	return 0;
}

/* The point that connects. */

static int64_t lead_ns(const struct ow_daemon_peer *peer)
{
	return (int64_t)((double)(OW_LEAD_NS + 2 * peer->round_trip_ns) * peer->daemon->speed);
}

static bool is_far(const struct ow_daemon_lane *lane, int64_t t0_ns)
{
	int64_t here = ow_daemon_now_ns(lane->daemon), there = here + lane->peer->ahead_ns;
	double lead = (double)t0_ns - (double)(here > there ? here : there);
	return lead > (double)OW_LEAD_MAX_NS * lane->daemon->speed + 2 * (double)lane->open.length_ns;
}

static void send_open(struct ow_daemon_lane *lane)
{
	struct ow_daemon_peer *peer = lane->peer;
	int64_t here = ow_daemon_now_ns(lane->daemon);
	lane->open.t0_ns = ow_agree_t0(here, here + peer->ahead_ns, lead_ns(peer), lane->open.length_ns);
	struct ow_message message = {.type = OW_MESSAGE_OPEN, .lane = lane->wire, .open = lane->open};
	ow_daemon_link_send(peer->link, &message);
}

static int draw_seeds(struct ow_message_open *open)
{
	uint64_t seeds[2];
	if (getrandom(seeds, sizeof seeds, 0) != (ssize_t)sizeof seeds)
		return -EIO;
	open->identity_seed = seeds[0];
	open->synopsis_seed = seeds[1];
	return 0;
}

static void propose(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                    const struct ow_config_class *class, bool sending)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_message_open open;
	ow_agree_propose(segment, class, sending, &open);
	struct ow_daemon_lane *lane =
		draw_seeds(&open) < 0 ? NULL : add_lane(peer, segment, &open, ++d->last_wire, sending);
	if (!lane) {
		ow_daemon_log(d, "%s: no memory for a lane of segment %s", peer->name, segment->name);
		return;
	}
	lane->filter = class->filter;
	send_open(lane);
}

static bool is_there(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *class_name,
                     bool sending)
{
	const struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->segment == segment && lane->sending == sending &&
		    strcmp(lane->open.class_name, class_name) == 0)
			return true;
	}
	return false;
}

void ow_daemon_lanes_propose(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	/* What was proposed, or refused, before the connection was lost. */
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer == peer && lane->state < OW_LANE_RUNNING) {
			lane->state = OW_LANE_PROPOSED;
			send_open(lane);
		}
	}
	for (unsigned i = 0; i < d->config->segment_count && !d->stopping; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		if (strcmp(s->peer, peer->name) != 0)
			continue;
		for (unsigned k = 0; k < 2 * s->class_count; k++) {
			if (!is_there(peer, s, s->classes[k / 2].name, k % 2 == 0))
				propose(peer, s, &s->classes[k / 2], k % 2 == 0);
		}
	}
}

static void refuse(struct ow_daemon_peer *peer, uint32_t wire, const char *why)
{
	struct ow_message message = {.type = OW_MESSAGE_REFUSED, .lane = wire};
	snprintf(message.text.text, sizeof message.text.text, "%.*s", OW_MESSAGE_TEXT - 1, why);
	if (peer->link)
		ow_daemon_link_send(peer->link, &message);
}

static void fail_lane(struct ow_daemon_lane *lane, const char *why)
{
	char name[LANE_TEXT];
	lane_text(lane, name);
	ow_daemon_log(lane->daemon, "%s: %s refused here: %s", lane->peer->name, name, why);
	refuse(lane->peer, lane->wire, why);
}

void ow_daemon_lane_opened(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_opened *opened)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	struct ow_error err;
	if (!lane || lane->state != OW_LANE_PROPOSED)
		return;
	if (opened->t0_ns % lane->open.length_ns != 0 || is_far(lane, opened->t0_ns)) {
		fail_lane(lane, "t0 of OPENED is no multiple of the interval, or too far away");
		lane->state = OW_LANE_REFUSED;
		return;
	}
	if (opened->t0_ns <= ow_daemon_now_ns(lane->daemon)) {
		/* The answer took too long: the beginning would be missing. New seeds make it another lane. */
		if (draw_seeds(&lane->open) == 0)
			send_open(lane);
		return;
	}
	lane->open.t0_ns = opened->t0_ns;
	if (start_lane(lane, &err) < 0) {
		fail_lane(lane, err.text);
		remove_lane(lane);
	}
}

void ow_daemon_lane_refused(struct ow_daemon_peer *peer, uint32_t wire, const char *why)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	char name[LANE_TEXT];
	if (!lane)
		return;
	lane_text(lane, name);
	ow_daemon_log(lane->daemon, "%s: refuses %s: %s", peer->name, name, why);
	if (lane->state == OW_LANE_PROPOSED)
		lane->state = OW_LANE_REFUSED;
	else
		end_lane(lane, "refused");
}

/* The point that is connected to. */

static bool is_same(const struct ow_daemon_lane *lane, const struct ow_message_open *open)
{
	return lane->open.identity_seed == open->identity_seed && lane->open.synopsis_seed == open->synopsis_seed &&
	       lane->open.length_ns == open->length_ns;
}

static void send_opened(const struct ow_daemon_lane *lane)
{
	struct ow_message message = {.type = OW_MESSAGE_OPENED,
	                             .lane = lane->wire,
	                             .opened = {.now_ns = ow_daemon_now_ns(lane->daemon), .t0_ns = lane->open.t0_ns}};
	ow_daemon_link_send(lane->peer->link, &message);
}

/* Notes a lane that the peer wants, if it can be had. */
static int note_lane(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open,
                     struct ow_error *why)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_agreed agreed;
	if (d->stopping)
		return ow_error_set(why, ESHUTDOWN, "this point is about to stop");
	int r = ow_agree_check(d->config, peer->name, open, &agreed, why);
	if (r < 0)
		return r;
	if (is_there(peer, agreed.segment, open->class_name, agreed.sending))
		return ow_error_set(why, EEXIST, "this lane is there already");
	struct ow_daemon_lane *lane = add_lane(peer, agreed.segment, open, wire, agreed.sending);
	if (!lane)
		return ow_error_set(why, ENOMEM, "no more lanes are possible here");
	/* Of a text in the message the lane has its own. */
	lane->filter = agreed.filter == open->filter ? lane->open.filter : agreed.filter;
	lane->state = OW_LANE_ASKED;
	return 0;
}

void ow_daemon_lane_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	struct ow_error why;
	if (lane && lane->state == OW_LANE_RUNNING && is_same(lane, open)) {
		/* OPENED was lost with the connection. */
		send_opened(lane);
		return;
	}
	if (lane)
		remove_lane(lane);
	if (note_lane(peer, wire, open, &why) == 0)
		return;
	ow_daemon_log(peer->daemon, "%s: segment '%s' class '%s' refused: %s", peer->name, open->segment,
	              open->class_name, why.text);
	refuse(peer, wire, why.text);
}

static int accept_lane(struct ow_daemon_lane *lane, struct ow_error *why)
{
	int64_t lead = lead_ns(lane->peer), here = ow_daemon_now_ns(lane->daemon);
	if (lane->open.t0_ns % lane->open.length_ns != 0 || is_far(lane, lane->open.t0_ns))
		return ow_error_set(why, EINVAL, "t0 is no multiple of the interval, or too far away");
	/* A tenth of the lead is time enough to get ready; where that is over, t0 is later. */
	if (lane->open.t0_ns < here + lead / 10)
		lane->open.t0_ns = ow_agree_later(lane->open.t0_ns, here, lead, lane->open.length_ns);
	int r = start_lane(lane, why);
	if (r == 0)
		send_opened(lane);
	return r;
}

void ow_daemon_lanes_accept(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_error why;
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer != peer || lane->state != OW_LANE_ASKED)
			continue;
		if (!peer->link || accept_lane(lane, &why) < 0) {
			if (peer->link)
				fail_lane(lane, why.text);
			remove_lane(lane);
			i--;
		}
	}
}

/* Going on. */

static struct ow_daemon_lane *lane_of_recorded(struct ow_daemon *d, uint32_t recorded)
{
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->ledger && d->lanes[i]->recorded == recorded)
			return d->lanes[i];
	}
	return NULL;
}

static void take_chunk(struct ow_daemon *d, const struct ow_chunk *chunk)
{
	struct ow_daemon_lane *lane = lane_of_recorded(d, chunk->lane);
	if (!lane)
		return;
	/* Without memory the page samples; it says so itself. */
	(void)ow_ledger_add(lane->ledger, chunk);
	int64_t start = lane->open.t0_ns + chunk->interval * lane->open.length_ns;
	if (chunk->count > 0 && start + chunk->stamp[chunk->count - 1].time_ns > d->latest_ns)
		d->latest_ns = start + chunk->stamp[chunk->count - 1].time_ns;
}

/* Frames that the rings have dropped since the last look are charged to the intervals that were open meanwhile. */
static void charge_drops(struct ow_daemon *d, int64_t before_ns, int64_t now_ns)
{
	for (uint32_t s = 0; s < d->config->interface_count; s++) {
		struct ow_recorder_counts counts;
		ow_recorder_counts(d->recorder, s, &counts);
		uint64_t frames = counts.dropped - d->dropped[s];
		d->dropped[s] = counts.dropped;
		for (unsigned i = 0; frames > 0 && i < d->lane_count; i++) {
			struct ow_daemon_lane *lane = d->lanes[i];
			if (!lane->ledger || !(lane->segment->interfaces >> s & 1))
				continue;
			/* Either half may have been in either interval: both shall know. */
			ow_ledger_drops(lane->ledger, before_ns, frames - frames / 2);
			ow_ledger_drops(lane->ledger, now_ns, frames / 2);
		}
	}
}

static void finish_lane(struct ow_daemon_lane *lane)
{
	stop_recording(lane);
	lane->state = OW_LANE_FINISHING;
	ow_exchange_finish(lane->exchange);
}

/* No page after this one. */
static void limit_lane(struct ow_daemon_lane *lane, int64_t last)
{
	if (last < lane->until)
		lane->until = last;
	if (lane->ledger && lane->next > lane->until)
		finish_lane(lane);
}

/* The same, and the peer shall end it there, too: it would wait in vain for what comes after. */
static void announce_end(struct ow_daemon_lane *lane)
{
	struct ow_message message = {
		.type = OW_MESSAGE_BYE, .lane = lane->wire, .interval = lane->until < 0 ? 0 : lane->until + 1};
	snprintf(message.text.text, sizeof message.text.text, "the recording ends");
	if (lane->peer->link && lane->peer->link->ready)
		ow_daemon_link_send(lane->peer->link, &message);
}

void ow_daemon_lane_bye(struct ow_daemon_peer *peer, uint32_t wire, int64_t interval)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	if (lane && lane->exchange)
		limit_lane(lane, interval - 1);
	else if (lane)
		remove_lane(lane);
}

void ow_daemon_lanes_connected(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer != peer || !lane->exchange)
			continue;
		ow_exchange_connected(lane->exchange, ow_daemon_now_ns(d));
		if (lane->until != INT64_MAX)
			announce_end(lane);
	}
}

/* Closed pages go to the exchange. */
static void close_pages(struct ow_daemon_lane *lane, int64_t passed_ns)
{
	struct ow_daemon *d = lane->daemon;
	struct ow_clock_state clock = {.synchronised = false, .error_ns = OW_CLOCK_UNKNOWN};
	struct ow_page *page;
	/* Whoever captured a file knew its clock; we do not. */
	if (!d->files)
		ow_clock_state(&clock);
	if (passed_ns == INT64_MAX)
		passed_ns = lane->open.t0_ns + (lane->until + 1) * lane->open.length_ns;
	while (lane->ledger && lane->next <= lane->until && (page = ow_ledger_next(lane->ledger, passed_ns))) {
		lane->next = page->interval + 1;
		if (page->interval > lane->until)
			ow_page_free(page);
		else /* it takes the page, also when it fails: then the interval is unknown */
			(void)ow_exchange_page(lane->exchange, page, &clock, ow_daemon_now_ns(d));
	}
	if (lane->ledger && lane->next > lane->until)
		finish_lane(lane);
}

/*
 * All files have ended. The interval that they end in is not complete: what the other point has of it may have passed
 * here after the end. So the one before is the last.
 */
static void end_files(struct ow_daemon *d)
{
	if (d->ended_ns != 0)
		return;
	int64_t end = d->latest_ns > d->passed_ns ? d->latest_ns : d->passed_ns;
	d->ended_now_ns = ow_recorder_now_ns(d->recorder);
	if (d->ended_now_ns < end || d->ended_now_ns > INT64_MAX / 2)
		d->ended_now_ns = end;
	d->ended_ns = ow_clock_steady_ns();
	ow_daemon_log(d, "the captures have ended");
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (!lane->exchange) {
			end_lane(lane, "the captures have ended");
			continue;
		}
		lane->until = end < lane->open.t0_ns ? -1 : (end - lane->open.t0_ns) / lane->open.length_ns - 1;
		announce_end(lane);
	}
}

int ow_daemon_lanes_record(struct ow_daemon *d, struct ow_error *err)
{
	struct ow_chunk *chunks = NULL;
	int64_t passed = d->passed_ns, before = d->passed_ns;
	int r = ow_recorder_take(d->recorder, &chunks, &passed, err);
	for (struct ow_chunk *next; chunks; chunks = next) {
		next = chunks->next;
		take_chunk(d, chunks);
		free(chunks);
	}
	if (passed == INT64_MAX)
		end_files(d);
	else if (passed > d->passed_ns)
		d->passed_ns = passed;
	charge_drops(d, before, d->passed_ns);
	for (unsigned i = 0; i < d->lane_count; i++)
		close_pages(d->lanes[i], passed);
	return r;
}

void ow_daemon_lanes_tick(struct ow_daemon *d)
{
	int64_t now = ow_daemon_now_ns(d);
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->exchange)
			ow_exchange_tick(lane->exchange, now);
		if (lane->state == OW_LANE_FINISHING && ow_exchange_done(lane->exchange)) {
			tell_total(lane);
			remove_lane(lane);
		}
	}
}

void ow_daemon_lanes_stop(struct ow_daemon *d, bool at_once)
{
	int64_t now = ow_daemon_now_ns(d);
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->state < OW_LANE_RUNNING || at_once) {
			end_lane(lane, "this point was stopped");
			continue;
		}
		int64_t current = now < lane->open.t0_ns ? -1 : (now - lane->open.t0_ns) / lane->open.length_ns;
		limit_lane(lane, lane->open.length_ns <= OW_QUICK_NS ? current : current - 1);
		announce_end(lane);
	}
}

bool ow_daemon_lanes_done(const struct ow_daemon *d)
{
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->state >= OW_LANE_RUNNING)
			return false;
	}
	return true;
}

void ow_daemon_lanes_free(struct ow_daemon *d)
{
	while (d->lane_count > 0)
		free_lane(d->lanes[--d->lane_count]);
}
