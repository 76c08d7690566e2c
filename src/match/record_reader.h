/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/file/reader.h"
#include <oneway/match.h>
#include "packet/flow.h"
#include "packet/identity.h"
#include "packet/packet_filter.h"
#include "packet/record.h"
#include "match/coverage.h"
#include "match/datagrams.h"
#include "match/duplicate_filter.h"
#include "match/tcp_headers.h"

/* The packets of one point from a capture file: frames become records; frames that cannot are counted. */

#define OW_RECORD_READER_BATCH  256
#define OW_RECORD_READER_FRAMES 64 /* frames read at a time: their data stays in the first-level cache */

/* What one pass over the file showed. */
struct ow_record_reader_facts {
	uint64_t packets;         /* frames, of the time that was asked for */
	uint64_t filtered;        /* frames that the filter does not accept */
	uint64_t early_fragments; /* datagrams of which it has judged fragments otherwise before the first */
	uint64_t orphans;         /* fragments that it judged without the first one of their datagram */
	uint64_t copies;          /* frames that the capture had shown already, by the rule */
	uint64_t not_ip, too_short, bad_link; /* frames without an identity, by reason */
	uint64_t below_limit;                 /* truncated, so that the id cannot be computed */
	/* With a router between the points: MLD, IGMP and ND of hosts without an address, which are the same on many links
	 * and do not pass it. */
	uint64_t not_routed;
	uint32_t least_available;  /* fewest bytes that a truncated packet had for its id; UINT32_MAX if none was
	                              truncated */
	int64_t first_ns, last_ns; /* earliest and latest time (0 = untimed frames left out) */
	uint64_t backwards;        /* frames earlier than the one before */
	int64_t backwards_most_ns;
	int64_t behind_most_ns; /* how much a frame was earlier than the latest one before it */
	uint64_t untimed;       /* frames with a time of 0 */
	uint32_t longest_tcp;   /* longest TCP packet: more than the wire's MTU means superframes */
	uint32_t longest_udp;
	uint64_t fragments;
	uint32_t longest_tunnel; /* longest packet that contains another one, not entered */
	bool mixed_links;
	struct ow_silences silences;
};

/* Which frames to look at. */
struct ow_frame_choice {
	const char *filter;              /* of pcap-filter(7), on the packet that the identity sees; NULL = all */
	int64_t since_ns, until_ns;      /* by the times of the capture: from since to before until */
	const char *const *class_filter; /* packets that this filter accepts have bit i of their classes set */
	unsigned classes;                /* at most OW_MATCH_CLASSES_MAX */
	enum ow_class_by class_by;
	enum ow_stamps stamps;
	const struct ow_record_reader *like; /* a reader that has compiled the same filters; NULL = none */
};

/* The classes of a datagram, as its first fragment shows them. */
struct ow_classed_datagram {
	uint64_t name;
	uint8_t classes;
};

struct ow_record_reader {
	struct ow_reader *reader;
	bool lent; /* the reader belongs to the caller */
	struct ow_frame_choice choice;
	/* With a filter: Bloom filters of datagrams, by their fragments, with the verdict on the first, and on those that came
	 * before it in this pass. */
	uint64_t *decided, *early;
	bool wants_classes;                  /* records shall have their classes; the caller sets it before the start */
	bool tells_classes;                  /* .. and there are classes */
	struct ow_classed_datagram *classed; /* with classes: of the datagrams whose first fragments came last */
	struct ow_packet_filter filter, class_filter[OW_MATCH_CLASSES_MAX];
	struct ow_device_format device; /* of the stamps in the frames; whether they are used, `choice` says */
	int failed;                     /* negative errno of what was noted */
	bool passed;                    /* the time that was asked for is over */
	int64_t time_ns
		[OW_RECORD_READER_FRAMES]; /* with a filter: the times of the frames, which are noted before it */
	bool untimed[OW_RECORD_READER_FRAMES];
	struct ow_identity identity;
	struct ow_flow_table *flows;
	struct ow_record_reader_facts facts;
	int64_t previous_ns;
	int64_t start_ns;           /* the first time in the frames read; for those before it that have none */
	uint16_t linktype;          /* of the first frame */
	struct ow_copy_rule copies; /* which packets are copies, if there is a dedup */
	struct ow_duplicate_filter *dedup;
	const uint32_t *pair;       /* names of pairs of flows, by number of the flow: they enter the id; 0 = none */
	uint32_t pairs;             /* number of names */
	uint64_t *fragmented;       /* a Bloom filter of the datagrams of which there are fragments */
	struct ow_datagrams *notes; /* UDP datagrams are noted here; NULL = they are not */
	struct ow_tcp_headers *headers; /* TCP data is noted here; NULL = it is not */
	struct ow_cutter cutter;        /* UDP superframes are cut by this, if it cuts */
	struct ow_cut cut;              /* of the packet that is being taken */
	bool has_plain;                 /* plain packets may take the fast path */
	struct ow_plain plain[OW_RECORD_READER_FRAMES];
	size_t ahead;     /* distance at which to prefetch, in a file in memory; 0 = not in memory */
	int frames, next; /* frames read, of which the first ones have been taken */
	struct ow_frame frame[OW_RECORD_READER_FRAMES];
};

/*
 * lent: a reader of this path that others use, too, but not at the same time; NULL = opens one. dedup_ns: packets that come
 * again within this time are copies; 0 or less = there are none.
 */
int ow_record_reader_open(struct ow_record_reader *input, const char *path, struct ow_reader *lent,
                          const struct ow_frame_choice *choice, int64_t dedup_ns, uint64_t seed, struct ow_error *err);
/* Opens a reader of its own in place of a lent one. */
int ow_record_reader_own(struct ow_record_reader *input, struct ow_error *err);
/*
 * From the next start on, records contain how long ago the same packet was shown, and copies by this rule are marked.
 * Returns 0 or -ENOMEM.
 */
int ow_record_reader_dedup(struct ow_record_reader *input, const struct ow_copy_rule *rule);
void ow_record_reader_close(struct ow_record_reader *input);
/*
 * Rewinds, with this identity, and with notes and cutter as the caller has set them. Flows are numbered again: with the
 * same identity as before, in the same way.
 */
int ow_record_reader_start(struct ow_record_reader *input, const struct ow_identity *identity, struct ow_error *err);
/* After a pass: each capture knows of the other what the filter decided about datagrams. Whether another pass may find
 * more: fragments were judged alone. */
bool ow_record_readers_share(struct ow_record_reader inputs[OW_SIDES]);
/* After a pass: whether others can take over its flows: each has its number, and fragments were judged with their first. */
bool ow_record_reader_can_lend(const struct ow_record_reader *input);
/*
 * After `from` has read the same capture with the same choice to its end: takes over its flows, with their numbers, and its
 * facts. -EAGAIN: it cannot lend them; -ENOMEM.
 */
int ow_record_reader_adopt(struct ow_record_reader *input, const struct ow_record_reader *from);
/* The next records, at least one unless the file is at its end (0). Negative errno on failure. */
int ow_record_reader_read(struct ow_record_reader *input, struct ow_record record[OW_RECORD_READER_BATCH],
                          struct ow_error *err);
/* The number of frames without a record. */
uint64_t ow_record_reader_skipped(const struct ow_record_reader_facts *facts);
