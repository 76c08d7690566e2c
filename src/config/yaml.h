/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>

/*
 * A YAML document as a tree with line numbers. It supports only what a configuration needs: one document of mappings,
 * sequences and texts. Anchors, aliases, tags, duplicate keys, and documents that are too large or too deep are
 * refused.
 */
#define OW_YAML_BYTES_MAX   (1u << 20)
#define OW_YAML_DEPTH_MAX   8
#define OW_YAML_TEXT_MAX    4096 /* bytes of one key or value */
#define OW_YAML_ENTRIES_MAX 4096 /* entries of one sequence or mapping */

enum ow_yaml_kind { OW_YAML_TEXT, OW_YAML_SEQUENCE, OW_YAML_MAPPING };

struct ow_yaml {
	enum ow_yaml_kind kind;
	unsigned line;
	char *key;             /* in a mapping */
	char *text;            /* NULL unless it is a text; empty only if quoted */
	struct ow_yaml *first; /* first entry */
	struct ow_yaml *next;  /* next entry of the same sequence or mapping */
	unsigned count;        /* number of entries */
};

/* The bytes of a file, to be freed. A file that is too large is cut to a size that parsing refuses. */
int ow_yaml_load(const char *path, char **ret_bytes, size_t *ret_size, struct ow_error *err);
/* name: of the file, for errors: "name:line: ...". -EINVAL, -ENOMEM. */
int ow_yaml_parse(const char *name, const char *bytes, size_t size, struct ow_yaml **ret_root, struct ow_error *err);
void ow_yaml_free(struct ow_yaml *root);

/* The entry of a mapping, or NULL. */
struct ow_yaml *ow_yaml_entry(const struct ow_yaml *mapping, const char *key);
