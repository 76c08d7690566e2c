/* SPDX-License-Identifier: Apache-2.0 */
/* A file of events of incidents, to which each is written once. */
#include "station/incident_file.h"

#include "base/array.h"
#include "base/id_map.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* So much of the end of the file is looked at. */
#define TAIL_BYTES     (4L << 20)
#define LINE_MAX_BYTES 65536

struct known {
	uint64_t id; /* hash */
	uint32_t number;
	bool ended;
};

struct ow_incident_file {
	FILE *out;
	char *path;
	struct known *known;
	uint32_t count, room;
	struct ow_id_map by_id;
};

static struct known *find(const struct ow_incident_file *file, uint64_t id)
{
	uint32_t known = OW_ID_MAP_FIND(&file->by_id, id, i, file->known[i].id == id);
	return known == OW_ID_MAP_NONE ? NULL : &file->known[known];
}

static int remember(struct ow_incident_file *file, const char *text, json_int_t number, const char *event)
{
	uint64_t id = XXH3_64bits(text, strlen(text));
	struct known *known = find(file, id);
	if (number < 0 || number > UINT32_MAX)
		return 0;
	if (!known) {
		if (OW_GROW(file->known, file->room, file->count + 1) < 0 ||
		    ow_id_map_add(&file->by_id, id, file->count) < 0)
			return -ENOMEM;
		known = &file->known[file->count++];
		*known = (struct known){.id = id};
	}
	if (number > known->number)
		known->number = (uint32_t)number;
	known->ended |= event && strcmp(event, "end") == 0;
	return 0;
}

/* What is no line of ours is none of our business. */
static int read_line(struct ow_incident_file *file, const char *line)
{
	json_t *root = json_loads(line, 0, NULL);
	const json_t *incident = json_object_get(root, "incident");
	const char *id = json_string_value(json_object_get(incident, "id"));
	const char *event = json_string_value(json_object_get(incident, "event"));
	int r = id ? remember(file, id, json_integer_value(json_object_get(incident, "number")), event) : 0;
	json_decref(root);
	return r;
}

/* Reads what the file has. A line without an end is of a station that was killed: the next one begins behind it. */
static int read_known(struct ow_incident_file *file)
{
	char *line = malloc(LINE_MAX_BYTES);
	int r = line ? 0 : -ENOMEM;
	bool ended = true;
	fseek(file->out, 0, SEEK_END);
	long size = ftell(file->out);
	fseek(file->out, size > TAIL_BYTES ? size - TAIL_BYTES : 0, SEEK_SET);
	while (r == 0 && fgets(line, LINE_MAX_BYTES, file->out)) {
		r = read_line(file, line);
		ended = line[strlen(line) - 1] == '\n';
	}
	if (r == 0 && !ended) {
		fseek(file->out, 0, SEEK_END);
		fputc('\n', file->out);
	}
	free(line);
	return r;
}

int ow_incident_file_open(const char *path, struct ow_incident_file **ret_file, struct ow_error *err)
{
	struct ow_incident_file *file = calloc(1, sizeof(*file));
	struct ow_error closing;
	if (!file || !(file->path = strdup(path))) {
		free(file);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	file->out = fopen(path, "a+e");
	int r = file->out ? read_known(file) : -errno;
	if (r < 0) {
		ow_incident_file_close(file, &closing);
		return ow_error_set(err, -r, "%s: %s", path, strerror(-r));
	}
	*ret_file = file;
	return 0;
}

bool ow_incident_file_wants(const struct ow_incident_file *file, const char *id, uint32_t number, bool is_end)
{
	const struct known *known = find(file, XXH3_64bits(id, strlen(id)));
	return !known || (!known->ended && (is_end || number > known->number));
}

FILE *ow_incident_file_out(struct ow_incident_file *file)
{
	return file->out;
}

int ow_incident_file_close(struct ow_incident_file *file, struct ow_error *err)
{
	int r = 0;
	if (!file)
		return 0;
	if (file->out) {
		bool failed = ferror(file->out);
		if (fclose(file->out) != 0 || failed)
			r = ow_error_set(err, errno ? errno : EIO, "%s: not all incidents could be written",
			                 file->path);
	}
	free(file->path);
	free(file->known);
	ow_id_map_done(&file->by_id);
	free(file);
	return r;
}
