/* SPDX-License-Identifier: Apache-2.0 */
/* Desired state is taken only as it was signed, for this point, and never an older one; so are lists of revoked keys. */
#include "fleet/desired.h"

#include "base/state_file.h"
#include "exchange/revoked.h"
#include "fleet/authority.h"
#include "fleet/revocation.h"
#include <errno.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define BODY "interfaces: [{name: \"lo\"}]\n"

static char folder[] = "/tmp/oneway-desired-XXXXXX";
static struct ow_credential ca, other;

static int begin(void **state)
{
	struct ow_error err;
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(ow_credential_make_ca("test", 3600, &ca, &err), 0);
	assert_int_equal(ow_credential_make_ca("other", 3600, &other, &err), 0);
	assert_int_equal(ow_credential_save(folder, "ca", &ca, &err), 0);
	return 0;
}

static int end(void **state)
{
	char command[100];
	(void)state;
	ow_credential_done(&ca);
	ow_credential_done(&other);
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

static char *sign(const struct ow_credential *by, const char *point, uint64_t version, const char *body, size_t *size)
{
	struct ow_error err;
	char *bytes = NULL;
	assert_int_equal(ow_desired_sign(by, point, version, body, &bytes, size, &err), 0);
	return bytes;
}

static int take(const struct ow_credential *by, const char *point, uint64_t version, const char *body, const char *why)
{
	struct ow_error err = {""};
	size_t size;
	char *bytes = sign(by, point, version, body, &size);
	int r = ow_desired_take(folder, "london", bytes, size, &err);
	if (why && !strstr(err.text, why))
		fail_msg("'%s' instead of '%s'", err.text, why);
	free(bytes);
	return r;
}

static void takes_newer(void **state)
{
	(void)state;
	assert_int_equal(take(&ca, "london", 7, BODY, NULL), 1);
	assert_int_equal(take(&ca, "london", 7, BODY, NULL), 0);
	assert_int_equal(take(&ca, "london", 6, BODY, "older"), -ESTALE);
	assert_int_equal(take(&ca, "london", 7, BODY "memory: 1GiB\n", "another version 7"), -ESTALE);
	assert_int_equal(take(&ca, "paris", 9, BODY, "it is for 'paris'"), -EACCES);
	assert_int_equal(take(&other, "london", 9, BODY, "not signed"), -EACCES);
	assert_int_equal(take(&ca, "london", 8, BODY, NULL), 1);
	char *path = ow_state_path(folder, OW_FLEET_DESIRED), *bytes = NULL;
	size_t size;
	struct ow_error err;
	assert_int_equal(ow_state_read(path, OW_DESIRED_MAX, &bytes, &size, &err), 0);
	assert_non_null(strstr(bytes, "version 8"));
	free(bytes);
	free(path);
}

/* Any byte that is changed, taken out or added makes it worthless. */
static void any_change_is_noticed(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_desired_head head;
	size_t size;
	char *bytes = sign(&ca, "london", 12, BODY, &size), *copy = malloc(size + 1);
	assert_int_equal(ow_desired_verify(ca.certificate, "london", bytes, size, &head, &err), 0);
	assert_int_equal(head.version, 12);
	for (size_t i = 0; i < size; i++) {
		memcpy(copy, bytes, size);
		copy[i] ^= 1;
		if (ow_desired_verify(ca.certificate, "london", copy, size, &head, &err) >= 0)
			fail_msg("byte %zu", i);
		if (ow_desired_verify(ca.certificate, "london", bytes, i, &head, &err) >= 0)
			fail_msg("%zu bytes", i);
	}
	memcpy(copy, bytes, size);
	copy[size] = '\n';
	assert_true(ow_desired_verify(ca.certificate, "london", copy, size + 1, &head, &err) < 0);
	free(copy);
	free(bytes);
}

static void garbage(void **state)
{
	(void)state;
	struct ow_error err;
	unsigned seed = 3;
	char *bytes = malloc(OW_DESIRED_MAX + 1);
	for (unsigned k = 0; k < 2000; k++) {
		size_t size = 1 + (size_t)rand_r(&seed) % 700;
		for (size_t i = 0; i < size; i++)
			bytes[i] = (char)(rand_r(&seed) % 96 + 32);
		if (k % 2)
			memcpy(bytes, "# oneway: desired state of london, version 9, signature ",
			       size < 56 ? size : 56);
		bytes[(size_t)rand_r(&seed) % size] = '\n';
		assert_true(ow_desired_take(folder, "london", bytes, size, &err) < 0);
	}
	memset(bytes, 'x', OW_DESIRED_MAX + 1);
	assert_int_equal(ow_desired_take(folder, "london", bytes, OW_DESIRED_MAX + 1, &err), -EFBIG);
	free(bytes);
}

static int take_list(const struct ow_credential *by, const char *name, const char *body, const char *why)
{
	struct ow_error err = {""};
	size_t size;
	char *bytes = sign(by, name, 1, body, &size);
	int r = ow_revocation_take(folder, bytes, size, &err);
	if (why && !strstr(err.text, why))
		fail_msg("'%s' instead of '%s'", err.text, why);
	free(bytes);
	return r;
}

/* Whether a point with a key of this generation is accepted; 0: a certificate of somebody who is in no fleet. */
static int check_key(const char *name, uint64_t generation, const char *why)
{
	char uri[OW_URI_TEXT], alternative[OW_URI_TEXT + OW_POINT_NAME + 16];
	struct ow_credential point = {0};
	struct ow_revoked revoked = {0};
	struct ow_error err = {""};
	ow_uri_of_point(name, generation, uri);
	snprintf(alternative, sizeof alternative, generation ? "DNS:%s,URI:%s" : "DNS:%s", name, uri);
	struct ow_issue issue = {.subject = name, .alternative = alternative, .valid_s = 600};
	assert_int_equal(ow_credential_make(&ca, &issue, &point, &err), 0);
	char *path = ow_state_path(folder, OW_FLEET_REVOKED_KEYS);
	assert_int_equal(ow_revoked_load(&revoked, path, &err), 0);
	int r = ow_revoked_check(&revoked, point.certificate, name, &err);
	if (why && !strstr(err.text, why))
		fail_msg("'%s' instead of '%s'", err.text, why);
	free(path);
	ow_revoked_done(&revoked);
	ow_credential_done(&point);
	return r;
}

static void revoked_keys(void **state)
{
	(void)state;
	assert_int_equal(check_key("paris", 1, NULL), 0);
	assert_int_equal(take_list(&ca, OW_REVOCATION_NAME, "# names\nrome 5\nparis 2\n", NULL), 1);
	assert_int_equal(take_list(&ca, OW_REVOCATION_NAME, "paris 2\n", NULL), 0);
	assert_int_equal(check_key("paris", 1, "('paris', generation 1) is revoked"), -EACCES);
	assert_int_equal(check_key("paris", 0, "generation 0"), -EACCES);
	assert_int_equal(check_key("paris", 2, NULL), 0);
	assert_int_equal(check_key("rome", 4, "revoked"), -EACCES);
	assert_int_equal(check_key("oslo", 1, NULL), 0);
	/* A list of before takes nothing back. */
	assert_int_equal(take_list(&ca, OW_REVOCATION_NAME, "paris 1\noslo 3\n", NULL), 1);
	assert_int_equal(check_key("paris", 1, "revoked"), -EACCES);
	assert_int_equal(check_key("rome", 4, "revoked"), -EACCES);
	assert_int_equal(check_key("oslo", 2, "revoked"), -EACCES);
	/* Others, texts for others, and damaged ones change nothing. */
	assert_int_equal(take_list(&other, OW_REVOCATION_NAME, "paris 9\n", "not signed"), -EACCES);
	assert_int_equal(take_list(&ca, "london", "paris 9\n", "it is for 'london'"), -EACCES);
	assert_int_equal(take_list(&ca, OW_REVOCATION_NAME, "paris 9\nrome x\n", "'rome x' is not a line"), -EINVAL);
	assert_int_equal(take_list(&ca, OW_REVOCATION_NAME, "../paris 9\n", "is not a line"), -EINVAL);
	assert_int_equal(check_key("paris", 2, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revoked_keys),
		cmocka_unit_test(takes_newer),
		cmocka_unit_test(any_change_is_noticed),
		cmocka_unit_test(garbage),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
