/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static size_t fields(const char *row)
{
	size_t n = 1;
	for (; *row; row++)
		n += *row == ',';
	return n;
}

static void check(const struct ow_packet_event *event, const char *row)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_packet(out, event, 900);
	fclose(out);
	/* The columns up to delay_most_ns; later_columns has the others. */
	size_t first = strlen(row) - 1;
	assert_true(length > first && text[first] == ',');
	text[first] = 0;
	assert_memory_equal(text, row, first);
	free(text);
}

static void check_later(const struct ow_packet_event *event, const char *end)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_packet(out, event, 900);
	fclose(out);
	assert_int_equal(fields(text), 23);
	assert_true(length > strlen(end));
	assert_string_equal(text + length - strlen(end), end);
	free(text);
}

static void header_names_each_field(void **state)
{
	(void)state;
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_header(out);
	fclose(out);
	assert_string_equal(
		text,
		"fate,direction,ambiguous,number_a,number_b,time_a_ns,time_b_ns,delay_ns,packets,bytes,"
		"proto,src,sport,dst,dport,delay_least_ns,delay_most_ns,protocol_name,time_a_utc,time_b_utc,after_a_s,"
		"after_b_s,resends\n");
	assert_int_equal(fields(text), 23);
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

/* Names, times as ISO 8601 and as offsets, and what is sent again. */
static void later_columns(void **state)
{
	(void)state;
	struct ow_flow_key flow = {{10, 0, 0, 1}, {192, 168, 255, 20}, 65535, 53, 17, 4, 0};
	struct ow_packet_event event = {.fate = OW_FATE_MATCHED,
	                                .number = {1, 2},
	                                .time_ns = {INT64_C(1700000000123456789), 1},
	                                .flow = &flow,
	                                .resends = 77};
	check_later(&event, ",udp,2023-11-14T22:13:20.123456789,1970-01-01T00:00:00.000000001,"
	                    "1700000000.123455889,-0.000000899,77\n");
	flow.proto = 112;
	event.number[OW_SIDE_A] = event.resends = 0;
	event.time_ns[OW_SIDE_B] = -1;
	check_later(&event, ",112,,1969-12-31T23:59:59.999999999,,-0.000000901,\n");
	flow.version = 0;
	flow.ethertype = 0x806;
	check_later(&event, ",0x0806,,1969-12-31T23:59:59.999999999,,-0.000000901,\n");
}

static void intervals(void **state)
{
	(void)state;
	struct ow_interval interval[2] = {{.start_ns = INT64_C(1700000000000000000)},
	                                  {.start_ns = INT64_C(1700000000500000000)}};
	struct ow_match_report report = {.interval = interval, .intervals = 2, .has_direction = {true, false}};
	interval[1].direction[OW_A_TO_B] = (struct ow_result){.sent = 4,
	                                                      .received = 3,
	                                                      .matched = 3,
	                                                      .lost = 1,
	                                                      .delay = {.samples = 3,
	                                                                .mean_ns = 2.5,
	                                                                .stddev_ns = 1,
	                                                                .min_ns = 1,
	                                                                .max_ns = 4,
	                                                                .quantile_ns = {2, 3, 3, 4, 4}}};
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	ow_report_csv_intervals(out, &report);
	fclose(out);
	assert_string_equal(strchr(text, '\n') + 1,
	                    "2023-11-14T22:13:20.000000000,1700000000000000000,0.000000000,a_to_b,0,0,0,0,0,0,0,0,0"
	                    ",,,,,,,,,,\n"
	                    "2023-11-14T22:13:20.500000000,1700000000500000000,0.500000000,a_to_b,4,3,3,1,0,0,0,0,3"
	                    ",0.25,2.5,1,1,4,2,3,3,4,4\n");
	*strchr(text, '\n') = 0;
	assert_int_equal(fields(text), 23);
	free(text);
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
		cmocka_unit_test(header_names_each_field), cmocka_unit_test(every_fate),
		cmocka_unit_test(other_addresses),         cmocka_unit_test(longest_row),
		cmocka_unit_test(later_columns),           cmocka_unit_test(intervals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
