/* SPDX-License-Identifier: Apache-2.0 */
/* Packet counts from CSV: the forms that are read, and what is said of those that are not. */
#include "packet/flow_parse.h"
#include "flows/counts_csv.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED 11u

static const struct ow_flow_select five = {.by = OW_FLOW_BY_FIVE_TUPLE}, addresses = {.by = OW_FLOW_BY_ADDRESSES},
				   prefix = {.by = OW_FLOW_BY_PREFIX, .prefix4 = 24, .prefix6 = 48},
				   classes = {.by = OW_FLOW_BY_CLASS, .classes = 2, .class_name = {"voice", "rest"}};

static int read_text(const char *text, const struct ow_flow_select *select, struct ow_flow_counts **ret_counts,
                     struct ow_error *err)
{
	FILE *in = fmemopen((char *)text, strlen(text), "r");
	assert_non_null(in);
	int r = ow_counts_csv_read(in, "x.csv", select, SEED, ret_counts, err);
	fclose(in);
	return r;
}

static struct ow_flow_counts *counts_of(const char *text, const struct ow_flow_select *select)
{
	struct ow_flow_counts *counts = NULL;
	struct ow_error err = {""};
	if (read_text(text, select, &counts, &err) < 0)
		fail_msg("%s:\n%s", err.text, text);
	return counts;
}

/* Packets of the flow, 0 if it is not there. */
static uint64_t packets_of(const struct ow_flow_counts *counts, const struct ow_flow_select *select, const char *flow,
                           struct ow_flow_count *ret_count)
{
	struct ow_flow_key key;
	struct ow_error err;
	if (ow_flow_key_parse(flow, select, &key, &err) < 0)
		fail_msg("%s", err.text);
	ptrdiff_t i = ow_flow_counts_find(counts, ow_flow_hash(SEED, &key));
	if (i < 0)
		return 0;
	ow_flow_counts_get(counts, (size_t)i, ret_count);
	assert_memory_equal(&ret_count->key, &key, sizeof key);
	return ret_count->packets;
}

static void any_csv(void **state)
{
	(void)state;
	struct ow_flow_count count;
	struct ow_flow_counts *counts = counts_of("\xef\xbb\xbfnote,Packets,\"src\",dst,proto,sport,dport\r\n"
	                                          "a, 5 ,10.0.0.1,10.0.0.2,tcp,80,1234\r\n"
	                                          "\"b, \"\"c\"\"\",7,\"10.0.0.1\" ,10.0.0.2,6,80,1234\n"
	                                          "\n"
	                                          "d,3,2001:db8::1,2001:db8::2,UDP,53,0\n"
	                                          "e,0,10.0.0.9,10.0.0.2,udp,1,1\n"
	                                          "f,2,10.0.0.3,10.0.0.2,icmp,0,8.0",
	                                          &five);
	assert_int_equal(ow_flow_counts_flows(counts), 3);
	assert_int_equal(ow_flow_counts_packets(counts), 17);
	assert_int_equal(packets_of(counts, &five, "10.0.0.1:80 > 10.0.0.2:1234 tcp", &count), 12);
	assert_true(count.first_ns > count.last_ns);
	assert_int_equal(packets_of(counts, &five, "[2001:db8::1]:53 > [2001:db8::2]:0 udp", &count), 3);
	assert_int_equal(packets_of(counts, &five, "10.0.0.3 > 10.0.0.2 icmp", &count), 2);
	ow_flow_counts_free(counts);
}

/* As nfdump 1.7.1 of Debian 12 and 1.7.6 write them. */
static void nfdump(void **state)
{
	(void)state;
	struct ow_flow_count count;
	struct ow_flow_counts *counts = counts_of(
		"ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt,in,out\n"
		"2023-11-14 22:13:20,2023-11-14 22:13:20,0.188,10.0.0.1,10.0.0.2,80,1234,TCP,...AP...,0,0,103,"
		"32112,0,0,0,0\n"
		"2023-11-14 22:13:20,2023-11-14 22:13:20,0.188,10.0.0.1,10.0.0.2,80,1234,TCP,...AP...,0,0,7,"
		"32112,0,0,0,0\n"
		"2023-11-14 22:13:20,2023-11-14 22:13:20,0.000,2001:db8::1,2001:db8::2,0,128.0,ICMP6,........,"
		"0,0,1,64,0,0,0,0\n"
		"Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n550,7039692,20000,281587680,100000,351\n",
		&five);
	assert_int_equal(ow_flow_counts_flows(counts), 2);
	assert_int_equal(packets_of(counts, &five, "10.0.0.1:80 > 10.0.0.2:1234 tcp", &count), 110);
	assert_int_equal(packets_of(counts, &five, "2001:db8::1 > 2001:db8::2 icmpv6", &count), 1);
	ow_flow_counts_free(counts);

	counts = counts_of("firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n"
	                   "2025-06-27 19:30:00.000,0.100,UDP,10.0.0.1,80,10.0.0.2,1234,9,900,1\n",
	                   &five);
	assert_int_equal(packets_of(counts, &five, "10.0.0.1:80 > 10.0.0.2:1234 udp", &count), 9);
	ow_flow_counts_free(counts);
}

