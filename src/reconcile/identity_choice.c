/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/identity_choice.h"

#include <math.h>
#include <stdio.h>

#define CLEARLY_MORE   1.2 /* another identity must find this many times as much */
#define CLEARLY_FRAMES 4   /* and this many packets more */
/*
 * And the difference must be this many standard errors of the sampling, because each identity has a sample of its own. Points
 * that share a part of their traffic compare samples every 640 s, 50,000 times a year, under 7 other identities. Chance
 * makes a difference of 5 errors once in 3,500,000 comparisons: once in 10 years.
 */
#define CLEARLY_ERRORS 5

static const struct {
	enum ow_level level;
	bool inner, any_ip_id, any_tcp;
} variants[OW_VARIANTS] = {
	[OW_VARIANT_IP] = {OW_LEVEL_IP, false, false, false},
	[OW_VARIANT_IP_INNER] = {OW_LEVEL_IP, true, false, false},
	[OW_VARIANT_NAT] = {OW_LEVEL_NAT, false, false, false},
	[OW_VARIANT_NAT_INNER] = {OW_LEVEL_NAT, true, false, false},
	[OW_VARIANT_FRAME] = {OW_LEVEL_FRAME, false, false, false},
	[OW_VARIANT_IP_ANY_ID] = {OW_LEVEL_IP, false, true, false},
	[OW_VARIANT_IP_INNER_ANY_ID] = {OW_LEVEL_IP, true, true, false},
	[OW_VARIANT_NAT_ANY_ID] = {OW_LEVEL_NAT, false, true, false},
	[OW_VARIANT_NAT_INNER_ANY_ID] = {OW_LEVEL_NAT, true, true, false},
	[OW_VARIANT_IP_ANY_TCP] = {OW_LEVEL_IP, false, false, true},
	[OW_VARIANT_IP_INNER_ANY_TCP] = {OW_LEVEL_IP, true, false, true},
	[OW_VARIANT_NAT_ANY_TCP] = {OW_LEVEL_NAT, false, false, true},
	[OW_VARIANT_NAT_INNER_ANY_TCP] = {OW_LEVEL_NAT, true, false, true},
	[OW_VARIANT_IP_ANY_BOTH] = {OW_LEVEL_IP, false, true, true},
	[OW_VARIANT_IP_INNER_ANY_BOTH] = {OW_LEVEL_IP, true, true, true},
	[OW_VARIANT_NAT_ANY_BOTH] = {OW_LEVEL_NAT, false, true, true},
	[OW_VARIANT_NAT_INNER_ANY_BOTH] = {OW_LEVEL_NAT, true, true, true},
};

enum ow_level ow_variant_level(enum ow_variant variant)
{
	return variants[variant].level;
}

bool ow_variant_inner(enum ow_variant variant)
{
	return variants[variant].inner;
}

bool ow_variant_any_ip_id(enum ow_variant variant)
{
	return variants[variant].any_ip_id;
}

bool ow_variant_any_tcp(enum ow_variant variant)
{
	return variants[variant].any_tcp;
}

bool ow_variant_loose(enum ow_variant variant)
{
	return variants[variant].any_ip_id || variants[variant].any_tcp;
}

enum ow_variant ow_variant_entered(enum ow_variant variant)
{
	for (enum ow_variant v = 0; v < OW_VARIANTS; v++) {
		if (variants[v].inner && variants[v].level == variants[variant].level &&
		    variants[v].any_ip_id == variants[variant].any_ip_id &&
		    variants[v].any_tcp == variants[variant].any_tcp)
			return v;
	}
	return variant;
}

void ow_variant_text(enum ow_variant variant, char text[OW_VARIANT_TEXT])
{
	static const char *const levels[] = {[OW_LEVEL_IP] = "ip", [OW_LEVEL_NAT] = "nat", [OW_LEVEL_FRAME] = "frame"};
	snprintf(text, OW_VARIANT_TEXT, "%s%s%s%s", levels[variants[variant].level],
	         variants[variant].inner ? " inside tunnels" : "", variants[variant].any_ip_id ? " without IP id" : "",
	         variants[variant].any_tcp ? " without TCP numbers" : "");
}

/* The variance of `packets`: an id is in the sample, with all packets that have it, or is not. */
static double variance(const struct ow_sample_overlap *c)
{
	return c->rate < 1 ? c->squares * (1 - c->rate) / (c->rate * c->rate) : 0;
}

/* Clearly more; or anything if the other finds nothing, but as a last resort only if it is not a single packet. */
static bool finds_more(const struct ow_sample_overlap *c, const struct ow_sample_overlap *than, bool loose)
{
	if (than->packets <= 0 && !(loose && c->share < OW_IDENTITY_ENOUGH))
		return c->packets > 0;
	return c->packets > CLEARLY_MORE * than->packets + CLEARLY_FRAMES &&
	       c->packets - than->packets > CLEARLY_ERRORS * sqrt(variance(c) + variance(than));
}

/*
 * Without identification or numbers, packets of different traffic may be identical: a poll, an empty answer. If there
 * is only one of them, it is taken as the same; more of them only if nearly the whole capture is found again.
 */
static struct ow_sample_overlap believed(const struct ow_sample_overlap *c)
{
	struct ow_sample_overlap only = *c;
	if (c->common && c->share < OW_IDENTITY_ENOUGH)
		only.packets *= (double)c->unique / (double)c->common;
	return only;
}

enum ow_variant ow_identity_choose(const struct ow_sample_overlap common[OW_VARIANTS], uint32_t allowed, bool frames)
{
	int best = -1;
	for (int v = 0; v < OW_VARIANTS; v++) {
		if (!(allowed >> v & 1))
			continue;
		if (v == OW_VARIANT_FRAME && best >= 0 && common[best].packets > 0 && !frames)
			continue;
		bool loose = ow_variant_loose(v);
		struct ow_sample_overlap c = loose ? believed(&common[v]) : common[v];
		if (best < 0 || finds_more(&c, &common[best], loose))
			best = v;
	}
	return best < 0 ? OW_VARIANT_IP : (enum ow_variant)best;
}
