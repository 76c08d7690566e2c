/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/compose.h"
#include "plane/topology.h"

/*
 * The monitoring station. It receives the results of places (plane/route.h) interval by interval and composes the paths
 * with targets from them. When a path breaks its target, the station names the places on it that have changed, with the
 * evidence.
 *
 * Places are identified by name. The station watches the places on the paths of targets from the start, and other
 * places from their first result on. When the network changes, the station finds the paths again. It keeps the history
 * of the places on the old paths and watches them for the hold time, as m-sets do.
 */
struct ow_monitor;

struct ow_monitor_options {
	double false_alarms; /* intervals between two false alarms of the whole network; 1000 if 0 */
	double worth;        /* a slower place is reported if it adds this share of the path's delay; 0.02 if 0 */
	int64_t stale_ns;    /* results that are older than this before the interval are not used for it; 10 s if 0 */
	int64_t hold_ns;     /* how long the places of old paths are kept; 60 s if 0 */
};

#define OW_MONITOR_PLACES_MAX  (1u << 17)
#define OW_MONITOR_TARGETS_MAX (1u << 17)

struct ow_target {
	const char *name;      /* as shown in the verdict */
	const char *from, *to; /* routers */
	/* NULL = all packets; otherwise the places of the class, "F>C/voice", are used where they have results, else
	 * those of all packets. */
	const char *class_name;
	double max_mean_ns, max_loss; /* NAN = no limit: the path is broken if it is worse than usual */
	const char *place;            /* NULL, or the path is this place alone, whatever the network is */
};

int ow_monitor_create(const struct ow_monitor_options *options, struct ow_monitor **ret_monitor);
void ow_monitor_free(struct ow_monitor *monitor);
/* A path to watch; texts are copied. One of the network has no verdict before the next ow_monitor_set_network(). */
int ow_monitor_add_target(struct ow_monitor *monitor, const struct ow_target *target, struct ow_error *err);
/*
 * The network from now on. The topology is not kept. If the network lacks the routers of a target or a path between
 * them, this is not an error: the verdict says so.
 */
int ow_monitor_set_network(struct ow_monitor *monitor, const struct ow_topology *topology, const bool *is_mrouter,
                           int64_t now_ns, struct ow_error *err);
/* Whether the interval is newer than the last one of its length that the place has. */
bool ow_monitor_is_new(const struct ow_monitor *monitor, const char *place, const struct ow_watch_sample *sample);
/*
 * One interval of one place. Ignored if it is older than the last interval of this length of the place. -E2BIG beyond
 * OW_MONITOR_PLACES_MAX names.
 *
 * Intervals of two lengths, seconds and minutes, are watched side by side, because the usual spread is another one. The
 * shorter ones decide where they come continuously and were there before the longer ones showed a change: seconds that
 * are only sent when something is unusual have not seen what is usual.
 */
int ow_monitor_add(struct ow_monitor *monitor, const char *place, const struct ow_watch_sample *sample,
                   struct ow_error *err);

/* -- what is wrong ----------------------------------------------------------------------------------------------------
 */

struct ow_finding {
	const char *place;
	double share;     /* share of the path's packets that pass the place; 0 outside of a verdict */
	bool delay, loss; /* what has changed */
	double usual_ns, spread_ns, now_ns; /* mean delay; NAN while not known */
	double usual_loss, now_loss;
	double whole_flows; /* share of what is lost now that was all of its flow from then on; NAN if nothing is lost */
	double z;           /* of the last interval; the larger one of delay and loss */
	double strength;    /* cumulative sum divided by its threshold; the larger one of delay and loss */
	int64_t since_ns;
	uint32_t intervals; /* how many intervals the change has lasted */
	bool active;
	int64_t length_ns; /* of the intervals that show it */
};

enum ow_path_state {
	OW_PATH_OK,
	OW_PATH_BROKEN,  /* exceeds its target, or worse than usual if it has none */
	OW_PATH_UNKNOWN, /* not known; `cause` says why */
};

struct ow_monitor_verdict {
	const struct ow_target *target;
	enum ow_path_state state;
	struct ow_composed composed;
	char cause[320];                  /* one line: what is broken, or why the state is not known */
	const struct ow_finding *finding; /* places of the path that have changed, the most important first */
	uint32_t findings;
	bool adopted; /* a part has changed so long ago that this is its usual state now */
};

/*
 * Verdicts on all targets, from the last results of each place as of the interval that contains now_ns or ends with it.
 * Valid until the next call.
 */
int ow_monitor_judge(struct ow_monitor *monitor, int64_t now_ns, const struct ow_monitor_verdict **ret_verdicts,
                     uint32_t *ret_count, struct ow_error *err);
/*
 * The hops (and insides of routers) that explain these places, "E>D" or "F[A>C]". Each of them lies on changed places
 * that no other hop explains, and on no unchanged place. The search is greedy and finds few hops. ret_hops: the names,
 * separated by spaces; empty if there is none.
 */
int ow_monitor_locate(struct ow_monitor *monitor, int64_t now_ns, char *ret_hops, size_t size, struct ow_error *err);

struct ow_monitor_count {
	uint32_t places, learning, fresh, changed, old; /* old: places of paths that no longer exist */
	double threshold;
};
void ow_monitor_count(const struct ow_monitor *monitor, int64_t now_ns, struct ow_monitor_count *ret_count);
