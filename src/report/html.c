/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include "base/table.h"
#include "base/utf8.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Pictures have a white ground; in the dark they are inverted. On a narrow screen they are scrolled, not shrunk. */
static const char style[] =
	":root{color-scheme:light "
	"dark;--ink:#1b1b1b;--ground:#fff;--quiet:#636363;--line:#ddd;--bad:#b3131b;--box:#fdecea}"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--ground:#161616;--quiet:#a0a0a0;--line:#3a3a3a;"
	"--bad:#ff7b72;--box:#3a1d1d}img{filter:invert(.91) hue-rotate(180deg)}}"
	"body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:76rem;margin:0 "
	"auto;"
	"padding:1rem}"
	"h1{font-size:1.5rem;margin:.5rem 0;overflow-wrap:anywhere}"
	"h2{font-size:1.15rem;margin:1.6rem 0 .4rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
	"p{margin:.5rem 0}.note{color:var(--quiet)}h1,h2,p,td,th{unicode-bidi:isolate}"
	".warning{background:var(--box);border-left:4px solid var(--bad);padding:.4rem .7rem;overflow-wrap:anywhere}"
	".wide{overflow-x:auto;margin:.3rem 0}"
	"table{border-collapse:collapse}td,th{padding:.12rem .7rem .12rem 0;text-align:left;vertical-align:top;"
	"font-weight:normal;min-width:2rem}td{overflow-wrap:anywhere}"
	"td:empty,th:empty{padding:0;min-width:0}"
	".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
	".t th{color:var(--quiet);border-bottom:1px solid var(--line);white-space:nowrap}.t~tr td{white-space:nowrap}"
	".t~tr th:not(:empty){min-width:6.5rem}"
	".bad{color:var(--bad)}.b{font-weight:600}"
	"figure{margin:1rem 0;overflow-x:auto}img{display:block;width:100%;min-width:44rem;height:auto}"
	"@media print{:root{--ink:#000;--ground:#fff;--quiet:#444;--line:#bbb;--bad:#a00;--box:#fff}"
	"body{max-width:none;padding:0;font-size:10pt}figure,tr{break-inside:avoid}h2{break-after:avoid}"
	"img{filter:none;min-width:0}.wide,figure{overflow:visible}}";

/* Characters that must not be printed become '?', as on a terminal. */
static void put_escaped(FILE *out, const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		uint32_t code;
		size_t n = ow_utf8_read(text + at, length - at, &code);
		if (!n || !ow_utf8_printable(code))
			fputc('?', out);
		else if (strchr("&<>\"'", (int)code) && code < 0x80)
			fprintf(out, "&#%u;", (unsigned)code);
		else
			fwrite(text + at, 1, n, out);
		at += n ? n : 1;
	}
}

void ow_html_begin(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
	      "'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
	      out);
	put_escaped(out, title, strlen(title));
	fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
	put_escaped(out, title, strlen(title));
	fputs("</h1>\n", out);
}

void ow_html_end(FILE *out)
{
	fprintf(out, "<p class=\"note\">oneway %s</p>\n</body>\n</html>\n", ow_version());
}

static void put_paragraph(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<p class=\"%s\">", class);
	put_escaped(out, text, strlen(text));
	fputs("</p>\n", out);
}

void ow_html_warning(FILE *out, const char *text)
{
	put_paragraph(out, "warning", text);
}

void ow_html_note(FILE *out, const char *text)
{
	put_paragraph(out, "note", text);
}

/* -- marked text -- */

/* A part of a line without spaces around it and without ANSI sequences. */
struct part {
	const char *text;
	size_t length;
	bool bold, red; /* all of it */
};

static size_t skip_sequence(const char *text, size_t length)
{
	size_t n = 2;
	if (length < 2 || text[0] != '\033' || text[1] != '[')
		return 0;
	while (n < length && text[n] != 'm')
		n++;
	return n < length ? n + 1 : n;
}

/* Colours that hold at a place of a line. */
struct look {
	bool bold, red;
};

/* *look: that before the text, and then that behind it. */
static struct part trim(const char *text, size_t length, struct look *look)
{
	struct part part = {text, 0, false, false};
	for (size_t at = 0, n; at < length; at += n) {
		n = skip_sequence(text + at, length - at);
		if (n) {
			look->bold = n == 4 && text[at + 2] == '1';
			look->red = n == 5 && text[at + 2] == '3';
			continue;
		}
		n = 1;
		if (text[at] == ' ')
			continue;
		if (!part.length)
			part = (struct part){text + at, 0, look->bold, look->red};
		part.length = (size_t)(text + at + 1 - part.text);
	}
	return part;
}

