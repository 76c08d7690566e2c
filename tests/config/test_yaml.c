/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as a tree: what is accepted, and that everything else is refused with its line. */
#include "config/yaml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct ow_yaml *parse(const char *text, struct ow_error *err)
{
	struct ow_yaml *root = NULL;
	err->text[0] = 0;
	int r = ow_yaml_parse("t", text, strlen(text), &root, err);
	assert_int_equal(r, root ? 0 : -EINVAL);
	assert_int_equal(root == NULL, err->text[0] != 0);
	return root;
}

static void a_tree_with_lines(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_yaml *root = parse("a: one\nb:\n  - x\n  - {k: ''}\nc: [ 1, 2, 3 ]\n", &err), *b, *inner;
	assert_non_null(root);
	assert_int_equal(root->kind, OW_YAML_MAPPING);
	assert_int_equal(root->count, 3);
	assert_string_equal(ow_yaml_entry(root, "a")->text, "one");
	b = ow_yaml_entry(root, "b");
	assert_int_equal(b->kind, OW_YAML_SEQUENCE);
	assert_int_equal(b->line, 2);
	assert_int_equal(b->count, 2);
	assert_null(b->text);
	assert_string_equal(b->first->text, "x");
	assert_int_equal(b->first->line, 3);
	inner = b->first->next;
	assert_int_equal(inner->kind, OW_YAML_MAPPING);
	assert_string_equal(ow_yaml_entry(inner, "k")->text, "");
	assert_null(inner->next);
	assert_int_equal(ow_yaml_entry(root, "c")->count, 3);
	assert_null(ow_yaml_entry(root, "d"));
	ow_yaml_free(root);
}

static void refuses(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{"", "t: is empty"},
		{"# nothing\n", "t: is empty"},
		{"a: 1\nb: 2\na: 3\n", "t:3: key 'a' was given in line 1 already"},
		{"a:\n", "t:1: no value"},
		{"a: ~\n", "t:1: no value"},
		{"a: null\n", "t:1: no value"},
		{"a: &x 1\n", "t:1: anchors"},
		{"a: 1\nb: *x\n", "t:2: "},
		{"a: !!str 1\n", "t:1: tags"},
		{"? [1, 2]\n: 3\n", "t:1: a key must be a plain word"},
		{"&k a: 1\n", "t:1: a key must be a plain word"},
		{"a: 1\n---\nb: 2\n", "t:2: a second document"},
		{"a: \"x\\ty\"\n", "t:1: control character"},
		{"a: [1, 2\n", "t:"},
		{"\xff\xfe", "t: byte"},
		{"[[[[[[[[[1]]]]]]]]]\n", "t:1: more than 8 levels deep"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_error err;
		struct ow_yaml *root = parse(bad[i][0], &err);
		ow_yaml_free(root);
		if (root || strncmp(err.text, bad[i][1], strlen(bad[i][1])) != 0)
			fail_msg("'%s': '%s', not '%s'", bad[i][0], err.text, bad[i][1]);
	}
}

/* As large as is allowed, and one more of it. */
static void limits(void **state)
{
	(void)state;
	struct ow_error err;
	char *text = malloc(OW_YAML_BYTES_MAX + 2);
	assert_non_null(text);
	for (unsigned more = 0; more < 2; more++) {
		size_t at = 0;
		for (unsigned i = 0; i < OW_YAML_ENTRIES_MAX + more; i++)
			at += (size_t)snprintf(text + at, OW_YAML_BYTES_MAX + 2 - at, "- %u\n", i);
		struct ow_yaml *root = parse(text, &err);
		assert_int_equal(root == NULL, more);
		ow_yaml_free(root);
		memset(text, 'x', OW_YAML_TEXT_MAX + more);
		text[OW_YAML_TEXT_MAX + more] = 0;
		root = parse(text, &err);
		assert_int_equal(root == NULL, more);
		ow_yaml_free(root);
		memset(text, '\n', OW_YAML_BYTES_MAX + more);
		memcpy(text, "a: 1\n", 5);
		text[OW_YAML_BYTES_MAX + more] = 0;
		root = parse(text, &err);
		assert_int_equal(root == NULL, more);
		ow_yaml_free(root);
	}
	free(text);
}

static void files(void **state)
{
	(void)state;
	char path[] = "/tmp/oneway-yaml-XXXXXX", *bytes;
	size_t size = 0;
	struct ow_error err;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a: 1\n", 5), 5);
	assert_int_equal(ow_yaml_load(path, &bytes, &size, &err), 0);
	assert_int_equal(size, 5);
	assert_memory_equal(bytes, "a: 1\n", 5);
	free(bytes);
	/* Too long: so much of it that parsing refuses it. */
	assert_int_equal(ftruncate(fd, 3 * (off_t)OW_YAML_BYTES_MAX), 0);
	assert_int_equal(ow_yaml_load(path, &bytes, &size, &err), 0);
	struct ow_yaml *root;
	assert_int_equal(ow_yaml_parse(path, bytes, size, &root, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than"));
	free(bytes);
	close(fd);
	unlink(path);
	assert_int_equal(ow_yaml_load(path, &bytes, &size, &err), -ENOENT);
	assert_int_equal(ow_yaml_load("/tmp", &bytes, &size, &err), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_with_lines),
		cmocka_unit_test(refuses),
		cmocka_unit_test(limits),
		cmocka_unit_test(files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
