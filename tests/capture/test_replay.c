/* SPDX-License-Identifier: Apache-2.0 */
/* A capture file as a live source: all frames, in their own time, with a watermark that is never wrong. */
#include "base/clock.h"
#include "base/time.h"
#include "capture/iface/iface.h"
#include "craft.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define FRAMES   600
#define FIRST_S  1000
#define STEP_US  700
#define SLACK_NS (2 * OW_NS_PER_MS)

/* Frames 700 us apart, each tenth of them 300 us early, out of order. */
static int64_t stamp_us(uint32_t i)
{
	return (int64_t)i * STEP_US - (i % 10 == 9 ? STEP_US + 300 : 0);
}

static const char *save(struct scratch *scratch, uint32_t frames)
{
	struct craft *craft = craft_new(false);
	craft_pcap(craft, 0xa1b2c3d4, 65535, 1);
	for (uint32_t i = 0; i < frames; i++)
		craft_record(craft, FIRST_S, (uint32_t)stamp_us(i), 60 + i % 100, 60 + i % 100);
	const char *path = scratch_save(scratch, "replay.pcap", craft->bytes, craft->size);
	free(craft);
	return path;
}

static struct ow_iface *open_file(const struct ow_iface_options *options)
{
	struct ow_iface *live = NULL;
	struct ow_error err = {""};
	if (ow_iface_open(options, &live, &err) < 0)
		fail_msg("%s", err.text);
	return live;
}

/* Reads all; returns the number of frames. No frame comes before its time, none below the watermark. */
static uint32_t read_all_of(struct ow_iface *live, double speed, uint32_t caplen_max)
{
	struct ow_iface_frame batch[16];
	struct ow_error err = {""};
	int64_t passed = INT64_MIN;
	uint32_t seen = 0;
	int n;
	while ((n = ow_iface_read(live, 5, batch, 16, &err)) >= 0) {
		int64_t now = ow_iface_now_ns(live);
		for (int i = 0; i < n; i++, seen++) {
			const struct ow_frame *frame = &batch[i].frame;
			assert_true(frame->time_ns == FIRST_S * OW_NS_PER_S + stamp_us(seen) * OW_NS_PER_US);
			assert_int_equal(frame->number, seen + 1);
			assert_int_equal(frame->len, 60 + seen % 100);
			assert_int_equal(frame->caplen, frame->len < caplen_max ? frame->len : caplen_max);
			assert_int_equal(batch[i].heading, OW_HEADING_UNKNOWN);
			assert_int_equal(batch[i].stamped_by, OW_STAMPED_BY_FILE);
			assert_int_equal(batch[i].gso, OW_GSO_NONE);
			assert_true(frame->time_ns >= passed);
			assert_true(speed == 0 || frame->time_ns <= now);
		}
		assert_true(ow_iface_passed_ns(live) >= passed);
		passed = ow_iface_passed_ns(live);
		assert_true(passed <= ow_iface_now_ns(live));
	}
	assert_int_equal(n, -ENODATA);
	assert_string_equal(err.text, "");
	assert_true(ow_iface_passed_ns(live) == INT64_MAX);
	assert_int_equal(ow_iface_read(live, 5, batch, 16, &err), -ENODATA);
	return seen;
}

static void all_frames_at_any_speed(void **state)
{
	static const double speeds[] = {0, 1, 8};
	const char *path = save(*state, FRAMES);
	for (int i = 0; i < 3; i++) {
		struct ow_iface_options options = {
			.kind = i ? OW_IFACE_AUTO : OW_IFACE_FILE, .name = path, .speed = speeds[i], .snaplen = 80};
		struct ow_iface *live = open_file(&options);
		struct ow_iface_counts counts;
		int64_t start = ow_clock_steady_ns();
		assert_string_equal(ow_iface_kind_name(live), "file");
		assert_int_equal(ow_iface_linktype(live), 1);
		assert_int_equal(read_all_of(live, speeds[i], 80), FRAMES);
		int64_t took = ow_clock_steady_ns() - start;
		double whole = (double)((FRAMES - 2) * STEP_US * OW_NS_PER_US);
		/* Not earlier than it may; how much later depends on the machine. */
		if (speeds[i] > 0)
			assert_true((double)took >= whole / speeds[i] - 1e6);
		ow_iface_counts(live, &counts);
		assert_int_equal(counts.frames, FRAMES);
		assert_int_equal(counts.dropped, 0);
		assert_int_equal(counts.stamped[OW_STAMPED_BY_FILE], FRAMES);
		print_message("speed %g: %.3f s of %.3f s\n", speeds[i], (double)took / 1e9, whole / 1e9);
		ow_iface_close(live);
	}
}

