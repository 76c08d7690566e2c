/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the configuration while the point runs. First everything that can fail, then the change, which cannot. Lanes
 * of changed segments end with their interval; the points agree on their replacements when they are gone, with their
 * memory. The connecting point proposes them. The other one cannot propose, so it closes the connection: the peer
 * connects again with proposals, and continuing lanes are not affected.
 */
#include "point/daemon_reload.h"

#include "point/daemon_agree.h"
#include "point/daemon_connections.h"
#include "point/daemon_events.h"
#include "point/daemon_memory.h"
#include "point/daemon_private.h"
#include "point/daemon_record.h"
#include "point/daemon_trust.h"
#include "result/cause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct change {
	unsigned same, changed, added, removed;
};

static bool has_segment(const struct ow_config *config, const char *name)
{
	for (unsigned i = 0; i < config->segment_count; i++) {
		if (strcmp(config->segments[i].name, name) == 0)
			return true;
	}
	return false;
}

static const char *filter_of(const struct ow_config_segment *segment, const char *class_name)
{
	for (unsigned i = 0; i < segment->class_count; i++) {
		if (strcmp(segment->classes[i].name, class_name) == 0)
			return segment->classes[i].filter;
	}
	return NULL;
}

/* No lane refers to the old configuration any more: it continues with the new one, or ends without any. */
static void change_lanes(struct ow_daemon *d, const struct ow_config *next)
{
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		const struct ow_config_segment *now = lane->segment,
					       *then = now ? ow_config_segment_find(next, now->name, now->peer) : NULL;
		bool same = now && then && ow_config_same_segment(now, then);
		lane->segment = same ? then : NULL;
		/* A lane that is to be started was proposed by this point. */
		lane->filter = same ? filter_of(then, lane->open.class_name) : NULL;
		if (!same && lane->until == INT64_MAX)
			ow_daemon_lane_stop(lane, ow_cause_segment_changed);
	}
}

static void renew(struct ow_daemon *d, const char *name)
{
	struct ow_daemon_peer *peer = ow_daemon_peer_find(d, name);
	if (peer)
		peer->renew = true;
}

/* Marks the peers whose segments have changed. */
static void compare(struct ow_daemon *d, const struct ow_config *next, struct change *ret_change)
{
	struct change change = {0};
	for (unsigned i = 0; i < next->segment_count; i++) {
		const struct ow_config_segment *then = &next->segments[i];
		const struct ow_config_segment *now = ow_config_segment_find(d->config, then->name, then->peer);
		bool same = now && ow_config_same_segment(now, then);
		change.same += same;
		bool known = has_segment(d->config, then->name);
		change.changed += known && !same;
		change.added += !known;
		if (!same)
			renew(d, then->peer);
	}
	for (unsigned i = 0; i < d->config->segment_count; i++)
		change.removed += !has_segment(next, d->config->segments[i].name);
	*ret_change = change;
}

static const char *connect_of(const struct ow_config *config, const char *peer, bool *ret_wanted)
{
	*ret_wanted = false;
	for (unsigned i = 0; i < config->segment_count; i++) {
		if (strcmp(config->segments[i].peer, peer) != 0)
			continue;
		*ret_wanted = true;
		return config->segments[i].connect;
	}
	return NULL;
}

/* A peer that is not needed is removed when its lanes have ended; a peer with a new address is connected there. */
static void change_peer(struct ow_daemon_peer *peer, const struct ow_config *next, char *connect)
{
	bool wanted;
	connect_of(next, peer->name, &wanted);
	peer->leaving = !wanted;
	bool moved = wanted && (!connect != !peer->connect || (connect && strcmp(connect, peer->connect) != 0));
	if (wanted) {
		free(peer->connect);
		peer->connect = connect;
	}
	if (!moved)
		return;
	peer->last_failure[0] = 0;
	peer->retry_ns = OW_RETRY_FIRST_NS;
	peer->next_try_ns = 0;
	ow_daemon_peer_hang_up(peer);
	if (peer->link)
		ow_daemon_link_drop(peer->link, "the configuration has another address");
	peer->next_try_ns = 0;
}

/* Existing lanes make room for new ones. */
static void share_memory(struct ow_daemon *d)
{
	unsigned wanted = ow_daemon_lanes_wanted(d->config);
	uint64_t share = d->config->memory / (wanted ? wanted : 1);
	for (unsigned i = 0; i < d->lane_count; i++)
		ow_daemon_lane_shrink(d->lanes[i], share);
}

static void free_texts(char **texts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
}

