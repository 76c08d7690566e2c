/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <oneway/error.h>
#include <stdarg.h>
#include <stdio.h>

#undef ow_error_set
int ow_error_set(struct ow_error *err, int code, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		/* The text can quote files, peers and configurations. */
		ow_utf8_clean(err->text);
	}
	return -code;
}
