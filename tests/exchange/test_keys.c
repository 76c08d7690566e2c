/* SPDX-License-Identifier: Apache-2.0 */
/* The files that keys come from: what is made, what is refused, and that nothing is overwritten. */
#include "link.h"
#include "mint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct keys keys;

static int setup(void **state)
{
	(void)state;
	keys_make(&keys);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	keys_remove(&keys);
	return 0;
}

static const char *save(const char *name, mode_t mode, const char *text)
{
	const char *path = keys_path(&keys, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fchmod(fileno(file), mode), 0);
	fclose(file);
	return path;
}

static void expect(const struct ow_tls_options *options, int code, const char *text)
{
	struct ow_tls *tls = NULL;
	struct ow_error err = {""};
	int r = ow_tls_create(options, &tls, &err);
	if (r != code || !strstr(err.text, text))
		fail_msg("%d '%s', expected %d '%s'", r, err.text, code, text);
	assert_true((tls != NULL) == (code == 0));
	ow_tls_free(tls);
}

/* london's, with what the test wants otherwise. */
static struct ow_tls_options london(void)
{
	return (struct ow_tls_options){.certificate = keys_path(&keys, "london.pem"),
	                               .key = keys_path(&keys, "london.key"),
	                               .ca = keys_path(&keys, "ca.pem"),
	                               .name = "london"};
}

static mode_t mode_of(const char *name)
{
	struct stat status;
	assert_int_equal(stat(keys_path(&keys, name), &status), 0);
	return status.st_mode & 0777;
}

static void keys_are_private(void **state)
{
	(void)state;
	umask(0);
	static const char *const names[] = {"oslo"};
	assert_int_equal(ow_tls_make_certificates(keys.folder, names, 1, 10, NULL), 0);
	assert_int_equal(mode_of("oslo.key"), 0600);
	assert_int_equal(mode_of("oslo.pem"), 0644);
	assert_int_equal(mode_of("ca.key"), 0600);
	assert_int_equal(mode_of("psk"), 0600);
	assert_int_equal(mode_of("other"), 0700);
	umask(022);
	struct ow_tls_options options = london();
	expect(&options, 0, "");
	static const mode_t modes[] = {0644, 0640, 0604, 0601, 0620};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(options.key, modes[i]), 0);
		expect(&options, -EACCES, "run: chmod 600 ");
		assert_int_equal(chmod(keys_path(&keys, "psk"), modes[i]), 0);
		struct ow_tls_options psk = {.psk_file = keys_path(&keys, "psk"), .name = "london"};
		expect(&psk, -EACCES, "run: chmod 600 ");
	}
	assert_int_equal(chmod(options.key, 0400), 0);
	assert_int_equal(chmod(keys_path(&keys, "psk"), 0600), 0);
	expect(&options, 0, "");
}

static char *content(const char *name)
{
	FILE *file = fopen(keys_path(&keys, name), "r");
	char *text = calloc(1, 4096);
	assert_true(file && text);
	assert_true(fread(text, 1, 4095, file) > 0);
	fclose(file);
	return text;
}

static void nothing_is_overwritten(void **state)
{
	(void)state;
	static const char *const names[] = {"vienna", "london"}, *const more[] = {"vienna"};
	struct ow_error err = {""};
	char *ca = content("ca.key"), *key = content("london.key"), *psk = content("psk");
	assert_int_equal(ow_tls_make_certificates(keys.folder, names, 2, 10, &err), -EEXIST);
	assert_non_null(strstr(err.text, "london.key is there already, nothing was written"));
	assert_int_equal(access(keys_path(&keys, "vienna.pem"), F_OK), -1);
	assert_int_equal(access(keys_path(&keys, "vienna.key"), F_OK), -1);
	assert_int_equal(ow_tls_make_psk(keys_path(&keys, "psk"), &err), -EEXIST);
	/* The CA that is there signs. */
	assert_int_equal(ow_tls_make_certificates(keys.folder, more, 1, 10, &err), 0);
	struct ow_tls_options options = {.certificate = keys_path(&keys, "vienna.pem"),
	                                 .key = keys_path(&keys, "vienna.key"),
	                                 .ca = keys_path(&keys, "ca.pem"),
	                                 .name = "vienna"};
	expect(&options, 0, "");
	char *again[3] = {content("ca.key"), content("london.key"), content("psk")};
	assert_string_equal(ca, again[0]);
	assert_string_equal(key, again[1]);
	assert_string_equal(psk, again[2]);
	for (unsigned i = 0; i < 3; i++)
		free(again[i]);
	free(ca);
	free(key);
	free(psk);
}

