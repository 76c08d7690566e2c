/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CONFIG_YAML_H
#define OW_CONFIG_YAML_H

#include <oneway/error.h>
#include <stddef.h>

/*
 * A YAML document as a tree that knows its lines. Only what a configuration needs: one document of mappings, sequences
 * and texts. Anchors, aliases, tags, documents that are large or deep and keys given twice are refused.
 */
#define OW_YAML_BYTES_MAX   (1u << 20)
#define OW_YAML_DEPTH_MAX   8
#define OW_YAML_TEXT_MAX    4096 /* of one key or value */
#define OW_YAML_ENTRIES_MAX 4096 /* of one sequence or mapping */

enum ow_yaml_kind { OW_YAML_TEXT, OW_YAML_SEQUENCE, OW_YAML_MAPPING };

struct ow_yaml {
	enum ow_yaml_kind kind;
	unsigned line;
	char *key;             /* in a mapping */
	char *text;            /* if it is one; never empty unless in quotes */
	struct ow_yaml *first; /* of the entries */
	struct ow_yaml *next;  /* in the same sequence or mapping */
	unsigned count;        /* of the entries */
};

/* The bytes of a file, to be freed; of one that is too large so many that parsing says so. */
int ow_yaml_load(const char *path, char **ret_bytes, size_t *ret_size, struct ow_error *err);
/* name: of the file, for errors: "name:line: ...". -EINVAL, -ENOMEM. */
int ow_yaml_parse(const char *name, const char *bytes, size_t size, struct ow_yaml **ret_root, struct ow_error *err);
void ow_yaml_free(struct ow_yaml *root);

/* The entry of a mapping, or NULL. */
struct ow_yaml *ow_yaml_entry(const struct ow_yaml *mapping, const char *key);

#endif
