/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/authority.h"

#include "base/time.h"
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_VALID_S (INT64_C(825) * 86400)
#define HASH_BYTES      32

/* -- names --------------------------------------------------------------------------------------------------------- */

void ow_uri_of_point(const char *name, uint64_t generation, char ret_uri[OW_URI_TEXT])
{
	snprintf(ret_uri, OW_URI_TEXT, "oneway:point/%s/%ju", name, (uintmax_t)generation);
}

void ow_uri_of_service(const char *name, uint64_t generation, char ret_uri[OW_URI_TEXT])
{
	snprintf(ret_uri, OW_URI_TEXT, "oneway:service/%s/%ju", name, (uintmax_t)generation);
}

/* -- services ------------------------------------------------------------------------------------------------------ */

static int make_files(const struct ow_credential *ca, const char *folder, const char *name,
                      const struct ow_issue *issue, struct ow_error *err)
{
	struct ow_credential made = {0};
	int r = ow_credential_make(ca, issue, &made, err);
	if (r == 0)
		r = ow_credential_save(folder, name, &made, err);
	ow_credential_done(&made);
	return r;
}

int ow_authority_make_service(const struct ow_credential *ca, const char *folder, const char *name, uint64_t generation,
                              struct ow_error *err)
{
	char uri[OW_URI_TEXT], alternative[OW_URI_TEXT + 4];
	ow_uri_of_service(name, generation, uri);
	snprintf(alternative, sizeof alternative, "URI:%s", uri);
	struct ow_issue issue = {.subject = name, .alternative = alternative, .valid_s = SERVICE_VALID_S};
	return make_files(ca, folder, name, &issue, err);
}

int ow_authority_make_server(const struct ow_credential *ca, const char *folder, const struct ow_bus_host *host,
                             struct ow_error *err)
{
	char alternative[OW_ADDRESS_TEXT + 64];
	snprintf(alternative, sizeof alternative, "DNS:" OW_BUS_NAME ",%s:%s", host->is_address ? "IP" : "DNS",
	         host->host);
	struct ow_issue issue = {.subject = OW_BUS_NAME, .alternative = alternative, .valid_s = SERVICE_VALID_S};
	return make_files(ca, folder, "server", &issue, err);
}

int ow_authority_load(const struct ow_fleet *fleet, struct ow_credential *ret_ca, struct ow_error *err)
{
	int r = ow_credential_load(fleet->path, "ca", ret_ca, err);
	return r == -ENOENT ? ow_error_set(err, ENOENT,
	                                   "%s has no ca.pem and ca.key: without its authority the fleet "
	                                   "cannot be changed",
	                                   fleet->path)
	                    : r;
}

/* -- tokens -------------------------------------------------------------------------------------------------------- */

