/* SPDX-License-Identifier: Apache-2.0 */
#include "result/cause.h"

#include <stdbool.h>
#include <string.h>

#define ROW(code, name, text) {#name, text},
static const struct {
	const char *name, *text;
} causes[OW_CAUSE_COUNT] = {{"", ""}, OW_CAUSES(ROW){"other", ""}};

const char *ow_cause_name(enum ow_cause cause)
{
	return causes[cause].name;
}

static bool is_over(const char *text)
{
	return !*text || strncmp(text, "; ", 2) == 0;
}

/*
 * Whether printf with this format could have produced the first cause of the text. A parameter may be any text, or a
 * number.
 */
static bool fits(const char *form, const char *text)
{
	for (; *form && *form != '%'; form++, text++) {
		if (*form != *text)
			return false;
	}
	if (!*form)
		return is_over(text);
	const char *rest = form + strcspn(form, "sduf") + 1;
	const char *allowed = rest[-1] == 's' ? NULL : "-0123456789";
	while (!is_over(text) && (!allowed || strchr(allowed, *text))) {
		if (fits(rest, ++text))
			return true;
	}
	return false;
}

enum ow_cause ow_cause_of(const char *text)
{
	if (!*text)
		return OW_NO_CAUSE;
	for (int i = OW_NO_CAUSE + 1; i < OW_CAUSE_OTHER; i++) {
		if (fits(causes[i].text, text) || fits(causes[i].name, text))
			return (enum ow_cause)i;
	}
	return OW_CAUSE_OTHER;
}

/* The last cause of the text that its name is shorter than; or NULL. */
static char *last_long(char *text, size_t *ret_length, const char **ret_name)
{
	char *found = NULL;
	for (char *at = text, *end; at; at = end ? end + 2 : NULL) {
		end = strstr(at, "; ");
		size_t length = end ? (size_t)(end - at) : strlen(at);
		enum ow_cause cause = ow_cause_of(at);
		if (cause == OW_CAUSE_OTHER || strlen(ow_cause_name(cause)) >= length)
			continue;
		found = at;
		*ret_length = length;
		*ret_name = ow_cause_name(cause);
	}
	return found;
}

void ow_cause_fit(char *text, size_t size)
{
	size_t length;
	const char *name;
	for (char *at; strlen(text) >= size && (at = last_long(text, &length, &name));) {
		memmove(at + strlen(name), at + length, strlen(at + length) + 1);
		memcpy(at, name, strlen(name));
	}
	if (strlen(text) >= size)
		memcpy(text + size - 4, "...", 4);
}