/* The addresses of all peers, in memory that is allocated now, so that nothing can fail later. */
static char **copy_connects(const struct ow_daemon *d, const struct ow_config *next)
{
	char **texts = calloc(d->peer_count + 1, sizeof *texts);
	for (unsigned i = 0; texts && i < d->peer_count; i++) {
		bool wanted;
		const char *connect = connect_of(next, d->peers[i]->name, &wanted);
		if (connect && !(texts[i] = strdup(connect))) {
			free_texts(texts, d->peer_count);
			return NULL;
		}
	}
	return texts;
}

static void apply(struct ow_daemon *d, const struct ow_config *next, char **connects)
{
	struct change change;
	compare(d, next, &change);
	ow_daemon_groups_retire(d, next);
	change_lanes(d, next);
	d->config = next;
	for (unsigned i = 0; i < d->peer_count; i++)
		change_peer(d->peers[i], next, connects[i]);
	free(connects);
	share_memory(d);
	ow_daemon_log_mixes(d);
	ow_daemon_log(d, OW_EVENT_NOTICE, "%s was read again: segments: %u unchanged, %u changed, %u new, %u removed",
	              next->path, change.same, change.changed, change.added, change.removed);
}

int ow_daemon_reload(struct ow_daemon *d, const struct ow_config *next, struct ow_error *err)
{
	struct ow_daemon_keys *keys = NULL;
	char **connects = NULL;
	int r = d->stopping ? ow_error_set(err, ESHUTDOWN, "the point is about to stop") : 0;
	if (r == 0)
		r = ow_config_check_change(d->config, next, err);
	if (r == 0)
		r = ow_config_check_filters(next, err);
	if (r == 0)
		r = ow_daemon_keys_create(next, &keys, err);
	/* If this fails later, the additional peers are removed by the tick. */
	if (r == 0)
		r = ow_daemon_peers_add(d, next, err);
	if (r == 0 && !(connects = copy_connects(d, next)))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r < 0 || !connects) {
		ow_daemon_keys_release(keys);
		for (unsigned i = 0; i < d->peer_count; i++) {
			bool wanted;
			connect_of(d->config, d->peers[i]->name, &wanted);
			d->peers[i]->leaving = !wanted;
		}
		return r;
	}
	ow_daemon_keys_release(d->keys);
	d->keys = keys;
	d->expiry_ns = 0;
	apply(d, next, connects);
	ow_daemon_links_check(d);
	return 0;
}

/* Afterwards. */

static bool has_ending(const struct ow_daemon *d)
{
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (!d->lanes[i]->segment)
			return true;
	}
	return false;
}

static bool is_ready(const struct ow_daemon_peer *peer)
{
	return peer->link && peer->link->ready && !peer->link->closing;
}

static void agree_anew(struct ow_daemon_peer *peer)
{
	peer->renew = false;
	/* A peer that is not connected gets proposals when it is. */
	if (is_ready(peer) && peer->connect)
		ow_daemon_lanes_propose(peer);
	else if (is_ready(peer))
		ow_daemon_link_drop(peer->link, "the configuration has changed, it shall propose anew");
}

/* Whether the peer was removed. */
static bool see_off(struct ow_daemon_peer *peer)
{
	if (ow_daemon_lanes_any(peer))
		return false;
	if (!peer->link) {
		ow_daemon_gaps_forget(peer);
		ow_daemon_peer_free(peer);
		return true;
	}
	if (!peer->link->closing)
		ow_daemon_link_bye(peer->link, "no segment with this peer any more");
	return false;
}

void ow_daemon_reload_tick(struct ow_daemon *d)
{
	int64_t now = ow_clock_steady_ns();
	bool working = !d->stopping && d->clock.ended_ns == 0, ending = has_ending(d);
	for (unsigned i = 0; i < d->peer_count; i++) {
		struct ow_daemon_peer *peer = d->peers[i];
		if (peer->anew_ns != 0)
			; /* the clock was set: with the next connection */
		else if (peer->renew && !peer->leaving && working && !ending && !ow_daemon_lanes_ending(peer))
			agree_anew(peer);
		/* A lane that was refused, or ended by the peer, may be possible by now. */
		else if (peer->connect && is_ready(peer) && !peer->leaving && working && now >= peer->propose_ns)
			ow_daemon_lanes_propose(peer);
		if (peer->leaving && see_off(peer)) {
			d->peer_count--;
			for (unsigned k = i--; k < d->peer_count; k++)
				d->peers[k] = d->peers[k + 1];
		}
	}
}
