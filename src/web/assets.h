// SPDX-License-Identifier: Apache-2.0
/* The files of the page (src/web/page/), embedded in the program by tools/embed-page. */
#pragma once

#include <stddef.h>

struct ow_asset {
	const char *path;       /* as in a URL: "/", "/style.css" */
	const char *media_type; /* value of Content-Type */
	const unsigned char *bytes;
	size_t length;
	const unsigned char *gzip; /* the same bytes as a gzip stream */
	size_t gzip_length;
	const char *etag; /* value of ETag, with its quotes: follows from the bytes */
};

extern const struct ow_asset ow_assets[];
extern const size_t ow_asset_count;

/* The file of this path, or NULL. */
const struct ow_asset *ow_asset_find(const char *path);
