/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Commands as people type them, in the working directory, which must be the test's own. Include cmocka.h before. */

/* What the last one wrote. */
static char out[1 << 20], err[1 << 16];

static inline void slurp(const char *name, char *text, size_t size)
{
	FILE *file = fopen(name, "r");
	text[0] = 0;
	if (!file)
		return;
	text[fread(text, 1, size - 1, file)] = 0;
	fclose(file);
}

/* Runs a shell command; fills out and err, returns the exit code. */
static inline int run(const char *command)
{
	char line[2000];
	assert_in_range(snprintf(line, sizeof line, "(%s) >out 2>err", command), 0, sizeof line - 1);
	int status = system(line); /* NOLINT(cert-env33-c): commands as people type them */
	slurp("out", out, sizeof out);
	slurp("err", err, sizeof err);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}