static void other_keys(void **state)
{
	(void)state;
	struct ow_flow_count count;
	static const char text[] = "src,dst,packets,first_ns,last_ns\n10.0.0.1,10.0.1.2,5,1700000000000000000,"
				   "1700000000000000009\n10.0.0.2,10.0.1.2,6,1600000000000000000,1700000000000000001\n";
	struct ow_flow_counts *counts = counts_of(text, &addresses);
	assert_int_equal(packets_of(counts, &addresses, "10.0.0.2 > 10.0.1.2", &count), 6);
	assert_int_equal(count.first_ns, INT64_C(1600000000000000000));
	ow_flow_counts_free(counts);
	counts = counts_of(text, &prefix);
	assert_int_equal(ow_flow_counts_flows(counts), 1);
	assert_int_equal(packets_of(counts, &prefix, "10.0.0.0/24 > 10.0.1.0/24", &count), 11);
	assert_int_equal(count.last_ns, INT64_C(1700000000000000009));
	ow_flow_counts_free(counts);
	counts = counts_of("src,dst,packets\n10.0.0.0/24,10.0.1.0/24,4\n", &prefix);
	assert_int_equal(packets_of(counts, &prefix, "10.0.0.0/24 > 10.0.1.0/24", &count), 4);
	ow_flow_counts_free(counts);
	counts = counts_of("class,packets\nrest,4\nvoice,2\nrest,1\n", &classes);
	assert_int_equal(packets_of(counts, &classes, "rest", &count), 5);
	ow_flow_counts_free(counts);
}

#define HEADER "src,dst,sport,dport,proto,packets\n"

static void mistakes_have_a_line(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int code;
		const char *says;
	} cases[] = {
		{HEADER, -ENODATA, "x.csv: contains no flow"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,tcp,0\n", -ENODATA, "x.csv: contains no flow"},
		{"10.0.0.1,10.0.0.2,1,2,tcp,5\n", -EINVAL, "x.csv:1: no column 'src' in the header"},
		{"src,dst,sport,dport,proto\n", -EINVAL, "x.csv:1: no column 'packets'"},
		{"src,sa,dst,sport,dport,proto,packets\n", -EINVAL, "x.csv:1: two columns for src: src and sa"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,tcp\n", -EINVAL, "x.csv:2: 5 columns, but the header has 6"},
		{HEADER "\n10.0.0.1,10.0.0.2,1,2,tcp,5,6\n", -EINVAL, "x.csv:3: 7 columns, but the header has 6"},
		{HEADER "10.0.0,10.0.0.2,1,2,tcp,5\n", -EINVAL, "x.csv:2: src: '10.0.0' is not an IP address"},
		{HEADER "10.0.0.1,::2,1,2,tcp,5\n", -EINVAL, "x.csv:2: one address is IPv4, the other IPv6"},
		{HEADER "10.0.0.1,10.0.0.0/8,1,2,tcp,5\n", -EINVAL, "x.csv:2: dst: '10.0.0.0/8' is a network"},
		{HEADER "10.0.0.1,10.0.0.2,1,65536,tcp,5\n", -EINVAL, "x.csv:2: dport: '65536' is not a port"},
		{HEADER "10.0.0.1,10.0.0.2,-1,2,tcp,5\n", -EINVAL, "x.csv:2: sport: '-1' is not a port"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,quic,5\n", -EINVAL, "x.csv:2: proto: 'quic' is not a known protocol"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,tcp,1.2 M\n", -EINVAL, "x.csv:2: packets: '1.2 M' is not a number"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,tcp,-5\n", -EINVAL, "x.csv:2: packets: '-5' is not a number"},
		{HEADER "10.0.0.1,10.0.0.2,1,2,tcp,281474976710657\n", -EINVAL, "x.csv:2: packets: 281474976710657 is"},
		{HEADER "\"10.0.0.1,10.0.0.2,1,2,tcp,5\n", -EINVAL, "x.csv:2: a closing quote is missing"},
		{HEADER "\"10.0.0.1\"x,10.0.0.2,1,2,tcp,5\n", -EINVAL, "x.csv:2: a closing quote is missing"},
		{HEADER "Summary\n", -EINVAL, "x.csv:2: 1 columns"},
		{"ts,sa,da,sp,dp,pr,ipkt,opkt\n1,10.0.0.1,10.0.0.2,1,2,TCP,5,1\n", -EINVAL,
	         "x.csv:2: a flow of both directions"},
		{"src,dst,sport,dport,proto,packets,first_ns,last_ns\n10.0.0.1,10.0.0.2,1,2,tcp,5,9,8\n", -EINVAL,
	         "x.csv:2: first_ns is after last_ns"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_flow_counts *counts = NULL;
		struct ow_error err = {""};
		assert_int_equal(read_text(cases[i].text, &five, &counts, &err), cases[i].code);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s\n%s", err.text, cases[i].text);
		assert_null(counts);
	}
}

static void not_csv_at_all(void **state)
{
	(void)state;
	struct ow_flow_counts *counts;
	struct ow_error err = {""};
	static char text[OW_COUNTS_CSV_LINE + 100];
	memset(text, 'x', sizeof text - 1);
	assert_int_equal(read_text(text, &five, &counts, &err), -EINVAL);
	assert_non_null(strstr(err.text, "x.csv:1: longer than"));
	memset(text, ',', 1000);
	text[1000] = 0;
	assert_int_equal(read_text(text, &five, &counts, &err), -EINVAL);
	assert_non_null(strstr(err.text, "x.csv:1: more than"));
	/* The magic number of a pcap file. */
	FILE *in = fmemopen("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00", 10, "r");
	assert_int_equal(ow_counts_csv_read(in, "x.pcap", &five, SEED, &counts, &err), -EINVAL);
	assert_non_null(strstr(err.text, "x.pcap:1: has a zero byte: this is not CSV"));
	fclose(in);
	in = fopen("/dev/null", "r");
	assert_int_equal(ow_counts_csv_read(in, "null", &five, SEED, &counts, &err), -ENODATA);
	assert_non_null(strstr(err.text, "null: is empty"));
	fclose(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_csv),        cmocka_unit_test(nfdump),
		cmocka_unit_test(other_keys),     cmocka_unit_test(mistakes_have_a_line),
		cmocka_unit_test(not_csv_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
