/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that come in pieces of any size: the same frames as the reader of whole files finds, and where they end. */
#include "craft.h"
#include "pack.h"

#include "base/random.h"
#include "capture/file/capture_decoder.h"
#include "capture/file/unpack_more.h"
#include "capture/iface/feed.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct decoded {
	int result; /* of the last read */
	bool whole;
	size_t n;
	struct ow_frame frames[64];
	uint8_t first[64];
	char text[512];
	struct ow_capture_decoder_info info;
};

static void take(struct ow_capture_decoder *d, struct decoded *o)
{
	struct ow_frame frames[3];
	struct ow_error err = {""};
	while ((o->result = ow_capture_decoder_read(d, frames, 3, &err)) > 0) {
		for (int i = 0; i < o->result; i++) {
			o->first[o->n] = frames[i].caplen ? frames[i].data[0] : 0;
			o->frames[o->n++] = frames[i];
		}
	}
	if (o->result < 0)
		memcpy(o->text, err.text, sizeof o->text < sizeof err.text ? sizeof o->text : sizeof err.text);
}

/* piece: bytes at a time; 0 = random numbers of them. */
static struct decoded decode(const uint8_t *bytes, size_t size, size_t piece)
{
	struct ow_capture_decoder *d;
	struct decoded o = {0};
	struct ow_random random;
	struct ow_error err = {""};
	ow_random_seed(&random, 7);
	assert_int_equal(ow_capture_decoder_create("x", &d), 0);
	for (size_t at = 0, n; at < size && o.result >= 0; at += n) {
		size_t room;
		uint8_t *to = ow_capture_decoder_room(d, &room);
		n = piece ? piece : 1 + ow_random_below(&random, 200);
		n = n < size - at ? n : size - at;
		n = n < room ? n : room;
		assert_true(n > 0);
		memcpy(to, bytes + at, n);
		ow_capture_decoder_fill(d, n);
		take(d, &o);
	}
	o.whole = ow_capture_decoder_ends_whole(d, &err);
	if (!o.whole && o.result >= 0)
		memcpy(o.text, err.text, sizeof o.text < sizeof err.text ? sizeof o.text : sizeof err.text);
	o.info = *ow_capture_decoder_info(d);
	o.info.packing = strcmp(o.info.packing, "") ? "packed" : "";
	ow_capture_decoder_free(d);
	return o;
}

/* As the reader finds it, for pieces of one byte, of some, and all at once. */
static void check(struct scratch *scratch, const struct craft *c)
{
	struct outcome want = read_craft(scratch, c);
	size_t pieces[] = {1, 0, c->size};
	assert_int_equal(want.opened, 0);
	for (size_t p = 0; p < 3; p++) {
		struct decoded got = decode(c->bytes, c->size, pieces[p]);
		assert_int_equal(got.result, 0);
		assert_true(got.whole);
		assert_int_equal(got.n, want.n);
		assert_int_equal(got.info.linktype, want.info.linktype);
		assert_int_equal(got.info.dropped, want.info.dropped);
		for (size_t i = 0; i < want.n; i++) {
			assert_int_equal(got.frames[i].time_ns, want.frames[i].time_ns);
			assert_int_equal(got.frames[i].caplen, want.frames[i].caplen);
			assert_int_equal(got.frames[i].len, want.frames[i].len);
			assert_int_equal(got.frames[i].linktype, want.frames[i].linktype);
			assert_int_equal(got.first[i], want.first[i]);
		}
	}
}

static void refused(const struct craft *c, size_t frames, const char *text)
{
	struct decoded got = decode(c->bytes, c->size, 0);
	assert_true(got.result < 0);
	assert_int_equal(got.n, frames);
	assert_non_null(strstr(got.text, text));
}

static void test_pcap(void **state)
{
	static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d};
	for (int i = 0; i < 4; i++) {
		struct craft *c = craft_new(i & 1);
		craft_pcap(c, magics[i / 2], 96, 1);
		craft_record(c, 1700000000, 5, 60, 60);
		craft_record(c, 1700000001, 999999, 61, 1514);
		craft_record(c, 1700000002, 0, 0, 40);
		check(*state, c);
		free(c);
	}
}

