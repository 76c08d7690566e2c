/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <oneway/match.h>

/*
 * The definition of a flow when latency is recorded per flow: the key, which is made from a packet's five-tuple, and
 * its keyed 64-bit hash, which identifies the flow at all points. The same seed gives the same hash at all points.
 */
enum ow_flow_by {
	OW_FLOW_BY_FIVE_TUPLE = 1, /* addresses, ports, protocol */
	OW_FLOW_BY_ADDRESSES,      /* source and destination address */
	OW_FLOW_BY_PREFIX,         /* networks of source and destination */
	OW_FLOW_BY_CLASS,          /* the first of the named classes that matches the packet */
};

#define OW_FLOW_CLASSES_MAX 32
#define OW_FLOW_CLASS_NAME  64

struct ow_flow_select {
	enum ow_flow_by by;
	uint8_t prefix4, prefix6; /* by prefix: 0 .. 32, 0 .. 128 */
	uint32_t classes;         /* by class */
	char class_name[OW_FLOW_CLASSES_MAX][OW_FLOW_CLASS_NAME];
};

/* "five-tuple" (or "5-tuple"), "addresses" (or "src-dst"), "prefix:24,48", "class". The caller adds the classes. */
int ow_flow_select_parse(const char *text, struct ow_flow_select *ret_select, struct ow_error *err);
/* The same as text; always 0-terminated. */
#define OW_FLOW_SELECT_TEXT 32
void ow_flow_select_text(const struct ow_flow_select *select, char text[OW_FLOW_SELECT_TEXT]);
/* 0, or -EINVAL with an error that says what is wrong or what differs. */
int ow_flow_select_check(const struct ow_flow_select *select, struct ow_error *err);
int ow_flow_select_same(const struct ow_flow_select *a, const struct ow_flow_select *b, struct ow_error *err);

/* The flow key of a five-tuple (not by class). */
void ow_flow_select_key(const struct ow_flow_select *select, const struct ow_flow_key *packet,
                        struct ow_flow_key *ret_key);
/* The key of a class: no addresses, version 0, and its number in ethertype. */
void ow_flow_select_class_key(uint32_t class, struct ow_flow_key *ret_key);
/* "10.0.0.1:80 > 10.0.0.2:1234 tcp", "10.0.0.0/24 > 10.1.0.0/24", "voice". Always 0-terminated. */
#define OW_FLOW_SELECTED_TEXT 128
void ow_flow_select_key_text(const struct ow_flow_select *select, const struct ow_flow_key *key,
                             char text[OW_FLOW_SELECTED_TEXT]);

/* The hash of a flow key. */
uint64_t ow_flow_hash(uint64_t seed, const struct ow_flow_key *key);
