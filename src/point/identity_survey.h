/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/identity_choice.h"
#include "record/lane_log.h"
#include "result/interval_result.h"

/*
 * Which identity makes the packets of a lane the same at both points (identity: auto). A lane begins with identity ip.
 * When its results show packets at each point that the other does not have, both points sample the packets of the same
 * time under every identity that is possible live, and choose as match does (reconcile/identity_choice.h). A sample
 * comes from further lanes of the recorder, one for each identity, which exist during this time only.
 */
#define OW_SURVEY_VARIANTS 8
/* In the order in which messages have them. */
extern const enum ow_variant ow_survey_variant[OW_SURVEY_VARIANTS];

struct ow_survey_sample {
	unsigned sample_shift; /* one packet in 2^shift is in the sample */
	uint64_t *id;          /* identical packets several times */
	size_t count;
};

struct ow_survey_samples {
	struct ow_survey_sample of[OW_SURVEY_VARIANTS];
};
void ow_survey_samples_done(struct ow_survey_samples *samples);

/* Packets of a sample at most. */
#define OW_SURVEY_IDS_MAX 1024u

struct ow_identity_survey;
/*
 * Samples the packets of a lane. lane: its options with the time (t0_ns, length_ns), the least shift, and an identity
 * whose seed, TCP rule and hash limit are used. allowed: bit v for enum ow_variant v; other samples stay empty.
 */
int ow_identity_survey_start(struct ow_lane_logs *logs, const struct ow_lane_options *lane, uint32_t allowed,
                             struct ow_identity_survey **ret_survey, struct ow_error *err);
/* 1: the time is over, and *ret_samples (to be freed) has the samples; 0: not yet. -ENOMEM. */
int ow_identity_survey_take(struct ow_identity_survey *survey, int64_t passed_ns,
                            struct ow_survey_samples *ret_samples);
/* Removes its lanes from the recorder. */
void ow_identity_survey_free(struct ow_identity_survey *survey);

struct ow_identity_decision {
	enum ow_variant variant;
	bool partial; /* `wanted` matches more, but little of the traffic of both points */
	enum ow_variant wanted;
	size_t sampled;             /* packets of the smaller sample */
	double share, share_before; /* of these that are at both points, under this variant and under the one before */
};
/*
 * Compares the samples of both points and chooses; without evidence the variant `now` stays. allowed: bit v for variant
 * v. seed: of the ids. exchanged: nat only where enough packets of both samples are common, because without addresses
 * the points cannot tell each other which flows they share, and all that is not common is exchanged.
 */
int ow_identity_survey_decide(const struct ow_survey_samples *a, const struct ow_survey_samples *b, uint64_t seed,
                              uint32_t allowed, bool exchanged, enum ow_variant now,
                              struct ow_identity_decision *ret_decision);
/* "identity: nat, because 98 % of 400 sampled packets are the same under it and 0 % under ip" */
#define OW_DECISION_TEXT (2 * OW_VARIANT_TEXT + 120)
void ow_identity_decision_text(const struct ow_identity_decision *decision, enum ow_variant before,
                               char text[OW_DECISION_TEXT]);

/* Whether each point has packets in this interval that the other does not have, and more than loss explains. */
bool ow_identity_doubtful(const struct ow_interval_result *result);
/* The variants that a configuration allows. inner: NULL = both. */
uint32_t ow_identity_allowed(const bool *inner);
/* The variant of an identity. */
enum ow_variant ow_identity_variant(enum ow_level level, bool inner, bool any_ip_id);
/* A shift with which about half of OW_SURVEY_IDS_MAX of so many packets are sampled. */
unsigned ow_identity_survey_shift(double packets);
