/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers, times and names for people; used by all reports. */
#include "base/format.h"

#include "base/time.h"
#include "base/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *ow_format_count(uint64_t count, char text[OW_FORMAT])
{
	char digits[24];
	int n = snprintf(digits, sizeof digits, "%" PRIu64, count), k = 0;
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			text[k++] = ',';
		text[k++] = digits[i];
	}
	text[k] = 0;
	return text;
}

const char *ow_format_short(uint64_t count, int places, char text[OW_FORMAT])
{
	static const char unit[] = {0, 'k', 'M', 'G', 'T', 'P', 'E'};
	if ((int)strlen(ow_format_count(count, text)) <= places)
		return text;
	if (snprintf(text, OW_FORMAT, "%" PRIu64, count) <= places)
		return text;
	double value = (double)count;
	int i = 0;
	for (; i < (int)sizeof unit - 1 && value >= 999.5; i++)
		value /= 1000;
	snprintf(text, OW_FORMAT, "%.*f%c", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, unit[i]);
	return text;
}

const char *ow_format_share(uint64_t part, uint64_t whole, char text[OW_FORMAT])
{
	double percent = 100 * (double)part / (double)whole;
	int decimals = percent > 0 ? 2 - (int)floor(log10(percent)) : 0;
	decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
	snprintf(text, OW_FORMAT, "%.*f %%", part == whole ? 0 : decimals, percent);
	return text;
}

const char *ow_format_percent(double ratio, char text[OW_FORMAT])
{
	double percent = 100 * ratio;
	int decimals = percent >= 99.95 ? 0 : percent >= 9.995 ? 1 : percent >= 0.9995 ? 2 : 3;
	if (isnan(ratio))
		snprintf(text, OW_FORMAT, "unknown");
	else if (percent <= 0)
		snprintf(text, OW_FORMAT, "0%%");
	else if (percent < 0.001)
		snprintf(text, OW_FORMAT, "<.001%%");
	/* Never print 100 % for a part that is not the whole. */
	else if (percent < 100 && percent >= 99.95)
		snprintf(text, OW_FORMAT, ">99.9%%");
	else
		snprintf(text, OW_FORMAT, "%.*f%%", decimals, percent);
	return text;
}

const char *ow_format_rate(double rate, const char *unit, char text[OW_FORMAT])
{
	static const char *const prefix[] = {"", "k", "M", "G", "T"};
	int i = 0;
	for (; i < 4 && rate >= 999.95; i++)
		rate /= 1000;
	snprintf(text, OW_FORMAT, "%.*f %s%s",
	         rate >= 100  ? 1
	         : rate >= 10 ? 2
	         : rate > 0   ? 3
	                      : 0,
	         rate, prefix[i], unit);
	return text;
}

const char *ow_format_digits(double value, int digits, char text[OW_FORMAT])
{
	snprintf(text, OW_FORMAT, "%.*g", digits, value == 0 ? 0 : value); /* no -0 */
	/* A host program may have set a locale with a decimal comma. */
	char *comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	return text;
}

