/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <oneway/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define END_BYTES 200 /* of a text that is too long: what is wrong stands behind the name that makes it long */

/* Makes a text that does not fit from its beginning and its end. */
static void leave_middle_out(struct ow_error *err, int length, const char *format, va_list args)
{
	char *whole;
	if (vasprintf(&whole, format, args) < 0)
		return;
	snprintf(err->text, sizeof err->text, "%.*s...%s", (int)sizeof err->text - END_BYTES - 4, whole,
	         whole + length - END_BYTES);
	free(whole);
}

#undef ow_error_set
int ow_error_set(struct ow_error *err, int code, const char *format, ...)
{
	if (err) {
		va_list args, again;
		va_start(args, format);
		va_copy(again, args);
		int length = vsnprintf(err->text, sizeof err->text, format, args);
		if (length >= (int)sizeof err->text)
			leave_middle_out(err, length, format, again);
		va_end(again);
		va_end(args);
		/* The text can quote files, peers and configurations. */
		ow_utf8_clean(err->text);
	}
	return -code;
}
