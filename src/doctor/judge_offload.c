/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what an interface does to packets before a capture sees them: offloads and timestamps. */
#include "base/time.h"
#include "doctor/host_judge.h"

#include <linux/net_tstamp.h>
#include <stdio.h>
#include <string.h>

#define SUPERFRAME_BYTES 65536

/* Up to this difference the clocks of the card and the host count as equal. */
#define PHC_NEAR_NS (OW_NS_PER_MS / 10)
/* A PHC that runs on TAI differs from TAI by at most this. */
#define PHC_TAI_NS (100 * OW_NS_PER_MS)

static const char *on_off(bool on)
{
	return on ? "on" : "off";
}

/* How long the first packet of a superframe waits for the last: all have one timestamp. "" = not known. */
static void spread(const struct ow_link_facts *l, char *text, size_t size)
{
	char time[OW_DURATION_TEXT];
	text[0] = '\0';
	if (l->speed_mbps <= 0)
		return;
	ow_duration_text((double)SUPERFRAME_BYTES * 8 * 1e3 / (double)l->speed_mbps, time);
	snprintf(text, size, ", up to %s off", time);
}

static void judge_sending(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	const bool *on = l->feature;
	bool tso = on[OW_FEATURE_TSO4] || on[OW_FEATURE_TSO6];
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "segmentation");
	char off[48];
	spread(l, off, sizeof off);
	if (!tso && !on[OW_FEATURE_UDP_SEGMENTS]) {
		/* A superframe that the card does not cut is cut before a capture sees it. */
		ow_found(f, OW_VERDICT_OK, "TSO off, GSO %s", on_off(on[OW_FEATURE_GSO]));
		ow_means(f, "Packets go out as they are on the wire, each with its own time.");
		return;
	}
	ow_found(f, OW_VERDICT_NOTE, "TSO %s, UDP %s, GSO %s", on_off(tso), on_off(on[OW_FEATURE_UDP_SEGMENTS]),
	         on_off(on[OW_FEATURE_GSO]));
	ow_means(f,
	         "Counts are right: superframes are cut as the interface cuts them. But packets of one superframe that "
	         "goes out have one time%s.",
	         off);
	ow_fix(f, "ethtool -K %s tso off%s  # costs CPU", l->name,
	       on[OW_FEATURE_UDP_SEGMENTS] ? " tx-udp-segmentation off" : "");
}

static void judge_receiving(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	bool soft = l->feature[OW_FEATURE_GRO], hard = l->feature[OW_FEATURE_GRO_HW];
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "gro");
	char off[48];
	spread(l, off, sizeof off);
	if (!soft && !hard) {
		ow_found(f, OW_VERDICT_OK, "off");
		ow_means(f, "Packets come in as they are on the wire, each with its own time.");
		return;
	}
	ow_found(f, OW_VERDICT_NOTE, "%s", soft && hard ? "on, also in the card" : soft ? "on" : "on in the card only");
	ow_means(f,
	         "Counts are right: what the kernel joined is cut again. But packets that were joined have one time%s.",
	         off);
	/* The card's part can often not be turned off; without the kernel's part it has no effect on most drivers. */
	ow_fix(f, "ethtool -K %s gro off%s  # costs CPU", l->name,
	       hard && l->changeable[OW_FEATURE_GRO_HW] ? " rx-gro-hw off" : "");
}

static void judge_lro(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "lro");
	if (!l->feature[OW_FEATURE_LRO]) {
		ow_found(f, OW_VERDICT_OK, "off");
		ow_means(f, "The card does not rewrite packets.");
		return;
	}
	ow_found(f, OW_VERDICT_PROBLEM, "on");
	ow_means(f, "The card joins packets and does not keep their boundaries: they do not match, so loss is wrong. "
	            "Forwarding does not work either.");
	if (l->changeable[OW_FEATURE_LRO])
		ow_fix(f, "ethtool -K %s lro off", l->name);
	else
		ow_fix(f, "# this driver cannot turn it off: watch another interface");
}

