/* SPDX-License-Identifier: Apache-2.0 */
#include "match/survey.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "packet/flow.h"
#include "packet/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH             256
#define OUTLOOK_FRAMES    2000
#define TICK_DIFFERENT    8      /* different times between packets, or numbers of packets of one time */
#define TICK_LEAST_NS     10000  /* finer than this they are as good as software can stamp */
#define SNAPLEN_UNLIMITED 65535u /* tools write this or more if they do not truncate */
#define PROTO_TCP         6
#define PROTO_UDP         17
#define LIMIT_LEAST       40u /* an IPv6 header; an IPv4 and a TCP header: fewer bytes identify nothing */

bool ow_variant_among(enum ow_variant variant, enum ow_selection which)
{
	if (which == OW_SELECT_FIRST)
		return variant == OW_VARIANT_IP;
	return ow_variant_loose(variant) == (which == OW_SELECT_LOOSE);
}

static void lower(uint32_t *limit, uint32_t value)
{
	if (value < LIMIT_LEAST)
		value = LIMIT_LEAST;
	if (value < *limit)
		*limit = value;
}

/* The first of the variants that use as many bytes of a packet. */
static enum ow_variant first_like(bool inner, bool any_tcp)
{
	if (any_tcp)
		return inner ? OW_VARIANT_IP_INNER_ANY_TCP : OW_VARIANT_IP_ANY_TCP;
	return inner ? OW_VARIANT_IP_INNER : OW_VARIANT_IP;
}

