/* SPDX-License-Identifier: Apache-2.0 */
/* Files of epochs: sums of any time against naive ones, damage at every byte, kill -9 of a writer, refusals. */
#include "../effort.h"
#include "base/hash.h"
#include "base/random.h"
#include "flows/epochs_private.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define BEGIN    INT64_C(1700000040000000000) /* a full minute */
#define MINUTE   INT64_C(60000000000)
#define PER      50 /* packets of an epoch */
#define FLOWS    20
#define ID(e, i) ow_mix64((uint64_t)(e)*1000 + (i) + 1)

static char folder[] = "/tmp/ow-epochs-XXXXXX", path[64], other_path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/a.epochs", folder);
	snprintf(other_path, sizeof other_path, "%s/b.epochs", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(other_path);
	return rmdir(folder);
}

static struct ow_epoch_info make_info(void)
{
	struct ow_epoch_info info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                             .level = OW_LEVEL_IP,
	                             .id_bytes = 64,
	                             .interval_ns = MINUTE,
	                             .counts = true};
	struct ow_colate_plan plan;
	ow_colate_plan_defaults(&plan);
	plan.counters = 30;
	assert_int_equal(ow_colate_plan_params(&plan, &info.params, NULL), 0);
	return info;
}

/* Epoch number n: PER packets of its minute. */
static void fill(const struct ow_epoch_info *info, unsigned n, struct ow_epoch *epoch)
{
	if (ow_epoch_init(info, OW_FLOW_COUNTS_MAX, epoch, NULL) < 0)
		abort();
	for (unsigned i = 0; i < PER; i++) {
		const struct ow_flow_key key = {.version = 4, .proto = 6, .sport = (uint16_t)(ID(n, i) % FLOWS)};
		const struct ow_flow_key *keys = &key;
		const struct ow_flow_sighting stamp = {ow_flow_hash(info->params.seed, &key), ID(n, i),
		                                       BEGIN + n * MINUTE + i * 1000};
		ow_colate_add(epoch->colate, &stamp, 1);
		if (epoch->counts)
			ow_flow_counts_add(epoch->counts, &stamp, &keys, 1);
	}
	epoch->epochs = 1;
	epoch->begin_ns = BEGIN + n * MINUTE;
	epoch->end_ns = epoch->begin_ns + MINUTE;
}

static struct ow_epochs_writer *create(const struct ow_epoch_info *info, bool append)
{
	struct ow_epochs_writer *writer = NULL;
	struct ow_error err;
	if (ow_epochs_create(path, info, append, &writer, &err) < 0)
		fail_msg("%s", err.text);
	return writer;
}

static void append(struct ow_epochs_writer *writer, const struct ow_epoch_info *info, unsigned from, unsigned to)
{
	struct ow_error err;
	for (unsigned n = from; n < to; n++) {
		struct ow_epoch epoch;
		struct ow_epoch_cost cost;
		fill(info, n, &epoch);
		if (ow_epochs_append(writer, &epoch, &cost, &err) < 0)
			fail_msg("%s", err.text);
		assert_true(cost.counter_bytes > 0 && cost.count_bytes > 0);
		ow_epoch_done(&epoch);
	}
}

static struct ow_epochs *open_file(void)
{
	struct ow_epochs *epochs;
	struct ow_error err;
	if (ow_epochs_open(path, &epochs, &err) < 0)
		fail_msg("%s", err.text);
	return epochs;
}

static void add_counts(struct ow_flow_counts *sum, const struct ow_flow_counts *part)
{
	for (size_t i = 0; i < ow_flow_counts_flows(part); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(part, i, &count);
		assert_int_equal(ow_flow_counts_put(sum, &count, ow_flow_counts_in_partials(part, i), NULL), 0);
	}
}

