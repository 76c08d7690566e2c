/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of flow counts: flows in the order of their keys, each as the difference from the previous one. The hash is
 * not stored, because it follows from the key. Times are in ticks of at most a 16384th of the epoch, rounded outwards.
 *
 *    0  flows (8), packets of flows beyond the limit (8), first time (8), a tick is 2^this ns (1), plus 128 if flows have
 *       counters of their own, plus 64 if there are samples of their packets
 *   25  in this case (8): flows of fewer packets have none
 *       each flow: flags (1): bits 0-1 0 not IP, 1 IPv4, 2 IPv6; 2 source as before; 3 destination as before;
 *                  4-5 protocol 0 as before, 1 TCP, 2 UDP, 3 follows; 6-7 ports 0 none, 1 both, 2 source (destination
 *                  as before), 3 destination (source as before)
 *       source: IPv4 the difference (number), else equal bytes in front (1) and the rest
 *       destination: IPv4 after an equal source the difference (number), else 4 bytes; others as the source
 *       ethertype (2) if not IP; protocol (1); source port (2), destination port (2)
 *       packets - 1 (number), tick of the first (number), with more than one packet ticks to the last (number)
 *       packets in each layer that takes a share (number)
 *       if flows of so many packets have counters: packets of its own counter (number), and if there are any its sum
 *       (8) and check (4); with samples: 0 = none, else packets + 1 (number), the limit of their ranks less 1 (5), and
 *       each packet by rank, then time: rank (5), time since the first (6)
 * Numbers have 7 bits in each byte, the lowest first; the top bit is set in all bytes except the last.
 */
#include "base/bytes.h"
#include "flows/epoch_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER         25
#define HEADER_OWN     128
#define HEADER_SAMPLES 64
#define SAMPLE_HEAD    (2 + RANK_BYTES)
#define RANK_BYTES     (OW_FLOW_SAMPLE_RANK_BITS / 8)
#define SAMPLED_BYTES  (RANK_BYTES + 6)
#define SAMPLE_TIMES   (UINT64_C(1) << 48)
#define ROW_MAX        (160 + 10 * OW_COLATE_LAYERS_MAX + SAMPLE_HEAD + SAMPLED_BYTES * OW_FLOW_SAMPLE)
#define ROW_MIN        3     /* flags, packets, tick */
#define TICKS          16384 /* fits into two bytes of a number */
#define SHIFT_MAX      50    /* with it, all of these times are less than TICKS apart */
#define PACKETS_MAX    (UINT64_C(1) << 56)

enum { SAME_SRC = 4, SAME_DST = 8, PROTO_SHIFT = 4, PORTS_SHIFT = 6 };
enum proto { PROTO_SAME, PROTO_TCP, PROTO_UDP, PROTO_FOLLOWS };
enum ports { PORTS_NONE, PORTS_BOTH, PORTS_SOURCE, PORTS_DESTINATION };
enum version { NO_IP, IPV4, IPV6 };

struct sorted {
	struct ow_flow_key key;
	uint32_t index;
};

static int by_key(const void *x, const void *y)
{
	const struct ow_flow_key *a = x, *b = y; /* the first member */
	int order = (int)a->version - b->version;
	order = order ? order : memcmp(a->src, b->src, sizeof a->src);
	order = order ? order : memcmp(a->dst, b->dst, sizeof a->dst);
	order = order ? order : (int)a->proto - b->proto;
	order = order ? order : (int)a->dport - b->dport;
	order = order ? order : (int)a->sport - b->sport;
	return order ? order : (int)a->ethertype - b->ethertype;
}

/* -- writing -------------------------------------------------------------------------------------------------------
 */

