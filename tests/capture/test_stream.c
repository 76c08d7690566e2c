/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that are still being written: what is known up to when, and what is not, because. */
#include "craft.h"
#include "pack.h"

#include "base/clock.h"
#include "base/time.h"
#include "capture/file/unpack_more.h"
#include "capture/iface/stream.h"
#include <errno.h>
#include <string.h>
#include <time.h>

#define S   INT64_C(1700000000)
#define LAG (300 * OW_NS_PER_MS)

/* A feed that does what the test says: bytes up to `limit`, then `result`, once; or those from `again` on without end. */
struct fake {
	struct ow_feed feed;
	struct craft *bytes;
	size_t at, limit, again;
	int result;
};

static int fake_read(struct ow_feed *feed, uint8_t *buffer, size_t size, struct ow_error *err)
{
	struct fake *f = (struct fake *)feed;
	if (f->again && f->at == f->limit)
		f->at = f->again;
	size_t n = f->limit - f->at < size ? f->limit - f->at : size;
	memcpy(buffer, f->bytes->bytes + f->at, n);
	f->at += n;
	(void)err;
	if (n)
		return (int)n;
	int result = f->result;
	f->result = 0;
	return result;
}

static int fake_fd(const struct ow_feed *feed)
{
	(void)feed;
	return -1;
}

static const char *fake_why(const struct ow_feed *feed)
{
	(void)feed;
	return "was tried";
}

static void fake_free(struct ow_feed *feed)
{
	free(((struct fake *)feed)->bytes);
	free(feed);
}

static struct fake *begin(bool waits, struct ow_iface **ret_live)
{
	static const struct ow_feed_ops ops = {fake_read, fake_fd, fake_why, fake_free};
	struct ow_error err;
	struct fake *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->feed = (struct ow_feed){.ops = &ops, .waits = waits};
	f->bytes = craft_new(false);
	craft_pcap(f->bytes, 0xa1b23c4d, 96, 1);
	assert_int_equal(ow_stream_open(&(struct ow_stream_options){"x", &f->feed, LAG}, ret_live, &err), 0);
	return f;
}

static void packet(struct fake *f, int64_t ms)
{
	craft_record(f->bytes, (uint32_t)(S + ms / 1000), (uint32_t)(ms % 1000 * OW_NS_PER_MS), 60, 60);
	f->limit = f->bytes->size;
}

static int read_frames(struct ow_iface *live, int64_t *ret_last_ms)
{
	struct ow_iface_frame frames[16];
	struct ow_error err = {""};
	int n, all = 0;
	while ((n = ow_iface_read(live, 1, frames, 16, &err)) > 0) {
		all += n;
		*ret_last_ms = frames[n - 1].frame.time_ns / OW_NS_PER_MS - S * 1000;
	}
	return n < 0 ? n : all;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int64_t passed_ms(const struct ow_iface *live)
{
	return ow_iface_passed_ns(live) / OW_NS_PER_MS - S * 1000;
}

/* Complete up to the last frame; half a record is not an error; after the lag time is given up. */
static void test_silence(void **state)
{
	struct ow_iface *live;
	struct ow_outage outage;
	int64_t last_ms = 0;
	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		struct fake *f = begin(waits, &live);
		packet(f, 100);
		packet(f, 110);
		f->limit -= 5;
		assert_int_equal(read_frames(live, &last_ms), 1);
		f->limit += 5;
		assert_int_equal(read_frames(live, &last_ms), 1);
		assert_int_equal(last_ms, 110);
		assert_int_equal(passed_ms(live), 108);
		assert_false(ow_iface_outage(live, &outage));
		sleep_ms(450);
		assert_int_equal(read_frames(live, &last_ms), 0);
		assert_true(passed_ms(live) > 110);
		assert_true(ow_iface_outage(live, &outage));
		assert_false(outage.over);
		assert_string_equal(outage.cause, "x was tried");
		assert_int_equal(outage.until_ns, ow_iface_passed_ns(live));
		/* A frame of the time that was given up is left out; a later one ends the outage. */
		packet(f, 111);
		assert_int_equal(read_frames(live, &last_ms), 0);
		packet(f, 1100);
		assert_int_equal(read_frames(live, &last_ms), 1);
		assert_true(ow_iface_outage(live, &outage));
		assert_true(outage.over);
		assert_true(outage.until_ns <= S * OW_NS_PER_S + 1100 * OW_NS_PER_MS);
		ow_iface_close(live);
	}
}

