/* SPDX-License-Identifier: Apache-2.0 */
/* Folders, patterns and sums of files. A name that exists is taken as it is, whatever its letters. */
#include "capture/file/file_set.h"

#include "base/array.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATTERN_CHARACTERS "*?["
#define JOIN               '+'

static bool exists(const char *path, bool *ret_folder)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return false;
	*ret_folder = S_ISDIR(st.st_mode);
	return true;
}

bool ow_file_set_is_file(const char *argument)
{
	bool folder = false;
	if (strcmp(argument, "-") == 0)
		return true;
	return exists(argument, &folder) ? !folder : !strpbrk(argument, PATTERN_CHARACTERS) && !strchr(argument, JOIN);
}

static int add(struct ow_file_set *set, const char *path, bool of_folder, struct ow_error *err)
{
	if (set->count == OW_FILE_SET_MAX)
		return ow_error_set(err, E2BIG, "%s: more than %u files", path, OW_FILE_SET_MAX);
	char *copy = OW_GROW(set->file, set->room, set->count + 1) < 0 ? NULL : strdup(path);
	if (!copy)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	set->file[set->count++] = (struct ow_file_set_file){copy, of_folder, set->parts};
	return 0;
}

/* The regular files of a folder, without hidden ones. Of a link to nothing, opening it says why. */
static int add_folder(struct ow_file_set *set, const char *path, struct ow_error *err)
{
	DIR *folder = opendir(path);
	if (!folder)
		return ow_error_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	bool slash = path[strlen(path) - 1] == '/';
	int r = 0;
	for (const struct dirent *entry; r == 0 && (entry = readdir(folder));) {
		char name[4096];
		struct stat st;
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(name, sizeof name, "%s%s%s", path, slash ? "" : "/", entry->d_name) >= (int)sizeof name)
			r = ow_error_set(err, ENAMETOOLONG, "%s: names in this folder are too long", path);
		else if (stat(name, &st) < 0 || S_ISREG(st.st_mode))
			r = add(set, name, true, err);
	}
	closedir(folder);
	return r;
}

static int add_named(struct ow_file_set *set, const char *path, struct ow_error *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return ow_error_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return add_folder(set, path, err);
	if (!S_ISREG(st.st_mode))
		return ow_error_set(err, EINVAL, "%s: is not a file: it cannot be one of several", path);
	return add(set, path, false, err);
}

static int add_pattern(struct ow_file_set *set, const char *pattern, struct ow_error *err)
{
	glob_t found;
	int r = glob(pattern, 0, NULL, &found);
	if (r == GLOB_NOMATCH)
		return ow_error_set(err, ENOENT, "%s: no file has such a name", pattern);
	if (r != 0)
		return ow_error_set(err, r == GLOB_NOSPACE ? ENOMEM : EIO, "%s: the files cannot be listed", pattern);
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		r = add_named(set, found.gl_pathv[i], err);
	globfree(&found);
	return r;
}

static int add_one(struct ow_file_set *set, const char *argument, struct ow_error *err)
{
	bool folder;
	if (!exists(argument, &folder) && strpbrk(argument, PATTERN_CHARACTERS))
		return add_pattern(set, argument, err);
	return add_named(set, argument, err);
}

static bool is_sum(const char *argument)
{
	bool folder;
	glob_t found;
	if (exists(argument, &folder) || !strchr(argument, JOIN))
		return false;
	if (!strpbrk(argument, PATTERN_CHARACTERS) || glob(argument, 0, NULL, &found) != 0)
		return true;
	globfree(&found); /* a pattern with a + in it */
	return false;
}