static uint8_t *put_number(uint8_t *to, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_front(uint8_t *to, const uint8_t address[16], const uint8_t before[16])
{
	size_t equal = 0;
	while (equal < 15 && address[equal] == before[equal])
		equal++;
	*to++ = (uint8_t)equal;
	memcpy(to, address + equal, 16 - equal);
	return to + 16 - equal;
}

static uint8_t *put_addresses(uint8_t *to, uint8_t there, const struct ow_flow_key *key,
                              const struct ow_flow_key *before)
{
	bool v4 = (there & 3) == IPV4;
	if (!(there & SAME_SRC))
		to = v4 ? put_number(to, ow_load_be32(key->src) - ow_load_be32(before->src))
		        : put_front(to, key->src, before->src);
	if (there & SAME_DST)
		return to;
	if (!v4)
		return put_front(to, key->dst, before->dst);
	if (there & SAME_SRC)
		return put_number(to, ow_load_be32(key->dst) - ow_load_be32(before->dst));
	memcpy(to, key->dst, 4);
	return to + 4;
}

static uint8_t *put_key(uint8_t *to, const struct ow_flow_key *key, const struct ow_flow_key *before)
{
	enum version version = key->version == 4 ? IPV4 : key->version == 6 ? IPV6 : NO_IP;
	enum proto proto = key->proto == before->proto ? PROTO_SAME
	                   : key->proto == 6           ? PROTO_TCP
	                   : key->proto == 17          ? PROTO_UDP
	                                               : PROTO_FOLLOWS;
	enum ports ports = !key->sport && !key->dport    ? PORTS_NONE
	                   : key->dport == before->dport ? PORTS_SOURCE
	                   : key->sport == before->sport ? PORTS_DESTINATION
	                                                 : PORTS_BOTH;
	uint8_t there = (uint8_t)(version | proto << PROTO_SHIFT | ports << PORTS_SHIFT);
	if (memcmp(key->src, before->src, sizeof key->src) == 0)
		there |= SAME_SRC;
	if (memcmp(key->dst, before->dst, sizeof key->dst) == 0)
		there |= SAME_DST;
	*to++ = there;
	to = put_addresses(to, there, key, before);
	if (version == NO_IP) {
		ow_store_be16(to, key->ethertype);
		to += 2;
	}
	if (proto == PROTO_FOLLOWS)
		*to++ = key->proto;
	if (ports == PORTS_BOTH || ports == PORTS_SOURCE) {
		ow_store_be16(to, key->sport);
		to += 2;
	}
	if (ports == PORTS_BOTH || ports == PORTS_DESTINATION) {
		ow_store_be16(to, key->dport);
		to += 2;
	}
	return to;
}

struct ticks {
	int64_t first_ns;
	uint8_t shift;
};

static struct ticks ticks_of(const struct ow_flow_counts *counts)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < ow_flow_counts_flows(counts); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		first = count.first_ns < first ? count.first_ns : first;
		last = count.last_ns > last ? count.last_ns : last;
	}
	struct ticks ticks = {.first_ns = first <= last ? first : 0};
	while (first <= last && ((uint64_t)last - (uint64_t)first) >> ticks.shift >= TICKS)
		ticks.shift++;
	return ticks;
}

/* The packets of the smallest flow with an own counter; UINT64_MAX if there is none. */
static uint64_t own_from(const struct ow_flow_counts *counts)
{
	uint64_t least = UINT64_MAX;
	for (size_t i = 0; i < ow_flow_counts_flows(counts); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		least = count.own.packets && count.packets < least ? count.packets : least;
	}
	return least;
}

static uint8_t *put_bytes(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*to++ = (uint8_t)(value >> 8 * i);
	return to;
}

static uint8_t *put_sample(uint8_t *to, const struct ow_flow_sample *sample, int64_t first_ns)
{
	bool is_written = sample->limit && sample->count <= OW_FLOW_SAMPLE;
	for (size_t i = 0; is_written && i < sample->count; i++)
		is_written = (uint64_t)sample->packet[i].time_ns - (uint64_t)first_ns < SAMPLE_TIMES;
	if (!is_written)
		return put_number(to, 0);
	to = put_number(to, sample->count + 1);
	to = put_bytes(to, sample->limit - 1, RANK_BYTES);
	for (size_t i = 0; i < sample->count; i++) {
		to = put_bytes(to, sample->packet[i].rank, RANK_BYTES);
		to = put_bytes(to, (uint64_t)sample->packet[i].time_ns - (uint64_t)first_ns,
		               SAMPLED_BYTES - RANK_BYTES);
	}
	return to;
}

