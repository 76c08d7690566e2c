/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet status: a line for each point, and below them what is wrong with some. */
#include "report/fleet_status.h"

#include "base/format.h"
#include "base/json_writer.h"
#include "base/table.h"
#include "base/time.h"
#include "base/word.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STATE, CONFIG, RESULT, CLOCK, DROPPED, LANES, PEERS, MEMORY, CERTIFICATE, VERSION, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[STATE] = {"state", 9, 0, true}, [CONFIG] = {"config", 7, 1},   [RESULT] = {"result", 9, 2},
	[CLOCK] = {"clock", 9, 3},       [DROPPED] = {"dropped", 9, 4}, [LANES] = {"lanes", 6, 5},
	[PEERS] = {"peers", 6, 6},       [MEMORY] = {"memory", 8, 7},   [CERTIFICATE] = {"cert", 8, 8},
	[VERSION] = {"version", 8, 9},
};

/* How a point is, in a word. */
static const char *state_of(const struct ow_fleet_point *point, const struct ow_health *h, int64_t now_ns)
{
	if (point->state == OW_FLEET_REVOKED)
		return "revoked";
	if (point->state == OW_FLEET_WAITING)
		return "invited";
	if (point->state == OW_FLEET_PLANNED)
		return "planned";
	if (!h)
		return "unseen";
	return ow_health_is_fresh(h, now_ns) ? h->state : "away";
}

/* "12 s" of a time that is over, or still to come. */
static void put_age(double ns, char cell[OW_TABLE_CELL])
{
	double s = ns / (double)OW_NS_PER_S;
	if (s < 90)
		snprintf(cell, OW_TABLE_CELL, "%.0f s", s < 0 ? 0 : s);
	else if (s < 5400)
		snprintf(cell, OW_TABLE_CELL, "%.0f min", s / 60);
	else if (s < 129600)
		snprintf(cell, OW_TABLE_CELL, "%.0f h", s / 3600);
	else
		snprintf(cell, OW_TABLE_CELL, "%.0f d", s / 86400);
}

static void put_cells(const struct ow_fleet_status *s, const struct ow_fleet_point *point, const struct ow_health *h,
                      ow_table_cells cell)
{
	char text[OW_FORMAT], duration[OW_DURATION_TEXT];
	for (unsigned i = 0; i < COLUMNS; i++)
		snprintf(cell[i], OW_TABLE_CELL, "-");
	snprintf(cell[STATE], OW_TABLE_CELL, "%s", state_of(point, h, s->now_ns));
	if (!h)
		return;
	snprintf(cell[CONFIG], OW_TABLE_CELL, "%ju%s", (uintmax_t)h->config_version, h->config_refused ? "!" : "");
	if (h->last_result_ns)
		put_age((double)(s->now_ns - h->last_result_ns), cell[RESULT]);
	ow_duration_text((double)h->clock_error_ns, duration);
	snprintf(cell[CLOCK], OW_TABLE_CELL, "%s",
	         !h->clock_known         ? "-"
	         : h->clock_synchronised ? duration
	                                 : "unsynced");
	snprintf(cell[DROPPED], OW_TABLE_CELL, "%s", ow_format_count(h->dropped, text));
	snprintf(cell[LANES], OW_TABLE_CELL, "%ju", (uintmax_t)h->lanes);
	snprintf(cell[PEERS], OW_TABLE_CELL, "%ju/%ju", (uintmax_t)h->connected, (uintmax_t)h->peers);
	snprintf(cell[MEMORY], OW_TABLE_CELL, "%.0f MiB", (double)h->memory_bytes / (1 << 20));
	if (h->certificate_until_s)
		put_age((double)h->certificate_until_s * (double)OW_NS_PER_S - (double)s->now_ns, cell[CERTIFICATE]);
	snprintf(cell[VERSION], OW_TABLE_CELL, "%.20s", h->version);
}

