/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/issue.h"

#include "base/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EARLIER     (24L * 3600) /* valid from a day ago, because clocks may differ */
#define SERIAL_BITS 127          /* RFC 5280: up to 20 bytes, positive */
#define DAY_S       86400

void ow_credential_done(struct ow_credential *credential)
{
	EVP_PKEY_free(credential->key);
	X509_free(credential->certificate);
	*credential = (struct ow_credential){0};
}

int ow_openssl_failed(const char *what, struct ow_error *err)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return ow_error_set(err, EIO, "%s: %s", what, text ? text : "OpenSSL failed");
}

/* -- files --------------------------------------------------------------------------------------------------------- */

int ow_secret_create(const char *path, unsigned mode, FILE **ret_file, struct ow_error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		return ow_error_set(err, error, "%s: %s", path, strerror(error));
	}
	*ret_file = file;
	return 0;
}

int ow_secret_finish(FILE *file, const char *path, bool written, struct ow_error *err)
{
	bool good = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
	int error = errno;
	if (fclose(file) != 0 && good) {
		error = errno;
		good = false;
	}
	if (good)
		return 0;
	unlink(path);
	ERR_clear_error();
	return ow_error_set(err, error ? error : EIO, "%s: cannot be written: %s", path, strerror(error ? error : EIO));
}

static int path_in(const char *folder, const char *name, const char *suffix, char **ret_path)
{
	return asprintf(ret_path, "%s/%s%s", folder, name, suffix) < 0 ? -ENOMEM : 0;
}

int ow_credential_save(const char *folder, const char *name, const struct ow_credential *credential,
                       struct ow_error *err)
{
	char *key = NULL, *certificate = NULL;
	FILE *file = NULL;
	int r = path_in(folder, name, ".key", &key);
	if (r == 0)
		r = path_in(folder, name, ".pem", &certificate);
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = ow_secret_create(key, 0600, &file, err);
	if (r == 0) {
		errno = 0;
		bool written = PEM_write_PrivateKey(file, credential->key, NULL, NULL, 0, NULL, NULL) == 1;
		r = ow_secret_finish(file, key, written, err);
	}
	if (r == 0) {
		r = ow_secret_create(certificate, 0644, &file, err);
		if (r == 0) {
			errno = 0;
			r = ow_secret_finish(file, certificate, PEM_write_X509(file, credential->certificate) == 1,
			                     err);
		}
		if (r < 0)
			unlink(key);
	}
	free(key);
	free(certificate);
	return r;
}

/* Prevents a question at the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
	(void)buffer;
	(void)size;
	(void)writing;
	(void)arg;
	return -1;
}

static int load_files(const char *key_path, const char *path, struct ow_credential *ret_credential,
                      struct ow_error *err)
{
	FILE *key = ow_state_open(key_path), *certificate = ow_state_open(path);
	int r = 0;
	if (!key && !certificate && errno == ENOENT)
		return -ENOENT;
	if (!key || !certificate) {
		r = ow_error_set(err, EINVAL, "%s and %s: one cannot be read, and both are needed", path, key_path);
	} else {
		ret_credential->key = PEM_read_PrivateKey(key, NULL, no_passphrase, NULL);
		ret_credential->certificate = PEM_read_X509(certificate, NULL, no_passphrase, NULL);
		if (!ret_credential->key || !ret_credential->certificate ||
		    X509_check_private_key(ret_credential->certificate, ret_credential->key) != 1)
			r = ow_error_set(err, EINVAL, "%s and %s: not a certificate and its key without passphrase",
			                 path, key_path);
		ERR_clear_error();
	}
	if (key)
		fclose(key);
	if (certificate)
		fclose(certificate);
	return r;
}

int ow_credential_load(const char *folder, const char *name, struct ow_credential *ret_credential, struct ow_error *err)
{
	char *key = NULL, *certificate = NULL;
	int r = path_in(folder, name, ".key", &key);
	if (r == 0)
		r = path_in(folder, name, ".pem", &certificate);
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	else
		r = load_files(key, certificate, ret_credential, err);
	if (r < 0)
		ow_credential_done(ret_credential);
	free(key);
	free(certificate);
	return r;
}

/* -- certificates -------------------------------------------------------------------------------------------------- */

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool set_serial(X509 *certificate)
{
	BIGNUM *serial = BN_new();
	bool set = serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
	           BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate));
	BN_free(serial);
	return set;
}