static void judge_unusual(struct ow_diagnoses *findings, const struct ow_link_facts *l,
                          const struct ow_host_facts *host)
{
	bool old =
		host->kernel_major && (host->kernel_major < 6 || (host->kernel_major == 6 && host->kernel_minor < 2));
	const bool *on = l->feature;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "udp_superframes");
	bool joins = on[OW_FEATURE_UDP_GRO] || on[OW_FEATURE_GRO_LIST];
	if (old && (on[OW_FEATURE_UDP_SEGMENTS] || joins)) {
		ow_found(f, OW_VERDICT_WARNING, "possible, with Linux %u.%u", host->kernel_major, host->kernel_minor);
		ow_means(f, "Kernels before 6.2 cannot describe them: they are missed, and counted as drops of the "
		            "ring (QUIC, WireGuard, VPNs send them).");
		ow_fix(f, "ethtool -K %s%s%s%s", l->name, on[OW_FEATURE_UDP_SEGMENTS] ? " tx-udp-segmentation off" : "",
		       on[OW_FEATURE_UDP_GRO] ? " rx-udp-gro-forwarding off" : "",
		       on[OW_FEATURE_GRO_LIST] ? " rx-gro-list off" : "");
	} else if (joins) {
		ow_found(f, OW_VERDICT_WARNING, "UDP that comes in is joined");
		ow_means(f, "The kernel does not tell which IPv4 identification the packets had: where all had 0 they "
		            "do not match.");
		ow_fix(f, "ethtool -K %s%s%s", l->name, on[OW_FEATURE_UDP_GRO] ? " rx-udp-gro-forwarding off" : "",
		       on[OW_FEATURE_GRO_LIST] ? " rx-gro-list off" : "");
	} else {
		ow_found(f, OW_VERDICT_OK, on[OW_FEATURE_UDP_SEGMENTS] ? "sent; they can be described" : "none");
		ow_means(f, "UDP is counted as it is on the wire.%s",
		         on[OW_FEATURE_SCTP_SEGMENTS] ? " Superframes of SCTP, if there are any, appear as drops."
		                                      : "");
	}
}

static void judge_harmless(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "vlan_tags");
	ow_found(f, OW_VERDICT_OK, l->feature[OW_FEATURE_VLAN] ? "taken out by the card" : "left in the frame");
	ow_means(f, "No packet's identity contains them, and filters see frames as on the wire.");
	f = ow_diagnoses_add(findings, l->name, "checksums");
	ow_found(f, OW_VERDICT_OK, "%s by the card", l->feature[OW_FEATURE_RX_CHECKSUM] ? "checked" : "not checked");
	ow_means(f, "No packet's identity contains them: offload does no harm.");
	if (!l->feature[OW_FEATURE_RX_ALL])
		return;
	f = ow_diagnoses_add(findings, l->name, "damaged_frames");
	ow_found(f, OW_VERDICT_WARNING, "the card hands over damaged frames (rx-all)");
	ow_means(f, "Each counts as extra: a packet that the sending point did not see.");
	ow_fix(f, "ethtool -K %s rx-all off", l->name);
}

void ow_judge_offloads(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_host_facts *host)
{
	if (l->feature_error) {
		struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "offloads");
		ow_found(f, OW_VERDICT_NOTE, "cannot be read: %s", strerror(l->feature_error));
		ow_means(f, "Whether the card rewrites packets (LRO) is not known.");
		ow_fix(f, "ethtool -k %s", l->name);
		return;
	}
	judge_lro(findings, l);
	judge_sending(findings, l);
	judge_receiving(findings, l);
	judge_unusual(findings, l, host);
	judge_harmless(findings, l);
}

static void judge_ability(struct ow_diagnosis *f, const struct ow_link_facts *l)
{
	bool all = l->stamp_filters & 1u << HWTSTAMP_FILTER_ALL;
	bool hardware = (l->stamp_flags & SOF_TIMESTAMPING_RX_HARDWARE) && l->phc >= 0;
	if (l->stamp_error) {
		ow_found(f, OW_VERDICT_NOTE, "cannot be read: %s", strerror(l->stamp_error));
		ow_means(f, "The kernel stamps, in microseconds after the packet has arrived.");
	} else if (hardware && all) {
		ow_found(f, OW_VERDICT_OK, "the card can stamp every packet that comes in (PHC %d)%s", l->phc,
		         l->stamp_active ? ", and does" : "");
		ow_means(f,
		         "%s Packets that go out are stamped by the kernel anyway, so the card's clock must agree with "
		         "the host's.",
		         l->wants_hardware
		                 ? "The configuration uses it."
		                 : "Not used unless 'hardware_timestamps: true'; without, the kernel stamps.");
	} else if (l->wants_hardware) {
		ow_found(f, OW_VERDICT_WARNING, "by the kernel; the configuration wants the card's, which %s",
		         hardware ? "stamps PTP only" : "has none");
		ow_means(f, "The kernel stamps all packets: good to microseconds, more under load.");
		ow_fix(f, "# 'hardware_timestamps: false' in the configuration");
	} else {
		ow_found(f, OW_VERDICT_OK, "by the kernel%s", hardware ? "; the card can stamp PTP only" : "");
		ow_means(f, "Good to microseconds, more when the host is busy.");
	}
}

