/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The points' own session is not traffic that anybody wants to measure, and its packets depend on the measurement. A
 * class without a filter leaves it out: TCP of the address and port on which one of the two points listens. The other
 * end of the connection is not part of it, so that it also holds for the handshake of the next one.
 *
 * Each point sees the session with addresses of its own, if there is a NAT in between, or if it translates addresses
 * itself.
 */
#define OW_SESSION_FILTER 256 /* bytes of its text */

/*
 * fd: the connection; accepted: this point listens. text: becomes a filter that matches the session. 0, or a negative
 * errno, also if it does not fit.
 */
int ow_session_filter(int fd, bool accepted, char *text, size_t size);
