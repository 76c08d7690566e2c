/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of configurations in docs/examples: each is valid, they fit each other, and the keys are those of keygen. */
#include "point/agreement.h"
#include "exchange/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct ow_config *load(const char *name)
{
	struct ow_config *config = NULL;
	struct ow_error err = {""};
	char path[1024];
	assert_non_null(getenv("OW_EXAMPLES"));
	snprintf(path, sizeof path, "%s/%s", getenv("OW_EXAMPLES"), name);
	if (ow_config_load(path, &config, &err) < 0)
		fail_msg("%s", err.text);
	return config;
}

static void they_agree(void **state)
{
	(void)state;
	struct ow_config *london = load("london.yaml"), *paris = load("paris.yaml");
	assert_int_equal(london->segment_count, 1);
	const struct ow_config_segment *segment = &london->segments[0];
	assert_string_equal(segment->connect, paris->listen);
	assert_string_equal(segment->peer, paris->point);
	for (unsigned i = 0; i < segment->class_count; i++) {
		for (int sending = 0; sending < 2; sending++) {
			struct ow_message_open open = {0};
			struct ow_agreed agreed;
			struct ow_error err = {""};
			assert_true(!segment->classes[i].filter ||
			            ow_config_filter(segment->classes[i].filter, &err) == 0);
			ow_agree_propose(segment, &segment->classes[i], sending, &open);
			open.length_ns = segment->interval_ns;
			if (ow_agree_check(paris, london->point, &open, &agreed, &err) < 0)
				fail_msg("%s", err.text);
			assert_string_equal(agreed.class_name, segment->classes[i].name);
			assert_int_equal(agreed.sending, !sending);
		}
	}
	ow_config_free(london);
	ow_config_free(paris);
}

/* "keys/london.pem" of a configuration somewhere else. */
static const char *moved(const char *path, char *buffer, size_t size)
{
	const char *keys = strstr(path, "/keys/");
	assert_non_null(keys);
	snprintf(buffer, size, "%s", keys + 1);
	return buffer;
}

static void keygen_makes_their_keys(void **state)
{
	(void)state;
	static const char *const names[] = {"london", "paris"};
	char folder[] = "/tmp/oneway-examples-XXXXXX", command[64], path[3][128];
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(ow_tls_make_certificates("keys", names, 2, 10, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		char name[32];
		snprintf(name, sizeof name, "%s.yaml", names[i]);
		struct ow_config *config = load(name);
		struct ow_tls_options options = {.certificate = moved(config->certificate, path[0], sizeof path[0]),
		                                 .key = moved(config->key, path[1], sizeof path[1]),
		                                 .ca = moved(config->ca, path[2], sizeof path[2]),
		                                 .name = config->point};
		struct ow_tls *tls = NULL;
		struct ow_error err = {""};
		if (ow_tls_create(&options, &tls, &err) < 0)
			fail_msg("%s", err.text);
		ow_tls_free(tls);
		ow_config_free(config);
	}
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_agree),
		cmocka_unit_test(keygen_makes_their_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
