/* SPDX-License-Identifier: Apache-2.0 */
/* Output files: a full disk is an error, and what is incomplete does not stay. */
#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

bool ow_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

void ow_remove_regular(const char *path)
{
	struct stat info;
	if (lstat(path, &info) == 0 && S_ISREG(info.st_mode))
		unlink(path);
}

int ow_output_open(struct ow_output *output, const char *path, struct ow_error *err)
{
	FILE *stream = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
	if (!stream)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	setvbuf(stream, NULL, _IOFBF, BUFFER_BYTES);
	*output = (struct ow_output){path, stream};
	return 0;
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
	if (!failed)
		return 0;
	ow_remove_regular(output->path);
	code = code ? code : EIO;
	return ow_error_set(err, code, "%s: %s", output->path, strerror(code));
}

void ow_output_abort(struct ow_output *output)
{
	if (output->stream && output->stream != stdout) {
		fclose(output->stream);
		ow_remove_regular(output->path);
	}
	output->stream = NULL;
}