static void refuses_to_make(void **state)
{
	(void)state;
	static const struct {
		const char *names[2];
		unsigned count, days;
		const char *text;
	} cases[] = {
		{{"a b", NULL}, 1, 10, "'a b' is not a name of a point"},
		{{"../x", NULL}, 1, 10, "'../x' is not a name of a point"},
		{{"ca", NULL}, 1, 10, "a point cannot be named 'ca'"},
		{{"x", "x"}, 2, 10, "'x' is given twice"},
		{{"x", NULL}, 1, 0, "1 to 36500 days"},
		{{"x", NULL}, 1, OW_TLS_DAYS_MAX + 1, "1 to 36500 days"},
	};
	struct ow_error err;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			ow_tls_make_certificates(keys.folder, cases[i].names, cases[i].count, cases[i].days, &err),
			-EINVAL);
		assert_non_null(strstr(err.text, cases[i].text));
	}
	static const char *const names[] = {"x"};
	assert_int_equal(ow_tls_make_certificates(keys_path(&keys, "no/such/folder"), names, 1, 10, &err), -ENOENT);
	assert_int_equal(ow_tls_make_psk(keys_path(&keys, "no/such/file"), &err), -ENOENT);
	/* Half a CA. */
	assert_int_equal(mkdir(keys_path(&keys, "half"), 0700), 0);
	save("half/ca.pem", 0644, "nothing");
	assert_int_equal(ow_tls_make_certificates(keys_path(&keys, "half"), names, 1, 10, &err), -EINVAL);
	assert_non_null(strstr(err.text, "both are needed"));
	save("half/ca.key", 0600, "nothing");
	assert_int_equal(ow_tls_make_certificates(keys_path(&keys, "half"), names, 1, 10, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a certificate and its key"));
}

static void options_fit_together(void **state)
{
	(void)state;
	struct ow_tls_options options = {.name = "london"};
	expect(&options, -EINVAL, "neither certificate, key and ca nor psk");
	options = london();
	options.psk_file = keys_path(&keys, "psk");
	expect(&options, -EINVAL, "either certificates or a pre-shared key, not both");
	options = london();
	options.ca = NULL;
	expect(&options, -EINVAL, "needed together");
	options = (struct ow_tls_options){.psk_file = keys_path(&keys, "psk")};
	expect(&options, -EINVAL, "needs the name of this point");
	options = london();
	options.name = "a b";
	expect(&options, -EINVAL, "is no name of a point");
}

static void wrong_files_are_named(void **state)
{
	(void)state;
	struct ow_tls_options options = london();
	options.name = "paris";
	expect(&options, -EINVAL, "london.pem: is for 'london', but this point is 'paris'");
	options = london();
	options.key = keys_path(&keys, "paris.key");
	expect(&options, -EINVAL, "paris.key: does not belong to the certificate");
	options = london();
	options.ca = keys_path(&keys, "other/ca.pem");
	expect(&options, -EACCES, "('london') is not signed by this point's CA");
	options = london();
	options.key = keys_path(&keys, "missing");
	expect(&options, -ENOENT, "missing: No such file");
	options = london();
	options.certificate = keys_path(&keys, "missing");
	expect(&options, -EINVAL, "missing: ");
	options = london();
	options.ca = keys_path(&keys, "london.key");
	expect(&options, -EINVAL, "london.key: no certificates");
	options = london();
	options.key = save("text", 0600, "hello\n");
	expect(&options, -EINVAL, "no private key in PEM format");
	options.key = keys.folder;
	expect(&options, -EINVAL, "not a regular file");
	options = london();
	mint(&keys, "old", &(struct mint){.alternative = "DNS:london", .from_days = -9, .until_days = -2});
	options.certificate = keys_path(&keys, "old.pem");
	options.key = keys_path(&keys, "old.key");
	expect(&options, -EACCES, "old.pem ('london') has expired: valid until 20");
}

/* Nobody is asked at the terminal. */
static void a_passphrase_is_refused(void **state)
{
	(void)state;
	char command[400];
	snprintf(command, sizeof command,
	         "umask 077; openssl pkey -in %s/london.key -aes128 -passout pass:x -out %s/locked.key 2>/dev/null",
	         keys.folder, keys.folder);
	if (system(command) != 0) {
		print_message("no openssl command here\n");
		skip();
	}
	struct ow_tls_options options = london();
	options.key = keys_path(&keys, "locked.key");
	expect(&options, -EINVAL, "it has a passphrase");
}

static void pre_shared_keys(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"00112233445566778899aabbccddeeff", NULL},
		{"00112233445566778899AABBCCDDEEFF\n", NULL},
		{"  0011 2233 4455 6677\n8899 aabb ccdd eeff\n", NULL},
		{"", "0 hexadecimal digits; needs 32"},
		{"00112233445566778899aabbccddeef", "31 hexadecimal digits; needs 32"},
		{"00112233445566778899aabbccddeeff0", "33 hexadecimal digits; needs 32 or more, an even number"},
		{"00112233445566778899aabbccddeegg", "only hexadecimal digits"},
		{"0x112233445566778899aabbccddeeff00", "only hexadecimal digits"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_tls_options options = {.psk_file = save("any.psk", 0600, cases[i].text), .name = "london"};
		expect(&options, cases[i].says ? -EINVAL : 0, cases[i].says ? cases[i].says : "");
	}
	char text[600];
	memset(text, 'a', sizeof text);
	text[512] = '\0';
	struct ow_tls_options options = {.psk_file = save("any.psk", 0600, text), .name = "london"};
	expect(&options, 0, "");
	text[512] = 'a';
	text[514] = '\0';
	save("any.psk", 0600, text);
	expect(&options, -EINVAL, "more than 512 digits");
}