/* What somebody should look at; "" = nothing. */
static void find_problem(const struct ow_fleet_status *s, size_t i, const struct ow_health *h, char text[600])
{
	const struct ow_fleet_point *point = &s->point[i];
	*text = 0;
	if (point->state == OW_FLEET_WAITING && point->token_until_s <= s->now_ns / OW_NS_PER_S)
		snprintf(text, 600, "its token has expired; 'oneway fleet enroll %s' makes another", point->name);
	if (point->state == OW_FLEET_PLANNED)
		snprintf(text, 600, "is to measure, but was never enrolled: 'oneway fleet enroll %s'", point->name);
	if (point->state != OW_FLEET_ENROLLED)
		return;
	if (!h)
		snprintf(text, 600, "has a certificate, but has never reported");
	else if (!ow_health_is_heard(h, s->now_ns))
		snprintf(text, 600, "has not reported for %.0f s",
		         (double)(s->now_ns - h->heard_ns) / (double)OW_NS_PER_S);
	else if (!ow_health_is_fresh(h, s->now_ns))
		snprintf(text, 600, "reports a time %.0f s %s",
		         fabs((double)(s->now_ns - h->time_ns)) / (double)OW_NS_PER_S,
		         h->time_ns > s->now_ns ? "ahead: its clock is wrong"
		                                : "ago: its clock is wrong, or it does not measure any more");
	else if (h->store_failing)
		snprintf(text, 600, "cannot write its store: %ju %s in memory, %ju lost", (uintmax_t)h->store_waiting,
		         ow_plural(h->store_waiting, "result waits", "results wait"), (uintmax_t)h->store_lost);
	else if (h->config_refused)
		snprintf(text, 600, "refuses version %ju: %.400s", (uintmax_t)h->config_refused, h->config_why);
	else if (s->desired[i] && h->config_version != s->desired[i])
		snprintf(text, 600, "has version %ju, should have %ju", (uintmax_t)h->config_version,
		         (uintmax_t)s->desired[i]);
	else if (h->store_lost)
		snprintf(text, 600, "%ju %s could not be stored", (uintmax_t)h->store_lost,
		         ow_plural(h->store_lost, "interval", "intervals"));
	else if (point->token_generation > point->generation && !point->token_key[0] &&
	         point->token_until_s > s->now_ns / OW_NS_PER_S)
		snprintf(text, 600,
		         "does not use its new token while it has a certificate: remove point.pem and point.key from "
		         "its "
		         "state folder, and start it again");
	else if (h->connected < h->peers)
		snprintf(text, 600, "%ju of %ju %s connected%s%.160s", (uintmax_t)h->connected, (uintmax_t)h->peers,
		         ow_plural(h->peers, "peer", "peers"), h->peers_why[0] ? "; " : "", h->peers_why);
}

size_t ow_report_fleet_text(FILE *out, const struct ow_style *style, const struct ow_fleet_status *s)
{
	struct ow_table table = {out, columns, COLUMNS, .colour = style->colour};
	unsigned width = (unsigned)style->width, room = ow_table_fit_name(&table, width, 0, 8, 24);
	size_t problems = 0;
	char text[600];
	ow_table_cells cell;
	ow_table_bold(&table);
	fprintf(out, "%-*s", (int)room, "point");
	ow_table_titles(&table);
	for (size_t i = 0; i < s->count; i++) {
		const struct ow_health *h = ow_healths_find(&s->healths, s->point[i].name);
		put_cells(s, &s->point[i], h, cell);
		find_problem(s, i, h, text);
		ow_table_name(out, s->point[i].name, room);
		ow_table_row(&table, cell, *text ? 1u << STATE : 0);
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct ow_health *h = ow_healths_find(&s->healths, s->point[i].name);
		find_problem(s, i, h, text);
		if (*text && problems++ == 0)
			putc('\n', out);
		if (*text)
			fprintf(out, "%s: %s\n", s->point[i].name, text);
	}
	bool first = true;
	for (size_t i = 0; i < s->count; i++) {
		const struct ow_health *h = ow_healths_find(&s->healths, s->point[i].name);
		if (!h || !h->config_kept[0])
			continue;
		fprintf(out, "%s%s: its own file decides: %s\n", first ? "\n" : "", s->point[i].name, h->config_kept);
		first = false;
	}
	return problems;
}

size_t ow_report_fleet_points(struct ow_json *json, const struct ow_fleet_status *s)
{
	size_t problems = 0;
	char text[600];
	ow_json_rows(json, "points");
	for (size_t i = 0; i < s->count; i++) {
		const struct ow_fleet_point *point = &s->point[i];
		const struct ow_health *h = ow_healths_find(&s->healths, point->name);
		find_problem(s, i, h, text);
		problems += *text != 0;
		ow_json_row(json);
		ow_json_string(json, "point", point->name);
		ow_json_string(json, "state", state_of(point, h, s->now_ns));
		ow_json_count(json, "generation", point->generation);
		ow_json_count_if(json, "config_desired", s->desired[i] != 0, s->desired[i]);
		ow_json_string(json, "problem", *text ? text : NULL);
		if (h)
			ow_health_members(json, "health", h);
		else
			ow_json_null(json, "health");
		ow_json_end(json);
	}
	ow_json_end(json);
	return problems;
}

size_t ow_report_fleet_json(FILE *out, const struct ow_fleet_status *s)
{
	struct ow_json json = {.out = out, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_command(&json, "fleet status");
	size_t problems = ow_report_fleet_points(&json, s);
	ow_json_end(&json);
	return problems;
}
