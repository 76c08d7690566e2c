/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/identity.h"
#include "reconcile/sample_overlap.h"

/*
 * The identity under which two points show the same packets, found by comparing samples under several identities. The
 * same rule serves captures (match/plan.h) and live points (point/identity_survey.h).
 */

/* Identities in the order in which they are preferred. */
enum ow_variant {
	OW_VARIANT_IP,
	OW_VARIANT_IP_INNER,
	OW_VARIANT_NAT,
	OW_VARIANT_NAT_INNER,
	OW_VARIANT_FRAME,
	/* Without the IPv4 identification: the last resort, because it may confuse different packets. */
	OW_VARIANT_IP_ANY_ID,
	OW_VARIANT_IP_INNER_ANY_ID,
	OW_VARIANT_NAT_ANY_ID,
	OW_VARIANT_NAT_INNER_ANY_ID,
	/* Without TCP's numbers and options, which firewalls rewrite: also a last resort. */
	OW_VARIANT_IP_ANY_TCP,
	OW_VARIANT_IP_INNER_ANY_TCP,
	OW_VARIANT_NAT_ANY_TCP,
	OW_VARIANT_NAT_INNER_ANY_TCP,
	/* Without either. */
	OW_VARIANT_IP_ANY_BOTH,
	OW_VARIANT_IP_INNER_ANY_BOTH,
	OW_VARIANT_NAT_ANY_BOTH,
	OW_VARIANT_NAT_INNER_ANY_BOTH,
	OW_VARIANTS
};

enum ow_level ow_variant_level(enum ow_variant variant);
bool ow_variant_inner(enum ow_variant variant);
bool ow_variant_any_ip_id(enum ow_variant variant);
bool ow_variant_any_tcp(enum ow_variant variant);
/* Either of these: a last resort. */
bool ow_variant_loose(enum ow_variant variant);
/* The same inside tunnels. */
enum ow_variant ow_variant_entered(enum ow_variant variant);

/* "nat inside tunnels without IP id" */
#define OW_VARIANT_TEXT 64
void ow_variant_text(enum ow_variant variant, char text[OW_VARIANT_TEXT]);

/* A smaller share in common is too little: a first look is followed by another, a last resort needs more evidence. */
#define OW_IDENTITY_ENOUGH 0.6

/*
 * The variant to use: the first that is allowed, or a later one that finds clearly more packets in common. allowed: bit
 * v for variant v. common: of all that are allowed. frames: whole frames may be preferred to packets that match.
 */
enum ow_variant ow_identity_choose(const struct ow_sample_overlap common[OW_VARIANTS], uint32_t allowed, bool frames);