const char *ow_format_number(double value, char text[OW_FORMAT])
{
	int digits = 15;
	for (; digits < 17; digits++) {
		snprintf(text, OW_FORMAT, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return ow_format_digits(value, digits, text);
}

static const char *time_words(int64_t ns, const char *format, bool local, char text[OW_FORMAT])
{
	/* Rounds down without computing the start of the first second, which does not fit into an int64_t. */
	int64_t rest = ns % OW_NS_PER_S, second = ns / OW_NS_PER_S - (rest < 0);
	int ms = (int)((rest < 0 ? rest + OW_NS_PER_S : rest) / OW_NS_PER_MS);
	time_t time = (time_t)second;
	struct tm tm = {0};
	if (local)
		localtime_r(&time, &tm);
	else
		gmtime_r(&time, &tm);
	size_t length = strftime(text, OW_FORMAT - 8, format, &tm);
	snprintf(text + length, OW_FORMAT - length, strchr(format, 'S') ? ".%03d" : "", ms);
	return text;
}

const char *ow_format_time(int64_t ns, const char *format, char text[OW_FORMAT])
{
	return time_words(ns, format, false, text);
}

const char *ow_format_local(int64_t ns, const char *format, char text[OW_FORMAT])
{
	return time_words(ns, format, true, text);
}

size_t ow_format_clean(const char *text, bool ascii, char *ret_clean, size_t size)
{
	size_t columns = 0, used = 0;
	for (const char *p = text; *p; columns++) {
		uint32_t code;
		size_t length = ow_utf8_next(p, &code);
		bool keep = length && ow_utf8_printable(code) && !(ascii && length > 1);
		size_t take = keep ? length : 1;
		if (used + take >= size)
			break;
		if (keep)
			memcpy(ret_clean + used, p, take);
		else
			ret_clean[used] = '?';
		used += take;
		p += length ? length : 1;
	}
	ret_clean[used] = 0;
	return columns;
}

size_t ow_format_columns(const char *clean)
{
	size_t columns = 0;
	for (; *clean; clean++)
		columns += ((unsigned char)*clean & 0xc0) != 0x80;
	return columns;
}

/* The byte at which column n of clean text begins. */
static size_t byte_of(const char *clean, size_t n)
{
	size_t i = 0;
	for (; clean[i]; i++) {
		if (((unsigned char)clean[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	}
	return i;
}

void ow_format_cut(char *clean, size_t columns)
{
	size_t all = ow_format_columns(clean);
	if (all <= columns)
		return;
	if (columns < 2) {
		clean[byte_of(clean, columns)] = 0;
		return;
	}
	size_t tail = (columns - 1) / 2, head = columns - 1 - tail;
	size_t from = byte_of(clean, all - tail), to = byte_of(clean, head);
	clean[to] = '*';
	memmove(clean + to + 1, clean + from, strlen(clean + from) + 1);
}

void ow_format_csv(FILE *out, const char *text)
{
	if (!text || !strpbrk(text, ",\"\r\n")) {
		fputs(text ? text : "", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void ow_format_csv_number(FILE *out, double value)
{
	char text[OW_FORMAT];
	if (isfinite(value))
		fputs(ow_format_number(value, text), out);
}

size_t ow_format_colour(const char *text, size_t length)
{
	size_t i = 2;
	if (length < 3 || text[0] != '\033' || text[1] != '[')
		return 0;
	while (i < length && ((text[i] >= '0' && text[i] <= '9') || text[i] == ';'))
		i++;
	return i < length && text[i] == 'm' ? i + 1 : 0;
}

/* Whether the space at text[i] separates a number from its unit, which is a percent sign or up to three letters. */
static bool before_unit(const char *text, size_t length, size_t i)
{
	size_t end = i + 1;
	if (i == 0 || text[i - 1] < '0' || text[i - 1] > '9')
		return false;
	while (end < length && (text[end] == '%' || ((text[end] | 0x20) >= 'a' && (text[end] | 0x20) <= 'z')))
		end++;
	return end > i + 1 && end <= i + 4;
}

size_t ow_format_break(const char *text, size_t length, size_t room)
{
	size_t best = 0, columns = 0;
	for (size_t i = 0; i < length;) {
		size_t colour = ow_format_colour(text + i, length - i);
		if (colour) {
			i += colour;
			continue;
		}
		if (text[i] == ' ' && (i == 0 || text[i - 1] != ' ') && !before_unit(text, length, i))
			best = i;
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (columns > room)
			return best;
		i++;
	}
	return length;
}

void ow_format_wrap(FILE *out, const char *text, int hang, int width)
{
	size_t room = width > hang ? (size_t)(width - hang) : 1;
	for (;;) {
		text += strspn(text, " ");
		size_t length = ow_format_break(text, strlen(text), room);
		/* A word longer than a line (a path) is not broken, so that it can be copied. */
		if (!length)
			length = strcspn(text, " ");
		for (size_t i = 0; i < length; i++)
			fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], out);
		fputc('\n', out);
		text += length;
		text += strspn(text, " ");
		if (!*text)
			return;
		fprintf(out, "%*s", hang, "");
	}
}
