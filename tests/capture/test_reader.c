/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are not captures, and every capture of the trace collection compared with the packet counts of its index.
 */
#include "craft.h"

#include "base/random.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_not_a_capture(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t size;
		const char *text;
	} cases[] = {
		{"empty", "", 0, "not a capture file (it is empty)"},
		{"one-byte", "x", 1, "not a capture file (it has only 1 bytes)"},
		{"three-bytes", "\xd4\xc3\xb2", 3, "not a capture file (it has only 3 bytes)"},
		{"image.png", "\x89PNG\r\n\x1a\n", 8, "not a capture file (starts with 89 50 4e 47)"},
		{"text", "hello, world\n", 13, "not a capture file (starts with 68 65 6c 6c)"},
		{"magic-only", "\xd4\xc3\xb2\xa1", 4, "cut off in the file header (4 of 24 bytes)"},
		{"pcapng-magic-only", "\n\r\r\n", 4, "cannot be read as a capture file"},
		{"gzip-magic-only", "\x1f\x8b", 2, "not a capture file (gzip data cut off at offset 2)"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *path = scratch_save(*state, cases[i].name, cases[i].bytes, cases[i].size);
		struct outcome o = read_all(path);
		char start[1024];
		snprintf(start, sizeof start, "%s: %s", path, cases[i].text);
		assert_int_equal(o.opened, -EINVAL);
		if (strncmp(o.text, start, strlen(start)) != 0)
			fail_msg("%s, not %s", o.text, start);
		assert_null(strchr(o.text, '\n'));
	}
}

static void test_no_file(void **state)
{
	struct outcome o = read_all("/nonexistent/x.pcap");

	(void)state;
	assert_int_equal(o.opened, -ENOENT);
	assert_string_equal(o.text, "/nonexistent/x.pcap: cannot open: No such file or directory");
	o = read_all("/");
	assert_true(o.opened < 0);
	assert_non_null(strstr(o.text, "/: "));
	assert_int_equal(ow_reader_open("/nonexistent", &(struct ow_reader *){NULL}, NULL), -ENOENT);
	ow_reader_close(NULL);
}

/* Random damage to good files: whatever comes, it is an end, a refusal or another file; the sanitizers judge. */
static void test_random_damage(void **state)
{
	struct ow_random random;
	struct craft *c = craft_new(false);

	ow_random_seed(&random, 11);
	for (int round = 0; round < 2000; round++) {
		c->size = 0;
		if (round & 1) {
			craft_section(c);
			craft_interface(c, 1, 0, 6);
			craft_interface(c, 101, 96, 0x80 | 20);
			for (uint32_t i = 0; i < 4; i++)
				craft_packet(c, i % 2, i, 10 * i, 10 * i);
		} else {
			craft_pcap(c, 0xa1b2c3d4, 65535, 1);
			for (uint32_t i = 0; i < 4; i++)
				craft_record(c, i, i, 10 * i, 10 * i);
		}
		for (uint64_t n = 1 + ow_random_below(&random, 4); n; n--)
			c->bytes[ow_random_below(&random, c->size)] = (uint8_t)ow_random_u64(&random);
		read_craft(*state, c);
	}
	free(c);
}

static void test_linktype_names(void **state)
{
	(void)state;
	assert_string_equal(ow_linktype_name(1), "EN10MB");
	assert_string_equal(ow_linktype_name(101), "RAW");
	assert_string_equal(ow_linktype_name(113), "LINUX_SLL");
	assert_string_equal(ow_linktype_name(276), "LINUX_SLL2");
	assert_string_equal(ow_linktype_name(65535), "?");
}

