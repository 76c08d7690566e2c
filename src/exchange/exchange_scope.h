/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_EXCHANGE_EXCHANGE_SCOPE_H
#define OW_EXCHANGE_EXCHANGE_SCOPE_H

#include "exchange/comparison.h"

/* A flag for each packet of the page: 1 unless the outcome has it among those that only the sender has. NULL: no memory.
 * To be freed. */
uint8_t *ow_scope_matched(const struct ow_comparison *c);

#endif
