/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The lab's network: three network namespaces without names, which vanish with the last process that uses them. The
 * measured link leads from host A through the relay to host B; the points' own link joins A and B directly.
 *
 *     A: wire0 -- to-a :relay: to-b -- wire0 :B
 *        mgmt0 --------------------- mgmt0
 *
 * Processes in them are children of the one that made the lab and die with it, whatever ends it. Addresses are those
 * for documentation (RFC 5737). There is no IPv6 and no ARP on the measured link: only what the generators send.
 */
enum ow_labnet_node { OW_LABNET_A, OW_LABNET_B, OW_LABNET_RELAY, OW_LABNET_NODES };

#define OW_LABNET_WIRE "wire0"
#define OW_LABNET_TO_A "to-a"
#define OW_LABNET_TO_B "to-b"
/* On the measured link: of A, of B, of A as B sees it behind address translation. */
#define OW_LABNET_ADDRESS_A   "198.51.100.1"
#define OW_LABNET_ADDRESS_B   "198.51.100.2"
#define OW_LABNET_ADDRESS_NAT "203.0.113.1"
/* On the points' link. */
#define OW_LABNET_POINT_A "192.0.2.1"
#define OW_LABNET_POINT_B "192.0.2.2"

struct ow_labnet {
	int ns[OW_LABNET_NODES]; /* the namespaces, as files */
};

/*
 * -EPERM if the process lacks the right (it must be root), -ENOENT without iproute2. The process stays in its
 * namespace.
 */
int ow_labnet_create(struct ow_labnet *net, struct ow_error *err);
void ow_labnet_done(struct ow_labnet *net);

/* The files that a child inherits from its parent, and its standard files. */
struct ow_labnet_files {
	int in, out, err; /* -1 = /dev/null */
	const int *keep;  /* further files, at their numbers */
	unsigned keeps;
};

/*
 * A child in a namespace, in a process group of its own (so that Ctrl-C reaches the parent only), killed when its
 * parent ends. It runs main, whose value is its exit code. Returns its pid or a negative errno.
 */
pid_t ow_labnet_fork(const struct ow_labnet *net, enum ow_labnet_node node, const struct ow_labnet_files *files,
                     int (*main)(void *arg), void *arg);
/* The same for a program, found by PATH. Exit code 127 means that it could not be started. */
pid_t ow_labnet_spawn(const struct ow_labnet *net, enum ow_labnet_node node, const struct ow_labnet_files *files,
                      char *const argv[]);

/* From now on the hosts send nothing over the measured link. */
int ow_labnet_silence(const struct ow_labnet *net, struct ow_error *err);
/*
 * Sends a frame that is not an IP packet (EtherType 88b5, for local use) from a node. A capture that shows it has
 * started.
 */
int ow_labnet_mark(const struct ow_labnet *net, enum ow_labnet_node node, const char *interface);

/* Frames that the kernel dropped at an interface, either way. 0 or a negative errno. */
int ow_labnet_drops(const struct ow_labnet *net, enum ow_labnet_node node, const char *interface, uint64_t *ret_drops);
