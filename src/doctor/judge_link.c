/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what an interface is, whether it is the right place to measure at, and whether packets pass it unseen. */
#include "base/word.h"
#include "doctor/host_judge.h"

#include <net/if_arp.h>
#include <string.h>

#define MTU_USUAL 1500
#define MTU_SMALL 1280 /* the least MTU of IPv6 */
/* If a card missed this share of its packets or more, loss results are affected. */
#define MISSED_MATTERS 1e-6
/* Not in the kernel headers of Debian 12. */
#define ARPHRD_RAW_IP 519

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool is_tunnel(const char *kind)
{
	static const char *const kinds[] = {"vxlan",  "geneve",    "gre",    "gretap", "ip6gre", "ip6gretap",
	                                    "erspan", "ipip",      "ip6tnl", "sit",    "vti",    "vti6",
	                                    "xfrm",   "wireguard", "tun",    "ppp",    NULL};
	for (const char *const *k = kinds; *k; k++) {
		if (is(kind, *k))
			return true;
	}
	return false;
}

/* Interfaces that consist of others, or of software only. False: there is nothing to report. */
static bool judge_kind(struct ow_diagnosis *f, const struct ow_link_facts *l)
{
	if (l->loopback) {
		ow_found(f, OW_VERDICT_NOTE, "loopback");
		ow_means(f, "Each packet passes twice, out and in, a moment apart; it tells nothing about a network.");
	} else if (is(l->kind, "veth")) {
		ow_found(f, OW_VERDICT_NOTE, "veth: one end of a pair, the other is %s",
		         l->parent[0] ? l->parent : "in another namespace");
		ow_means(f, "Sees the traffic of one container or namespace. No card stamps or drops here.");
	} else if (is(l->kind, "bridge")) {
		ow_found(f, OW_VERDICT_WARNING, "bridge");
		ow_means(f, "Sees what goes to or from this host, not what passes between its ports. To measure what "
		            "is forwarded, watch a port.");
		ow_fix(f, "bridge link show  # its ports are those with 'master %s'", l->name);
	} else if (is(l->kind, "bond") || is(l->kind, "team")) {
		ow_found(f, OW_VERDICT_OK, "%s", l->kind);
		ow_means(f, "Sees the packets of all its members: the right level. Drops and rings are those of the "
		            "members: look at them, too.");
	} else if (is(l->kind, "vlan")) {
		ow_found(f, OW_VERDICT_OK, "VLAN on %s", l->parent[0] ? l->parent : "another interface");
		ow_means(f, "Sees the packets of this VLAN, without tag. Timestamps, drops and rings are those of the "
		            "interface below: look at it, too.");
	} else if (is(l->kind, "dummy") || is(l->kind, "ifb") || is(l->kind, "nlmon")) {
		ow_found(f, OW_VERDICT_WARNING, "%s", l->kind);
		ow_means(f, "Not an interface to a network: what goes out here arrives nowhere, and counts as lost.");
		ow_fix(f, "oneway doctor  # lists the interfaces");
	} else if (is_tunnel(l->kind)) {
		ow_found(f, OW_VERDICT_NOTE, "tunnel (%s)", l->kind);
		ow_means(f, "Shows the packets inside. A point that sees the tunnel's outside needs 'inner: true', and "
		            "cannot look into what is encrypted.");
	} else if (l->kind[0]) {
		ow_found(f, OW_VERDICT_NOTE, "%s%s%s", l->kind, l->parent[0] ? " on " : "", l->parent);
		ow_means(f, "An interface made by software: a card below it has the rings, drops and timestamps.");
	} else {
		return false;
	}
	return true;
}

static void judge_level(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "interface");
	if (!judge_kind(f, l)) {
		ow_found(f, OW_VERDICT_OK, "%s%s", l->driver[0] ? "a card, driver " : "a card", l->driver);
		ow_means(f, "Sees all packets of this link.");
	}
	if (l->master[0] == '\0')
		return;
	f = ow_diagnoses_add(findings, l->name, "member");
	if (is(l->master_kind, "bond") || is(l->master_kind, "team")) {
		ow_found(f, OW_VERDICT_WARNING, "member of the %s %s", l->master_kind, l->master);
		ow_means(f, "Sees its share of the packets only; the rest would count as lost or extra.");
		ow_fix(f, "oneway doctor %s  # and measure there", l->master);
	} else {
		ow_found(f, OW_VERDICT_OK, "member of %s%s%s", l->master_kind, l->master_kind[0] ? " " : "", l->master);
		ow_means(f, "Sees all that passes this port, forwarded or for this host.");
	}
}

