/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a lane: what it needs to run, its outputs, and its end. */
#include "point/daemon_lane.h"

#include "base/time.h"
#include "capture/filter.h"
#include "config/memory_budget.h"
#include "packet/packet_filter.h"
#include "point/daemon_events.h"
#include "point/daemon_memory.h"
#include "point/daemon_private.h"
#include "result/cause.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ow_daemon_lane *ow_daemon_lane_of_wire(struct ow_daemon_peer *peer, uint32_t wire)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->peer == peer && d->lanes[i]->wire == wire)
			return d->lanes[i];
	}
	return NULL;
}

int64_t ow_daemon_lane_now_ns(const struct ow_daemon_lane *lane)
{
	return ow_point_clock_now_ns(&lane->daemon->clock) - lane->stepped_ns;
}

enum ow_variant ow_daemon_lane_variant(const struct ow_daemon_lane *lane)
{
	const struct ow_message_open *o = &lane->open;
	return ow_identity_variant(o->level == OW_MESSAGE_LEVEL_NAT ? OW_LEVEL_NAT : OW_LEVEL_IP, o->inner,
	                           o->any_ip_id);
}

void ow_daemon_lane_unsurvey(struct ow_daemon_lane *lane)
{
	struct ow_daemon_survey *s = &lane->survey;
	ow_identity_survey_free(s->running);
	ow_survey_samples_done(&s->here);
	ow_survey_samples_done(&s->there);
	*s = (struct ow_daemon_survey){.asked_ns = s->asked_ns};
}

void ow_daemon_lane_deafen(struct ow_daemon_lane *lane)
{
	ow_daemon_lane_unsurvey(lane);
	ow_lane_log_free(lane->log);
	lane->log = NULL;
}

/* -- clocks */

static enum ow_direction direction_of(const struct ow_daemon_lane *lane)
{
	bool first = strcmp(lane->daemon->config->point, lane->peer->name) < 0;
	return first == lane->sending ? OW_A_TO_B : OW_B_TO_A;
}

/* The lane of the same class that goes the other way. */
static const struct ow_daemon_lane *lane_back(const struct ow_daemon_lane *lane)
{
	const struct ow_daemon *d = lane->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *other = d->lanes[i];
		if (other->peer == lane->peer && other->sending != lane->sending && other->until == INT64_MAX &&
		    strcmp(other->open.segment, lane->open.segment) == 0 &&
		    strcmp(other->open.class_name, lane->open.class_name) == 0)
			return other;
	}
	return NULL;
}

static int start_clock(struct ow_daemon_lane *lane)
{
	const struct ow_daemon_lane *back = lane_back(lane);
	if (back && back->clock) {
		lane->clock = back->clock;
		return 0;
	}
	struct ow_segment_clock_options options = {.mode = lane->segment->clock,
	                                           .length_ns = lane->open.length_ns,
	                                           .same = lane->peer->same_clock,
	                                           .files = lane->daemon->clock.files};
	return ow_segment_clock_create(&options, &lane->clock);
}

static void free_clock(struct ow_daemon_lane *lane)
{
	const struct ow_daemon *d = lane->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i] != lane && d->lanes[i]->clock == lane->clock)
			return;
	}
	ow_segment_clock_free(lane->clock);
}

/* A lane of the same two points that knows their clocks, where this one may not; or NULL. */
static const struct ow_segment_clock *other_clock(const struct ow_daemon_lane *lane, int64_t at_ns)
{
	const struct ow_daemon *d = lane->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *other = d->lanes[i];
		if (other->peer == lane->peer && other->clock && other->clock != lane->clock &&
		    ow_segment_clock_usable(other->clock, at_ns))
			return other->clock;
	}
	return NULL;
}

static void log_clock_event(const struct ow_daemon_lane *lane)
{
	char name[OW_LANE_TEXT], text[OW_CLOCK_EVENT_TEXT];
	ow_daemon_lane_text(lane, name);
	ow_segment_clock_event(lane->clock, text);
	ow_daemon_log(lane->daemon, OW_EVENT_NOTICE, "%s: %s: %s, as packets show", lane->peer->name, name, text);
}

