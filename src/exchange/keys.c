/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys for points without their own CA: one CA in a folder, and a certificate for each point, whose name is a DNS name
 * in subjectAltName. All keys are P-256. docs/keys.md has the same with the openssl command.
 */
#include "exchange/issue.h"
#include "exchange/session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CA_DAYS   3650 /* unless the points' certificates are valid for longer */
#define DAY_S     INT64_C(86400)
#define PSK_BYTES 32

static int get_ca(const char *folder, unsigned days, struct ow_credential *ret_ca, struct ow_error *err)
{
	int r = ow_credential_load(folder, "ca", ret_ca, err);
	if (r != -ENOENT)
		return r;
	r = ow_credential_make_ca("oneway CA", DAY_S * (days > CA_DAYS ? days : CA_DAYS), ret_ca, err);
	return r < 0 ? r : ow_credential_save(folder, "ca", ret_ca, err);
}

static int make_point(const char *folder, const char *name, const struct ow_credential *ca, unsigned days,
                      struct ow_error *err)
{
	/* Names consist of letters, digits and "._-" (ow_point_name_valid), so that they contain no OpenSSL syntax. */
	char alternative[4 + OW_POINT_NAME];
	struct ow_credential point = {0};
	snprintf(alternative, sizeof alternative, "DNS:%s", name);
	struct ow_issue issue = {.subject = name, .alternative = alternative, .valid_s = DAY_S * days};
	int r = ow_credential_make(ca, &issue, &point, err);
	if (r == 0)
		r = ow_credential_save(folder, name, &point, err);
	ow_credential_done(&point);
	return r;
}

static int check_free(const char *folder, const char *name, const char *suffix, struct ow_error *err)
{
	char *path = NULL;
	struct stat status;
	int r = 0;
	if (asprintf(&path, "%s/%s%s", folder, name, suffix) < 0)
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
	struct ow_credential ca = {0};
	ERR_clear_error();
	if (days == 0 || days > OW_TLS_DAYS_MAX)
		return ow_error_set(err, EINVAL, "certificates are valid for 1 to %d days", OW_TLS_DAYS_MAX);
	int r = check_names(folder, names, count, err);
	if (r < 0)
		return r;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return ow_error_set(err, errno, "%s: %s", folder, strerror(errno));
	r = get_ca(folder, days, &ca, err);
	for (unsigned i = 0; r == 0 && i < count; i++)
		r = make_point(folder, names[i], &ca, days, err);
	ow_credential_done(&ca);
	return r;
}

int ow_tls_make_psk(const char *path, struct ow_error *err)
{
	uint8_t key[PSK_BYTES];
	FILE *file = NULL;
	ERR_clear_error();
	if (RAND_priv_bytes(key, sizeof key) != 1)
		return ow_openssl_failed("making a key", err);
	int r = ow_secret_create(path, 0600, &file, err);
	if (r < 0)
		return r;
	errno = 0;
	for (size_t i = 0; i < sizeof key; i++)
		fprintf(file, "%02x", key[i]);
	putc('\n', file);
	OPENSSL_cleanse(key, sizeof key);
	return ow_secret_finish(file, path, !ferror(file), err);
}