static void judge_link_layer(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	static const unsigned known[] = {ARPHRD_ETHER,  ARPHRD_LOOPBACK, ARPHRD_NONE, ARPHRD_PPP,   ARPHRD_RAW_IP,
	                                 ARPHRD_TUNNEL, ARPHRD_TUNNEL6,  ARPHRD_SIT,  ARPHRD_IPGRE, 823 /* IP6GRE */};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (l->hardware == known[i])
			return;
	}
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "link_layer");
	ow_found(f, OW_VERDICT_WARNING, "number %u: read through libpcap", l->hardware);
	ow_means(f, "libpcap shows neither the direction nor superframes: 'to_peer' must give the direction.");
	ow_fix(f, "# 'to_peer: FILTER' in the configuration, and offloads off");
}

static void judge_state(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "link");
	if (!l->up) {
		ow_found(f, OW_VERDICT_PROBLEM, "down");
		ow_means(f, "Nothing passes; a capture does not start.");
		ow_fix(f, "ip link set %s up", l->name);
		return;
	}
	if (!l->carrier) {
		ow_found(f, OW_VERDICT_PROBLEM, "up, but no carrier");
		ow_means(f, "Nothing passes.");
		ow_fix(f, is(l->kind, "veth") ? "# bring up the other end of the pair" : "# cable, or the other end");
		return;
	}
	if (l->full_duplex == 0) {
		ow_found(f, OW_VERDICT_WARNING, "up, %jd Mb/s, half duplex", (intmax_t)l->speed_mbps);
		ow_means(f, "Packets collide and wait: late and lost packets are made here.");
		ow_fix(f, "ethtool -s %s autoneg on", l->name);
		return;
	}
	if (l->speed_mbps > 0)
		ow_found(f, OW_VERDICT_OK, "up, %jd Mb/s%s", (intmax_t)l->speed_mbps,
		         l->full_duplex == 1 ? ", full duplex" : "");
	else
		ow_found(f, OW_VERDICT_OK, "up, speed not known");
	ow_means(f, "Packets can pass.");
}

static void judge_mtu(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "mtu");
	if (l->mtu < MTU_SMALL) {
		ow_found(f, OW_VERDICT_WARNING, "%u", l->mtu);
		ow_means(f, "Packets are cut into fragments here. A point with a packet that the other sees in "
		            "fragments measures the first of them.");
		ow_fix(f, "ip link set %s mtu %d", l->name, MTU_USUAL);
		return;
	}
	ow_found(f, OW_VERDICT_OK, "%u%s%s", l->mtu, l->mtu > MTU_USUAL && !l->loopback ? ", jumbo frames" : "",
	         l->gso_max > 65536 ? ", BIG TCP" : "");
	ow_means(f, "Whole frames are captured, whatever their size. %s",
	         l->mtu > MTU_USUAL && !l->loopback
	                 ? "Where the path has a smaller MTU, packets are fragmented, and a packet matches its first "
	                   "fragment."
	                 : "A packet that is fragmented between the points matches its first fragment.");
}

static void judge_promiscuous(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "promiscuous");
	ow_found(f, OW_VERDICT_OK, l->promiscuous ? "on: a capture runs, or a bridge has it" : "off");
	ow_means(f, "Need not be set: a capture turns it on while it runs.");
}

static void judge_xdp(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	if (!l->xdp)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "xdp");
	ow_found(f, OW_VERDICT_WARNING, "a program is attached");
	ow_means(f, "Packets that it drops or redirects are never seen here, and count as lost.");
	ow_fix(f, "bpftool net show dev %s; ip link set %s xdp off", l->name, l->name);
}

static void judge_ring(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	if (l->ring_error || l->ring_in_max == 0)
		return; /* made by software: no ring */
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "card_ring");
	bool small = l->ring_in < l->ring_in_max;
	ow_found(f,
	         small && l->counters.missed ? OW_VERDICT_WARNING
	         : small                     ? OW_VERDICT_NOTE
	                                     : OW_VERDICT_OK,
	         "%u packets in, %u out; at most %u and %u", l->ring_in, l->ring_out, l->ring_in_max, l->ring_out_max);
	ow_means(f, small ? "The card misses packets when a burst lasts longer than the kernel takes to read them."
	                  : "As large as the card permits.");
	if (small)
		ow_fix(f, "ethtool -G %s rx %u", l->name, l->ring_in_max);
}

