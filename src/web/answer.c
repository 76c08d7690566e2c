/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as the web server sends them: headers, compression, files of the page. */
#include "web/answer.h"

#include "web/assets.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define POLICY(form)                                                                            \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " \
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action " form "; frame-ancestors 'none'"

/* Shorter ones are sent as they are. */
#define GZIP_MIN   1024
#define FILE_BYTES ((size_t)4 << 20)
#define BLOCK      16384

static bool takes_gzip(struct MHD_Connection *connection)
{
	const char *accepted = ow_mhd_header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	const char *gzip = accepted ? strstr(accepted, "gzip") : NULL;
	return gzip && strncmp(gzip, "gzip;q=0", 8) != 0;
}

/* Sends and releases the response. */
static enum MHD_Result send_with(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
                                 const char *type, const char *policy)
{
	if (!response)
		return MHD_NO;
	ow_mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	ow_mhd.add_response_header(response, "Content-Security-Policy", policy);
	ow_mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
	ow_mhd.add_response_header(response, "Referrer-Policy", "no-referrer");
	ow_mhd.add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	ow_mhd.add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
	enum MHD_Result r = ow_mhd.queue_response(connection, status, response);
	ow_mhd.destroy_response(response);
	return r;
}

static enum MHD_Result send_it(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
                               const char *type)
{
	return send_with(connection, status, response, type, POLICY("'none'"));
}

static void no_cache(struct MHD_Response *response)
{
	if (response)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

/* NULL: no memory, or it does not become shorter. */
static char *compress_it(const char *bytes, size_t size, size_t *ret_size)
{
	z_stream z = {0};
	/* 15 + 16: with the header of gzip. The fastest level: numbers compress well with any. */
	if (size > UINT32_MAX || deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	char *out = malloc(size);
	z.next_in = (Bytef *)(uintptr_t)bytes;
	z.avail_in = (uInt)size;
	z.next_out = (Bytef *)out;
	z.avail_out = out ? (uInt)size : 0;
	int code = out ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	*ret_size = size - z.avail_out;
	deflateEnd(&z);
	if (code == Z_STREAM_END)
		return out;
	free(out);
	return NULL;
}

enum MHD_Result ow_answer_json(struct MHD_Connection *connection, struct ow_api_answer *answer)
{
	size_t packed = 0;
	char *gzip = answer->size >= GZIP_MIN && takes_gzip(connection)
	                     ? compress_it(answer->body, answer->size, &packed)
	                     : NULL;
	struct MHD_Response *response = ow_mhd.create_response_from_buffer(
		gzip ? packed : answer->size, gzip ? gzip : answer->body, MHD_RESPMEM_MUST_FREE);
	if (gzip || !response)
		free(answer->body);
	if (gzip && !response)
		free(gzip);
	if (gzip && response)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	no_cache(response);
	if (response)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
	if (response && answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (response && (answer->status == 429 || answer->status == MHD_HTTP_SERVICE_UNAVAILABLE))
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	if (response && answer->status == MHD_HTTP_UNAUTHORIZED)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	return send_it(connection, answer->status, response, "application/json");
}

enum MHD_Result ow_answer_error(struct MHD_Connection *connection, unsigned status, const char *why)
{
	struct ow_api_answer answer;
	return ow_api_refuse(status, why, &answer) < 0 ? MHD_NO : ow_answer_json(connection, &answer);
}

/* -- the page ----------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_asset(struct MHD_Connection *connection, const struct ow_asset *asset)
{
	const char *known = ow_mhd_header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
	bool is_known = known && strstr(known, asset->etag), gzip = !is_known && asset->gzip && takes_gzip(connection);
	const unsigned char *bytes = gzip ? asset->gzip : asset->bytes;
	struct MHD_Response *response =
		ow_mhd.create_response_from_buffer(is_known ? 0
	                                           : gzip   ? asset->gzip_length
	                                                    : asset->length,
	                                           (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	if (gzip)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	ow_mhd.add_response_header(response, MHD_HTTP_HEADER_ETAG, asset->etag);
	ow_mhd.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	ow_mhd.add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
	return send_it(connection, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response, asset->media_type);
}

static const char *type_of(const char *path)
{
	static const char *const types[][2] = {
		{".html", "text/html; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".js", "text/javascript; charset=utf-8"},
		{".svg", "image/svg+xml"},
		{".json", "application/json"},
		{".png", "image/png"},
	};
	const char *end = strrchr(path, '.');
	for (size_t i = 0; end && i < sizeof types / sizeof *types; i++) {
		if (strcmp(end, types[i][0]) == 0)
			return types[i][1];
	}
	return "application/octet-stream";
}

static enum MHD_Result send_file(struct MHD_Connection *connection, const char *path, const char *folder)
{
	char name[4096];
	bool is_long = snprintf(name, sizeof name, "%s%s", folder, path) >= (int)sizeof name;
	int fd = is_long || strstr(path, "..") ? -1 : open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *bytes = fd < 0 ? NULL : malloc(FILE_BYTES);
	ssize_t size = bytes ? read(fd, bytes, FILE_BYTES) : -1;
	if (fd >= 0)
		close(fd);
	if (size < 0) {
		free(bytes);
		return ow_answer_error(connection, MHD_HTTP_NOT_FOUND, "no such page");
	}
	struct MHD_Response *response = ow_mhd.create_response_from_buffer((size_t)size, bytes, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(bytes);
	no_cache(response);
	return send_it(connection, MHD_HTTP_OK, response, type_of(path));
}

enum MHD_Result ow_answer_file(struct MHD_Connection *connection, const char *path, const char *folder)
{
	if (folder)
		return send_file(connection, strcmp(path, "/") == 0 ? "/index.html" : path, folder);
	const struct ow_asset *asset = ow_asset_find(path);
	return asset ? send_asset(connection, asset) : ow_answer_error(connection, MHD_HTTP_NOT_FOUND, "no such page");
}

/* -- others ------------------------------------------------------------------------------------------------------- */

enum MHD_Result ow_answer_sign_in(struct MHD_Connection *connection)
{
	static char form[] = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>oneway</title>"
			     "<meta name=\"viewport\" content=\"width=device-width\"><h1>oneway</h1>"
			     "<form action=\"/\"><label>Token <input name=\"token\" type=\"password\" required "
			     "autocomplete=\"current-password\"></label> <button>Open</button></form></html>\n";
	struct MHD_Response *response =
		ow_mhd.create_response_from_buffer(sizeof form - 1, form, MHD_RESPMEM_PERSISTENT);
	no_cache(response);
	if (response)
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	return send_with(connection, MHD_HTTP_UNAUTHORIZED, response, "text/html; charset=utf-8", POLICY("'self'"));
}

enum MHD_Result ow_answer_redirect(struct MHD_Connection *connection, const char *to, const char *cookie)
{
	static char nothing[] = "";
	struct MHD_Response *response = ow_mhd.create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
	no_cache(response);
	if (response) {
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_LOCATION, to);
		ow_mhd.add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
	}
	return send_it(connection, MHD_HTTP_SEE_OTHER, response, "text/plain");
}

enum MHD_Result ow_answer_stream(struct MHD_Connection *connection, MHD_ContentReaderCallback reader,
                                 MHD_ContentReaderFreeCallback done, void *arg)
{
	struct MHD_Response *response =
		ow_mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, reader, arg, done);
	if (!response)
		done(arg);
	no_cache(response);
	return send_it(connection, MHD_HTTP_OK, response, "text/event-stream");
}
