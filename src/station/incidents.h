/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/monitor.h"

/*
 * Incidents: from the verdicts on paths, interval by interval, follows what begins, gets worse and ends. One interval
 * neither begins nor ends an incident. All classes of a segment have one incident together. Two kinds:
 *
 *     broken       a path exceeds its target or is worse than usual. While it is not measured the incident goes on.
 *     unmeasured   a path, or a whole point, has no results any more. It may be broken or not.
 *
 * An incident is known by its subject and its start: the station finds the same id in the same results again.
 */
#define OW_INCIDENT_FINDINGS 8
#define OW_INCIDENT_SUBJECT  1024
#define OW_INCIDENT_ID       (OW_INCIDENT_SUBJECT + 32)

enum ow_incident_kind { OW_INCIDENT_BROKEN, OW_INCIDENT_UNMEASURED };
enum ow_incident_event { OW_INCIDENT_BEGIN, OW_INCIDENT_WORSE, OW_INCIDENT_END };

/* "broken", "unmeasured"; "begin", "worse", "end". */
extern const char *const ow_incident_kind_name[];
extern const char *const ow_incident_event_name[];

struct ow_incident {
	char id[OW_INCIDENT_ID];           /* "B>C@2026-11-15T10:00:40Z" */
	char subject[OW_INCIDENT_SUBJECT]; /* "B>C", "A to D", "point B" */
	enum ow_incident_kind kind;
	const struct ow_target *target; /* NULL: a point, or all */
	int64_t since_ns;
	int64_t until_ns; /* INT64_MIN: it goes on */
	bool measured;    /* false: it is not measured now */
	char cause[400];  /* one line */
	char hops[256];   /* what explains all that has changed in the network */
	struct ow_finding finding[OW_INCIDENT_FINDINGS];
	uint32_t findings;
	int64_t length_ns; /* of the longest interval that was used */
	uint32_t events;   /* that were told so far, this one included */
};

struct ow_incidents;
/* now_ns: the end of the interval that shows it. The incident is valid during the call. */
typedef void ow_incident_sink(void *arg, enum ow_incident_event event, int64_t now_ns,
                              const struct ow_incident *incident);

int ow_incidents_create(ow_incident_sink *sink, void *arg, struct ow_incidents **ret_incidents);
void ow_incidents_free(struct ow_incidents *incidents);
/*
 * The verdicts on all targets at now_ns, the end of an interval. Targets keep their numbers; further ones may be added
 * behind them. hops: see ow_monitor_locate(). -ENOMEM.
 */
int ow_incidents_update(struct ow_incidents *incidents, int64_t now_ns, const struct ow_monitor_verdict *verdict,
                        uint32_t count, const char *hops);
