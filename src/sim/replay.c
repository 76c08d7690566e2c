/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic from a capture file. */
#include "sim/replay.h"
#include "base/hash.h"
#include "base/time.h"
#include "capture/file/reader.h"
#include "packet/flow.h"
#include "packet/packet.h"
#include "sim/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256

/* 2^32 s, what a pcap file can hold; delays and clock errors are added to it. */
#define LATEST_NS ((INT64_C(1) << 32) * OW_NS_PER_S)

struct ow_replay {
	const struct ow_sim_options *options;
	struct ow_wire_pool *pool;
	struct ow_reader *reader;
	struct ow_frame frame[BATCH];
	int frames, next;
	uint64_t made;
	int64_t latest_ns;
	bool unchanged; /* frames pass unchanged, else as IP packets */
};

bool ow_replay_unchanged(const struct ow_sim_options *options)
{
	if (options->router || options->dscp >= 0 || options->ecn_mark > 0 || options->nat)
		return false;
	for (int i = 0; i < OW_SIDES; i++) {
		if (options->side[i].encaps || options->side[i].link != OW_SIM_LINK_AUTO)
			return false;
	}
	return true;
}

int ow_replay_create(const struct ow_sim_options *options, struct ow_wire_pool *pool, struct ow_replay **ret_replay,
                     struct ow_error *err)
{
	struct ow_replay *replay = calloc(1, sizeof *replay);
	if (!replay)
		return ow_error_set(err, ENOMEM, "out of memory");
	replay->options = options;
	replay->pool = pool;
	replay->latest_ns = INT64_MIN;
	replay->unchanged = ow_replay_unchanged(options);
	int r = ow_reader_open(options->traffic, &replay->reader, err);
	if (r < 0) {
		free(replay);
		return r;
	}
	*ret_replay = replay;
	return 0;
}

void ow_replay_free(struct ow_replay *replay)
{
	if (!replay)
		return;
	ow_reader_close(replay->reader);
	free(replay);
}

/* The next frame of the file: 1, 0 at the end, or a negative errno. */
static int next_frame(struct ow_replay *replay, const struct ow_frame **ret_frame, struct ow_error *err)
{
	if (replay->options->packets && replay->made >= replay->options->packets)
		return 0;
	if (replay->next == replay->frames) {
		replay->next = 0;
		replay->frames = ow_reader_read(replay->reader, replay->frame, BATCH, err);
		if (replay->frames <= 0) {
			int r = replay->frames;
			replay->frames = 0;
			return r;
		}
	}
	*ret_frame = &replay->frame[replay->next++];
	return 1;
}

/* Hashes one end of a flow. */
static uint64_t end_hash(const uint8_t address[16], uint16_t port)
{
	uint64_t word[2];
	memcpy(word, address, sizeof word);
	return ow_mix64(word[0] ^ ow_mix64(word[1] ^ ow_mix64(port + 1)));
}

/* The hashes of the two ends decide which one is at A, so that both directions of a conversation agree. */
static void set_flow(const struct ow_replay *replay, const struct ow_packet *packet, struct ow_wire *wire)
{
	struct ow_flow_key key;
	ow_flow_key_of_packet(packet, &key);
	uint64_t src = end_hash(key.src, key.sport), dst = end_hash(key.dst, key.dport);
	wire->flow = (uint32_t)(src + dst);
	if (replay->options->reverse > 0 && src < dst)
		wire->direction = OW_B_TO_A;
}

/* Takes the frame, or the IP packet in it. Returns 0 if it is left out. */
static int take(struct ow_replay *replay, const struct ow_frame *frame, struct ow_wire *wire, struct ow_error *err)
{
	struct ow_packet packet;
	const uint8_t *data = frame->data;
	uint32_t caplen = frame->caplen;
	bool ip = ow_packet_decode(frame, false, &packet) == OW_DECODE_IP;
	if (!ip && (replay->options->ip_only || !replay->unchanged))
		return 0;
	if (ip)
		set_flow(replay, &packet, wire);
	wire->frame = replay->unchanged;
	wire->missing = frame->len - frame->caplen;
	if (!replay->unchanged) {
		data = packet.ip;
		caplen = (uint32_t)(packet.end - packet.ip);
		wire->missing = packet.truncated && packet.ip_len > caplen ? packet.ip_len - caplen : 0;
		wire->proto = packet.proto;
		wire->l4 = packet.l4 ? (uint16_t)(packet.l4 - packet.ip) : 0;
	}
	if (caplen > OW_VIEW_MAX)
		return ow_error_set(err, EINVAL, "--traffic: record %llu has %u bytes",
		                    (unsigned long long)frame->number, caplen);
	return ow_wire_fill(wire, data, caplen) < 0 ? ow_error_set(err, ENOMEM, "out of memory") : 1;
}

int ow_replay_next(struct ow_replay *replay, struct ow_wire **ret_wire, struct ow_error *err)
{
	struct ow_wire *wire = ow_wire_get(replay->pool);
	if (!wire)
		return ow_error_set(err, ENOMEM, "out of memory");
	const struct ow_frame *frame;
	int r;
	do {
		r = next_frame(replay, &frame, err);
		if (r > 0)
			r = take(replay, frame, wire, err);
		else
			break;
	} while (r == 0);
	if (r <= 0) {
		ow_wire_put(replay->pool, wire);
		return r;
	}
	if (frame->time_ns > replay->latest_ns)
		replay->latest_ns = frame->time_ns;
	wire->time_ns = replay->latest_ns;
	wire->number = replay->made++;
	*ret_wire = wire;
	return 1;
}

double ow_replay_done(const struct ow_replay *replay)
{
	uint64_t size = ow_reader_info(replay->reader)->size_bytes;
	return size ? (double)ow_reader_position(replay->reader) / (double)size : 0;
}

int ow_replay_scan(const char *path, struct ow_replay_info *ret_info, struct ow_error *err)
{
	struct ow_reader *reader;
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	struct ow_replay_info info = {.last_ns = INT64_MIN};
	struct ow_frame frames[BATCH];
	while ((r = ow_reader_read(reader, frames, BATCH, err)) > 0) {
		for (int i = 0; i < r; i++) {
			if (info.packets++ == 0) {
				info.first_ns = frames[i].time_ns;
				info.linktype = frames[i].linktype;
			}
			if (frames[i].time_ns > info.last_ns)
				info.last_ns = frames[i].time_ns;
			info.mixed = info.mixed || frames[i].linktype != info.linktype;
		}
	}
	ow_reader_close(reader);
	if (r == 0 && (info.first_ns < 0 || info.last_ns > LATEST_NS))
		r = ow_error_set(err, EINVAL, "--traffic %s: times before 1970 or after 2106", path);
	if (r == 0 && !info.packets)
		r = ow_error_set(err, EINVAL, "--traffic %s: no packets", path);
	if (r >= 0)
		*ret_info = info;
	return r;
}