/* Runs the openssl lines of docs/keys.md, as people would, in a folder. false: there is no openssl command. */
static bool run_documented(const char *folder)
{
	const char *doc = getenv("OW_KEYS_DOC");
	char path[200], command[400], line[400];
	assert_non_null(doc);
	if (system("command -v openssl >/dev/null") != 0)
		return false;
	FILE *page = fopen(doc, "r");
	snprintf(path, sizeof path, "%s/lines", folder);
	FILE *lines = fopen(path, "w");
	assert_true(page && lines);
	unsigned count = 0;
	bool inside = false;
	while (fgets(line, sizeof line, page)) {
		bool begins = strncmp(line, "    openssl req", 15) == 0 || strncmp(line, "    (umask", 10) == 0;
		inside = begins || (inside && strncmp(line, "        ", 8) == 0);
		count += begins;
		if (inside)
			fputs(line, lines);
	}
	fclose(page);
	fclose(lines);
	assert_int_equal(count, 3);
	snprintf(command, sizeof command, "cd %s && sh -e ./lines 2>/dev/null", folder);
	assert_int_equal(system(command), 0);
	return true;
}

static void the_documented_lines_work(void **state)
{
	(void)state;
	const char *folder = keys_path(&keys, "doc");
	assert_int_equal(mkdir(folder, 0700), 0);
	if (!run_documented(folder)) {
		print_message("no openssl command here\n");
		skip();
	}
	struct ow_tls *tls[2] = {keys_tls(&keys, "doc/london", "doc/ca"), NULL};
	struct ow_tls_options options = {.certificate = keys_path(&keys, "doc/london.pem"),
	                                 .key = keys_path(&keys, "doc/london.key"),
	                                 .ca = keys_path(&keys, "doc/ca.pem"),
	                                 .name = "london"};
	expect(&options, 0, "");
	/* keygen goes on with that CA. */
	static const char *const names[] = {"paris"};
	struct ow_error err = {""};
	assert_int_equal(ow_tls_make_certificates(folder, names, 1, 10, &err), 0);
	tls[1] = keys_tls(&keys, "doc/paris", "doc/ca");
	struct link link;
	link_make(&link, tls[0], "paris", tls[1], "london");
	link_open(&link);
	link_free(&link);
	ow_tls_free(tls[0]);
	ow_tls_free(tls[1]);
	ow_tls_free(keys_psk(&keys, "doc/lab.psk", "london"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_private),      cmocka_unit_test(nothing_is_overwritten),
		cmocka_unit_test(refuses_to_make),       cmocka_unit_test(options_fit_together),
		cmocka_unit_test(wrong_files_are_named), cmocka_unit_test(a_passphrase_is_refused),
		cmocka_unit_test(pre_shared_keys),       cmocka_unit_test(the_documented_lines_work),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