static void on_clock(void *arg, struct ow_exchange_clock *clock, struct ow_interval_result *result)
{
	struct ow_daemon_lane *lane = arg;
	if (ow_segment_clock_correct(lane->clock, direction_of(lane), clock->samples, clock->count,
	                             other_clock(lane, result->start_ns), result, &clock->floor))
		log_clock_event(lane);
}

static void on_floor(void *arg, const struct ow_clock_floor *floor, const struct ow_interval_result *result)
{
	struct ow_daemon_lane *lane = arg;
	if (ow_segment_clock_told(lane->clock, direction_of(lane), floor, result))
		log_clock_event(lane);
}

static void free_lane(struct ow_daemon_lane *lane)
{
	ow_daemon_lane_deafen(lane);
	ow_exchange_free(lane->exchange);
	free_clock(lane);
	lane->daemon->memory_left += lane->granted;
	free(lane);
}

void ow_daemon_lane_remove(struct ow_daemon_lane *lane)
{
	struct ow_daemon *d = lane->daemon;
	unsigned i = 0;
	while (d->lanes[i] != lane)
		i++;
	for (d->lane_count--; i < d->lane_count; i++)
		d->lanes[i] = d->lanes[i + 1];
	free_lane(lane);
}

struct ow_daemon_lane *ow_daemon_lane_add(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
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
	                                .identity_seed = open->identity_seed,
	                                .synopsis_seed = open->synopsis_seed,
	                                .wire = wire,
	                                .sending = sending,
	                                .until = INT64_MAX};
	memcpy(lane->why, ow_cause_recording_ended, sizeof ow_cause_recording_ended);
	d->lanes[d->lane_count++] = lane;
	if (wire > peer->wire_max)
		peer->wire_max = wire;
	return lane;
}

void ow_daemon_lane_text(const struct ow_daemon_lane *lane, char text[OW_LANE_TEXT])
{
	snprintf(text, OW_LANE_TEXT, "%s/%s %s %s", lane->open.segment, lane->open.class_name,
	         lane->sending ? "to" : "from", lane->peer->name);
}

static void log_agreed(const struct ow_daemon_lane *lane, size_t sightings)
{
	char name[OW_LANE_TEXT], length[OW_DURATION_TEXT], when[40] = "", identity[OW_VARIANT_TEXT];
	time_t start = (time_t)(lane->open.t0_ns / OW_NS_PER_S);
	struct tm tm;
	ow_daemon_lane_text(lane, name);
	ow_duration_text((double)lane->open.length_ns, length);
	if (gmtime_r(&start, &tm))
		strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	ow_variant_text(ow_daemon_lane_variant(lane), identity);
	ow_daemon_peer_log(lane->peer, OW_EVENT_INFO,
	                   "agreed on %s: intervals of %s from %s.%03dZ, %s, identity %s, up to %zu packets each", name,
	                   length, when, (int)(lane->open.t0_ns % OW_NS_PER_S / OW_NS_PER_MS),
	                   lane->open.method == OW_MESSAGE_RDA ? "rda" : "fold", identity, sightings);
	const char *caution = lane->sending && lane->filter ? ow_packet_filter_caution(lane->filter) : NULL;
	if (caution)
		ow_daemon_peer_log(lane->peer, OW_EVENT_WARNING, "%s: %s", name, caution);
}

/* The run of a lane is over: reports its sum. */
void ow_daemon_lane_total(struct ow_daemon_lane *lane)
{
	struct ow_interval_result total;
	if (!lane->exchange || lane->next == 0)
		return;
	ow_exchange_total(lane->exchange, &total);
	ow_daemon_total(lane->daemon, &total);
}

/* Gives up everything that is not answered, and the lane. */
void ow_daemon_lane_end(struct ow_daemon_lane *lane, const char *cause)
{
	if (lane->exchange) {
		if (lane->until == INT64_MAX)
			ow_daemon_gap_open(lane, lane->next, cause);
		ow_exchange_abandon(lane->exchange, cause, ow_daemon_lane_now_ns(lane));
		ow_daemon_lane_total(lane);
	}
	ow_daemon_lane_remove(lane);
}

