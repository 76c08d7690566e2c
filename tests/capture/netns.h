/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A network namespace for the test program alone: it has no name, and is gone with the program. Nothing but what the
 * test sends passes in it: IPv6 is off, so that no interface speaks by itself.
 */

/* Enters it, with lo up. Ends the program with 77 (skipped), and the reason, where that is not permitted. */
void netns_enter(void);
/* Runs a command of the shell, which must succeed. */
void netns_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A fresh pair of veth interfaces v0 and v1, both up. What is sent out of v0 comes in at v1. */
void netns_veth(void);
/* After one of them was set up: what is sent is dropped until the kernel has noticed that the other one has a carrier. */
void netns_wait_for_veth(void);
void netns_veth_remove(void);
/* The same for each test of cmocka. */
int netns_veth_setup(void **state);
int netns_veth_teardown(void **state);

/* A packet socket that sends frames out of an interface. */
int netns_sender(const char *interface);
void netns_send(int sender, const uint8_t *frame, size_t size);

/* An Ethernet frame with UDP in IPv4: `number` is in the payload and, if flows > 1, chooses the ports. */
size_t netns_frame(uint8_t *frame, size_t size, uint32_t number, uint32_t flows);
#define NETNS_PAYLOAD 42 /* where the number is */
