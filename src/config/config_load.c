/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration of a point: its own file, and in a fleet the desired state, or the one before it. */
#include "base/state_file.h"
#include "config/config_fleet.h"

#include <errno.h>
#include <stdlib.h>

static int load_with(const char *path, const char *bytes, size_t size, const char *desired, size_t desired_size,
                     struct ow_config **ret_config, struct ow_error *err)
{
	struct ow_desired_head head;
	struct ow_error why;
	int r = ow_config_parse_with(path, bytes, size, desired, desired_size, ret_config, &why);
	if (r == 0)
		return 0;
	if (desired && ow_desired_head(desired, desired_size, &head, err) == 0)
		return ow_error_set(err, -r, "%.400s (with the fleet's version %ju)", why.text,
		                    (uintmax_t)head.version);
	*err = why;
	return r;
}

/* Goes on with the last desired state that was good, or with none. */
static int load_accepted(const char *path, const char *bytes, size_t size, const char *folder,
                         const struct ow_error *why, struct ow_config **ret_config)
{
	char *accepted = NULL, *file = ow_state_path(folder, OW_FLEET_ACCEPTED);
	size_t accepted_size = 0;
	struct ow_error ignored;
	if (file)
		(void)ow_state_read(file, OW_YAML_BYTES_MAX, &accepted, &accepted_size, &ignored);
	int r = load_with(path, bytes, size, accepted, accepted_size, ret_config, &ignored);
	if (r == 0)
		(*ret_config)->fleet.why = *why;
	free(accepted);
	free(file);
	return r;
}

/* Whether the point could not start with this version. */
static bool was_tried(const char *folder, uint64_t version, struct ow_error *ret_why)
{
	char *path = ow_state_path(folder, OW_FLEET_TRIED), *text = NULL, *reason = NULL;
	size_t size;
	struct ow_error ignored;
	bool tried = path && ow_state_read(path, sizeof ret_why->text, &text, &size, &ignored) == 0 &&
	             strtoull(text, &reason, 10) == version && *reason == ' ';
	if (tried)
		ow_error_set(ret_why, EINVAL, "%s", reason + 1);
	free(text);
	free(path);
	return tried;
}

static int load_desired(const char *path, const char *bytes, size_t size, const char *folder,
                        struct ow_config **ret_config, struct ow_error *err)
{
	char *desired = NULL, *file = ow_state_path(folder, OW_FLEET_DESIRED);
	size_t desired_size = 0;
	struct ow_desired_head head = {0};
	struct ow_error why;
	int r = file ? ow_state_read(file, OW_YAML_BYTES_MAX, &desired, &desired_size, err)
	             : ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	if (r == 0 && ow_desired_head(desired, desired_size, &head, &why) == 0 && was_tried(folder, head.version, err))
		r = -EINVAL;
	else if (r == 0 || r == -ENOENT)
		r = load_with(path, bytes, size, desired, desired_size, ret_config, err);
	if (r < 0 && desired && load_accepted(path, bytes, size, folder, err, ret_config) == 0) {
		if (ow_desired_head(desired, desired_size, &head, &why) == 0)
			(*ret_config)->fleet.refused = head.version;
		r = 0;
	}
	free(desired);
	free(file);
	return r;
}

int ow_config_load(const char *path, struct ow_config **ret_config, struct ow_error *err)
{
	char *bytes, *folder = NULL;
	size_t size;
	int r = ow_yaml_load(path, &bytes, &size, err);
	if (r < 0)
		return r;
	r = ow_config_state_folder(path, bytes, size, &folder, err);
	if (r == 0 && folder)
		r = load_desired(path, bytes, size, folder, ret_config, err);
	else if (r == 0)
		r = ow_config_parse(path, bytes, size, ret_config, err);
	free(folder);
	free(bytes);
	return r;
}
