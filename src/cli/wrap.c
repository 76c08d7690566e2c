/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks lines at spaces where the terminal would break them in the middle of a word. */
#include "cli/wrap.h"

#include "base/format.h"
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

struct stream {
	FILE *terminal; /* the original stream */
	size_t column;
};

static bool begins(const char *text, size_t length, const char *word)
{
	size_t n = strlen(word);
	return length >= n && memcmp(text, word, n) == 0;
}

static size_t spaces(const char *text, size_t length)
{
	size_t n = 0;
	while (n < length && text[n] == ' ')
		n++;
	return n;
}

/* The length up to the end of the first word. */
static size_t first_word(const char *text, size_t length)
{
	size_t begin = spaces(text, length);
	const char *end = memchr(text + begin, ' ', length - begin);
	return end ? (size_t)(end - text) : length;
}

/* Lines that must not be broken, because that would change what they mean to a program or a shell. */
static bool stays_whole(const char *line, size_t length)
{
	size_t indent = spaces(line, length);
	const char *text = line + indent;
	size_t left = length - indent;
	return (left && strchr("{}[]\"", *text)) || begins(text, left, "fix: ") ||
	       (indent && begins(text, left, "oneway "));
}

/*
 * The column where the following lines begin: below the text behind a label, if that leaves half of the line; otherwise
 * below the start of the line.
 */
static size_t hang_of(const char *line, size_t length, size_t width)
{
	size_t indent = 0, column = 0, colour;
	for (size_t i = 0; i < length && column <= width / 2;) {
		size_t gap = spaces(line + i, length - i);
		if (gap >= 2 && column && column + gap <= width / 2)
			return column + gap;
		if (gap && !column)
			indent = gap;
		colour = ow_format_colour(line + i, length - i);
		i += gap ? gap : colour ? colour : 1;
		column += gap ? gap : !colour;
	}
	return indent <= width / 2 ? indent : 0;
}

size_t ow_wrap_line(FILE *out, const char *line, size_t length, size_t column, size_t width)
{
	size_t hang = hang_of(line, length, width), at = 0;
	while (!stays_whole(line, length)) {
		size_t room = width > column ? width - column : 0,
		       taken = ow_format_break(line + at, length - at, room);
		if (taken == length - at)
			break;
		size_t word = first_word(line + at, length - at);
		/* A word that is longer than a line stays in one piece. */
		if (taken < word)
			taken = word;
		fwrite(line + at, 1, taken, out);
		at += taken;
		at += spaces(line + at, length - at);
		if (at == length)
			return column;
		fprintf(out, "\n%*s", (int)hang, "");
		column = hang;
	}
	fwrite(line + at, 1, length - at, out);
	return column + length - at;
}

static size_t width_of(FILE *terminal)
{
	struct winsize size;
	return ioctl(fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : SIZE_MAX / 2;
}

/* The offset behind the last control character that moves the cursor. */
static size_t moves(const char *text, size_t length)
{
	for (size_t i = length; i > 0; i--) {
		if (text[i - 1] == '\r')
			return i;
		if (text[i - 1] != '\033')
			continue;
		size_t end = i;
		while (end < length && (text[end] < '@' || text[end] == '['))
			end++;
		if (end < length && text[end] != 'm')
			return end + 1;
	}
	return 0;
}

static ssize_t write_lines(void *cookie, const char *text, size_t size)
{
	struct stream *s = cookie;
	size_t width = width_of(s->terminal);
	for (size_t at = 0; at < size;) {
		const char *line = text + at, *end = memchr(line, '\n', size - at);
		size_t length = end ? (size_t)(end - line) : size - at, moved = moves(line, length);
		if (moved) {
			fwrite(line, 1, length, s->terminal);
			s->column = length - moved;
		} else {
			s->column = ow_wrap_line(s->terminal, line, length, s->column, width);
		}
		at += length;
		if (!end)
			break;
		fputc('\n', s->terminal);
		s->column = 0;
		at++;
	}
	/* fopencookie(3) treats 0 as an error. */
	return fflush(s->terminal) == 0 ? (ssize_t)size : 0;
}

static FILE *wrapped(FILE *terminal, struct stream *s)
{
	*s = (struct stream){.terminal = terminal};
	if (!isatty(fileno(terminal)))
		return terminal;
	FILE *stream = fopencookie(s, "w", (cookie_io_functions_t){.write = write_lines});
	if (!stream)
		return terminal;
	setvbuf(stream, NULL, _IOLBF, BUFSIZ);
	setvbuf(terminal, NULL, _IOFBF, BUFSIZ);
	return stream;
}

void ow_wrap_streams(void)
{
	static struct stream out, err;
	stdout = wrapped(stdout, &out);
	stderr = wrapped(stderr, &err);
}
