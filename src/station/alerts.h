/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "station/incidents.h"

/*
 * Incidents as alerts of a Prometheus Alertmanager (API v2). A thread posts them: when one begins, gets worse or ends,
 * and all open ones every minute, as Alertmanager expects; an alert that is not repeated ends by itself. After a failure
 * it tries again. The labels of an alert stay the same from begin to end, so that Alertmanager takes it as one.
 */
struct ow_alerts;

/* url: of the Alertmanager, without /api/v2. ca: see ow_http_post(). Texts are copied. */
int ow_alerts_start(const char *url, const char *ca, struct ow_alerts **ret_alerts, struct ow_error *err);
/* Nothing is posted before this: the incidents of the past have been told, and which of them are open. */
void ow_alerts_release(struct ow_alerts *alerts);
/* Tries once to post what is left. */
void ow_alerts_stop(struct ow_alerts *alerts);
/* sentence: the incident in a sentence. -ENOMEM; -E2BIG: too many are open. */
int ow_alerts_tell(struct ow_alerts *alerts, enum ow_incident_event event, const struct ow_incident *incident,
                   const char *sentence);
/* The next line for the log: posting fails, or works again. False: there is none. */
bool ow_alerts_news(struct ow_alerts *alerts, struct ow_error *ret_line);
