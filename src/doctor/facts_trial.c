/* SPDX-License-Identifier: Apache-2.0 */
/* A trial: captures from an interface for a short time, as a point does. */
#include "base/time.h"
#include "packet/segments.h"
#include "doctor/host_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAMES 256

static int64_t amount(int64_t value)
{
	return value < 0 ? -value : value;
}

struct trial {
	struct ow_iface_frame frames[FRAMES];
	struct ow_segments segments;
	struct ow_identity identity;
};

static void count_frames(struct trial *trial, struct ow_trial_facts *t, int n, int64_t now_ns)
{
	for (int i = 0; i < n; i++) {
		const struct ow_iface_frame *f = &trial->frames[i];
		int64_t ahead = f->frame.time_ns - now_ns;
		t->in += f->heading == OW_HEADING_IN;
		t->out += f->heading == OW_HEADING_OUT;
		t->superframes += f->gso != OW_GSO_NONE;
		if (ow_segments_of_frame(&trial->identity, f, &trial->segments) == 0) {
			t->packets += trial->segments.count;
			t->uncut += trial->segments.uncut;
		}
		if (amount(ahead) > amount(t->stamp_ahead_ns))
			t->stamp_ahead_ns = ahead;
	}
}

static int capture(struct ow_iface *live, int64_t for_ns, struct ow_trial_facts *t, struct ow_error *err)
{
	struct trial *trial = calloc(1, sizeof *trial);
	int64_t start = ow_clock_steady_ns(), now = start;
	int r = 0;
	if (!trial)
		return ow_error_set(err, ENOMEM, "not enough memory");
	/* Only the number of packets is needed, not their ids. */
	trial->identity = (struct ow_identity){.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&trial->identity, 0);
	while (r >= 0 && now - start < for_ns) {
		int64_t left_ms = (for_ns - (now - start)) / OW_NS_PER_MS + 1;
		r = ow_iface_read(live, (int)left_ms, trial->frames, FRAMES, err);
		if (r > 0)
			count_frames(trial, t, r, ow_iface_now_ns(live));
		now = ow_clock_steady_ns();
	}
	t->seconds = (double)(now - start) / 1e9;
	ow_iface_counts(live, &t->counts);
	free(trial);
	return r < 0 ? r : 0;
}

/* The current counters of an interface. */
static struct ow_link_counters look(unsigned index)
{
	struct ow_link_counters counters = {0};
	struct ow_link_facts *links;
	size_t count;
	if (ow_facts_links(&links, &count, NULL) < 0)
		return counters;
	for (size_t i = 0; i < count; i++) {
		if (links[i].index == index)
			counters = links[i].counters;
	}
	free(links);
	return counters;
}

static uint64_t rise(uint64_t after, uint64_t before)
{
	return after > before ? after - before : 0;
}

void ow_facts_trial(const struct ow_link_facts *link, int64_t for_ns, struct ow_trial_facts *ret_facts)
{
	struct ow_trial_facts *t = ret_facts;
	struct ow_iface_options options = {.kind = link->wants_kernel ? OW_IFACE_KERNEL : OW_IFACE_RING,
	                                   .name = link->name,
	                                   .hardware_stamps = link->wants_hardware};
	struct ow_iface *live;
	struct ow_error err = {""};
	*t = (struct ow_trial_facts){0};
	struct ow_link_counters before = look(link->index);
	int r = ow_iface_open(&options, &live, &err);
	if (r == -ENOTSUP) {
		options.kind = OW_IFACE_LIBPCAP;
		r = ow_iface_open(&options, &live, &err);
	}
	if (r == 0) {
		snprintf(t->kind, sizeof t->kind, "%s", ow_iface_kind_name(live));
		snprintf(t->note, sizeof t->note, "%.*s", (int)sizeof t->note - 1, ow_iface_note(live));
		r = capture(live, for_ns, t, &err);
		ow_iface_close(live);
	}
	struct ow_link_counters after = look(link->index);
	t->counters = (struct ow_link_counters){
		.in = rise(after.in, before.in),
		.out = rise(after.out, before.out),
		.missed = rise(after.missed, before.missed),
		.in_dropped = rise(after.in_dropped, before.in_dropped),
		.in_errors = rise(after.in_errors, before.in_errors),
		.out_dropped = rise(after.out_dropped, before.out_dropped),
		.out_errors = rise(after.out_errors, before.out_errors),
	};
	if (r < 0) {
		t->code = -r;
		snprintf(t->error, sizeof t->error, "%.*s", (int)sizeof t->error - 1, err.text);
	}
}
