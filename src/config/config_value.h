/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CONFIG_CONFIG_VALUE_H
#define OW_CONFIG_CONFIG_VALUE_H

#include "config/config.h"
#include "config/yaml.h"

/* The values of a configuration, one by one, and tables of keys that say how each is read. For config/config.c. */

struct ow_config_reader {
	struct ow_config *config;
	struct ow_error *err;
	char where[100]; /* " of segment 'x'" */
};

/* Reads one value into a field of the type that the reader is for. */
typedef int ow_config_read(struct ow_config_reader *r, struct ow_yaml *node, void *field);

struct ow_config_field {
	const char *name;
	ow_config_read *read;
	size_t offset;
	unsigned stated; /* bit for struct ow_config_segment */
};

/* Errors name file, line and key, and the entry that it is in. */
int ow_config_fail(struct ow_config_reader *r, const struct ow_yaml *node, const char *why);
int ow_config_no_memory(struct ow_config_reader *r);

/* Reads all entries of a mapping; the table ends with a field without a name. ret_stated may be NULL. */
int ow_config_read_mapping(struct ow_config_reader *r, struct ow_yaml *mapping, const struct ow_config_field *table,
                           void *target, unsigned *ret_stated);
/* A single value that is not empty? */
int ow_config_check_text(struct ow_config_reader *r, const struct ow_yaml *node);

/* const char *, which the tree owns */
ow_config_read ow_config_read_text, ow_config_read_name, ow_config_read_peer, ow_config_read_path,
	ow_config_read_filter, ow_config_read_address, ow_config_read_connect, ow_config_read_metrics;
/* char[OW_RESULT_NAME] */
ow_config_read ow_config_read_point;
/* bool; facing: away? */
ow_config_read ow_config_read_bool, ow_config_read_facing;
/* uint64_t; store_max: 0 = no limit */
ow_config_read ow_config_read_memory, ow_config_read_store_max, ow_config_read_ring, ow_config_read_threads;
/* int64_t, ns; retention: 0 = for ever */
ow_config_read ow_config_read_interval, ow_config_read_wait, ow_config_read_retention;
/* double */
ow_config_read ow_config_read_speed;
/* the enum of this name */
ow_config_read ow_config_read_output, ow_config_read_sandbox, ow_config_read_method, ow_config_read_level;

#endif
