/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of state: whole, private, bounded. */
#include "base/state_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void replaces_as_a_whole(void **state)
{
	(void)state;
	char folder[] = "/tmp/oneway-state-XXXXXX", path[64], next[80], *bytes = NULL;
	size_t size;
	struct ow_error err;
	struct stat status;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/file", folder);
	snprintf(next, sizeof next, "%s.new", path);
	assert_int_equal(ow_state_read(path, 10, &bytes, &size, &err), -ENOENT);
	assert_int_equal(ow_state_write(path, "0123456789", 10, &err), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(access(next, F_OK), -1);
	assert_int_equal(ow_state_read(path, 10, &bytes, &size, &err), 0);
	assert_int_equal(size, 10);
	assert_string_equal(bytes, "0123456789");
	free(bytes);
	assert_int_equal(ow_state_read(path, 9, &bytes, &size, &err), -EFBIG);
	/* A draft of a process that was killed is no obstacle. */
	FILE *left = fopen(next, "w");
	fputs("half", left);
	fclose(left);
	assert_int_equal(ow_state_write(path, "x", 1, &err), 0);
	assert_int_equal(ow_state_read(path, 9, &bytes, &size, &err), 0);
	assert_string_equal(bytes, "x");
	free(bytes);
	/* Where nothing can be written, the old file stays. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(ow_state_write(path, "x", 1, &err), -ENOENT);
}

/* What waits for another program is refused, and not waited for. */
static void only_files(void **state)
{
	(void)state;
	char folder[] = "/tmp/oneway-state-XXXXXX", path[64], *bytes = NULL;
	size_t size;
	struct ow_error err;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ow_state_read(path, 10, &bytes, &size, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a file"));
	assert_null(ow_state_open(path));
	assert_int_equal(errno, EINVAL);
	assert_null(ow_state_open(folder));
	assert_int_equal(unlink(path), 0);
	FILE *file = fopen(path, "w");
	fclose(file);
	file = ow_state_open(path);
	assert_non_null(file);
	fclose(file);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Who can make files in the folder cannot have others written, nor a writer wait. */
static void replaces_links_and_pipes(void **state)
{
	(void)state;
	char folder[] = "/tmp/oneway-state-XXXXXX", path[64], next[80], victim[64], *bytes = NULL;
	size_t size;
	struct ow_error err;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/file", folder);
	snprintf(next, sizeof next, "%s.new", path);
	snprintf(victim, sizeof victim, "%s/victim", folder);
	assert_int_equal(ow_state_write(victim, "precious", 8, &err), 0);
	for (int kind = 0; kind < 4; kind++) {
		const char *name = kind == 3 ? path : next;
		assert_int_equal(kind == 0   ? mkfifo(name, 0600)
		                 : kind == 1 ? link(victim, name)
		                             : symlink(victim, name),
		                 0);
		assert_int_equal(ow_state_write(path, "new", 3, &err), 0);
		assert_int_equal(ow_state_read(path, 10, &bytes, &size, &err), 0);
		assert_string_equal(bytes, "new");
		free(bytes);
		assert_int_equal(ow_state_read(victim, 10, &bytes, &size, &err), 0);
		assert_string_equal(bytes, "precious");
		free(bytes);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(mkdir(next, 0700), 0);
	assert_int_equal(ow_state_write(path, "new", 3, &err), -EEXIST);
	assert_int_equal(rmdir(next), 0);
	assert_int_equal(unlink(victim), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(replaces_as_a_whole), cmocka_unit_test(only_files),
	                                   cmocka_unit_test(replaces_links_and_pipes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
