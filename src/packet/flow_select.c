/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the parts of a packet's five-tuple that form its flow key: flow_select.h. */
#include "packet/flow_select.h"

#include "packet/flow.h"
#define XXH_INLINE_ALL
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof(struct ow_flow_key) == 40, "a key has no padding: it is hashed as it is");

static int parse_prefix(const char *text, struct ow_flow_select *select, struct ow_error *err)
{
	char *end, *end6;
	unsigned long v4 = strtoul(text, &end, 10);
	unsigned long v6 = *end == ',' ? strtoul(end + 1, &end6, 10) : 0;
	if (end == text || *end != ',' || end6 == end + 1 || *end6 || *text == '-' || end[1] == '-' || v4 > 32 ||
	    v6 > 128)
		return ow_error_set(err, EINVAL, "'prefix:%.40s' is not prefix:IPV4,IPV6 as in prefix:24,48", text);
	select->prefix4 = (uint8_t)v4;
	select->prefix6 = (uint8_t)v6;
	return 0;
}

int ow_flow_select_parse(const char *text, struct ow_flow_select *ret_select, struct ow_error *err)
{
	static const struct {
		const char *name;
		enum ow_flow_by by;
	} names[] = {
		{"five-tuple", OW_FLOW_BY_FIVE_TUPLE}, {"5-tuple", OW_FLOW_BY_FIVE_TUPLE},
		{"addresses", OW_FLOW_BY_ADDRESSES},   {"src-dst", OW_FLOW_BY_ADDRESSES},
		{"class", OW_FLOW_BY_CLASS},
	};
	struct ow_flow_select select = {0};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(text, names[i].name) == 0)
			select.by = names[i].by;
	}
	if (strncmp(text, "prefix:", 7) == 0) {
		int r = parse_prefix(text + 7, &select, err);
		if (r < 0)
			return r;
		select.by = OW_FLOW_BY_PREFIX;
	}
	if (!select.by)
		return ow_error_set(err, EINVAL,
		                    "'%.60s' is not a flow key: five-tuple, addresses, prefix:IPV4,IPV6 or class",
		                    text);
	*ret_select = select;
	return 0;
}

void ow_flow_select_text(const struct ow_flow_select *select, char text[OW_FLOW_SELECT_TEXT])
{
	switch (select->by) {
	case OW_FLOW_BY_ADDRESSES:
		snprintf(text, OW_FLOW_SELECT_TEXT, "addresses");
		break;
	case OW_FLOW_BY_PREFIX:
		snprintf(text, OW_FLOW_SELECT_TEXT, "prefix:%u,%u", select->prefix4, select->prefix6);
		break;
	case OW_FLOW_BY_CLASS:
		snprintf(text, OW_FLOW_SELECT_TEXT, "class");
		break;
	default:
		snprintf(text, OW_FLOW_SELECT_TEXT, "five-tuple");
		break;
	}
}

static int check_classes(const struct ow_flow_select *select, struct ow_error *err)
{
	if (select->classes < 1 || select->classes > OW_FLOW_CLASSES_MAX)
		return ow_error_set(err, EINVAL, "flows by class: %u classes, 1 to %d are possible", select->classes,
		                    OW_FLOW_CLASSES_MAX);
	for (uint32_t i = 0; i < select->classes; i++) {
		const char *name = select->class_name[i];
		if (!*name || !memchr(name, 0, OW_FLOW_CLASS_NAME))
			return ow_error_set(err, EINVAL, "class %u has no name of 1 to %d characters", i + 1,
			                    OW_FLOW_CLASS_NAME - 1);
		for (uint32_t k = 0; k < i; k++) {
			if (strcmp(name, select->class_name[k]) == 0)
				return ow_error_set(err, EINVAL, "class '%s' is there twice", name);
		}
	}
	return 0;
}

