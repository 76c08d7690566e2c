/* SPDX-License-Identifier: Apache-2.0 */
/* Every compression in all forms, also damaged; pipes and standard input, which can also be read twice. */
#include "craft.h"
#include "pack.h"

#include "capture/file/source.h"
#include "capture/file/unpack_more.h"
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct craft *sample(size_t records, uint32_t caplen)
{
	struct craft *c = craft_new(false);

	craft_pcap(c, 0xa1b2c3d4, 65535, 1);
	for (size_t i = 0; i < records; i++)
		craft_record(c, (uint32_t)i, 0, caplen, caplen);
	return c;
}

/* Whether the text is "NAME data WHAT". */
static bool says(const struct outcome *o, enum ow_packing packing, const char *what)
{
	char text[80];

	snprintf(text, sizeof text, "%s data %s", ow_packing_name(packing), what);
	return strstr(o->text, text) != NULL;
}

static void members_of(struct scratch *scratch, enum ow_packing packing)
{
	struct craft *c = sample(100, 50), *part = craft_new(false);
	size_t size = 0, n;
	uint8_t *all = malloc(1 << 20), *packed;
	struct outcome o;

	assert_non_null(all);
	/* a member for every 997 bytes, wherever records end, and empty members between them */
	for (size_t i = 0; i < c->size; i += 997) {
		for (int empty = 0; empty < 2; empty++) {
			part->size = 0;
			if (!empty) {
				part->size = c->size - i < 997 ? c->size - i : 997;
				memcpy(part->bytes, c->bytes + i, part->size);
			}
			packed = pack(part, packing, &n);
			memcpy(all + size, packed, n);
			size += n;
			free(packed);
		}
	}
	o = read_bytes(scratch, all, size);
	assert_false(o.damaged);
	assert_true(o.info.compressed);
	assert_int_equal(o.info.size_bytes, size);
	assert_int_equal(o.n, 100);

	memset(all + size, 0, 100000); /* padding is fine, even over several reads */
	o = read_bytes(scratch, all, size + 100000);
	assert_false(o.damaged);
	assert_int_equal(o.n, 100);

	memset(all + size, 'x', 4);
	o = read_bytes(scratch, all, size + 4);
	assert_true(o.damaged);
	assert_int_equal(o.n, 100);
	assert_true(says(&o, packing, "followed by other data at offset "));
	free(all);
	free(part);
	free(c);
}

/* Every cut is noticed, and what can be unpacked before it is there. */
static void cut_everywhere(struct scratch *scratch, enum ow_packing packing)
{
	struct craft *c = sample(5, 30);
	size_t size, before = 0;
	uint8_t *packed;

	c->size = c->size + 1; /* the plain file is cut as well: the message is about the packed data */
	packed = pack(c, packing, &size);
	for (size_t cut = OW_PACKING_MAGIC_MAX; cut < size; cut++) {
		struct outcome o = read_bytes(scratch, packed, cut);
		assert_true(says(&o, packing, "cut off at offset"));
		if (o.opened < 0) {
			assert_int_equal(o.opened, -EINVAL);
			assert_int_equal(before, 0);
		} else {
			assert_true(o.damaged);
			assert_true(o.n >= before && o.n <= 5);
			before = o.n;
		}
	}
	assert_int_equal(before, 5);
	free(packed);
	free(c);
}

/* One flipped byte at every place: never a crash, and never silent, unless nothing of the content has changed (a time in the
 * header of gzip, the window of zstd). */
static void flipped_everywhere(struct scratch *scratch, enum ow_packing packing)
{
	struct craft *c = sample(5, 30);
	size_t size;
	uint8_t *packed = pack(c, packing, &size);
	struct outcome good = read_bytes(scratch, packed, size);

	for (size_t i = 0; i < size; i++) {
		struct outcome o;
		packed[i] ^= 0x55;
		o = read_bytes(scratch, packed, size);
		/* NOLINTBEGIN(bugprone-suspicious-memory-comparison,cert-*): both began as zeros */
		assert_true(o.opened < 0 || o.damaged ||
		            (o.n == good.n && memcmp(o.frames, good.frames, sizeof o.frames) == 0 &&
		             memcmp(o.first, good.first, sizeof o.first) == 0));
		/* NOLINTEND(bugprone-suspicious-memory-comparison,cert-*) */
		packed[i] ^= 0x55;
	}
	free(packed);
	free(c);
}

