/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips over every format, byte order, resolution and packing; reproducible bytes; what cannot be written. */
#include "base/random.h"
#include "base/time.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include "scratch.h"
#include <errno.h>
#include <sys/stat.h>

#define FRAMES  500
#define START_S INT64_C(1700000000)

static void make_frames(struct ow_frame *frames, uint8_t *bytes)
{
	struct ow_random random;

	ow_random_seed(&random, 7);
	for (size_t i = 0; i < 2048; i++)
		bytes[i] = (uint8_t)ow_random_u64(&random);
	for (size_t i = 0; i < FRAMES; i++) {
		uint32_t caplen = (uint32_t)ow_random_below(&random, 1515);
		frames[i] = (struct ow_frame){
			.time_ns =
				(START_S + (int64_t)i) * OW_NS_PER_S + (int64_t)ow_random_below(&random, OW_NS_PER_S),
			.data = bytes + ow_random_below(&random, 2048 - caplen),
			.caplen = caplen,
			.len = caplen + (i % 3 ? 0 : 100),
		};
	}
}

static void write_frames(const char *path, const struct ow_writer_options *options)
{
	static uint8_t bytes[2048];
	static struct ow_frame frames[FRAMES];
	struct ow_writer *writer;
	struct ow_error err;

	make_frames(frames, bytes);
	if (ow_writer_open(path, options, &writer, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < FRAMES; i++)
		assert_int_equal(ow_writer_write(writer, &frames[i], &err), 0);
	assert_int_equal(ow_writer_close(writer, &err), 0);
}

/* The time that comes back: what the file's resolution keeps of a nanosecond time. */
static int64_t stored_ns(int64_t time_ns, const struct ow_writer_options *o)
{
	int n = o->tsresol & 0x7f;
	int64_t unit = o->nanoseconds ? 1 : 1000;

	if (o->format == OW_FILE_PCAPNG && o->tsresol & 0x80 && n < 30) {
		__int128 ticks = ((__int128)time_ns << n) / OW_NS_PER_S;
		return (int64_t)(ticks * OW_NS_PER_S >> n);
	}
	if (o->format == OW_FILE_PCAPNG && o->tsresol) {
		unit = 1;
		for (; n < 9; n++)
			unit *= 10;
		if (o->tsresol & 0x80)
			unit = 1;
	}
	return time_ns / unit * unit;
}

static void compare(struct ow_reader *reader, const struct ow_writer_options *o, size_t batch)
{
	static uint8_t bytes[2048];
	static struct ow_frame expected[FRAMES], got[FRAMES];
	uint32_t snaplen = o->snaplen ? o->snaplen : 262144;
	struct ow_error err;
	size_t i = 0;

	make_frames(expected, bytes);
	for (;;) {
		int n = ow_reader_read(reader, got, batch, &err);
		if (n < 0)
			fail_msg("%s", err.text);
		if (n == 0)
			break;
		for (int k = 0; k < n; k++, i++) {
			const struct ow_frame *e = &expected[i], *g = &got[k];
			assert_true(i < FRAMES);
			assert_int_equal(g->number, i + 1);
			assert_int_equal(g->linktype, o->linktype);
			assert_int_equal(g->len, e->len);
			assert_int_equal(g->caplen, e->caplen < snaplen ? e->caplen : snaplen);
			assert_memory_equal(g->data, e->data, g->caplen);
			assert_int_equal(g->time_ns, stored_ns(e->time_ns, o));
		}
	}
	if (ow_reader_damage(reader))
		fail_msg("%s", ow_reader_damage(reader));
	assert_int_equal(i, FRAMES);
}

static void round_trip(struct scratch *s, const struct ow_writer_options *o, int64_t resolution_ns)
{
	const char *path = scratch_path(s, "trip");
	struct ow_reader *reader;
	struct ow_error err;

	write_frames(path, o);
	if (ow_reader_open(path, &reader, &err) < 0)
		fail_msg("%s", err.text);
	const struct ow_reader_info *info = ow_reader_info(reader);
	assert_string_equal(info->path, path);
	assert_string_equal(info->format, o->format == OW_FILE_PCAP ? "pcap" : "pcapng");
	assert_int_equal(info->compressed, o->gzip);
	assert_int_equal(info->linktype, o->linktype);
	assert_int_equal(info->snaplen, o->snaplen ? o->snaplen : 262144);
	assert_int_equal(info->resolution_ns, resolution_ns);
	compare(reader, o, FRAMES);
	assert_int_equal(ow_reader_position(reader), info->size_bytes);
	assert_int_equal(ow_reader_rewind(reader, &err), 0);
	compare(reader, o, 7);
	ow_reader_close(reader);
}

static void test_pcap(void **state)
{
	for (int bits = 0; bits < 16; bits++) {
		struct ow_writer_options o = {
			.format = OW_FILE_PCAP,
			.linktype = bits & 1 ? 1 : 101,
			.nanoseconds = bits & 2,
			.big_endian = bits & 4,
			.gzip = bits & 8,
			.snaplen = bits & 1 ? 0 : 60,
		};
		round_trip(*state, &o, o.nanoseconds ? 1 : 1000);
	}
}

static void test_pcapng(void **state)
{
	static const struct {
		int tsresol;
		int64_t resolution_ns;
	} cases[] = {{0, 1000}, {6, 1000},           {9, 1},           {3, 1000000},   {1, 100000000},
	             {10, 1},   {0x80 | 8, 3906250}, {0x80 | 20, 953}, {0x80 | 30, 1}, {0x80 | 34, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int bits = 0; bits < 16; bits++) {
			struct ow_writer_options o = {
				.format = OW_FILE_PCAPNG,
				.linktype = bits & 1 ? 1 : 101,
				.tsresol = cases[i].tsresol,
				.big_endian = bits & 1,
				/* 2^-34 s since 1970 do not fit 64 bits */
				.tsoffset_s = bits & 2 || cases[i].tsresol == (0x80 | 34) ? START_S - 1 : 0,
				.interfaces = bits & 4 ? 3 : 0,
				.gzip = bits & 8,
				.snaplen = bits & 1 ? 0 : 60,
			};
			round_trip(*state, &o, cases[i].resolution_ns);
		}
	}
}

static void test_same_bytes(void **state)
{
	for (int bits = 0; bits < 4; bits++) {
		struct ow_writer_options o = {
			.format = bits & 1 ? OW_FILE_PCAPNG : OW_FILE_PCAP, .linktype = 1, .gzip = bits & 2};
		uint8_t *a, *b;
		size_t a_size, b_size;
		write_frames(scratch_path(*state, "one"), &o);
		write_frames(scratch_path(*state, "two"), &o);
		a = scratch_load(*state, "one", &a_size);
		b = scratch_load(*state, "two", &b_size);
		assert_int_equal(a_size, b_size);
		assert_memory_equal(a, b, a_size);
		free(a);
		free(b);
	}
}

static void test_full_disk(void **state)
{
	struct ow_writer_options o = {.linktype = 1};
	struct ow_frame frame = {.data = (const uint8_t *)"abcd", .caplen = 4, .len = 4};
	struct ow_writer *writer;
	struct ow_error err = {""};

	(void)state;
	for (int gzip = 0; gzip < 2; gzip++) {
		o.gzip = gzip;
		assert_int_equal(ow_writer_open("/dev/full", &o, &writer, &err), 0);
		assert_int_equal(ow_writer_write(writer, &frame, &err), 0); /* buffered */
		assert_int_equal(ow_writer_close(writer, &err), -ENOSPC);
		assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");
	}
	o.gzip = false;
	assert_int_equal(ow_writer_open("/dev/full", &o, &writer, &err), 0);
	int r = 0;
	for (int i = 0; i < 100000 && r == 0; i++)
		r = ow_writer_write(writer, &frame, &err);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(ow_writer_write(writer, &frame, NULL), 0); /* buffered again; the failure is kept */
	assert_int_equal(ow_writer_close(writer, &err), -ENOSPC);
}

static void test_bad_path(void **state)
{
	struct ow_writer_options o = {.linktype = 1};
	struct ow_writer *writer = NULL;
	struct ow_error err = {""};

	(void)state;
	assert_int_equal(ow_writer_open("/nonexistent/x.pcap", &o, &writer, &err), -ENOENT);
	assert_string_equal(err.text, "/nonexistent/x.pcap: cannot open for writing: No such file or directory");
	assert_null(writer);
	assert_int_equal(ow_writer_open("/", &o, &writer, &err), -EISDIR);
}

static void test_bad_options(void **state)
{
	static const struct ow_writer_options bad[] = {
		{.snaplen = UINT32_MAX},
		{.format = OW_FILE_PCAPNG, .tsresol = 30},
		{.format = OW_FILE_PCAPNG, .tsresol = 0xff},
		{.format = OW_FILE_PCAPNG, .tsresol = 0x109},
		{.format = OW_FILE_PCAPNG, .tsresol = -1},
		{.format = OW_FILE_PCAPNG, .interfaces = UINT32_MAX},
	};
	struct ow_writer *writer;
	struct ow_error err;
	struct stat st;
	const char *path = scratch_path(*state, "bad");

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_writer_open(path, &bad[i], &writer, &err), -EINVAL);
	assert_int_equal(stat(path, &st), -1);
}

