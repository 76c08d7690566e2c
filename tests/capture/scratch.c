/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "capture/file/mapping.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 64

struct scratch {
	char dir[512];
	char *paths[FILES_MAX];
	size_t n_paths;
};

int scratch_setup(void **state)
{
	struct scratch *s = calloc(1, sizeof *s);
	const char *base = getenv("TMPDIR");

	if (!s)
		return -1;
	snprintf(s->dir, sizeof s->dir, "%s/oneway-test-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(s->dir)) {
		free(s);
		return -1;
	}
#ifdef MAPPED
	ow_mapping_allow();
#endif
	*state = s;
	return 0;
}

int scratch_teardown(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < s->n_paths; i++) {
		unlink(s->paths[i]);
		free(s->paths[i]);
	}
	rmdir(s->dir);
	free(s);
	return 0;
}

const char *scratch_path(struct scratch *s, const char *name)
{
	char path[1024];

	snprintf(path, sizeof path, "%s/%s", s->dir, name);
	for (size_t i = 0; i < s->n_paths; i++) {
		if (strcmp(s->paths[i], path) == 0)
			return s->paths[i];
	}
	assert_true(s->n_paths < FILES_MAX);
	s->paths[s->n_paths] = strdup(path);
	return s->paths[s->n_paths++];
}

const char *scratch_save(struct scratch *s, const char *name, const void *bytes, size_t size)
{
	const char *path = scratch_path(s, name);
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

uint8_t *scratch_load(struct scratch *s, const char *name, size_t *ret_size)
{
	FILE *file = fopen(scratch_path(s, name), "rb");
	struct stat st;
	uint8_t *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	*ret_size = fread(bytes, 1, (size_t)st.st_size, file);
	fclose(file);
	return bytes;
}
