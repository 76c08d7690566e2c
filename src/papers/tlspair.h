/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/session.h"

/*
 * Two points in one process that communicate as points do: TLS over a TCP connection, here through the loopback
 * interface. Each session may be used by its own thread.
 */
struct ow_tlspair {
	struct ow_tls *tls[2];
	struct ow_session *session[2]; /* after the handshake */
};

int ow_tlspair_create(struct ow_tlspair *ret_pair, struct ow_error *err);
void ow_tlspair_done(struct ow_tlspair *pair);

/*
 * Waits until steady time deadline_ns for the next frame of the session, and sends queued data meanwhile. Returns 0 and
 * NULL if none came; a negative value if the connection has ended.
 */
int ow_tlspair_receive(struct ow_session *session, int64_t deadline_ns, const uint8_t **ret_frame, size_t *ret_size,
                       struct ow_error *err);
