/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the truth during a simulation. */
#include "sim/account.h"

#include "base/side.h"
int ow_account_init(struct ow_account *account, const struct ow_sim_options *options)
{
	*account = (struct ow_account){.stamped = !options->side[OW_SIDE_A].zero_timestamps &&
	                                          !options->side[OW_SIDE_B].zero_timestamps};
	account->truth.seed = options->seed;
	account->truth.offset_ns = options->offset_ns;
	account->truth.drift_ppb = options->drift_ppb;
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		int r = ow_delays_create(&account->delays[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

void ow_account_done(struct ow_account *account)
{
	for (int i = 0; i < OW_DIRECTIONS; i++)
		ow_delays_free(account->delays[i]);
}

void ow_account_sent(struct ow_account *account, const struct ow_wire *wire)
{
	struct ow_sim_truth *truth = &account->truth;
	if (account->packets++ == 0)
		truth->first_ns = wire->time_ns;
	truth->last_ns = wire->time_ns;
	truth->has_direction[wire->direction] = true;
}

void ow_account_lost(struct ow_account *account, const struct ow_wire *wire, bool arrival_covered, bool dropped)
{
	if (wire->sent_covered && arrival_covered) {
		account->truth.direction[wire->direction].lost++;
		account->truth.dropped += dropped;
	} else if (wire->sent_covered) {
		account->truth.outside[ow_sender_of(wire->direction)]++;
	}
}

void ow_account_begin(struct ow_account *account, int direction)
{
	account->latest[direction] = account->coming[direction];
}

void ow_account_received(struct ow_account *account, const struct ow_wire *wire, int64_t stamp_ns, bool covered)
{
	struct ow_result *result = &account->truth.direction[wire->direction];
	if (!covered || !wire->sent_covered) {
		account->truth.outside[ow_sender_of(wire->direction)] += wire->sent_covered && !wire->copy;
		account->truth.outside[ow_receiver_of(wire->direction)] += covered;
		return;
	}
	if (wire->copy) {
		result->extra++;
		result->duplicated++;
		return;
	}
	result->matched++;
	if (account->stamped)
		ow_delays_add(account->delays[wire->direction], stamp_ns - wire->stamp_ns, 1);
	/* All packets of one record have the position of the record, at both sides. */
	if (wire->order < account->latest[wire->direction])
		result->reordered++;
	if (wire->order > account->coming[wire->direction])
		account->coming[wire->direction] = wire->order;
}

void ow_account_record(struct ow_account *account, enum ow_side side, bool superframe)
{
	account->truth.records[side]++;
	account->truth.superframes[side] += superframe;
}

void ow_account_finish(struct ow_account *account)
{
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		struct ow_result *result = &account->truth.direction[i];
		result->sent = result->matched + result->lost;
		result->received = result->matched + result->extra;
		result->exact = true;
		ow_delays_summary(account->delays[i], &result->delay);
	}
}
