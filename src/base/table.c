/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/format.h"
#include <limits.h>

unsigned ow_table_fit(struct ow_table *table, unsigned width)
{
	unsigned used = 0;
	table->shown = 0;
	for (unsigned rank = 0; rank < table->count; rank++) {
		unsigned i = 0;
		while (i < table->count && table->column[i].rank != rank)
			i++;
		if (i < table->count && table->hidden >> i & 1)
			continue;
		if (i == table->count || used + 1 + table->column[i].width > width)
			break;
		used += 1 + table->column[i].width;
		table->shown |= 1u << i;
	}
	return used;
}

unsigned ow_table_fit_name(struct ow_table *table, unsigned width, unsigned front, unsigned least, unsigned most)
{
	unsigned head = front + least, used = ow_table_fit(table, width > head ? width - head : 0);
	unsigned room = width > front + used ? width - front - used : 0;
	return room < least ? least : room > most ? most : room;
}

void ow_table_bold(const struct ow_table *table)
{
	fputs(table->colour ? "\033[1m" : "", table->out);
}

static void put_cell(const struct ow_table *table, unsigned i, const char *mark, const char *text, bool last)
{
	int width = (int)table->column[i].width;
	fprintf(table->out, "%s %*s", table->marked ? mark : "",
	        !table->column[i].left ? width
	        : last                 ? 0
	                               : -width,
	        text);
}

void ow_table_heading(const struct ow_table *table)
{
	for (unsigned i = 0; i < table->count; i++) {
		if (table->shown >> i & 1)
			put_cell(table, i, table->column[i].left ? OW_MARK_LEFT : OW_MARK_TITLE, table->column[i].title,
			         false);
	}
}

void ow_table_titles(const struct ow_table *table)
{
	ow_table_heading(table);
	fprintf(table->out, "%s\n", table->colour ? "\033[0m" : "");
}

static void put_cells(const struct ow_table *table, ow_table_cells cells, unsigned red, unsigned end)
{
	for (unsigned i = 0; i < table->count && i < end; i++) {
		bool is_red = table->colour && red >> i & 1;
		if (!(table->shown >> i & 1))
			continue;
		fputs(is_red ? "\033[31m" : "", table->out);
		put_cell(table, i, table->column[i].left ? OW_MARK_LEFT : OW_MARK_RIGHT, cells[i], i + 1 == end);
		fputs(is_red ? "\033[0m" : "", table->out);
	}
}

void ow_table_numbers(const struct ow_table *table, ow_table_cells cells, unsigned red)
{
	put_cells(table, cells, red, UINT_MAX);
}

void ow_table_row(const struct ow_table *table, ow_table_cells cells, unsigned red)
{
	unsigned end = table->count;
	while (end && (!(table->shown >> (end - 1) & 1) || !*cells[end - 1]))
		end--;
	put_cells(table, cells, red, end);
	fputc('\n', table->out);
}

void ow_table_name(FILE *out, const char *clean, size_t columns)
{
	char text[512];
	snprintf(text, sizeof text, "%s", clean);
	ow_format_cut(text, columns);
	size_t used = ow_format_columns(text);
	fprintf(out, "%s%*s", text, used < columns ? (int)(columns - used) : 0, "");
}
