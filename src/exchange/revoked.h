/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Keys of a fleet that are revoked although their certificates have not expired. A certificate says who it is for by a
 * URI with a generation, "oneway:point/london/2". Of each name the list has the least generation that is good; a name
 * that it does not have is good. As text:
 *
 *	# oneway: ...
 *	london 2
 */
#define OW_URI_TEXT 120
/* The URI of a certificate; "" if it has none. */
void ow_uri_of_certificate(const X509 *certificate, char ret_uri[OW_URI_TEXT]);

struct ow_revoked_name;
struct ow_revoked {
	struct ow_revoked_name *name; /* sorted */
	size_t count, room;
};
/* As many names as a fleet may have over the years. */
#define OW_REVOKED_MAX 16384
/* The longest text with so many names. */
#define OW_REVOKED_BYTES ((size_t)OW_REVOKED_MAX * 80)

void ow_revoked_done(struct ow_revoked *revoked);
/* Adds a name. If the list has it, the higher generation counts. */
int ow_revoked_add(struct ow_revoked *revoked, const char *name, uint64_t least, struct ow_error *err);
/* Adds the names of a text. Lines that begin with # are left out. -EINVAL: it is no such text. */
int ow_revoked_parse(struct ow_revoked *revoked, const char *text, struct ow_error *err);
/* The text, to be freed; NULL if there is not enough memory. */
char *ow_revoked_text(const struct ow_revoked *revoked);
/* The same for a file; a file that does not exist has no names. */
int ow_revoked_load(struct ow_revoked *revoked, const char *path, struct ow_error *err);
/* -EACCES with the reason, if the certificate of this point is revoked. */
int ow_revoked_check(const struct ow_revoked *revoked, const X509 *certificate, const char *name, struct ow_error *err);
