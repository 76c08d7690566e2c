/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/output.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

int ow_sim_output_open(const char *path, FILE **ret_out, struct ow_error *err)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	if (!out)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	*ret_out = out;
	return 0;
}

int ow_sim_output_close(const char *path, FILE *out, struct ow_error *err)
{
	if (!out)
		return 0;
	bool bad = ferror(out) || fflush(out) != 0;
	int code = errno;
	if (out != stdout && fclose(out) != 0 && !bad) {
		bad = true;
		code = errno;
	}
	return bad ? ow_error_set(err, code, "%s: %s", path, strerror(code)) : 0;
}
