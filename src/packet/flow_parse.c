/* SPDX-License-Identifier: Apache-2.0 */
/* Parses flow keys: flow_parse.h. */
#include "packet/flow_parse.h"

#include "packet/flow.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX 200 /* the text of a flow is shorter (OW_FLOW_SELECTED_TEXT) */

/* Names as written by us, by nfdump and in /etc/protocols. */
static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{"icmp", 1},   {"igmp", 2},    {"ipip", 4},   {"ipencap", 4},   {"tcp", 6},     {"egp", 8},      {"igp", 9},
	{"udp", 17},   {"rdp", 27},    {"dccp", 33},  {"ipv6", 41},     {"rsvp", 46},   {"gre", 47},     {"esp", 50},
	{"ah", 51},    {"icmpv6", 58}, {"icmp6", 58}, {"eigrp", 88},    {"ospf", 89},   {"ospfigp", 89}, {"pim", 103},
	{"vrrp", 112}, {"l2tp", 115},  {"sctp", 132}, {"udplite", 136}, {"udplt", 136},
};

static int parse_number(const char *text, unsigned long most, unsigned long *ret_number)
{
	size_t digits = strspn(text, "0123456789");
	if (!digits || text[digits] || digits > 9)
		return -EINVAL;
	*ret_number = strtoul(text, NULL, 10);
	return *ret_number > most ? -EINVAL : 0;
}

int ow_flow_parse_protocol(const char *text, uint8_t *ret_proto, struct ow_error *err)
{
	unsigned long number;
	if (parse_number(text, 255, &number) == 0) {
		*ret_proto = (uint8_t)number;
		return 0;
	}
	for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
		if (strcasecmp(text, protocols[i].name) == 0) {
			*ret_proto = protocols[i].number;
			return 0;
		}
	}
	return ow_error_set(err, EINVAL, "'%.20s' is not a known protocol: give its number, 0 to 255", text);
}

int ow_flow_parse_port(const char *text, uint16_t *ret_port, struct ow_error *err)
{
	unsigned long number;
	if (parse_number(text, 65535, &number) < 0)
		return ow_error_set(err, EINVAL, "'%.20s' is not a port, 0 to 65535", text);
	*ret_port = (uint16_t)number;
	return 0;
}

int ow_flow_parse_address(const char *text, uint8_t address[16], uint8_t *ret_version, int *ret_bits,
                          struct ow_error *err)
{
	char number[INET6_ADDRSTRLEN];
	uint8_t bytes[16] = {0};
	size_t length = strcspn(text, ret_bits ? "/" : "");
	unsigned long bits = 0;
	bool slash = text[length] == '/';
	if (length >= sizeof number)
		return ow_error_set(err, EINVAL, "'%.60s' is not an IP address", text);
	memcpy(number, text, length);
	number[length] = 0;
	uint8_t version = inet_pton(AF_INET, number, bytes) == 1 ? 4 : inet_pton(AF_INET6, number, bytes) == 1 ? 6 : 0;
	if (!version)
		return ow_error_set(err, EINVAL, "'%.60s' is not an IP address", text);
	if (slash && parse_number(text + length + 1, version == 4 ? 32 : 128, &bits) < 0)
		return ow_error_set(err, EINVAL, "'%.60s' is not a network such as 10.0.0.0/24", text);
	memcpy(address, bytes, 16);
	*ret_version = version;
	if (ret_bits)
		*ret_bits = slash ? (int)bits : -1;
	return 0;
}

/* One end of a flow: "10.0.0.1:80", "[2001:db8::1]:53", "10.0.0.1", "2001:db8::1", "10.0.0.0/24". Parsing modifies the
 * text. */
struct end {
	uint8_t address[16], version;
	int bits;
	uint16_t port;
	bool has_port;
};

static int parse_end(char *text, struct end *ret_end, struct ow_error *err)
{
	char *port = NULL, *close = strchr(text, ']'), *colon = strchr(text, ':');
	*ret_end = (struct end){.bits = -1};
	if (*text == '[' && close) {
		*close = 0;
		text++;
		if (close[1] == ':')
			port = close + 2;
		else if (close[1])
			return ow_error_set(err, EINVAL, "'[%.60s]%.20s' is not an address and port", text, close + 1);
	} else if (colon && !strchr(colon + 1, ':')) { /* one colon: not IPv6 */
		*colon = 0;
		port = colon + 1;
	}
	ret_end->has_port = port != NULL;
	if (port && ow_flow_parse_port(port, &ret_end->port, err) < 0)
		return -EINVAL;
	return ow_flow_parse_address(text, ret_end->address, &ret_end->version, &ret_end->bits, err);
}

