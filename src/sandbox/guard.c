/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the folders for the sandbox, and gives up the privileges in two steps. */
#include "sandbox/guard.h"

#include "sandbox/privileges.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(OW_GUARD_READ < OW_CONFINE_PATHS && OW_GUARD_FILE <= OW_CONFINE_PATHS &&
                       OW_GUARD_WRITE < OW_CONFINE_PATHS,
               "each has a place");

typedef char folder[OW_CONFINE_FOLDER];

int ow_guard_close(const struct ow_guard *guard, char ret_text[OW_CONFINE_TEXT], bool *ret_whole, struct ow_error *err)
{
	struct ow_confine_options options = {.sandbox = guard->sandbox, .database = guard->database};
	folder *folders = malloc((OW_GUARD_READ + OW_GUARD_WRITE) * sizeof *folders);
	if (!folders)
		return ow_error_set(err, ENOMEM, "not enough memory");
	unsigned n = 0;
	for (unsigned i = 0; i < OW_GUARD_READ; i++) {
		if (!guard->read[i])
			continue;
		ow_confine_folder(guard->read[i], folders[n]);
		options.read[n] = folders[n];
		n++;
	}
	for (unsigned i = 0, writes = 0; i < OW_GUARD_WRITE; i++) {
		if (!guard->write[i])
			continue;
		ow_confine_folder(guard->write[i], folders[n]);
		options.write[writes++] = folders[n];
		n++;
	}
	for (unsigned i = 0; i < OW_GUARD_FILE; i++)
		options.file[i] = guard->file[i];
	int r = ow_privileges_drop(err);
	if (r == 0)
		r = ow_confine(&options, ret_text, ret_whole, err);
	free(folders);
	return r;
}