/* No other program may set a clock that ptp4l sets. */
static void fix_phc(struct ow_diagnosis *f, const struct ow_link_facts *l, const struct ow_clock_facts *clock)
{
	if (clock->programs & OW_PROGRAM_PTP4L)
		ow_fix(f, "# 'hardware_timestamps: false': ptp4l keeps the card's clock as it is");
	else
		ow_fix(f, "phc2sys -s CLOCK_REALTIME -c %s -O 0", l->name);
}

static void judge_phc(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_clock_facts *clock)
{
	char ahead[OW_DURATION_TEXT];
	if (l->stamp_error || l->phc < 0)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "card_clock");
	enum ow_diagnosis_verdict bad = l->wants_hardware ? OW_VERDICT_PROBLEM : OW_VERDICT_NOTE;
	ow_duration_text((double)l->phc_ahead_ns, ahead);
	int64_t from_tai = l->phc_ahead_ns - OW_TAI_UTC_S * OW_NS_PER_S;
	if (l->phc_error) {
		ow_found(f, OW_VERDICT_NOTE, "/dev/ptp%d cannot be read: %s", l->phc, strerror(l->phc_error));
		ow_means(f, "Whether the card's clock agrees with the host's is not known. It matters only with "
		            "hardware_timestamps.");
		ow_fix(f, "sudo oneway doctor %s", l->name);
	} else if (l->phc_ahead_ns >= -PHC_NEAR_NS && l->phc_ahead_ns <= PHC_NEAR_NS) {
		ow_found(f, OW_VERDICT_OK, "%s ahead of the host's", ahead);
		ow_means(f, "Both kinds of timestamps agree.");
	} else if (from_tai >= -PHC_TAI_NS && from_tai <= PHC_TAI_NS) {
		ow_found(f, bad, "%s ahead of the host's: it is TAI", ahead);
		ow_means(f,
		         "With hardware_timestamps, packets that come in would be stamped %d seconds after those that "
		         "go out.",
		         OW_TAI_UTC_S);
		fix_phc(f, l, clock);
	} else {
		ow_found(f, bad, "%s ahead of the host's", ahead);
		ow_means(f, "With hardware_timestamps, delays would be off by this.");
		fix_phc(f, l, clock);
	}
}

static void judge_coalescing(struct ow_diagnoses *findings, const struct ow_link_facts *l)
{
	if (l->coalesce_error)
		return; /* made by software: no coalescing */
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "coalescing");
	if (l->coalesce_us == 0 && !l->coalesce_adaptive) {
		ow_found(f, OW_VERDICT_OK, "off");
		ow_means(f, "The card reports a packet at once.");
		return;
	}
	if (l->coalesce_adaptive)
		ow_found(f, OW_VERDICT_NOTE, "adaptive");
	else
		ow_found(f, OW_VERDICT_NOTE, "up to %u us", l->coalesce_us);
	ow_means(f,
	         "The card waits for further packets before it informs the kernel: timestamps of incoming packets are "
	         "late by up to %s, and delays are too long by that.",
	         l->coalesce_adaptive ? "some ten microseconds" : "this");
	ow_fix(f, "ethtool -C %s%s rx-usecs 0  # costs CPU", l->name, l->coalesce_adaptive ? " adaptive-rx off" : "");
}

void ow_judge_stamps(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_clock_facts *clock)
{
	judge_ability(ow_diagnoses_add(findings, l->name, "timestamps"), l);
	judge_phc(findings, l, clock);
	if (l->wants_hardware && l->phc >= 0 && !(clock->programs & (OW_PROGRAM_PHC2SYS | OW_PROGRAM_TS2PHC))) {
		struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "card_clock_daemon");
		ow_found(f, OW_VERDICT_WARNING, "no phc2sys");
		ow_means(f, "No program keeps the card's clock equal to the host's: chronyd alone does not.");
		ow_fix(f, "phc2sys -s CLOCK_REALTIME -c %s -O 0", l->name);
	}
	judge_coalescing(findings, l);
}