/* A connection that is cut: nothing is known from the last frame to the next, also if both were gathered before. */
static void test_cut(void **state)
{
	(void)state;
	for (int gathers = 0; gathers < 2; gathers++) {
		struct ow_iface *live;
		struct ow_outage outage;
		struct ow_error err;
		int64_t last_ms = 0;
		struct fake *f = begin(true, &live);
		packet(f, 100);
		if (gathers)
			assert_int_equal(ow_stream_gather(live, 1, &err), 1);
		else
			assert_int_equal(read_frames(live, &last_ms), 1);
		f->result = OW_FEED_CUT;
		if (gathers)
			assert_int_equal(ow_stream_gather(live, 1, &err), 1);
		else
			assert_int_equal(read_frames(live, &last_ms), 0);
		craft_pcap(f->bytes, 0xa1b23c4d, 96, 1);
		packet(f, 130);
		packet(f, 131);
		if (gathers)
			assert_int_equal(ow_stream_gather(live, 1, &err), 3);
		assert_int_equal(read_frames(live, &last_ms), gathers ? 3 : 2);
		assert_true(ow_iface_outage(live, &outage));
		assert_true(outage.over);
		assert_true(outage.from_ns <= S * OW_NS_PER_S + 100 * OW_NS_PER_MS);
		assert_int_equal(outage.until_ns, S * OW_NS_PER_S + 130 * OW_NS_PER_MS);
		ow_iface_close(live);
	}
}

/* What was dropped between frames is told with these, also if all were gathered before. */
static void test_drops(void **state)
{
	(void)state;
	for (int gathers = 0; gathers < 2; gathers++) {
		struct ow_iface *live;
		struct ow_iface_frame frame;
		struct ow_iface_counts counts;
		struct ow_error err;
		struct fake *f = begin(true, &live);
		f->bytes->size = 0;
		craft_section(f->bytes);
		craft_interface(f->bytes, 1, 96, 6);
		for (unsigned i = 0; i < 3; i++)
			craft_packet_after(f->bytes, 10, 0, (uint64_t)S * 1000000 + i * 10000, 60);
		f->limit = f->bytes->size;
		if (gathers)
			assert_int_equal(ow_stream_gather(live, 1, &err), 3);
		for (uint64_t i = 0; i <= 3; i++) {
			ow_iface_counts(live, &counts);
			assert_int_equal(counts.dropped, 10 * i);
			assert_int_equal(ow_iface_read(live, 1, &frame, 1, &err), i < 3);
		}
		ow_iface_close(live);
	}
}

/* A connection that comes back and is slower than it was before. */
static void test_back(void **state)
{
	struct ow_iface *live;
	struct ow_outage outage;
	int64_t last_ms = 0;
	(void)state;
	struct fake *f = begin(false, &live);
	packet(f, 100);
	assert_int_equal(read_frames(live, &last_ms), 1);
	f->result = OW_FEED_CUT;
	assert_int_equal(read_frames(live, &last_ms), 0);
	sleep_ms(150);
	assert_int_equal(read_frames(live, &last_ms), 0);
	craft_pcap(f->bytes, 0xa1b23c4d, 96, 1);
	packet(f, 200);
	assert_int_equal(read_frames(live, &last_ms), 1);
	assert_true(ow_iface_outage(live, &outage));
	assert_true(outage.over);
	assert_int_equal(outage.until_ns, S * OW_NS_PER_S + 200 * OW_NS_PER_MS);
	ow_iface_close(live);
}

/* The next file: nothing is missing, unless the one before ends within a record. */
static void test_next(void **state)
{
	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		struct ow_iface *live;
		struct ow_outage outage;
		int64_t last_ms = 0;
		struct fake *f = begin(true, &live);
		packet(f, 100);
		packet(f, 101);
		f->bytes->size -= (size_t)cut * 7;
		f->limit = f->bytes->size;
		assert_int_equal(read_frames(live, &last_ms), 2 - cut);
		f->result = OW_FEED_NEXT;
		craft_pcap(f->bytes, 0xa1b2c3d4, 96, 1);
		craft_record(f->bytes, (uint32_t)S, 110000, 60, 60);
		assert_int_equal(read_frames(live, &last_ms), 0);
		f->limit = f->bytes->size;
		assert_int_equal(read_frames(live, &last_ms), 1);
		assert_int_equal(last_ms, 110);
		assert_int_equal(ow_iface_outage(live, &outage), cut);
		if (cut)
			assert_string_equal(outage.cause, "x was cut off");
		ow_iface_close(live);
	}
}