/* How long the link at full rate, in both directions, takes to fill the ring with whole frames. */
static void judge_capture_ring(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	double mib = 1 << 20, bytes = (double)l->capture_ring, usual = (double)l->capture_ring_usual;
	if (l->capture_ring == 0)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "ring");
	if (l->capture_speed)
		ow_found(f, bytes < usual ? OW_VERDICT_WARNING : OW_VERDICT_OK,
		         "%.0f MiB, %.0f ms of %.0f Mb/s each way", bytes / mib,
		         1000 * bytes / ((double)l->capture_speed / 4), (double)l->capture_speed / 1e6);
	else
		ow_found(f, bytes < usual ? OW_VERDICT_NOTE : OW_VERDICT_OK, "%.0f MiB, %sspeed not known", bytes / mib,
		         l->speed_mbps > 0 ? "real " : "");
	if (bytes < usual) {
		ow_means(f, "If the point does not run for this long, frames are dropped, and intervals are partial.");
		ow_fix(f, "# 'ring: %.0fMiB' for this interface, or no 'ring'", usual / mib);
	} else {
		ow_means(f, "Frames of TCP take a tenth of that, because the ring holds their headers only.");
	}
}

/* Only if it is not as the configuration seems to say. */
static void judge_capture_kind(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	if (!l->needs_ring && !l->mixed_with)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "capture");
	if (l->mixed_with) {
		ow_found(f, OW_VERDICT_WARNING, "recorded %s, and %s of the same segment %s%s%s",
		         l->wants_kernel ? "in the kernel" : "through a ring", l->mixed_with,
		         l->wants_kernel ? "through a ring" : "in the kernel", l->needs_ring ? "; " : "",
		         l->needs_ring ? l->needs_ring : "");
		ow_means(f, "Their times differ by up to a microsecond, on a busy host by more, and so do delays.");
		ow_fix(f, "# the same 'capture:' for both in the configuration");
	} else {
		ow_found(f, OW_VERDICT_WARNING, "through a ring: %s", l->needs_ring);
		ow_means(f, "The configuration asks for recording in the kernel; a ring takes its place.");
		ow_fix(f, "# no 'capture: kernel' for this interface, or nothing that needs a ring");
	}
}

/* Queues that are there by default, and not to slow traffic down. */
static bool is_usual_queue(const char *qdisc)
{
	static const char *const usual[] = {"mq", "mqprio",   "pfifo_fast", "pfifo", "bfifo",
	                                    "fq", "fq_codel", "sfq",        NULL};
	for (const char *const *q = usual; *q; q++) {
		if (is(qdisc, *q))
			return true;
	}
	return false;
}

static void judge_queue(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	if (!l->qdisc[0] || is(l->qdisc, "noqueue") || is(l->qdisc, "noop"))
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "queue");
	if (l->faces_away) {
		ow_found(f, OW_VERDICT_OK, "%s, 'facing: away'", l->qdisc);
		ow_means(f, "Packets to the peer are seen as they come in, so the queues of this host are measured.");
		return;
	}
	ow_found(f, is_usual_queue(l->qdisc) ? OW_VERDICT_NOTE : OW_VERDICT_WARNING, "%s", l->qdisc);
	ow_means(f, "Packets are seen after they have left this queue: what waits or is dropped in it is in no "
	            "result. To measure it, watch the interface on the inner side.");
	ow_fix(f, "# on the inner side 'facing: away'; 'tc -s qdisc show dev %s' shows the queue", l->name);
}

