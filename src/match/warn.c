/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about the result: damage, clocks, timestamps, truncation, traffic that passes only one point. */
#include "match/match.h"

#include "base/side.h"
#include "base/word.h"
#include "estimate/clock_words.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLOW_FLOOR_NS  (500 * OW_NS_PER_MS) /* a larger minimum delay is probably a clock error */
#define MTU_USUAL      1500
#define CHANCE_SAMPLES 8 /* delays that are needed to judge their spread, .. */
#define CHANCE_SPREAD \
	0.15 /* .. and standard deviation as a share of the possible range: at random it is 0.29 or more */
#define MANY_AMBIGUOUS    0.1
#define MANY_ALIKE        0.01
#define OVERTAKEN_NS      (10 * OW_NS_PER_MS) /* packets that are closer may overtake each other, whatever the delays; .. */
#define UNSEEN_MOST       4.6  /* .. what n packets do not show happens to less than 4.6 / n of all (99 %), .. */
#define UNSEEN_RARE       1e-4 /* .. and does not matter if it concerns less than this share of them */
#define MANY_UNCLASSIFIED 0.01
#define MANY_UNSENT       0.001 /* share that arrived without having been sent, .. */
#define MANY_LOST         0.01
#define FEW_UNSENT        3     /* .. and as many packets */
#define MISSES_ALIKE      0.25  /* the share that is missing of what arrives here is at most four times as large */
#define UNARRIVED_CHANCE  1e-3  /* the packets that were sent last are probably not independent losses */
#define HEADERS_TO_CUT    54    /* bytes of IPv6 and TCP headers that are needed to cut superframes */
#define HOLES_NAMED       4     /* holes of a capture that are named one by one */
#define FRAGMENTS_ALL     0.8   /* at least this share of what arrived without having been sent */
#define MANY_FRAGMENTS    0.001 /* share of fragments that were made on the way */

