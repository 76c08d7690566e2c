/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_size_parse(const char *text, uint64_t *ret_bytes, struct ow_error *err)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"", 1},         {"B", 1},      {"K", 0x1p10},   {"k", 0x1p10}, {"KiB", 0x1p10}, {"M", 0x1p20},
	             {"MiB", 0x1p20}, {"G", 0x1p30}, {"GiB", 0x1p30}, {"kB", 1e3},   {"MB", 1e6},     {"GB", 1e9}};
	char *end;
	double number = strtod(text, &end);
	while (end != text && *end == ' ')
		end++;
	for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		number *= units[i].factor;
		if (!(number >= 0 && number < 0x1p53))
			break;
		*ret_bytes = (uint64_t)number;
		return 0;
	}
	return ow_error_set(err, EINVAL, "'%.40s' is not a size (examples: 64MiB, 1GB, 65536)", text);
}
