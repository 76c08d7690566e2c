/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure_hops.h"

#include "base/array.h"
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 4096
#define LINE_BYTES 512 /* longer lines are never those that may be left out */
#define SAID_LINES 32  /* messages that are kept, so that another process does not repeat them */

enum { OUTPUT, MESSAGES, STREAMS };

/* What a process writes. */
struct stream {
	int fd; /* -1: it has ended */
	char *text;
	size_t length, room;
	bool held;                /* the summary began: the text is printed at the end */
	char heading[LINE_BYTES]; /* of the rows; "" = none */
};

struct hop {
	pid_t pid; /* 0: it has ended */
	struct stream stream[STREAMS];
};

struct hops {
	struct hop *hop;
	unsigned count;
	int signals;
	char said[SAID_LINES][LINE_BYTES];
	unsigned said_next;
	char heading[LINE_BYTES]; /* the last one that was printed */
	bool stopped;             /* one failed: the others were told to end */
	int code;
};

static void keep_line(const char *line, size_t length, char kept[LINE_BYTES])
{
	memcpy(kept, line, length);
	kept[length] = '\0';
}

static bool is_line(const char *line, size_t length, const char *kept)
{
	return strlen(kept) == length && memcmp(kept, line, length) == 0;
}

/* Whether another process has said the same. */
static bool was_said(struct hops *h, const char *line, size_t length)
{
	if (length >= LINE_BYTES)
		return false;
	for (unsigned i = 0; i < SAID_LINES; i++) {
		if (is_line(line, length, h->said[i]))
			return true;
	}
	keep_line(line, length, h->said[h->said_next++ % SAID_LINES]);
	return false;
}

/* Rows begin with a time, JSON with a brace. */
static bool is_heading(const char *line, size_t length)
{
	return length < LINE_BYTES && !strchr("0123456789{ ", *line) && memmem(line, length, " lane ", 6);
}

static void print_output(struct hops *h, struct stream *s, const char *line, size_t length)
{
	if (is_heading(line, length)) {
		keep_line(line, length, s->heading);
		return;
	}
	/* Hops may have other columns. */
	if (strcmp(s->heading, h->heading) != 0)
		fputs(s->heading, stdout);
	memcpy(h->heading, s->heading, sizeof h->heading);
	fwrite(line, 1, length, stdout);
}

/* Prints the whole lines. An empty one begins the summary. */
static void print_lines(struct hops *h, unsigned stream, struct stream *s)
{
	size_t at = 0;
	const char *end;
	while (!s->held && (end = memchr(s->text + at, '\n', s->length - at))) {
		size_t length = (size_t)(end - (s->text + at)) + 1;
		if (stream == OUTPUT && length == 1) {
			s->held = true;
			break;
		}
		if (stream == OUTPUT)
			print_output(h, s, s->text + at, length);
		else if (!was_said(h, s->text + at, length))
			fwrite(s->text + at, 1, length, stderr);
		at += length;
	}
	s->length -= at;
	memmove(s->text, s->text + at, s->length);
}

static void signal_all(const struct hops *h, int number)
{
	for (unsigned i = 0; i < h->count; i++) {
		if (h->hop[i].pid)
			kill(h->hop[i].pid, number);
	}
}

static void fail(struct hops *h)
{
	h->code = OW_EXIT_FAILED;
	if (!h->stopped)
		signal_all(h, SIGTERM);
	h->stopped = true;
}

