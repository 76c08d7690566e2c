/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the data that metrics_render.c writes: for each lane, sums of final results and the last one. */
#include "report/metrics.h"

#include "base/utf8.h"
#include "report/metrics_parts.h"
#include "result/fields.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The value of a label: quotes and backslashes are escaped. Bytes that are not UTF-8 would make the whole page invalid:
 * these and unprintable characters become '?'.
 */
static void escape(const char *text, char *ret_label, size_t size)
{
	size_t used = 0;
	while (*text) {
		uint32_t code;
		size_t length = ow_utf8_next(text, &code);
		bool keep = length && ow_utf8_printable(code);
		bool quoted = *text == '"' || *text == '\\';
		size_t take = keep ? length : 1;
		if (used + take + quoted >= size)
			break;
		if (quoted)
			ret_label[used++] = '\\';
		if (keep)
			memcpy(ret_label + used, text, length);
		else
			ret_label[used] = '?';
		used += take;
		text += length ? length : 1;
	}
	ret_label[used] = 0;
}

int ow_metrics_create(const char *point, struct ow_metrics **ret_metrics)
{
	struct ow_metrics *metrics = calloc(1, sizeof *metrics);
	if (!metrics)
		return -ENOMEM;
	escape(point, metrics->point, sizeof metrics->point);
	snprintf(metrics->name, sizeof metrics->name, "%s", point);
	metrics->certificate_expiry_s = INT64_MAX;
	*ret_metrics = metrics;
	return 0;
}

void ow_metrics_free(struct ow_metrics *metrics)
{
	if (!metrics)
		return;
	for (unsigned i = 0; i < metrics->lanes; i++)
		free(metrics->lane[i]);
	for (unsigned i = 0; i < metrics->peers; i++)
		free(metrics->peer[i]);
	free(metrics);
}

/* Lanes. */

static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum) || *sum == OW_RESULT_NOT_COUNTED)
		*sum = OW_RESULT_NOT_COUNTED - 1;
}

static struct ow_metrics_peer *peer_of(struct ow_metrics *metrics, const char *name)
{
	for (unsigned i = 0; i < metrics->peers; i++) {
		if (strcmp(metrics->peer[i]->name, name) == 0)
			return metrics->peer[i];
	}
	struct ow_metrics_peer *peer = metrics->peers < OW_METRICS_PEERS ? calloc(1, sizeof *peer) : NULL;
	if (!peer)
		return &metrics->others;
	snprintf(peer->name, sizeof peer->name, "%s", name);
	escape(name, peer->label, sizeof peer->label);
	metrics->peer[metrics->peers++] = peer;
	return peer;
}

/* The peer at the other end of a lane; of several ("b1+b2"), the first. */
static struct ow_metrics_peer *peer_of_lane(struct ow_metrics *metrics, const struct ow_interval_result *r)
{
	char name[OW_RESULT_NAME];
	const char *peer = strcmp(r->from, metrics->name) == 0 ? r->to : r->from;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(peer, "+"), peer);
	return peer_of(metrics, name);
}

static const struct ow_metrics_peer *largest_peer(const struct ow_metrics *metrics)
{
	const struct ow_metrics_peer *largest = &metrics->others;
	for (unsigned i = 0; i < metrics->peers; i++) {
		if (metrics->peer[i]->lanes > largest->lanes)
			largest = metrics->peer[i];
	}
	return largest;
}

/* The lane with a peer that has been silent for the longest time; metrics->lanes if there is none. */
static unsigned quietest(const struct ow_metrics *metrics, const struct ow_metrics_peer *peer)
{
	unsigned found = metrics->lanes;
	for (unsigned i = 0; i < metrics->lanes; i++) {
		if (metrics->lane[i]->peer == peer &&
		    (found == metrics->lanes || metrics->lane[i]->heard_ns < metrics->lane[found]->heard_ns))
			found = i;
	}
	return found;
}

/*
 * All slots are in use, and peers choose names of classes. A peer with fewer lanes than another takes a slot of that
 * one; the peer with most lanes takes a slot of its own lanes that have ended. Otherwise there is no slot.
 */
