/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs gnuplot. Its input, output and errors are files in memory: it cannot block, however much it writes, and an
 * existing file at path stays if it fails. The last bytes show whether the plot is complete.
 */
#include "report/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAILER_BYTES 32
#define COMPLAINT_MAX 400

/* Starts gnuplot and waits. Returns the wait status, or a negative errno. */
static int spawn_and_wait(int input, int output, int complaints)
{
	/* -d: ignore the user's settings. The script comes from standard input. */
	char *argv[] = {"gnuplot", "-d", "-", NULL};
	posix_spawn_file_actions_t actions;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	pid_t pid;
	int status, r = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
	if (r == 0)
		r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return status;
}

/* The last line that is not empty: gnuplot prints the position first and then the reason. */
static void last_line(int fd, char text[COMPLAINT_MAX])
{
	off_t size = lseek(fd, 0, SEEK_END), from = size > COMPLAINT_MAX - 1 ? size - (COMPLAINT_MAX - 1) : 0;
	ssize_t length = pread(fd, text, COMPLAINT_MAX - 1, from);
	if (length < 0)
		length = 0;
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		length--;
	text[length] = 0;
	char *line = strrchr(text, '\n');
	if (line)
		memmove(text, line + 1, strlen(line));
}

static bool is_complete(int fd, const char *trailer)
{
	char end[TRAILER_BYTES];
	struct stat info;
	if (fstat(fd, &info) != 0)
		return false;
	off_t from = info.st_size > TRAILER_BYTES ? info.st_size - TRAILER_BYTES : 0;
	ssize_t length = pread(fd, end, sizeof end, from);
	return length > 0 && memmem(end, (size_t)length, trailer, strlen(trailer));
}

static int run(int input, int output, int complaints, const char *path, const char *trailer, struct ow_error *err)
{
	char text[COMPLAINT_MAX];
	int status = spawn_and_wait(input, output, complaints);
	if (status == -ENOENT)
		return ow_error_set(err, ENOENT, "%.80s: gnuplot is not installed (Debian package gnuplot-nox)", path);
	if (status < 0)
		return ow_error_set(err, -status, "%.80s: gnuplot: %s", path, strerror(-status));
	last_line(complaints, text);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return ow_error_set(err, EIO, "%.80s: gnuplot failed: %s", path, *text ? text : "no reason given");
	if (!is_complete(output, trailer))
		return ow_error_set(err, EIO, "%.80s: gnuplot left the plot incomplete: %s", path,
		                    *text ? text : "no reason given");
	return 0;
}

int ow_gnuplot_begin(const char *path, FILE **ret_script, struct ow_error *err)
{
	int fd = memfd_create("script", MFD_CLOEXEC);
	FILE *script = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!script) {
		int code = errno;
		if (fd >= 0)
			close(fd);
		return ow_error_set(err, code, "%s: %s", path, strerror(code));
	}
	*ret_script = script;
	return 0;
}

/* Writes the plot to its file. An incomplete file is removed. */
static int copy_out(int picture, const char *path, struct ow_error *err)
{
	struct stat info;
	char buffer[1 << 16];
	ssize_t length = 0;
	int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), code = errno;
	if (output < 0)
		return ow_error_set(err, code, "%s: %s", path, strerror(code));
	bool ours = fstat(output, &info) == 0 && S_ISREG(info.st_mode);
	bool failed = lseek(picture, 0, SEEK_SET) != 0;
	while (!failed && (length = read(picture, buffer, sizeof buffer)) > 0) {
		for (ssize_t at = 0, n; !failed && at < length; at += n)
			failed = (n = write(output, buffer + at, (size_t)(length - at))) <= 0;
	}
	failed = failed || length < 0;
	code = errno;
	if (close(output) != 0 && !failed) {
		failed = true;
		code = errno;
	}
	if (failed && ours)
		unlink(path);
	return failed ? ow_error_set(err, code, "%s: %s", path, strerror(code)) : 0;
}

int ow_gnuplot_draw(FILE *script, const char *path, const char *trailer, int *ret_picture, struct ow_error *err)
{
	if (fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) != 0)
		return ow_error_set(err, errno, "%s: script for gnuplot: %s", path, strerror(errno));
	int complaints = memfd_create("gnuplot", MFD_CLOEXEC);
	if (complaints < 0)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	int output = memfd_create("picture", MFD_CLOEXEC);
	int r = output < 0 ? ow_error_set(err, errno, "%s: %s", path, strerror(errno))
	                   : run(fileno(script), output, complaints, path, trailer, err);
	close(complaints);
	if (r == 0)
		*ret_picture = output;
	else if (output >= 0)
		close(output);
	return r;
}

/* The plot is made in memory, so that an existing file at path stays until there is a new one. */
int ow_gnuplot_run(FILE *script, const char *path, const char *trailer, struct ow_error *err)
{
	int picture = -1, r = ow_gnuplot_draw(script, path, trailer, &picture, err);
	if (r != 0)
		return r;
	r = copy_out(picture, path, err);
	close(picture);
	return r;
}
