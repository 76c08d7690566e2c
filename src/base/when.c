/* SPDX-License-Identifier: Apache-2.0 */
/* Parses times of the command line. */
#include "base/when.h"

#include "base/time.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds since 1970 have at least this many digits (since 1973). A shorter number is a mistake. */
#define EPOCH_DIGITS 9
/* The largest number of seconds whose nanoseconds fit into 64 bits: the year 2262. */
#define EPOCH_MAX 9.2e9

struct clock_time {
	int hour, minute;
	double second;
};

static int bad(const char *text, struct ow_error *err)
{
	return ow_error_set(err, EINVAL, "'%.40s' is not a time (examples: '2026-11-15 10:02', 10:02, 1794736920)",
	                    text);
}

/* Reads 10:02, 10:02:17 or 10:02:17.5; *rest is the text after it. */
static bool read_clock(const char *text, struct clock_time *ret_time, const char **rest)
{
	int used = 0;
	*ret_time = (struct clock_time){0};
	if (!isdigit((unsigned char)*text) ||
	    sscanf(text, "%2d:%2d%n", &ret_time->hour, &ret_time->minute, &used) < 2 || !used)
		return false;
	text += used;
	if (text[0] == ':' && isdigit((unsigned char)text[1])) {
		char *end;
		ret_time->second = strtod(text + 1, &end);
		text = end;
	}
	*rest = text;
	return ret_time->hour >= 0 && ret_time->hour < 24 && ret_time->minute >= 0 && ret_time->minute < 60 &&
	       ret_time->second >= 0 && ret_time->second < 61;
}

static int64_t make(struct tm *tm, const struct clock_time *t, bool utc)
{
	tm->tm_hour = t->hour;
	tm->tm_min = t->minute;
	tm->tm_sec = (int)t->second;
	tm->tm_isdst = -1;
	time_t second = utc ? timegm(tm) : mktime(tm);
	return (int64_t)second * OW_NS_PER_S + llrint((t->second - floor(t->second)) * 1e9);
}

/* The last time at which the clock showed this time of day. */
static int read_time_of_day(const char *text, int64_t now_ns, int64_t *ret_ns, struct ow_error *err)
{
	struct clock_time t;
	const char *rest;
	time_t now = (time_t)(now_ns / OW_NS_PER_S);
	struct tm tm;
	if (!read_clock(text, &t, &rest) || (*rest && strcmp(rest, "Z") != 0))
		return bad(text, err);
	bool utc = *rest != 0;
	if (!(utc ? gmtime_r(&now, &tm) : localtime_r(&now, &tm)))
		return bad(text, err);
	struct tm day = tm;
	*ret_ns = make(&day, &t, utc);
	if (*ret_ns > now_ns) {
		tm.tm_mday--;
		*ret_ns = make(&tm, &t, utc);
	}
	return 0;
}

/* Reads Z, +05:30 or -0500: the whole text. */
static bool read_zone(const char *text, int64_t *ret_ns)
{
	int hours, minutes, used = 0;
	*ret_ns = 0;
	if (strcmp(text, "Z") == 0)
		return true;
	bool colon = strchr(text, ':');
	if ((*text != '+' && *text != '-') || !isdigit((unsigned char)text[1]) ||
	    sscanf(text + 1, colon ? "%2d:%2d%n" : "%2d%2d%n", &hours, &minutes, &used) < 2 || used != 4 + colon ||
	    text[1 + used] || hours > 14 || minutes < 0 || minutes > 59)
		return false;
	*ret_ns = (hours * 3600 + minutes * 60) * OW_NS_PER_S * (*text == '-' ? -1 : 1);
	return true;
}

static int read_date(const char *text, int64_t *ret_ns, struct ow_error *err)
{
	struct tm tm = {0};
	struct clock_time t = {0};
	int used = 0, year, month, day;
	if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) < 3 || !used || year < 1970 || year > 2261)
		return bad(text, err);
	const char *rest = text + used;
	if ((*rest == ' ' || *rest == 'T') && !read_clock(rest + 1, &t, &rest))
		return bad(text, err);
	int64_t ahead_ns = 0;
	if (*rest && (!read_zone(rest, &ahead_ns) || (*rest != 'Z' && rest == text + used)))
		return bad(text, err);
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	struct tm given = tm;
	given.tm_hour = 12;
	/* timegm would turn the 31st of a shorter month into the 1st of the next one. */
	if (timegm(&given) == -1 || given.tm_mday != day || given.tm_mon != month - 1)
		return ow_error_set(err, EINVAL, "'%.40s': there is no such day", text);
	*ret_ns = make(&tm, &t, *rest) - ahead_ns;
	return 0;
}

int ow_when_parse(const char *text, int64_t now_ns, int64_t *ret_ns, struct ow_error *err)
{
	char *end;
	size_t digits = strspn(text, "0123456789");
	if (strcmp(text, "now") == 0) {
		*ret_ns = now_ns;
		return 0;
	}
	if (*text == '-') {
		int64_t before;
		int r = ow_duration_parse(text, &before, err);
		if (r == 0)
			*ret_ns = now_ns + before;
		return r;
	}
	if (text[digits] == ':')
		return read_time_of_day(text, now_ns, ret_ns, err);
	if (digits == 4 && text[digits] == '-')
		return read_date(text, ret_ns, err);
	if (digits < EPOCH_DIGITS)
		return bad(text, err);
	double seconds = strtod(text, &end);
	if (*end || !(seconds < EPOCH_MAX))
		return bad(text, err);
	/* The fraction by itself: together, a double would be off by a fifth of a microsecond. */
	*ret_ns = (int64_t)strtoull(text, NULL, 10) * OW_NS_PER_S +
	          (text[digits] == '.' ? llrint(strtod(text + digits, NULL) * 1e9) : 0);
	return 0;
}
