/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Requests by address: each may make `rate` a second, and a burst of four seconds. Any thread may call it. */
struct ow_limits;

int ow_limits_create(unsigned rate, struct ow_limits **ret_limits);
void ow_limits_free(struct ow_limits *limits);
/* cost: how many requests it counts as. false: too many. now_ns: by the steady clock. */
bool ow_limits_allow(struct ow_limits *limits, const struct sockaddr *address, unsigned cost, int64_t now_ns);
/* Whether only this host can be at the other end. */
bool ow_limits_is_loopback(const struct sockaddr *address);
