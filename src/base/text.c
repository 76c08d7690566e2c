/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdlib.h>

FILE *ow_text_open(struct ow_text *text)
{
	text->bytes = NULL;
	text->out = open_memstream(&text->bytes, &text->size);
	return text->out;
}

char *ow_text_close(struct ow_text *text)
{
	if (fclose(text->out) == 0)
		return text->bytes;
	free(text->bytes);
	return NULL;
}
