/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a line of JSON: not a result, refused with a reason, or a result that can be printed in every form and
 * stays the same when it is written and read again.
 */
#include "report/interval_render.h"
#include "result/result_json.h"
#include "result/result_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static char *shown(const struct ow_interval_result *result, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);
	check(out != NULL);
	ow_result_json(out, result);
	check(fclose(out) == 0);
	return text;
}

static void check_text(const struct ow_interval_result *result)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	check(out != NULL);
	struct ow_render_text list = {.out = out};
	ow_render_text(&list, result);
	check(fclose(out) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ow_interval_result result, again;
	struct ow_error err = {""};
	int r = ow_result_json_read((const char *)data, size, &result, &err);
	check(r == 0 || r == 1 || err.text[0]);
	if (r != 1)
		return 0;
	check(result.length_ns > 0 && result.status <= OW_RESULT_UNKNOWN);
	check_text(&result);
	size_t length;
	char *line = shown(&result, &length);
	/* A control character in a name becomes six bytes. */
	if (length <= OW_RESULT_LINE_MAX) {
		check(ow_result_json_read(line, length, &again, &err) == 1);
		check(again.start_ns == result.start_ns && again.length_ns == result.length_ns);
		check(again.status == result.status && again.final == result.final);
		check(strcmp(again.segment, result.segment) == 0 && strcmp(again.to, result.to) == 0);
	}
	free(line);
	return 0;
}