static int warn(struct ow_match *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int warn(struct ow_match *m, const char *format, ...)
{
	if (m->warnings == OW_MATCH_WARNINGS)
		return 0;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&m->warning[m->warnings], format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	m->warnings++;
	return 0;
}

#define WHEN_TEXT 40

static const char *when_text(int64_t time_ns, char text[WHEN_TEXT])
{
	time_t seconds = (time_t)(time_ns / OW_NS_PER_S);
	struct tm utc;
	size_t end = gmtime_r(&seconds, &utc) ? strftime(text, WHEN_TEXT, "%Y-%m-%d %H:%M:%S", &utc) : 0;
	snprintf(text + end, WHEN_TEXT - end, ".%03d UTC", (int)(time_ns % OW_NS_PER_S / OW_NS_PER_MS));
	return text;
}

static const char *name(unsigned side)
{
	return side == OW_SIDE_A ? "A" : "B";
}

/* The reader's own message begins with the path of the file: that of the capture, or of one of its set. */
static int warn_damage(struct ow_match *m, unsigned side)
{
	const char *damage = ow_reader_damage(m->pass.input[side].reader), *path = m->report.capture[side].path;
	size_t length = strlen(path);
	if (!damage)
		return 0;
	bool whole = strncmp(damage, path, length) == 0 && damage[length] == ':';
	return whole ? warn(m, "%s%s", name(side), damage + length) : warn(m, "%s: %s", name(side), damage);
}

/* Copies that the capture shows, left out. */
static int warn_copies(struct ow_match *m, unsigned side)
{
	const struct ow_record_reader *input = &m->pass.input[side];
	uint64_t copies = input->facts.copies - m->pass.resent[side], resent = m->pass.resent[side];
	uint64_t lost = m->pass.maybe_copied[side];
	char longest[OW_DURATION_TEXT], doubt[200] = "", more[100] = "";
	if (!copies)
		return 0;
	if (m->options.dedup_ns)
		return warn(m, "%s: %llu %s of what the capture had shown before; left out", name(side),
		            (unsigned long long)copies, ow_plural(copies, "packet is a copy", "packets are copies"));
	ow_duration_text((double)ow_copy_rule_longest(&input->copies), longest);
	if (resent)
		snprintf(doubt, sizeof doubt,
		         "; hosts repeat packets as soon as that, too: a lost one among them looks like a copy, and "
		         "their "
		         "delays may be off by as much");
	if (lost)
		snprintf(more, sizeof more, "; %llu %s as lost may be among them", (unsigned long long)lost,
		         ow_plural(lost, "packet that counts", "packets that count"));
	return warn(m,
	            "%s shows packets more than once (a mirror port, a bridge, all interfaces at once?): %llu further "
	            "%s within %s left out; --dedup off leaves them in%s%s",
	            name(side), (unsigned long long)copies, ow_plural(copies, "copy", "copies"), longest, doubt, more);
}

/* What a capture says of its own drops. A packet that B's capture dropped counts as lost from A to B, or as extra at A. */
static int warn_dropped(struct ow_match *m, unsigned side)
{
	uint64_t dropped = m->report.dropped[side];
	enum ow_direction arriving = side == OW_SIDE_B ? OW_A_TO_B : OW_B_TO_A;
	uint64_t lost = m->report.direction[arriving].lost, part = lost < dropped ? lost : dropped;

	if (dropped == 0)
		return 0;
	char arrived[160] = "it may count as extra at the other point";
	if (lost)
		snprintf(arrived, sizeof arrived, "up to %llu of the %llu %s from %s to %s may have arrived",
		         (unsigned long long)part, (unsigned long long)lost,
		         ow_plural(lost, "packet lost", "packets lost"), name(!side), name(side));
	size_t said = m->warnings;
	int r = warn(m, "%s: the capture dropped %llu %s, as it says itself: that is no loss of the network; %s",
	             name(side), (unsigned long long)dropped, ow_plural(dropped, "packet", "packets"), arrived);
	m->missed[side] = m->warnings > said ? m->warning[said] : NULL;
	return r;
}

/* A file whose header declares the wrong unit of time, or that is damaged. */
static int warn_unit(struct ow_match *m, unsigned side)
{
	const struct ow_reader_info *info = ow_reader_info(m->pass.input[side].reader);
	int r = info->wrong_unit
	                ? warn(m, "%s: declares microseconds, but has nanoseconds: its times are read so", name(side))
	                : 0;

	if (r < 0 || info->excess == 0)
		return r;
	return warn(m, "%s: %llu %s a fraction of a second of more than a second, so the times are wrong%s", name(side),
	            (unsigned long long)info->excess, ow_plural(info->excess, "packet has", "packets have"),
	            info->resolution_ns > 1 ? " (nanoseconds in a file that declares microseconds?)" : "");
}

/* Timestamps that are coarser than the file says. */
static int warn_tick(struct ow_match *m, unsigned side)
{
	int64_t tick_ns = m->report.capture[side].resolution_ns;
	char text[OW_DURATION_TEXT];
	if (tick_ns <= ow_reader_info(m->pass.input[side].reader)->resolution_ns)
		return 0;
	ow_duration_text((double)tick_ns, text);
	return warn(m, "%s: all timestamps are multiples of %s: each delay may be off by as much", name(side), text);
}

static int warn_capture(struct ow_match *m, unsigned side)
{
	const struct ow_record_reader *input = &m->pass.input[side];
	const struct ow_record_reader_facts *f = &input->facts;
	char text[OW_DURATION_TEXT];
	int r = warn_damage(m, side);
	if (r == 0 && ow_reader_note(input->reader))
		r = warn(m, "%s: %s", name(side), ow_reader_note(input->reader));
	if (r == 0)
		r = warn_dropped(m, side);
	if (r == 0)
		r = warn_unit(m, side);
	const struct ow_result *to = m->report.direction;
	if (r == 0 && side == OW_SIDE_A && ow_packet_filter_sees_changes(&input->filter) &&
	    to[OW_A_TO_B].lost + to[OW_A_TO_B].extra + to[OW_B_TO_A].lost + to[OW_B_TO_A].extra)
		r = warn(m, "the filter looks at what routers change (TTL, DSCP, checksum): it may accept a packet at "
		            "one point "
		            "only, which then counts as lost or extra");
	if (r == 0 && side == OW_SIDE_A && ow_packet_filter_sees_length(&input->filter) &&
	    (m->report.segments || m->report.fragments))
		r = warn(m,
		         "the filter looks at lengths, but a capture shows %s: it may accept a packet at one point "
		         "only, which "
		         "then counts as lost or extra",
		         m->report.segments ? "superframes" : "fragments");
	if (r == 0 && f->early_fragments)
		r = warn(m,
		         "%s: of %llu %s fragments come before the first one, which has the ports: the filter does not "
		         "accept "
		         "them, and they may count as lost or extra",
		         name(side), (unsigned long long)f->early_fragments,
		         ow_plural(f->early_fragments, "datagram", "datagrams"));
	if (r == 0 && m->options.stamps == OW_STAMPS_CAPTURE && input->device.device != OW_DEVICE_NONE)
		r = warn(m,
		         "%s: the frames have times of a capture device (%s), which are not used: --stamps auto uses "
		         "them",
		         name(side), ow_device_name(input->device.device));
	if (r == 0)
		r = warn_tick(m, side);
	if (r == 0 && f->untimed == f->packets)
		r = warn(m,
		         "%s: has no timestamps (all are 0, or impossible): packets are matched, delays cannot be told",
		         name(side));
	else if (r == 0 && f->untimed)
		r = warn(m, "%s: %llu %s %s and no delay", name(side), (unsigned long long)f->untimed,
		         ow_plural(f->untimed, "packet has", "packets have"),
		         m->options.stamps != OW_STAMPS_CAPTURE && input->device.device != OW_DEVICE_NONE
		                 ? "no stamp of the capture device"
		                 : "no timestamp (0, or an impossible one)");
	if (r == 0 && f->backwards) {
		ow_duration_text((double)f->backwards_most_ns, text);
		r = warn(m, "%s: timestamps go backwards %llu time%s, by up to %s", name(side),
		         (unsigned long long)f->backwards, f->backwards == 1 ? "" : "s", text);
	}
	if (r == 0)
		r = warn_copies(m, side);
	if (r == 0 && f->below_limit)
		r = warn(m, "%s: %llu %s truncated too far to be identified", name(side),
		         (unsigned long long)f->below_limit, ow_plural(f->below_limit, "packet is", "packets are"));
	if (r == 0 && f->bad_link)
		r = warn(m, "%s: %llu frames of a link type that cannot be taken apart (try --level frame)", name(side),
		         (unsigned long long)f->bad_link);
	return r;
}

static int64_t coarsest_ns(const struct ow_match *m)
{
	int64_t a = m->report.capture[OW_SIDE_A].resolution_ns, b = m->report.capture[OW_SIDE_B].resolution_ns;
	return a > b ? a : b;
}

static const char *way_name(unsigned direction)
{
	return direction == OW_A_TO_B ? "A to B" : "B to A";
}

/* A delay of 0 for all packets does not happen between two points. */
static int warn_same(struct ow_match *m)
{
	uint64_t samples = 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_delay *delay = &m->report.direction[d].delay;
		if (delay->samples && (delay->min_ns != 0 || delay->max_ns != 0))
			return 0;
		samples += delay->samples;
	}
	return samples ? warn(m, "every delay is 0: are these two copies of one capture? The directions cannot be told")
	               : 0;
}