void ow_daemon_lanes_end(struct ow_daemon_peer *peer, const char *cause_of_peer)
{
	struct ow_daemon *d = peer->daemon;
	char cause[OW_RESULT_NAME + 32];
	snprintf(cause, sizeof cause, cause_of_peer, peer->name);
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (d->lanes[i]->peer == peer)
			ow_daemon_lane_end(d->lanes[i], cause);
	}
}

void ow_daemon_lanes_free(struct ow_daemon *d)
{
	while (d->lane_count > 0)
		free_lane(d->lanes[--d->lane_count]);
}

bool ow_daemon_lanes_any(const struct ow_daemon_peer *peer)
{
	const struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->peer == peer)
			return true;
	}
	return false;
}

/* Whether there are lanes that a reload has ended and that still have their memory. */
bool ow_daemon_lanes_ending(const struct ow_daemon_peer *peer)
{
	const struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->peer == peer && d->lanes[i]->until != INT64_MAX)
			return true;
	}
	return false;
}

/* Sinks of the exchange. */

static void send_frame(void *arg, const uint8_t *frame, size_t size)
{
	struct ow_daemon_lane *lane = arg;
	/* Without a connection the message is lost: the exchange sends unanswered messages again. */
	if (lane->peer->link && lane->peer->link->ready)
		ow_daemon_link_send_frame(lane->peer->link, frame, size);
}

/*
 * If both points have at least this many packets and none matches, it is probably a configuration error, which is
 * logged.
 */
#define STRANGE_MIN 20

static void judge(struct ow_daemon_lane *lane, const struct ow_interval_result *r)
{
	char name[OW_LANE_TEXT];
	if (lane->judged || !r->final)
		return;
	if (r->status == OW_RESULT_UNKNOWN) {
		enum ow_cause cause = ow_cause_of(r->cause);
		lane->judged = cause == OW_CAUSE_NOTHING_SHARED || cause == OW_CAUSE_NOTHING_ARRIVES;
		ow_daemon_lane_text(lane, name);
		if (lane->judged)
			ow_daemon_log(lane->daemon, OW_EVENT_WARNING, "%s: %s: %s", lane->peer->name, name, r->cause);
		return;
	}
	bool strange = r->sent >= STRANGE_MIN && r->received >= STRANGE_MIN;
	lane->judged = strange || r->matched + r->late > 0;
	if (!strange || r->matched + r->late > 0)
		return;
	ow_daemon_lane_text(lane, name);
	ow_daemon_log(lane->daemon, OW_EVENT_WARNING,
	              "%s: %s: none of %" PRIu64 " packets sent and %" PRIu64 " received is the same%s",
	              lane->peer->name, name, r->sent, r->received,
	              lane->open.level == OW_MESSAGE_LEVEL_NAT
	                      ? ": check 'facing' and the interfaces"
	                      : ": check for a NAT (identity: nat) or a tunnel (inner: true)");
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	struct ow_daemon_lane *lane = arg;
	judge(lane, result);
	uint64_t most = result->total_sent > result->total_received ? result->total_sent : result->total_received;
	lane->rate = (double)most / (double)result->length_ns;
	lane->doubtful |= ow_identity_doubtful(result);
	ow_daemon_result(lane->daemon, result);
}

static void on_compared(void *arg, const struct ow_interval_results_input *input, const uint64_t *name)
{
	struct ow_daemon_lane *lane = arg;
	ow_daemon_group_compared(lane->group, lane->peer->name, ow_daemon_lane_variant(lane), input, name);
}

static void on_event(void *arg, const struct ow_flow_event *event)
{
	struct ow_daemon_lane *lane = arg;
	char name[OW_LANE_TEXT], text[OW_FLOW_EVENT_TEXT];
	ow_daemon_lane_text(lane, name);
	ow_daemon_peer_log(lane->peer, ow_flow_event_is_warning(event) ? OW_EVENT_WARNING : OW_EVENT_NOTICE, "%s: %s",
	                   name, ow_flow_event_text(event, text));
	ow_daemon_flow_event(lane->daemon, event);
}

static void set_shift(struct ow_daemon_lane *lane, unsigned sample_shift)
{
	/* Not finer than the agreement. */
	unsigned shift = sample_shift > lane->open.sample_shift ? sample_shift : lane->open.sample_shift;
	if (lane->log)
		ow_recorder_set_shift(lane->daemon->recorder, lane->log->lane, shift);
}

