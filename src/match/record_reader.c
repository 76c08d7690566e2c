/* SPDX-License-Identifier: Apache-2.0 */
#include "match/record_reader.h"

#include "base/bloom.h"
#include "base/hash.h"
#include "base/time.h"
#include "packet/packet_class.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLASSED   4096 /* datagrams whose classes are remembered for their further fragments */
#define PROTO_TCP 6
#define PROTO_UDP 17
/* Bytes to prefetch ahead, at most: a small part of the second-level cache. */
#define AHEAD_MOST ((size_t)64 << 10)
/* Frames that come at random are this many times their usual time apart once in 10^8. */
#define FILES_APART 20

/* Times further than this from the epoch (146 years) could overflow when clocks are shifted. */
#define TIME_MAX_NS ((INT64_C(1) << 62) - 1)

/* Compiles a filter, or copies it from the reader that has it. */
static int take_filter(const struct ow_packet_filter *compiled, const char *path, uint16_t linktype,
                       const char *expression, struct ow_packet_filter *ret_filter, struct ow_error *err)
{
	int r = compiled ? ow_packet_filter_copy(compiled, linktype, ret_filter) : -ENOTSUP;
	if (r == -ENOMEM)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	return r == 0 ? 0 : ow_packet_filter_compile(path, linktype, expression, ret_filter, err);
}

static int take_filters(struct ow_record_reader *input, const char *path, struct ow_error *err)
{
	const struct ow_frame_choice *choice = &input->choice;
	const struct ow_record_reader *like = choice->like;
	uint16_t linktype = ow_reader_info(input->reader)->linktype;
	int r = 0;
	if (choice->filter)
		r = take_filter(like ? &like->filter : NULL, path, linktype, choice->filter, &input->filter, err);
	for (unsigned i = 0; r == 0 && i < choice->classes; i++)
		r = take_filter(like ? &like->class_filter[i] : NULL, path, linktype, choice->class_filter[i],
		                &input->class_filter[i], err);
	return r;
}

/* Finds out about stamps of a capture device, and uses them if that was asked for. */
static int find_stamps(struct ow_record_reader *input, const char *path, struct ow_error *err)
{
	int r = ow_reader_find_stamps(input->reader, &input->device, err);
	if (r < 0 || input->choice.stamps == OW_STAMPS_CAPTURE)
		return r;
	if (input->device.device != OW_DEVICE_NONE)
		ow_reader_use_stamps(input->reader, &input->device);
	else if (input->choice.stamps == OW_STAMPS_TRAILER)
		return ow_error_set(err, EINVAL, "%.200s: no time stamps of a capture device in its frames", path);
	return 0;
}

int ow_record_reader_own(struct ow_record_reader *input, struct ow_error *err)
{
	struct ow_reader *own;
	const char *path = ow_reader_info(input->reader)->path;
	int r = input->lent ? ow_reader_open(path, &own, err) : 0;
	if (r < 0 || !input->lent)
		return r;
	input->reader = own;
	input->lent = false;
	return find_stamps(input, path, err);
}

int ow_record_reader_open(struct ow_record_reader *input, const char *path, struct ow_reader *lent,
                          const struct ow_frame_choice *choice, int64_t dedup_ns, uint64_t seed, struct ow_error *err)
{
	memset(input, 0, sizeof *input);
	input->choice = *choice;
	input->reader = lent;
	input->lent = lent != NULL;
	int r = lent ? 0 : ow_reader_open(path, &input->reader, err);
	if (r == 0)
		r = find_stamps(input, path, err);
	if (r == 0)
		r = take_filters(input, path, err);
	if (r < 0) {
		ow_record_reader_close(input);
		return r;
	}
	input->fragmented = calloc(OW_IDENTITY_CUT_BITS / 64, sizeof *input->fragmented);
	if (choice->filter) {
		input->decided = calloc(OW_IDENTITY_CUT_BITS / 64, sizeof *input->decided);
		input->early = calloc(OW_IDENTITY_CUT_BITS / 64, sizeof *input->early);
	}
	if (choice->classes)
		input->classed = calloc(CLASSED, sizeof *input->classed);
	bool scarce = !input->fragmented || (choice->classes && !input->classed) ||
	              (choice->filter && (!input->decided || !input->early));
	r = !scarce ? ow_flow_table_create(seed, &input->flows) : -ENOMEM;
	if (r == 0 && dedup_ns > 0)
		r = ow_record_reader_dedup(input, &(struct ow_copy_rule){.within_ns = dedup_ns, .most = UINT32_MAX});
	if (r < 0) {
		ow_record_reader_close(input);
		return ow_error_set(err, -r, "%s: %s", path, strerror(-r));
	}
	return 0;
}