static bool make_room(struct ow_metrics *metrics, const struct ow_metrics_peer *peer, int64_t steady_ns)
{
	const struct ow_metrics_peer *largest = largest_peer(metrics);
	bool is_poorer = peer->lanes + 1 < largest->lanes;
	unsigned out = quietest(metrics, is_poorer ? largest : peer);
	if (out == metrics->lanes || (!is_poorer && steady_ns - metrics->lane[out]->heard_ns < OW_METRICS_OVER_NS))
		return false;
	metrics->lane[out]->peer->lanes--;
	free(metrics->lane[out]);
	metrics->lane[out] = metrics->lane[--metrics->lanes];
	add(&metrics->dropped, 1);
	return true;
}

static struct ow_metrics_lane *add_lane(struct ow_metrics *metrics, const struct ow_interval_result *result,
                                        int64_t steady_ns)
{
	char segment[2 * OW_RESULT_NAME], class_name[2 * OW_RESULT_NAME];
	struct ow_metrics_peer *peer = peer_of_lane(metrics, result);
	if (metrics->lanes == OW_METRICS_LANES && !make_room(metrics, peer, steady_ns)) {
		add(&peer->left_out, 1);
		return NULL;
	}
	struct ow_metrics_lane *lane = calloc(1, sizeof *lane + ow_field_count * sizeof *lane->count);
	if (!lane)
		return NULL;
	for (size_t i = 0; i < ow_field_count; i++)
		lane->count[i] = ow_fields[i].flags & OW_FIELD_NOT_COUNTED ? OW_RESULT_NOT_COUNTED : 0;
	escape(result->segment, segment, sizeof segment);
	escape(result->class_name, class_name, sizeof class_name);
	escape(result->from, lane->from, sizeof lane->from);
	escape(result->to, lane->to, sizeof lane->to);
	snprintf(lane->labels, sizeof lane->labels, "segment=\"%s\",class=\"%s\",from=\"%s\",to=\"%s\"", segment,
	         class_name, lane->from, lane->to);
	lane->last = *result;
	lane->measured_end_ns = lane->ready_ns = lane->fresh_ns = INT64_MIN;
	lane->peer = peer;
	peer->lanes++;
	metrics->lane[metrics->lanes++] = lane;
	return lane;
}

static struct ow_metrics_lane *lane_of(struct ow_metrics *metrics, const struct ow_interval_result *result,
                                       int64_t steady_ns)
{
	for (unsigned i = 0; i < metrics->lanes; i++) {
		if (ow_result_is_lane(&metrics->lane[i]->last, result))
			return metrics->lane[i];
	}
	return add_lane(metrics, result, steady_ns);
}

/* Results. */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What a field adds to its sum; OW_RESULT_NOT_COUNTED: nothing. A duration below 0 is that of a clock that was set. */
static uint64_t more_of(const struct ow_field *field, const struct ow_interval_result *r)
{
	const void *member = ow_field_of(field, r);
	if (r->status == OW_RESULT_UNKNOWN && field->type == OW_FIELD_COUNT && !(field->flags & OW_FIELD_ALWAYS))
		return OW_RESULT_NOT_COUNTED;
	if (field->metric.kind == OW_METRIC_STAGE)
		return *(const int64_t *)member > 0 ? *(const uint64_t *)member : 0;
	return field->type == OW_FIELD_COUNT ? *(const uint64_t *)member : *(const uint32_t *)member;
}

static void add_counts(struct ow_metrics_lane *lane, const struct ow_interval_result *result)
{
	struct ow_interval_result whole = *result;
	whole.sent = larger(result->total_sent, result->sent);
	whole.received = larger(result->total_received, result->received);
	for (size_t i = 0; i < ow_field_count; i++) {
		bool summed =
			ow_fields[i].metric.kind == OW_METRIC_COUNTER || ow_fields[i].metric.kind == OW_METRIC_STAGE;
		uint64_t more = summed ? more_of(&ow_fields[i], &whole) : OW_RESULT_NOT_COUNTED;
		if (more == OW_RESULT_NOT_COUNTED)
			continue;
		if (lane->count[i] == OW_RESULT_NOT_COUNTED)
			lane->count[i] = 0;
		add(&lane->count[i], more);
	}
}