/* Whether there is no better offset to ask for. */
static bool clock_is_estimated(const struct ow_match *m)
{
	return m->options.clock == OW_CLOCK_ESTIMATED || m->host.estimates;
}

static int warn_clock(struct ow_match *m, unsigned d)
{
	const struct ow_delay *delay = &m->report.direction[d].delay;
	const char *way = way_name(d);
	char text[OW_DURATION_TEXT];
	if (!delay->samples)
		return 0;
	ow_duration_text((double)delay->min_ns, text);
	int64_t resolution = coarsest_ns(m);
	if (delay->min_ns < 0 && delay->min_ns > -resolution) {
		char tick[OW_DURATION_TEXT];
		ow_duration_text((double)resolution, tick);
		return warn(m, "%s: minimum delay %s: some delays are shorter than the %s that the timestamps resolve",
		            way, text, tick);
	}
	if (delay->min_ns < 0 && m->options.clock != OW_CLOCK_ESTIMATED) {
		/* Files do not contain the error of their clocks. */
		char apart[OW_DURATION_TEXT];
		ow_duration_text(-(double)delay->min_ns, apart);
		return warn(
			m, "%s: minimum delay %s is impossible: the clocks are apart by at least %s (%s is behind)%s%s",
			way, text, apart, d == OW_A_TO_B ? "B" : "A",
			-delay->min_ns < OW_LATE_STAMP_NS ? ", or the sender's stamps are late" : "",
			clock_is_estimated(m) ? ", by the offset that other points show"
					      : "; --offset auto estimates the difference");
	}
	if (delay->min_ns > SLOW_FLOOR_NS && !clock_is_estimated(m))
		return warn(m, "%s: minimum delay %s is rather a difference of the clocks; --offset auto estimates it",
		            way, text);
	return 0;
}

/* One direction only, and only the clocks show which. */
static int warn_backward(struct ow_match *m)
{
	const struct ow_result *back = &m->report.direction[OW_B_TO_A];
	if (m->options.clock == OW_CLOCK_ESTIMATED || m->pass.plan.rule != OW_BY_VOTES ||
	    m->report.direction[OW_A_TO_B].matched || !back->delay.samples)
		return 0;
	char text[OW_DURATION_TEXT];
	ow_duration_text((double)back->delay.max_ns, text);
	return warn(m,
	            "%s later at A: the traffic goes from B to A, or it goes from A to B (--one-direction) "
	            "and the clock of B is behind by more than %s",
	            back->delay.min_ns >= 0 ? "every packet is" : "most packets are", text);
}

/* All packets go one way, and the clocks did not decide which. */
static int warn_way(struct ow_match *m)
{
	const struct ow_plan *plan = &m->pass.plan;
	static const char *const reason[] = {
		[OW_WAY_ASSUMED] = "nothing shows which, so this is assumed",
		[OW_WAY_HOPS] = "because their TTL is lower there",
		[OW_WAY_LOST] = "because packets are missing there that the other capture shows, and hardly any the "
				"other way round",
		[OW_WAY_TAIL] = "because this way round queues make packets slower, and the other way round faster",
	};
	if (plan->rule != OW_ONE_WAY)
		return 0;
	return warn(m, "all packets go one way and the clocks do not tell which; taken to go %s, %s%s",
	            way_name(plan->way), reason[plan->why],
	            m->options.clock == OW_CLOCK_NONE ? "; --offset 0 trusts the clocks" : "");
}

/* No offset gives the fastest packets of both directions positive delays. */
static int warn_no_fit(struct ow_match *m)
{
	const struct ow_match_report *report = &m->report;
	char text[OW_DURATION_TEXT];
	if (report->offset_low_ns <= report->offset_high_ns)
		return 0;
	ow_duration_text((double)report->offset_high_ns - (double)report->offset_low_ns, text);
	return warn(
		m,
		"the fastest packets of both directions together take %s: no clock offset fits; a clock was set or "
		"drifts, timestamps are taken late, or packets are matched wrongly: delays are off by more than half "
		"of that",
		text);
}

/* Faster than the estimated offset allows. */
static int warn_outliers(struct ow_match *m, unsigned d)
{
	const struct ow_match_report *report = &m->report;
	const struct ow_delay *delay = &report->direction[d].delay;
	char text[OW_DURATION_TEXT];
	if (m->options.clock != OW_CLOCK_ESTIMATED || !delay->samples || delay->min_ns > -coarsest_ns(m) ||
	    report->offset_low_ns > report->offset_high_ns)
		return 0;
	ow_duration_text((double)delay->min_ns, text);
	return warn(m,
	            "%s: minimum delay %s: a few packets are faster than the clock offset of all others allows; "
	            "they are stamped or matched wrongly, and the minimum is not meaningful",
	            way_name(d), text);
}

static int warn_estimate(struct ow_match *m)
{
	const struct ow_match_report *report = &m->report;
	char text[OW_DURATION_TEXT];
	if (m->options.clock != OW_CLOCK_ESTIMATED)
		return 0;
	if (!m->pass.floor[OW_A_TO_B].samples && !m->pass.floor[OW_B_TO_A].samples) {
		ow_duration_text((double)m->planner.common[m->planner.variant].repeats_ns, text);
		return warn(
			m,
			"the clock offset is estimated from packets that are all alike, sent about every %s: offset "
			"and delays are known only up to multiples of that",
			text);
	}
	if (report->offset_low_ns > report->offset_high_ns)
		return 0;
	if (report->offset_error_ns >= 0) {
		ow_duration_text((double)report->offset_error_ns, text);
		return warn(
			m,
			"the clock offset is estimated: the middle of what the two directions allow; each delay may be "
			"off by up to %s, which is half of the least round trip",
			text);
	}
	return warn(m, "the clock offset is estimated from one direction: its minimum delay is set to 0 and only the "
	               "variation of the delay is meaningful");
}

