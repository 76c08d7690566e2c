/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "doctor/host_judge.h"
#include "config/config.h"

/*
 * Collects the facts of this host for doctor/host_judge.h. It changes nothing and needs no privilege: a fact that
 * cannot be read is marked as such. Only the trial needs CAP_NET_RAW, because it captures.
 */

/* Waits up to a quarter of a second for chronyd. chrony_port: chronyd's command port. */
void ow_facts_clock(uint16_t chrony_port, struct ow_clock_facts *ret_facts);

/* Why an interface that is to be recorded in the kernel is not, by its other settings; NULL = it is, or is not to be. */
const char *ow_facts_needs_ring(const struct ow_config_interface *interface);
/* config: the resources that it needs are compared; NULL = the defaults of a point. */
void ow_facts_host(const struct ow_config *config, struct ow_host_facts *ret_facts);

/* All interfaces of this network namespace, by index, without details. To be freed with free(). */
int ow_facts_links(struct ow_link_facts **ret_links, size_t *ret_count, struct ow_error *err);
/* Fills in the details of one interface. */
void ow_facts_link(struct ow_link_facts *link);

/* Captures for the given time. */
#define OW_PROBE_TRIAL_NS INT64_C(1000000000)
void ow_facts_trial(const struct ow_link_facts *link, int64_t for_ns, struct ow_trial_facts *ret_facts);

/* The store of a configuration. The configuration must have one. */
void ow_facts_store(const struct ow_config *config, struct ow_store_facts *ret_facts);
/* The same for one of its segments. */
void ow_facts_history(const struct ow_config *config, unsigned segment, struct ow_history_facts *ret_facts);
void ow_facts_listen(const char *address, struct ow_listen_facts *ret_facts);
void ow_facts_certificate(const char *path, struct ow_certificate_facts *ret_facts);
/* Connects to all of them at once; the caller sets peer and address. */
#define OW_PROBE_CONNECT_NS INT64_C(2000000000)
void ow_facts_peers(struct ow_peer_facts *peers, size_t count);

/* Reads one line of a file, without its end, cut to what fits. -errno. */
int ow_facts_line(const char *path, char *ret_line, size_t size);
