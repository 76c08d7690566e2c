/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int ow_library_load(const char *file, const struct ow_library_function *functions, size_t count, struct ow_error *err)
{
	void *library = dlopen(file, RTLD_NOW);
	if (!library)
		return ow_error_set(err, ENOENT, "cannot load a library: %.200s", dlerror());
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function)
			return ow_error_set(err, ENOENT, "%s: no function %s", file, functions[i].name);
		memcpy(functions[i].place, &function, sizeof function);
	}
	return 0;
}
