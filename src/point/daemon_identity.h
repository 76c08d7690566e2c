/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon_lane.h"

/* The identity of lanes whose configuration leaves it open (identity: auto): see point/identity_survey.h. */

/* The proposer: the identity that was found before for this lane, in its proposal. */
void ow_daemon_identity_propose(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                struct ow_message_open *open);
/* Starts surveys of doubtful lanes, and ends those whose time is over. */
void ow_daemon_identity_tick(struct ow_daemon *daemon);
/* The proposer asks for a sample; the other point has answered. */
void ow_daemon_identity_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_survey *survey);
void ow_daemon_identity_told(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_sample *sample);
void ow_daemon_identities_free(struct ow_daemon *daemon);