static uint8_t *put_own(uint8_t *to, const struct ow_flow_own *own, const struct ow_flow_sample *sample,
                        int64_t first_ns)
{
	to = put_number(to, own->packets);
	if (!own->packets)
		return to;
	ow_store_le64(to, own->sum);
	ow_store_le32(to + 8, own->check);
	return put_sample(to + 12, sample, first_ns);
}

static uint8_t *put_flow(uint8_t *to, const struct ow_flow_counts *counts, size_t i, const struct ticks *ticks,
                         uint64_t from, const struct ow_flow_key *before)
{
	struct ow_flow_count count;
	ow_flow_counts_get(counts, i, &count);
	uint64_t first = ((uint64_t)count.first_ns - (uint64_t)ticks->first_ns) >> ticks->shift;
	uint64_t last = ((uint64_t)count.last_ns - (uint64_t)ticks->first_ns) >> ticks->shift;
	to = put_key(to, &count.key, before);
	to = put_number(to, count.packets - 1);
	to = put_number(to, first);
	if (count.packets > 1)
		to = put_number(to, last - first);
	const uint64_t *in_partial = ow_flow_counts_in_partials(counts, i);
	for (uint32_t k = 0; k < ow_flow_counts_partials(counts); k++)
		to = put_number(to, in_partial[k]);
	if (count.packets < from)
		return to;
	struct ow_flow_sample sample = ow_flow_counts_sample(counts, i);
	return put_own(to, &count.own, &sample, ticks->first_ns);
}

int ow_epoch_put_counts(struct ow_buffer *buffer, const struct ow_flow_counts *counts)
{
	size_t flows = ow_flow_counts_flows(counts);
	struct sorted *sorted = malloc((flows ? flows : 1) * sizeof *sorted);
	int r = sorted ? ow_buffer_reserve(buffer, HEADER + 8) : -ENOMEM;
	if (r < 0)
		goto out;
	for (size_t i = 0; i < flows; i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		sorted[i] = (struct sorted){count.key, (uint32_t)i};
	}
	qsort(sorted, flows, sizeof *sorted, by_key);
	struct ticks ticks = ticks_of(counts);
	uint8_t *to = buffer->data + buffer->end;
	ow_store_le64(to, flows);
	ow_store_le64(to + 8, ow_flow_counts_uncounted(counts));
	ow_store_le64(to + 16, (uint64_t)ticks.first_ns);
	uint64_t from = own_from(counts);
	bool own = from != UINT64_MAX;
	to[24] = (uint8_t)(ticks.shift | (own ? HEADER_OWN | HEADER_SAMPLES : 0));
	ow_store_le64(to + HEADER, from);
	buffer->end += HEADER + (own ? 8 : 0);
	static const struct ow_flow_key none;
	const struct ow_flow_key *before = &none;
	for (size_t i = 0; i < flows && r == 0; i++) {
		r = ow_buffer_reserve(buffer, ROW_MAX);
		if (r < 0)
			break;
		/* A key of another version has nothing in common with the previous one. */
		before = before->version == sorted[i].key.version ? before : &none;
		to = put_flow(buffer->data + buffer->end, counts, sorted[i].index, &ticks, from, before);
		buffer->end = (size_t)(to - buffer->data);
		before = &sorted[i].key;
	}
out:
	free(sorted);
	return r < 0 ? -ENOMEM : 0;
}

/* -- reading -------------------------------------------------------------------------------------------------------
 */

/* After an error, `failed` is set and all values are zero. */
struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static const uint8_t *take(struct reader *reader, size_t bytes)
{
	static const uint8_t zeros[16];
	if (reader->failed || bytes > (size_t)(reader->end - reader->at)) {
		reader->failed = true;
		return zeros;
	}
	reader->at += bytes;
	return reader->at - bytes;
}

static uint64_t take_number(struct reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = *take(reader, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			reader->failed |= shift == 63 && byte > 1;
			return value;
		}
	}
	reader->failed = true;
	return 0;
}

static void take_front(struct reader *reader, const uint8_t before[16], uint8_t ret_address[16])
{
	uint8_t equal = *take(reader, 1);
	reader->failed |= equal > 15;
	equal &= 15;
	memcpy(ret_address, before, equal);
	memcpy(ret_address + equal, take(reader, 16u - equal), 16u - equal);
}

