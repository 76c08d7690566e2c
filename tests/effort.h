/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many runs of a random or exhaustive test to make. Sanitizers make each about five times as long, and look for
 * other faults than wrong numbers: they see a fifth of the runs.
 */
#ifdef OW_SANITIZED
#define RUN_STEP 5
#else
#define RUN_STEP 1
#endif
#define RUN_COUNT(runs) (((runs) + RUN_STEP - 1) / RUN_STEP)