int ow_file_set_split(const char *argument, char ***ret_parts, unsigned *ret_count, struct ow_error *err)
{
	size_t bytes = strlen(argument) + 1;
	char **parts = malloc(OW_FILE_SET_PARTS * sizeof *parts + bytes);
	if (!parts)
		return ow_error_set(err, ENOMEM, "%s: out of memory", argument);
	char *rest = memcpy(parts + OW_FILE_SET_PARTS, argument, bytes);
	bool sum = is_sum(argument);
	unsigned count = 0;
	int r = 0;
	while (r == 0 && rest) {
		char *part = rest, *end = sum ? strchr(rest, JOIN) : NULL;
		rest = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		if (!*part)
			r = ow_error_set(err, EINVAL, "%s: a file is missing before or after +", argument);
		else if (count == OW_FILE_SET_PARTS)
			r = ow_error_set(err, E2BIG, "%s: more than %u parts", argument, OW_FILE_SET_PARTS);
		else
			parts[count++] = part;
	}
	if (r < 0) {
		free(parts);
		return r;
	}
	*ret_parts = parts;
	*ret_count = count;
	return 0;
}

/* -- each file once ----------------------------------------------------------------------------------------------- */

struct key {
	dev_t device;
	ino_t number;
	size_t place;
};

static int by_file(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static int drop_repeated(struct ow_file_set *set, struct ow_error *err)
{
	struct key *key = calloc(set->count + 1, sizeof *key);
	size_t kept = 0;
	if (!key)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < set->count; i++) {
		struct stat st = {0};
		if (stat(set->file[i].path, &st) < 0)
			st.st_ino = (ino_t)i; /* opening it will say why */
		key[i] = (struct key){st.st_dev, st.st_ino, i};
	}
	qsort(key, set->count, sizeof *key, by_file);
	for (size_t i = 1; i < set->count; i++) {
		if (key[i].device == key[i - 1].device && key[i].number == key[i - 1].number) {
			free(set->file[key[i].place].path);
			set->file[key[i].place].path = NULL;
		}
	}
	for (size_t i = 0; i < set->count; i++) {
		if (set->file[i].path)
			set->file[kept++] = set->file[i];
	}
	set->count = kept;
	free(key);
	return 0;
}

static int find(char *const *parts, unsigned count, const char *argument, struct ow_file_set *set, struct ow_error *err)
{
	int r = 0;
	for (set->parts = 0; r == 0 && set->parts < count; set->parts++)
		r = add_one(set, parts[set->parts], err);
	if (r == 0 && !set->count)
		r = ow_error_set(err, ENOENT, "%s: there are no files in this folder", argument);
	return r < 0 ? r : drop_repeated(set, err);
}

int ow_file_set_find(const char *argument, struct ow_file_set *ret_set, struct ow_error *err)
{
	char **parts;
	unsigned count;
	*ret_set = (struct ow_file_set){0};
	int r = ow_file_set_split(argument, &parts, &count, err);
	if (r < 0)
		return r;
	r = find(parts, count, argument, ret_set, err);
	free(parts);
	return r;
}

int ow_file_set_find_part(const char *part, struct ow_file_set *ret_set, struct ow_error *err)
{
	char *only[] = {(char *)part};
	*ret_set = (struct ow_file_set){0};
	return find(only, 1, part, ret_set, err);
}

/* Whether the path is a visible name in this folder. */
static bool in_folder(const char *folder, const char *path)
{
	struct stat a, b;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *its = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	bool same = its && *name != '.' && stat(folder, &a) == 0 && stat(its, &b) == 0 && a.st_dev == b.st_dev &&
	            a.st_ino == b.st_ino;
	free(its);
	return same;
}

bool ow_file_set_takes(const char *argument, const char *path)
{
	char **parts;
	unsigned count;
	bool takes = false, folder = false;
	if (ow_file_set_split(argument, &parts, &count, NULL) < 0)
		return false;
	for (unsigned i = 0; i < count && !takes; i++) {
		bool there = exists(parts[i], &folder);
		takes = there ? folder && in_folder(parts[i], path)
		              : fnmatch(parts[i], path, FNM_PATHNAME | FNM_PERIOD) == 0;
	}
	free(parts);
	return takes;
}

void ow_file_set_done(struct ow_file_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->file[i].path);
	free(set->file);
	*set = (struct ow_file_set){0};
}
