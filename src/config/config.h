/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "result/period.h"
#include "result/result_clock.h"
#include "config/config_flows.h"
#include "config/keys.h"
#include "sandbox/confine.h"
#include "exchange/exchange.h"
#include "record/recorder.h"
#include <oneway/match.h>

/*
 * The configuration of a point (docs/config.md): what it watches, which peers it measures with, and how. An unknown key
 * is an error that names file and line, and the key that was probably meant.
 */
#define OW_CONFIG_SEGMENTS_MAX 256
#define OW_CONFIG_CLASSES_MAX  64 /* of a segment */

enum ow_config_output { OW_OUTPUT_TEXT, OW_OUTPUT_JSON, OW_OUTPUT_NONE };

struct ow_config_interface {
	const char *name; /* the name that segments use; without a file, the name of the interface */
	const char *file; /* a capture that is replayed; NULL = an interface */
	double speed;
	uint64_t threads, ring_bytes; /* ring_bytes 0 = default */
	enum ow_iface_kind capture;   /* AUTO or KERNEL */
	bool hardware_stamps;
	const char *filter;
	unsigned line;
};

struct ow_config_class {
	const char *name, *filter; /* filter NULL = all IP packets */
	bool exact;                /* the times of all packets are exchanged */
	unsigned stated;           /* OW_STATED_EXACT: whether it says so itself; else the segment does */
	unsigned line;
};

/* The values that a segment states itself. The connecting point states all values, its defaults included. */
enum ow_stated {
	OW_STATED_INTERVAL = 1,
	OW_STATED_WAIT = 2,
	OW_STATED_METHOD = 4,
	OW_STATED_IDENTITY = 8,
	OW_STATED_INNER = 16,
	OW_STATED_CLASSES = 32,
	OW_STATED_SCOPE = 64,
	OW_STATED_EXACT = 128,
	OW_STATED_ALL = 255,
};

/* Which packets a lane compares. */
enum ow_scope_of {
	OW_SCOPE_OF_SHARED, /* those of flows that pass both points */
	OW_SCOPE_OF_ALL,
};

enum ow_facing {
	OW_FACING_PEER, /* outgoing packets go to the peer */
	OW_FACING_AWAY, /* incoming packets go to the peer */
};

/*
 * A segment with several peers is one of these for each of them, with the same name; `group` tells that they belong
 * together, and `leads` is the first.
 */
struct ow_config_segment {
	const char *name, *peer;
	const char *connect;            /* NULL = the peer connects */
	const struct ow_yaml *peers;    /* the list that `peer` is of; NULL = it is the only one, */
	const struct ow_yaml *connects; /* and their addresses; NULL = none */
	char group[OW_RESULT_NAME];     /* "b1+b2"; "" = one peer */
	bool leads;
	uint32_t interfaces; /* bit i: interface i */
	enum ow_facing facing;
	const char *to_peer; /* filter for packets to the peer; NULL = use the kernel's direction */
	unsigned stated;     /* enum ow_stated */
	int64_t interval_ns, wait_ns;
	enum ow_method method;
	enum ow_level level;
	enum ow_scope_of scope;
	bool inner;
	bool exact; /* unless a class says otherwise: ow_config_exact */
	enum ow_clock_mode clock;
	struct ow_config_class *classes;
	unsigned class_count;
	unsigned line;
};

/*
 * The lanes of a segment: its classes in both directions. Packets of a group are also kept until all peers have told
 * what they got, which takes the memory of one lane more for each class.
 */
static inline unsigned ow_config_lanes(const struct ow_config_segment *segment)
{
	return (2 + (unsigned)segment->leads) * (segment->class_count ? segment->class_count : 1);
}

/* Whether the points exchange the times of all packets of the class. */
static inline bool ow_config_exact(const struct ow_config_segment *segment, const struct ow_config_class *class)
{
	return class->stated & OW_STATED_EXACT ? class->exact : segment->exact;
}

/*
 * The fleet that the point belongs to (docs/fleet.md). Its state folder has the point's certificate and the desired
 * state: keys of a configuration, from the fleet. A key that the point's own file has is not taken from there.
 */