/* A change of the delays of one direction: no offset is right for the packets before and after it, if it is a clock. */
static int warn_shift(struct ow_match *m)
{
	int64_t at_ns, change_ns;
	enum ow_direction way;
	char when[WHEN_TEXT], text[OW_DURATION_TEXT];
	if (!ow_skew_shift(&m->pass.skew, &way, &at_ns, &change_ns))
		return 0;
	ow_duration_text(fabs((double)change_ns), text);
	return warn(m,
	            "%s: at about %s packets become %s by %s, and too few go the other way, or they vary too much, to "
	            "tell whether a clock was set or the route changed; if it is a clock, no offset is right before "
	            "and after",
	            way_name(way), when_text(at_ns, when), change_ns > 0 ? "slower" : "faster", text);
}

/* A clock step that leaves packets of both directions positive delays. */
static int warn_step(struct ow_match *m)
{
	int64_t at_ns, gained_ns;
	bool unsure;
	char when[WHEN_TEXT], text[OW_DURATION_TEXT];
	if (m->pass.plan.untimed)
		return 0;
	if (!ow_skew_step(&m->pass.skew, &at_ns, &gained_ns, &unsure))
		return warn_shift(m);
	ow_duration_text(fabs((double)gained_ns), text);
	return warn(
		m,
		"a clock was set while it captured%s: at about %s packets become %s by %s from A to B, and %s by as "
		"much from B to A; no offset is right before and after",
		unsure ? ", or the route changed, or packets were taken for others that look the same" : "",
		when_text(at_ns, when), gained_ns > 0 ? "slower" : "faster", text, gained_ns > 0 ? "faster" : "slower");
}

static int warn_drift(struct ow_match *m)
{
	double ppb = 0;
	const struct ow_capture_info *b = &m->report.capture[OW_SIDE_B];
	int r = 0;
	if (m->pass.plan.drift != 0)
		r = warn(m, "the clock of B gains %.3f ppm on A's; delays are corrected for that",
		         m->report.drift_ppb / 1e3);
	if (r < 0 || m->pass.plan.drift != 0 || !ow_skew_estimate(&m->pass.skew, &ppb))
		return r < 0 ? r : warn_step(m);
	char text[OW_DURATION_TEXT];
	ow_duration_text(fabs(ppb) * (double)(b->last_ns - b->first_ns) / 1e9, text);
	return warn(m, "the clocks seem to drift apart: that of B %s %.3f ppm, %s over the capture; %s",
	            ppb > 0 ? "gains" : "loses", fabs(ppb) / 1e3, text,
	            clock_is_estimated(m) ? "delays are not corrected for it" : "--offset auto corrects for it");
}

/* Unclassified flows of a side: all of them, and those whose key the other side also has, without any match. */
struct strangers {
	uint64_t seen;
	uint64_t most, most_seen;
	uint32_t example, example_seen; /* the largest */
};

static struct strangers find_strangers(struct ow_match *m, unsigned side)
{
	const struct ow_match_pass *p = &m->pass;
	struct strangers s = {0};
	uint32_t flows = ow_flow_table_count(p->input[side].flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
		const struct ow_flow_key *key = ow_flow_table_key(p->input[side].flows, i);
		if (!e || e->direction != OW_DIRECTIONS || !e->unmatched)
			continue;
		if (e->unmatched > s.most) {
			s.most = e->unmatched;
			s.example = i;
		}
		if (!key || ow_flow_table_find(p->input[!side].flows, key) == UINT32_MAX)
			continue;
		s.seen += e->unmatched;
		if (e->unmatched > s.most_seen) {
			s.most_seen = e->unmatched;
			s.example_seen = i;
		}
	}
	return s;
}

static int warn_unclassified(struct ow_match *m, unsigned side)
{
	const struct ow_match_pass *p = &m->pass;
	uint64_t n = p->unclassified[side];
	if ((double)n <= MANY_UNCLASSIFIED * (double)p->records[side])
		return 0;
	struct strangers s = find_strangers(m, side);
	bool seen = (double)s.seen > MANY_UNCLASSIFIED * (double)p->records[side];
	char flow[OW_FLOW_TEXT] = "?";
	const struct ow_flow_key *key = ow_flow_table_key(p->input[side].flows, seen ? s.example_seen : s.example);
	if (key)
		ow_flow_key_text(key, flow);
	if (seen)
		return warn(m,
		            "%llu %s of %s belong to flows that %s saw too, such as %s, but none of their packets "
		            "is the same there: something on the way rewrites them, or cuts UDP superframes; not "
		            "counted as lost",
		            (unsigned long long)s.seen, ow_plural(s.seen, "packet", "packets"), name(side), name(!side),
		            flow);
	return warn(m,
	            "%llu %s of %s belong to flows of which %s saw no packet, such as %s: traffic that does not "
	            "pass both "
	            "points, or is lost entirely; not counted as lost",
	            (unsigned long long)n, ow_plural(n, "packet", "packets"), name(side), name(!side), flow);
}

static int warn_anonymous(struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	uint64_t matched = 0, only = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t flows = ow_flow_table_count(p->input[side].flows);
		for (uint32_t i = 0; i < flows; i++) {
			const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
			const struct ow_flow_key *key = ow_flow_table_key(p->input[side].flows, i);
			if (!e || !e->matched || !key || !ow_flow_key_is_anonymous(key))
				continue;
			matched += side == OW_SIDE_A ? e->matched : 0;
			only += e->unmatched;
		}
	}
	uint64_t all = matched + only;
	if (!matched || !only)
		return 0;
	return warn(m,
	            "%llu %s without a source address (:: or 0.0.0.0: DHCP, MLD) may come from hosts on both sides: "
	            "their direction, and which of them are lost or extra, is not known",
	            (unsigned long long)all, ow_plural(all, "packet", "packets"));
}

