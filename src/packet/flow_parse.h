/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/flow_select.h"

/* Parses flow keys as people and other programs write them. */

/* "tcp", "UDP", "ICMP6", "17": the number of an IP protocol. -EINVAL. */
int ow_flow_parse_protocol(const char *text, uint8_t *ret_proto, struct ow_error *err);
/* "10.0.0.1" or "2001:db8::1", optionally followed by "/24" if bits is not NULL (-1: no prefix). -EINVAL. */
int ow_flow_parse_address(const char *text, uint8_t address[16], uint8_t *ret_version, int *ret_bits,
                          struct ow_error *err);
int ow_flow_parse_port(const char *text, uint16_t *ret_port, struct ow_error *err);

/*
 * A flow as ow_flow_select_key_text() writes it: "10.0.0.1:80 > 10.0.0.2:1234 tcp", "10.0.0.1 > 10.0.0.2 icmp",
 * "[2001:db8::1]:53 > ...", by prefix "10.0.0.0/24 > 10.1.0.0/24" (or addresses in them), by class its name. "->" is
 * accepted for ">". -EINVAL with an error that says what is wrong.
 */
int ow_flow_key_parse(const char *text, const struct ow_flow_select *select, struct ow_flow_key *ret_key,
                      struct ow_error *err);
