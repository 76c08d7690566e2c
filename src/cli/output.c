/* SPDX-License-Identifier: Apache-2.0 */
/* Output files: a full disk is an error, and no incomplete file is left behind. */
#include "cli/output.h"

#include "cli/options.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

bool ow_output_is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

bool ow_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* The folder of a path, "." if the path has none. The caller frees it; NULL if there is no memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* Whether a file can be created or written at path. */
static int can_write(const char *path, struct ow_error *err)
{
	struct stat info;
	if (strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &info) == 0) {
		if (S_ISDIR(info.st_mode))
			return ow_error_set(err, EISDIR, "%.300s: %s", path, strerror(EISDIR));
		return access(path, W_OK) == 0 ? 0 : ow_error_set(err, errno, "%.300s: %s", path, strerror(errno));
	}
	if (errno != ENOENT)
		return ow_error_set(err, errno, "%.300s: %s", path, strerror(errno));
	char *folder = folder_of(path);
	int r = 0;
	if (!folder)
		r = ow_error_set(err, ENOMEM, "%.300s: %s", path, strerror(ENOMEM));
	else if (stat(folder, &info) != 0 || access(folder, W_OK | X_OK) != 0)
		r = ow_error_set(err, errno, "%.200s: the folder %.200s: %s", path, folder, strerror(errno));
	free(folder);
	return r;
}

int ow_option_output(void *field, const char *value, struct ow_error *err)
{
	int r = can_write(value, err);
	return r < 0 ? r : ow_option_text(field, value, err);
}

/* Creates a file in the same folder, with the same mode. The caller frees the name. */
static FILE *open_beside(const char *path, char **ret_name)
{
	struct stat info;
	mode_t mask = umask(0);
	umask(mask);
	char *real = realpath(path, NULL), *name = NULL;
	mode_t mode = real && stat(real, &info) == 0 ? info.st_mode & 0777 : 0666 & ~mask;
	int fd = asprintf(&name, "%s.XXXXXX", real ? real : path) < 0 ? -1 : mkostemp(name, O_CLOEXEC);
	FILE *stream = fd >= 0 && fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
	free(real);
	if (stream) {
		*ret_name = name;
		return stream;
	}
	int code = errno;
	if (fd >= 0) {
		close(fd);
		unlink(name);
	}
	free(name);
	errno = code;
	return NULL;
}

int ow_output_open(struct ow_output *output, const char *path, struct ow_error *err)
{
	struct stat info;
	char *unfinished = NULL;
	FILE *stream;
	if (strcmp(path, "-") == 0)
		stream = stdout;
	else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		stream = fopen(path, "we");
	else
		stream = open_beside(path, &unfinished);
	if (!stream)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	setvbuf(stream, NULL, _IOFBF, BUFFER_BYTES);
	*output = (struct ow_output){path, stream, unfinished};
	return 0;
}

/* Renames the unfinished file to its final name, which lacks the last six letters. Returns 0 or an errno. */
static int give_name(const char *unfinished)
{
	char *name = strndup(unfinished, strlen(unfinished) - strlen(".XXXXXX"));
	int code = !name ? ENOMEM : rename(unfinished, name) == 0 ? 0 : errno;
	free(name);
	return code;
}

int ow_output_check(const struct ow_output *output, struct ow_error *err)
{
	if (!ferror_unlocked(output->stream))
		return 0;
	int code = errno ? errno : EIO;
	return ow_error_set(err, code, "%s: %s", output->path, strerror(code));
}

int ow_output_close(struct ow_output *output, struct ow_error *err)
{
	FILE *stream = output->stream;
	if (!stream)
		return 0;
	errno = 0;
	bool failed = fflush(stream) != 0 || ferror(stream);
	int code = errno;
	output->stream = NULL;
	if (stream == stdout)
		return failed ? ow_error_set(err, code ? code : EIO, "standard output: %s", strerror(code)) : 0;
	if (fclose(stream) != 0 && !failed) {
		failed = true;
		code = errno;
	}
	if (!failed && output->unfinished) {
		code = give_name(output->unfinished);
		failed = code != 0;
	}
	if (failed && output->unfinished)
		unlink(output->unfinished);
	free(output->unfinished);
	output->unfinished = NULL;
	if (!failed)
		return 0;
	code = code ? code : EIO;
	return ow_error_set(err, code, "%s: %s", output->path, strerror(code));
}

void ow_output_abort(struct ow_output *output)
{
	if (output->stream && output->stream != stdout)
		fclose(output->stream);
	if (output->stream && output->unfinished)
		unlink(output->unfinished);
	free(output->unfinished);
	*output = (struct ow_output){.path = output->path};
}