/* Epochs from .. to - 1, and nothing else. */
static void check_sum(const struct ow_epochs *epochs, int64_t since_ns, int64_t until_ns, unsigned from, unsigned to)
{
	struct ow_epoch sum, expected, part;
	struct ow_error err;
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	if (ow_epochs_sum(epochs, since_ns, until_ns, OW_FLOW_COUNTS_MAX, &sum, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sum.epochs, to - from);
	assert_int_equal(ow_epoch_init(info, OW_FLOW_COUNTS_MAX, &expected, NULL), 0);
	for (unsigned n = from; n < to; n++) {
		fill(info, n, &part);
		assert_int_equal(ow_colate_merge(expected.colate, part.colate, NULL), 0);
		add_counts(expected.counts, part.counts);
		ow_epoch_done(&part);
	}
	assert_int_equal(ow_colate_packets(sum.colate), (to - from) * PER);
	assert_memory_equal(ow_colate_counters(sum.colate, 0), ow_colate_counters(expected.colate, 0),
	                    8 * info->params.layer[0].counters);
	assert_memory_equal(ow_colate_checks(sum.colate, 0), ow_colate_checks(expected.colate, 0),
	                    4 * info->params.layer[0].counters);
	assert_int_equal(ow_flow_counts_flows(sum.counts), ow_flow_counts_flows(expected.counts));
	for (size_t i = 0; i < ow_flow_counts_flows(expected.counts); i++) {
		struct ow_flow_count a, b;
		ow_flow_counts_get(expected.counts, i, &a);
		ow_flow_counts_get(sum.counts, (size_t)ow_flow_counts_find(sum.counts, a.flow), &b);
		assert_int_equal(a.packets, b.packets);
	}
	if (to > from) {
		assert_int_equal(sum.begin_ns, BEGIN + from * MINUTE);
		assert_int_equal(sum.end_ns, BEGIN + to * MINUTE);
	}
	ow_epoch_done(&sum);
	ow_epoch_done(&expected);
}

static void test_sums(void **state)
{
	(void)state;
	enum { EPOCHS = 300 };
	struct ow_epoch_info info = make_info();
	struct ow_epochs_writer *writer = create(&info, false);
	append(writer, &info, 0, 100);
	ow_epochs_writer_free(writer);
	writer = create(&info, true); /* another run */
	append(writer, &info, 100, EPOCHS);
	ow_epochs_writer_free(writer);
	struct ow_epochs *epochs = open_file();
	struct ow_random random;
	ow_random_seed(&random, 9);
	assert_int_equal(ow_epochs_count(epochs), EPOCHS);
	assert_null(ow_epochs_damage(epochs));
	assert_int_equal(ow_epochs_span(epochs, 7).begin_ns, BEGIN + 7 * MINUTE);
	assert_int_equal(ow_epochs_span(epochs, 7).packets, PER);
	check_sum(epochs, INT64_MIN, INT64_MAX, 0, EPOCHS);
	check_sum(epochs, BEGIN, BEGIN + 256 * MINUTE, 0, 256);
	check_sum(epochs, BEGIN - MINUTE, BEGIN, 0, 0);
	check_sum(epochs, BEGIN + MINUTE / 2, BEGIN + MINUTE / 2 + 1, 0, 1);
	for (unsigned i = 0; i < 30; i++) {
		unsigned from = (unsigned)ow_random_below(&random, EPOCHS);
		unsigned to = from + (unsigned)ow_random_below(&random, EPOCHS + 1 - from);
		check_sum(epochs, BEGIN + from * MINUTE, BEGIN + to * MINUTE, from, to);
	}
	ow_epochs_close(epochs);
}

static off_t size_of(const char *name)
{
	struct stat status;
	assert_int_equal(stat(name, &status), 0);
	return status.st_size;
}

/* Cut anywhere, all whole epochs are there; and a writer goes on from there. */
static void test_cut(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info();
	struct ow_epochs_writer *writer = create(&info, false);
	off_t header = size_of(path);
	append(writer, &info, 0, 18);
	ow_epochs_writer_free(writer);
	off_t whole = size_of(path);
	unsigned before = 18;
	for (off_t size = whole; size >= header; size -= RUN_STEP * (1 + size % 97)) {
		assert_int_equal(truncate(path, size), 0);
		struct ow_epochs *epochs = open_file();
		unsigned count = (unsigned)ow_epochs_count(epochs);
		assert_true(count <= before && count + 2 > before);
		check_sum(epochs, INT64_MIN, INT64_MAX, 0, count);
		before = count;
		ow_epochs_close(epochs);
	}
	assert_int_equal(truncate(path, header + 700), 0);
	struct ow_epochs *epochs = open_file();
	unsigned left = (unsigned)ow_epochs_count(epochs);
	assert_non_null(strstr(ow_epochs_damage(epochs), "offset"));
	ow_epochs_close(epochs);
	writer = create(&info, true);
	append(writer, &info, left, 18);
	ow_epochs_writer_free(writer);
	assert_int_equal(size_of(path), whole);
	epochs = open_file();
	assert_null(ow_epochs_damage(epochs));
	check_sum(epochs, INT64_MIN, INT64_MAX, 0, 18);
	ow_epochs_close(epochs);
}

/* A bit that is wrong is never a number that is wrong. */
static void test_damage(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info();
	struct ow_epochs_writer *writer = create(&info, false);
	append(writer, &info, 0, 3);
	ow_epochs_writer_free(writer);
	off_t size = size_of(path);
	int fd = open(path, O_RDWR);
	for (off_t at = 0; at < size; at += (off_t)3 * RUN_STEP) {
		uint8_t byte;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		struct ow_epochs *epochs = NULL;
		struct ow_error err = {""};
		if (ow_epochs_open(path, &epochs, &err) == 0) {
			struct ow_epoch sum;
			if (ow_epochs_sum(epochs, INT64_MIN, INT64_MAX, OW_FLOW_COUNTS_MAX, &sum, &err) == 0) {
				assert_non_null(ow_epochs_damage(epochs));
				assert_true(sum.epochs < 3);
				ow_epoch_done(&sum);
				check_sum(epochs, INT64_MIN, INT64_MAX, 0, (unsigned)ow_epochs_count(epochs));
			} else {
				assert_non_null(strstr(err.text, path));
			}
			ow_epochs_close(epochs);
		} else {
			assert_non_null(strstr(err.text, path));
		}
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

/* Times beyond those of frames, with the right checksums: differences of two would overflow. */
static void test_times(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info();
	static const int64_t spans[][2] = {{INT64_MIN, 0}, {0, INT64_MAX}, {INT64_MIN, INT64_MAX}};
	for (unsigned i = 0; i < 3; i++) {
		struct ow_epochs_writer *writer = create(&info, false);
		append(writer, &info, 0, 1);
		ow_epochs_writer_free(writer);
		struct ow_epochs_frame frame = {.kind = OW_EPOCHS_EPOCH, .from = 1, .epochs = 1};
		frame.begin_ns = spans[i][0];
		frame.end_ns = spans[i][1];
		frame.check = ow_epochs_check(NULL, 0);
		uint8_t header[OW_EPOCHS_HEADER];
		ow_epochs_frame_put(&frame, header);
		int fd = open(path, O_RDWR | O_APPEND);
		assert_int_equal(write(fd, header, sizeof header), sizeof header);
		close(fd);
		struct ow_epochs *epochs = open_file();
		assert_int_equal(ow_epochs_count(epochs), 1);
		assert_non_null(ow_epochs_damage(epochs));
		ow_epochs_close(epochs);
	}
}

/* A writer is killed at random moments; nothing that it said was written is missing, and the next one goes on. */
static void test_kill(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info();
	struct ow_random random;
	ow_random_seed(&random, 77);
	ow_epochs_writer_free(create(&info, false));
	for (unsigned round = 0; round < 20; round++) {
		int told[2];
		assert_int_equal(pipe(told), 0);
		struct ow_epochs *epochs = open_file();
		unsigned from = (unsigned)ow_epochs_count(epochs);
		ow_epochs_close(epochs);
		pid_t child = fork();
		if (child == 0) {
			struct ow_epochs_writer *writer = NULL;
			if (ow_epochs_create(path, &info, true, &writer, NULL) < 0)
				_exit(1);
			for (unsigned n = from;; n++) {
				struct ow_epoch epoch;
				fill(&info, n, &epoch);
				if (ow_epochs_append(writer, &epoch, NULL, NULL) < 0 ||
				    write(told[1], &n, sizeof n) != sizeof n)
					_exit(1);
				ow_epoch_done(&epoch);
			}
		}
		close(told[1]);
		unsigned last = from;
		assert_int_equal(read(told[0], &last, sizeof last), sizeof last); /* it is at work */
		const struct timespec wait = {.tv_nsec = (long)ow_random_below(&random, 20000000)};
		nanosleep(&wait, NULL);
		kill(child, SIGKILL);
		int status;
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		while (read(told[0], &last, sizeof last) == sizeof last)
			;
		close(told[0]);
		epochs = open_file();
		unsigned count = (unsigned)ow_epochs_count(epochs);
		assert_true(count == last + 1 || count == last + 2);
		check_sum(epochs, INT64_MIN, INT64_MAX, 0, count);
		ow_epochs_close(epochs);
	}
}

static void test_refusals(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info(), other = info;
	struct ow_epochs_writer *writer = create(&info, false), *second = NULL;
	struct ow_error err;
	append(writer, &info, 0, 1);
	assert_int_equal(ow_epochs_create(path, &info, true, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another process"));
	ow_epochs_writer_free(writer);
	other.params.seed = 99;
	assert_int_equal(ow_epochs_create(path, &other, true, &second, &err), -EINVAL);
	assert_non_null(strstr(err.text, "seeds differ: 1 and 99"));
	assert_int_equal(ow_epochs_create(other_path, &other, true, &second, &err), 0);
	ow_epochs_writer_free(second);
	struct ow_epochs *a = open_file(), *b;
	assert_int_equal(ow_epochs_open(other_path, &b, &err), 0);
	assert_int_equal(ow_epochs_comparable(a, b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a.epochs"));
	assert_non_null(strstr(err.text, "seeds differ"));
	ow_epochs_close(a);
	ow_epochs_close(b);
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "\x02", 1, 3), 1);
	assert_int_equal(ow_epochs_open(path, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "version 2"));
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	close(fd);
	assert_int_equal(ow_epochs_open(path, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a file of epochs"));
	assert_int_equal(ow_epochs_create(path, &info, true, &writer, &err), -EINVAL); /* it is not ours to change */
	assert_int_equal(ow_epochs_open(folder, &a, &err), -EINVAL);
	assert_int_equal(ow_epochs_open("/nonexistent/x", &a, &err), -ENOENT);
	assert_int_equal(ow_epochs_create("/nonexistent/x", &info, true, &writer, &err), -ENOENT);
	ow_epochs_close(NULL);
	ow_epochs_writer_free(NULL);
}

/* A copy, epoch by epoch: the same epochs and sums; places in other files and bytes that are no epoch are refused. */
static void test_copy(void **state)
{
	(void)state;
	struct ow_epoch_info info = make_info();
	struct ow_epochs_writer *writer = create(&info, false), *copy;
	struct ow_epochs_copy next;
	struct ow_error err;
	unlink(other_path);
	assert_int_equal(ow_epochs_create(other_path, &info, true, &copy, &err), 0);
	unsigned copied = 0;
	for (unsigned n = 0; n < 40; n += 8) {
		append(writer, &info, n, n + 8);
		for (;;) {
			struct ow_epochs_place place = ow_epochs_place(copy);
			assert_int_equal(place.epochs, copied);
			int r = ow_epochs_copy_next(writer, &place, &next, &err);
			if (r == 1)
				break;
			assert_int_equal(r, 0);
			assert_int_equal(ow_epochs_copy_append(copy, &next, FLOWS, &err), 0);
			free(next.bytes);
			copied++;
		}
		assert_int_equal(copied, n + 8);
		/* It goes on after a restart. */
		ow_epochs_writer_free(copy);
		assert_int_equal(ow_epochs_create(other_path, &info, true, &copy, &err), 0);
	}
	assert_int_equal(size_of(path), size_of(other_path));
	struct ow_epochs_place place = ow_epochs_place(copy), other = place;
	other.check++;
	assert_int_equal(ow_epochs_copy_next(writer, &other, &next, &err), -ESTALE);
	other = (struct ow_epochs_place){.epochs = place.epochs + 1, .check = place.check};
	assert_int_equal(ow_epochs_copy_next(writer, &other, &next, &err), -ESTALE);
	assert_int_equal(ow_epochs_copy_next(writer, &(struct ow_epochs_place){0}, &next, &err), 0);
	for (size_t cut = 0; cut < next.size; cut++) {
		struct ow_epochs_copy part = {next.bytes, cut, 0};
		assert_int_equal(ow_epochs_copy_append(copy, &part, FLOWS, &err), -EINVAL);
	}
	/* A peer that sends more flows than a recording has does not get the memory for them. */
	assert_int_equal(ow_epochs_copy_append(copy, &next, 5, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than the 5 flows"));
	next.count_bytes = (uint32_t)next.size + 1;
	assert_int_equal(ow_epochs_copy_append(copy, &next, FLOWS, &err), -EINVAL);
	assert_int_equal(ow_epochs_place(copy).bytes, place.bytes);
	free(next.bytes);
	ow_epochs_writer_free(copy);
	ow_epochs_writer_free(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),  cmocka_unit_test(test_cut),      cmocka_unit_test(test_damage),
		cmocka_unit_test(test_kill),  cmocka_unit_test(test_refusals), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_times),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
