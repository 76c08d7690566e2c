/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flow_answers.h"

/* A query of recordings: which recordings, which time, whose counts, which estimator. */
struct ow_flows_question {
	const char *path[OW_FLOW_POINTS_MAX]; /* in the order in which packets pass */
	unsigned points;
	int64_t since_ns, until_ns; /* INT64_MIN and INT64_MAX: all */
	const char *counts;         /* CSV; NULL = the counts of the recordings */
	struct ow_flows_options estimate;
	int64_t offset_ns;        /* added to the last point's times */
	bool no_repair;           /* leave lost packets in the counters */
	struct ow_flow_select by; /* groups of flows; by.by = 0: single flows */
	bool worst;               /* the answers are sorted by the lower ends of their intervals */
	bool lost;                /* the answers are sorted by lost packets */
	size_t flows_max;         /* of a recording; more are an error; 0 = no limit */
};

/*
 * Reads the recordings and estimates every flow over every leg. The answers are sorted. The texts of the question must
 * live as long as the answers. -ENOMSG if the points have nothing in common, -EINVAL if they cannot be compared.
 */
struct ow_flows_files;
int ow_flows_ask(const struct ow_flows_question *question, struct ow_flow_answers *ret_answers,
                 struct ow_flows_files **ret_files, struct ow_error *err);
/* Frees the data that the answers point to. */
void ow_flows_files_free(struct ow_flows_files *files);

/* The packets of a flow that a point counted; 0 if there are none or the number is not known. */
uint64_t ow_flows_files_packets(const struct ow_flows_files *files, unsigned point, const struct ow_flow_key *key);