int ow_record_reader_dedup(struct ow_record_reader *input, const struct ow_copy_rule *rule)
{
	if (!input->dedup && !(input->dedup = ow_duplicate_filter_create()))
		return -ENOMEM;
	input->copies = *rule;
	return 0;
}

void ow_record_reader_close(struct ow_record_reader *input)
{
	if (!input->lent)
		ow_reader_close(input->reader);
	ow_flow_table_free(input->flows);
	ow_duplicate_filter_free(input->dedup);
	ow_packet_filter_done(&input->filter);
	for (unsigned i = 0; i < OW_MATCH_CLASSES_MAX; i++)
		ow_packet_filter_done(&input->class_filter[i]);
	free(input->fragmented);
	free(input->decided);
	free(input->early);
	free(input->classed);
	memset(input, 0, sizeof *input);
}

int ow_record_reader_start(struct ow_record_reader *input, const struct ow_identity *identity, struct ow_error *err)
{
	const struct ow_frame_choice *choice = &input->choice;
	input->identity = *identity;
	input->tells_classes = input->wants_classes && (choice->classes || choice->class_by == OW_CLASS_BY_DSCP);
	input->frames = input->next = 0;
	input->passed = false;
	input->filter.inner = identity->inner;
	for (unsigned i = 0; i < input->choice.classes; i++)
		input->class_filter[i].inner = identity->inner;
	input->cut.count = 1;
	input->cutter.first = 0;
	input->has_plain = identity->level == OW_LEVEL_IP && !identity->segments && !identity->any_ip_id &&
	                   !identity->tcp && !identity->cut && !input->notes && !input->cutter.there;
	if (input->facts.fragments)
		memset(input->fragmented, 0, OW_IDENTITY_CUT_BITS / 8);
	if (input->classed)
		memset(input->classed, 0, CLASSED * sizeof *input->classed);
	if (input->early) /* what was decided stays known */
		memset(input->early, 0, OW_IDENTITY_CUT_BITS / 8);
	input->facts = (struct ow_record_reader_facts){.least_available = UINT32_MAX};
	ow_silences_init(&input->facts.silences);
	input->previous_ns = 0;
	ow_flow_table_reset(input->flows);
	if (input->dedup)
		ow_duplicate_filter_reset(input->dedup);
	return ow_reader_rewind(input->reader, err);
}

bool ow_record_reader_can_lend(const struct ow_record_reader *input)
{
	return !ow_flow_table_is_coarse(input->flows) && !input->facts.orphans;
}

int ow_record_reader_adopt(struct ow_record_reader *input, const struct ow_record_reader *from)
{
	uint32_t flows = ow_flow_table_count(from->flows);
	if (!ow_record_reader_can_lend(from))
		return -EAGAIN;
	ow_flow_table_reset(input->flows);
	for (uint32_t i = 0; i < flows; i++) {
		if (ow_flow_table_number(input->flows, ow_flow_table_key(from->flows, i)) != i)
			return -ENOMEM;
	}
	if (input->facts.fragments || from->facts.fragments)
		memcpy(input->fragmented, from->fragmented, OW_IDENTITY_CUT_BITS / 8);
	input->identity = from->identity;
	input->facts = from->facts;
	input->previous_ns = from->previous_ns;
	input->linktype = from->linktype;
	input->passed = from->passed;
	input->has_plain = from->has_plain;
	return 0;
}