/* Files of the collection that are not read as its index counts, and why that is right. */
static const struct {
	const char *file, *text;
	size_t n;
	int opened;
} exceptions[] = {
	/* pcapng without a single interface: nothing in it to measure */
	{"zoo/gopacket__test002.pcapng", "no Interface Description Blocks", 0, -EINVAL},
	{"zoo/gopacket__le__test002.pcapng", "no Interface Description Blocks", 0, -EINVAL},
	{"zoo/gopacket__test017.pcapng", "no Interface Description Blocks", 0, -EINVAL},
	{"zoo/gopacket__le__test017.pcapng", "no Interface Description Blocks", 0, -EINVAL},
	/* a simple packet block cut by the snaplen, see follow.h */
	{"zoo/gopacket__test201.pcapng", "damaged or cut off in record 3 at offset 780", 2, 0},
	{"zoo/gopacket__le__test201.pcapng", "damaged or cut off in record 3 at offset 780", 2, 0},
	{"zoo/gopacket__test202.pcapng", "sections of different byte order", 0, -ENOTSUP},
	{"zoo/gopacket__le__test202.pcapng", "sections of different byte order", 0, -ENOTSUP},
	/* another format */
	{"zoo/trex__dns_ipv6_rxcheck-ex.erf", "not a capture file", 0, -EINVAL},
	{"zoo/trex__dns_rxcheck-ex.erf", "not a capture file", 0, -EINVAL},
	{"zoo/trex__pcap_remote_duration-0-ex.erf", "not a capture file", 0, -EINVAL},
	{"zoo/trex__stl_bb_start_stop_delay1-0-ex.erf", "not a capture file", 0, -EINVAL},
};

static void check_trace(const char *traces, const char *file, size_t packets, const char *timeres)
{
	char path[1024];
	struct outcome o;

	snprintf(path, sizeof path, "%s/%s", traces, file);
	o = read_all(path);
	for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
		if (strcmp(exceptions[i].file, file) != 0)
			continue;
		assert_int_equal(o.opened, exceptions[i].opened);
		assert_int_equal(o.n, exceptions[i].n);
		assert_non_null(strstr(o.text, exceptions[i].text));
		return;
	}
	if (o.opened < 0 || o.result < 0 || o.damaged || o.n != packets)
		fail_msg("%s: %zu packets, not %zu; %s", file, o.n, packets, o.text);
	assert_string_equal(o.format, strncmp(timeres, "ng:", 3) ? "pcap" : "pcapng");
	if (strcmp(timeres, "us") == 0 || strncmp(timeres, "ng:1e-6", 7) == 0)
		assert_int_equal(o.info.resolution_ns, 1000);
	else if (strcmp(timeres, "ng:2^-8") == 0)
		assert_int_equal(o.info.resolution_ns, 3906250);
	else
		assert_int_equal(o.info.resolution_ns, 1);
}

/* The n-th field of a line with tabs. */
static void copy_field(const char *line, int n, char *text, size_t size)
{
	for (; n > 0 && *line; n--) {
		line += strcspn(line, "\t");
		line += *line == '\t';
	}
	snprintf(text, size, "%.*s", (int)strcspn(line, "\t\n"), line);
}

static void test_traces(void **state)
{
	const char *traces = getenv("OW_TRACES");
	char path[1024], line[4096], file[512], packets[32], timeres[64];
	size_t n = 0;
	FILE *index;

	(void)state;
	snprintf(path, sizeof path, "%s/INDEX.tsv", traces ? traces : "");
	index = fopen(path, "r");
	if (!index) {
		printf("no trace collection at %s\n", path);
		skip();
	}
	while (fgets(line, sizeof line, index)) {
		copy_field(line, 0, file, sizeof file);
		copy_field(line, 2, packets, sizeof packets);
		copy_field(line, 5, timeres, sizeof timeres);
		if (strcmp(file, "file") == 0)
			continue;
		check_trace(traces, file, strtoul(packets, NULL, 10), timeres);
		n++;
	}
	fclose(index);
	assert_true(n > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_not_a_capture, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test_setup_teardown(test_random_damage, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_linktype_names),
		cmocka_unit_test(test_traces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