/* While nothing is due, the watermark follows the replay up to the frame that comes next. */
static void watermark_follows_the_replay(void **state)
{
	struct craft *craft = craft_new(false);
	craft_pcap(craft, 0xa1b2c3d4, 65535, 1);
	craft_record(craft, FIRST_S, 0, 60, 60);
	craft_record(craft, FIRST_S, 200000, 60, 60);
	const char *path = scratch_save(*state, "gap.pcap", craft->bytes, craft->size);
	free(craft);
	struct ow_iface *live = open_file(&(struct ow_iface_options){.kind = OW_IFACE_FILE, .name = path, .speed = 1});
	struct ow_iface_frame frame;
	int64_t second = FIRST_S * OW_NS_PER_S + 200 * OW_NS_PER_MS;
	assert_int_equal(ow_iface_read(live, 1000, &frame, 1, NULL), 1);
	for (;;) {
		int64_t start = ow_iface_now_ns(live);
		int n = ow_iface_read(live, 3, &frame, 1, NULL);
		if (n == 1)
			break;
		assert_int_equal(n, 0);
		int64_t lowest = start < second ? start : second;
		assert_true(ow_iface_passed_ns(live) >= lowest - SLACK_NS);
		assert_true(ow_iface_passed_ns(live) <= second);
	}
	assert_true(frame.frame.time_ns == second);
	ow_iface_close(live);
}

static void *interrupt_soon(void *live)
{
	usleep(20000);
	ow_iface_interrupt(live);
	return NULL;
}

static void interrupt_ends_a_read(void **state)
{
	struct craft *craft = craft_new(false);
	craft_pcap(craft, 0xa1b2c3d4, 65535, 1);
	craft_record(craft, FIRST_S, 0, 60, 60);
	craft_record(craft, FIRST_S + 100000, 0, 60, 60);
	const char *path = scratch_save(*state, "long.pcap", craft->bytes, craft->size);
	free(craft);
	struct ow_iface *live = open_file(&(struct ow_iface_options){.name = path, .speed = 1});
	struct ow_iface_frame frame;
	pthread_t thread;
	assert_int_equal(ow_iface_read(live, -1, &frame, 1, NULL), 1);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, live), 0);
	assert_int_equal(ow_iface_read(live, -1, &frame, 1, NULL), -EINTR);
	pthread_join(thread, NULL);
	ow_iface_close(live);
}

/* A file with gigabytes of frames without a time: zeros are such, and take no place on disk. */
static void interrupt_ends_a_search(void **state)
{
	struct craft *craft = craft_new(false);
	craft_pcap(craft, 0xa1b2c3d4, 65535, 1);
	craft_record(craft, FIRST_S, 0, 60, 60);
	const char *path = scratch_save(*state, "zeros.pcap", craft->bytes, craft->size);
	free(craft);
	assert_int_equal(truncate(path, (off_t)1 << 38), 0);
	struct ow_iface *live = open_file(&(struct ow_iface_options){.name = path, .speed = 0});
	struct ow_iface_frame frame;
	pthread_t thread;
	assert_int_equal(ow_iface_read(live, -1, &frame, 1, NULL), 1);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, live), 0);
	assert_int_equal(ow_iface_read(live, -1, &frame, 1, NULL), -EINTR);
	pthread_join(thread, NULL);
	ow_iface_close(live);
}

static void bad_files_are_told(void **state)
{
	struct ow_iface *live;
	struct ow_error err = {""};
	struct ow_iface_options options = {.kind = OW_IFACE_FILE, .name = scratch_path(*state, "none.pcap")};
	struct ow_iface_frame frame;
	assert_int_equal(ow_iface_open(&options, &live, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none.pcap"));
	options.name = scratch_save(*state, "text.pcap", "no capture", 10);
	assert_int_equal(ow_iface_open(&options, &live, &err), -EINVAL);
	options.name = save(*state, 3);
	options.speed = -1;
	assert_int_equal(ow_iface_open(&options, &live, &err), -EINVAL);
	/* Cut in a record: the whole ones come, and the end says why it is the end. */
	options.speed = 0;
	assert_int_equal(truncate(options.name, 24 + 2 * 16 + 60 + 61 + 5), 0);
	live = open_file(&options);
	assert_int_equal(ow_iface_read(live, 0, &frame, 1, &err), 1);
	assert_int_equal(ow_iface_read(live, 0, &frame, 1, &err), 1);
	assert_int_equal(ow_iface_read(live, 0, &frame, 1, &err), -ENODATA);
	assert_non_null(strstr(err.text, "replay.pcap"));
	ow_iface_close(live);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCRATCH(all_frames_at_any_speed), WITH_SCRATCH(watermark_follows_the_replay),
		WITH_SCRATCH(interrupt_ends_a_read),   WITH_SCRATCH(interrupt_ends_a_search),
		WITH_SCRATCH(bad_files_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