static void test_times_out_of_range(void **state)
{
	const char *path = scratch_path(*state, "times");
	static const struct {
		struct ow_writer_options options;
		int64_t time_ns;
		int result;
	} cases[] = {
		{{.format = OW_FILE_PCAP}, -1, -ERANGE},
		{{.format = OW_FILE_PCAP}, 0, 0},
		{{.format = OW_FILE_PCAP}, UINT32_MAX * OW_NS_PER_S, 0},
		{{.format = OW_FILE_PCAP}, (UINT32_MAX + INT64_C(1)) * OW_NS_PER_S, -ERANGE},
		{{.format = OW_FILE_PCAPNG}, -1, -ERANGE},
		{{.format = OW_FILE_PCAPNG, .tsoffset_s = -1}, -1, 0},
		{{.format = OW_FILE_PCAPNG, .tsoffset_s = 1}, 1, -ERANGE},
		{{.format = OW_FILE_PCAPNG, .tsresol = 18}, 18 * OW_NS_PER_S, 0},
		{{.format = OW_FILE_PCAPNG, .tsresol = 18}, 19 * OW_NS_PER_S, -ERANGE},
		{{.format = OW_FILE_PCAPNG, .tsresol = 0x80 | 63}, 2 * OW_NS_PER_S, -ERANGE},
		{{.format = OW_FILE_PCAPNG, .tsoffset_s = INT64_MAX}, 0, -ERANGE},
		{{.format = OW_FILE_PCAPNG, .tsoffset_s = INT64_MIN}, 0, -ERANGE},
		{{.format = OW_FILE_PCAPNG}, INT64_MAX, 0},
		{{.format = OW_FILE_PCAPNG}, INT64_MIN, -ERANGE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_frame frame = {.time_ns = cases[i].time_ns, .len = 1};
		struct ow_writer *writer;
		struct ow_error err;
		assert_int_equal(ow_writer_open(path, &cases[i].options, &writer, &err), 0);
		assert_int_equal(ow_writer_write(writer, &frame, &err), cases[i].result);
		assert_int_equal(ow_writer_close(writer, &err), 0);
	}
}

static void test_abort(void **state)
{
	struct ow_writer_options o = {.linktype = 1};
	struct ow_writer *writer;
	struct stat st;
	const char *path = scratch_path(*state, "abort");

	assert_int_equal(ow_writer_open(path, &o, &writer, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	ow_writer_abort(writer);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(ow_writer_open("/dev/null", &o, &writer, NULL), 0);
	ow_writer_abort(writer);
	assert_int_equal(stat("/dev/null", &st), 0);
	ow_writer_abort(NULL);
	assert_int_equal(ow_writer_close(NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pcap, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_pcapng, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_same_bytes, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_bad_path),
		cmocka_unit_test_setup_teardown(test_bad_options, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_times_out_of_range, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_abort, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
