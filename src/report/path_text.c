/* SPDX-License-Identifier: Apache-2.0 */
/* A path hop by hop: a table for each direction, as mtr shows it, and where packets were lost. */
#include "report/report.h"

#include "base/format.h"
#include "base/table.h"
#include "base/time.h"
#include "base/word.h"
#include "path/path.h"
#include "report/match_details.h"
#include "report/path_view.h"
#include <inttypes.h>
#include <string.h>

#define WIDTH_MIN  30
#define WIDTH_FILE 80 /* without a terminal */
#define NAME_LEAST 12
#define NAME_MOST  40
#define NAME_BYTES 200

static const struct ow_table_column columns[OW_HOP_CELLS] = {
	[OW_HOP_SENT] = {"sent", 10, 4}, [OW_HOP_LOST] = {"lost", 8, 0}, [OW_HOP_LOSS] = {"loss", 7, 3},
	[OW_HOP_MEAN] = {"mean", 10, 1}, [OW_HOP_P99] = {"p99", 10, 2},  [OW_HOP_SHARE] = {"share", 6, 5},
};

static const char *clean(const struct ow_path_report *path, unsigned point, char text[NAME_BYTES])
{
	ow_format_clean(path->point[point].name, false, text, NAME_BYTES);
	return text;
}

static void hop_name(const struct ow_path_report *path, unsigned from, unsigned to, char text[2 * NAME_BYTES + 4])
{
	char a[NAME_BYTES], b[NAME_BYTES];
	snprintf(text, 2 * NAME_BYTES + 4, "%s > %s", clean(path, from, a), clean(path, to, b));
}

/* Columns that the longest name takes. */
static unsigned longest_name(const struct ow_path_report *path)
{
	char text[2 * NAME_BYTES + 4];
	size_t longest = strlen("end to end");
	for (unsigned i = 0; i < path->segments; i++) {
		hop_name(path, path->segment[i].from, path->segment[i].to, text);
		size_t width = ow_format_columns(text);
		longest = width > longest ? width : longest;
	}
	return longest < NAME_LEAST ? NAME_LEAST : longest > NAME_MOST ? NAME_MOST : (unsigned)longest;
}

static void put_row(const struct ow_table *table, const char *name, unsigned columns_of_name, ow_table_cells cell,
                    bool lost)
{
	fputs("  ", table->out);
	ow_table_name(table->out, name, columns_of_name);
	ow_table_row(table, cell, lost ? 1u << OW_HOP_LOST : 0);
}

static void put_segment(const struct ow_path_report *path, const struct ow_table *table, unsigned columns_of_name,
                        const struct ow_path_segment *segment, enum ow_direction direction)
{
	char name[2 * NAME_BYTES + 4];
	ow_table_cells cell;
	bool back = direction == OW_B_TO_A;
	hop_name(path, back ? segment->to : segment->from, back ? segment->from : segment->to, name);
	ow_path_hop_cells(path, segment, direction, cell);
	put_row(table, name, columns_of_name, cell, segment->report && segment->result[direction].lost);
}

static bool has_segment(const struct ow_path_report *path, unsigned a, unsigned b)
{
	for (unsigned i = 0; i < path->segments; i++) {
		const struct ow_path_segment *s = &path->segment[i];
		if ((s->from == a && s->to == b) || (s->from == b && s->to == a))
			return true;
	}
	return false;
}

/* The packets that were lost from end to end, by place. */
static void put_lost_at(FILE *out, const struct ow_path_report *path, enum ow_direction direction, enum ow_look look)
{
	const char *left = look == OW_LOOK_MARKED ? OW_MARK_LEFT : "";
	char count[OW_FORMAT], name[2 * NAME_BYTES + 4], from_text[NAME_BYTES], to_text[NAME_BYTES];
	if (!path->ends->direction[direction].lost)
		return;
	fprintf(out, "  lost at\n");
	for (unsigned i = 0; i < path->points * path->points; i++) {
		unsigned place = direction == OW_B_TO_A ? path->points * path->points - 1 - i : i;
		unsigned from = place / path->points, to = place % path->points;
		uint64_t lost = path->lost_at[direction][from][to];
		if (!lost)
			continue;
		ow_format_count(lost, count);
		hop_name(path, from, to, name);
		if (has_segment(path, from, to))
			fprintf(out, "    %10s  %s%s\n", count, left, name);
		else
			fprintf(out,
			        "    %10s  %sbetween %s and %s: points between them do not show all packets of these "
			        "flows\n",
			        count, left, clean(path, from, from_text), clean(path, to, to_text));
	}
	if (path->lost_unknown[direction])
		fprintf(out, "    %10s  %snot known\n", ow_format_count(path->lost_unknown[direction], count), left);
}

