/* SPDX-License-Identifier: Apache-2.0 */
#include "point/agreement.h"

#include "base/time.h"
#include "estimate/reconciled.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void ow_agree_propose(const struct ow_config_segment *segment, const struct ow_config_class *class, bool sending,
                      struct ow_message_open *ret_open)
{
	struct ow_message_open o = {
		.sends = sending,
		.method = segment->method == OW_METHOD_RDA ? OW_MESSAGE_RDA : OW_MESSAGE_FOLD,
		.level = segment->level == OW_LEVEL_NAT ? OW_MESSAGE_LEVEL_NAT : OW_MESSAGE_LEVEL_IP,
		.inner = segment->inner,
		.shared = segment->scope == OW_SCOPE_OF_SHARED,
		.exact = ow_config_exact(segment, class),
		.hash_limit = UINT32_MAX,
		.length_ns = segment->interval_ns,
		.wait_ns = segment->wait_ns,
		.horizon = ow_config_horizon(segment->wait_ns, segment->interval_ns),
		.buckets = OW_RECONCILED_BUCKETS,
		.sample = OW_RECONCILED_SAMPLE,
	};
	snprintf(o.segment, sizeof o.segment, "%s", segment->name);
	snprintf(o.class_name, sizeof o.class_name, "%s", class->name);
	snprintf(o.filter, sizeof o.filter, "%s", class->filter ? class->filter : "");
	*ret_open = o;
}

static const struct ow_config_segment *find_segment(const struct ow_config *config, const char *name)
{
	for (unsigned i = 0; i < config->segment_count; i++) {
		if (strcmp(config->segments[i].name, name) == 0)
			return &config->segments[i];
	}
	return NULL;
}

static int differs(struct ow_error *why, const char *key, const char *here, const char *there)
{
	return ow_error_set(why, EINVAL, "%s is %s here and %s there", key, here, there);
}

static int check_durations(const struct ow_config_segment *s, const struct ow_message_open *o, struct ow_error *why)
{
	char here[OW_DURATION_TEXT], there[OW_DURATION_TEXT];
	if ((s->stated & OW_STATED_INTERVAL) && s->interval_ns != o->length_ns) {
		ow_duration_text((double)s->interval_ns, here);
		ow_duration_text((double)o->length_ns, there);
		return differs(why, "interval", here, there);
	}
	if ((s->stated & OW_STATED_WAIT) && s->wait_ns != o->wait_ns) {
		ow_duration_text((double)s->wait_ns, here);
		ow_duration_text((double)o->wait_ns, there);
		return differs(why, "wait", here, there);
	}
	return 0;
}

static int check_parameters(const struct ow_config_segment *s, const struct ow_message_open *o, struct ow_error *why)
{
	bool rda = o->method == OW_MESSAGE_RDA, nat = o->level == OW_MESSAGE_LEVEL_NAT;
	if ((s->stated & OW_STATED_METHOD) && (s->method == OW_METHOD_RDA) != rda)
		return differs(why, "method", rda ? "fold" : "rda", rda ? "rda" : "fold");
	bool other = (s->level == OW_LEVEL_NAT) != nat || o->any_ip_id;
	if ((s->stated & OW_STATED_IDENTITY) && s->level != OW_LEVEL_AUTO && other)
		return differs(why, "identity", s->level == OW_LEVEL_NAT ? "nat" : "ip",
		               o->any_ip_id ? "without IP id"
		               : nat        ? "nat"
		                            : "ip");
	if ((s->stated & OW_STATED_SCOPE) && (s->scope == OW_SCOPE_OF_SHARED) != o->shared)
		return differs(why, "scope", o->shared ? "all" : "shared", o->shared ? "shared" : "all");
	if ((s->stated & OW_STATED_INNER) && s->inner != o->inner)
		return differs(why, "inner", s->inner ? "true" : "false", o->inner ? "true" : "false");
	return check_durations(s, o, why);
}

/* The class says it, or the segment for all of its classes. */
static int check_exact(const struct ow_config_segment *s, const struct ow_message_open *o, struct ow_error *why)
{
	bool stated = s->stated & OW_STATED_EXACT, exact = s->exact;
	for (unsigned i = 0; i < s->class_count; i++) {
		const struct ow_config_class *class = &s->classes[i];
		if (strcmp(class->name, o->class_name) == 0) {
			stated |= (class->stated & OW_STATED_EXACT) != 0;
			exact = ow_config_exact(s, class);
		}
	}
	if (stated && exact != o->exact)
		return differs(why, "exact", exact ? "true" : "false", o->exact ? "true" : "false");
	if (o->exact && o->method != OW_MESSAGE_FOLD)
		return ow_error_set(why, EINVAL, "exact needs method fold");
	return 0;
}

/* If this point has its own classes, their filters are used. */
static int find_filter(const struct ow_config_segment *s, const struct ow_message_open *o, const char **ret_filter,
                       struct ow_error *why)
{
	for (unsigned i = 0; i < s->class_count; i++) {
		if (strcmp(s->classes[i].name, o->class_name) == 0) {
			*ret_filter = s->classes[i].filter;
			return 0;
		}
	}
	if (s->stated & OW_STATED_CLASSES)
		return ow_error_set(why, EINVAL, "no class '%s' here", o->class_name);
	*ret_filter = o->filter[0] ? o->filter : NULL;
	return 0;
}

int ow_agree_check(const struct ow_config *config, const char *peer, const struct ow_message_open *open,
                   struct ow_agreed *ret_agreed, struct ow_error *why)
{
	struct ow_agreed agreed = {.segment = ow_config_segment_find(config, open->segment, peer),
	                           .class_name = open->class_name,
	                           .sending = !open->sends};
	const struct ow_config_segment *named = find_segment(config, open->segment);
	if (!named)
		return ow_error_set(why, EINVAL, "no segment '%s' here", open->segment);
	if (!agreed.segment)
		return ow_error_set(why, EINVAL, "peer of the segment is '%s' here",
		                    named->peers ? named->group : named->peer);
	if (agreed.segment->connect)
		return ow_error_set(why, EINVAL, "both points connect: take 'connect' out of one configuration");
	if (ow_name_check(open->class_name, why) < 0)
		return -EINVAL;
	int r = check_parameters(agreed.segment, open, why);
	if (r == 0)
		r = check_exact(agreed.segment, open, why);
	if (r == 0)
		r = find_filter(agreed.segment, open, &agreed.filter, why);
	if (r == 0)
		*ret_agreed = agreed;
	return r;
}

int64_t ow_agree_t0(int64_t here_ns, int64_t there_ns, int64_t margin_ns, int64_t length_ns)
{
	int64_t earliest = (here_ns > there_ns ? here_ns : there_ns) + margin_ns;
	int64_t over = earliest % length_ns;
	return over == 0 ? earliest : earliest - over + length_ns;
}

int64_t ow_agree_later(int64_t t0_ns, int64_t now_ns, int64_t margin_ns, int64_t length_ns)
{
	int64_t short_by = now_ns + margin_ns - t0_ns;
	return short_by <= 0 ? t0_ns : t0_ns + (short_by + length_ns - 1) / length_ns * length_ns;
}

int64_t ow_agree_apart_max(int64_t length_ns, int64_t wait_ns)
{
	return wait_ns < length_ns / 2 ? wait_ns : length_ns / 2;
}

bool ow_agree_clocks(int64_t apart_ns, int64_t age_ns, int64_t apart_max_ns)
{
	double least = (double)apart_ns, most = least + (double)age_ns;
	return least < (double)apart_max_ns && most > -(double)apart_max_ns;
}
