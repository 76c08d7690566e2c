/* SPDX-License-Identifier: Apache-2.0 */
/* oneway point --check-config: prints a configuration as it was understood. */
#include "report/config.h"

#include "base/time.h"
#include "base/word.h"

#include <stdio.h>

static void show_segment(FILE *out, const struct ow_config *c, const struct ow_config_segment *s)
{
	char interval[OW_DURATION_TEXT], wait[OW_DURATION_TEXT];
	ow_duration_text((double)s->interval_ns, interval);
	ow_duration_text((double)s->wait_ns, wait);
	fprintf(out, "segment    %s: peer %s, %s%s\n", s->name, s->peer,
	        s->connect ? "connects to " : "is connected to", s->connect ? s->connect : "");
	if (s->peers)
		fprintf(out, "  one of %s: loss is that of all together\n", s->group);
	fprintf(out, "  packets to %s: %s%s\n", s->peer,
	        s->to_peer                    ? "those that match "
	        : s->facing == OW_FACING_AWAY ? "those that come in"
	                                      : "those that go out",
	        s->to_peer ? s->to_peer : "");
	fputs("  watches", out);
	for (unsigned i = 0; i < c->interface_count; i++) {
		if (s->interfaces >> i & 1)
			fprintf(out, " %s", c->interfaces[i].name);
	}
	fputs("\n", out);
	fprintf(out, "  clock %s\n",
	        s->clock == OW_CLOCK_TRUSTED    ? "trusted"
	        : s->clock == OW_CLOCK_RELATIVE ? "relative"
	                                        : "auto");
	if (s->stated == 0)
		fputs("  all parameters as the peer states them\n", out);
	if (s->stated & OW_STATED_INTERVAL)
		fprintf(out, "  interval %s\n", interval);
	if (s->stated & OW_STATED_WAIT)
		fprintf(out, "  wait %s\n", wait);
	if (s->stated & OW_STATED_METHOD)
		fprintf(out, "  method %s\n", s->method == OW_METHOD_RDA ? "rda" : "fold");
	if (s->stated & (OW_STATED_IDENTITY | OW_STATED_INNER))
		fprintf(out, "  identity %s%s\n",
		        s->level == OW_LEVEL_NAT    ? "nat"
		        : s->level == OW_LEVEL_AUTO ? "auto"
		                                    : "ip",
		        s->inner ? ", inside tunnels" : "");
	if (s->stated & OW_STATED_SCOPE)
		fprintf(out, "  scope %s\n", s->scope == OW_SCOPE_OF_ALL ? "all" : "shared");
	if ((s->stated & OW_STATED_EXACT) && !s->class_count)
		fprintf(out, "  exact %s\n", s->exact ? "true" : "false");
	for (unsigned i = 0; i < s->class_count; i++)
		fprintf(out, "  class %s%s: %s\n", s->classes[i].name,
		        ow_config_exact(s, &s->classes[i]) ? ", exact" : "",
		        s->classes[i].filter ? s->classes[i].filter : "all IP packets except the points' session");
}

static void show_store(FILE *out, const struct ow_config *c)
{
	fprintf(out, "store      %s", c->store);
	if (c->retention_ns[OW_PERIOD_INTERVAL])
		fprintf(out, ", for %.4g days", (double)c->retention_ns[OW_PERIOD_INTERVAL] / (86400 * 1e9));
	if (c->store_max)
		fprintf(out, ", at most %.4g MiB", (double)c->store_max / (1 << 20));
	fputc('\n', out);
}

void ow_report_config(FILE *out, const struct ow_config *c, unsigned lanes, uint64_t needed)
{
	fprintf(out, "point      %s\n", c->point);
	if (c->listen)
		fprintf(out, "listens    %s\n", c->listen);
	if (c->psk)
		fprintf(out, "psk        %s\n", c->psk);
	else
		fprintf(out, "keys       certificate %s, key %s, ca %s\n", c->certificate, c->key, c->ca);
	fprintf(out, "memory     %.4g MiB; %u lanes need at least %.4g MiB\n", (double)c->memory / (1 << 20), lanes,
	        (double)needed / (1 << 20));
	if (c->store)
		show_store(out, c);
	if (c->metrics)
		fprintf(out, "metrics    http://%s/metrics\n", c->metrics);
	if (c->user)
		fprintf(out, "user       %s\n", c->user);
	if (c->sandbox != OW_SANDBOX_ON)
		fprintf(out, "sandbox    %s\n",
		        c->sandbox == OW_SANDBOX_OFF ? "none" : "only logs what it would kill the point for");
	for (unsigned i = 0; i < c->interface_count; i++) {
		const struct ow_config_interface *in = &c->interfaces[i];
		if (in->file)
			fprintf(out, "file       %s: %s, replayed at speed %g", in->name, in->file, in->speed);
		else
			fprintf(out, "interface  %s: %ju thread%s%s%s", in->name, (uintmax_t)in->threads,
			        ow_plural(in->threads, "", "s"), in->hardware_stamps ? ", hardware timestamps" : "",
			        in->capture == OW_IFACE_KERNEL ? ", capture: kernel" : "");
		fprintf(out, "%s%s\n", in->filter ? ", only " : "", in->filter ? in->filter : "");
	}
	for (unsigned i = 0; i < c->segment_count; i++)
		show_segment(out, c, &c->segments[i]);
}
