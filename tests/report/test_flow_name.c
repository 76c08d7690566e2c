/* SPDX-License-Identifier: Apache-2.0 */
/* Names of flows in JSON and CSV: only the fields of the key, whatever the key is of, and always five columns. */
#include "report/flow_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct ow_flow_key four = {
	.src = {10, 0, 0, 1}, .dst = {255, 255, 255, 255}, .sport = 65535, .dport = 80, .proto = 6, .version = 4};
static const struct ow_flow_key six = {.src = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .proto = 58, .version = 6};
static const struct ow_flow_key frame = {
	.src = {0, 1, 2, 0xaa, 0xbb, 0xcc}, .dst = {255, 255, 255, 255, 255, 255}, .ethertype = 0x0806};

static void is(const struct ow_flow_select *select, const struct ow_flow_key *key, const char *json, const char *csv)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct ow_json writer = {.out = out};
	ow_flow_name_json(&writer, NULL, select, key);
	fclose(out);
	text[strcspn(text, "\n")] = 0;
	assert_string_equal(text, json);
	free(text);
	out = open_memstream(&text, &size);
	ow_flow_name_csv(out, select, key);
	fclose(out);
	assert_string_equal(text, csv);
	unsigned commas = 0;
	bool quoted = false;
	for (const char *c = text; *c; c++) {
		quoted ^= *c == '"';
		commas += *c == ',' && !quoted;
	}
	assert_int_equal(commas, 4);
	free(text);
}

static void all_fields(void **state)
{
	(void)state;
	const struct ow_flow_select tuple = {.by = OW_FLOW_BY_FIVE_TUPLE};
	const struct ow_flow_select *const selects[] = {NULL, &tuple};
	for (int i = 0; i < 2; i++) {
		is(selects[i], &four,
		   "{\"src\": \"10.0.0.1\", \"dst\": \"255.255.255.255\", \"sport\": 65535, \"dport\": 80, \"proto\": "
		   "6}",
		   "10.0.0.1,65535,255.255.255.255,80,6");
		is(selects[i], &six,
		   "{\"src\": \"2001:db8::1\", \"dst\": \"::\", \"sport\": 0, \"dport\": 0, \"proto\": 58}",
		   "2001:db8::1,0,::,0,58");
		is(selects[i], &frame,
		   "{\"src\": \"00:01:02:aa:bb:cc\", \"dst\": \"ff:ff:ff:ff:ff:ff\", \"sport\": null, \"dport\": null, "
		   "\"proto\": null, \"ethertype\": 2054}",
		   "00:01:02:aa:bb:cc,,ff:ff:ff:ff:ff:ff,,0x0806");
	}
}

static void some_fields(void **state)
{
	(void)state;
	const struct ow_flow_select addresses = {.by = OW_FLOW_BY_ADDRESSES},
				    prefix = {.by = OW_FLOW_BY_PREFIX, .prefix4 = 8, .prefix6 = 48};
	is(&addresses, &four,
	   "{\"src\": \"10.0.0.1\", \"dst\": \"255.255.255.255\", \"sport\": null, \"dport\": null, \"proto\": null}",
	   "10.0.0.1,,255.255.255.255,,");
	is(&prefix, &four,
	   "{\"src\": \"10.0.0.1/8\", \"dst\": \"255.255.255.255/8\", \"sport\": null, \"dport\": null, \"proto\": "
	   "null}",
	   "10.0.0.1/8,,255.255.255.255/8,,");
	is(&prefix, &six,
	   "{\"src\": \"2001:db8::1/48\", \"dst\": \"::/48\", \"sport\": null, \"dport\": null, \"proto\": null}",
	   "2001:db8::1/48,,::/48,,");
}

/* A name may be anything; a number without a name is no class. */
static void classes(void **state)
{
	(void)state;
	const struct ow_flow_select select = {.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "a,\"b\""}};
	is(&select, &(struct ow_flow_key){.ethertype = 0}, "{\"class\": \"voice\"}", "voice,,,,");
	is(&select, &(struct ow_flow_key){.ethertype = 1}, "{\"class\": \"a,\\\"b\\\"\"}", "\"a,\"\"b\"\"\",,,,");
	is(&select, &(struct ow_flow_key){.ethertype = 2}, "{\"class\": \"\"}", ",,,,");
	is(&select, &(struct ow_flow_key){.ethertype = UINT16_MAX}, "{\"class\": \"\"}", ",,,,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields),
		cmocka_unit_test(some_fields),
		cmocka_unit_test(classes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
