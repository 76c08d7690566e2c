/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/map.h"

/*
 * Joins the samples of all vantages of a fleet: which vantages each packet passed, and in which order. The result
 * depends on the messages only. Batch e settles the packets that were first seen in epoch e - 1, from the messages of
 * epochs e - 1 and e, because clocks differ and paths take time.
 *
 *  tc[v]   min of TAU of epochs e-2, e-1, e: an id below it that passed v is in its sample. 0: a message is missing or
 *          incomplete, the clock was set, or another key: nothing can be concluded from what v did not see
 *  order   by TTL, then outer TTL; equal ones by the clock of one point, by direction (out before tap before in), by
 *          bounds of clock offsets (clock_bounds.h), by twins (two directions between the same taps)
 *  direct  nothing lies between, or could: counted below the thresholds of everything that was seen between (tauC),
 *          and, strictly, of everything that shares packets with one of both and that TTLs allow between (tauS)
 *
 * Memory is bounded by the limits below and by the messages of OW_JOIN_KEPT epochs. Old evidence halves every
 * OW_JOIN_HALVES batches; vantages and pairs that are not seen for OW_JOIN_FORGETS batches are forgotten.
 */
#define OW_JOIN_KEPT           8 /* epochs: three for a batch, and those of clocks that are ahead */
#define OW_JOIN_HALVES         30
#define OW_JOIN_FORGETS        60
#define OW_JOIN_VANTAGES_MAX   4096
#define OW_JOIN_POINT_VANTAGES 64 /* of one point, so that none can use up the others' room */
#define OW_JOIN_PAIRS_MAX      200000
#define OW_JOIN_CHANGES_MAX    256
#define OW_JOIN_SIGHTINGS_MAX  32 /* of one packet */
#define OW_JOIN_BETWEEN_MAX    8

struct ow_join;

/* epoch_ns: of all messages. -EINVAL, -ENOMEM. */
int ow_join_create(int64_t epoch_ns, struct ow_join **ret_join);
void ow_join_free(struct ow_join *join);
/*
 * Takes the records of the sample (and sets them to NULL). Messages that cannot be used are counted, not refused: 0. A
 * second message of the same vantage and epoch is ignored. -EINVAL: another length of epochs. -ENOMEM.
 */
int ow_join_add(struct ow_join *join, struct ow_vantage_sample *sample);
/* Settles a batch. Epochs rise; those in between are settled, too, unless they are too many. -ENOMEM. */
int ow_join_settle(struct ow_join *join, int64_t epoch);
/* What is known by now. To be freed with ow_map_done. */
int ow_join_map(struct ow_join *join, struct ow_map *ret_map);