static int parse_class(const char *text, const struct ow_flow_select *select, struct ow_flow_key *ret_key,
                       struct ow_error *err)
{
	for (uint32_t i = 0; i < select->classes; i++) {
		if (strcmp(text, select->class_name[i]) == 0) {
			ow_flow_select_class_key(i, ret_key);
			return 0;
		}
	}
	return ow_error_set(err, EINVAL, "'%.60s' is not a class of this recording", text);
}

static char *trim(char *text)
{
	text += strspn(text, " \t");
	size_t length = strlen(text);
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = 0;
	return text;
}

/* Splits a flow into source, destination and the rest. */
static int split(char *text, char **ret_src, char **ret_dst, char **ret_rest)
{
	char *arrow = strchr(text, '>');
	if (!arrow)
		return -EINVAL;
	char *dst = arrow + 1;
	if (arrow > text && arrow[-1] == '-')
		arrow--;
	*arrow = 0;
	dst += strspn(dst, " \t");
	char *rest = dst + strcspn(dst, " \t");
	*ret_src = trim(text);
	*ret_rest = *rest ? trim(rest + 1) : rest;
	*rest = 0;
	*ret_dst = dst;
	return **ret_src && *dst ? 0 : -EINVAL;
}

static int check_bits(const struct end *end, const struct ow_flow_select *select, struct ow_error *err)
{
	int kept = end->version == 4 ? select->prefix4 : select->prefix6;
	if (end->bits < 0 || (select->by == OW_FLOW_BY_PREFIX && end->bits == kept))
		return 0;
	if (select->by == OW_FLOW_BY_PREFIX)
		return ow_error_set(err, EINVAL, "networks of /%d, but flows are networks of /%d", end->bits, kept);
	return ow_error_set(err, EINVAL, "flows are of addresses, not of networks");
}

int ow_flow_key_parse(const char *text, const struct ow_flow_select *select, struct ow_flow_key *ret_key,
                      struct ow_error *err)
{
	char copy[TEXT_MAX], *src, *dst, *rest;
	struct end from, to;
	struct ow_flow_key key = {0};
	bool five = select->by == OW_FLOW_BY_FIVE_TUPLE;
	if (select->by == OW_FLOW_BY_CLASS)
		return parse_class(text, select, ret_key, err);
	if (strlen(text) >= sizeof copy)
		return ow_error_set(err, EINVAL, "'%.40s...' is too long for a flow", text);
	memcpy(copy, text, strlen(text) + 1);
	if (split(copy, &src, &dst, &rest) < 0 || (five && !*rest))
		return ow_error_set(err, EINVAL, "'%.60s' is not a flow such as '%s'", text,
		                    five ? "10.0.0.1:80 > 10.0.0.2:1234 tcp" : "10.0.0.1 > 10.0.0.2");
	if (parse_end(src, &from, err) < 0 || parse_end(dst, &to, err) < 0 || check_bits(&from, select, err) < 0 ||
	    check_bits(&to, select, err) < 0)
		return -EINVAL;
	if (from.version != to.version)
		return ow_error_set(err, EINVAL, "'%.60s' mixes IPv4 and IPv6", text);
	if (!five && (*rest || from.has_port || to.has_port))
		return ow_error_set(err, EINVAL, "flows have no ports and protocols here: '10.0.0.1 > 10.0.0.2'");
	if (strncmp(rest, "proto ", 6) == 0)
		rest = trim(rest + 6);
	if (five && ow_flow_parse_protocol(rest, &key.proto, err) < 0)
		return -EINVAL;
	/* Fragments of TCP and UDP are flows without ports. */
	if (from.has_port != to.has_port)
		return ow_error_set(err, EINVAL, "'%.60s': both ends have a port, or none", text);
	if (from.has_port && !ow_flow_has_ports(key.proto))
		return ow_error_set(err, EINVAL, "'%.60s': this protocol has no ports", text);
	memcpy(key.src, from.address, 16);
	memcpy(key.dst, to.address, 16);
	key.sport = from.port;
	key.dport = to.port;
	key.version = from.version;
	ow_flow_select_key(select, &key, ret_key);
	return 0;
}