/* All lanes of a group have the same sample. */
static void on_shift(void *arg, unsigned sample_shift)
{
	struct ow_daemon_lane *lane = arg;
	const struct ow_daemon *d = lane->daemon;
	set_shift(lane, sample_shift);
	for (unsigned i = 0; lane->group && i < d->lane_count; i++) {
		if (d->lanes[i]->group == lane->group && d->lanes[i] != lane)
			set_shift(d->lanes[i], sample_shift);
	}
}

static void on_cut(void *arg, int64_t shift_ns)
{
	struct ow_daemon_lane *lane = arg;
	if (lane->log)
		ow_lane_log_shift(lane->log, shift_ns, ow_daemon_lane_now_ns(lane), lane->next);
}

/* Starting. */

/* Intervals of the receiver are shifted by at most this, and half of the waiting time. */
#define SHIFT_MAX_NS (10 * OW_NS_PER_S)

/* Memory for synopses of the other point: two of the largest folds, or as much as the lane's packets. */
#define SYNOPSES_LEAST ((size_t)4 << 20)

static int start_exchange(struct ow_daemon_lane *lane, const struct ow_retention *retention)
{
	const struct ow_message_open *o = &lane->open;
	const char *here = lane->daemon->config->point, *there = lane->peer->name;
	struct ow_exchange_options options = {
		.lane = lane->wire,
		.sending = lane->sending,
		.method = o->method == OW_MESSAGE_RDA ? OW_METHOD_RDA : OW_METHOD_FOLD,
		.identity = lane->identity,
		.seed = lane->synopsis_seed,
		.t0_ns = o->t0_ns,
		.length_ns = o->length_ns,
		.horizon = o->horizon,
		.patience_ns = retention->patience_ns,
		.notice_ns = retention->notice_ns,
		.intervals_max = retention->intervals_max,
		.buckets = o->buckets,
		.sample = o->sample,
		.shared = o->shared,
		.shift_max_ns = lane->daemon->clock.files       ? 0
	                        : o->wait_ns / 2 < SHIFT_MAX_NS ? o->wait_ns / 2
	                                                        : SHIFT_MAX_NS,
		.exact = o->exact,
		.one_of_several = lane->group != NULL,
		.synopses_max = SYNOPSES_LEAST,
		.link_filter = (lane->filter && ow_filter_names_link(lane->filter)) || ow_filter_names_link(o->filter),
	};
	uint64_t part = lane->daemon->config->memory / (ow_daemon_lanes_wanted(lane->daemon->config) + 1);
	if (part > options.synopses_max)
		options.synopses_max = part;
	snprintf(options.segment, sizeof options.segment, "%s", o->segment);
	snprintf(options.class_name, sizeof options.class_name, "%s", o->class_name);
	snprintf(options.from, sizeof options.from, "%s", lane->sending ? here : there);
	snprintf(options.to, sizeof options.to, "%s", lane->sending ? there : here);
	/* What happens to flows is told of all peers together. */
	struct ow_exchange_sinks sinks = {.send = send_frame,
	                                  .result = on_result,
	                                  .compared = lane->group ? on_compared : NULL,
	                                  .event = lane->group ? NULL : on_event,
	                                  .shift = on_shift,
	                                  .cut = on_cut,
	                                  .clock = on_clock,
	                                  .floor = on_floor,
	                                  .arg = lane};
	return ow_exchange_create(&options, &sinks, &lane->exchange);
}

/* Packets to the peer are outgoing here (or incoming, if this side of the router faces away from the peer). */
static enum ow_heading heading_of(const struct ow_config_segment *segment, bool sending)
{
	if (segment->to_peer)
		return OW_HEADING_UNKNOWN;
	return sending == (segment->facing == OW_FACING_AWAY) ? OW_HEADING_IN : OW_HEADING_OUT;
}

int ow_daemon_lane_session(const struct ow_daemon_lane *lane, char *text, size_t size)
{
	const struct ow_daemon_link *link = lane->peer->link;
	*text = 0;
	/* The proposer's filter decides, so that both points do the same. */
	if (lane->open.filter[0] || !link || lane->daemon->clock.files)
		return 0;
	return ow_session_filter(ow_session_fd(link->session), link->accepted, text, size);
}

