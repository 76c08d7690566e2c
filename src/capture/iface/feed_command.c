/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a command, and its supervisor. Both processes have an end of a socket. The supervisor sends a message when
 * it has started the command, with the pipe from its standard output; so the bytes go directly from the command to the
 * reader. When the reader's end is closed, the supervisor kills the command, waits for it, and exits.
 */
#include "capture/iface/feed.h"

#include "base/clock.h"
#include "base/time.h"
#include "base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_FIRST_NS OW_NS_PER_S
#define AGAIN_MOST_NS  (30 * OW_NS_PER_S)
/* A command that ran for this long was connected: the next attempt comes soon. */
#define STEADY_NS (10 * OW_NS_PER_S)
/* From the request to end until the command is killed. */
#define END_NS OW_NS_PER_S
/* How often the supervisor looks whether the command has ended. */
#define LOOK_MS 50
/* Lines of the log in LOG_NS; a command that writes more is noisy, not informative. */
#define LOG_LINES 100
#define LOG_NS    (10 * OW_NS_PER_S)
#define LINE_MOST 1000

/* -- the supervisor ------------------------------------------------------------------------------------------------ */

struct supervisor {
	const char *title;
	char *const *words;
	int socket;
	pid_t child; /* 0: none runs */
	int errors;  /* what it writes to standard error; -1: none */
	char line[LINE_MOST + 1];
	size_t used;
	int64_t started_ns, again_ns, pause_ns;
	int64_t log_ns; /* start of the current LOG_NS */
	uint64_t logged;
};

static void log_line(struct supervisor *s, const char *text)
{
	char line[LINE_MOST + 200];
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns - s->log_ns > LOG_NS) {
		s->log_ns = now_ns;
		s->logged = 0;
	}
	if (s->logged++ > LOG_LINES)
		return;
	snprintf(line, sizeof line, "%.150s: %s", s->title,
	         s->logged > LOG_LINES ? "more lines than anybody reads: the next ones are left out" : text);
	ow_utf8_clean(line);
	dprintf(STDERR_FILENO, "%s\n", line);
}

/* Prints what the command has written, line by line. Returns false at its end. */
static bool relay_errors(struct supervisor *s)
{
	ssize_t got = read(s->errors, s->line + s->used, LINE_MOST - s->used);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	s->used += got > 0 ? (size_t)got : 0;
	char *rest = s->line, *end;
	size_t left = s->used;
	while (left && ((end = memchr(rest, '\n', left)) || got <= 0 || left == LINE_MOST)) {
		size_t length = end ? (size_t)(end - rest) : left, taken = end ? length + 1 : left;
		char text[LINE_MOST + 1];
		memcpy(text, rest, length);
		text[length] = 0;
		for (size_t i = 0; i < length; i++)
			text[i] = text[i] ? text[i] : '?';
		if (length && text[length - 1] == '\r')
			text[length - 1] = 0;
		if (*text)
			log_line(s, text);
		rest += taken;
		left -= taken;
	}
	memmove(s->line, rest, left);
	s->used = left;
	return got > 0;
}

/* The command itself. Does not return. */
static void become(const struct supervisor *s, int output, int errors, int failed)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t none;
	int nothing = open("/dev/null", O_RDONLY);
	setsid();
	/* If the supervisor is killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int signal = 1; signal < NSIG; signal++)
		sigaction(signal, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    dup2(errors, STDERR_FILENO) >= 0) {
		if (nothing > STDERR_FILENO)
			close(nothing);
		execvp(s->words[0], s->words);
	}
	int reason = errno;
	while (write(failed, &reason, sizeof reason) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Tells the reader: 0 and the pipe, or why the command cannot be run. */
static void tell(const struct supervisor *s, int reason, int output)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {&reason, sizeof reason};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (reason == 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof control.bytes;
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof output);
		memcpy(CMSG_DATA(head), &output, sizeof output);
	}
	while (sendmsg(s->socket, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void close_pair(const int pair[2])
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
	}
}

