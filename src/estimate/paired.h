/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/centred.h"

/*
 * The standard deviation as published for LDA (III-E), FineComb and RDA: neighbouring buckets of a bank are collapsed
 * into one with a random sign, F = sum (D_2i - D_2i-1)^2 / sum (C_2i + C_2i-1) estimates the second moment, and sigma^2
 * = F - mu^2. Both buckets of a pair must be clean: equal sums of their counters can hide two errors. Used only to
 * reproduce the papers.
 */
void ow_paired_stddev(const struct ow_clean_bucket *const *bank, const size_t *buckets, unsigned banks, double mean_ns,
                      struct ow_value *ret_stddev);
