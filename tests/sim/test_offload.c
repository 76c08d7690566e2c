/* SPDX-License-Identifier: Apache-2.0 */
/* Superframes cut into the frames of a wire; checksums compared with another algorithm. */
#include "sim/offload.h"

#include "base/bytes.h"
#include "base/random.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#define SEED 7

static uint8_t frame[OW_OFFLOAD_FRAME_MAX];

struct seen {
	unsigned count;
	size_t payload;
	uint8_t bytes[65536];
	uint8_t flags[64];
	uint32_t seq[64];
	uint16_t ip_id[64];
	size_t headers;
	bool v4, tcp;
};

/* RFC 1071 word by word: 0xffff when the checksum in it is right. */
static uint16_t plain_sum(uint32_t sum, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static int collect(void *arg, uint8_t *data, size_t len)
{
	struct seen *seen = arg;
	uint8_t *ip = data + OW_OFFLOAD_ETHER, *l4 = ip + (seen->v4 ? 20 : 40);
	size_t l4_len = len - (size_t)(l4 - data);
	if (seen->v4) {
		assert_int_equal(ow_load_be16(ip + 2), len - OW_OFFLOAD_ETHER);
		assert_int_equal(plain_sum(0, ip, 20), 0xffff);
		seen->ip_id[seen->count] = ow_load_be16(ip + 4);
	} else {
		assert_int_equal(ow_load_be16(ip + 4), l4_len);
	}
	uint16_t pseudo =
		plain_sum((uint32_t)l4_len + (seen->tcp ? 6 : 17), seen->v4 ? ip + 12 : ip + 8, seen->v4 ? 8 : 32);
	assert_int_equal(plain_sum(pseudo, l4, l4_len), 0xffff);
	if (seen->tcp) {
		seen->seq[seen->count] = ow_load_be32(l4 + 4);
		seen->flags[seen->count] = l4[13];
	} else {
		assert_int_equal(ow_load_be16(l4 + 4), l4_len);
	}
	memcpy(seen->bytes + seen->payload, data + seen->headers, len - seen->headers);
	seen->payload += len - seen->headers;
	seen->count++;
	return 0;
}

/* An IP packet with random payload and the pseudo header's sum where the checksum goes, as a host leaves it. */
static size_t build(bool v4, bool tcp, size_t payload, struct virtio_net_hdr *header)
{
	struct ow_random random;
	ow_random_seed(&random, SEED + payload);
	size_t l4 = OW_OFFLOAD_ETHER + (v4 ? 20 : 40), headers = l4 + (tcp ? 32 : 8), len = headers + payload;
	memset(frame, 0, headers);
	uint8_t *ip = frame + OW_OFFLOAD_ETHER;
	ow_store_be16(frame + 12, v4 ? 0x0800 : 0x86dd);
	ip[0] = v4 ? 0x45 : 0x60;
	ip[v4 ? 9 : 6] = tcp ? 6 : 17;
	if (v4)
		ow_store_be16(ip + 4, 0xfffe);
	for (size_t i = v4 ? 12 : 8; i < (v4 ? 20u : 40u); i++)
		ip[i] = (uint8_t)ow_random_u64(&random);
	if (tcp) {
		ow_store_be32(frame + l4 + 4, 0xfffffc00);
		frame[l4 + 12] = 0x80;
		frame[l4 + 13] = 0x80 | 0x10 | 0x08 | 0x01; /* CWR ACK PSH FIN */
	}
	for (size_t i = 0; i < payload; i++)
		frame[headers + i] = (uint8_t)ow_random_u64(&random);
	uint16_t pseudo = plain_sum((uint32_t)(len - l4) + (tcp ? 6 : 17), v4 ? ip + 12 : ip + 8, v4 ? 8 : 32);
	ow_store_be16(frame + l4 + (tcp ? 16 : 6), pseudo);
	*header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = (uint16_t)l4, .csum_offset = tcp ? 16 : 6};
	return len;
}

