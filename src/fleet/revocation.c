/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/revocation.h"

#include "base/state_file.h"
#include "exchange/revoked.h"
#include "fleet/streams.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is good of a point: the generation that it has, or the one that it would get next. */
static int list_points(const struct ow_fleet *fleet, struct ow_revoked *revoked, struct ow_error *err)
{
	struct ow_fleet_point *points = NULL;
	size_t count = 0;
	int r = ow_fleet_points(fleet, &points, &count, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t least = points[i].generation + (points[i].state != OW_FLEET_ENROLLED);
		if (least > 1)
			r = ow_revoked_add(revoked, points[i].name, least, err);
	}
	free(points);
	return r;
}

int ow_revocation_publish(const struct ow_fleet *fleet, const struct ow_credential *ca, struct ow_bus *bus,
                          struct ow_error *err)
{
	struct ow_revoked revoked = {0};
	char *text = NULL, *bytes = NULL;
	size_t size = 0;
	uint64_t revision;
	int r = list_points(fleet, &revoked, err);
	if (r == 0 && !(text = ow_revoked_text(&revoked)))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	/* The version only tells people when it was made. */
	if (r == 0)
		r = ow_desired_sign(ca, OW_REVOCATION_NAME, (uint64_t)time(NULL), text, &bytes, &size, err);
	if (r == 0 && size > OW_DESIRED_MAX)
		r = ow_error_set(err, EFBIG, "the list of revoked points has more than %u bytes", OW_DESIRED_MAX);
	if (r == 0)
		r = ow_bus_put_key(bus, OW_BUCKET_CONFIG, OW_REVOCATION_KEY, bytes, size, OW_BUS_ANY, &revision, err);
	ow_revoked_done(&revoked);
	free(text);
	free(bytes);
	return r;
}

int ow_revocation_reserve(struct ow_bus *bus, struct ow_error *err)
{
	uint64_t revision;
	int r = ow_bus_put_key(bus, OW_BUCKET_CONFIG, OW_REVOCATION_KEY, OW_DESIRED_NONE, strlen(OW_DESIRED_NONE), 0,
	                       &revision, err);
	return r == -ESTALE ? 0 : r;
}

/* The names of the file, and those of the message. */
static int merge(const char *path, const char *body, char **ret_before, char **ret_after, struct ow_error *err)
{
	struct ow_revoked revoked = {0};
	int r = ow_revoked_load(&revoked, path, err);
	if (r == 0 && !(*ret_before = ow_revoked_text(&revoked)))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = ow_revoked_parse(&revoked, body, err);
	if (r == 0 && !(*ret_after = ow_revoked_text(&revoked)))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	ow_revoked_done(&revoked);
	return r;
}

int ow_revocation_take(const char *folder, const char *bytes, size_t size, struct ow_error *err)
{
	struct ow_desired_head head;
	char *path = NULL, *body = NULL, *before = NULL, *after = NULL;
	int r = ow_desired_check(folder, OW_REVOCATION_NAME, bytes, size, &head, err);
	if (r == 0 && (!(path = ow_state_path(folder, OW_FLEET_REVOKED_KEYS)) ||
	               !(body = strndup(bytes + head.body, size - head.body))))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = merge(path, body, &before, &after, err);
	if (r == 0 && strcmp(before, after) != 0) {
		r = ow_state_write(path, after, strlen(after), err);
		r = r < 0 ? r : 1;
	}
	free(path);
	free(body);
	free(before);
	free(after);
	return r;
}