static bool set_subject(X509 *certificate, const char *name)
{
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
	                                  (const unsigned char *)name, -1, -1, 0) == 1;
}

/* A certificate without the differences between an authority and others. */
static X509 *begin(EVP_PKEY *key, const char *subject, int64_t valid_s)
{
	X509 *c = X509_new();
	if (c && X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) && set_subject(c, subject) &&
	    X509_gmtime_adj(X509_getm_notBefore(c), -EARLIER) &&
	    X509_time_adj_ex(X509_getm_notAfter(c), (int)(valid_s / DAY_S), (long)(valid_s % DAY_S), NULL) &&
	    X509_set_pubkey(c, key) == 1)
		return c;
	X509_free(c);
	return NULL;
}

static bool sign_itself(X509 *c, EVP_PKEY *key)
{
	return X509_set_issuer_name(c, X509_get_subject_name(c)) == 1 &&
	       add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_extension(c, c, NID_subject_key_identifier, "hash") && X509_sign(c, key, EVP_sha256()) > 0;
}

int ow_credential_make_ca(const char *subject, int64_t valid_s, struct ow_credential *ret_ca, struct ow_error *err)
{
	struct ow_credential ca = {.key = EVP_EC_gen("P-256")};
	ca.certificate = ca.key ? begin(ca.key, subject, valid_s) : NULL;
	if (!ca.certificate || !sign_itself(ca.certificate, ca.key)) {
		ow_credential_done(&ca);
		return ow_openssl_failed("making a CA", err);
	}
	*ret_ca = ca;
	return 0;
}

static bool end_with_ca(X509 *c, const X509 *ca)
{
	const ASN1_TIME *last = X509_get0_notAfter(ca);
	return ASN1_TIME_compare(X509_get0_notAfter(c), last) <= 0 || X509_set1_notAfter(c, last) == 1;
}

static bool sign(X509 *c, const struct ow_credential *ca, const char *alternative)
{
	return end_with_ca(c, ca->certificate) &&
	       X509_set_issuer_name(c, X509_get_subject_name(ca->certificate)) == 1 &&
	       add_extension(c, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(c, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
	       add_extension(c, ca->certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
	       add_extension(c, ca->certificate, NID_subject_key_identifier, "hash") &&
	       add_extension(c, ca->certificate, NID_authority_key_identifier, "keyid") &&
	       add_extension(c, NULL, NID_subject_alt_name, alternative) && X509_sign(c, ca->key, EVP_sha256()) > 0;
}

int ow_certificate_issue(const struct ow_credential *ca, const struct ow_issue *issue, EVP_PKEY *key,
                         X509 **ret_certificate, struct ow_error *err)
{
	X509 *c = begin(key, issue->subject, issue->valid_s);
	if (!c || !sign(c, ca, issue->alternative)) {
		X509_free(c);
		return ow_openssl_failed(issue->subject, err);
	}
	*ret_certificate = c;
	return 0;
}

int ow_credential_make(const struct ow_credential *ca, const struct ow_issue *issue,
                       struct ow_credential *ret_credential, struct ow_error *err)
{
	struct ow_credential made = {.key = EVP_EC_gen("P-256")};
	int r = made.key ? ow_certificate_issue(ca, issue, made.key, &made.certificate, err)
	                 : ow_openssl_failed(issue->subject, err);
	if (r < 0)
		ow_credential_done(&made);
	else
		*ret_credential = made;
	return r;
}