static void cuts(void **state)
{
	(void)state;
	const size_t payloads[] = {1, 1000, 1001, 1448, 1449, 2896, 2897, 10000, 60000};
	static struct seen seen;
	for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
		for (unsigned kind = 0; kind < 4; kind++) {
			bool v4 = kind & 1, tcp = kind & 2;
			struct virtio_net_hdr header;
			size_t len = build(v4, tcp, payloads[i], &header), count = (payloads[i] + 1447) / 1448;
			header.gso_size = 1448;
			header.gso_type = !tcp ? VIRTIO_NET_HDR_GSO_UDP_L4
			                  : v4 ? VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN
			                       : VIRTIO_NET_HDR_GSO_TCPV6;
			size_t headers = len - payloads[i];
			memset(&seen, 0, sizeof seen);
			seen.v4 = v4;
			seen.tcp = tcp;
			seen.headers = headers;
			assert_int_equal(ow_offload_cut(&header, frame, len, collect, &seen), 0);
			assert_int_equal(seen.count, count);
			assert_int_equal(seen.payload, payloads[i]);
			assert_memory_equal(seen.bytes, frame + headers, payloads[i]);
			for (size_t k = 0; k < count; k++) {
				if (v4)
					assert_int_equal(seen.ip_id[k], (uint16_t)(0xfffe + k));
				if (!tcp)
					continue;
				assert_int_equal(seen.seq[k], (uint32_t)(0xfffffc00 + 1448 * k));
				assert_int_equal(seen.flags[k] & 0x80, k == 0 ? 0x80 : 0);
				assert_int_equal(seen.flags[k] & 0x09, k + 1 == count ? 0x09 : 0);
				assert_int_equal(seen.flags[k] & 0x10, 0x10);
			}
		}
	}
}

static int keep(void *arg, uint8_t *data, size_t len)
{
	(void)data;
	*(size_t *)arg = len;
	return 0;
}

static void fills_checksums(void **state)
{
	(void)state;
	for (unsigned tcp = 0; tcp < 2; tcp++) {
		struct virtio_net_hdr header;
		size_t len = build(true, tcp, 777, &header), seen = 0, l4_len = len - OW_OFFLOAD_ETHER - 20;
		uint8_t *ip = frame + OW_OFFLOAD_ETHER;
		assert_int_equal(ow_offload_cut(&header, frame, len, keep, &seen), 0);
		assert_int_equal(seen, len);
		uint16_t pseudo = plain_sum((uint32_t)l4_len + (tcp ? 6 : 17), ip + 12, 8);
		assert_int_equal(plain_sum(pseudo, ip + 20, l4_len), 0xffff);
	}
	/* Nothing asked for, nothing changed: whatever the bytes are. */
	struct virtio_net_hdr none = {0};
	uint8_t before[64];
	size_t seen = 0;
	memcpy(before, frame, sizeof before);
	assert_int_equal(ow_offload_cut(&none, frame, sizeof before, keep, &seen), 0);
	assert_int_equal(seen, sizeof before);
	assert_memory_equal(frame, before, sizeof before);
}

/* Headers that promise what the frame does not have. A sanitizer would see a read beyond the frame. */
static void refuses(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	unsigned refused = 0;
	for (int i = 0; i < 20000; i++) {
		struct virtio_net_hdr header;
		size_t seen = 0;
		build(i & 1, i & 2, 100, &header);
		size_t len = ow_random_below(&random, 120);
		header.gso_type = (uint8_t)ow_random_below(&random, 7);
		header.gso_size = (uint16_t)ow_random_below(&random, 60);
		header.csum_start = (uint16_t)ow_random_below(&random, 130);
		header.csum_offset = (uint16_t)ow_random_below(&random, 30);
		frame[14] = (uint8_t)ow_random_u64(&random);
		int r = ow_offload_cut(&header, frame, len, keep, &seen);
		assert_true(r == 0 || r == -EBADMSG);
		refused += r < 0;
		assert_true(r == 0 || seen == 0);
	}
	assert_true(refused > 10000);
	struct virtio_net_hdr none = {0};
	size_t seen;
	assert_int_equal(ow_offload_cut(&none, frame, OW_OFFLOAD_FRAME_MAX + 1, keep, &seen), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),
		cmocka_unit_test(fills_checksums),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