static void take_addresses(struct reader *reader, uint8_t there, const struct ow_flow_key *before,
                           struct ow_flow_key *key)
{
	bool v4 = (there & 3) == IPV4;
	if (there & SAME_SRC)
		memcpy(key->src, before->src, sizeof key->src);
	else if (v4)
		ow_store_be32(key->src, ow_load_be32(before->src) + (uint32_t)take_number(reader));
	else
		take_front(reader, before->src, key->src);
	if (there & SAME_DST)
		memcpy(key->dst, before->dst, sizeof key->dst);
	else if (v4 && there & SAME_SRC)
		ow_store_be32(key->dst, ow_load_be32(before->dst) + (uint32_t)take_number(reader));
	else if (v4)
		memcpy(key->dst, take(reader, 4), 4);
	else
		take_front(reader, before->dst, key->dst);
}

static uint8_t take_proto(struct reader *reader, uint8_t there, uint8_t before)
{
	switch (there >> PROTO_SHIFT & 3) {
	case PROTO_TCP:
		return 6;
	case PROTO_UDP:
		return 17;
	case PROTO_FOLLOWS:
		return *take(reader, 1);
	default:
		return before;
	}
}

static void take_key(struct reader *reader, const struct ow_flow_key *last, struct ow_flow_key *key)
{
	static const uint8_t versions[] = {0, 4, 6, 0};
	static const struct ow_flow_key none;
	uint8_t there = *take(reader, 1), version = versions[there & 3];
	reader->failed |= (there & 3) > IPV6;
	const struct ow_flow_key *before = last->version == version ? last : &none;
	*key = (struct ow_flow_key){.version = version};
	take_addresses(reader, there, before, key);
	if (!version)
		key->ethertype = ow_load_be16(take(reader, 2));
	key->proto = take_proto(reader, there, before->proto);
	enum ports ports = there >> PORTS_SHIFT;
	if (ports == PORTS_NONE)
		return;
	key->sport = ports == PORTS_DESTINATION ? before->sport : ow_load_be16(take(reader, 2));
	key->dport = ports == PORTS_SOURCE ? before->dport : ow_load_be16(take(reader, 2));
}

static int64_t time_of(const struct ticks *ticks, uint64_t tick)
{
	__int128 time = ticks->first_ns + ((__int128)tick << ticks->shift);
	return time > OW_EPOCH_TIME_MAX ? OW_EPOCH_TIME_MAX : (int64_t)time;
}

