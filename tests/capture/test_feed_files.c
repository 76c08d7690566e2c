/* SPDX-License-Identifier: Apache-2.0 */
/* Files that grow, and what is known of one that was truncated and filled again before it was looked at. */
#include "craft.h"

#include "base/time.h"
#include "capture/iface/stream.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define S   INT64_C(1700000000)
#define LAG (10 * OW_NS_PER_S)
/* More than the feed remembers of what it has read. */
#define MANY 300

struct growing {
	int fd;
	struct craft *bytes; /* not written yet */
	struct ow_iface *live;
};

/* pattern: what is followed; the file that grows is x1.pcap. */
static struct growing begin(struct scratch *scratch, const char *pattern)
{
	struct ow_error err = {""};
	struct ow_feed *feed;
	const char *path = scratch_path(scratch, "x1.pcap");
	struct growing g = {.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), .bytes = craft_new(false)};
	assert_true(g.fd >= 0);
	craft_pcap(g.bytes, 0xa1b23c4d, 65535, 1);
	assert_int_equal(ow_feed_open_files(scratch_path(scratch, pattern), &feed, &err), 0);
	assert_int_equal(ow_stream_open(&(struct ow_stream_options){"x", feed, LAG}, &g.live, &err), 0);
	return g;
}

static void end(struct growing *g)
{
	ow_iface_close(g->live);
	free(g->bytes);
	close(g->fd);
}

static void packets(struct growing *g, int64_t first_ms, int64_t last_ms, uint32_t size)
{
	for (int64_t ms = first_ms; ms <= last_ms; ms++)
		craft_record(g->bytes, (uint32_t)(S + ms / 1000), (uint32_t)(ms % 1000 * OW_NS_PER_MS), size, size);
}

static void save(struct growing *g)
{
	assert_int_equal(write(g->fd, g->bytes->bytes, g->bytes->size), (ssize_t)g->bytes->size);
	g->bytes->size = 0;
}

/* As a writer that opens the file again. */
static void truncate_file(struct growing *g)
{
	assert_int_equal(ftruncate(g->fd, 0), 0);
	assert_int_equal(lseek(g->fd, 0, SEEK_SET), 0);
	craft_pcap(g->bytes, 0xa1b23c4d, 65535, 1);
}

/* Reads until it has seen a packet of that time; returns how many there were. Checks that each is the next one. */
static int read_until(struct growing *g, int64_t first_ms, int64_t last_ms)
{
	struct ow_iface_frame frames[16];
	struct ow_error err = {""};
	int64_t ms = first_ms;
	for (int tries = 0; tries < 1000 && ms <= last_ms; tries++) {
		int n = ow_iface_read(g->live, 20, frames, 16, &err);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(frames[i].frame.time_ns / OW_NS_PER_MS - S * 1000, ms++);
	}
	return (int)(ms - first_ms);
}

/* Long enough for the files to be listed twice; nothing is read. */
static void wait_for_looks(struct growing *g)
{
	struct ow_iface_frame frames[16];
	struct ow_error err = {""};
	for (int i = 0; i < 25; i++)
		assert_int_equal(ow_iface_read(g->live, 20, frames, 16, &err), 0);
}

/* In pieces of all sizes: nothing is missing, and nothing is taken for truncated. */
static void test_grows(void **state)
{
	struct growing g = begin(*state, "x1.pcap");
	struct ow_outage outage;
	static const uint32_t sizes[] = {60, 1, 1500, 65000, 60, 200};
	int64_t ms = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		packets(&g, ms, ms + 9, sizes[i]);
		save(&g);
		assert_int_equal(read_until(&g, ms, ms + 9), 10);
		ms += 10;
	}
	assert_false(ow_iface_outage(g.live, &outage));
	end(&g);
}

/*
 * It has more bytes than were read before it is looked at, or fewer. All packets have the same payload and size, so that a
 * record ends where reading was.
 */
static void test_truncated_unseen(void **state)
{
	for (int more = 0; more < 3; more++) {
		for (int large = 0; large < 2; large++) {
			struct growing g = begin(*state, "x1.pcap");
			struct ow_outage outage;
			uint32_t size = large ? 9000 : 60;
			int64_t last_ms = 1000 + (more ? MANY + more : MANY / 2);
			packets(&g, 0, MANY - 1, size);
			save(&g);
			assert_int_equal(read_until(&g, 0, MANY - 1), MANY);
			packets(&g, MANY, MANY + 4, size);
			save(&g);
			truncate_file(&g);
			packets(&g, 1000, last_ms, size);
			save(&g);
			assert_int_equal(read_until(&g, 1000, last_ms), (int)(last_ms - 999));
			assert_true(ow_iface_outage(g.live, &outage));
			assert_true(outage.over);
			assert_string_equal(outage.cause, "x was truncated");
			assert_true(outage.from_ns <= S * OW_NS_PER_S + (MANY - 1) * OW_NS_PER_MS);
			assert_int_equal(outage.until_ns, (S + 1) * OW_NS_PER_S);
			end(&g);
		}
	}
}

/* As many bytes as were read, and no more for now. */
static void test_same_size(void **state)
{
	struct growing g = begin(*state, "x1.pcap");
	struct ow_outage outage;
	packets(&g, 0, 9, 60);
	save(&g);
	assert_int_equal(read_until(&g, 0, 9), 10);
	truncate_file(&g);
	packets(&g, 1000, 1009, 60);
	save(&g);
	assert_int_equal(read_until(&g, 1000, 1009), 10);
	assert_true(ow_iface_outage(g.live, &outage));
	assert_string_equal(outage.cause, "x was truncated");
	end(&g);
}

/* What is read after a file was truncated is read once: the file is not taken for a new one, nor when it is left and grows. */
static void test_truncated_read_once(void **state)
{
	struct growing g = begin(*state, "x?.pcap");
	struct ow_outage outage;
	packets(&g, 0, 9, 60);
	save(&g);
	assert_int_equal(read_until(&g, 0, 9), 10);
	truncate_file(&g);
	packets(&g, 1000, 1019, 60);
	save(&g);
	assert_int_equal(read_until(&g, 1000, 1019), 20);
	assert_true(ow_iface_outage(g.live, &outage));
	assert_string_equal(outage.cause, "x was truncated");
	wait_for_looks(&g);
	struct craft *next = craft_new(false);
	craft_pcap(next, 0xa1b23c4d, 65535, 1);
	craft_record(next, (uint32_t)S + 2, 0, 60, 60);
	scratch_save(*state, "x2.pcap", next->bytes, next->size);
	free(next);
	assert_int_equal(read_until(&g, 2000, 2000), 1);
	packets(&g, 1020, 1029, 60);
	save(&g);
	wait_for_looks(&g);
	assert_false(ow_iface_outage(g.live, &outage));
	end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grows, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_unseen, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_same_size, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_read_once, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
