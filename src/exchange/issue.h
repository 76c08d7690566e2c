/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Makes certificates and keys (P-256), and files of them. docs/keys.md has the same with the openssl command. */

struct ow_credential {
	EVP_PKEY *key;
	X509 *certificate;
};
void ow_credential_done(struct ow_credential *credential);

/* What a certificate is for. The texts may contain no OpenSSL syntax but their own. */
struct ow_issue {
	const char *subject;     /* CN */
	const char *alternative; /* subjectAltName as in x509v3_config(5): "DNS:london" */
	int64_t valid_s;         /* from now on; never longer than the CA. It began a day ago, as clocks may differ. */
};

/* A new authority, which signs itself. */
int ow_credential_make_ca(const char *subject, int64_t valid_s, struct ow_credential *ret_ca, struct ow_error *err);
/* A certificate for somebody's public key. */
int ow_certificate_issue(const struct ow_credential *ca, const struct ow_issue *issue, EVP_PKEY *key,
                         X509 **ret_certificate, struct ow_error *err);
/* A new key and its certificate. */
int ow_credential_make(const struct ow_credential *ca, const struct ow_issue *issue,
                       struct ow_credential *ret_credential, struct ow_error *err);

/* FOLDER/NAME.key and FOLDER/NAME.pem. -ENOENT without a message: neither exists. */
int ow_credential_load(const char *folder, const char *name, struct ow_credential *ret_credential,
                       struct ow_error *err);
/* Writes both or none; existing files are not changed (-EEXIST). */
int ow_credential_save(const char *folder, const char *name, const struct ow_credential *credential,
                       struct ow_error *err);

/* Creates a file; an existing file is not changed. Then ends it: on the disk, or removed. */
int ow_secret_create(const char *path, unsigned mode, FILE **ret_file, struct ow_error *err);
int ow_secret_finish(FILE *file, const char *path, bool written, struct ow_error *err);

/* "WHAT: the reason that OpenSSL gives". */
int ow_openssl_failed(const char *what, struct ow_error *err);