/* Updates the facts about times and returns the time of the frame. */
static __attribute__((noinline)) int64_t odd_time(struct ow_record_reader *s, const struct ow_frame *frame,
                                                  bool *ret_untimed)
{
	struct ow_record_reader_facts *f = &s->facts;
	int64_t t = frame->time_ns;
	*ret_untimed = t == 0;
	if (t == 0) {
		f->untimed++;
		if (f->untimed == f->packets)
			return s->start_ns;
		if (!frame->after_ms || s->previous_ns <= 0)
			return s->previous_ns;
		/* Good enough for the order, and for how long a packet waits. */
		t = s->previous_ns + frame->after_ms * OW_NS_PER_MS;
		f->last_ns = t > f->last_ns ? t : f->last_ns;
		return t;
	}
	t = t > TIME_MAX_NS ? TIME_MAX_NS : t < -TIME_MAX_NS ? -TIME_MAX_NS : t;
	if (f->packets - f->untimed == 1) {
		f->first_ns = f->last_ns = t;
	} else if (t < s->previous_ns) {
		f->backwards++;
		if (s->previous_ns - t > f->backwards_most_ns)
			f->backwards_most_ns = s->previous_ns - t;
		if (f->last_ns - t > f->behind_most_ns)
			f->behind_most_ns = f->last_ns - t;
	} else {
		ow_silences_note(&f->silences, f->last_ns, t);
	}
	if (t < f->first_ns)
		f->first_ns = t;
	if (t > f->last_ns)
		f->last_ns = t;
	s->previous_ns = t;
	return t;
}

/* The same for the usual case: nearly all frames come soon after the previous one. */
static inline int64_t frame_time(struct ow_record_reader *s, const struct ow_frame *frame, bool *ret_untimed)
{
	int64_t t = frame->time_ns;
	s->facts.packets++;
	if (s->previous_ns <= 0 || t < s->previous_ns || t > TIME_MAX_NS ||
	    t - s->previous_ns > s->facts.silences.least_ns)
		return odd_time(s, frame, ret_untimed);
	*ret_untimed = false;
	s->facts.last_ns = t > s->facts.last_ns ? t : s->facts.last_ns;
	s->previous_ns = t;
	return t;
}

/* The time of a frame that has passed the filter. */
static inline int64_t record_time(struct ow_record_reader *s, const struct ow_frame *frame, bool *ret_untimed)
{
	if (!s->choice.filter)
		return frame_time(s, frame, ret_untimed);
	*ret_untimed = s->untimed[frame - s->frame];
	return s->time_ns[frame - s->frame];
}

/*
 * Only the first fragment of a datagram has ports: its classes are those of the others, too. One that comes before the
 * first, or long after it, is classified as it is.
 */
static uint8_t classes_of_fragment(const struct ow_record_reader *s, const struct ow_packet *packet, uint8_t classes)
{
	uint64_t name;
	if (!ow_identity_of_fragment(&s->identity, packet, &name))
		return classes;
	struct ow_classed_datagram *classed = &s->classed[name % CLASSED];
	if (packet->l4)
		*classed = (struct ow_classed_datagram){name, classes};
	return classed->name == name ? classed->classes : classes;
}

/* The classes that accept the packet, as bits; or its DSCP. */
static uint8_t classes_of(const struct ow_record_reader *s, const struct ow_frame *frame)
{
	struct ow_packet packet;
	unsigned classes = 0;
	bool ip = ow_packet_decode(frame, s->identity.inner, &packet) == OW_DECODE_IP;
	bool by_ip = ip && s->identity.level != OW_LEVEL_FRAME;
	if (s->choice.class_by == OW_CLASS_BY_DSCP)
		return by_ip ? ow_packet_dscp(&packet) : OW_CLASSES_MAX;
	for (unsigned i = 0; i < s->choice.classes; i++) {
		const struct ow_packet_filter *filter = &s->class_filter[i];
		bool takes = filter->frames ? ow_packet_filter_takes(filter, frame)
		                            : ip && ow_packet_filter_takes_packet(filter, &packet);
		classes |= (unsigned)takes << i;
	}
	return by_ip && packet.fragment ? classes_of_fragment(s, &packet, (uint8_t)classes) : (uint8_t)classes;
}

static void note_length(struct ow_record_reader_facts *f, uint8_t proto, uint32_t ip_len)
{
	uint32_t *longest = proto == PROTO_TCP ? &f->longest_tcp : &f->longest_udp;
	if ((proto == PROTO_TCP || proto == PROTO_UDP) && ip_len > *longest)
		*longest = ip_len;
}

