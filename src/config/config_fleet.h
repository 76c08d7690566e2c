/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/* The part of a point's configuration that comes from its fleet. */

/* Files of the state folder. */
#define OW_FLEET_CA           "ca.pem"
#define OW_FLEET_CERTIFICATE  "point.pem"
#define OW_FLEET_KEY          "point.key"
#define OW_FLEET_SERVERS      "servers"       /* addresses of the bus, one a line */
#define OW_FLEET_DESIRED      "desired.yaml"  /* as it came from the fleet */
#define OW_FLEET_ACCEPTED     "accepted.yaml" /* the last one that the point could use */
#define OW_FLEET_REVOKED_KEYS "revoked"       /* keys of points that are revoked (exchange/revoked.h) */
#define OW_FLEET_TOKEN        "token"         /* hash of the token by which the certificate came */
#define OW_FLEET_TRIED        "tried"         /* "VERSION REASON": the point could not start with this one */
#define OW_FLEET_HEALTH       "health.json"
#define OW_FLEET_STORE        "results.db"
#define OW_FLEET_STATE        "/var/lib/oneway" /* the folder, unless the configuration names another */

/*
 * The first line of a desired state says for whom it is and which version it is; a signature of that line up to the last
 * comma and of all that follows it ends the line:
 *
 *	# oneway: desired state of london, version 7, signature MEUCIQD...
 */
struct ow_desired_head {
	char point[OW_RESULT_NAME];
	uint64_t version;
	size_t signed_size;    /* bytes of the line that are signed */
	const char *signature; /* base64 */
	size_t signature_size;
	size_t body; /* where the next line begins */
};
int ow_desired_head(const char *bytes, size_t size, struct ow_desired_head *ret_head, struct ow_error *err);

/* The version of a desired state in the state folder: OW_FLEET_DESIRED or OW_FLEET_ACCEPTED. 0 = there is none. */
uint64_t ow_desired_version(const char *folder, const char *name);

/* "FOLDER/NAME", to be freed; NULL if there is not enough memory. */
char *ow_state_path(const char *folder, const char *name);

/* The state folder that a configuration names, to be freed; NULL if it belongs to no fleet. */
int ow_config_state_folder(const char *path, const char *bytes, size_t size, char **ret_folder, struct ow_error *err);
/* Keeps the desired state of this configuration as the accepted one. */
int ow_config_accept(const struct ow_config *config, struct ow_error *err);
/* The point could not start: if that is a desired state's fault, the next time it starts with the accepted one, and this
 * returns 1. */
int ow_config_reject(const struct ow_config *config, const struct ow_error *why, struct ow_error *err);

/* Adds the entries of a desired state to the tree, unless it has them. */
int ow_config_merge(struct ow_yaml *tree, const char *desired, size_t size, struct ow_config_fleet *fleet,
                    struct ow_error *err);
/* Reads the value of `fleet`. */
ow_key_read ow_config_read_fleet;
/* What follows from belonging to a fleet. measures: there are segments or flows. */
int ow_config_complete_fleet(struct ow_key_reader *reader, struct ow_config *config, bool measures);