/* The bytes that the snaplen leaves of a packet that begins at this offset of its frame, if it is long enough. */
static void look_at(struct ow_outlook *o, const struct ow_frame *frame, uint32_t snaplen)
{
	bool cuts = snaplen > 0 && snaplen < SNAPLEN_UNLIMITED;
	if (cuts || frame->caplen < frame->len)
		lower(&o->limit[OW_VARIANT_FRAME], cuts && snaplen < frame->caplen ? snaplen
		                                   : frame->caplen < frame->len    ? frame->caplen
		                                                                   : snaplen);
	for (int inner = 0; inner < 2; inner++) {
		struct ow_packet packet;
		if (ow_packet_decode(frame, inner, &packet) != OW_DECODE_IP)
			continue;
		o->ip += !inner;
		o->ipv6 += !inner && packet.version == 6;
		o->fragments += !inner && packet.fragment && packet.version == 4;
		uint32_t *longest = packet.proto == PROTO_UDP ? &o->longest_udp : &o->longest_tcp;
		if ((packet.proto == PROTO_UDP || packet.proto == PROTO_TCP) && !packet.fragment &&
		    packet.ip_len > *longest)
			*longest = packet.ip_len;
		o->cut_short += !inner && packet.truncated && !packet.overlong &&
		                ow_identity_available(&packet, OW_TCP_EXACT) < LIMIT_LEAST;
		uint32_t offset = (uint32_t)(packet.ip - frame->data);
		for (int any_tcp = 0; any_tcp < 2; any_tcp++) {
			uint32_t *limit = &o->limit[first_like(inner, any_tcp)];
			if (cuts)
				lower(limit, snaplen > offset ? snaplen - offset : 0);
			if (packet.truncated && !packet.overlong)
				lower(limit,
				      ow_identity_available(&packet, any_tcp ? OW_TCP_ANY_NUMBERS : OW_TCP_EXACT));
		}
	}
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Notes a number, if it is new and there is room. */
static void note_different(int64_t seen[TICK_DIFFERENT], size_t *count, int64_t number)
{
	size_t i = 0;
	while (i < *count && seen[i] != number)
		i++;
	if (i == *count && *count < TICK_DIFFERENT)
		seen[(*count)++] = number;
}

/*
 * What all timestamps are multiples of: a clock that is read coarser than the file says. Traffic with a period looks the
 * same, but the times between its packets, and the number of packets of one time, are alike.
 */
static int64_t tick_of(const int64_t *time_ns, size_t count)
{
	int64_t tick = 0, length[TICK_DIFFERENT], packets[TICK_DIFFERENT];
	size_t lengths = 0, numbers = 0, since = 0;
	for (size_t i = 1; i < count && tick != 1; i++)
		tick = common_divisor(llabs(time_ns[i] - time_ns[0]), tick);
	for (size_t i = 1; i < count && tick >= TICK_LEAST_NS; i++) {
		if (time_ns[i] == time_ns[i - 1])
			continue;
		note_different(length, &lengths, time_ns[i] - time_ns[i - 1]);
		note_different(packets, &numbers, (int64_t)(i - since));
		since = i;
	}
	return lengths + numbers >= TICK_DIFFERENT ? tick : 0;
}

int ow_outlook_take(struct ow_reader *reader, struct ow_outlook *ret_outlook, struct ow_error *err)
{
	struct ow_outlook o = {.empty = true, .untimed = true};
	struct ow_frame frame[BATCH];
	int64_t time_ns[OUTLOOK_FRAMES];
	size_t times = 0;
	uint32_t snaplen = ow_reader_info(reader)->snaplen;
	memset(o.limit, 0xff, sizeof o.limit);
	while (o.frames < OUTLOOK_FRAMES) {
		int n = ow_reader_read(reader, frame, BATCH, err);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		for (int i = 0; i < n; i++) {
			if (frame[i].time_ns != 0 && o.untimed)
				o.first_ns = frame[i].time_ns;
			o.untimed &= frame[i].time_ns == 0;
			if (frame[i].time_ns > 0 && times < OUTLOOK_FRAMES)
				time_ns[times++] = frame[i].time_ns;
			look_at(&o, &frame[i], snaplen);
		}
		o.frames += (uint64_t)n;
		o.empty = false;
	}
	for (unsigned v = 0; v < OW_VARIANTS; v++) {
		if (v != OW_VARIANT_FRAME)
			o.limit[v] = o.limit[first_like(ow_variant_inner(v), ow_variant_any_tcp(v))];
	}
	o.tick_ns = tick_of(time_ns, times);
	*ret_outlook = o;
	return 0;
}

int ow_survey_init(struct ow_survey *survey, enum ow_selection which)
{
	memset(survey, 0, sizeof *survey);
	for (unsigned v = 0; v < OW_VARIANTS; v++) {
		if (ow_variant_among(v, which) && ow_sample_init(&survey->sample[v]) < 0) {
			ow_survey_done(survey);
			return -ENOMEM;
		}
	}
	return 0;
}

void ow_survey_done(struct ow_survey *survey)
{
	for (unsigned v = 0; v < OW_VARIANTS; v++)
		ow_sample_done(&survey->sample[v]);
}

static uint64_t address_hash(const uint8_t address[16])
{
	return ow_mix64(ow_load_le64(address) ^ ow_mix64(ow_load_le64(address + 8) + 1));
}

static void name_hosts(const struct ow_flow_key *key, struct ow_sampled *packet)
{
	uint64_t from = address_hash(key->src), to = address_hash(key->dst);
	packet->hosts = from ^ to;
	packet->reverse = from > to;
}

struct surveyor {
	struct ow_survey *survey;
	struct ow_identity identity[OW_VARIANTS];
	enum ow_selection which;
	enum ow_variant variant[2][OW_VARIANTS]; /* of packets: those that do not enter tunnels, and those that do */
	unsigned variants[2];
};

static void offer_packet(struct surveyor *s, enum ow_variant variant, const struct ow_packet *packet, int64_t time_ns)
{
	struct ow_identity_sample *sample = &s->survey->sample[variant];
	struct ow_packet_id id;
	if (ow_identity_of_packet(&s->identity[variant], packet, &id) < 0)
		return;
	sample->offered++;
	if (!ow_sample_wants(sample, id.id))
		return;
	struct ow_flow_key key;
	struct ow_sampled sampled = {.id = id.id, .time_ns = time_ns, .ttl = packet->ip[packet->version == 4 ? 8 : 7]};
	ow_flow_key_of_packet(packet, &key);
	name_hosts(&key, &sampled);
	ow_sample_add(sample, &sampled);
}

static void offer_frame(struct surveyor *s, const struct ow_frame *frame)
{
	struct ow_identity_sample *sample = &s->survey->sample[OW_VARIANT_FRAME];
	struct ow_packet_id id;
	if (ow_identity_of_frame(&s->identity[OW_VARIANT_FRAME], frame, &id) < 0)
		return;
	sample->offered++;
	if (!ow_sample_wants(sample, id.id))
		return;
	struct ow_flow_key key;
	struct ow_sampled sampled = {.id = id.id, .time_ns = frame->time_ns};
	ow_flow_key_of_frame(frame, &key);
	name_hosts(&key, &sampled);
	ow_sample_add(sample, &sampled);
}

/* Without their numbers, TCP segments without data are identical, also those of other connections. */
static bool has_substance(const struct ow_packet *packet)
{
	const uint8_t *l4 = packet->l4;
	return packet->proto != PROTO_TCP || packet->fragment ||
	       (l4 && packet->end - l4 > 12 && packet->l4_len > (l4[12] >> 4) * 4u);
}

/* Under all identities of the survey that enter tunnels, or do not. */
static void offer_as(struct surveyor *s, const struct ow_frame *frame, bool inner)
{
	struct ow_packet packet;
	if (ow_packet_decode(frame, inner, &packet) != OW_DECODE_IP)
		return;
	for (unsigned i = 0; i < s->variants[inner]; i++) {
		enum ow_variant v = s->variant[inner][i];
		if (!ow_variant_any_tcp(v) || has_substance(&packet))
			offer_packet(s, v, &packet, frame->time_ns);
	}
}

static void offer(struct surveyor *s, const struct ow_frame *frame)
{
	offer_as(s, frame, false);
	if (s->which == OW_SELECT_FIRST)
		return;
	offer_as(s, frame, true);
	if (s->which == OW_SELECT_USUAL)
		offer_frame(s, frame);
}

int ow_survey_read(struct ow_survey *survey, struct ow_reader *reader, const uint32_t limit[OW_VARIANTS],
                   enum ow_selection which, int64_t from_ns, uint64_t max_frames, uint64_t seed, struct ow_error *err)
{
	struct surveyor s = {.survey = survey, .which = which};
	struct ow_frame frame[BATCH];
	for (unsigned v = 0; v < OW_VARIANTS; v++) {
		s.identity[v] = (struct ow_identity){.level = ow_variant_level(v),
		                                     .inner = ow_variant_inner(v),
		                                     .any_ip_id = ow_variant_any_ip_id(v),
		                                     .tcp = ow_variant_any_tcp(v) ? OW_TCP_ANY_NUMBERS : OW_TCP_EXACT,
		                                     .hash_limit = limit[v]};
		ow_identity_seed(&s.identity[v], seed);
		bool inner = ow_variant_inner(v);
		if (v != OW_VARIANT_FRAME && ow_variant_among(v, which))
			s.variant[inner][s.variants[inner]++] = v;
	}
	for (unsigned v = 0; v < OW_VARIANTS; v++)
		survey->sample[v].joined = ow_reader_info(reader)->files > 1;
	int r = ow_reader_rewind(reader, err);
	for (uint64_t taken = 0; r == 0 && taken < max_frames;) {
		int n = ow_reader_read(reader, frame, BATCH, err);
		if (n <= 0)
			return n;
		for (int i = 0; i < n && taken < max_frames; i++) {
			if (frame[i].time_ns < from_ns)
				continue;
			if (!survey->first_ns)
				survey->first_ns = frame[i].time_ns;
			survey->last_ns = frame[i].time_ns;
			offer(&s, &frame[i]);
			taken++;
		}
	}
	return r;
}