static void start(struct supervisor *s)
{
	int output[2] = {-1, -1}, errors[2] = {-1, -1}, failed[2] = {-1, -1}, reason = 0;
	s->started_ns = ow_clock_steady_ns();
	if (pipe2(output, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0 ||
	    (s->child = fork()) < 0) {
		reason = errno;
		s->child = 0;
	} else if (s->child == 0) {
		become(s, output[1], errors[1], failed[1]);
	} else {
		close(failed[1]);
		failed[1] = -1;
		while (read(failed[0], &reason, sizeof reason) < 0 && errno == EINTR)
			;
		s->errors = fcntl(errors[0], F_DUPFD_CLOEXEC, 3);
		fcntl(s->errors, F_SETFL, O_NONBLOCK);
	}
	tell(s, reason, output[0]);
	/* What cannot be run now cannot be run later. */
	if (reason && s->child) {
		waitpid(s->child, NULL, 0);
		s->child = 0;
	}
	s->again_ns = reason ? INT64_MAX : s->again_ns;
	close_pair(output);
	close_pair(errors);
	close_pair(failed);
}

/* Ends what is left of the command's processes, and plans the next attempt. */
static void ended(struct supervisor *s, int status)
{
	char text[200];
	int64_t now_ns = ow_clock_steady_ns();
	kill(-s->child, SIGKILL);
	while (s->errors >= 0 && relay_errors(s))
		if (poll(&(struct pollfd){.fd = s->errors, .events = POLLIN}, 1, 0) <= 0)
			break;
	s->child = 0;
	close(s->errors);
	s->errors = -1;
	s->used = 0;
	bool was_steady = now_ns - s->started_ns >= STEADY_NS;
	s->pause_ns = was_steady || !s->pause_ns        ? AGAIN_FIRST_NS
	              : s->pause_ns * 2 < AGAIN_MOST_NS ? s->pause_ns * 2
	                                                : AGAIN_MOST_NS;
	s->again_ns = now_ns + s->pause_ns;
	snprintf(text, sizeof text, "%.60s ended %s %d; starting it again in %lld s", s->words[0],
	         WIFSIGNALED(status) ? "by signal" : "with exit code",
	         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (long long)(s->pause_ns / OW_NS_PER_S));
	log_line(s, text);
}

/* Kills the command and waits for it. */
static void end_child(struct supervisor *s)
{
	int64_t until_ns = ow_clock_steady_ns() + END_NS;
	if (!s->child)
		return;
	kill(-s->child, SIGTERM);
	while (waitpid(s->child, NULL, WNOHANG) == 0) {
		if (ow_clock_steady_ns() > until_ns) {
			kill(-s->child, SIGKILL);
			waitpid(s->child, NULL, 0);
			break;
		}
		poll(NULL, 0, 5);
	}
	kill(-s->child, SIGKILL);
}

/* The process of the supervisor. Does not return. */
static void supervise(struct supervisor *s)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		sigaction(ignored[i], &ignore, NULL);
	/* Files of the program must not stay open because of us. */
	s->socket = dup2(s->socket, 3);
	fcntl(s->socket, F_SETFD, FD_CLOEXEC);
	syscall(SYS_close_range, 4u, ~0u, 0u);
	start(s);
	for (;;) {
		struct pollfd fds[] = {{.fd = s->socket, .events = POLLIN}, {.fd = s->errors, .events = POLLIN}};
		int status;
		poll(fds, 2, LOOK_MS);
		if (fds[0].revents)
			break;
		if (s->errors >= 0 && fds[1].revents && !relay_errors(s)) {
			close(s->errors);
			s->errors = -1;
		}
		if (s->child && waitpid(s->child, &status, WNOHANG) == s->child)
			ended(s, status);
		if (!s->child && ow_clock_steady_ns() >= s->again_ns)
			start(s);
	}
	end_child(s);
	_exit(0);
}

/* -- the reader ---------------------------------------------------------------------------------------------------- */

struct command_feed {
	struct ow_feed feed;
	int socket;
	int output; /* of the command; -1: it does not run */
	char *command;
};

/* A message of the supervisor, if there is one. */
static int take_message(struct command_feed *c, struct ow_error *err)
{
	int reason = 0;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {&reason, sizeof reason};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof control.bytes};
	ssize_t got = recvmsg(c->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return ow_error_set(err, EIO, "the process that runs '%.100s' is gone", c->command);
	if (reason)
		return ow_error_set(err, reason, "cannot run '%.100s': %s", c->command, strerror(reason));
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&c->output, CMSG_DATA(head), sizeof c->output);
	return 0;
}

static int command_read(struct ow_feed *feed, uint8_t *buffer, size_t size, struct ow_error *err)
{
	struct command_feed *c = (struct command_feed *)feed;
	if (c->output < 0) {
		int r = take_message(c, err);
		if (r < 0 || c->output < 0)
			return r;
	}
	struct pollfd ready = {.fd = c->output, .events = POLLIN};
	if (poll(&ready, 1, 0) <= 0)
		return 0;
	ssize_t got = read(c->output, buffer, size);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got < 0)
		return ow_error_set(err, errno, "cannot read: %s", strerror(errno));
	if (got > 0)
		return (int)got;
	close(c->output);
	c->output = -1;
	return OW_FEED_CUT;
}

static int command_fd(const struct ow_feed *feed)
{
	const struct command_feed *c = (const struct command_feed *)feed;
	return c->output < 0 ? c->socket : c->output;
}

static const char *command_why(const struct ow_feed *feed)
{
	return ((const struct command_feed *)feed)->output < 0 ? "was disconnected" : "was late or silent";
}

static void command_free(struct ow_feed *feed)
{
	struct command_feed *c = (struct command_feed *)feed;
	if (c->output >= 0)
		close(c->output);
	if (c->socket >= 0) {
		char rest[64];
		struct pollfd ready = {.fd = c->socket, .events = POLLIN};
		/* The supervisor exits when the command has ended. */
		shutdown(c->socket, SHUT_WR);
		while (poll(&ready, 1, (int)(3 * END_NS / OW_NS_PER_MS)) > 0 && read(c->socket, rest, sizeof rest) > 0)
			;
		close(c->socket);
	}
	free(c->command);
	free(c);
}

static int start_supervisor(struct command_feed *c, const char *title, char *const *words, struct ow_error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return ow_error_set(err, errno, "cannot make a socket: %s", strerror(errno));
	c->socket = ends[0];
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct supervisor supervisor = {.title = title, .words = words, .socket = ends[1], .errors = -1};
		supervise(&supervisor);
	}
	int reason = errno;
	close(ends[1]);
	return pid < 0 ? ow_error_set(err, reason, "cannot start a process: %s", strerror(reason)) : 0;
}

int ow_feed_open_command(const char *command, const char *title, struct ow_feed **ret_feed, struct ow_error *err)
{
	static const struct ow_feed_ops ops = {command_read, command_fd, command_why, command_free};
	char **words;
	int r = ow_feed_split(command, &words, err);
	if (r < 0)
		return r;
	struct command_feed *c = calloc(1, sizeof *c);
	if (!c) {
		free(words);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	*c = (struct command_feed){.feed = {.ops = &ops}, .socket = -1, .output = -1, .command = strdup(command)};
	r = c->command ? start_supervisor(c, title, words, err) : ow_error_set(err, ENOMEM, "out of memory");
	free(words);
	if (r < 0) {
		command_free(&c->feed);
		return r;
	}
	*ret_feed = &c->feed;
	return 0;
}
