/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page of the configuration. The meanings of keys are written for pages in Markdown: `code` and [text](link). */
#include "report/config_manual.h"

#include "config/config.h"
#include <oneway/oneway.h>
#include <string.h>

static void put_character(FILE *out, char c)
{
	if (c == '\\')
		fputs("\\e", out);
	else if (c == '-')
		fputs("\\-", out);
	else
		fputc(c, out);
}

/* Each text is one line of input, so no sentence of it can begin with a dot and be taken for a request. */
static void put_text(FILE *out, const char *text)
{
	bool code = false;
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		const char *link = *text == ']' && text[1] == '(' ? strchr(text, ')') : NULL;
		if (link) {
			text = link;
		} else if (*text == '`') {
			code = !code;
			fputs(code ? "\\fB" : "\\fR", out);
		} else if (*text != '[' || code || !strstr(text, "](")) {
			put_character(out, *text);
		}
	}
	fputc('\n', out);
}

static void put_table(FILE *out, const struct ow_key *table)
{
	for (const struct ow_key *key = table; key->name; key++) {
		const struct ow_key *last = key;
		fputs(".TP\n", out);
		fprintf(out, "\\fB%s\\fR", key->name);
		/* Keys that are described together. */
		while (last[1].name && !last[1].meaning)
			fprintf(out, ", \\fB%s\\fR", (++last)->name);
		if (key->fallback)
			fputs(" (default: ", out);
		for (const struct ow_key *k = key; k <= last && k->fallback; k++)
			fprintf(out, "%s%s", k == key ? "" : ", ", k->fallback);
		fputs(key->fallback ? ")\n" : "\n", out);
		put_text(out, key->meaning);
		key = last;
	}
}

void ow_report_config_manual(FILE *out)
{
	static const struct {
		const char *title, *about;
		const struct ow_key *keys;
	} sections[] = {
		{"THE POINT", "The keys of the file itself:", ow_config_keys},
		{"INTERFACES", "Each entry of `interfaces`:", ow_interface_keys},
		{"SEGMENTS",
	         "Each entry of `segments`: the path between this point and one peer, in both directions. It has the "
	         "same "
	         "name at both points. Exactly one of them has `connect`; this point states the parameters.",
	         ow_segment_keys},
		{"FLOWS", "Each entry of `flows`: a recording for per-flow latency.", ow_flows_keys},
		{"FLEET", "The keys of `fleet`. A point of a fleet needs no others.", ow_fleet_keys},
		{"DISCOVERY", "The keys of `discovery`: samples of packets, for the map of the network.",
	         ow_discovery_keys},
	};
	fprintf(out,
	        ".\\\" Made from the tables of keys by 'oneway manual'.\n"
	        ".TH ONEWAY.YAML 5 2026-11-18 \"oneway %s\" \"File Formats\"\n"
	        ".SH NAME\n"
	        "oneway.yaml \\- the configuration of a measurement point\n"
	        ".SH SYNOPSIS\n"
	        ".B oneway point \\-c\n"
	        ".I FILE\n"
	        ".br\n"
	        ".B /etc/oneway/NAME.yaml\n"
	        "of the unit\n"
	        ".B oneway\\-point@NAME.service\n"
	        ".SH DESCRIPTION\n"
	        "A YAML file says what a point watches, with whom it compares it, and how.\n"
	        "The reader is strict: an unknown or repeated key, a missing unit, or a value out of range is an error "
	        "that\n"
	        "names file and line.\n"
	        ".B oneway point \\-c FILE \\-\\-check\\-config\n"
	        "checks it, and prints what it understood.\n"
	        ".PP\n"
	        "Durations have units (250ms, 1s, 5min). Sizes are bytes, K, KiB, MiB, GiB (of 1024) or kB, MB, GB (of "
	        "1000).\n"
	        "Relative paths start at the folder of the file. Filters are those of\n"
	        ".BR pcap\\-filter (7).\n",
	        ow_version());
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		fprintf(out, ".SH %s\n", sections[i].title);
		put_text(out, sections[i].about);
		put_table(out, sections[i].keys);
	}
	fputs(".SH SEE ALSO\n.BR oneway\\-point (1),\n.BR pcap\\-filter (7)\n", out);
}
