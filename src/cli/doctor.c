/* SPDX-License-Identifier: Apache-2.0 */
/* oneway doctor [IF]...: is this host fit to measure, and what to do if not. */
#include "cli/doctor.h"

#include "base/word.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "doctor/chrony.h"
#include "doctor/host_facts.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COMMAND    "doctor"
#define NAMES_SAID 8 /* interfaces in an error */

struct arguments {
	const char *config;
	bool try, json, quiet, no_color, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"config", 'c', "FILE", ow_option_text, FIELD(config),
         "Look at what this configuration of a point needs: its interfaces, store, certificate, peers, memory."},
	{"try", 0, NULL, ow_option_flag, FIELD(try),
         "Capture from each interface for a second: rate, who stamps, superframes, drops (needs CAP_NET_RAW)."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "One JSON object."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Text: warnings and problems only."},
	{"no-color", 0, NULL, ow_option_flag, FIELD(no_color), "No colours, also on a terminal (as NO_COLOR)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway doctor [OPTION]... [IF]...\n"
	      "\n"
	      "Looks at the clock, the kernel, the limits of this host and at interfaces: what\n"
	      "was found, what it means for the measurement, and the command that changes it.\n"
	      "Nothing is changed, and no privilege is needed but for --try. Without IF,\n"
	      "interfaces are only listed.\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway doctor\n"
	      "  oneway doctor eth0 --try\n"
	      "  oneway doctor -c london.yaml --quiet\n"
	      "  oneway doctor --json eth0 | jq '.checks[] | select(.state == \"problem\")'\n"
	      "\n"
	      "exit code: 0 no problem, 1 failed, 2 wrong usage, 3 a problem was found\n",
	      stdout);
}

struct visit {
	const struct arguments *args;
	struct ow_config *config;
	struct ow_link_facts *links;
	size_t link_count;
	struct ow_clock_facts clock;
	struct ow_host_facts host;
	struct ow_diagnoses findings;
};

static struct ow_link_facts *find(const struct visit *v, const char *name)
{
	unsigned index = if_nametoindex(name); /* knows alternative names, too */
	for (size_t i = 0; i < v->link_count; i++) {
		if (strcmp(v->links[i].name, name) == 0 || (index && v->links[i].index == index))
			return &v->links[i];
	}
	return NULL;
}

/* Names of interfaces, written one behind the other; what does not fit is left out. */
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

/* ", did you mean eth0 or eth1?", or which there are. */
static void say_near(const struct visit *v, const char *name, char *text, size_t size)
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

/* Interfaces may have names that a shell takes for something else. */
static bool safe(const char *name)
{
	return name[0] != '-' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-")] == '\0';
}

static void visit_link(struct visit *v, struct ow_link_facts *link)
{
	size_t first = v->findings.count;
	if (link->detailed)
		return; /* named twice */
	ow_facts_link(link);
	ow_judge_link(&v->findings, link, &v->host, &v->clock);
	if (v->args->try) {
		struct ow_trial_facts trial;
		ow_facts_trial(link, OW_PROBE_TRIAL_NS, &trial);
		ow_judge_trial(&v->findings, link, &trial);
	}
	for (size_t i = first; i < v->findings.count && !safe(link->name); i++) {
		struct ow_diagnosis *f = &v->findings.list[i];
		if (f->fix[0])
			ow_fix(f, "# commands are left out: this name means something to a shell");
	}
}

/* A file that the point may read, and this user not. */
static bool denied(const char *path)
{
	return path && access(path, R_OK) < 0 && errno == EACCES;
}

static void visit_peers(struct visit *v)
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

static void visit_point(struct visit *v)
{
	const struct ow_config *c = v->config;
	struct ow_error err = {""};
	struct ow_setup_facts setup = {.path = v->args->config,
	                               .point = c->point,
	                               .interfaces = c->interface_count,
	                               .segments = c->segment_count};
	setup.code = -ow_config_check(c, &err);
	setup.denied = setup.code == EACCES && (denied(c->key) || denied(c->psk) || denied(c->certificate) ||
	                                        denied(c->ca) || denied(c->store) || geteuid() != 0);
	snprintf(setup.error, sizeof setup.error, "%.*s", (int)sizeof setup.error - 1, err.text);
	ow_judge_setup(&v->findings, &setup);
	if (c->certificate) {
		struct ow_certificate_facts certificate;
		ow_facts_certificate(c->certificate, &certificate);
		ow_judge_certificate(&v->findings, &certificate);
	}
	if (c->store) {
		struct ow_store_facts store;
		ow_facts_store(c, &store);
		ow_judge_store(&v->findings, &store);
	}
	if (c->listen) {
		struct ow_listen_facts listen;
		ow_facts_listen(c->listen, &listen);
		ow_judge_listen(&v->findings, &listen);
	}
	visit_peers(v);
}

