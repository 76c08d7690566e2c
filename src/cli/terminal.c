/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the terminal: width, colour, progress. */
#include "cli/terminal.h"

#include "base/clock.h"
#include "base/time.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT  80
#define WIDTH_MAX      100
#define HEIGHT_DEFAULT 24

/*
 * A line of progress appears after two seconds, when people begin to wonder; more than five updates a second flicker.
 */
#define PROGRESS_AFTER_NS (2 * OW_NS_PER_S)
#define PROGRESS_EVERY_NS (OW_NS_PER_S / 5)

/* Works also for the streams of cli/wrap.h. */
static int descriptor_of(FILE *stream)
{
	return stream == stdout ? STDOUT_FILENO : stream == stderr ? STDERR_FILENO : fileno(stream);
}

bool ow_terminal_is(FILE *stream)
{
	return isatty(descriptor_of(stream));
}

int ow_terminal_width(FILE *stream)
{
	struct winsize size;
	if (!ow_terminal_is(stream) || ioctl(descriptor_of(stream), TIOCGWINSZ, &size) != 0 || !size.ws_col)
		return WIDTH_DEFAULT;
	return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

/* Whether the cursor can be moved: only on a terminal with TERM set, never with TERM=dumb. */
static bool can_move(FILE *stream)
{
	const char *term = getenv("TERM");
	return ow_terminal_is(stream) && term && *term && strcmp(term, "dumb") != 0;
}

bool ow_terminal_colour(FILE *stream)
{
	const char *no_color = getenv("NO_COLOR");
	return can_move(stream) && !(no_color && *no_color);
}

/* Whether the locale's characters are UTF-8, by LC_ALL, LC_CTYPE and LANG. */
static bool shows_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *locale = getenv(names[i]);
		if (locale && *locale)
			return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
	}
	return false;
}

static void stdout_size(unsigned *ret_width, unsigned *ret_height)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
	*ret_width = known ? size.ws_col : (unsigned)ow_terminal_width(stdout);
	*ret_height = known && size.ws_row ? size.ws_row : HEIGHT_DEFAULT;
}

struct ow_style ow_terminal_style(FILE *stream, bool no_color)
{
	return (struct ow_style){
		.width = ow_terminal_width(stream),
		.terminal = ow_terminal_is(stream),
		.moves = can_move(stream),
		.colour = !no_color && ow_terminal_colour(stream),
		.utf8 = shows_utf8(),
		.size = stdout_size,
	};
}

void ow_progress_init(struct ow_progress *progress, const char *what)
{
	*progress = (struct ow_progress){.what = what, .start_ns = ow_clock_steady_ns()};
	/* Without a terminal the first line of progress never becomes due. */
	progress->last_ns = can_move(stderr) ? progress->start_ns + PROGRESS_AFTER_NS - PROGRESS_EVERY_NS : INT64_MAX;
}

void ow_progress_show(void *arg, double done)
{
	struct ow_progress *progress = arg;
	int64_t now = ow_clock_steady_ns();
	if (progress->last_ns == INT64_MAX || now - progress->last_ns < PROGRESS_EVERY_NS)
		return;
	progress->last_ns = now;
	progress->shown = true;
	double left_s = done > 0.01 ? (double)(now - progress->start_ns) / 1e9 * (1 - done) / done : 0;
	fprintf(stderr, "\r\033[K%s %3.0f %%", progress->what, done * 100);
	if (left_s >= 1)
		fprintf(stderr, ", %.0f s left", left_s);
	fflush(stderr);
}

void ow_progress_done(struct ow_progress *progress)
{
	/* Before standard output gets its next line: on a terminal both streams have a buffer (wrap.h). */
	if (progress->shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	progress->shown = false;
}