static void test_pcapng(void **state)
{
	for (int big = 0; big < 2; big++) {
		struct craft *c = craft_new(big);
		craft_section(c);
		craft_interface(c, 1, 128, -1);
		craft_interface(c, 113, 0, 9);
		craft_interface(c, 1, 0, 0x80 | 20);
		craft_packet(c, 0, UINT64_C(1700000000000001), 60, 1000);
		craft_packet(c, 1, UINT64_C(1700000000000001234), 61, 61);
		craft_packet(c, 2, (UINT64_C(1700000000) << 20) + 12345, 62, 62);
		craft_statistics(c, 0, 3, 5);
		craft_statistics(c, 0, 4, 7);
		craft_packet_after(c, 4, 0, UINT64_C(1700000000000002), 33);
		craft_packet_after(c, 4, 0, UINT64_C(1700000000000003), 60);
		craft_section(c);
		craft_interface(c, 101, 0, 6);
		craft_packet(c, 0, UINT64_C(1700000000000002), 20, 20);
		/* The reader of whole files knows the first interface; here the last section counts. */
		struct outcome want = read_craft(*state, c);
		struct decoded got = decode(c->bytes, c->size, 1);
		assert_int_equal(got.n, want.n);
		assert_int_equal(got.info.dropped, want.info.dropped);
		assert_int_equal(got.info.dropped, 8);
		assert_int_equal(got.info.snaplen, 128);
		for (size_t i = 0; i < want.n; i++) {
			assert_int_equal(got.frames[i].time_ns, want.frames[i].time_ns);
			assert_int_equal(got.frames[i].linktype, want.frames[i].linktype);
			assert_int_equal(got.frames[i].len, want.frames[i].len);
		}
		free(c);
	}
}

static void test_snoop(void **state)
{
	struct craft *c = craft_new(true);
	craft_snoop(c, 2, 4);
	craft_snoop_record(c, 1700000000, 5, 61, 1514, 0);
	craft_snoop_record(c, 1700000001, 999999, 60, 60, 7);
	check(*state, c);
	c->size = 0;
	craft_snoop(c, 3, 4);
	refused(c, 0, "snoop version 3, but only version 2 can be read");
	c->size = 0;
	craft_snoop(c, 2, 4);
	craft_snoop_record(c, 1, 1, 60, 60, 0);
	c->bytes[16 + 4] = 1; /* captured bytes, more than the record has */
	refused(c, 0, "damaged at record 1 at offset 16 (its lengths contradict each other)");
	c->bytes[16 + 8] = 0xff;
	refused(c, 0, "damaged at record 1 at offset 16 (its length is not possible)");
	free(c);
}

/* ERF has no header: two records show it. Padding and metadata have no frame. */
static void test_erf(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t caplen, len;
	} records[] = {{27, 40, 0}, {2, 62, 64}, {48, 32, 0}, {20, 62, 1518}, {22, 24, 20}};
	struct craft *c = craft_new(true);
	for (unsigned i = 0; i < 5; i++)
		craft_erf_record(c, 1700000000, i << 28, records[i].type, i % 3, 3, records[i].caplen, records[i].len);
	check(*state, c);
	/* Whatever the end cuts off may still come. */
	for (size_t size = 0, whole = c->size; size < whole; size++) {
		struct decoded got = decode(c->bytes, size, 0);
		assert_int_equal(got.result, 0);
		assert_true(got.n < 3);
	}
	/* The years of the two must be possible, as in files. */
	c->size = 0;
	craft_erf_record(c, 1700000000, 0, 2, 0, 0, 62, 60);
	craft_erf_record(c, 1800000000, 0, 2, 0, 0, 62, 60);
	refused(c, 0, "no capture: it begins with 00 00 00 00");
	free(c);
}

/* Bytes that are missing are not damage: they may come; the end says where it is. */
static void test_cut(void **state)
{
	(void)state;
	for (int ng = 0; ng < 2; ng++) {
		struct craft *c = craft_new(false);
		size_t ends[4] = {0};
		if (ng) {
			craft_section(c);
			craft_interface(c, 1, 0, 9);
		} else {
			craft_pcap(c, 0xa1b23c4d, 0, 1);
		}
		ends[0] = c->size;
		for (int i = 1; i < 4; i++) {
			if (ng)
				craft_packet(c, 0, UINT64_C(1700000000000000000), 60, 60);
			else
				craft_record(c, 1700000000, 0, 60, 60);
			ends[i] = c->size;
		}
		for (size_t size = 0; size < c->size; size++) {
			struct decoded got = decode(c->bytes, size, 0);
			size_t records = 0;
			while (records < 3 && ends[records + 1] <= size)
				records++;
			assert_int_equal(got.result, 0);
			assert_int_equal(got.n, records);
			assert_int_equal(got.whole, size == ends[records] || (ng && size == 28));
			assert_int_equal(*got.text == 0, got.whole);
		}
		free(c);
	}
}

