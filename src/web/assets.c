// SPDX-License-Identifier: Apache-2.0
#include "web/assets.h"

#include <string.h>

const struct ow_asset *ow_asset_find(const char *path)
{
	for (size_t i = 0; i < ow_asset_count; i++)
		if (!strcmp(ow_assets[i].path, path))
			return &ow_assets[i];
	return NULL;
}