static void damage_in_the_middle(struct scratch *scratch, enum ow_packing packing)
{
	struct craft *c = sample(0, 0);
	size_t size;
	uint8_t *packed;
	struct outcome o;

	for (uint32_t i = 0; i < 100000; i++) {
		craft_record(c, i, i * 2654435761u % 1000000, 4, 4);
		memcpy(c->bytes + c->size - 4, &(uint32_t){i * 2654435761u}, 4);
	}
	packed = pack(c, packing, &size);
	memset(packed + size / 2, 0xff, 64);
	o = read_bytes(scratch, packed, size);
	assert_int_equal(o.result, 0);
	assert_true(o.damaged);
	/* zstd and lz4 may find it only by their checksum at the end */
	assert_true(o.n > 25000 && (o.n < 75000 || packing == OW_PACKING_ZSTD || packing == OW_PACKING_LZ4));
	/* a library notices some bytes later; if they gave an absurd record, that is named */
	assert_true(says(&o, packing, "damaged at offset") || strstr(o.text, "crafted: damaged at record"));
	free(packed);
	free(c);
}

/* A packed file that is no capture. */
static void packed_text(struct scratch *scratch, enum ow_packing packing)
{
	struct craft *c = craft_new(false);
	size_t size;
	uint8_t *packed;
	struct outcome o;

	craft_fill(c, 'a', 100);
	packed = pack(c, packing, &size);
	o = read_bytes(scratch, packed, size);
	assert_int_equal(o.opened, -EINVAL);
	assert_non_null(strstr(o.text, "not a capture file (starts with 61 61 61 61)"));
	free(packed);
	free(c);
}

static void for_each_packing(void **state, void (*check)(struct scratch *, enum ow_packing))
{
	ow_unpack_more();
	for (int i = OW_PACKING_NONE + 1; i < OW_PACKINGS; i++)
		check(*state, (enum ow_packing)i);
}

static void test_members(void **state)
{
	for_each_packing(state, members_of);
}

static void test_cut_everywhere(void **state)
{
	for_each_packing(state, cut_everywhere);
}

static void test_flipped_everywhere(void **state)
{
	for_each_packing(state, flipped_everywhere);
}

static void test_damage_in_the_middle(void **state)
{
	for_each_packing(state, damage_in_the_middle);
}

static void test_packed_text(void **state)
{
	for_each_packing(state, packed_text);
}

/* Two compressions in one file, or metadata before zstd's data, as pzstd writes it. */
static void test_mixed_members(void **state)
{
	static const uint8_t skippable[] = {0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
	struct craft *c = sample(5, 30), *all = craft_new(false);
	size_t n, n_gzip;
	uint8_t *zstd = pack(c, OW_PACKING_ZSTD, &n), *gzip = pack(c, OW_PACKING_GZIP, &n_gzip);
	struct outcome o;

	ow_unpack_more();
	memcpy(all->bytes, skippable, sizeof skippable);
	memcpy(all->bytes + sizeof skippable, zstd, n);
	all->size = sizeof skippable + n;
	o = read_craft(*state, all);
	assert_false(o.damaged);
	assert_int_equal(o.n, 5);
	memcpy(all->bytes + all->size, gzip, n_gzip);
	all->size += n_gzip;
	o = read_craft(*state, all);
	assert_int_equal(o.n, 5);
	assert_true(says(&o, OW_PACKING_ZSTD, "followed by other data"));
	free(gzip);
	free(zstd);
	free(all);
	free(c);
}

/* Headers that ask for gigabytes of memory. */
static void test_large_windows(void **state)
{
	static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8 /* 2^31 bytes */, 1, 0, 0};
	struct craft *c = sample(5, 30);
	size_t n;
	uint8_t *xz = pack(c, OW_PACKING_XZ, &n), *block = xz + 12, *filter;
	size_t head = ((size_t)block[0] + 1) * 4 - 4; /* bytes before its checksum */
	struct outcome o;

	ow_unpack_more();
	o = read_bytes(*state, zstd, sizeof zstd);
	assert_int_equal(o.opened, -EINVAL);
	assert_true(says(&o, OW_PACKING_ZSTD, "that needs more than 128 MiB of memory"));
	filter =
		memmem(block, head, "\x21\x01", 2); /* LZMA2, with one byte of properties: the size of the dictionary */
	assert_non_null(filter);
	filter[2] = 40; /* 4 GiB */
	memcpy(block + head, &(uint32_t){lzma_crc32(block, head, 0)}, 4);
	o = read_bytes(*state, xz, n);
	assert_int_equal(o.opened, -EINVAL);
	assert_true(says(&o, OW_PACKING_XZ, "that needs more than 128 MiB of memory"));
	free(xz);
	free(c);
}

