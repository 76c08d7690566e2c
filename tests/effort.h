/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many runs of a random or exhaustive test to make. Sanitizers make each about five times as long, and look for
 * other faults than wrong numbers: they see a tenth of the runs.
 */
#ifdef OW_SANITIZED
#define RUN_STEP 10
#else
#define RUN_STEP 1
#endif
#define RUN_COUNT(runs) (((runs) + RUN_STEP - 1) / RUN_STEP)

/* What one thread does shows the thread sanitizer nothing. */
#ifdef __SANITIZE_THREAD__
#define ONLY_THREADS 1
#else
#define ONLY_THREADS 0
#endif