/* A UDP datagram that is noted, or cut if it is a superframe. */
static bool identify_datagram(struct ow_record_reader *s, const struct ow_packet *packet, struct ow_packet_id *ret_id)
{
	struct ow_datagram datagram;
	if ((!s->notes && !s->cutter.there) || !ow_identity_datagram(&s->identity, packet, &datagram))
		return false;
	*ret_id = (struct ow_packet_id){.id = ow_identity_of_part(&s->identity, &datagram, 0, datagram.len)};
	if (s->notes)
		ow_datagrams_note(s->notes, ret_id->id, datagram.len);
	else
		ow_cutter_cut(&s->cutter, &s->identity, &datagram, &s->cut);
	return true;
}

/* Notes the datagram of a fragment. */
static void note_fragment(struct ow_record_reader *s, const struct ow_packet *packet)
{
	uint64_t name;
	s->facts.fragments++;
	if (ow_identity_of_fragment(&s->identity, packet, &name))
		ow_bloom_add(s->fragmented, OW_IDENTITY_CUT_BITS, name);
}

static uint8_t part_of(const struct ow_packet *packet, const struct ow_packet_id *id)
{
	bool may_cut = packet->version == 4 && !(packet->ip[6] & 0x40);
	return (uint8_t)((id->datagram ? OW_PART_NAMED : 0) | (packet->fragment ? OW_PART_FRAGMENT : 0) |
	                 (may_cut ? OW_PART_MAY_CUT : 0));
}

static int identify_packet(struct ow_record_reader *s, const struct ow_packet *packet, struct ow_record *record)
{
	struct ow_record_reader_facts *f = &s->facts;
	if (packet->has_tunnel && !packet->tunnels && packet->ip_len > f->longest_tunnel)
		f->longest_tunnel = packet->ip_len;
	if (packet->fragment)
		note_fragment(s, packet);
	else
		note_length(f, packet->proto, packet->ip_len);
	if (packet->truncated && !packet->overlong) {
		uint32_t available = ow_identity_available(packet, s->identity.tcp);
		if (available < f->least_available)
			f->least_available = available;
	}
	struct ow_packet_id id;
	s->cut.count = 1;
	/* A datagram that a point shows in fragments is not a superframe. */
	bool named = s->identity.cut && ow_identity_of_packet(&s->identity, packet, &id) == 0 && id.datagram;
	if (!named && !identify_datagram(s, packet, &id) && ow_identity_of_packet(&s->identity, packet, &id) < 0) {
		f->below_limit++;
		return -ENODATA;
	}
	struct ow_flow_key key;
	ow_flow_key_of_packet(packet, &key);
	if (s->identity.routed && packet->proto != PROTO_UDP && ow_flow_key_is_anonymous(&key)) {
		f->not_routed++;
		return -ENODATA;
	}
	record->id = id.id;
	record->seq = id.seq;
	record->len = id.len;
	record->part = part_of(packet, &id);
	record->flow = ow_flow_table_number(s->flows, &key);
	record->bytes = packet->ip_len;
	return 0;
}

static int identify_frame(struct ow_record_reader *s, const struct ow_frame *frame, struct ow_record *record)
{
	struct ow_packet_id id;
	if (frame->caplen < frame->len && frame->caplen < s->facts.least_available)
		s->facts.least_available = frame->caplen;
	if (ow_identity_of_frame(&s->identity, frame, &id) < 0) {
		s->facts.below_limit++;
		return -ENODATA;
	}
	struct ow_flow_key key;
	ow_flow_key_of_frame(frame, &key);
	record->id = id.id;
	record->seq = record->len = 0;
	record->part = 0;
	record->flow = ow_flow_table_number(s->flows, &key);
	record->bytes = frame->len;
	return 0;
}

/* Lengths of plain packets; without branches, because they are not predictable. */
static void note_plains(struct ow_record_reader_facts *f, const struct ow_plain *plain, size_t count)
{
	uint32_t tcp = f->longest_tcp, udp = f->longest_udp, least = f->least_available;
	for (size_t i = 0; i < count; i++) {
		uint32_t len = plain[i].ip_len, as_tcp = len * (plain[i].proto == PROTO_TCP), as_udp = len - as_tcp;
		uint32_t available = plain[i].captured < len ? plain[i].captured : UINT32_MAX;
		tcp = as_tcp > tcp ? as_tcp : tcp;
		udp = as_udp > udp ? as_udp : udp;
		least = available < least ? available : least;
	}
	f->longest_tcp = tcp;
	f->longest_udp = udp;
	f->least_available = least;
}

