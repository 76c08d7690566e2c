/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_MONITOR_H
#define OW_PLANE_MONITOR_H

#include "plane/compose.h"
#include "plane/topology.h"

/*
 * The monitoring station: results of places (plane/route.h) come in interval by interval; paths with targets are
 * composed from them; when a path breaks its target, the places on it that have changed are named with the evidence.
 *
 * Places are known by name. Those on the paths of targets are watched from the start, others as soon as a result names
 * them. When the network changes, paths are found anew; places of the old paths keep their history and go on being
 * watched for the hold time, as m-sets do.
 */
struct ow_monitor;

struct ow_monitor_options {
	double false_alarms; /* intervals between two false alarms of the whole network; 1000 if 0 */
	double worth;        /* a slower place is worth a word if it adds this share of the path's delay; 0.02 if 0 */
	int64_t stale_ns;    /* results older than this before the interval say nothing of it; 10 s if 0 */
	int64_t hold_ns;     /* how long the places of old paths stay; 60 s if 0 */
};

#define OW_MONITOR_PLACES_MAX  (1u << 17)
#define OW_MONITOR_TARGETS_MAX 4096

struct ow_target {
	const char *name;       /* as the verdict shows it */
	const char *from, *to;  /* routers */
	const char *class_name; /* NULL = all packets; otherwise places are those of the class, "F>C/voice", where it
	                           has results, else those of all */
	double max_mean_ns, max_loss; /* NAN = no limit of its own: worse than usual breaks it */
};

int ow_monitor_create(const struct ow_monitor_options *options, struct ow_monitor **ret_monitor);
void ow_monitor_free(struct ow_monitor *monitor);
/* A path to keep an eye on; texts are copied. To be called before the first network. */
int ow_monitor_add_target(struct ow_monitor *monitor, const struct ow_target *target, struct ow_error *err);
/*
 * The network as it is from now on. The topology is not kept. A target whose routers the network does not have, or has
 * no path between, is not an error: its verdict says so.
 */
int ow_monitor_set_network(struct ow_monitor *monitor, const struct ow_topology *topology, const bool *is_mrouter,
                           int64_t now_ns, struct ow_error *err);
/* One interval of one place. Older than the last of it: ignored. -E2BIG beyond OW_MONITOR_PLACES_MAX names. */
int ow_monitor_add(struct ow_monitor *monitor, const char *place, const struct ow_watch_sample *sample,
                   struct ow_error *err);

/* -- what is wrong ----------------------------------------------------------------------------------------------------
 */

struct ow_finding {
	const char *place;
	double share;                       /* of the path's packets that pass it; 0 outside of a verdict */
	bool delay, loss;                   /* what has changed */
	double usual_ns, spread_ns, now_ns; /* mean delay; NAN while not known */
	double usual_loss, now_loss;
	double z;        /* of the last interval, of what has changed more */
	double strength; /* the cumulative sum over its threshold, of what has changed more */
	int64_t since_ns;
	uint32_t intervals; /* that it has lasted */
	bool active;
};

enum ow_path_state {
	OW_PATH_OK,
	OW_PATH_BROKEN,  /* beyond its target, or worse than usual where it has none */
	OW_PATH_UNKNOWN, /* cannot be said: `cause` */
};

struct ow_verdict {
	const struct ow_target *target;
	enum ow_path_state state;
	struct ow_composed composed;
	char cause[320];                  /* one line: what is broken, or why it cannot be said */
	const struct ow_finding *finding; /* places of the path that have changed, the most important first */
	uint32_t findings;
};

/*
 * Verdicts on all targets, from the last results of each place as of the interval that starts at now_ns. Valid until
 * the next call.
 */
int ow_monitor_judge(struct ow_monitor *monitor, int64_t now_ns, const struct ow_verdict **ret_verdicts,
                     uint32_t *ret_count, struct ow_error *err);
/* All places of the network that have changed, strongest first. Valid until the next call. */
int ow_monitor_changed(struct ow_monitor *monitor, int64_t now_ns, const struct ow_finding **ret_findings,
                       uint32_t *ret_count, struct ow_error *err);
/*
 * Where in these places it can be: the hops (and insides) that explain them, "E>D" or "F[A>C]": on all changed places
 * that no other explains, and on none that has not changed. As few as possible; found greedily. Texts in ret_hops,
 * separated by a space; empty when there is none.
 */
int ow_monitor_locate(struct ow_monitor *monitor, int64_t now_ns, char *ret_hops, size_t size, struct ow_error *err);

struct ow_monitor_count {
	uint32_t places, learning, fresh, changed, old; /* old: of paths that are no more */
	double threshold;
};
void ow_monitor_count(const struct ow_monitor *monitor, int64_t now_ns, struct ow_monitor_count *ret_count);

#endif
