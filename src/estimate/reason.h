/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Why a value cannot be estimated: a code with one text. The texts are in JSON, in the store and in messages between
 * points, so a text that has been released must stay here, or among the former ones, to be readable.
 */
#define OW_REASONS(X)                                                                                                  \
	X(NO_COMMON_BUCKET, "no bucket holds the same packets at both points")                                         \
	X(NO_COMMON_BUCKET_PAIR, "no pair of buckets holds the same packets at both points")                           \
	X(FEW_COMMON_BUCKETS, "too few buckets hold the same packets at both points")                                  \
	X(NO_COMMON_SAMPLE, "no packet of the sample is at both points")                                               \
	X(NO_COMMON_PACKET, "the points have no packet in common")                                                     \
	X(A_POINT_SAW_NONE, "a point saw no packet")                                                                   \
	X(SYNOPSES_SAW_NONE, "the synopses saw no packet")                                                             \
	X(NO_PACKET_SENT, "no packet was sent")                                                                        \
	X(NO_PACKET_SAMPLED, "no packet was sampled")                                                                  \
	X(NO_KNOWN_DELAY, "no packet with a known delay")                                                              \
	X(FEW_DELAYS, "fewer than two delay samples")                                                                  \
	X(SAMPLE_TOO_SMALL, "too few packets are sampled to bound it from above")                                      \
	X(SAMPLED, "packets were sampled")                                                                             \
	X(DELAYS_NOT_ALL_KNOWN, "not all delays are known")                                                            \
	X(DELAYS_ELSEWHERE, "single delays of some intervals are not known at this point")                             \
	X(NO_KNOWN_FATE, "the fate of no packet is known")                                                             \
	X(INTERVAL_UNKNOWN, "the interval is unknown")                                                                 \
	X(OTHER_PEERS, "what did not arrive here may have gone to another peer: loss is that of all together")         \
	X(EACH_PEER, "each peer has delays of its own")                                                                \
	X(PEER_TIMES_IMPOSSIBLE, "the other point's times are impossible")                                             \
	X(MOMENTS_CONTRADICT, "the second moment is less than the square of the mean")                                 \
	X(FOLD_TOO_SMALL, "the points differ by more than the fold holds, and it has no counters")                     \
	X(FOLD_WITHOUT_CACHE, "a fold has no times, and there is no cache")                                            \
	X(SUMS_ONLY, "the synopsis keeps sums, not single delays")                                                     \
	X(SUMS_WITHOUT_LOSS, "sums do not show which packets are missing")                                             \
	X(SUMS_DIFFER, "the points hold different packets: reconcile first")                                           \
	X(SUMS_WITHOUT_CACHE, "the packets of the buckets are not known: no cache")                                    \
	X(DIFFERENCES_ONLY, "this method tells the number of differences only")                                        \
	X(DIFFERENCES_UNKNOWN, "lost and extra are not known exactly: see them")                                       \
	X(METHOD_NOT_TRIED, "the method could not be tried")                                                           \
	X(PROBES_TOO_FEW, "too few probes to bound it")                                                                \
	X(PROBES_NO_ANSWER, "no probe was answered with times")                                                        \
	X(PROBES_WHICH_WAY, "which way probes were lost is not known")                                                 \
	X(PROBES_NO_EXTREMES, "probes do not meet the least and the largest delay of all packets")                     \
	X(PROBES_NO_EXTRA, "probes do not see extra packets")                                                          \
	X(PROBES_NONE_SENT, "no probe was sent")                                                                       \
	X(FLOW_NOT_RECEIVED, "no packets of this flow were received")                                                  \
	X(FLOW_NOT_COUNTED, "no packet of the flow was counted here")                                                  \
	X(FLOW_NO_COMMON_COUNTER, "none of its counters holds the same packets at both points")                        \
	X(FLOW_FEW_CLEAN_COUNTERS, "too few counters are clean to separate it from the flows that share its counters") \
	X(FLOW_COUNTERS_CONTRADICT, "its counters contradict each other")                                              \
	X(FLOW_TOO_SMALL, "too small a flow: its counters tell nothing beyond the mean of others")                     \
	X(FLOW_WITHOUT_STDDEV, "the recording has no counters for it")                                                 \
	X(FLOW_FEW_PACKETS, "fewer than two packets")                                                                  \
	X(FLOW_NOISE, "other flows' noise swamps it, or its counters lost packets")                                    \
	X(FLOW_MEAN_UNSURE, "its mean is not known well enough, or those of flows that share its counters")            \
	X(FLOW_ONE_COUNTER, "one counter a flow")                                                                      \
	X(FLOW_NEGATIVE_VARIANCE, "noise: the variance comes out negative")                                            \
	X(FLOW_NOT_SAMPLED, "its packets were not sampled: it is too small a flow, or the recording is an older one")  \
	X(FLOW_GROUPED, "of a group of flows only the mean is known: record flows by this key")                        \
	X(FLOW_FEW_SAMPLED, "too few packets of it are in the samples of both points")                                 \
	X(FLOW_VECTORS_LOST, "packets were lost in every vector")                                                      \
	X(PATH_INCOMPLETE, "a part of the path has no result")                                                         \
	X(CLOCK_ONE_WAY, "packets of one direction only")                                                              \
	X(CLOCK_STEPPED, "a clock was set just now")                                                                   \
	X(CLOCK_MISPAIRED, "too many delays contradict those of the other direction")                                  \
	X(CLOCK_CONTRADICTS, "packets there and back take less than no time: not of two clocks that run alike")        \
	X(NOT_IN_LINE, "not in the line")                                                                              \
	X(PEER_COULD_NOT_TELL, "the other point could not tell")                                                       \
	X(OTHER, "not known to this version")

/* Texts of earlier versions, and what is said instead. */
#define OW_FORMER_REASONS(X)                                                 \
	X(NO_COMMON_PACKET, "no packet was seen at both points")             \
	X(NO_COMMON_BUCKET, "no cell holds the same packets at both points") \
	X(FEW_COMMON_BUCKETS, "too few clean buckets")                       \
	X(NO_PACKET_SENT, "no packets were sent")                            \
	X(NO_PACKET_SENT, "no packets")                                      \
	X(NO_PACKET_SAMPLED, "no packets were sampled")                      \
	X(SUMS_ONLY, "sums have no single delays")                           \
	X(SUMS_ONLY, "an LDA has no single delays")                          \
	X(SUMS_ONLY, "a FineComb has no single delays")                      \
	X(FEW_COMMON_BUCKETS, "too few cells hold the same packets at both points")

#define OW_REASON_CODE(name, text) OW_REASON_##name,
enum ow_reason {
	OW_NO_REASON, /* there is a value, or the reason is unknown */
	OW_REASONS(OW_REASON_CODE) OW_REASON_COUNT,
};
#undef OW_REASON_CODE

/* Returns "" for OW_NO_REASON. */
const char *ow_reason_text(enum ow_reason reason);
/* The code of a text; `otherwise` if this version does not know it. */
enum ow_reason ow_reason_of(const char *text, enum ow_reason otherwise);
/* Four bytes that stand for the text in messages: its 32-bit FNV-1a hash; 0 for OW_NO_REASON. No two texts have the
 * same. */
uint32_t ow_reason_hash(enum ow_reason reason);
enum ow_reason ow_reason_of_hash(uint32_t hash, enum ow_reason otherwise);
