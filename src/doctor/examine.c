/* SPDX-License-Identifier: Apache-2.0 */
/* Examines a host: collects facts and judges each. */
#include "doctor/examine.h"

#include "base/word.h"
#include "doctor/chrony.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_SAID 8 /* interfaces named in an error */

static struct ow_link_facts *find(const struct ow_examination *v, const char *name)
{
	unsigned index = if_nametoindex(name); /* also finds alternative names */
	for (size_t i = 0; i < v->link_count; i++) {
		if (strcmp(v->links[i].name, name) == 0 || (index && v->links[i].index == index))
			return &v->links[i];
	}
	return NULL;
}

/* A list of names of interfaces; names that do not fit are left out. */
struct names {
	char *text;
	size_t size, length, count;
};

static void add_name(struct names *names, const char *join, const char *name)
{
	if (names->length < names->size)
		names->length += (size_t)snprintf(names->text + names->length, names->size - names->length, "%s%s",
		                                  names->count++ ? join : "", name);
}

/* ", did you mean eth0 or eth1?", or the list of interfaces. */
static void say_near(const struct ow_examination *v, const char *name, char *text, size_t size)
{
	struct names names = {.text = text, .size = size};
	unsigned nearest = OW_WORD_NEAR + 1;
	for (size_t i = 0; i < v->link_count; i++) {
		unsigned distance = ow_word_distance(name, v->links[i].name);
		if (distance < nearest && distance < strlen(name))
			nearest = distance;
	}
	bool near = nearest <= OW_WORD_NEAR;
	names.length = (size_t)snprintf(text, size, near ? ", did you mean " : "; there are ");
	for (size_t i = 0; i < v->link_count && names.count < NAMES_SAID; i++) {
		if (!near || ow_word_distance(name, v->links[i].name) == nearest)
			add_name(&names, near ? " or " : ", ", v->links[i].name);
	}
	names.count = 0;
	add_name(&names, "", near ? "?" : v->link_count > NAMES_SAID ? ", ..." : "");
}

/* Names of interfaces may contain characters that are special to a shell. */
static bool safe(const char *name)
{
	return name[0] != '-' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-")] == '\0';
}

static void visit_link(struct ow_examination *v, struct ow_link_facts *link, bool try)
{
	size_t first = v->findings.count;
	if (link->detailed)
		return; /* already in the list */
	ow_facts_link(link);
	link->capture_speed = ow_iface_speed(link->name);
	if (!link->capture_ring)
		link->capture_ring = link->capture_ring_usual = ow_iface_usual_ring(link->name, 1);
	ow_judge_link(&v->findings, link, &v->host, &v->clock);
	if (try) {
		struct ow_trial_facts trial;
		ow_facts_trial(link, OW_PROBE_TRIAL_NS, &trial);
		ow_judge_trial(&v->findings, link, &trial);
	}
	for (size_t i = first; i < v->findings.count && !safe(link->name); i++) {
		struct ow_diagnosis *f = &v->findings.list[i];
		if (f->fix[0])
			ow_fix(f, "# no command is shown: this name contains characters that are special to a shell");
	}
}

/* A file that the point may read but this user may not. */
static bool denied(const char *path)
{
	return path && access(path, R_OK) < 0 && errno == EACCES;
}

static void visit_peers(struct ow_examination *v)
{
	const struct ow_config *c = v->config;
	struct ow_peer_facts *peers = calloc(c->segment_count ? c->segment_count : 1, sizeof *peers);
	size_t count = 0;
	if (!peers) {
		v->findings.error = -ENOMEM;
		return;
	}
	for (unsigned i = 0; i < c->segment_count; i++) {
		const struct ow_config_segment *s = &c->segments[i];
		bool known = !s->connect;
		for (size_t k = 0; k < count; k++)
			known |= strcmp(peers[k].peer, s->peer) == 0;
		if (!known)
			peers[count++] = (struct ow_peer_facts){.peer = s->peer, .address = s->connect};
	}
	ow_facts_peers(peers, count);
	for (size_t i = 0; i < count; i++)
		ow_judge_peer(&v->findings, &peers[i]);
	free(peers);
}

static void visit_point(struct ow_examination *v, const char *path)
{
	const struct ow_config *c = v->config;
	struct ow_error err = {""};
	struct ow_setup_facts setup = {
		.path = path, .point = c->point, .interfaces = c->interface_count, .segments = c->segment_count};
	setup.code = -ow_config_check(c, &err);
	setup.denied = setup.code == EACCES && (denied(c->key) || denied(c->psk) || denied(c->certificate) ||
	                                        denied(c->ca) || denied(c->store) || geteuid() != 0);
	snprintf(setup.error, sizeof setup.error, "%.*s", (int)sizeof setup.error - 1, err.text);
	ow_judge_setup(&v->findings, &setup);
	if (c->certificate) {
		struct ow_certificate_facts certificate;
		ow_facts_certificate(c->certificate, &certificate);
		certificate.renewed = c->fleet.address != NULL;
		ow_judge_certificate(&v->findings, &certificate);
	}
	if (c->store) {
		struct ow_store_facts store;
		ow_facts_store(c, &store);
		ow_judge_store(&v->findings, &store);
		for (unsigned i = 0; i < c->segment_count; i++) {
			struct ow_history_facts history;
			ow_facts_history(c, i, &history);
			ow_judge_history(&v->findings, &history);
		}
	}
	if (c->listen) {
		struct ow_listen_facts listen;
		ow_facts_listen(c->listen, &listen);
		ow_judge_listen(&v->findings, &listen);
	}
	visit_peers(v);
}

