/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/revoked.h"

#include "base/array.h"
#include "base/state_file.h"
#include "base/text.h"
#include "exchange/session.h"
#include <errno.h>
#include <inttypes.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct ow_revoked_name {
	char name[OW_POINT_NAME];
	uint64_t least;
};

void ow_uri_of_certificate(const X509 *certificate, char ret_uri[OW_URI_TEXT])
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	*ret_uri = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type != GEN_URI || *ret_uri)
			continue;
		int length = ASN1_STRING_length(name->d.uniformResourceIdentifier);
		const void *text = ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
		if (length > 0 && length < OW_URI_TEXT && !memchr(text, 0, (size_t)length)) {
			memcpy(ret_uri, text, (size_t)length);
			ret_uri[length] = 0;
		}
	}
	GENERAL_NAMES_free(names);
}

void ow_revoked_done(struct ow_revoked *revoked)
{
	free(revoked->name);
	*revoked = (struct ow_revoked){0};
}

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct ow_revoked_name *)entry)->name);
}

static struct ow_revoked_name *find(const struct ow_revoked *revoked, const char *name)
{
	return revoked->count ? bsearch(name, revoked->name, revoked->count, sizeof *revoked->name, by_name) : NULL;
}

int ow_revoked_add(struct ow_revoked *revoked, const char *name, uint64_t least, struct ow_error *err)
{
	struct ow_revoked_name *found = find(revoked, name);
	if (found) {
		found->least = least > found->least ? least : found->least;
		return 0;
	}
	if (revoked->count >= OW_REVOKED_MAX)
		return ow_error_set(err, EFBIG, "more than %d names of revoked points", OW_REVOKED_MAX);
	if (OW_GROW(revoked->name, revoked->room, revoked->count + 1) < 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	size_t at = revoked->count++;
	for (; at > 0 && strcmp(revoked->name[at - 1].name, name) > 0; at--)
		revoked->name[at] = revoked->name[at - 1];
	snprintf(revoked->name[at].name, sizeof revoked->name[at].name, "%s", name);
	revoked->name[at].least = least;
	return 0;
}

int ow_revoked_parse(struct ow_revoked *revoked, const char *text, struct ow_error *err)
{
	int r = 0;
	for (const char *line = text, *end; r == 0 && *line; line = *end ? end + 1 : end) {
		char name[OW_POINT_NAME], number[20];
		int used = 0;
		end = strchrnul(line, '\n');
		if (*line == '#' || line == end)
			continue;
		if (sscanf(line, "%63[A-Za-z0-9._-] %19[0-9]%n", name, number, &used) != 2 || line + used != end ||
		    !ow_point_name_valid(name))
			r = ow_error_set(err, EINVAL, "'%.*s' is not a line of a list of revoked points",
			                 (int)(end - line < 60 ? end - line : 60), line);
		else
			r = ow_revoked_add(revoked, name, strtoull(number, NULL, 10), err);
	}
	return r;
}

char *ow_revoked_text(const struct ow_revoked *revoked)
{
	struct ow_text text;
	FILE *out = ow_text_open(&text);
	if (!out)
		return NULL;
	fputs("# name, least generation that is good\n", out);
	for (size_t i = 0; i < revoked->count; i++)
		fprintf(out, "%s %" PRIu64 "\n", revoked->name[i].name, revoked->name[i].least);
	return ow_text_close(&text);
}

int ow_revoked_load(struct ow_revoked *revoked, const char *path, struct ow_error *err)
{
	char *text = NULL;
	size_t size;
	int r = ow_state_read(path, OW_REVOKED_BYTES, &text, &size, err);
	if (r == 0)
		r = ow_revoked_parse(revoked, text, err);
	free(text);
	return r == -ENOENT ? 0 : r;
}

int ow_revoked_check(const struct ow_revoked *revoked, const X509 *certificate, const char *name, struct ow_error *err)
{
	char uri[OW_URI_TEXT], number[20] = "0";
	const struct ow_revoked_name *entry = find(revoked, name);
	if (!entry)
		return 0;
	/* A certificate without a generation is older than all that have one. */
	ow_uri_of_certificate(certificate, uri);
	(void)sscanf(uri, "oneway:point/%*63[A-Za-z0-9._-]/%19[0-9]", number);
	uint64_t generation = strtoull(number, NULL, 10);
	return generation >= entry->least
	               ? 0
	               : ow_error_set(err, EACCES,
	                              "the peer's certificate ('%s', generation %" PRIu64 ") is revoked by the fleet",
	                              name, generation);
}