/* Beyond the limit of the flow table whole networks are one flow, of which some may pass both points and some not. */
static int warn_coarse(struct ow_match *m)
{
	if (!ow_flow_table_is_coarse(m->pass.input[OW_SIDE_A].flows) &&
	    !ow_flow_table_is_coarse(m->pass.input[OW_SIDE_B].flows))
		return 0;
	return warn(m,
	            "more than %u flows: in further ones, traffic that does not pass both points is told from lost "
	            "packets by networks only",
	            OW_FLOWS_MAX - OW_FLOWS_COARSE);
}

/* Fragments that are in no packet of the other point: fragmented or reassembled on the way, and also changed. */
static int warn_fragmented(struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *r = &m->report.direction[d];
		unsigned from = ow_sender_of(d);
		uint64_t here = p->input[from].facts.fragments, there = p->input[!from].facts.fragments;
		uint64_t alone = here > there ? p->unmatched_fragments[from] : p->unmatched_fragments[!from];
		uint64_t other = here > there ? p->unmatched_fragments[!from] : p->unmatched_fragments[from];
		alone = alone > other ? alone - other
		                      : 0; /* captures that drop packets miss fragments at both points */
		if (r->lost && r->extra > r->duplicated && (double)alone > MANY_FRAGMENTS * (double)r->received &&
		    (double)alone >= FRAGMENTS_ALL * (double)(r->extra - r->duplicated))
			return warn(m,
			            "%s shows %llu fragments, %s %llu: packets are cut on the way or put together, and "
			            "those whose parts do not match count as lost and as extra",
			            name(!from), (unsigned long long)there, name(from), (unsigned long long)here);
	}
	return 0;
}

/* UDP superframes that are truncated, or that cutting did not help. */
static int warn_udp_superframes(struct ow_match *m)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t here = m->pass.input[side].facts.longest_udp, there = m->pass.input[!side].facts.longest_udp;
		if (!m->cuts_datagrams && here > MTU_USUAL && here > there && m->pass.unmatched_frames[side] &&
		    m->pass.unmatched_frames[!side])
			return warn(m,
			            "%s shows UDP packets of up to %u bytes, %s of %u at most: superframes of UDP "
			            "segmentation offload "
			            "(as QUIC uses) are not cut, and count as lost and extra",
			            name(side), here, name(!side), there);
	}
	return 0;
}

/* Copies that the capture may have made, or not. */
static int warn_doubled(struct ow_match *m, unsigned side)
{
	const struct ow_duplicate_capture_verdict *v = &m->twice[side];
	unsigned sends = ow_sent_by(side);
	if (v->unsure && m->report.direction[sends].lost)
		return warn(
			m,
			"%s shows some packets more than once that %s shows once: sent twice and one of them lost, or "
			"shown twice (a mirror port, all interfaces at once?); they count as lost; --dedup 1ms leaves "
			"copies within 1 ms out",
			name(side), name(!side));
	if (v->arrivals)
		return warn(m,
		            "%s shows packets that arrive more than once, always at about the same lag: duplicated by "
		            "the network, or shown twice (a mirror port, all interfaces at once?); --dedup 1ms leaves "
		            "copies within 1 ms out",
		            name(side));
	return 0;
}

/* Both captures show nearly everything twice. */
static int warn_everywhere(struct ow_match *m)
{
	if (!m->twice[OW_SIDE_A].everywhere || m->twice[OW_SIDE_A].twice || m->twice[OW_SIDE_B].twice)
		return 0;
	return warn(m,
	            "both captures show most packets of a direction more than once: hosts send them twice, or both "
	            "captures show "
	            "copies (mirror ports, all interfaces at once?), which count as packets then; --dedup 1ms leaves "
	            "copies within 1 ms out");
}

static int warn_ambiguous(struct ow_match *m, unsigned d)
{
	const struct ow_result *r = &m->report.direction[d];
	const char *way = way_name(d);
	uint64_t unknown = r->ambiguous - r->delay.uncertain, untimed = m->pass.untimed[d];
	if (m->pass.crowded[d]) {
		int e = warn(m,
		             "%s: %llu packets are among so many identical ones that their delays are only known to be "
		             "shorter than the waiting time%s",
		             way, (unsigned long long)m->pass.crowded[d],
		             2 * m->pass.crowded[d] > r->matched
		                     ? ", and nothing shows that they are the same packets at both points"
		                     : "");
		if (e < 0)
			return e;
	}
	if (r->delay.uncertain && 2 * r->delay.uncertain > r->delay.samples)
		return warn(m, "%s: %llu of %llu delays are those of identical packets and only known within bounds%s",
		            way, (unsigned long long)r->delay.uncertain, (unsigned long long)r->delay.samples,
		            r->delay.period_ns ? ", up to multiples of the period at which they are sent" : "");
	unknown -= untimed < unknown ? untimed : unknown;
	if ((double)unknown <= MANY_AMBIGUOUS * (double)r->matched || m->pass.plan.untimed)
		return 0;
	return warn(
		m,
		"%s: %llu of %llu matches are of identical packets that cannot be told apart; the delays are those of "
		"the other %llu, and may not be typical",
		way, (unsigned long long)unknown, (unsigned long long)r->matched, (unsigned long long)r->delay.samples);
}