static uint64_t take_bytes(struct reader *reader, unsigned bytes)
{
	const uint8_t *from = take(reader, bytes);
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

/* A sample, and room for its packets. */
struct taken_sample {
	struct ow_flow_sample sample;
	struct ow_flow_sampled packet[OW_FLOW_SAMPLE];
};

static void take_sample(struct reader *reader, int64_t first_ns, struct taken_sample *ret)
{
	uint64_t count = take_number(reader), before = 0;
	ret->sample = (struct ow_flow_sample){.packet = ret->packet};
	if (!count)
		return;
	reader->failed |= --count > OW_FLOW_SAMPLE;
	ret->sample.limit = take_bytes(reader, RANK_BYTES) + 1;
	for (uint64_t i = 0; !reader->failed && i < count; i++) {
		uint64_t rank = take_bytes(reader, RANK_BYTES), time = take_bytes(reader, SAMPLED_BYTES - RANK_BYTES);
		reader->failed |= rank < before || rank >= ret->sample.limit;
		ret->packet[i] = (struct ow_flow_sampled){.rank = rank, .time_ns = first_ns + (int64_t)time};
		before = rank;
	}
	ret->sample.count = reader->failed ? 0 : (size_t)count;
}

static void take_own(struct reader *reader, uint64_t packets, struct ow_flow_own *own)
{
	own->packets = take_number(reader);
	reader->failed |= own->packets > packets;
	if (!own->packets)
		return;
	own->sum = ow_load_le64(take(reader, 8));
	own->check = ow_load_le32(take(reader, 4));
}

/* What the header says of own counters. */
struct own_header {
	uint64_t from; /* flows of fewer packets have none */
	bool samples;
};

static void take_flow(struct reader *reader, const struct ticks *ticks, uint32_t partials, const struct own_header *own,
                      struct ow_flow_count *count, uint64_t in_partial[OW_COLATE_LAYERS_MAX],
                      struct taken_sample *sample)
{
	const struct ow_flow_key last = count->key;
	take_key(reader, &last, &count->key);
	/* Flows are in strictly increasing order, so each occurs only once. */
	reader->failed |= count->packets && by_key(&last, &count->key) >= 0;
	count->packets = take_number(reader);
	reader->failed |= count->packets >= PACKETS_MAX;
	count->packets++;
	uint64_t first = take_number(reader), more = count->packets > 1 ? take_number(reader) : 0;
	if (first >= TICKS || more >= TICKS)
		reader->failed = true;
	if (reader->failed)
		return;
	count->first_ns = time_of(ticks, first);
	count->last_ns = time_of(ticks, first + more + 1) - 1;
	count->last_ns = count->last_ns < count->first_ns ? count->first_ns : count->last_ns;
	for (uint32_t k = 0; k < partials; k++) {
		in_partial[k] = take_number(reader);
		reader->failed |= in_partial[k] > count->packets;
	}
	count->own = (struct ow_flow_own){0};
	sample->sample = (struct ow_flow_sample){0};
	if (count->packets >= own->from)
		take_own(reader, count->packets, &count->own);
	if (count->own.packets && own->samples)
		take_sample(reader, ticks->first_ns, sample);
}

int ow_epoch_take_counts(const uint8_t **at, const uint8_t *end, uint64_t seed, struct ow_flow_counts *sum,
                         struct ow_error *err)
{
	struct reader reader = {.at = *at, .end = end};
	const uint8_t *header = *at;
	if (end - header < HEADER)
		return ow_error_set(err, EPROTO, "epoch: flow counts are beyond the end");
	uint64_t flows = ow_load_le64(header);
	struct ticks ticks = {.first_ns = (int64_t)ow_load_le64(header + 16),
	                      .shift = header[24] & (HEADER_SAMPLES - 1)};
	reader.at += HEADER;
	struct own_header own = {.from = UINT64_MAX, .samples = header[24] & HEADER_SAMPLES};
	if (header[24] & HEADER_OWN)
		own.from = ow_load_le64(take(&reader, 8));
	if (reader.failed)
		return ow_error_set(err, EPROTO, "epoch: flow counts are beyond the end");
	if (flows > OW_FLOW_COUNTS_MAX || flows > (uint64_t)(end - reader.at) / ROW_MIN)
		return ow_error_set(err, EPROTO, "epoch: %llu flows are more than the bytes for them",
		                    (unsigned long long)flows);
	if (ticks.shift > SHIFT_MAX || ticks.first_ns > OW_EPOCH_TIME_MAX || ticks.first_ns < -OW_EPOCH_TIME_MAX)
		return ow_error_set(err, EPROTO, "epoch: times of flows are out of range");
	struct ow_flow_count count = {0};
	struct taken_sample sample;
	uint64_t in_partial[OW_COLATE_LAYERS_MAX];
	for (uint64_t i = 0; i < flows; i++) {
		take_flow(&reader, &ticks, ow_flow_counts_partials(sum), &own, &count, in_partial, &sample);
		if (reader.failed)
			return ow_error_set(err, EPROTO, "epoch: flow %llu of %llu is damaged",
			                    (unsigned long long)i + 1, (unsigned long long)flows);
		count.flow = ow_flow_hash(seed, &count.key);
		int r = ow_flow_counts_put(sum, &count, in_partial, &sample.sample);
		if (r < 0)
			return ow_error_set(err, -r,
			                    r == -ENOSPC ? "epoch: more than the %llu flows that are read here"
			                                 : "epoch: not enough memory for the counts of %llu flows",
			                    (unsigned long long)ow_flow_counts_flows(sum));
	}
	ow_flow_counts_add_uncounted(sum, ow_load_le64(header + 8));
	*at = reader.at;
	return 0;
}
