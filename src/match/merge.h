/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match_pass.h"

/*
 * Internal to the pass: passes the records of both sides to the matcher, by time and block by block, so that the data
 * for the next block is loaded while this one is matched. Keeps the pass's times, counts and progress of both sides.
 * Returns 0 or a negative errno; an error from a callback is in pass->failed.
 */
int ow_merge_run(struct ow_match_pass *pass, struct ow_matcher *matcher,
                 struct ow_record_batches *const batches[OW_SIDES], struct ow_error *err);