static void visit_configured(struct visit *v)
{
	const struct ow_config *c = v->config;
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		struct ow_link_facts *link = in->file ? NULL : find(v, in->name);
		char near[128];
		if (in->file)
			continue;
		if (link) {
			link->wants_hardware = in->hardware_stamps;
			visit_link(v, link);
			continue;
		}
		say_near(v, in->name, near, sizeof near);
		ow_judge_absent(&v->findings, in->name, near);
	}
}

static int show(struct visit *v, bool list)
{
	struct utsname name = {.nodename = ""};
	struct ow_doctor_report report = {
		.host = uname(&name) == 0 ? name.nodename : "",
		.point = v->config ? v->config->point : NULL,
		.findings = &v->findings,
		.links = v->links,
		.link_count = v->link_count,
		.list = list,
	};
	struct ow_doctor_style style = {
		.width = ow_terminal_width(stdout),
		.colour = !v->args->no_color && ow_terminal_colour(stdout),
		.quiet = v->args->quiet,
	};
	/* What a driver says of an interface that is only listed. */
	for (size_t i = 0; i < v->link_count && (v->args->json || (list && i < OW_DOCTOR_LINKS)); i++) {
		if (!v->links[i].detailed)
			ow_facts_link(&v->links[i]);
	}
	if (v->args->json)
		ow_doctor_json(stdout, &report);
	else
		ow_doctor_text(stdout, &report, &style);
	return ow_diagnoses_count(&v->findings, OW_VERDICT_PROBLEM) ? OW_EXIT_CROSSED : OW_EXIT_OK;
}

static int prepare(struct visit *v, int operands, char **names, struct ow_error *err)
{
	int r = v->args->config ? ow_config_load(v->args->config, &v->config, err) : 0;
	if (r == 0)
		r = ow_facts_links(&v->links, &v->link_count, err);
	for (int i = 0; r == 0 && i < operands; i++) {
		char near[256];
		if (find(v, names[i]))
			continue;
		say_near(v, names[i], near, sizeof near);
		r = ow_error_set(err, ENODEV, "%.60s: no such interface%s", names[i], near);
	}
	return r;
}

static int examine(struct visit *v, int operands, char **names)
{
	struct ow_error err;
	int r = prepare(v, operands, names, &err);
	if (r < 0)
		return ow_cli_failed(COMMAND, &err);
	ow_facts_clock(OW_CLOCKS_CHRONY_PORT, &v->clock);
	ow_facts_host(v->config, &v->host);
	ow_judge_clock(&v->findings, &v->clock);
	ow_judge_host(&v->findings, &v->host);
	if (v->config) {
		visit_point(v);
		visit_configured(v);
	}
	for (int i = 0; i < operands; i++) {
		struct ow_link_facts *link = find(v, names[i]);
		if (link) /* an alternative name can be gone by now */
			visit_link(v, link);
	}
	if (v->findings.error < 0) {
		ow_error_set(&err, -v->findings.error, "not enough memory");
		return ow_cli_failed(COMMAND, &err);
	}
	return show(v, !v->config && operands == 0);
}

int ow_cli_doctor(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands >= 0 && !args.help && args.try && operands == 0 && !args.config)
		operands = ow_error_set(&err, EINVAL, "--try needs an interface, or -c FILE");
	if (operands >= 0 && args.json && args.quiet)
		operands = ow_error_set(&err, EINVAL, "--json and --quiet exclude each other");
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	struct visit visit = {.args = &args};
	int code = examine(&visit, operands, argv + 1);
	ow_diagnoses_done(&visit.findings);
	free(visit.links);
	ow_config_free(visit.config);
	return code;
}
