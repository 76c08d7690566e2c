/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * The certificate of a point: fetches the first one with the token, and another one when half of its time is over.
 * A token that is not the one by which the certificate came replaces key and certificate: the point was enrolled anew. If
 * the fleet refuses it, ref_refused has it ("" at first), and the next call goes on with the certificate.
 * The state folder must exist. Returns 1 if files in it have changed, 0 if nothing is to be done. Blocks for up to some 20 s.
 */
#define OW_ENROL_TOKEN 200
int ow_enrol(const struct ow_config *config, char ref_refused[OW_ENROL_TOKEN], struct ow_error *err);

/*
 * For the hosts of the bus: waits for users of the bus that differ from users.conf in the folder, writes them there, and
 * returns 1; 0 if they are still the same after a while. The folder has server.pem, server.key and ca.pem.
 */
int ow_enrol_users(const char *address, const char *folder, struct ow_error *err);
