/* SPDX-License-Identifier: Apache-2.0 */
/* A match as one text for the terminal, and the same text as a page of HTML with plots. */
#include "report/match_page.h"

#include "base/format.h"
#include "path/path.h"
#include "report/html.h"
#include "report/match_classes.h"
#include "report/match_flows.h"
#include "report/match_packets.h"
#include "report/plot.h"
#include "report/report.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_HTML 10000 /* columns: every cell has the room it needs */

void ow_match_page_text(FILE *out, const struct ow_match_page *page, int width, bool terminal, enum ow_look look)
{
	if (page->path)
		ow_report_path_text(out, page->path, terminal ? width : 0, look);
	if (page->report)
		ow_report_match_text(out, page->report, page->name, terminal ? width : 0, look);
	if (page->classes)
		ow_report_match_classes_text(out, page->classes, (unsigned)width, look);
	if (page->packets)
		ow_report_match_packets_text(out, page->packets, (unsigned)width, look);
	if (page->flows)
		ow_report_match_flows_text(out, page->flows, page->top, page->least, width, look);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static void put_head(FILE *out, const struct ow_match_page *page)
{
	const struct ow_match_report *report = page->report;
	char title[700], note[3 * OW_FORMAT + 40], first[OW_FORMAT], last[OW_FORMAT], zone[OW_FORMAT];
	const char *name[OW_SIDES];
	for (unsigned side = 0; side < OW_SIDES; side++)
		name[side] = page->name && page->name[side] ? page->name[side] : base_name(report->capture[side].path);
	snprintf(title, sizeof title, "One-way delay and loss: %.300s to %.300s", name[OW_SIDE_A], name[OW_SIDE_B]);
	ow_html_begin(out, title);
	ow_format_local(report->capture[OW_SIDE_A].first_ns, "%Y-%m-%d %H:%M:%S", first);
	ow_format_local(report->capture[OW_SIDE_A].last_ns, "%Y-%m-%d %H:%M:%S", last);
	ow_format_local(report->capture[OW_SIDE_A].last_ns, "%Z", zone);
	snprintf(note, sizeof note, "Captured from %s to %s %s", first, last, zone);
	if (report->capture[OW_SIDE_A].packets)
		ow_html_note(out, note);
	for (size_t i = 0; i < report->warnings; i++) {
		char *text;
		if (asprintf(&text, "Warning: %s", report->warning[i]) < 0)
			continue;
		ow_html_warning(out, text);
		free(text);
	}
}

static int put_text(FILE *out, const struct ow_match_page *page)
{
	char *text = NULL;
	size_t size;
	FILE *marked = open_memstream(&text, &size);
	if (!marked)
		return -ENOMEM;
	ow_match_page_text(marked, page, WIDTH_HTML, true, OW_LOOK_MARKED);
	int r = fclose(marked) == 0 ? 0 : -ENOMEM;
	if (r == 0)
		ow_html_text(out, text);
	free(text);
	return r;
}

static int on_picture(void *arg, const char *name, int picture)
{
	return ow_html_picture(arg, name, picture);
}

static int put_pictures(FILE *out, const struct ow_match_page *page, struct ow_error *err)
{
	struct ow_error why;
	if (!page->plot)
		return 0;
	ow_html_text(out, "\033[1mPlots\033[0m\n");
	int r = ow_plot_pictures(page->plot, page->report, page->path, on_picture, out, &why);
	if (r == -ENOENT) {
		ow_html_note(out, "No plots: gnuplot was not installed where this page was made.");
		return 0;
	}
	return r < 0 ? ow_error_set(err, -r, "%s", why.text) : 0;
}

int ow_match_page_html(FILE *out, const struct ow_match_page *page, struct ow_error *err)
{
	struct ow_match_report report = *page->report;
	struct ow_match_page results = {.report = &report, .name = page->name, .path = page->path}, parts = *page;
	report.warnings = 0; /* they are at the top */
	parts.report = NULL;
	parts.path = NULL;
	put_head(out, page);
	int r = put_text(out, &results);
	if (r < 0)
		return ow_error_set(err, -r, "not enough memory for the page");
	r = put_pictures(out, page, err);
	if (r == 0 && put_text(out, &parts) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory for the page");
	ow_html_end(out);
	return r;
}
