/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/keys.h"
#include "exchange/issue.h"
#include "exchange/session.h"

/*
 * The folder of a fleet, from which it is led: the authority and its key, the settings, a file for each point, and what
 * the hosts of the bus, collectors and the station need. `oneway fleet init` makes it. All commands that change it hold
 * its lock.
 */
#define OW_FLEET_PORT       8621 /* of `oneway fleet serve` */
#define OW_BUS_PORT         4222
#define OW_BUS_SERVERS_MAX  16
#define OW_FLEET_POINTS_MAX 100000

struct ow_fleet_settings {
	const char *name;
	const struct ow_yaml *server_list;              /* host, host:port */
	const char *address;                            /* of `oneway fleet serve`, as points need it */
	const char *database;                           /* postgresql://...; NULL = none */
	const char *sample_key;                         /* by which all points sample their packets */
	int64_t valid_ns;                               /* of the certificates of points */
	uint64_t collector, station, controller, serve; /* generations of the certificates of services */
};

struct ow_fleet {
	char *path;
	struct ow_fleet_settings settings;
	struct ow_yaml *tree; /* owns the texts of the settings */
	int lock;
};

extern const struct ow_key ow_fleet_settings_keys[], ow_fleet_point_keys[];

enum ow_fleet_state {
	OW_FLEET_WAITING,  /* it may fetch a certificate with its token */
	OW_FLEET_ENROLLED, /* it has a certificate */
	OW_FLEET_REVOKED,
	OW_FLEET_PLANNED, /* it has something to measure, and was never enrolled; not in its record */
};

/* A point, as the fleet knows it. */
struct ow_fleet_point {
	char name[OW_POINT_NAME];
	enum ow_fleet_state state;
	uint64_t generation; /* of its certificate; 0 = none yet */
	/* A token that was handed out: its hash, in hex, "" = none; when it expires; the generation that it is for. */
	char token[65];
	int64_t token_until_s;
	uint64_t token_generation;
	char token_key[65]; /* hash of the public key that used it; "" = nobody */
	int64_t until_s;    /* when the certificate expires */
};

/* Opens and locks the folder. */
int ow_fleet_open(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err);
/*
 * The same for a command that leads the points for minutes: it holds another lock, so that certificates can still be
 * renewed meanwhile. It may not change settings and points.
 */
int ow_fleet_open_to_lead(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err);
/* The same for a command that only reads: without a lock. */
int ow_fleet_open_to_look(const char *path, struct ow_fleet **ret_fleet, struct ow_error *err);
void ow_fleet_close(struct ow_fleet *fleet);
int ow_fleet_save_settings(const struct ow_fleet *fleet, struct ow_error *err);
/* The same text for a new folder. */
int ow_fleet_write_settings(const char *path, const struct ow_fleet_settings *settings, struct ow_error *err);

/* A host of the bus: "host" and its port, from a text of the settings. */
struct ow_bus_host {
	char host[OW_ADDRESS_TEXT]; /* without brackets */
	unsigned port;
	bool is_address; /* not a name */
};
int ow_bus_host_parse(const char *text, struct ow_bus_host *ret_host, struct ow_error *err);

/*
 * Names of points in a fleet are a part of subjects of the bus: as those of all points, but without dots. Names of
 * services are not for points.
 */
bool ow_fleet_name_valid(const char *name);
/* The generation of a service in the settings, by its name; NULL if there is no such service. */
uint64_t *ow_fleet_service(struct ow_fleet_settings *settings, const char *name);

/* The record of a point. -ENOENT if the fleet has no such point. */
int ow_fleet_point_load(const struct ow_fleet *fleet, const char *name, struct ow_fleet_point *ret_point,
                        struct ow_error *err);
int ow_fleet_point_save(const struct ow_fleet *fleet, const struct ow_fleet_point *point, struct ow_error *err);
/* All points, by name; to be freed. */
int ow_fleet_points(const struct ow_fleet *fleet, struct ow_fleet_point **ret_points, size_t *ret_count,
                    struct ow_error *err);
int ow_fleet_point_by_name(const void *a, const void *b); /* their order */