/* Sequences in the middle of a text are left out. */
static void put_part(FILE *out, const struct part *part)
{
	size_t from = 0;
	for (size_t at = 0; at <= part->length; at++) {
		size_t n = at < part->length ? skip_sequence(part->text + at, part->length - at) : 0;
		if (!n && at < part->length)
			continue;
		put_escaped(out, part->text + from, at - from);
		from = at + n;
		at += n ? n - 1 : 0;
	}
}

/* A text at the end of a row has the room of all further columns. */
static void put_cell(FILE *out, const char *tag, char mark, bool last, const struct part *part)
{
	bool number = mark == *OW_MARK_RIGHT || mark == *OW_MARK_TITLE;
	fprintf(out, "<%s%s class=\"%s%s%s\">", tag, last && !number ? " colspan=\"9\"" : "", number ? "n" : "x",
	        part->red ? " bad" : "", part->bold ? " b" : "");
	put_part(out, part);
	fprintf(out, "</%s>", tag);
}

static bool is_mark(char c)
{
	return c == *OW_MARK_TITLE || c == *OW_MARK_LEFT || c == *OW_MARK_RIGHT;
}

/* The first cell has no mark before it: the name of the row. */
static void put_row(FILE *out, const char *line, size_t length)
{
	bool titles = memchr(line, *OW_MARK_TITLE, length);
	struct look look = {0};
	char mark = *OW_MARK_LEFT;
	fputs(titles ? "<tr class=\"t\">" : "<tr>", out);
	for (size_t from = 0, at = 0; at <= length; at++) {
		if (at < length && !is_mark(line[at]))
			continue;
		struct part part = trim(line + from, at - from, &look);
		put_cell(out, titles || !from ? "th" : "td", mark, from && at == length, &part);
		mark = at < length ? line[at] : 0;
		from = at + 1;
	}
	fputs("</tr>\n", out);
}

/* What a line becomes: rows that have another form than those before them begin a new table. */
enum form { NO_ROW, FACT, NUMBERS, TITLED };

static enum form form_of(const char *line, size_t length, enum form before)
{
	unsigned marks = 0, texts = 0;
	for (size_t i = 0; i < length; i++) {
		marks += is_mark(line[i]);
		texts += line[i] == *OW_MARK_LEFT;
	}
	if (!marks)
		return NO_ROW;
	if (before == TITLED || memchr(line, *OW_MARK_TITLE, length))
		return TITLED;
	return marks == 1 && texts == 1 ? FACT : NUMBERS;
}

static void put_line(FILE *out, const char *line, size_t length)
{
	struct look look = {0};
	struct part part = trim(line, length, &look);
	if (!part.length)
		return;
	bool heading = part.bold && !memchr(part.text, '\033', part.length);
	fputs(heading ? "<h2>" : "<p>", out);
	put_part(out, &part);
	fputs(heading ? "</h2>\n" : "</p>\n", out);
}

void ow_html_text(FILE *out, const char *text)
{
	enum form before = NO_ROW;
	while (*text) {
		size_t length = strcspn(text, "\n");
		enum form form = form_of(text, length, before);
		if (form != before)
			fprintf(out, "%s%s", before ? "</table></div>\n" : "",
			        form ? "<div class=\"wide\"><table>\n" : "");
		if (form)
			put_row(out, text, length);
		else
			put_line(out, text, length);
		before = form;
		text += length + (text[length] == '\n');
	}
	fputs(before ? "</table></div>\n" : "", out);
}

/* -- pictures -- */

static void put_base64(FILE *out, const uint8_t *bytes, size_t size)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < size; i += 3) {
		size_t n = size - i < 3 ? size - i : 3;
		uint32_t bits = (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
		                (n > 2 ? bytes[i + 2] : 0);
		char text[] = {digit[bits >> 18], digit[bits >> 12 & 63], n > 1 ? digit[bits >> 6 & 63] : '=',
		               n > 2 ? digit[bits & 63] : '='};
		fwrite(text, 1, sizeof text, out);
	}
}

int ow_html_picture(FILE *out, const char *name, int picture)
{
	uint8_t buffer[3 << 14];
	off_t at = 0;
	ssize_t n;
	fputs("<figure><img alt=\"", out);
	put_escaped(out, name, strlen(name));
	fputs("\" src=\"data:image/svg+xml;base64,", out);
	while ((n = pread(picture, buffer, sizeof buffer, at)) > 0) {
		/* All but the last read have a multiple of 3 bytes, so that = is only at the end. */
		n -= n > 3 ? n % 3 : 0;
		put_base64(out, buffer, (size_t)n);
		at += n;
	}
	fputs("\"></figure>\n", out);
	return n < 0 ? -errno : 0;
}
