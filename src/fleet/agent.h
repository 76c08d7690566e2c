/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * The process of a point that talks to the fleet. It shares files with the point and nothing else: it reads the store,
 * and sends what the fleet should have:
 *
 *	ow.r.POINT  minutes, always; intervals if they are unusual (fleet/unusual.h) or asked for
 *	ow.e.POINT  events of flows
 *	ow.s.POINT  samples of packets
 *	ow.h.POINT  the state of the point (health.json), when it changes and every 10 s
 *
 * A row is sent until a stream has it; positions are kept in agent.db beside the store. On ow.q.POINT the fleet asks
 * for rows of a time: {"period": "minute", "since_ns": ..., "until_ns": ...}, "result" for intervals, as long as the
 * store has them.
 */
struct ow_agent;

/* The store is looked at this often: a minute's rows come together. */
#define OW_AGENT_READ_NS INT64_C(2000000000)

struct ow_agent_options {
	const char *point;
	const char *store;  /* of the point */
	const char *folder; /* of its state: files of config/config_fleet.h, and agent.db */
	const char *urls;   /* of the bus; NULL = from the file in the folder */
	void (*log)(void *arg, bool warning, const char *line);
	void *arg;
};

int ow_agent_create(const struct ow_agent_options *options, struct ow_agent **ret_agent, struct ow_error *err);
void ow_agent_free(struct ow_agent *agent);
/* Works for up to wait_ms. Problems are logged; the agent goes on. */
void ow_agent_work(struct ow_agent *agent, int wait_ms);
/* Sends what is there, for up to wait_ms. Returns the number of messages that have not arrived. */
size_t ow_agent_drain(struct ow_agent *agent, int wait_ms);

struct ow_agent_counts {
	uint64_t rows, events, samples; /* that were made into messages */
	uint64_t messages, bytes;       /* that were sent */
	uint64_t repeated, distrusted;  /* see fleet/outbox.h */
};
void ow_agent_counts(const struct ow_agent *agent, struct ow_agent_counts *ret_counts);

/* The process: gives up privileges, and works until SIGTERM. Returns an exit code. */
int ow_agent_run(const struct ow_config *config, const struct ow_agent_options *options);
