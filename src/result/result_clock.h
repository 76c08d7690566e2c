/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RESULT_RESULT_CLOCK_H
#define OW_RESULT_RESULT_CLOCK_H

#include "estimate/clock_words.h"
#include "result/interval_result.h"

/* What the clocks mean for the delays of a result. to: the receiving point, as it is printed. */
void ow_result_clock_words(const struct ow_interval_result *result, const char *to, struct ow_clock_words *ret_words);

#endif
