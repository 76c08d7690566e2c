/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void check(const struct ow_packet_event *event, const char *row)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_packet(out, event);
	fclose(out);
	assert_string_equal(text, row);
	free(text);
}

static size_t fields(const char *row)
{
	size_t n = 1;
	for (; *row; row++)
		n += *row == ',';
	return n;
}

static void header_names_each_field(void **state)
{
	(void)state;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_header(out);
	fclose(out);
	assert_string_equal(text,
	                    "fate,direction,ambiguous,number_a,number_b,time_a_ns,time_b_ns,delay_ns,packets,bytes,"
	                    "protocol,src,sport,dst,dport,delay_least_ns,delay_most_ns\n");
	assert_int_equal(fields(text), 17);
	free(text);
}

static void every_fate(void **state)
{
	(void)state;
	struct ow_flow_key flow = {{10, 0, 0, 1}, {192, 168, 255, 20}, 65535, 53, 17, 4, 0};
	struct ow_packet_event event = {.fate = OW_FATE_MATCHED,
	                                .number = {1, 2},
	                                .time_ns = {1000, 5410},
	                                .packets = 1,
	                                .bytes = 60,
	                                .flow = &flow};
	check(&event, "matched,a_to_b,0,1,2,1000,5410,4410,1,60,17,10.0.0.1,65535,192.168.255.20,53,4410,4410\n");
	event.direction = OW_B_TO_A;
	check(&event, "matched,b_to_a,0,1,2,1000,5410,-4410,1,60,17,10.0.0.1,65535,192.168.255.20,53,-4410,-4410\n");
	event.ambiguous = true;
	check(&event, "matched,b_to_a,1,1,2,1000,5410,,1,60,17,10.0.0.1,65535,192.168.255.20,53,,\n");
	event.estimated = true;
	event.less_ns = 10;
	event.more_ns = 400;
	check(&event, "matched,b_to_a,1,1,2,1000,5410,-4410,1,60,17,10.0.0.1,65535,192.168.255.20,53,-4420,-4010\n");
	event.fate = OW_FATE_LOST;
	event.ambiguous = event.estimated = false;
	event.number[OW_SIDE_A] = 0;
	event.packets = 44;
	check(&event, "lost,b_to_a,0,,2,,5410,,44,60,17,10.0.0.1,65535,192.168.255.20,53,,\n");
	event.fate = OW_FATE_UNCLASSIFIED;
	check(&event, "unclassified,,0,,2,,5410,,44,60,17,10.0.0.1,65535,192.168.255.20,53,,\n");
	event.fate = OW_FATE_DUPLICATED;
	event.flow = NULL;
	check(&event, "duplicated,b_to_a,0,,2,,5410,,44,60,,,,,,,\n");
	event.fate = OW_FATE_EXTRA;
	check(&event, "extra,b_to_a,0,,2,,5410,,44,60,,,,,,,\n");
	event.fate = OW_FATE_OUTSIDE;
	check(&event, "outside,b_to_a,0,,2,,5410,,44,60,,,,,,,\n");
	/* Of a flow that never matched. */
	event.direction = OW_DIRECTIONS;
	check(&event, "outside,,0,,2,,5410,,44,60,,,,,,,\n");
}

static void other_addresses(void **state)
{
	(void)state;
	struct ow_flow_key six = {{0x20, 1, 0xd, 0xb8, [15] = 1}, {0xff, 2, [15] = 0xfb}, 5353, 5353, 17, 6, 0};
	struct ow_flow_key mac = {{2, 0, 0, 0, 0xab, 1}, {255, 255, 255, 255, 255, 255}, 0, 0, 0, 0, 0x88f7};
	struct ow_packet_event event = {
		.fate = OW_FATE_LOST, .number = {7, 0}, .time_ns = {-5, 0}, .packets = 1, .bytes = 40, .flow = &six};
	check(&event, "lost,a_to_b,0,7,,-5,,,1,40,17,2001:db8::1,5353,ff02::fb,5353,,\n");
	event.flow = &mac;
	check(&event, "lost,a_to_b,0,7,,-5,,,1,40,0x88f7,02:00:00:00:ab:01,0,ff:ff:ff:ff:ff:ff,0,,\n");
}

/* The longest possible row must fit its buffer (the sanitizer build watches). */
static void longest_row(void **state)
{
	(void)state;
	struct ow_flow_key flow = {.sport = 65535, .dport = 65535, .proto = 255, .version = 6};
	memset(flow.src, 0xaa, sizeof flow.src);
	memset(flow.dst, 0xbb, sizeof flow.dst);
	struct ow_packet_event event = {.fate = OW_FATE_MATCHED,
	                                .number = {UINT64_MAX, UINT64_MAX},
	                                .time_ns = {INT64_MIN, INT64_MIN + 1},
	                                .packets = UINT32_MAX,
	                                .bytes = UINT32_MAX,
	                                .flow = &flow};
	check(&event,
	      "matched,a_to_b,0,18446744073709551615,18446744073709551615,-9223372036854775808,-9223372036854775807,1,"
	      "4294967295,4294967295,255,aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa,65535,"
	      "bbbb:bbbb:bbbb:bbbb:bbbb:bbbb:bbbb:bbbb,65535,1,1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_names_each_field),
		cmocka_unit_test(every_fate),
		cmocka_unit_test(other_addresses),
		cmocka_unit_test(longest_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
