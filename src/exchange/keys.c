/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys for points without their own CA: one CA in a folder, and a certificate for each point, whose name is a DNS name
 * in subjectAltName. All keys are P-256. docs/keys.md has the same with the openssl command.
 */
#include "exchange/session.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CA_DAYS     3650         /* unless the points' certificates are valid for longer */
#define EARLIER     (24L * 3600) /* valid from a day ago, because the points' clocks may differ */
#define SERIAL_BITS 127          /* RFC 5280: up to 20 bytes, positive */
#define PSK_BYTES   32

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

static void identity_done(struct identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
	*identity = (struct identity){0};
}

static int failed(const char *what, struct ow_error *err)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return ow_error_set(err, EIO, "%s: %s", what, text ? text : "OpenSSL failed");
}

/* Creates a file; an existing file is not changed. */
static int create_file(const char *path, mode_t mode, FILE **ret_file, struct ow_error *err)
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

static int finish_file(FILE *file, const char *path, bool written, struct ow_error *err)
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

/* Writes NAME.key and NAME.pem: both or none. */
static int save(const char *folder, const char *name, const struct identity *identity, struct ow_error *err)
{
	char *key = NULL, *certificate = NULL;
	FILE *file = NULL;
	int r = path_in(folder, name, ".key", &key);
	if (r == 0)
		r = path_in(folder, name, ".pem", &certificate);
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = create_file(key, 0600, &file, err);
	if (r == 0) {
		errno = 0;
		bool written = PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL) == 1;
		r = finish_file(file, key, written, err);
	}
	if (r == 0) {
		r = create_file(certificate, 0644, &file, err);
		if (r == 0) {
			errno = 0;
			r = finish_file(file, certificate, PEM_write_X509(file, identity->certificate) == 1, err);
		}
		if (r < 0)
			unlink(key);
	}
	free(key);
	free(certificate);
	return r;
}

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

/* Names consist of letters, digits and "._-" (ow_point_name_valid), so that they contain no OpenSSL syntax. */
static bool add_alternative_name(X509 *certificate, const char *name)
{
	char value[4 + OW_POINT_NAME];
	snprintf(value, sizeof value, "DNS:%s", name);
	return add_extension(certificate, NULL, NID_subject_alt_name, value);
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

/* A certificate for a new key, without the differences between CA and point. */
static bool begin(struct identity *identity, const char *subject, unsigned days)
{
	identity->key = EVP_EC_gen("P-256");
	X509 *c = identity->certificate = X509_new();
	return identity->key && c && X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) &&
	       set_subject(c, subject) && X509_gmtime_adj(X509_getm_notBefore(c), -EARLIER) &&
	       X509_time_adj_ex(X509_getm_notAfter(c), (int)days, 0, NULL) && X509_set_pubkey(c, identity->key) == 1;
}

static bool make_ca(struct identity *ca, unsigned days)
{
	if (!begin(ca, "oneway CA", days > CA_DAYS ? days : CA_DAYS))
		return false;
	X509 *c = ca->certificate;
	return X509_set_issuer_name(c, X509_get_subject_name(c)) == 1 &&
	       add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_extension(c, c, NID_subject_key_identifier, "hash") && X509_sign(c, ca->key, EVP_sha256()) > 0;
}