/* Pairs whose delays would be far below 0, while hardly any others are. */
static int warn_impossible(struct ow_match *m, unsigned d)
{
	uint64_t n = m->pass.impossible[d];
	if (!n)
		return 0;
	return warn(m,
	            "%s: %llu %s received long before %s sent, by the clocks: a clock was set while it captured, or "
	            "these are other "
	            "packets that look the same; no delay is told of them",
	            way_name(d), (unsigned long long)n, ow_plural(n, "packet was", "packets were"),
	            ow_plural(n, "it was", "they were"));
}

/* What arrived after the sender's capture may have been sent again since, or be that late. */
static int warn_sent_again(struct ow_match *m, unsigned d)
{
	uint64_t n = m->pass.sent_again[d];
	if (!n)
		return 0;
	return warn(
		m,
		"%s: %llu %s as lost may be late: the same came far later than usual, after the sender's capture had "
		"ended, which would not show that %s sent again",
		way_name(d), (unsigned long long)n, ow_plural(n, "packet that counts", "packets that count"),
		ow_plural(n, "it was", "they were"));
}

/* Identical packets that are as close as packets of this direction may overtake each other. */
static uint64_t close_alike(const struct ow_match *m, unsigned d, int64_t *ret_reach_ns)
{
	const struct ow_delay *delay = &m->report.direction[d].delay;
	int64_t varies_ns = delay->samples ? delay->max_ns - delay->min_ns : 0;
	*ret_reach_ns = varies_ns > OVERTAKEN_NS ? varies_ns : OVERTAKEN_NS;
	return ow_spacing_closer(&m->pass.alike[d], *ret_reach_ns);
}

/* Whether something that none of the others shows may happen to so many identical packets that it matters. */
static bool unproved(const struct ow_match *m, unsigned d, uint64_t alike, double others)
{
	double most = alike ? UNSEEN_MOST * (double)alike / others : 0;
	return !m->pass.plan.untimed && most >= 1 && most >= UNSEEN_RARE * (double)m->report.direction[d].matched;
}

/* Identical packets are paired in order. Only other packets show whether the path keeps it. */
static int warn_order(struct ow_match *m, unsigned d)
{
	int64_t reach_ns;
	char text[OW_DURATION_TEXT];
	uint64_t alike = close_alike(m, d, &reach_ns);
	const struct ow_tally *t = &m->pass.tally[d];
	if (t->reordered || !unproved(m, d, alike, ow_spacing_overtaken(&t->spacing, reach_ns)))
		return 0;
	ow_duration_text((double)reach_ns, text);
	return warn(m,
	            "%s: %llu of %llu packets are identical to others that were sent less than %s before or after "
	            "them, and too few other packets show whether the path keeps the order: if it does not, the mean "
	            "delay is right, but minimum, maximum and quantiles of identical packets may not be",
	            way_name(d), (unsigned long long)alike, (unsigned long long)t->matched, text);
}

/* A duplicate of one packet cannot be distinguished from an identical packet that was sent later. */
static int warn_mistaken(struct ow_match *m, unsigned d)
{
	const struct ow_result *r = &m->report.direction[d];
	uint64_t alike = m->pass.repeats[d];
	uint64_t unsent = r->extra - r->duplicated;
	int64_t reach_ns;
	if ((double)alike <= MANY_ALIKE * (double)r->matched)
		return 0;
	if (r->lost && !r->extra && unproved(m, d, close_alike(m, d, &reach_ns), (double)(r->matched - alike)))
		return warn(m,
		            "%s: packets are lost, %llu of %llu are identical to others, and too few others show "
		            "whether packets are duplicated: a duplicate may have been taken for a packet that was "
		            "lost, so that both counts, and delays, are off",
		            way_name(d), (unsigned long long)alike, (unsigned long long)r->matched);
	if (!r->duplicated && !(r->lost && unsent))
		return 0;
	if (!r->duplicated)
		return warn(
			m,
			"%s: %llu %s lost, %llu arrived that %s does not show, and %llu of %llu are identical to "
			"others: a packet may have been taken for another, so that both counts, and delays, are off",
			way_name(d), (unsigned long long)r->lost, ow_plural(r->lost, "packet is", "packets are"),
			(unsigned long long)unsent, name(ow_sender_of(d)), (unsigned long long)alike,
			(unsigned long long)r->matched);
	if (!r->lost)
		return warn(
			m,
			"%s: packets arrive more than once, and %llu of %llu are identical to others: a duplicate "
			"and such a packet may have been taken for each other, so that both counts, and delays, are "
			"off by more than their bounds",
			way_name(d), (unsigned long long)alike, (unsigned long long)r->matched);
	return warn(
		m,
		"%s: packets are lost, others arrive more than once, and %llu of %llu are identical to others: a "
		"duplicate may have been taken for a packet that was lost, so that both counts, and delays, are off",
		way_name(d), (unsigned long long)alike, (unsigned long long)r->matched);
}

/* Without TCP's numbers, packets of the same length may be identical. */
static int warn_rewritten(struct ow_match *m)
{
	uint64_t alike = m->pass.repeats[OW_A_TO_B] + m->pass.repeats[OW_B_TO_A];
	uint64_t matched = m->report.direction[OW_A_TO_B].matched + m->report.direction[OW_B_TO_A].matched;
	if (m->report.tcp_numbers || (double)alike <= MANY_ALIKE * (double)matched)
		return 0;
	return warn(m,
	            "TCP's numbers are rewritten on the way: packets were matched without them, and %llu of "
	            "%llu look identical to others; some of these may be matched wrongly, and count as lost, extra or "
	            "of the wrong direction",
	            (unsigned long long)alike, (unsigned long long)matched);
}

