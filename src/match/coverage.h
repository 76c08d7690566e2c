/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * The time that a capture covers between its first and its last frame. A capture that was restarted, whose ring was
 * full, or of which a file is missing has a hole: it shows nothing at all, while the other capture shows packets that
 * passed here. These are not lost; they are outside the time that both captures cover.
 */

/* A silence: no frame of any kind from from_ns to to_ns. Shorter ones than this are never holes. */
#define OW_SILENCE_LEAST_NS INT64_C(100000000)
#define OW_SILENCES_MAX     4096 /* of a capture: enough for one that is restarted every 20 s for a day */

struct ow_silence {
	int64_t from_ns, to_ns;
	bool between_files; /* no file of the capture covers it: one may be missing */
};

/* The longest silences of a capture. They do not overlap. */
struct ow_silences {
	int64_t least_ns; /* shorter ones are not kept */
	unsigned count;
	struct ow_silence silence[OW_SILENCES_MAX]; /* a heap, the shortest one first */
};

void ow_silences_init(struct ow_silences *silences);
void ow_silences_note(struct ow_silences *silences, int64_t from_ns, int64_t to_ns);
/* A silence of any length between two files. */
void ow_silences_note_files(struct ow_silences *silences, int64_t from_ns, int64_t to_ns);
/* Sorts them by time, when all are noted. */
void ow_silences_sort(struct ow_silences *silences);

/* Packets of the other capture whose counterpart would be in a silence. */
struct ow_missed {
	uint64_t packets;
	int64_t first_ns, last_ns; /* times at the other capture */
};

enum ow_hole_verdict {
	OW_NO_HOLE,
	/*
	 * Everything that was sent here is missing, but not for long; or one or two packets from here: they count as
	 * lost and extra, with a warning.
	 */
	OW_HOLE_SHORT,
	/*
	 * The same for longer: a hole, or an outage of everything that this capture sees. The two cannot be
	 * distinguished.
	 */
	OW_HOLE_OR_OUTAGE,
	OW_HOLE, /* packets from here arrived during this time: the capture missed them */
};

/* A silence that may be a hole, in the common time base. */
struct ow_gap {
	struct ow_silence silence;
	/*
	 * By direction, when the other capture showed packets that this one showed last before the silence and first
	 * after it: what it showed between them passed here in the silence, if packets keep their order, whatever the
	 * delays are. INT64_MIN, INT64_MAX: not known.
	 */
	int64_t before_ns[OW_DIRECTIONS], after_ns[OW_DIRECTIONS];
	struct ow_missed from, to; /* came from here and arrived; were sent here and are missing */
	uint64_t unseen; /* packets of the other capture, of flows that this one never shows, during the silence */
	bool unusual;    /* far longer than all other silences of the capture, or most of what it never shows is here */
	enum ow_hole_verdict verdict;
	uint64_t packets; /* packets that are not counted because of it */
};

/* The first of these gaps, which are in the order of time, that ends after time_ns; count if there is none. */
unsigned ow_gaps_after(const struct ow_gap *gap, unsigned count, int64_t time_ns);

/* A gap without packets yet. */
void ow_gap_init(struct ow_gap *gap, struct ow_silence silence, enum ow_hole_verdict verdict);
/* A matched packet: the capture with these gaps showed it at here_ns, the other one at there_ns. */
void ow_gaps_note(struct ow_gap *gap, unsigned count, enum ow_direction direction, int64_t here_ns, int64_t there_ns);
/*
 * Whether a packet that the other capture showed at there_ns passed here in the silence, by the order of packets. It
 * passed here before latest_ns.
 */
bool ow_gap_between(const struct ow_gap *gap, enum ow_direction direction, int64_t there_ns, int64_t latest_ns);

void ow_missed_note(struct ow_missed *missed, int64_t time_ns, uint32_t packets);

/*
 * Whether this silence is a hole. extra_ratio: the share of packets from here that this capture does not show,
 * elsewhere; loss_ratio: the share of packets sent here that are missing, elsewhere; packets: all of the other capture.
 */
enum ow_hole_verdict ow_gap_judge(const struct ow_gap *gap, double extra_ratio, double loss_ratio, uint64_t packets);
