/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/desired.h"

#include "base/state_file.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE_MAX 256 /* bytes; 72 with P-256 */

/* The first line up to the signature, and all that follows the line. */
static bool digest(EVP_MD_CTX *context, bool verify, const char *line, size_t line_size, const char *body,
                   size_t body_size)
{
	int (*update)(EVP_MD_CTX *, const void *, size_t) = verify ? EVP_DigestVerifyUpdate : EVP_DigestSignUpdate;
	return update(context, line, line_size) == 1 && update(context, "\n", 1) == 1 &&
	       update(context, body, body_size) == 1;
}

int ow_desired_sign(const struct ow_credential *ca, const char *point, uint64_t version, const char *body,
                    char **ret_bytes, size_t *ret_size, struct ow_error *err)
{
	char line[200];
	uint8_t signature[SIGNATURE_MAX], text[2 * SIGNATURE_MAX];
	size_t size = sizeof signature;
	int length =
		snprintf(line, sizeof line, "# oneway: desired state of %s, version %ju", point, (uintmax_t)version);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool done = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, ca->key) == 1 &&
	            digest(context, false, line, (size_t)length, body, strlen(body)) &&
	            EVP_DigestSignFinal(context, signature, &size) == 1;
	EVP_MD_CTX_free(context);
	if (!done)
		return ow_openssl_failed("signing", err);
	EVP_EncodeBlock(text, signature, (int)size);
	int n = asprintf(ret_bytes, "%s, signature %s\n%s", line, (char *)text, body);
	if (n < 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	*ret_size = (size_t)n;
	return 0;
}

/* Base64 without line breaks. There is one text for the same bytes: unused bits of the last digit are zero. */
static int decode(const char *text, size_t length, uint8_t bytes[SIGNATURE_MAX], size_t *ret_size)
{
	uint8_t room[SIGNATURE_MAX + 3], again[2 * SIGNATURE_MAX];
	if (length == 0 || length % 4 || length / 4 * 3 > SIGNATURE_MAX)
		return -EINVAL;
	int n = EVP_DecodeBlock(room, (const uint8_t *)text, (int)length);
	if (n < 0)
		return -EINVAL;
	n -= (text[length - 1] == '=') + (text[length - 2] == '=');
	if (EVP_EncodeBlock(again, room, n) != (int)length || memcmp(again, text, length) != 0)
		return -EINVAL;
	memcpy(bytes, room, (size_t)n);
	*ret_size = (size_t)n;
	return 0;
}

int ow_desired_verify(const X509 *ca, const char *point, const char *bytes, size_t size,
                      struct ow_desired_head *ret_head, struct ow_error *err)
{
	struct ow_desired_head head;
	uint8_t signature[SIGNATURE_MAX];
	size_t length;
	int r = ow_desired_head(bytes, size, &head, err);
	if (r < 0)
		return r;
	if (strcmp(head.point, point) != 0)
		return ow_error_set(err, EACCES, "it is for '%s', but this point is '%s'", head.point, point);
	if (decode(head.signature, head.signature_size, signature, &length) < 0)
		return ow_error_set(err, EACCES, "its signature is damaged");
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, X509_get0_pubkey(ca)) == 1 &&
	            digest(context, true, bytes, head.signed_size, bytes + head.body, size - head.body) &&
	            EVP_DigestVerifyFinal(context, signature, length) == 1;
	EVP_MD_CTX_free(context);
	ERR_clear_error();
	if (!good)
		return ow_error_set(err, EACCES, "it is not signed by the fleet's authority");
	*ret_head = head;
	return 0;
}

static X509 *load_ca(const char *folder)
{
	char *path = ow_state_path(folder, OW_FLEET_CA);
	FILE *file = path ? ow_state_open(path) : NULL;
	X509 *ca = file ? PEM_read_X509(file, NULL, NULL, "") : NULL;
	if (file)
		fclose(file);
	free(path);
	ERR_clear_error();
	return ca;
}

/* Compares with what the point has. 1: it is newer. */
static int compare(const char *path, const struct ow_desired_head *head, const char *bytes, size_t size,
                   struct ow_error *err)
{
	char *old = NULL;
	size_t old_size;
	struct ow_desired_head before;
	struct ow_error ignored;
	int r = 1;
	if (ow_state_read(path, OW_DESIRED_MAX, &old, &old_size, &ignored) < 0)
		return 1;
	if (ow_desired_head(old, old_size, &before, &ignored) < 0 || head->version > before.version)
		r = 1;
	else if (head->version < before.version)
		r = ow_error_set(err, ESTALE, "version %ju is older than %ju", (uintmax_t)head->version,
		                 (uintmax_t)before.version);
	else if (old_size - before.body != size - head->body ||
	         memcmp(old + before.body, bytes + head->body, size - head->body) != 0)
		r = ow_error_set(err, ESTALE, "another version %ju is here", (uintmax_t)head->version);
	else
		r = 0;
	free(old);
	return r;
}

int ow_desired_check(const char *folder, const char *point, const char *bytes, size_t size,
                     struct ow_desired_head *ret_head, struct ow_error *err)
{
	if (size > OW_DESIRED_MAX)
		return ow_error_set(err, EFBIG, "it has more than %u bytes", OW_DESIRED_MAX);
	X509 *ca = load_ca(folder);
	int r = ca ? ow_desired_verify(ca, point, bytes, size, ret_head, err)
	           : ow_error_set(err, ENOENT, "%s has no certificate of the authority", folder);
	X509_free(ca);
	return r;
}

int ow_desired_take(const char *folder, const char *point, const char *bytes, size_t size, struct ow_error *err)
{
	struct ow_desired_head head;
	char *path = ow_state_path(folder, OW_FLEET_DESIRED);
	int r = path ? ow_desired_check(folder, point, bytes, size, &head, err)
	             : ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = compare(path, &head, bytes, size, err);
	if (r == 1) {
		int written = ow_state_write(path, bytes, size, err);
		r = written < 0 ? written : 1;
	}
	free(path);
	return r;
}