/* A program that has not added a method, as one that uses the library. */
static void test_not_allowed(void **state)
{
	struct craft *c = sample(5, 30);
	size_t n;
	uint8_t *packed = pack(c, OW_PACKING_LZ4, &n);
	const struct ow_unpack_method *method = ow_unpack_method(OW_PACKING_LZ4);
	struct outcome o;

	ow_unpack_allow(OW_PACKING_LZ4, NULL);
	o = read_bytes(*state, packed, n);
	assert_int_equal(o.opened, -ENOTSUP);
	assert_non_null(strstr(o.text, "compressed with lz4, which this program cannot unpack: unpack it first"));
	ow_unpack_allow(OW_PACKING_LZ4, method);
	free(packed);
	free(c);
}

static pid_t feed(int fd, const struct craft *c)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < c->size;) {
			ssize_t w = write(fd, c->bytes + i, c->size - i);
			if (w <= 0)
				_exit(1);
			i += (size_t)w;
		}
		_exit(0);
	}
	return child;
}

static void read_twice(const char *path, size_t records, uint64_t size)
{
	struct ow_reader *reader;
	struct ow_frame frames[64];
	struct ow_error err;

	if (ow_reader_open(path, &reader, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_reader_info(reader)->size_bytes, size);
	for (int round = 0; round < 2; round++) {
		size_t n = 0;
		for (int got; (got = ow_reader_read(reader, frames, 64, &err)) > 0;)
			n += (size_t)got;
		assert_int_equal(n, records);
		assert_int_equal(ow_reader_position(reader), size);
		assert_null(ow_reader_damage(reader));
		assert_int_equal(ow_reader_rewind(reader, &err), 0);
		assert_true(ow_reader_position(reader) <=
		            24 + (256 << 10)); /* the first records are read, not returned */
	}
	ow_reader_close(reader);
}

static void test_pipe(void **state)
{
	struct craft *c = sample(20000, 100);
	int fds[2];
	char path[64];
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = feed(fds[1], c);
	close(fds[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
	read_twice(path, 20000, c->size);
	close(fds[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	free(c);
}

static void test_standard_input(void **state)
{
	struct craft *c = sample(2000, 100);
	int saved = dup(STDIN_FILENO), fds[2], file;
	pid_t child;
	struct outcome o;

	assert_true(saved >= 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = feed(fds[1], c);
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	read_twice("-", 2000, c->size);
	assert_int_equal(waitpid(child, NULL, 0), child);

	file = open(scratch_save(*state, "redirected", c->bytes, c->size), O_RDONLY | O_CLOEXEC);
	assert_true(file >= 0);
	dup2(file, STDIN_FILENO);
	close(file);
	read_twice("-", 2000, c->size);
	o = read_all("-"); /* and again: the position of standard input is left alone */
	assert_int_equal(o.n, 2000);

	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(file, STDIN_FILENO);
	close(file);
	o = read_all("-");
	assert_string_equal(o.text, "standard input: not a capture file (it is empty)");
	dup2(saved, STDIN_FILENO);
	close(saved);
	free(c);
}

static void test_spool_elsewhere(void **state)
{
	struct craft *c = sample(3, 10);
	const char *saved = getenv("TMPDIR");
	char path[64], *kept = saved ? strdup(saved) : NULL;
	int fds[2];
	struct outcome o;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], c->bytes, c->size), c->size);
	close(fds[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
	setenv("TMPDIR", "/nonexistent", 1);
	o = read_all(path);
	assert_int_equal(o.opened, -ENOENT);
	assert_non_null(strstr(o.text, "cannot make a temporary file in /nonexistent: No such file or directory"));
	if (kept)
		setenv("TMPDIR", kept, 1);
	else
		unsetenv("TMPDIR");
	o = read_all(path); /* nothing was taken from the pipe */
	assert_int_equal(o.n, 3);
	close(fds[0]);
	free(kept);
	free(c);
}

/* What does not begin as a capture is not copied to its end, which may not come. */
static void test_endless(void **state)
{
	(void)state;
	struct outcome o = read_all("/dev/zero");
	assert_int_equal(o.opened, -EINVAL);
	assert_string_equal(o.text, "/dev/zero: not a capture file (starts with 00 00 00 00)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_cut_everywhere, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_flipped_everywhere, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_damage_in_the_middle, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_packed_text, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_mixed_members, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_large_windows, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_not_allowed, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test_setup_teardown(test_standard_input, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_spool_elsewhere),
		cmocka_unit_test(test_endless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
