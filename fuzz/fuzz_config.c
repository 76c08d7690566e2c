/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the configuration of a point: it is refused with an error message, or all conditions that a daemon
 * relies on hold.
 */
#include "config/config.h"
#include "exchange/session.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void check_segment(const struct ow_config *c, const struct ow_config_segment *s)
{
	check(s->name && s->peer && strcmp(s->peer, c->point) != 0);
	check(s->interfaces != 0 && (uint64_t)s->interfaces < UINT64_C(1) << c->interface_count);
	check(s->interval_ns >= OW_INTERVAL_MIN_NS && s->interval_ns <= OW_INTERVAL_MAX_NS && s->wait_ns > 0);
	/* What the points find out together is not stated. */
	unsigned open = s->level == OW_LEVEL_AUTO ? OW_STATED_INNER : 0;
	check(s->connect ? s->class_count > 0 && (s->stated | open) == OW_STATED_ALL : c->listen != NULL);
	for (unsigned k = 0; k < s->class_count; k++)
		check(ow_name_check(s->classes[k].name, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ow_config *c = NULL;
	struct ow_error err = {""};
	if (ow_config_parse("fuzz.yaml", (const char *)data, size, &c, &err) < 0) {
		check(strncmp(err.text, "fuzz.yaml:", 10) == 0 && !c);
		return 0;
	}
	check(ow_point_name_valid(c->point) && !c->psk != !c->certificate);
	check(c->interface_count > 0 && c->segment_count > 0);
	for (unsigned i = 0; i < c->segment_count; i++)
		check_segment(c, &c->segments[i]);
	ow_config_free(c);
	return 0;
}