int ow_flow_select_check(const struct ow_flow_select *select, struct ow_error *err)
{
	switch (select->by) {
	case OW_FLOW_BY_FIVE_TUPLE:
	case OW_FLOW_BY_ADDRESSES:
		return 0;
	case OW_FLOW_BY_PREFIX:
		if (select->prefix4 > 32 || select->prefix6 > 128)
			return ow_error_set(err, EINVAL, "prefixes of %u and %u bits, 32 and 128 are possible",
			                    select->prefix4, select->prefix6);
		return 0;
	case OW_FLOW_BY_CLASS:
		return check_classes(select, err);
	default:
		return ow_error_set(err, EINVAL, "unknown flow key %d", (int)select->by);
	}
}

int ow_flow_select_same(const struct ow_flow_select *a, const struct ow_flow_select *b, struct ow_error *err)
{
	char x[OW_FLOW_SELECT_TEXT], y[OW_FLOW_SELECT_TEXT];
	ow_flow_select_text(a, x);
	ow_flow_select_text(b, y);
	if (strcmp(x, y) != 0)
		return ow_error_set(err, EINVAL, "flow keys differ: %s and %s", x, y);
	if (a->classes != b->classes)
		return ow_error_set(err, EINVAL, "numbers of classes differ: %u and %u", a->classes, b->classes);
	for (uint32_t i = 0; i < a->classes; i++) {
		if (strcmp(a->class_name[i], b->class_name[i]) != 0)
			return ow_error_set(err, EINVAL, "classes differ: '%s' and '%s'", a->class_name[i],
			                    b->class_name[i]);
	}
	return 0;
}

static void keep_bits(uint8_t address[16], unsigned bits)
{
	for (unsigned i = 0; i<16; i++, bits = bits> 8 ? bits - 8 : 0)
		address[i] &= bits >= 8 ? 0xff : (uint8_t)(0xff00u >> bits);
}

void ow_flow_select_key(const struct ow_flow_select *select, const struct ow_flow_key *packet,
                        struct ow_flow_key *ret_key)
{
	*ret_key = *packet;
	if (select->by != OW_FLOW_BY_ADDRESSES && select->by != OW_FLOW_BY_PREFIX)
		return;
	ret_key->sport = ret_key->dport = 0;
	ret_key->proto = 0;
	/* Frames that are not IP have MACs, and no networks. */
	if (select->by == OW_FLOW_BY_PREFIX && packet->version) {
		unsigned bits = packet->version == 4 ? select->prefix4 : select->prefix6;
		keep_bits(ret_key->src, bits);
		keep_bits(ret_key->dst, bits);
	}
}

void ow_flow_select_class_key(uint32_t class, struct ow_flow_key *ret_key)
{
	*ret_key = (struct ow_flow_key){.ethertype = (uint16_t) class};
}

void ow_flow_select_key_text(const struct ow_flow_select *select, const struct ow_flow_key *key,
                             char text[OW_FLOW_SELECTED_TEXT])
{
	if (select->by == OW_FLOW_BY_CLASS) {
		snprintf(text, OW_FLOW_SELECTED_TEXT, "%s",
		         key->ethertype < select->classes ? select->class_name[key->ethertype] : "?");
	} else if (select->by == OW_FLOW_BY_FIVE_TUPLE || !key->version) {
		ow_flow_key_text(key, text);
	} else {
		char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], bits[8] = "";
		int family = key->version == 4 ? AF_INET : AF_INET6;
		inet_ntop(family, key->src, src, sizeof src);
		inet_ntop(family, key->dst, dst, sizeof dst);
		if (select->by == OW_FLOW_BY_PREFIX)
			snprintf(bits, sizeof bits, "/%d", key->version == 4 ? select->prefix4 : select->prefix6);
		snprintf(text, OW_FLOW_SELECTED_TEXT, "%s%s > %s%s", src, bits, dst, bits);
	}
}

uint64_t ow_flow_hash(uint64_t seed, const struct ow_flow_key *key)
{
	return XXH3_64bits_withSeed(key, sizeof *key, seed);
}