static inline void make_plain_record(struct ow_record_reader *s, const struct ow_frame *frame,
                                     const struct ow_plain *plain, uint32_t flow, struct ow_record *record)
{
	record->time_ns = record_time(s, frame, &record->untimed);
	record->number = frame->number;
	record->classes = s->tells_classes ? classes_of(s, frame) : 0;
	record->id = plain->id;
	record->seq = record->len = 0;
	record->part = 0;
	record->flow = flow;
	record->bytes = plain->ip_len;
	record->lag_ns = UINT32_MAX;
	record->again = record->flying = record->doubtful = false;
}

/* Notes the TCP data of a frame, for later. Of more flows than can be kept apart, it is not known what repeats what. */
static void note_header(struct ow_record_reader *s, const struct ow_frame *frame, const struct ow_record *record)
{
	struct ow_packet packet;
	bool coarse = ow_flow_key_is_coarse(ow_flow_table_key(s->flows, record->flow));
	if (s->identity.level == OW_LEVEL_FRAME || ow_packet_decode(frame, s->identity.inner, &packet) != OW_DECODE_IP)
		return;
	int r = ow_tcp_headers_note(s->headers, record->number, record->time_ns, coarse ? UINT32_MAX : record->flow,
	                            &packet);
	s->failed = s->failed ? s->failed : r;
}

static void note_copy(struct ow_record_reader *s, struct ow_record *record)
{
	ow_duplicate_filter_note(s->dedup, &s->copies, record);
	s->facts.copies += record->again;
}

/*
 * The fast path for nearly all packets, many at a time. Returns how many of the frames are plain, which is the number
 * of records.
 */
static int take_plains(struct ow_record_reader *s, const struct ow_frame *frame, int count, struct ow_record *record)
{
	uint32_t flow[OW_RECORD_READER_FRAMES];
	size_t plains =
		s->has_plain ? ow_identity_of_plains(&s->identity, frame, (size_t)count, s->ahead, s->plain) : 0;
	ow_flow_table_number_plain(s->flows, s->plain, plains, flow);
	note_plains(&s->facts, s->plain, plains);
	for (size_t i = 0; i < plains; i++) {
		make_plain_record(s, &frame[i], &s->plain[i], flow[i], &record[i]);
		if (s->headers)
			note_header(s, &frame[i], &record[i]);
		if (s->dedup)
			note_copy(s, &record[i]);
	}
	return (int)plains;
}

static int make_record(struct ow_record_reader *s, const struct ow_frame *frame, struct ow_record *record)
{
	if (s->identity.level == OW_LEVEL_FRAME)
		return identify_frame(s, frame, record);
	struct ow_packet packet;
	switch (ow_packet_decode(frame, s->identity.inner, &packet)) {
	case OW_DECODE_IP:
		return identify_packet(s, &packet, record);
	case OW_DECODE_NOT_IP:
		s->facts.not_ip++;
		return -ENODATA;
	case OW_DECODE_SHORT:
		s->facts.too_short++;
		return -ENODATA;
	default:
		s->facts.bad_link++;
		return -ENODATA;
	}
}

/* Replaces the record of a superframe by those of its segments. */
static int spread(const struct ow_cut *cut, struct ow_record *record)
{
	const struct ow_record whole = *record;
	uint32_t left = cut->len, headers = whole.bytes - cut->len;
	for (unsigned i = 0; i < cut->count; i++) {
		uint32_t len = left < cut->size ? left : cut->size;
		record[i] = whole;
		record[i].id = cut->id[i];
		record[i].bytes = headers + len;
		left -= len;
	}
	return (int)cut->count;
}

/* The pair to which a flow belongs enters the ids of its packets. */
static void name_pair(const struct ow_record_reader *s, struct ow_record *record, int count)
{
	uint32_t pair = record->flow < s->pairs ? s->pair[record->flow] : 0;
	for (int i = 0; i < count && pair; i++)
		record[i].id = ow_mix64(record[i].id ^ pair);
}