static bool make_point(struct identity *point, const char *name, const struct identity *ca, unsigned days)
{
	if (!begin(point, name, days))
		return false;
	X509 *c = point->certificate;
	const ASN1_TIME *last = X509_get0_notAfter(ca->certificate);
	if (ASN1_TIME_compare(X509_get0_notAfter(c), last) > 0 && X509_set1_notAfter(c, last) != 1)
		return false;
	return X509_set_issuer_name(c, X509_get_subject_name(ca->certificate)) == 1 &&
	       add_extension(c, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(c, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
	       add_extension(c, ca->certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
	       add_extension(c, ca->certificate, NID_subject_key_identifier, "hash") &&
	       add_extension(c, ca->certificate, NID_authority_key_identifier, "keyid") &&
	       add_alternative_name(c, name) && X509_sign(c, ca->key, EVP_sha256()) > 0;
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

/* Loads an existing CA. -ENOENT: neither of its files exists. */
static int load_ca(const char *key_path, const char *path, struct identity *ret_ca, struct ow_error *err)
{
	FILE *key = fopen(key_path, "re"), *certificate = fopen(path, "re");
	int r = 0;
	if (!key && !certificate && errno == ENOENT)
		return -ENOENT;
	if (!key || !certificate) {
		r = ow_error_set(err, EINVAL,
		                 "%s and %s: one cannot be read, and without both there is no CA to sign with", path,
		                 key_path);
	} else {
		ret_ca->key = PEM_read_PrivateKey(key, NULL, no_passphrase, NULL);
		ret_ca->certificate = PEM_read_X509(certificate, NULL, no_passphrase, NULL);
		if (!ret_ca->key || !ret_ca->certificate ||
		    X509_check_private_key(ret_ca->certificate, ret_ca->key) != 1)
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

static int get_ca(const char *folder, unsigned days, struct identity *ret_ca, struct ow_error *err)
{
	char *key = NULL, *certificate = NULL;
	int r = path_in(folder, "ca", ".key", &key);
	if (r == 0)
		r = path_in(folder, "ca", ".pem", &certificate);
	if (r < 0)
		ow_error_set(err, ENOMEM, "out of memory");
	else
		r = load_ca(key, certificate, ret_ca, err);
	free(key);
	free(certificate);
	if (r != -ENOENT)
		return r;
	if (!make_ca(ret_ca, days))
		return failed("making a CA", err);
	return save(folder, "ca", ret_ca, err);
}

static int check_free(const char *folder, const char *name, const char *suffix, struct ow_error *err)
{
	char *path = NULL;
	struct stat status;
	int r = path_in(folder, name, suffix, &path);
	if (r < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (lstat(path, &status) == 0)
		r = ow_error_set(err, EEXIST, "%s is there already, nothing was written", path);
	free(path);
	return r;
}

static int check_names(const char *folder, const char *const *names, unsigned count, struct ow_error *err)
{
	for (unsigned i = 0; i < count; i++) {
		if (!ow_point_name_valid(names[i]))
			return ow_error_set(err, EINVAL,
			                    "'%.80s' is not a name of a point (1 to %d letters, digits, '.', '_', '-')",
			                    names[i], OW_POINT_NAME - 1);
		if (strcmp(names[i], "ca") == 0)
			return ow_error_set(err, EINVAL, "a point cannot be named 'ca': those files are the CA's");
		for (unsigned j = 0; j < i; j++) {
			if (strcmp(names[i], names[j]) == 0)
				return ow_error_set(err, EINVAL, "'%s' is given twice", names[i]);
		}
		int r = check_free(folder, names[i], ".key", err);
		if (r == 0)
			r = check_free(folder, names[i], ".pem", err);
		if (r < 0)
			return r;
	}
	return 0;
}

int ow_tls_make_certificates(const char *folder, const char *const *names, unsigned count, unsigned days,
                             struct ow_error *err)
{
	struct identity ca = {0};
	ERR_clear_error();
	if (days == 0 || days > OW_TLS_DAYS_MAX)
		return ow_error_set(err, EINVAL, "certificates are valid for 1 to %d days", OW_TLS_DAYS_MAX);
	int r = check_names(folder, names, count, err);
	if (r < 0)
		return r;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return ow_error_set(err, errno, "%s: %s", folder, strerror(errno));
	r = get_ca(folder, days, &ca, err);
	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct identity point = {0};
		if (make_point(&point, names[i], &ca, days))
			r = save(folder, names[i], &point, err);
		else
			r = failed(names[i], err);
		identity_done(&point);
	}
	identity_done(&ca);
	return r;
}

int ow_tls_make_psk(const char *path, struct ow_error *err)
{
	uint8_t key[PSK_BYTES];
	FILE *file = NULL;
	ERR_clear_error();
	if (RAND_priv_bytes(key, sizeof key) != 1)
		return failed("making a key", err);
	int r = create_file(path, 0600, &file, err);
	if (r < 0)
		return r;
	errno = 0;
	for (size_t i = 0; i < sizeof key; i++)
		fprintf(file, "%02x", key[i]);
	putc('\n', file);
	OPENSSL_cleanse(key, sizeof key);
	return finish_file(file, path, !ferror(file), err);
}