void ow_daemon_lane_options(const struct ow_daemon_lane *lane, struct ow_lane_options *ret_options)
{
	*ret_options = (struct ow_lane_options){
		.identity = lane->identity,
		.sources = lane->segment->interfaces,
		.heading = heading_of(lane->segment, lane->sending),
		.filter = lane->filter,
		.without = lane->session_filter[0] ? lane->session_filter : NULL,
		.way = lane->segment->to_peer,
		.way_not = !lane->sending,
		.t0_ns = lane->open.t0_ns,
		.length_ns = lane->open.length_ns,
		.sample_shift = lane->open.sample_shift,
		.flows = lane->open.shared,
		.flow_seed = lane->synopsis_seed,
	};
}

static int start_recording(struct ow_daemon_lane *lane, size_t sightings_max, size_t open_max, struct ow_error *err)
{
	struct ow_lane_options options;
	int r = ow_daemon_lane_session(lane, lane->session_filter, sizeof lane->session_filter);
	if (r < 0)
		return ow_error_set(err, -r, "cannot leave the session out: %s", strerror(-r));
	/* A segment that was added by a reload. */
	const char *name = ow_recorder_undirected(lane->daemon->recorder, lane->segment->interfaces);
	if (name && !lane->segment->to_peer)
		return ow_error_set(err, EINVAL, "%s does not show the direction of packets: give to_peer", name);
	ow_daemon_lane_options(lane, &options);
	return ow_lane_log_create(&lane->daemon->logs, &options, sightings_max, open_max, &lane->log, err);
}

static void set_identity(struct ow_daemon_lane *lane)
{
	const struct ow_message_open *o = &lane->open;
	lane->identity = (struct ow_identity){.level = o->level == OW_MESSAGE_LEVEL_NAT ? OW_LEVEL_NAT : OW_LEVEL_IP,
	                                      .inner = o->inner,
	                                      .any_ip_id = o->any_ip_id,
	                                      .tcp_headers = o->tcp_headers,
	                                      .pieces = o->pieces,
	                                      .hash_limit = o->hash_limit};
	ow_identity_seed(&lane->identity, lane->identity_seed);
}

/* Starts everything that a lane needs, by `open`. On failure the caller removes the lane. */
int ow_daemon_lane_start(struct ow_daemon_lane *lane, struct ow_error *err)
{
	struct ow_daemon *d = lane->daemon;
	struct ow_retention retention;
	uint64_t bytes;
	size_t sightings;
	ow_agree_retention(lane->open.length_ns, lane->peer->ahead_ns, d->clock.speed, &retention);
	set_identity(lane);
	int r = start_clock(lane);
	if (r == 0)
		r = start_exchange(lane, &retention);
	if (r < 0)
		return ow_error_set(err, -r, "%s", strerror(-r));
	/* Memory first, because compiling the filter for each interface may take time. */
	r = ow_daemon_memory_share(lane, &retention, &bytes, &sightings, err);
	if (r < 0)
		return r;
	lane->granted = bytes;
	d->memory_left -= bytes;
	ow_exchange_retain(lane->exchange, ow_agree_retained(bytes, &retention));
	r = start_recording(lane, sightings, retention.open_max, err);
	if (r < 0)
		return r;
	lane->state = OW_LANE_RUNNING;
	lane->agreed_ns = ow_clock_steady_ns();
	ow_exchange_connected(lane->exchange, ow_daemon_lane_now_ns(lane));
	log_agreed(lane, sightings);
	return 0;
}

void ow_daemon_lane_shrink(struct ow_daemon_lane *lane, uint64_t bytes)
{
	struct ow_retention retention;
	ow_agree_retention(lane->open.length_ns, lane->peer->ahead_ns, lane->daemon->clock.speed, &retention);
	size_t sightings = ow_agree_stamps(bytes, &retention);
	if (!lane->log || sightings == 0 || bytes >= lane->granted)
		return;
	ow_interval_log_set_max(lane->log->packets, sightings);
	ow_exchange_retain(lane->exchange, ow_agree_retained(bytes, &retention));
	lane->daemon->memory_left += lane->granted - bytes;
	lane->granted = bytes;
}
