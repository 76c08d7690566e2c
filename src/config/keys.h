/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/yaml.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * Tables of keys. One row is a key of a configuration: the type of its value, its limits, its default, the member that
 * it is stored in, and its meaning. The same row is used to read YAML, to check an option of the command line, and to
 * write the row of the documentation.
 */

/* Where a value was read, for errors. */
struct ow_key_reader {
	const char *path; /* path of the file; relative paths start at its folder */
	struct ow_error *err;
	char where[100]; /* " of segment 'x'" */
	unsigned number; /* number of the entry in its list, from 1 */
	void *context;   /* for the caller's own readers */
};

enum ow_key_type {
	OW_KEY_TEXT,     /* const char *: points into the tree */
	OW_KEY_NAME,     /* const char *: of a segment, class or interface */
	OW_KEY_POINT,    /* const char *: of a point, as in certificates */
	OW_KEY_PATH,     /* const char *: a relative path starts at the folder of the file */
	OW_KEY_FILTER,   /* const char *: a pcap-filter(7) expression; it is not compiled */
	OW_KEY_ADDRESS,  /* const char *: host:port, [address]:port, :port */
	OW_KEY_HOST,     /* const char *: an address that names a host */
	OW_KEY_PEER,     /* const char *: an address that can be connected to */
	OW_KEY_BOOL,     /* bool */
	OW_KEY_COUNT,    /* uint64_t, from least to most */
	OW_KEY_SIZE,     /* uint64_t: bytes, from least to most */
	OW_KEY_DURATION, /* int64_t: ns, from least to most */
	OW_KEY_REAL,     /* double: above 0, up to most */
	OW_KEY_SHARE,    /* double: 0 to 1, 0.01 or 1% */
	OW_KEY_CHOICE,   /* an enum: one of `choices` */
	OW_KEY_OTHER,    /* `read` reads it */
};

struct ow_choice {
	const char *name; /* NULL: the end */
	int value;
};

typedef int ow_key_read(struct ow_key_reader *reader, struct ow_yaml *node, void *field);

struct ow_key {
	const char *name; /* NULL: the end of the table */
	enum ow_key_type type;
	size_t offset;        /* of the member in the target */
	const char *fallback; /* the default, as written in a file; NULL = none */
	const char *meaning;  /* for the documentation; NULL = described with the previous key */
	uint64_t least, most;
	bool or_zero; /* 0 is allowed as well */
	const struct ow_choice *choices;
	ow_key_read *read;
	bool needed;  /* the key has no default */
	unsigned bit; /* bit in *ret_stated */
};

/* Reads one value from a text, without YAML: for options. *why gets only the reason. Not for OW_KEY_OTHER. */
int ow_key_set(const struct ow_key *key, const char *text, void *field, struct ow_error *why);
/* NULL if the table has no such key. */
const struct ow_key *ow_key_find(const struct ow_key *table, const char *name);

/* Reads one value of YAML. */
int ow_key_read_value(struct ow_key_reader *reader, const struct ow_key *key, struct ow_yaml *node, void *field);
/*
 * Reads all entries of a mapping; missing keys get their defaults. ret_stated, which may be NULL, gets the bits of the
 * keys that are present. Errors name file, line, key and the entry that contains it.
 */
int ow_keys_read(struct ow_key_reader *reader, struct ow_yaml *mapping, const struct ow_key *table, void *target,
                 unsigned *ret_stated);
/* Sets the default of a key, which must have one. */
void ow_key_default(const struct ow_key *table, const char *name, void *field);

/*
 * Reads a list: *ret_items gets zeroed items of `size` bytes, and `read` is called for each entry. At least one, at
 * most max.
 */
int ow_keys_read_list(struct ow_key_reader *reader, const struct ow_yaml *node, unsigned max, size_t size,
                      void **ret_items, unsigned *ret_count, ow_key_read *read);
/* From now on errors name the entry: by the value of this key, if it has one, else by number. */
void ow_keys_enter(struct ow_key_reader *reader, const char *kind, const struct ow_yaml *entry, const char *key);

int ow_key_fail(struct ow_key_reader *reader, const struct ow_yaml *node, const char *why);
int ow_key_no_memory(struct ow_key_reader *reader);
/* Whether the node is a single value that is not empty. */
int ow_key_check_text(struct ow_key_reader *reader, const struct ow_yaml *node);

/* Names of segments and classes: printable, no space, no slash, below OW_RESULT_NAME bytes. */
int ow_name_check(const char *name, struct ow_error *err);