static void add_delays(struct ow_metrics_lane *lane, const struct ow_interval_result *r)
{
	uint64_t packets = 0;
	for (unsigned b = 0; b <= OW_BUCKETS; b++)
		packets += r->delay_bucket[b];
	if (!packets || r->mean_ns.status == OW_VALUE_NONE)
		return;
	for (unsigned b = 0; b <= OW_BUCKETS; b++)
		add(&lane->bucket[b], r->delay_bucket[b]);
	/* A negative mean comes from the clocks: it would decrease the sum, which is a counter. */
	if (r->mean_ns.value > 0)
		lane->delay_sum_ns += r->mean_ns.value * (double)packets;
	lane->has_buckets = true;
}

static void add_final(struct ow_metrics_lane *lane, const struct ow_interval_result *r)
{
	add(&lane->intervals[r->status], 1);
	add(&lane->ring_drops[0], r->ring_drops_from);
	add(&lane->ring_drops[1], r->ring_drops_to);
	add_counts(lane, r);
	lane->last = *r;
	lane->has_last = true;
	if (r->status == OW_RESULT_UNKNOWN)
		return;
	add(&lane->compared, r->sent > r->pending ? r->sent - r->pending : 0);
	add_delays(lane, r);
	if (r->start_ns < INT64_MAX - r->length_ns)
		lane->measured_end_ns = r->start_ns + r->length_ns;
}

void ow_metrics_add(struct ow_metrics *metrics, const struct ow_interval_result *result, int64_t steady_ns)
{
	struct ow_metrics_lane *lane = lane_of(metrics, result, steady_ns);
	if (!lane)
		return;
	lane->heard_ns = steady_ns;
	if (result->status != OW_RESULT_UNKNOWN) {
		lane->fresh_ns = steady_ns;
		if (!result->final)
			lane->ready_ns = result->cost.ready_ns;
	}
	if (result->final)
		add_final(lane, result);
	else if (!lane->has_last)
		lane->last = *result; /* for its length */
}

/* The rest. */

void ow_metrics_peer(struct ow_metrics *metrics, const char *name, bool connected)
{
	struct ow_metrics_peer *peer = peer_of(metrics, name);
	add(&peer->connections, connected && !peer->connected);
	peer->connected = connected;
}

void ow_metrics_refused(struct ow_metrics *metrics, enum ow_metrics_refused why)
{
	add(&metrics->refused[why], 1);
}

void ow_metrics_message(struct ow_metrics *metrics, const char *name)
{
	add(&peer_of(metrics, name)->messages_refused, 1);
}

void ow_metrics_store(struct ow_metrics *metrics, uint64_t lost, uint64_t waiting)
{
	metrics->store_lost = larger(metrics->store_lost, lost);
	metrics->store_waiting = waiting;
}

void ow_metrics_certificate(struct ow_metrics *metrics, int64_t expiry_s)
{
	metrics->certificate_expiry_s = expiry_s;
}

bool ow_metrics_healthy(const struct ow_metrics *metrics, int64_t steady_ns, char why[OW_METRICS_WHY])
{
	int64_t freshest = INT64_MIN;
	for (unsigned i = 0; i < metrics->lanes; i++) {
		const struct ow_metrics_lane *lane = metrics->lane[i];
		if (lane->fresh_ns == INT64_MIN)
			continue;
		freshest = lane->fresh_ns > freshest ? lane->fresh_ns : freshest;
		if (steady_ns - lane->fresh_ns <= 3 * lane->last.length_ns + OW_METRICS_GRACE_NS) {
			snprintf(why, OW_METRICS_WHY, "measuring");
			return true;
		}
	}
	if (freshest == INT64_MIN)
		snprintf(why, OW_METRICS_WHY, "no interval has been measured yet");
	else
		snprintf(why, OW_METRICS_WHY, "no interval has been measured for %.0f s",
		         (double)(steady_ns - freshest) / 1e9);
	return false;
}