/* The records of a frame: one, or those of its segments; none if it has no identity. */
static int take_frame(struct ow_record_reader *s, const struct ow_frame *frame, struct ow_record *record)
{
	record->time_ns = record_time(s, frame, &record->untimed);
	record->number = frame->number;
	record->classes = s->tells_classes ? classes_of(s, frame) : 0;
	record->lag_ns = UINT32_MAX;
	record->again = record->flying = record->doubtful = false;
	if (make_record(s, frame, record) < 0)
		return 0;
	if (s->headers)
		note_header(s, frame, record);
	if (s->dedup)
		note_copy(s, record);
	int count = s->cut.count == 1 || record->again ? 1 : spread(&s->cut, record);
	if (s->pairs)
		name_pair(s, record, count);
	return count;
}

/*
 * Notes the time between two files of a set, if it is far longer than that between two frames: a file may be missing.
 */
static void note_gap_between_files(struct ow_record_reader *input, int64_t time_ns)
{
	struct ow_record_reader_facts *f = &input->facts;
	if (!f->packets || input->previous_ns <= 0 || time_ns <= f->last_ns || time_ns > TIME_MAX_NS)
		return;
	int64_t usual_ns = (f->last_ns - f->first_ns) / (int64_t)f->packets;
	if (time_ns - f->last_ns <= FILES_APART * usual_ns)
		return;
	ow_silences_note_files(&f->silences, f->last_ns, time_ns);
	input->previous_ns = time_ns; /* so that it is not noted as a silence within a file */
}

/* Keeps the frames of the time that was asked for. Returns how many. */
static int keep_in_time(struct ow_record_reader *input, int frames)
{
	/* Frames of a capture may be out of order by as much as anyone waits for a packet. */
	const int64_t disorder_ns = 60 * OW_NS_PER_S;
	int kept = 0;
	for (int i = 0; i < frames; i++) {
		int64_t t = input->frame[i].time_ns;
		input->passed |= t > input->choice.until_ns && t - disorder_ns > input->choice.until_ns;
		if (t >= input->choice.since_ns && t < input->choice.until_ns)
			input->frame[kept++] = input->frame[i];
	}
	return kept;
}

/* The name of a datagram with the filter's verdict on it, for the Bloom filters. */
static uint64_t with_verdict(uint64_t name, bool taken)
{
	return taken ? name : ow_mix64(name);
}

/*
 * Whether the filter accepts the datagram of a fragment. Only the first fragment has ports: the filter's verdict on it is that
 * on the others, too. One that comes before the first, or whose first is not there, is judged as it is, and counted:
 * the next pass knows better, from both captures.
 */
static bool takes_fragment(struct ow_record_reader *s, const struct ow_packet *packet, bool taken)
{
	uint64_t name;
	if (!ow_identity_of_fragment(&s->identity, packet, &name))
		return taken;
	if (packet->l4) {
		s->facts.early_fragments += ow_bloom_has(s->early, OW_IDENTITY_CUT_BITS, with_verdict(name, !taken));
		ow_bloom_add(s->decided, OW_IDENTITY_CUT_BITS, with_verdict(name, taken));
		return taken;
	}
	for (int verdict = 1; verdict >= 0; verdict--) {
		if (ow_bloom_has(s->decided, OW_IDENTITY_CUT_BITS, with_verdict(name, verdict)))
			return verdict;
	}
	s->facts.orphans++;
	ow_bloom_add(s->early, OW_IDENTITY_CUT_BITS, with_verdict(name, taken));
	return taken;
}

bool ow_record_readers_share(struct ow_record_reader inputs[OW_SIDES])
{
	struct ow_record_reader *a = &inputs[OW_SIDE_A], *b = &inputs[OW_SIDE_B];
	if (!a->decided || !(a->facts.orphans + b->facts.orphans))
		return false;
	for (size_t i = 0; i < OW_IDENTITY_CUT_BITS / 64; i++)
		a->decided[i] = b->decided[i] |= a->decided[i];
	return true;
}

