/* SPDX-License-Identifier: Apache-2.0 */
#include "point/point_clock.h"

int64_t ow_point_clock_now_ns(const struct ow_point_clock *c)
{
	if (!c->files)
		return ow_steps_now_ns(&c->steps);
	if (c->ended_ns == 0)
		return ow_recorder_now_ns(c->recorder);
	return c->ended_now_ns + (int64_t)((double)(ow_clock_steady_ns() - c->ended_ns) * c->speed);
}

int64_t ow_point_clock_look(struct ow_point_clock *c)
{
	struct ow_steps_reading reading;
	if (c->files)
		return 0;
	int64_t threshold = ow_steps_threshold(&c->state);
	ow_steps_read(threshold / 2, &reading);
	return ow_steps_check(&c->steps, &reading, threshold);
}

void ow_point_clock_end(struct ow_point_clock *c, int64_t latest_ns)
{
	c->ended_now_ns = ow_recorder_now_ns(c->recorder);
	if (c->ended_now_ns < latest_ns || c->ended_now_ns > INT64_MAX / 2)
		c->ended_now_ns = latest_ns;
	c->ended_ns = ow_clock_steady_ns();
}