/* Behind a translator that leaves neither end of a connection as it is. */
static int warn_unpaired(struct ow_match *m)
{
	const struct ow_unpaired *u = &m->pass.unpaired;
	if (!u->several)
		return 0;
	return warn(m,
	            "addresses are translated, %llu packets are identical to others, and nothing shows which of their "
	            "flows is which at the other point: their delays and directions may be wrong, beyond all bounds",
	            (unsigned long long)u->packets);
}

/*
 * Identical packets of different traffic match by chance: then their delays are spread over the whole time that the
 * captures, or the waiting time, allow.
 */
static int warn_chance(struct ow_match *m, unsigned d)
{
	const struct ow_result *r = &m->report.direction[d];
	int64_t span = m->report.window_ns;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		int64_t length = m->report.capture[side].last_ns - m->report.capture[side].first_ns;
		span = length < span ? length : span;
	}
	if (r->delay.samples < CHANCE_SAMPLES || 2 * m->pass.repeats[d] < r->matched || m->pass.plan.untimed ||
	    r->delay.stddev_ns < CHANCE_SPREAD * (double)span)
		return 0;
	char text[OW_DURATION_TEXT];
	ow_duration_text(r->delay.stddev_ns, text);
	return warn(
		m,
		"%s: nearly all packets in common are identical ones, and their delays vary by %s, as if they met by "
		"chance: these may be different packets that look alike, and the result means nothing then",
		way_name(d), text);
}

/* Too little of TCP packets is captured to cut superframes: the position of their data is not known. */
static int warn_truncated_superframes(struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t here = p->input[side].facts.longest_tcp, there = p->input[!side].facts.longest_tcp;
		if (!m->report.segments && p->plan.identity.hash_limit < HEADERS_TO_CUT && here > MTU_USUAL &&
		    here > there && p->unmatched_frames[side] && p->unmatched_frames[!side])
			return warn(m,
			            "%s shows TCP packets of up to %u bytes, %s of %u at most: superframes, which "
			            "cannot be cut because the captures are truncated after %u bytes of a packet, and "
			            "count as lost and extra",
			            name(side), here, name(!side), there, p->plan.identity.hash_limit);
	}
	return 0;
}

/* Superframes whose parts are identified by what is rewritten on the way. */
static int warn_uncut(struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES && !m->report.tcp_numbers; side++) {
		uint32_t here = p->input[side].facts.longest_tcp;
		if (here > MTU_USUAL && p->unmatched_frames[side] && p->unmatched_frames[!side])
			return warn(m,
			            "%s shows TCP packets of up to %u bytes: superframes, which cannot be cut where "
			            "TCP's numbers "
			            "are rewritten on the way, and count as lost and extra (turn off TSO, GSO and GRO: "
			            "ethtool -K)",
			            name(side), here);
	}
	return 0;
}

static int warn_hole(struct ow_match *m, unsigned side, const struct ow_gap *gap)
{
	char when[WHEN_TEXT], length[OW_DURATION_TEXT];
	int64_t from_ns = gap->silence.from_ns;
	if (side == OW_SIDE_B)
		from_ns += m->pass.plan.offset_ns - m->pass.plan.shift_ns;
	when_text(from_ns, when);
	ow_duration_text((double)(gap->silence.to_ns - gap->silence.from_ns), length);
	unsigned long long from = gap->from.packets, to = gap->to.packets;
	if (gap->verdict == OW_HOLE_SHORT && from)
		return warn(
			m,
			"%s shows no packet at all for %s from %s, while %s shows %llu that came from there and %llu "
			"sent there: they count as extra and as lost, but its capture may have stalled",
			name(side), length, when, name(!side), from, to);
	if (gap->verdict == OW_HOLE_SHORT)
		return warn(m,
		            "%s shows no packet at all for %s from %s, while %s shows %llu packets that should have "
		            "arrived: they count as lost, but its capture may have stalled",
		            name(side), length, when, name(!side), to);
	return warn(m, "%s shows no packet at all for %s from %s, while %s shows %llu: %s; they do not count as lost",
	            name(side), length, when, name(!side), (unsigned long long)gap->packets,
	            gap->silence.between_files ? "no file of its set covers this time, one may be missing"
	            : gap->verdict == OW_HOLE
	                    ? "its capture did not run, or dropped everything"
	                    : "its capture did not run, or everything that it sees was cut off, which "
	                      "cannot be told apart");
}

static int warn_holes(struct ow_match *m, unsigned side)
{
	const struct ow_match_pass *p = &m->pass;
	unsigned gaps = p->gaps[side];
	unsigned long long lost = 0, outside = 0; /* packets of the gaps that are not named */
	int r = 0;
	for (unsigned i = 0; i < gaps && r == 0; i++) {
		const struct ow_gap *gap = &p->gap[side][i];
		if (i < HOLES_NAMED)
			r = warn_hole(m, side, gap);
		else if (gap->verdict == OW_HOLE_SHORT)
			lost += gap->to.packets;
		else
			outside += gap->packets;
	}
	if (r == 0 && gaps > HOLES_NAMED)
		r = warn(m,
		         "%s shows no packet at all for a while %u more times: %llu packets of %s do not count as lost "
		         "for this reason (--json lists when), %llu count as lost",
		         name(side), gaps - HOLES_NAMED, outside, name(!side), lost);
	if (r == 0 && p->input[side].facts.silences.count == OW_SILENCES_MAX && gaps > OW_SILENCES_MAX / 2)
		r = warn(m,
		         "%s shows no packet for a while more than %d times; only the longest times were looked at, "
		         "packets of %s in the others may falsely count as lost",
		         name(side), OW_SILENCES_MAX, name(!side));
	return r;
}

