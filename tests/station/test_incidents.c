/* SPDX-License-Identifier: Apache-2.0 */
/* What begins, gets worse and ends, from verdicts that are made here. */
#include "station/incidents.h"
#include "base/time.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define S     OW_NS_PER_S
#define START (INT64_C(1794736800) * S)

static const struct ow_target lane[] = {
	{.name = "A to B", .from = "A", .to = "B", .place = "A>B"},
	{.name = "B to A", .from = "B", .to = "A", .place = "B>A"},
	{.name = "B to C", .from = "B", .to = "C", .place = "B>C"},
	{.name = "C to B", .from = "C", .to = "B", .place = "C>B"},
};
#define LANES 4

struct run {
	struct ow_incidents *incidents;
	int64_t now_ns, length_ns;
	char log[4000];
};

static void on_event(void *arg, enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident)
{
	struct run *run = arg;
	size_t used = strlen(run->log);
	assert_in_range(used, 0, sizeof(run->log) - 100);
	snprintf(run->log + used, sizeof(run->log) - used, "%lld %s %s %s since %lld\n",
	         (long long)((now_ns - START) / S), ow_incident_event_name[event],
	         ow_incident_kind_name[incident->kind], incident->subject,
	         (long long)((incident->since_ns - START) / S));
}

static void start(struct run *run, int64_t length_ns)
{
	*run = (struct run){.now_ns = START, .length_ns = length_ns};
	assert_int_equal(ow_incidents_create(on_event, run, &run->incidents), 0);
}

/* Intervals: 'o' all is in order, '!' B>C exceeds its target, 'l' it loses packets, 'L' twice as many, '?' it is not
 * known, 'B' nothing of B is known, 'x' nothing at all is. */
static void intervals(struct run *run, const char *what)
{
	for (; *what; what++) {
		struct ow_finding finding = {.place = "B>C",
		                             .loss = true,
		                             .now_loss = *what == 'L' ? 0.05 : 0.02,
		                             .since_ns = run->now_ns - 2 * run->length_ns,
		                             .usual_ns = NAN,
		                             .now_ns = NAN};
		struct ow_monitor_verdict verdict[LANES];
		run->now_ns += run->length_ns;
		for (int i = 0; i < LANES; i++) {
			bool bad = i == 2 && strchr("!lL", *what), lost = i == 2 && strchr("lL", *what);
			bool unknown =
				*what == 'x' || *what == 'B' || (*what == '?' && i == 2) || (*what == 'A' && i < 2);
			verdict[i] = (struct ow_monitor_verdict){
				.target = &lane[i],
				.state = unknown ? OW_PATH_UNKNOWN
			                 : bad   ? OW_PATH_BROKEN
			                         : OW_PATH_OK,
				.composed.length_ns = unknown ? 0 : run->length_ns,
				.finding = &finding,
				.findings = lost,
			};
		}
		assert_int_equal(ow_incidents_update(run->incidents, run->now_ns, verdict, LANES, ""), 0);
	}
}

static void ends_with(struct run *run, const char *log)
{
	assert_string_equal(run->log, log);
	ow_incidents_free(run->incidents);
}

static void hysteresis(void **state)
{
	struct run run;
	(void)state;
	/* A target that is exceeded now and then. */
	start(&run, S);
	intervals(&run, "oooo!ooo!!ooo!o!oooo");
	ends_with(&run, "");
	/* For three intervals; a pause of a few does not end it; then it does. */
	start(&run, S);
	intervals(&run, "oooo!!!!ooooo!!ooooooooooooooo");
	ends_with(&run, "7 begin broken B>C since 4\n25 end broken B>C since 4\n");
	/* A part that has changed is certain already; it gets worse; not every second. */
	start(&run, S);
	intervals(&run, "oooolLLLLlLlLlLlLlLllllllooooooooooo");
	ends_with(&run, "5 begin broken B>C since 2\n15 worse broken B>C since 2\n35 end broken B>C since 2\n");
	/* Of minutes two are enough, and two to end it. */
	start(&run, 60 * S);
	intervals(&run, "oo!o!!oo");
	ends_with(&run, "360 begin broken B>C since 240\n480 end broken B>C since 240\n");
}

static void unknown_is_not_broken(void **state)
{
	struct run run;
	(void)state;
	/* Never measured: nothing is told. */
	start(&run, S);
	intervals(&run, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	ends_with(&run, "");
	/* Not measured for a while, and for longer. */
	start(&run, S);
	intervals(&run, "oo????????????????????oo??????????????????????????????oo");
	ends_with(&run, "54 begin unmeasured B>C since 24\n55 end unmeasured B>C since 24\n");
	/* Broken, then unknown: it goes on. */
	start(&run, S);
	intervals(&run, "oolll??????????????????????????????lllooooooooooo");
	ends_with(&run, "3 begin broken B>C since 0\n35 worse broken B>C since 0\n48 end broken B>C since 0\n");
	/* For an hour. */
	start(&run, 60 * S);
	intervals(&run, "oolll????????????????????????????????????????????????????????????????");
	ends_with(&run, "180 begin broken B>C since 0\n480 worse broken B>C since 0\n3900 end broken B>C since 0\n"
	                "3900 begin unmeasured B>C since 300\n");
}

static void silent_points(void **state)
{
	struct run run;
	(void)state;
	start(&run, 10 * S);
	intervals(&run, "ooBBBoo");
	ends_with(&run, "50 begin unmeasured point B since 20\n60 end unmeasured point B since 20\n");
	/* It comes back segment by segment: its neighbour is not accused. */
	start(&run, 10 * S);
	intervals(&run, "ooBBBBAAoo");
	ends_with(&run, "50 begin unmeasured point B since 20\n70 end unmeasured point B since 20\n");
	start(&run, 10 * S);
	intervals(&run, "ooAAAoo");
	ends_with(&run, "50 begin unmeasured point A since 20\n60 end unmeasured point A since 20\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(hysteresis), cmocka_unit_test(unknown_is_not_broken),
	                                   cmocka_unit_test(silent_points)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
