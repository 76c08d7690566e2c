/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays corpora: passes every file of the directories (or the files) in the arguments to the fuzz target, as
 * libFuzzer would, in any build and with any compiler. The sanitizers detect faults.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Larger than any useful corpus file; the limit keeps a stray file from using all memory. */
#define INPUT_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
	if (size > INPUT_MAX) {
		fprintf(stderr, "%s: larger than %u bytes\n", path, INPUT_MAX);
		return 1;
	}
	/* On the heap with exactly this size, so that a read past the end is detected. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *file = fopen(path, "rb");
	if (!data || !file || fread(data, 1, size, file) != size) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		free(data);
		if (file)
			fclose(file);
		return 1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int replay(const char *path, unsigned *files);

static int replay_directory(const char *path, unsigned *files)
{
	struct dirent **entry;
	int entries = scandir(path, &entry, NULL, alphasort), failed = 0;
	if (entries < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	for (int i = 0; i < entries; i++) {
		char *name = NULL;
		if (entry[i]->d_name[0] != '.' && asprintf(&name, "%s/%s", path, entry[i]->d_name) >= 0)
			failed |= replay(name, files);
		free(name);
		free(entry[i]);
	}
	free(entry);
	return failed;
}

static int replay(const char *path, unsigned *files)
{
	struct stat status;
	if (stat(path, &status) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	if (S_ISDIR(status.st_mode))
		return replay_directory(path, files);
	++*files;
	return replay_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
	unsigned files = 0;
	int failed = 0;
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i], &files);
	printf("%u inputs replayed\n", files);
	if (files == 0)
		fprintf(stderr, "no inputs: a fuzz target needs a corpus\n");
	return failed || files == 0;
}