struct ow_config_fleet {
	const char *address; /* NULL = the point belongs to no fleet */
	const char *name, *token;
	const char *state;   /* folder */
	uint64_t version;    /* of the desired state in force; 0 = none */
	char kept[160];      /* keys of the desired state that the point's own file overrides: "listen, segments" */
	bool interfaces;     /* are those of the desired state */
	uint64_t refused;    /* version of a desired state that is not in force because it is wrong; 0 = none, */
	struct ow_error why; /* and what is wrong */
	bool waits;          /* there is nothing to measure until a desired state comes */
};

/* Samples of packets, from which the fleet finds out what its network looks like (docs/discovery.md). */
struct ow_config_discovery {
	const char *key; /* the same at all points; NULL = no samples */
	int64_t epoch_ns;
	uint64_t records;
};

struct ow_config {
	char *path; /* of the file */
	char point[OW_RESULT_NAME];
	const char *listen;
	const char *certificate, *key, *ca, *psk;
	const char *revoked; /* a file of the fleet; NULL = the point has certificates of its own */
	uint64_t memory;
	const char *store;
	int64_t retention_ns[OW_PERIODS]; /* 0 = unlimited */
	uint64_t store_max;               /* bytes; 0 = no limit */
	const char *metrics;              /* "host:port" of the metrics page for Prometheus; NULL = none */
	const char *web;                  /* "host:port" of the page that shows the store; NULL = none */
	enum ow_config_output output;
	const char *user; /* user to run as if started by root; NULL = no change */
	enum ow_sandbox sandbox;
	struct ow_config_interface *interfaces;
	unsigned interface_count;
	struct ow_config_segment *segments;
	unsigned segment_count;
	struct ow_config_flows *flows; /* recordings of flows */
	unsigned flows_count;
	struct ow_config_fleet fleet;
	struct ow_config_discovery discovery;
	struct ow_yaml *tree; /* owns the texts */
};

/* The segment with this name and peer, or NULL. */
const struct ow_config_segment *ow_config_segment_find(const struct ow_config *config, const char *name,
                                                       const char *peer);

/* The keys of a configuration, of its entries in `interfaces`, `segments` and `flows`, and of the command line. */
extern const struct ow_key ow_config_keys[], ow_interface_keys[], ow_segment_keys[], ow_flows_keys[], ow_fleet_keys[],
	ow_discovery_keys[];

/*
 * Paths in the configuration are relative to its folder. Only the configuration itself is read; in a fleet also the
 * desired state, and if that is wrong, the one that was accepted before it.
 */
int ow_config_load(const char *path, struct ow_config **ret_config, struct ow_error *err);
/* The same from memory; path is used for errors and relative paths. */
int ow_config_parse(const char *path, const char *bytes, size_t size, struct ow_config **ret_config,
                    struct ow_error *err);
/* The same with a desired state, which may be NULL. */
int ow_config_parse_with(const char *path, const char *bytes, size_t size, const char *desired, size_t desired_size,
                         struct ow_config **ret_config, struct ow_error *err);
void ow_config_free(struct ow_config *config);

/*
 * Checks that this host has the files and interfaces that the configuration names, that filters compile, and that no
 * other user may read a key.
 */
int ow_config_check(const struct ow_config *config, struct ow_error *err);

/* The part of the check that is about interfaces: whether this host has them. */
int ow_config_check_interfaces(const struct ow_config *config, struct ow_error *err);

/* The part of the check that needs only the configuration: whether filters compile. */
int ow_config_check_filters(const struct ow_config *config, struct ow_error *err);

/*
 * A running point can change segments, keys and limits of the store. -EBUSY if anything else differs; the error names
 * the key.
 */
int ow_config_check_change(const struct ow_config *now, const struct ow_config *next, struct ow_error *err);
/* Whether both are measured in the same way. The peer's address does not matter. */
bool ow_config_same_segment(const struct ow_config_segment *a, const struct ow_config_segment *b);

/* Whether the expression is valid in pcap-filter(7). *err gets only the reason. */
int ow_config_filter(const char *filter, struct ow_error *err);

/* The number of intervals by which a packet may be late. */
uint32_t ow_config_horizon(int64_t wait_ns, int64_t interval_ns);
