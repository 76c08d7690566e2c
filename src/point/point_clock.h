/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/steps.h"
#include "doctor/chrony.h"
#include "record/recorder.h"

/* The clock of the packets' timestamps: this host's, or that of the captures that are replayed. */
struct ow_point_clock {
	bool files;                  /* captures */
	double speed;                /* of their clock; 1 = real time */
	struct ow_clock_state state; /* as of the last tick; not known for files */
	bool known, by_chrony;       /* the state was read; chronyd has given it */
	uint64_t identity;           /* base/clock.h */
	struct ow_steps steps;
	struct ow_clocks *clocks;
	const struct ow_recorder *recorder;
	int64_t ended_ns;     /* steady time when all files had ended; 0 = not yet */
	int64_t ended_now_ns; /* their clock at that time */
};

/* As of the last check. */
int64_t ow_point_clock_now_ns(const struct ow_point_clock *clock);
/*
 * How much the clock was set since the last check; 0 = not at all. To be called before packets or times that are newer
 * than the last check are used.
 */
int64_t ow_point_clock_look(struct ow_point_clock *clock);
/* The files have ended, with packets up to this time: their clock continues. */
void ow_point_clock_end(struct ow_point_clock *clock, int64_t latest_ns);
