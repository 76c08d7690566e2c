/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <inttypes.h>
#include <stddef.h>

/*
 * Why a result is partial or unknown: each cause has a code and one text with its parameters. Results, messages between
 * points, stores and JSON have the text; the code follows from its form. A text that has been released must stay here,
 * so that it is recognised. A more specific text comes before a more general one.
 *
 * snprintf(cause, size, ow_cause_no_answer, peer) makes one.
 */
#define OW_CAUSES(X)                                                                                                  \
	/* another point */                                                                                           \
	X(NO_ANSWER_YET, no_answer_yet, "no answer from %s yet")                                                      \
	X(DISCONNECTED, disconnected, "no connection with %s for longer than memory lasts (%zu intervals)")           \
	X(SILENT, silent, "%s did not answer while %zu more intervals passed")                                        \
	X(NO_ANSWER, no_answer, "no answer from %s")                                                                  \
	X(ANSWERS_NO_MORE, answers_no_more, "the other point does not answer any more")                               \
	X(STEP_NOT_ANSWERED, step_not_answered, "the clock stepped, and the other point did not answer in time")      \
	X(PEER_WITHOUT_PACKETS, peer_without_packets, "the other point has no packets of this interval")              \
	X(PEER_SAMPLE_CHANGED, peer_sample_changed, "the other point has changed its sample")                         \
	X(PEER_RESTARTED, peer_restarted, "%s was restarted")                                                         \
	X(ANOTHER_SAMPLE, another_sample, "has another sample than the other peers")                                  \
	X(ANOTHER_IDENTITY, another_identity, "its packets have another identity than those of the other peers")      \
	X(PEER_UNTRUSTED_BECAUSE, peer_untrusted_because, "%s is not trusted any more: %.70s")                        \
	X(PEER_UNTRUSTED, peer_untrusted, "%s is not trusted any more")                                               \
	X(PEER_LEFT_BECAUSE, peer_left_because, "%s has left: %.80s")                                                 \
	X(PEER_LEFT, peer_left, "%s has left")                                                                        \
	X(PEER_REFUSES, peer_refuses, "%s refuses us: %.80s")                                                         \
	X(REFUSED, refused, "refused")                                                                                \
	X(SESSION_MOVED, session_moved, "the points' session has another address")                                    \
	X(IDENTITY_CHANGED, identity_changed, "the points agree on another identity: %s")                             \
	/* clocks */                                                                                                  \
	X(CLOCK_AHEAD, clock_ahead, "the clock of %s is ahead by %s, more than half an interval")                     \
	X(CLOCKS_APART, clocks_apart, "the clocks are %s apart, more than half an interval")                          \
	X(CLOCK_STEPPED_AT, clock_stepped_at, "clock stepped by %s at %s")                                            \
	X(CLOCK_STEPPED, clock_stepped, "clock stepped by %s")                                                        \
	X(OUT_OF_TIME, out_of_time, "%" PRIu64 " %s out of time: was the clock set?")                                 \
	/* recording */                                                                                               \
	X(STOPPED, stopped, "this point was stopped")                                                                 \
	X(CAPTURES_ENDED, captures_ended, "the captures have ended")                                                  \
	X(RECORDING_ENDED, recording_ended, "the recording has ended")                                                \
	X(RECORDING_ENDS, recording_ends, "the recording ends")                                                       \
	X(SEGMENT_CHANGED, segment_changed, "the segment was changed")                                                \
	X(RING_FULL_SENDING, ring_full_sending, "%s missed %" PRIu64 " %s (ring full): extra packets may be its")     \
	X(RING_FULL, ring_full, "%s missed %" PRIu64 " %s (ring full)")                                               \
	X(FILTER_TAKES_NONE, filter_takes_none, "the filter takes no packet at %.24s: is it tagged alike?")           \
	/* comparison */                                                                                              \
	X(OUT_OF_MEMORY, out_of_memory, "out of memory")                                                              \
	X(TOO_MANY_SYNOPSES, too_many_synopses, "more synopses at a time than there is memory for")                   \
	X(TOO_MANY_DIFFER, too_many_differ, "more than %u packets are at one point only")                             \
	X(COUNTS_CONTRADICT, counts_contradict, "the counts contradict each other")                                   \
	X(DIFFERENCES_UNKNOWN, differences_unknown, "the points differ by more packets than can be told apart")       \
	X(DIFFERENCES_ESTIMATED, differences_estimated,                                                               \
	  "the points differ by about %.0f packets that cannot be told apart: loss is an "                            \
	  "estimate, late packets included")                                                                          \
	X(DIFFERENCES_REMAIN, differences_remain,                                                                     \
	  "%zu differences decoded, more remain: loss is an estimate, late packets included")                         \
	X(IDENTICAL_WAITED, identical_waited,                                                                         \
	  "%zu packets are identical to earlier ones that still waited: their delays are doubtful")                   \
	X(IDENTICAL_LATE, identical_late,                                                                             \
	  "%" PRIu64 " identical %s, late in their turn: some may be lost here, and others late")                     \
	X(IDENTICAL_CLOSE, identical_close,                                                                           \
	  "%" PRIu64 " identical %s close to others: late, or duplicates and as many others lost")                    \
	X(IDENTICAL_TWICE, identical_twice,                                                                           \
	  "%" PRIu64 " %s seen twice at the sender, once at the receiver: one lost, or shown twice (a mirror port?)") \
	X(IDENTICAL_BEGUN, identical_begun,                                                                           \
	  "identical packets were on their way when the run began: delays may be longer")                             \
	X(IDENTICAL_DELAYS, identical_delays,                                                                         \
	  "identical packets, one every %s: their delays may be longer by a multiple of that")                        \
	X(UNDECIDED_ENDED, undecided_ended, "%" PRIu64 " %s undecided: the run ended before they could arrive")       \
	X(UNDECIDED_BEGUN, undecided_begun,                                                                           \
	  "%" PRIu64 " %s undecided: by the clocks they may have arrived before the run")                             \
	X(UNDECIDED_MEMORY, undecided_memory, "%" PRIu64 " %s undecided: out of memory")                              \
	X(UNDECIDED_CHANGED, undecided_changed, "%" PRIu64 " %s undecided: possibly changed on the way (identity)")   \
	X(UNDECIDED_KILLED, undecided_killed,                                                                         \
	  "%" PRIu64 " %s undecided: the point was killed before they could arrive")                                  \
	X(UNDECIDED_INTERVAL, undecided_interval, "%" PRIu64 " %s undecided: interval %" PRId64 " %s")                \
	/* scope */                                                                                                   \
	X(FLOWS_UNDECIDED, flows_undecided,                                                                           \
	  "%" PRIu64 " %s of short flows of which nothing arrived: lost, or on another way")                          \
	X(FLOWS_UNLISTED, flows_unlisted, "%" PRIu64 " %s of more flows than there is memory for: lost or unshared")  \
	X(DIFFERENCES_UNSHARED, differences_unshared,                                                                 \
	  "more packets than can be told apart are at one point only: lost ones among those that go elsewhere")       \
	X(SCOPE_LOST, scope_lost, "the points begin anew to tell each other their flows")                             \
	X(NOTHING_ARRIVES, nothing_arrives, "no packet of this class arrives at %.30s")                               \
	X(NOTHING_SHARED, nothing_shared,                                                                             \
	  "no packet at %.30s is one of %.30s: NAT (identity), tunnel (inner), or wrong facing?")                     \
	X(NONE_MET, none_met, "no packet has matched yet: other packets, clocks far apart, or NAT (identity)?")       \
	X(SUPERFRAMES, superframes, "%s joins packets (TSO, GRO; up to %u bytes): switch that off there")             \
	X(PACKETS_CHANGED, packets_changed,                                                                           \
	  "%" PRIu64 " %s undecided: %" PRIu64 " others arrived: changed on the way (fragments, IP id)?")             \
	X(CAPTURE_MISSED, capture_missed,                                                                             \
	  "%" PRIu64 " %s undecided: %s does not show %" PRIu64 " of %" PRIu64 " that came from it")                  \
	/* probes */                                                                                                  \
	X(PROBES_UNDER_WAY, probes_under_way, "%s: %" PRIu64 " probes may still have been answered")                  \
	X(PROBES_WHICH_WAY, probes_which_way,                                                                         \
	  "%" PRIu64 " of %" PRIu64 " probes were lost in an unknown direction: %s")                                  \
	/* a run, a store; undecided_killed is made by SQL */                                                         \
	X(NONE_COMPARED, none_compared, "no interval could be compared")                                              \
	X(INTERVALS_UNKNOWN_PARTIAL, intervals_unknown_partial,                                                       \
	  "of %" PRIu64 " intervals %" PRIu64 " unknown, %" PRIu64 " partial")                                        \
	X(INTERVALS_UNKNOWN, intervals_unknown, "of %" PRIu64 " intervals %" PRIu64 " unknown")                       \
	X(INTERVALS_PARTIAL, intervals_partial, "of %" PRIu64 " intervals %" PRIu64 " partial")                       \
	X(NOT_STORED, not_stored, "the result could not be stored")                                                   \
	X(NOT_RUNNING, not_running, "this point was not running, or was killed before it stored the result")          \
	X(NOT_MEASURED, not_measured,                                                                                 \
	  "nothing was measured then: no agreement between the points, a start, or a clock that was "                 \
	  "set")                                                                                                      \
	/* What a point says of itself: an interface that was away, or what is not recorded. */                       \
	X(OF_POINT, of_point, "%s: %.90s")                                                                            \
	X(INTERFACE_DOWN, interface_down, "%s was down")                                                              \
	X(WAS_SILENT, was_silent, "%s was late or silent")                                                            \
	X(WAS_DISCONNECTED, was_disconnected, "%s was disconnected")                                                  \
	X(HAD_NOT_GROWN, had_not_grown, "%s had not grown")                                                           \
	X(WAS_TRUNCATED, was_truncated, "%s was truncated")                                                           \
	X(WAS_CUT_OFF, was_cut_off, "%s was cut off")                                                                 \
	X(LOST_A_FILE, lost_a_file, "%s lost a file before it was read")                                              \
	X(OUT_OF_ORDER, out_of_order, "%s was out of order")                                                          \
	X(INTERFACE_REPLACED, interface_replaced, "%s was replaced")                                                  \
	X(NOT_KNOWN, not_known, "not known")

#define OW_CAUSE_TEXT(code, name, text) static const char ow_cause_##name[] = text;
OW_CAUSES(OW_CAUSE_TEXT)
#undef OW_CAUSE_TEXT

#define OW_CAUSE_CODE(code, name, text) OW_CAUSE_##code,
enum ow_cause {
	OW_NO_CAUSE,
	OW_CAUSES(OW_CAUSE_CODE) OW_CAUSE_OTHER, /* not a text of this version */
	OW_CAUSE_COUNT,
};
#undef OW_CAUSE_CODE

/* The code of a text, or of a name; if there are several causes, separated by "; ", that of the first. */
enum ow_cause ow_cause_of(const char *text);
/* "no_answer_yet"; "" for OW_NO_CAUSE. */
const char *ow_cause_name(enum ow_cause cause);
/* Shortens a text of several causes to less than `size` bytes: the last ones become their names, so that none is hidden. If
 * that is not enough, "..." says that there is more. */
void ow_cause_fit(char *text, size_t size);
