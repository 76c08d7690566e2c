/* SPDX-License-Identifier: Apache-2.0 */
#include "mint.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *open_file(const struct keys *keys, const char *name, const char *suffix, const char *mode)
{
	char file[80];
	snprintf(file, sizeof file, "%s%s", name, suffix);
	FILE *stream = fopen(keys_path(keys, file), mode);
	assert_non_null(stream);
	return stream;
}

static void extend(X509 *certificate, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, NULL, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	assert_non_null(extension);
	assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

static void save(const struct keys *keys, const char *file, X509 *certificate, EVP_PKEY *key)
{
	FILE *stream = open_file(keys, file, ".pem", "w");
	assert_int_equal(PEM_write_X509(stream, certificate), 1);
	fclose(stream);
	stream = open_file(keys, file, ".key", "w");
	assert_int_equal(fchmod(fileno(stream), 0600), 0);
	assert_int_equal(PEM_write_PrivateKey(stream, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(stream);
}

void mint(const struct keys *keys, const char *file, const struct mint *mint)
{
	FILE *stream = open_file(keys, "ca", ".key", "r");
	EVP_PKEY *ca_key = PEM_read_PrivateKey(stream, NULL, NULL, NULL), *key = EVP_EC_gen("P-256");
	fclose(stream);
	stream = open_file(keys, "ca", ".pem", "r");
	X509 *ca = PEM_read_X509(stream, NULL, NULL, NULL), *certificate = X509_new();
	fclose(stream);
	assert_true(ca_key && key && ca && certificate);
	X509_set_version(certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7);
	X509_time_adj_ex(X509_getm_notBefore(certificate), (int)mint->from_days, 0, NULL);
	X509_time_adj_ex(X509_getm_notAfter(certificate), (int)mint->until_days, 0, NULL);
	if (mint->cn)
		X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
		                           (const unsigned char *)mint->cn, -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(ca));
	X509_set_pubkey(certificate, key);
	extend(certificate, NID_ext_key_usage, mint->use ? mint->use : "serverAuth,clientAuth");
	if (mint->alternative)
		extend(certificate, NID_subject_alt_name, mint->alternative);
	assert_true(X509_sign(certificate, ca_key, EVP_sha256()) > 0);
	save(keys, file, certificate, key);
	X509_free(certificate);
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
}

void raw_make(struct raw *raw, int fd, bool server, const struct keys *keys, const char *file, int version)
{
	raw->fd = fd;
	raw->context = SSL_CTX_new(TLS_method());
	assert_non_null(raw->context);
	assert_int_equal(SSL_CTX_set_min_proto_version(raw->context, version), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(raw->context, version), 1);
	if (file) {
		char path[80];
		snprintf(path, sizeof path, "%s.pem", file);
		assert_int_equal(SSL_CTX_use_certificate_chain_file(raw->context, keys_path(keys, path)), 1);
		snprintf(path, sizeof path, "%s.key", file);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(raw->context, keys_path(keys, path), SSL_FILETYPE_PEM), 1);
	}
	raw->ssl = SSL_new(raw->context);
	assert_non_null(raw->ssl);
	assert_int_equal(SSL_set_fd(raw->ssl, fd), 1);
	if (server)
		SSL_set_accept_state(raw->ssl);
	else
		SSL_set_connect_state(raw->ssl);
}

void raw_free(struct raw *raw)
{
	SSL_free(raw->ssl);
	SSL_CTX_free(raw->context);
	close(raw->fd);
}

int raw_shake(struct raw *raw, struct ow_session *session, struct ow_error *err)
{
	int code = 0, failed = 0;
	while (code == 0 && !(ow_session_peer(session) && SSL_is_init_finished(raw->ssl))) {
		int done = SSL_do_handshake(raw->ssl);
		code = ow_session_drive(session, err);
		/* One more look after the raw end has failed: its alert is under way. */
		if (done != 1 && SSL_get_error(raw->ssl, done) == SSL_ERROR_SSL && failed++ > 1)
			break;
	}
	return code;
}
