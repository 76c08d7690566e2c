/* SPDX-License-Identifier: Apache-2.0 */
/* Flow keys in JSON and CSV: the same fields in the results of every command. */
#include "report/flow_name.h"

#include "base/format.h"
#include <arpa/inet.h>

/* An IPv6 address and the length of a prefix. */
#define ADDRESS_TEXT (INET6_ADDRSTRLEN + 4)

static bool is_class(const struct ow_flow_select *select)
{
	return select && select->by == OW_FLOW_BY_CLASS;
}

static bool has_ports(const struct ow_flow_select *select)
{
	return !select || select->by == OW_FLOW_BY_FIVE_TUPLE;
}

static const char *class_name(const struct ow_flow_select *select, const struct ow_flow_key *key)
{
	return key->ethertype < select->classes ? select->class_name[key->ethertype] : "";
}

static const char *address_text(const struct ow_flow_select *select, const struct ow_flow_key *key, const uint8_t *a,
                                char text[ADDRESS_TEXT])
{
	char number[INET6_ADDRSTRLEN] = "";
	if (key->version != 4 && key->version != 6) {
		snprintf(text, ADDRESS_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4], a[5]);
		return text;
	}
	inet_ntop(key->version == 4 ? AF_INET : AF_INET6, a, number, sizeof number);
	if (select && select->by == OW_FLOW_BY_PREFIX)
		snprintf(text, ADDRESS_TEXT, "%s/%u", number,
		         (unsigned)(key->version == 4 ? select->prefix4 : select->prefix6));
	else
		snprintf(text, ADDRESS_TEXT, "%s", number);
	return text;
}

void ow_flow_name_json(struct ow_json *json, const char *name, const struct ow_flow_select *select,
                       const struct ow_flow_key *key)
{
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT];
	ow_json_object(json, name);
	if (is_class(select)) {
		ow_json_string(json, "class", class_name(select, key));
	} else {
		bool ports = has_ports(select) && key->version;
		ow_json_string(json, "src", address_text(select, key, key->src, src));
		ow_json_string(json, "dst", address_text(select, key, key->dst, dst));
		ow_json_count_if(json, "sport", ports, key->sport);
		ow_json_count_if(json, "dport", ports, key->dport);
		ow_json_count_if(json, "proto", ports, key->proto);
		if (has_ports(select) && !key->version)
			ow_json_count(json, "ethertype", key->ethertype);
	}
	ow_json_end(json);
}

void ow_flow_name_csv(FILE *out, const struct ow_flow_select *select, const struct ow_flow_key *key)
{
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT];
	if (is_class(select)) {
		ow_format_csv(out, class_name(select, key));
		fputs(",,,,", out);
		return;
	}
	address_text(select, key, key->src, src);
	address_text(select, key, key->dst, dst);
	if (!has_ports(select))
		fprintf(out, "%s,,%s,,", src, dst);
	else if (key->version)
		fprintf(out, "%s,%u,%s,%u,%u", src, key->sport, dst, key->dport, key->proto);
	else
		fprintf(out, "%s,,%s,,0x%04x", src, dst, key->ethertype);
}