/* The packets that were sent last did not arrive, and independent losses do not explain it. */
static int warn_last_sent(struct ow_match *m, unsigned d)
{
	const struct ow_last_sent *last = &m->pass.last_sent[d];
	char before[OW_DURATION_TEXT], longest[OW_DURATION_TEXT];
	/* Among very many identical packets it is not known which of them arrived. */
	bool crowd = 2 * m->pass.crowded[d] > m->report.direction[d].matched;
	if (!last->lost || crowd || pow(last->loss, (double)last->packets) > UNARRIVED_CHANCE)
		return 0;
	ow_duration_text((double)last->before_end_ns, before);
	ow_duration_text((double)last->longest_ns, longest);
	return warn(m,
	            "%s: %llu %s sent in the last %s did not arrive until %s ended: the path is interrupted, or they "
	            "are in flight for longer than any other, which took up to %s; %llu of them count as lost",
	            way_name(d), (unsigned long long)last->packets, ow_plural(last->packets, "packet", "packets"),
	            before, name(ow_receiver_of(d)), longest, (unsigned long long)last->lost);
}

/* Whether a capture misses about as many of the packets that it should have received as of those that it sent. */
static bool misses_alike(const struct ow_match *m, unsigned d)
{
	const struct ow_result *r = &m->report.direction[d], *back = &m->report.direction[!d];
	double unsent = (double)(r->extra - r->duplicated) * (double)back->sent;
	return back->lost && unsent >= MISSES_ALIKE * (double)back->lost * (double)r->received;
}

/* Packets that arrived without having been sent, and are not explained by the warnings above. */
static int warn_unsent(struct ow_match *m, unsigned d)
{
	const struct ow_result *r = &m->report.direction[d];
	unsigned from = ow_sender_of(d);
	uint64_t unsent = r->extra - r->duplicated;
	bool many = (double)unsent > MANY_UNSENT * (double)r->received;
	if (unsent < FEW_UNSENT || (!many && !misses_alike(m, d)))
		return 0;
	size_t said = m->warnings;
	int result = 0;
	if ((double)r->lost <= MANY_LOST * (double)r->sent)
		result = warn(
			m,
			"%s: %llu packets arrived that %s does not show: that capture dropped packets, and those "
			"that it dropped of the other direction count as lost; or traffic joins between the points",
			way_name(d), (unsigned long long)unsent, name(from));
	else
		result = warn(m,
		              "%s: %llu packets arrived that %s does not show, and %llu that it shows did not arrive: "
		              "the captures "
		              "dropped packets (tcpdump says how many), or something on the way changes some; the loss "
		              "may not be "
		              "that of the network",
		              way_name(d), (unsigned long long)unsent, name(from), (unsigned long long)r->lost);
	m->unsent[d] = m->warnings > said ? m->warning[said] : NULL;
	return result;
}

/* Warnings in their order: about everything, or about each side or direction. */
#define EACH 7
struct step {
	int (*all)(struct ow_match *m);
	int (*each[EACH])(struct ow_match *m, unsigned side_or_direction);
};

static const struct step first[] = {
	{.each = {warn_capture}},
	{.each = {warn_clock, warn_ambiguous, warn_impossible, warn_sent_again, warn_order, warn_mistaken,
                  warn_chance}},
	{warn_rewritten},
	{warn_unpaired},
	{warn_same},
	{warn_backward},
	{warn_way},
	{warn_no_fit},
	{.each = {warn_outliers}},
	{warn_estimate},
	{warn_drift},
	{.each = {warn_unclassified}},
	{warn_anonymous},
	{warn_coarse},
	{.each = {warn_holes}},
	{.each = {warn_last_sent}},
	{warn_fragmented}, /* both captures miss fragments if they drop packets: this does not explain the rest */
	{0},
};
static const struct step explaining[] = {
	{.each = {warn_doubled}},     {warn_everywhere},
	{warn_udp_superframes},       {warn_uncut},
	{warn_truncated_superframes}, {0},
};
static const struct step unexplained[] = {{.each = {warn_unsent}}, {0}};

static int take(struct ow_match *m, const struct step *step)
{
	int r = 0;
	for (; r == 0 && (step->all || step->each[0]); step++) {
		if (step->all)
			r = step->all(m);
		for (unsigned i = 0; i < OW_SIDES * EACH && r == 0; i++) {
			if (step->each[i % EACH])
				r = step->each[i % EACH](m, i / EACH);
		}
	}
	return r;
}

/* How many segments a superframe was on the wire is only seen where one capture is free of superframes. */
static int warn_unseen_segments(struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	if (!ow_tcp_segments_assumed(p->input[OW_SIDE_A].facts.longest_tcp, p->input[OW_SIDE_B].facts.longest_tcp))
		return 0;
	return warn(m,
	            "both captures show superframes: segments are taken to be as long as other packets (%u bytes); if "
	            "the wire's were shorter, more packets were sent and lost than counted",
	            ow_tcp_segments_packet(&p->pieces));
}

int ow_match_warn(struct ow_match *m)
{
	int r = take(m, first);
	size_t before = m->warnings;
	if (r == 0)
		r = take(m, explaining);
	if (r == 0 && m->warnings == before)
		r = take(m, unexplained);
	if (r == 0 && m->report.fragments)
		r = warn(m,
		         "some packets are cut into fragments on the way, or put together: counts and delays are those "
		         "of the fragments");
	if (r == 0 && m->report.segments)
		r = warn(m, "superframes (TSO, GSO, GRO) were cut into the segments of the wire; all segments of one "
		            "carry its time");
	if (r == 0 && m->report.segments)
		r = warn_unseen_segments(m);
	m->report.warning = (const char *const *)m->warning;
	m->report.warnings = m->warnings;
	return r;
}