static void judge_drops_in(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	const struct ow_link_counters *c = &l->counters;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "drops_in");
	if (c->missed) {
		bool matters = (double)c->missed >= MISSED_MATTERS * (double)(c->in + c->missed);
		ow_found(f, matters ? OW_VERDICT_WARNING : OW_VERDICT_NOTE, "the card missed %ju of %ju packets",
		         (uintmax_t)c->missed, (uintmax_t)(c->in + c->missed));
		ow_means(f, "These packets arrived but no capture here has seen them: they count as lost although the "
		            "network "
		            "delivered them. --try shows whether it goes on.");
		if (!l->ring_error && l->ring_in < l->ring_in_max)
			ow_fix(f, "ethtool -G %s rx %u", l->name, l->ring_in_max);
		else
			ow_fix(f, "ethtool -S %s | grep -i -e miss -e drop -e fifo  # more queues: ethtool -L",
			       l->name);
	} else if (c->in_errors) {
		ow_found(f, OW_VERDICT_WARNING, "%ju of %ju packets damaged", (uintmax_t)c->in_errors,
		         (uintmax_t)(c->in + c->in_errors));
		ow_means(f, "Lost on the last link: cable, optics, or the other end.");
		ow_fix(f, "ethtool -S %s | grep -i -e err -e crc", l->name);
	} else if (c->in_dropped) {
		ow_found(f, OW_VERDICT_NOTE, "%ju of %ju packets dropped by the kernel", (uintmax_t)c->in_dropped,
		         (uintmax_t)c->in);
		ow_means(f, "Mostly frames of protocols that no program uses; a capture sees those. Packets that were "
		            "dropped because there was no room count as lost.");
		ow_fix(f, "ip -s -s link show %s", l->name);
	} else {
		ow_found(f, OW_VERDICT_OK, "none of %ju %s", (uintmax_t)c->in, ow_plural(c->in, "packet", "packets"));
		ow_means(f, "A capture sees all packets that arrive.");
	}
}

static void judge_drops_out(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	const struct ow_link_counters *c = &l->counters;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "drops_out");
	if (c->out_dropped || c->out_errors) {
		ow_found(f, OW_VERDICT_WARNING, "%ju dropped, %ju failed of %ju packets", (uintmax_t)c->out_dropped,
		         (uintmax_t)c->out_errors, (uintmax_t)c->out);
		ow_means(f, "If the driver dropped them, a capture saw them as sent: they count as lost. They were "
		            "indeed lost, but on this host.");
		ow_fix(f, "tc -s qdisc show dev %s; ethtool -S %s | grep -i -e drop -e err", l->name, l->name);
	} else {
		ow_found(f, OW_VERDICT_OK, "none of %ju %s", (uintmax_t)c->out, ow_plural(c->out, "packet", "packets"));
		ow_means(f, "All packets that are sent leave this host.");
	}
}

static void judge_queues(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_host_facts *host,
                         const struct ow_clock_facts *clock)
{
	if (l->queues == 0 || l->irqs == 0)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "interrupts");
	bool balanced = clock->programs & OW_PROGRAM_IRQBALANCE;
	bool crowded = l->irqs > 1 && l->irq_cpus == 1 && host->cpus > 1 && l->queues > 1;
	ow_found(f, crowded ? OW_VERDICT_NOTE : OW_VERDICT_OK, "%u queue%s, %u interrupt%s on %u CPU%s%s", l->queues,
	         ow_plural(l->queues, "", "s"), l->irqs, ow_plural(l->irqs, "", "s"), l->irq_cpus,
	         ow_plural(l->irq_cpus, "", "s"), balanced ? ", irqbalance runs" : "");
	if (crowded) {
		ow_means(f,
		         "One CPU handles all packets of the card: at high rates timestamps are late and packets are "
		         "missed.");
		ow_fix(f, balanced ? "grep . /proc/irq/*/smp_affinity_list" : "apt install irqbalance");
	} else {
		ow_means(f, "The load of the card's packets is spread as far as its queues permit.");
	}
}

void ow_judge_link(struct ow_diagnoses *findings, const struct ow_link_facts *facts, const struct ow_host_facts *host,
                   const struct ow_clock_facts *clock)
{
	judge_level(findings, facts);
	judge_state(findings, facts);
	judge_link_layer(findings, facts);
	judge_mtu(findings, facts);
	judge_promiscuous(findings, facts);
	judge_xdp(findings, facts);
	ow_judge_stamps(findings, facts, clock);
	ow_judge_offloads(findings, facts, host);
	judge_ring(findings, facts);
	judge_capture_ring(findings, facts);
	judge_capture_kind(findings, facts);
	judge_queue(findings, facts);
	judge_queues(findings, facts, host, clock);
	judge_drops_in(findings, facts);
	judge_drops_out(findings, facts);
}
