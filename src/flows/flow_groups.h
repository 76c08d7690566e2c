/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/flow_answers.h"

/*
 * Replaces the flows of the answers by groups of them: by addresses, or by networks. The mean of a group is that of the
 * packets of all its flows with an estimate. Flows of one network may share what makes them slow, and then the errors of their
 * means are alike; so the ends of its interval are the means of their intervals' ends, which hold however they depend on each other.
 *
 * -EINVAL if these flows cannot be grouped so, -ENOMEM; the answers are then unchanged.
 */
int ow_flow_answers_group(struct ow_flow_answers *answers, const struct ow_flow_select *by, struct ow_error *err);
