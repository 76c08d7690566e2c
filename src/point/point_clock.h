/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_POINT_CLOCK_H
#define OW_POINT_POINT_CLOCK_H

#include "base/steps.h"
#include "doctor/chrony.h"
#include "record/recorder.h"

/* The clock that stamps the packets of a point: this host's, or that of the captures that it replays. */
struct ow_point_clock {
	bool files;                  /* captures */
	double speed;                /* of their clock; 1 = as time goes by */
	struct ow_clock_state state; /* as of the last tick; of files not known */
	bool known, by_chrony;       /* the state was looked at; chronyd knows it */
	struct ow_steps steps;
	struct ow_clocks *clocks;
	const struct ow_recorder *recorder;
	int64_t ended_ns;     /* steady: when all files had ended; 0 = not yet */
	int64_t ended_now_ns; /* their clock then */
};

/* As of the last look at it. */
int64_t ow_point_clock_now_ns(const struct ow_point_clock *clock);
/* By how much it was set since the last look; 0 = it was not. To be asked before anything is done with packets or times
 * that are newer than the last look. */
int64_t ow_point_clock_look(struct ow_point_clock *clock);
/* The files have ended, with packets up to this time: their clock goes on by itself. */
void ow_point_clock_end(struct ow_point_clock *clock, int64_t latest_ns);

#endif