static bool takes(struct ow_record_reader *s, const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (s->filter.frames)
		return ow_packet_filter_takes(&s->filter, frame);
	if (ow_packet_decode(frame, s->filter.inner, &packet) != OW_DECODE_IP)
		return false;
	bool taken = ow_packet_filter_takes_packet(&s->filter, &packet);
	return packet.fragment ? takes_fragment(s, &packet, taken) : taken;
}

/*
 * Keeps the frames that the filter accepts. Times of all frames are noted before: a capture covers the time in which
 * it shows other packets.
 */
static int keep_filtered(struct ow_record_reader *input, int frames)
{
	int kept = 0;
	for (int i = 0; i < frames; i++) {
		bool untimed;
		int64_t t = frame_time(input, &input->frame[i], &untimed);
		if (!takes(input, &input->frame[i]))
			continue;
		input->time_ns[kept] = t;
		input->untimed[kept] = untimed;
		input->frame[kept++] = input->frame[i];
	}
	input->facts.filtered += (uint64_t)(frames - kept);
	return kept;
}

static int64_t first_time(const struct ow_frame *frame, int frames)
{
	for (int i = 0; i < frames; i++) {
		if (frame[i].time_ns)
			return frame[i].time_ns;
	}
	return 0;
}

/* Reads frames until some are chosen. Returns how many, 0 at the end. */
static int read_chosen(struct ow_record_reader *input, struct ow_error *err)
{
	bool timed = input->choice.since_ns != INT64_MIN || input->choice.until_ns != INT64_MAX;
	for (;;) {
		int frames =
			input->passed ? 0 : ow_reader_read(input->reader, input->frame, OW_RECORD_READER_FRAMES, err);
		if (frames <= 0)
			return frames;
		if (timed)
			frames = keep_in_time(input, frames);
		if (frames && input->facts.packets == 0)
			input->linktype = input->frame[0].linktype;
		if (frames && input->facts.packets == input->facts.untimed)
			input->start_ns = first_time(input->frame, frames);
		if (frames && ow_reader_info(input->reader)->after_gap)
			note_gap_between_files(input, input->frame[0].time_ns);
		if (frames && input->choice.filter)
			frames = keep_filtered(input, frames);
		if (frames)
			return frames;
	}
}

/*
 * The distance at which to prefetch, from the frames that were read: as long as the longest batch of frames so far. A
 * distance that followed each batch would leave out what a longer batch has more than the one before it.
 */
static size_t look_ahead(const struct ow_record_reader *input, int frames)
{
	size_t span = (size_t)(input->frame[frames - 1].data - input->frame[0].data);
	size_t ahead = span > input->ahead ? span : input->ahead;
	return ahead < AHEAD_MOST ? ahead : AHEAD_MOST;
}

static int read_frames(struct ow_record_reader *input, struct ow_error *err)
{
	int frames = read_chosen(input, err);
	bool mapped = frames > 0 && ow_reader_info(input->reader)->mapped;
	input->frames = frames > 0 ? frames : 0;
	input->next = 0;
	input->ahead = mapped ? look_ahead(input, frames) : 0;
	return frames;
}

int ow_record_reader_read(struct ow_record_reader *input, struct ow_record record[OW_RECORD_READER_BATCH],
                          struct ow_error *err)
{
	int records = 0, most = OW_RECORD_READER_BATCH - (input->cutter.there ? (int)OW_CUTS_MAX : 1);
	while (records <= most) {
		int more = input->next == input->frames ? read_frames(input, err) : 1;
		if (more < 0)
			return more;
		if (more == 0)
			break;
		int i = input->next, room = OW_RECORD_READER_BATCH - records, left = input->frames - i;
		int plains = take_plains(input, &input->frame[i], left < room ? left : room, &record[records]);
		input->facts.mixed_links |= input->frame[i].linktype != input->linktype;
		records += plains;
		input->next += plains;
		if (plains)
			continue;
		if (input->ahead)
			ow_frame_load_ahead(&input->frame[i], input->ahead);
		records += take_frame(input, &input->frame[i], &record[records]);
		input->next++;
	}
	if (input->failed < 0)
		return ow_error_set(err, -input->failed, "out of memory");
	return records;
}

uint64_t ow_record_reader_skipped(const struct ow_record_reader_facts *facts)
{
	return facts->copies + facts->not_ip + facts->too_short + facts->bad_link + facts->below_limit +
	       facts->not_routed;
}