static void test_damage(void **state)
{
	struct craft *c = craft_new(false);
	(void)state;
	memcpy(c->bytes, "Welcome to this host", 20);
	c->size = 20;
	refused(c, 0, "no capture: it begins with 'Welcome to this host'");
	/* It need not be long for that, nor end. */
	c->size = 3;
	refused(c, 0, "no capture: it begins with 57 65 6c");
	memcpy(c->bytes, "#", c->size = 1);
	refused(c, 0, "no capture: it begins with 23");
	c->size = 20;
	craft_32(c, 0);
	memcpy(c->bytes, "\x34\xcd\xb2\xa1", 4);
	refused(c, 0, "this variant of pcap cannot be read while it is written");
	c->size = 0;
	craft_pcap(c, 0xa1b2c3d4, 0, 1);
	craft_record(c, 1, 0, 60, 60);
	craft_32(c, 1);
	craft_32(c, 1);
	craft_32(c, 0x7fffffff);
	craft_32(c, 1);
	refused(c, 1, "damaged at record 2 at offset 100 (its length is not possible)");
	c->size = 0;
	craft_section(c);
	craft_packet(c, 0, 1, 60, 60);
	refused(c, 0, "interface was not described");
	c->size = 0;
	craft_section(c);
	craft_interface(c, 1, 0, 0x80 | 70);
	refused(c, 0, "times are not possible");
	free(c);
}

/* Random damage: never more than the bytes that are there, and never a crash (sanitizers). */
static void test_anything(void **state)
{
	struct ow_random random;
	struct craft *c = craft_new(false);
	(void)state;
	ow_random_seed(&random, 1);
	for (int i = 0; i < 6000; i++) {
		c->size = 0;
		c->big_endian = i % 4 == 0 || i % 4 == 2;
		if (i % 4 == 2) {
			craft_snoop(c, 2, 4);
			craft_snoop_record(c, 1700000000, 5, 60, 60, 0);
		} else if (i % 4 == 0) {
			for (unsigned k = 0; k < 3; k++)
				craft_erf_record(c, 1700000000, k, 2, k, 0, 62, 60);
		} else if (i % 4 == 1) {
			craft_section(c);
			craft_interface(c, 1, 0, 9);
			craft_packet(c, 0, 1, 60, 60);
			craft_statistics(c, 0, 1, 1);
		} else {
			craft_pcap(c, 0xa1b2c3d4, 0, 1);
			craft_record(c, 1, 0, 60, 60);
		}
		for (int k = 0; k < 4; k++)
			c->bytes[ow_random_below(&random, c->size)] = (uint8_t)ow_random_below(&random, 256);
		struct decoded got = decode(c->bytes, c->size, 0);
		assert_true(got.n <= 3);
	}
	free(c);
}

/* Compressed, with every kind of piece, and of two members. */
static void test_packed(void **state)
{
	struct craft *first = craft_new(false), *second = craft_new(false);
	(void)state;
	ow_unpack_more();
	craft_pcap(first, 0xa1b23c4d, 0, 1);
	for (uint32_t i = 0; i < 40; i++)
		craft_record(i < 20 ? first : second, 1700000000 + i, 7, 60 + i, 60 + i);
	for (int packing = OW_PACKING_GZIP; packing < OW_PACKINGS; packing++) {
		size_t size, more;
		uint8_t *a = pack(first, packing, &size), *b = pack(second, packing, &more);
		a = realloc(a, size + more);
		assert_non_null(a);
		memcpy(a + size, b, more);
		for (size_t piece = 0; piece < 3; piece++) {
			struct decoded got = decode(a, size + more, piece == 2 ? size + more : piece);
			assert_int_equal(got.result, 0);
			assert_int_equal(got.n, 40);
			assert_true(got.whole);
			assert_int_equal(got.frames[39].time_ns, INT64_C(1700000039000000007));
		}
		struct decoded cut = decode(a, size + more - 3, 0);
		assert_int_equal(cut.result, 0);
		assert_false(cut.whole);
		free(a);
		free(b);
	}
	free(first);
	free(second);
}

static void splits(const char *command, ...)
{
	char **words;
	struct ow_error err;
	va_list args;
	size_t i = 0;
	assert_int_equal(ow_feed_split(command, &words, &err), 0);
	va_start(args, command);
	for (const char *word; (word = va_arg(args, const char *)); i++)
		assert_string_equal(words[i], word);
	va_end(args);
	assert_null(words[i]);
	free(words);
}

static void test_words(void **state)
{
	char **words;
	struct ow_error err;
	(void)state;
	splits("ssh a tcpdump -w -", "ssh", "a", "tcpdump", "-w", "-", NULL);
	splits("  a\t'b c'  \"d 'e\" f\\ g '' h\"\"i ", "a", "b c", "d 'e", "f g", "", "hi", NULL);
	splits("sh -c 'a | b > $c'", "sh", "-c", "a | b > $c", NULL);
	splits("a \"b\\\"c\\d\" \\|", "a", "b\"c\\d", "|", NULL);
	static const char *const wrong[] = {"",      "  ",      "a 'b",     "a \"b", "a | b",
	                                    "a > b", "a $HOME", "a \"$b\"", "a *",   "a; b"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(ow_feed_split(wrong[i], &words, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pcap, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_pcapng, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_snoop, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_erf, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_anything),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