static bool wants_kernel(const struct ow_config_interface *in)
{
	return in->capture == OW_IFACE_KERNEL && !ow_facts_needs_ring(in);
}

/* An interface that is recorded in another way, and is watched for the same segment. */
static const char *find_mixed(const struct ow_config *config, unsigned interface)
{
	for (unsigned i = 0; i < config->segment_count; i++) {
		uint32_t together = config->segments[i].interfaces;
		for (unsigned k = 0; together >> interface & 1 && k < config->interface_count; k++) {
			const struct ow_config_interface *other = &config->interfaces[k];
			if (together >> k & 1 && !other->file &&
			    wants_kernel(other) != wants_kernel(&config->interfaces[interface]))
				return other->name;
		}
	}
	return NULL;
}

/* The settings of an interface in the configuration. */
static void note_wishes(const struct ow_config *config, unsigned interface, bool possible, struct ow_link_facts *link)
{
	const struct ow_config_interface *in = &config->interfaces[interface];
	unsigned away = 0, segments = 0;
	for (unsigned i = 0; i < config->segment_count; i++) {
		const struct ow_config_segment *s = &config->segments[i];
		if (s->interfaces >> interface & 1) {
			segments++;
			away += s->facing == OW_FACING_AWAY;
		}
	}
	link->wants_hardware = in->hardware_stamps;
	link->wants_kernel = wants_kernel(in);
	link->needs_ring = ow_facts_needs_ring(in);
	link->mixed_with = possible ? find_mixed(config, interface) : NULL;
	link->faces_away = segments && away == segments;
	link->capture_ring_usual = ow_iface_usual_ring(in->name, (unsigned)in->threads);
	link->capture_ring = in->ring_bytes ? in->ring_bytes : link->capture_ring_usual;
	if (possible && link->wants_kernel)
		link->capture_ring = ow_iface_kernel_ring_here(link->capture_ring, NULL);
}

static void visit_configured(struct ow_examination *v, bool try)
{
	const struct ow_config *c = v->config;
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		struct ow_link_facts *link = in->file ? NULL : find(v, in->name);
		char near[128];
		if (in->file)
			continue;
		if (link) {
			note_wishes(c, i, !v->host.no_kernel[0], link);
			visit_link(v, link, try);
			continue;
		}
		say_near(v, in->name, near, sizeof near);
		ow_judge_absent(&v->findings, in->name, near);
	}
}

static int prepare(struct ow_examination *v, const struct ow_examine *what, struct ow_error *err)
{
	int r = what->config ? ow_config_load(what->config, &v->config, err) : 0;
	if (r == 0)
		r = ow_facts_links(&v->links, &v->link_count, err);
	for (int i = 0; r == 0 && i < what->count; i++) {
		char near[256];
		if (find(v, what->name[i]))
			continue;
		say_near(v, what->name[i], near, sizeof near);
		r = ow_error_set(err, ENODEV, "%.60s: no such interface%s", what->name[i], near);
	}
	return r;
}

static void examine(struct ow_examination *v, const struct ow_examine *what)
{
	ow_facts_clock(OW_CLOCKS_CHRONY_PORT, &v->clock);
	ow_facts_host(v->config, &v->host);
	ow_judge_clock(&v->findings, &v->clock);
	ow_judge_host(&v->findings, &v->host);
	if (v->config) {
		visit_point(v, what->config);
		visit_configured(v, what->try);
	}
	for (int i = 0; i < what->count; i++) {
		struct ow_link_facts *link = find(v, what->name[i]);
		if (link) /* an alternative name may have been removed meanwhile */
			visit_link(v, link, what->try);
	}
}

int ow_examine(const struct ow_examine *what, struct ow_examination *ret_examination, struct ow_error *err)
{
	struct ow_examination *v = ret_examination;
	*v = (struct ow_examination){0};
	int r = prepare(v, what, err);
	if (r == 0) {
		examine(v, what);
		if (v->findings.error < 0)
			r = ow_error_set(err, -v->findings.error, "not enough memory");
	}
	if (r < 0)
		ow_examination_done(v);
	return r;
}

void ow_examination_done(struct ow_examination *v)
{
	ow_diagnoses_done(&v->findings);
	free(v->links);
	ow_config_free(v->config);
	*v = (struct ow_examination){0};
}
