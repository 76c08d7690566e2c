/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

/* A text that is written with stdio. */
struct ow_text {
	FILE *out;
	char *bytes;
	size_t size;
};

/* Returns where it is written; NULL without memory. */
FILE *ow_text_open(struct ow_text *text);
/* Returns what was written, which the caller frees; NULL without memory. Not if it could not be opened. */
char *ow_text_close(struct ow_text *text);
