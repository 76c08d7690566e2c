/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/account.h"
#include "sim/traffic.h"
#include "sim/view.h"
#include "sim/wire.h"

/*
 * One measurement point. It takes the packets that are sent and received there in the order of time, merges those that
 * its host merges, sets timestamps, and writes the capture.
 */
struct ow_point_side;

/*
 * linktype: of frames that pass unchanged, or -1 for the link type of the options. The pool and the account must
 * outlive the side.
 */
int ow_point_side_create(const struct ow_sim_options *options, enum ow_side side, int linktype, int64_t end_ns,
                         struct ow_wire_pool *pool, struct ow_account *account, struct ow_point_side **ret_side,
                         struct ow_error *err);
/* Closes the file. */
int ow_point_side_close(struct ow_point_side *side, struct ow_error *err);
/* Removes the unfinished file if it was not closed. */
void ow_point_side_free(struct ow_point_side *side);

/*
 * A packet, or a burst given by its first segment, leaves here now. Sets on all of its segments what the capture says
 * about them.
 */
int ow_point_side_send(struct ow_point_side *side, struct ow_wire *wire, struct ow_error *err);
/* The packet will arrive at its time; the side owns it now. */
int ow_point_side_expect(struct ow_point_side *side, struct ow_wire *wire, struct ow_error *err);
/* Processes everything that arrives until now. INT64_MAX: everything. */
int ow_point_side_advance(struct ow_point_side *side, int64_t now_ns, struct ow_error *err);
/* Whether the capture runs at this time. */
bool ow_point_side_covers(const struct ow_point_side *side, int64_t time_ns);