static void put_direction(FILE *out, const struct ow_path_report *path, enum ow_direction direction, unsigned width,
                          enum ow_look look)
{
	struct ow_table table = {out, columns, OW_HOP_CELLS, .colour = look != OW_LOOK_PLAIN,
	                         .marked = look == OW_LOOK_MARKED};
	unsigned name = ow_table_fit_name(&table, width, 2, NAME_LEAST, longest_name(path));
	char a[NAME_BYTES], b[NAME_BYTES];
	bool back = direction == OW_B_TO_A;
	unsigned neighbours = path->points - 1;
	fprintf(out, "\n%s%s to %s%s\n  ", look ? "\033[1m" : "", clean(path, back ? neighbours : 0, a),
	        clean(path, back ? 0 : neighbours, b), look ? "\033[0m" : "");
	ow_table_name(out, "hop", name);
	ow_table_heading(&table);
	fputc('\n', out);
	for (unsigned i = 0; i < neighbours; i++)
		put_segment(path, &table, name, &path->segment[back ? neighbours - 1 - i : i], direction);
	for (unsigned i = neighbours; i < path->segments; i++)
		put_segment(path, &table, name, &path->segment[i], direction);
	ow_table_cells cell;
	ow_path_ends_cells(path, direction, cell);
	put_row(&table, "end to end", name, cell, path->ends->direction[direction].lost);
	put_lost_at(out, path, direction, look);
}

/* IPDV, loss periods and the like of each hop, if they are wanted. */
static void put_details(FILE *out, const struct ow_path_report *path, enum ow_direction direction, int width,
                        enum ow_look look)
{
	char name[2 * NAME_BYTES + 4];
	bool back = direction == OW_B_TO_A;
	for (unsigned i = 0; i + 1 < path->points; i++) {
		const struct ow_path_segment *hop = &path->segment[back ? path->points - 2 - i : i];
		const struct ow_details *details = ow_path_hop_details(hop, direction);
		if (!details)
			continue;
		hop_name(path, back ? hop->to : hop->from, back ? hop->from : hop->to, name);
		fprintf(out, "%s%s%s\n", look ? "\033[1m" : "", name, look ? "\033[0m" : "");
		ow_report_match_details_text(out, details, width, look);
	}
}

/* Times that are coarser than those of most captures limit what a hop shows. */
static void put_resolution(FILE *out, const struct ow_capture_info *info)
{
	char text[OW_DURATION_TEXT];
	if (info->resolution_ns > 1 && info->packets) {
		ow_duration_text((double)info->resolution_ns, text);
		fprintf(out, "  %s resolution", text);
	}
}

static void put_points(FILE *out, const struct ow_path_report *path, enum ow_look look)
{
	bool marked = look == OW_LOOK_MARKED;
	const char *left = marked ? OW_MARK_LEFT : "", *right = marked ? OW_MARK_RIGHT : "";
	char count[OW_FORMAT], text[NAME_BYTES], file[1000];
	size_t longest = 0;
	for (unsigned i = 0; i < path->points; i++) {
		size_t width = ow_format_columns(clean(path, i, text));
		longest = width > longest ? width : longest;
	}
	for (unsigned i = 0; i < path->points; i++) {
		const struct ow_capture_info *info = &path->capture[i];
		ow_format_clean(info->path, false, file, sizeof file);
		clean(path, i, text);
		fprintf(out, "%2u  %s%s%*s  %s%12s %s  %s%s", i + 1, left, text,
		        (int)(longest - ow_format_columns(text)), "", right,
		        info->linktype ? ow_format_count(info->packets, count) : "-",
		        ow_plural(info->packets, "packet ", "packets"), left, file);
		if (path->files[i])
			fprintf(out, "  %" PRIu32 " %s", path->files[i], ow_plural(path->files[i], "file", "files"));
		put_resolution(out, info);
		fputc('\n', out);
	}
}

void ow_report_path_text(FILE *out, const struct ow_path_report *path, int width, enum ow_look look)
{
	static const char *const how[] = {
		[OW_ORDER_GIVEN] = "as given",
		[OW_ORDER_HOPS] = "found by TTL",
		[OW_ORDER_TIMES] = "found by TTL and time",
		[OW_ORDER_UNKNOWN] = "as given where the packets do not show it",
	};
	unsigned columns_of_line = (unsigned)(width <= 0 ? WIDTH_FILE : width < WIDTH_MIN ? WIDTH_MIN : width);
	bool moved = false;
	for (unsigned i = 0; i < path->points; i++)
		moved |= path->argument[i] != i;
	put_points(out, path, look);
	fprintf(out, "order  %s%s%s\n", look == OW_LOOK_MARKED ? OW_MARK_LEFT : "", how[path->order],
	        moved ? ", which is not that of the arguments" : "");
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (path->ends->has_direction[d])
			put_direction(out, path, d, columns_of_line, look);
		if (path->ends->has_direction[d])
			put_details(out, path, d, (int)columns_of_line, look);
	}
	fputs("\nEnd to end:\n\n", out);
}
