/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/stores.h"
#include "base/json_writer.h"

/*
 * The incidents that the station finds in the store (station/monitoring.h), in a thread of its own that reads the newest
 * results and follows them.
 */
struct ow_verdicts;

#define OW_VERDICTS_MAX        1000
#define OW_VERDICTS_HISTORY_NS (INT64_C(24) * 3600 * 1000000000)
/* Fewer hours are judged if there are more results in them. */
#define OW_VERDICTS_RESULTS INT64_C(2000000)

struct ow_verdict {
	char *id, *subject, *from, *to; /* from and to: NULL of a point */
	char *text;                     /* one sentence */
	char *why;                      /* lines */
	char *evidence;                 /* JSON: the places that have changed */
	bool is_broken;                 /* else: it is not measured */
	int64_t since_ns, until_ns;     /* until INT64_MAX: it goes on */
};

/* path and network (NULL: that of the segments) stay the caller's. */
int ow_verdicts_create(const char *path, struct ow_stores *stores, struct ow_verdicts **ret_verdicts);
/* Starts the thread. */
int ow_verdicts_start(struct ow_verdicts *verdicts, struct ow_error *err);
void ow_verdicts_free(struct ow_verdicts *verdicts);

typedef void ow_verdicts_each(void *arg, const struct ow_verdict *verdict);
/*
 * Calls back for the incidents that touch this time, in the order in which they began; a lock is held. *ret_from_ns,
 * *ret_until_ns: the time that was judged; both 0: nothing yet. ret_problem: why nothing is judged, "": nothing is wrong.
 */
void ow_verdicts_list(struct ow_verdicts *verdicts, int64_t since_ns, int64_t until_ns, ow_verdicts_each *each,
                      void *arg, int64_t *ret_from_ns, int64_t *ret_until_ns, struct ow_error *ret_problem);