static void to_hex(const uint8_t *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

int ow_token_parse(const char *text, uint8_t ret_secret[OW_TOKEN_SECRET], uint8_t ret_pin[OW_TOKEN_PIN],
                   struct ow_error *err)
{
	uint8_t bytes[OW_TOKEN_SECRET + OW_TOKEN_PIN];
	size_t size = 0;
	if (strlen(text) != OW_TOKEN_TEXT - 1 || OPENSSL_hexstr2buf_ex(bytes, sizeof bytes, &size, text, 0) != 1 ||
	    size != sizeof bytes)
		return ow_error_set(err, EINVAL, "this is not a token of 'oneway fleet enroll': %d hexadecimal digits",
		                    OW_TOKEN_TEXT - 1);
	memcpy(ret_secret, bytes, OW_TOKEN_SECRET);
	memcpy(ret_pin, bytes + OW_TOKEN_SECRET, OW_TOKEN_PIN);
	return 0;
}

static int hash_of_key(EVP_PKEY *key, uint8_t ret_hash[HASH_BYTES])
{
	uint8_t *bytes = NULL;
	int size = i2d_PUBKEY(key, &bytes);
	int r = size > 0 && EVP_Q_digest(NULL, "SHA256", NULL, bytes, (size_t)size, ret_hash, NULL) == 1 ? 0 : -EIO;
	OPENSSL_free(bytes);
	return r;
}

int ow_certificate_pin(const X509 *certificate, uint8_t ret_pin[OW_TOKEN_PIN])
{
	uint8_t hash[HASH_BYTES];
	EVP_PKEY *key = X509_get0_pubkey(certificate);
	int r = key ? hash_of_key(key, hash) : -EIO;
	if (r == 0)
		memcpy(ret_pin, hash, OW_TOKEN_PIN);
	return r;
}

/* What the fleet keeps of a secret. It is bound to the name. */
static int hash_of_secret(const char *name, const uint8_t secret[OW_TOKEN_SECRET], char ret_hex[2 * HASH_BYTES + 1])
{
	uint8_t bytes[OW_TOKEN_SECRET + OW_POINT_NAME] = {0}, hash[HASH_BYTES];
	memcpy(bytes, secret, OW_TOKEN_SECRET);
	snprintf((char *)bytes + OW_TOKEN_SECRET, OW_POINT_NAME, "%s", name);
	if (EVP_Q_digest(NULL, "SHA256", NULL, bytes, sizeof bytes, hash, NULL) != 1)
		return -EIO;
	to_hex(hash, sizeof hash, ret_hex);
	return 0;
}

/* A host of the bus has a certificate with its own name, so no point may have this name. */
static bool is_server(const struct ow_fleet *fleet, const char *name)
{
	struct ow_bus_host host;
	struct ow_error ignored;
	for (const struct ow_yaml *s = fleet->settings.server_list->first; s; s = s->next) {
		if (ow_bus_host_parse(s->text, &host, &ignored) == 0 && strcmp(host.host, name) == 0)
			return true;
	}
	return false;
}

int ow_authority_invite(const struct ow_fleet *fleet, const struct ow_credential *ca, const char *name, int64_t valid_s,
                        char ret_token[OW_TOKEN_TEXT], struct ow_error *err)
{
	struct ow_fleet_point point = {0};
	uint8_t bytes[OW_TOKEN_SECRET + OW_TOKEN_PIN];
	if (!ow_fleet_name_valid(name))
		return ow_error_set(
			err, EINVAL,
			"'%.80s' is not a name for a point of a fleet (1 to %d letters, digits, '_', '-'; not one "
			"of a service)",
			name, OW_POINT_NAME - 1);
	if (is_server(fleet, name))
		return ow_error_set(err, EINVAL, "'%.64s' is a host of the bus: a point there needs another name",
		                    name);
	int r = ow_fleet_point_load(fleet, name, &point, err);
	if (r < 0 && r != -ENOENT)
		return r;
	snprintf(point.name, sizeof point.name, "%s", name);
	if (point.state == OW_FLEET_REVOKED)
		point.state = OW_FLEET_WAITING;
	if (RAND_priv_bytes(bytes, OW_TOKEN_SECRET) != 1 ||
	    ow_certificate_pin(ca->certificate, bytes + OW_TOKEN_SECRET) < 0 ||
	    hash_of_secret(name, bytes, point.token) < 0)
		return ow_openssl_failed("making a token", err);
	point.token_until_s = (int64_t)time(NULL) + valid_s;
	/* A token that nobody used is replaced. */
	point.token_generation = point.generation + 1;
	point.token_key[0] = 0;
	r = ow_fleet_point_save(fleet, &point, err);
	to_hex(bytes, sizeof bytes, ret_token);
	OPENSSL_cleanse(bytes, sizeof bytes);
	return r;
}

/* -- certificates of points ---------------------------------------------------------------------------------------- */

static int issue_point(const struct ow_fleet *fleet, const struct ow_credential *ca, struct ow_fleet_point *point,
                       EVP_PKEY *key, X509 **ret_certificate, struct ow_error *err)
{
	char uri[OW_URI_TEXT], alternative[OW_URI_TEXT + OW_POINT_NAME + 16];
	int64_t valid_s = fleet->settings.valid_ns / (int64_t)OW_NS_PER_S;
	ow_uri_of_point(point->name, point->generation, uri);
	snprintf(alternative, sizeof alternative, "DNS:%s,URI:%s", point->name, uri);
	struct ow_issue issue = {.subject = point->name, .alternative = alternative, .valid_s = valid_s};
	int r = ow_certificate_issue(ca, &issue, key, ret_certificate, err);
	if (r < 0)
		return r;
	point->until_s = (int64_t)time(NULL) + valid_s;
	r = ow_fleet_point_save(fleet, point, err);
	if (r < 0) {
		X509_free(*ret_certificate);
		*ret_certificate = NULL;
	}
	return r;
}

static int check_secret(const struct ow_fleet_point *point, const uint8_t secret[OW_TOKEN_SECRET], const char *key,
                        struct ow_error *err)
{
	char hex[2 * HASH_BYTES + 1];
	if (hash_of_secret(point->name, secret, hex) < 0)
		return ow_openssl_failed("token", err);
	if (!point->token[0] || CRYPTO_memcmp(hex, point->token, sizeof hex) != 0)
		return ow_error_set(err, EACCES, "'%s': not the token that was made for it", point->name);
	if ((int64_t)time(NULL) >= point->token_until_s)
		return ow_error_set(err, EACCES, "'%s': the token has expired; 'oneway fleet enroll' makes another",
		                    point->name);
	if (point->token_key[0] && strcmp(point->token_key, key) != 0)
		return ow_error_set(err, EACCES, "'%s': the token has been used already, by another key", point->name);
	return 0;
}

int ow_authority_enrol(const struct ow_fleet *fleet, const struct ow_credential *ca, const char *name,
                       const uint8_t secret[OW_TOKEN_SECRET], EVP_PKEY *key, X509 **ret_certificate, bool *ret_users,
                       struct ow_error *err)
{
	struct ow_fleet_point point = {0};
	uint8_t hash[HASH_BYTES] = {0};
	char hex[2 * HASH_BYTES + 1];
	int r = ow_fleet_name_valid(name) ? ow_fleet_point_load(fleet, name, &point, err)
	                                  : ow_error_set(err, EACCES, "not a name of a point");
	if (r == 0 && hash_of_key(key, hash) < 0)
		r = ow_openssl_failed("key", err);
	if (r != 0)
		return r;
	to_hex(hash, sizeof hash, hex);
	r = check_secret(&point, secret, hex, err);
	if (r < 0)
		return r;
	*ret_users = point.generation != point.token_generation;
	point.generation = point.token_generation;
	point.state = OW_FLEET_ENROLLED;
	memcpy(point.token_key, hex, sizeof hex);
	return issue_point(fleet, ca, &point, key, ret_certificate, err);
}

/* "oneway:point/london/2" */
static int find_by_uri(const struct ow_fleet *fleet, const char *uri, struct ow_fleet_point *ret_point,
                       struct ow_error *err)
{
	char name[OW_POINT_NAME], again[OW_URI_TEXT];
	uintmax_t generation;
	if (sscanf(uri, "oneway:point/%63[A-Za-z0-9_-]/%ju", name, &generation) != 2 || !ow_fleet_name_valid(name))
		return ow_error_set(err, EACCES, "its certificate is not that of a point");
	int r = ow_fleet_point_load(fleet, name, ret_point, err);
	if (r < 0)
		return r;
	ow_uri_of_point(ret_point->name, ret_point->generation, again);
	if (ret_point->state != OW_FLEET_ENROLLED || strcmp(again, uri) != 0)
		return ow_error_set(err, EACCES, "'%s': the certificate of generation %ju is revoked", name,
		                    generation);
	return 0;
}

int ow_authority_renew(const struct ow_fleet *fleet, const struct ow_credential *ca, const X509 *old, EVP_PKEY *key,
                       X509 **ret_certificate, struct ow_error *err)
{
	struct ow_fleet_point point = {0};
	char uri[OW_URI_TEXT];
	ow_uri_of_certificate(old, uri);
	int r = find_by_uri(fleet, uri, &point, err);
	return r < 0 ? r : issue_point(fleet, ca, &point, key, ret_certificate, err);
}

int ow_authority_revoke(const struct ow_fleet *fleet, const char *name, struct ow_error *err)
{
	struct ow_fleet_point point = {0};
	int r = ow_fleet_name_valid(name) ? ow_fleet_point_load(fleet, name, &point, err)
	                                  : ow_error_set(err, EINVAL, "'%.80s' is not a name of a point", name);
	if (r < 0)
		return r;
	point.state = OW_FLEET_REVOKED;
	point.token[0] = point.token_key[0] = 0;
	/* The generation stays: the next certificate has the next number. */
	if (point.token_generation > point.generation)
		point.generation = point.token_generation;
	return ow_fleet_point_save(fleet, &point, err);
}

int ow_authority_replace(struct ow_fleet *fleet, const struct ow_credential *ca, const char *service,
                         struct ow_error *err)
{
	static const char *const suffixes[] = {"key", "pem"};
	uint64_t *generation = ow_fleet_service(&fleet->settings, service);
	char *path;
	++*generation;
	int r = ow_fleet_save_settings(fleet, err);
	for (unsigned i = 0; r == 0 && i < 2; i++) {
		if (asprintf(&path, "%s/%s.%s", fleet->path, service, suffixes[i]) < 0)
			return ow_error_set(err, ENOMEM, "not enough memory");
		if (unlink(path) < 0 && errno != ENOENT)
			r = ow_error_set(err, errno, "%s: %s", path, strerror(errno));
		free(path);
	}
	return r < 0 ? r : ow_authority_make_service(ca, fleet->path, service, *generation, err);
}