/* The end, whole and within a record; frames out of order; a clock that was set. */
static void test_ends(void **state)
{
	struct ow_iface *live;
	struct ow_outage outage;
	int64_t last_ms = 0;
	(void)state;
	struct fake *f = begin(false, &live);
	packet(f, 100);
	f->result = OW_FEED_ENDED;
	assert_int_equal(read_frames(live, &last_ms), -ENODATA);
	assert_int_equal(ow_iface_passed_ns(live), S * OW_NS_PER_S + 100 * OW_NS_PER_MS + 1);
	ow_iface_close(live);

	f = begin(true, &live);
	packet(f, 500);
	assert_int_equal(read_frames(live, &last_ms), 1);
	packet(f, 300);
	assert_int_equal(read_frames(live, &last_ms), 0);
	assert_true(ow_iface_outage(live, &outage));
	assert_string_equal(outage.cause, "x was out of order");
	ow_iface_close(live);

	f = begin(false, &live);
	packet(f, 5000);
	packet(f, 3000);
	assert_int_equal(read_frames(live, &last_ms), -EIO);
	ow_iface_close(live);
}

/* Bytes without end that have no frame, or none that is used: the time and the request to end are looked at. */
static void test_endless(void **state)
{
	struct ow_iface *live;
	struct ow_iface_frame frames[16];
	struct ow_error err = {""};
	(void)state;
	for (int old = 0; old < 2; old++) {
		struct fake *f = begin(false, &live);
		packet(f, 500);
		assert_int_equal(ow_iface_read(live, 1, frames, 16, &err), 1);
		f->again = f->limit;
		packet(f, old ? 100 : -S * 1000);
		assert_int_equal(ow_iface_read(live, 1, frames, 16, &err), 0);
		ow_iface_close(live);
	}
	struct fake *f = begin(false, &live);
	f->again = f->limit = f->bytes->size;
	packet(f, -S * 1000);
	assert_int_equal(ow_stream_gather(live, 1, &err), 0);
	ow_iface_close(live);
}

/* While packed bytes wait to be unpacked there is no room for others, which is no end. */
static void test_packed(void **state)
{
	struct ow_iface *live;
	size_t first, second;
	(void)state;
	ow_unpack_more();
	struct fake *f = begin(false, &live);
	while (f->bytes->size < CRAFT_MAX - 100)
		craft_record(f->bytes, 0, 0, 60, 60);
	uint8_t *a = pack(f->bytes, OW_PACKING_LZ4, &first);
	f->bytes->size = 0;
	for (int64_t i = 0; i < 3000; i++)
		packet(f, i);
	uint8_t *b = pack(f->bytes, OW_PACKING_LZ4, &second);
	/* Metadata that the packed captures skip. */
	f->bytes->size = 0;
	memcpy(f->bytes->bytes, a, first);
	f->bytes->size = first;
	craft_32(f->bytes, 0x184d2a50);
	craft_32(f->bytes, 100000);
	craft_fill(f->bytes, 7, 100000);
	memcpy(f->bytes->bytes + f->bytes->size, b, second);
	f->limit = f->bytes->size + second;
	f->result = OW_FEED_ENDED;
	struct ow_iface_frame frames[16];
	struct ow_error err = {""};
	int n, all = 0;
	while ((n = ow_iface_read(live, 1, frames, 16, &err)) >= 0)
		all += n;
	assert_int_equal(n, -ENODATA);
	assert_string_equal(err.text, "");
	assert_int_equal(all, 3000);
	free(a);
	free(b);
	ow_iface_close(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence), cmocka_unit_test(test_cut),   cmocka_unit_test(test_back),
		cmocka_unit_test(test_next),    cmocka_unit_test(test_ends),  cmocka_unit_test(test_endless),
		cmocka_unit_test(test_packed),  cmocka_unit_test(test_drops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
