/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/revoked.h"
#include "fleet/folder.h"

/*
 * Who is who in a fleet. Certificates carry a URI that says so, and nats-server takes it as the name of the user:
 *
 *	oneway:point/london/2           the second key of the point london; its peers look at the DNS name, london
 *	oneway:service/collector/1      a service; it has no DNS name, so that no point takes it for a peer
 *
 * The number is the generation: a key that was stolen is revoked, and the next one has another number.
 */
void ow_uri_of_point(const char *name, uint64_t generation, char ret_uri[OW_URI_TEXT]);
void ow_uri_of_service(const char *name, uint64_t generation, char ret_uri[OW_URI_TEXT]);

/* Every server of the bus has this DNS name besides its own: no point can have it, so none can pretend to be a server. */
#define OW_BUS_NAME "bus.oneway.internal"

/* Makes a new key and certificate, FOLDER/NAME.pem and .key. */
int ow_authority_make_service(const struct ow_credential *ca, const char *folder, const char *name, uint64_t generation,
                              struct ow_error *err);
int ow_authority_make_server(const struct ow_credential *ca, const char *folder, const struct ow_bus_host *host,
                             struct ow_error *err);
int ow_authority_load(const struct ow_fleet *fleet, struct ow_credential *ret_ca, struct ow_error *err);

/*
 * A token in hex: a secret, and the start of the hash of the authority's public key, by which the point recognises the
 * authority. It serves once, for one name, and for a short time.
 */
#define OW_TOKEN_SECRET 16
#define OW_TOKEN_PIN    16
#define OW_TOKEN_TEXT   (2 * (OW_TOKEN_SECRET + OW_TOKEN_PIN) + 1)
int ow_token_parse(const char *text, uint8_t ret_secret[OW_TOKEN_SECRET], uint8_t ret_pin[OW_TOKEN_PIN],
                   struct ow_error *err);
/* The first bytes of the SHA-256 of a certificate's public key. */
int ow_certificate_pin(const X509 *certificate, uint8_t ret_pin[OW_TOKEN_PIN]);

/* Lets a point fetch a certificate, the next of its generations. */
int ow_authority_invite(const struct ow_fleet *fleet, const struct ow_credential *ca, const char *name, int64_t valid_s,
                        char ret_token[OW_TOKEN_TEXT], struct ow_error *err);
/*
 * The certificate for who has the secret of the token. The same key gets it again, because an answer may be lost.
 * *ret_users: the users of the bus have changed. -EACCES with the reason.
 */
int ow_authority_enrol(const struct ow_fleet *fleet, const struct ow_credential *ca, const char *name,
                       const uint8_t secret[OW_TOKEN_SECRET], EVP_PKEY *key, X509 **ret_certificate, bool *ret_users,
                       struct ow_error *err);
/* Another one for who has one, and is not revoked. */
int ow_authority_renew(const struct ow_fleet *fleet, const struct ow_credential *ca, const X509 *old, EVP_PKEY *key,
                       X509 **ret_certificate, struct ow_error *err);
/* The point's key and its token are worth nothing from now on. */
int ow_authority_revoke(const struct ow_fleet *fleet, const char *name, struct ow_error *err);
/* The same for a service: it gets another key and certificate in the folder of the fleet. */
int ow_authority_replace(struct ow_fleet *fleet, const struct ow_credential *ca, const char *service,
                         struct ow_error *err);
