/* SPDX-License-Identifier: Apache-2.0 */
/* Real and hostile captures (OW_TRACES): whatever they hold, decoding stays inside the frame; two points agree. */
#include "capture/file/reader.h"
#include "packet/flow.h"
#include "packet/identity.h"
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BATCH 64

/* Ids of a capture, in order of appearance. */
struct ids {
	uint64_t *id;
	size_t count, room;
};

struct seen {
	uint64_t frames, ip, not_ip, cut, link;
};

static void add(struct ids *ids, uint64_t id)
{
	if (ids->count == ids->room) {
		ids->room = ids->room ? ids->room * 2 : 1024;
		ids->id = realloc(ids->id, ids->room * sizeof *ids->id);
		assert_non_null(ids->id);
	}
	ids->id[ids->count++] = id;
}

static void check_packet(const struct ow_frame *frame, const struct ow_packet *p)
{
	size_t captured = (size_t)(p->end - p->ip);
	assert_true(p->ip >= frame->data && p->end <= frame->data + frame->caplen);
	assert_true(captured >= (p->version == 4 ? 20 : 40) && captured <= p->ip_len);
	assert_true(p->truncated == (captured < p->ip_len));
	assert_true(!p->l4 || (p->l4 > p->ip && p->l4 < p->end && p->l4 + p->l4_len == p->ip + p->ip_len));
	for (unsigned i = 0; i < 4; i++) {
		struct ow_identity identity = {.level = i & 1 ? OW_LEVEL_NAT : OW_LEVEL_IP, .segments = i & 2};
		struct ow_packet_id id;
		ow_identity_seed(&identity, 1);
		identity.hash_limit = ow_identity_available(p, OW_TCP_EXACT);
		assert_int_equal(ow_identity_of_packet(&identity, p, &id), 0);
		identity.hash_limit = UINT32_MAX;
		int r = ow_identity_of_packet(&identity, p, &id);
		assert_true(r == 0 || (r == -ENODATA && p->truncated));
	}
	struct ow_flow_key key;
	char text[OW_FLOW_TEXT];
	ow_flow_key_of_packet(p, &key);
	ow_flow_key_text(&key, text);
	assert_int_equal(key.version, p->version);
}

/* Decodes a copy of the frame's exact size, so that a sanitizer sees a read beyond. */
static void take(const struct ow_frame *frame, struct seen *seen, struct ids *ids)
{
	uint8_t *copy = malloc(frame->caplen ? frame->caplen : 1);
	assert_non_null(copy);
	memcpy(copy, frame->data, frame->caplen);
	struct ow_frame f = *frame;
	f.data = copy;
	seen->frames++;
	for (int inner = 1; inner >= 0; inner--) {
		struct ow_packet packet;
		enum ow_decode result = ow_packet_decode(&f, inner, &packet);
		if (!inner) {
			seen->ip += result == OW_DECODE_IP;
			seen->not_ip += result == OW_DECODE_NOT_IP;
			seen->cut += result == OW_DECODE_SHORT;
			seen->link += result == OW_DECODE_LINK;
		}
		if (result != OW_DECODE_IP)
			continue;
		check_packet(&f, &packet);
		if (inner || !ids)
			continue;
		struct ow_identity identity = {.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
		struct ow_packet_id id;
		ow_identity_seed(&identity, 1);
		if (ow_identity_of_packet(&identity, &packet, &id) == 0)
			add(ids, id.id);
	}
	free(copy);
}

static void read_capture(const char *path, struct seen *seen, struct ids *ids)
{
	struct ow_reader *reader;
	struct ow_error err = {0};
	struct ow_frame frames[BATCH];
	int n;
	if (ow_reader_open(path, &reader, &err) < 0)
		return; /* not a capture: the reader's tests know */
	while ((n = ow_reader_read(reader, frames, BATCH, &err)) > 0)
		for (int i = 0; i < n; i++)
			take(&frames[i], seen, ids);
	ow_reader_close(reader);
}

/* NULL, with a word, when the traces are not there. */
static const char *traces(void)
{
	const char *root = getenv("OW_TRACES");
	DIR *dir = root ? opendir(root) : NULL;
	if (!dir) {
		print_message("no traces at %s: skipped\n", root ? root : "$OW_TRACES");
		return NULL;
	}
	closedir(dir);
	return root;
}

static void every_capture_decodes(void **state)
{
	(void)state;
	const char *root = traces();
	if (!root)
		skip();
	static const char *const rooms[] = {"zoo", "twopoint", "big"};
	struct seen seen = {0};
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		char room[4096], path[8192];
		snprintf(room, sizeof room, "%s/%s", root, rooms[i]);
		DIR *dir = opendir(room);
		if (!dir)
			continue;
		for (struct dirent *e; (e = readdir(dir));) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof path, "%s/%s", room, e->d_name);
			read_capture(path, &seen, NULL);
		}
		closedir(dir);
	}
	print_message("%llu frames: %llu IP, %llu not, %llu cut, %llu of other links\n",
	              (unsigned long long)seen.frames, (unsigned long long)seen.ip, (unsigned long long)seen.not_ip,
	              (unsigned long long)seen.cut, (unsigned long long)seen.link);
	assert_true(seen.frames == seen.ip + seen.not_ip + seen.cut + seen.link);
	assert_true(seen.ip > seen.frames / 2);
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x < y ? -1 : x > y;
}

static size_t common(const char *root, const char *name_a, const char *name_b)
{
	struct ids ids[2] = {0};
	struct seen seen = {0};
	char path[4096];
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/twopoint/%s", root, i ? name_b : name_a);
		read_capture(path, &seen, &ids[i]);
		if (ids[i].count)
			qsort(ids[i].id, ids[i].count, sizeof *ids[i].id, compare_ids);
	}
	size_t i = 0, k = 0, n = 0;
	while (i < ids[0].count && k < ids[1].count) {
		uint64_t a = ids[0].id[i], b = ids[1].id[k];
		n += a == b;
		i += a <= b;
		k += b <= a;
	}
	free(ids[0].id);
	free(ids[1].id);
	return n;
}

/* All IP packets of these pairs were seen at both points, but for the link-local chatter of the last. */
static void both_points_agree(void **state)
{
	(void)state;
	const char *root = traces();
	if (!root)
		skip();
	assert_int_equal(common(root, "det6g_nocross_downstream.pcap", "det6g_nocross_upstream.pcap"), 1000);
	assert_int_equal(common(root, "pres_mptcpA_h1_eth0.pcap", "pres_mptcpA_sv_eth0.pcap"), 3971);
	assert_int_equal(common(root, "pres_mptcpA_h1_eth1.pcap", "pres_mptcpA_sv_eth1.pcap"), 3863);
	assert_int_equal(common(root, "cethproxy_client.pcap", "cethproxy_server.pcap"), 113);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_capture_decodes),
		cmocka_unit_test(both_points_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
