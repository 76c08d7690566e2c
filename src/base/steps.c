/* SPDX-License-Identifier: Apache-2.0 */
#include "base/steps.h"

#include "base/time.h"
#include <stdio.h>

#define ATTEMPTS 64

int64_t ow_steps_threshold(const struct ow_clock_state *clock)
{
	if (!clock->synchronised || clock->error_ns > OW_STEPS_MOST_NS)
		return OW_STEPS_MOST_NS;
	return clock->error_ns < OW_STEPS_LEAST_NS ? OW_STEPS_LEAST_NS : clock->error_ns;
}

void ow_steps_read(int64_t within_ns, struct ow_steps_reading *ret_reading)
{
	struct ow_steps_reading best = {0};
	for (int i = 0; i < ATTEMPTS; i++) {
		int64_t before = ow_clock_steady_ns(), real = ow_clock_real_ns(), after = ow_clock_steady_ns();
		if (i == 0 || after - before < best.high_ns - best.low_ns)
			best = (struct ow_steps_reading){
				.steady_ns = before, .low_ns = real - after, .high_ns = real - before};
		if (best.high_ns - best.low_ns <= within_ns)
			break;
	}
	*ret_reading = best;
}

int64_t ow_steps_check(struct ow_steps *steps, const struct ow_steps_reading *reading, int64_t threshold_ns)
{
	int64_t middle = reading->low_ns + (reading->high_ns - reading->low_ns) / 2;
	if (!steps->begun) {
		steps->begun = true;
		steps->offset_ns = middle;
		return 0;
	}
	if (reading->low_ns <= steps->offset_ns + threshold_ns && reading->high_ns >= steps->offset_ns - threshold_ns)
		return 0;
	int64_t step = middle - steps->offset_ns;
	steps->offset_ns = middle;
	steps->count++;
	return step;
}

int64_t ow_steps_now_ns(const struct ow_steps *steps)
{
	return ow_clock_steady_ns() + steps->offset_ns;
}

void ow_step_text(int64_t step_ns, char text[OW_STEP_TEXT])
{
	char size[OW_DURATION_TEXT];
	ow_duration_text((double)step_ns, size);
	snprintf(text, OW_STEP_TEXT, "%s%s", step_ns > 0 ? "+" : "", size);
}