/* All that it wrote was read. */
static void end_hop(struct hops *h, struct hop *hop)
{
	int status;
	while (waitpid(hop->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	hop->pid = 0;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : OW_EXIT_FAILED;
	if (code != OW_EXIT_OK && code != OW_EXIT_CROSSED)
		fail(h);
	else if (code == OW_EXIT_CROSSED && h->code == OW_EXIT_OK)
		h->code = code;
}

static void read_stream(struct hops *h, struct hop *hop, unsigned stream)
{
	struct stream *s = &hop->stream[stream];
	bool room = OW_GROW(s->text, s->room, s->length + READ_BYTES) == 0;
	ssize_t got = room ? read(s->fd, s->text + s->length, READ_BYTES) : 0;
	if (got > 0) {
		s->length += (size_t)got;
		print_lines(h, stream, s);
		return;
	}
	if (got < 0 && errno == EINTR)
		return;
	if (!room)
		fail(h);
	close(s->fd);
	s->fd = -1;
	if (hop->stream[OUTPUT].fd < 0 && hop->stream[MESSAGES].fd < 0)
		end_hop(h, hop);
}

static void pass_signal(struct hops *h)
{
	struct signalfd_siginfo signal;
	if (read(h->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
		signal_all(h, (int)signal.ssi_signo);
}

/* Returns false when all have ended. */
static bool work(struct hops *h, struct pollfd *fds)
{
	unsigned open = 0;
	for (unsigned i = 0; i < STREAMS * h->count; i++) {
		fds[i] = (struct pollfd){.fd = h->hop[i / STREAMS].stream[i % STREAMS].fd, .events = POLLIN};
		open += fds[i].fd >= 0;
	}
	fds[STREAMS * h->count] = (struct pollfd){.fd = h->signals, .events = POLLIN};
	if (!open || (poll(fds, STREAMS * h->count + 1, -1) < 0 && errno != EINTR))
		return false;
	if (fds[STREAMS * h->count].revents)
		pass_signal(h);
	for (unsigned i = 0; i < STREAMS * h->count; i++) {
		if (fds[i].fd >= 0 && fds[i].revents)
			read_stream(h, &h->hop[i / STREAMS], i % STREAMS);
	}
	if (fflush(stdout) == EOF && !h->stopped) {
		ow_cli_say("oneway match: cannot write to standard output: %s", strerror(errno));
		fail(h);
	}
	return true;
}

/* A group of its own: a signal from the terminal comes once, through this process. */
static _Noreturn void run_here(struct ow_measure *measure, int pipes[STREAMS][2], const sigset_t *signals, pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(pipes[OUTPUT][1], STDOUT_FILENO) < 0 ||
	    dup2(pipes[MESSAGES][1], STDERR_FILENO) < 0)
		_exit(OW_EXIT_FAILED);
	for (unsigned i = 0; i < STREAMS; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	sigprocmask(SIG_SETMASK, signals, NULL);
	int code = ow_measure_run(measure);
	fflush(stdout);
	_exit(code);
}

static int start(struct hop *hop, struct ow_measure *measure, const sigset_t *signals)
{
	int pipes[STREAMS][2];
	pid_t parent = getpid();
	if (pipe(pipes[OUTPUT]) < 0)
		return -errno;
	if (pipe(pipes[MESSAGES]) < 0) {
		int r = -errno;
		close(pipes[OUTPUT][0]);
		close(pipes[OUTPUT][1]);
		return r;
	}
	pid_t pid = fork();
	int r = pid < 0 ? -errno : 0;
	if (pid == 0)
		run_here(measure, pipes, signals, parent);
	for (unsigned i = 0; i < STREAMS; i++) {
		close(pipes[i][1]);
		if (r < 0)
			close(pipes[i][0]);
		else
			hop->stream[i].fd = pipes[i][0];
	}
	hop->pid = r < 0 ? 0 : pid;
	return r;
}

static void print_summaries(struct hops *h)
{
	for (unsigned i = 0; i < h->count; i++) {
		struct stream *s = &h->hop[i].stream[OUTPUT];
		if (s->length)
			fwrite(s->text, 1, s->length, stdout);
		free(s->text);
		free(h->hop[i].stream[MESSAGES].text);
	}
	fflush(stdout);
}

int ow_measure_hops_run(struct ow_measure *measures, unsigned count)
{
	struct hops h = {.count = count, .code = OW_EXIT_OK, .hop = calloc(count, sizeof *h.hop)};
	struct pollfd *fds = calloc(STREAMS * count + 1, sizeof *fds);
	sigset_t set, before;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, &before);
	h.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	int r = h.hop && fds ? 0 : -ENOMEM;
	if (r == 0 && h.signals < 0)
		r = -errno;
	for (unsigned i = 0; h.hop && i < count; i++)
		h.hop[i].stream[OUTPUT].fd = h.hop[i].stream[MESSAGES].fd = -1;
	for (unsigned i = 0; i < count && r == 0; i++)
		r = start(&h.hop[i], &measures[i], &before);
	if (r < 0) {
		ow_cli_say("oneway match: cannot start a process for each hop: %s", strerror(-r));
		h.code = OW_EXIT_FAILED;
		if (h.hop)
			fail(&h);
	}
	while (h.hop && fds && work(&h, fds))
		continue;
	if (h.hop)
		print_summaries(&h);
	if (h.signals >= 0)
		close(h.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(h.hop);
	free(fds);
	return h.code;
}
