/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the results of a trial capture, and what a configuration names: store, peers, certificate. */
#include "base/word.h"
#include "base/time.h"
#include "doctor/host_judge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define POINT "point"
#define MIB   ((double)(1 << 20))

/* A disk that is full within this time is reported. */
#define STORE_DAYS_GOOD 7
#define STORE_BYTES_MIN (64 << 20)
/* Enough time to notice, and to make new certificates. */
#define CERTIFICATE_DAYS_GOOD 30
/* A connection that takes longer than this makes results late. */
#define CONNECT_GOOD_NS (500 * OW_NS_PER_MS)
/* Timestamps that differ by more than this are not from the host's clock. */
#define STAMP_STRANGE_NS (500 * OW_NS_PER_MS)

static void judge_run(struct ow_diagnosis *f, const struct ow_trial_facts *t)
{
	const struct ow_iface_counts *c = &t->counts;
	double share = c->frames ? 100 * (double)t->superframes / (double)c->frames : 0;
	if (c->frames == 0 && c->dropped == 0) {
		ow_found(f, OW_VERDICT_NOTE, "%s: no frame in %.2g s", t->kind, t->seconds);
		ow_means(f, "The capture works, but nothing passes here now: this may not be the interface with the "
		            "traffic.");
		return;
	}
	ow_found(f, OW_VERDICT_OK, "%s: %ju frames in, %ju out in %.2g s; %.0f packets/s; superframes %.3g %%", t->kind,
	         (uintmax_t)t->in, (uintmax_t)t->out, t->seconds, (double)t->packets / t->seconds, share);
	if (strcmp(t->kind, "libpcap") != 0)
		ow_means(f, "This is what a point sees. Packets are those of the wire: superframes are cut.");
	else
		ow_means(f, "Read through libpcap: direction and superframes are not known here.");
}

static void judge_stampers(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_trial_facts *t)
{
	uint64_t card = t->counts.stamped[OW_STAMPED_BY_NIC], kernel = t->counts.stamped[OW_STAMPED_BY_KERNEL];
	char ahead[OW_DURATION_TEXT];
	if (card + kernel == 0)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "trial_stamps");
	ow_duration_text((double)t->stamp_ahead_ns, ahead);
	if (t->stamp_ahead_ns > STAMP_STRANGE_NS || t->stamp_ahead_ns < -STAMP_STRANGE_NS) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s ahead of the host's clock", ahead);
		ow_means(f, "The card's clock is another one (37 s: TAI): intervals and delays are off by this.");
		ow_fix(f, "# see card_clock above, or 'hardware_timestamps: false'");
	} else if (l->wants_hardware && card == 0) {
		ow_found(f, OW_VERDICT_WARNING, "all %ju by the kernel, though the card's are asked for",
		         (uintmax_t)kernel);
		ow_means(f, "The card does not stamp these packets: delays are good to microseconds, not better.");
		ow_fix(f, "ethtool -T %s", l->name);
	} else {
		ow_found(f, OW_VERDICT_OK, "%ju by the kernel, %ju by the card", (uintmax_t)kernel, (uintmax_t)card);
		ow_means(f, card ? "Packets that go out are stamped by the kernel; both clocks agree."
		                 : "All with the host's clock.");
	}
}

static void judge_trial_drops(struct ow_diagnoses *findings, const struct ow_link_facts *l,
                              const struct ow_trial_facts *t)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "trial_drops");
	if (t->counts.dropped) {
		ow_found(f, OW_VERDICT_PROBLEM, "the ring dropped %ju of %ju frames", (uintmax_t)t->counts.dropped,
		         (uintmax_t)(t->counts.frames + t->counts.dropped));
		ow_means(f, "The host is too slow for this traffic, or superframes cannot be described (UDP before "
		            "Linux 6.2, SCTP). Results of such intervals are partial.");
		ow_fix(f, "# 'threads: 2' or 'ring: 256MiB' for this interface; or a 'filter:'");
	} else if (t->counters.missed) {
		ow_found(f, OW_VERDICT_PROBLEM, "the card missed %ju packets meanwhile", (uintmax_t)t->counters.missed);
		ow_means(f, "It goes on now: packets that arrived count as lost.");
		if (!l->ring_error && l->ring_in < l->ring_in_max)
			ow_fix(f, "ethtool -G %s rx %u", l->name, l->ring_in_max);
		else
			ow_fix(f, "ethtool -S %s | grep -i -e miss -e drop -e fifo  # more queues: ethtool -L",
			       l->name);
	} else {
		ow_found(f, OW_VERDICT_OK, "none, neither by the ring nor by the card");
		ow_means(f, "All packets that passed were seen.");
	}
}

void ow_judge_trial(struct ow_diagnoses *findings, const struct ow_link_facts *l, const struct ow_trial_facts *t)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, l->name, "trial");
	if (t->code) {
		bool denied = t->code == EPERM || t->code == EACCES;
		ow_found(f, denied ? OW_VERDICT_NOTE : OW_VERDICT_PROBLEM, "%s", t->error);
		ow_means(f, denied ? "Not tried." : "A point cannot capture here either.");
		if (denied)
			ow_fix(f, "sudo oneway doctor --try %s", l->name);
		else if (t->code == ENETDOWN)
			ow_fix(f, "ip link set %s up", l->name);
		else
			ow_fix(f, "tcpdump -i %s -c 1  # fails the same way?", l->name);
		return;
	}
	judge_run(f, t);
	if (t->note[0]) {
		f = ow_diagnoses_add(findings, l->name, "trial_kernel");
		ow_found(f, OW_VERDICT_WARNING, "not recorded in the kernel: %s", t->note);
		ow_means(f, "A ring takes its place. Its times differ by up to a microsecond, on a busy host by more.");
		ow_fix(f, "# see kernel_capture above");
	}
	if (t->uncut) {
		f = ow_diagnoses_add(findings, l->name, "trial_tunnels");
		ow_found(f, OW_VERDICT_WARNING, "%ju superframes of tunnels", (uintmax_t)t->uncut);
		ow_means(f, "They cannot be cut from outside: each counts as a packet that was lost.");
		ow_fix(f, "# 'inner: true' in the configuration, or the tunnel's offloads off");
	}
	judge_stampers(findings, l, t);
	judge_trial_drops(findings, l, t);
}

void ow_judge_setup(struct ow_diagnoses *findings, const struct ow_setup_facts *s)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "configuration");
	if (s->code == 0) {
		ow_found(f, OW_VERDICT_OK, "%s: point %s, %u interface%s, %u segment%s", s->path, s->point,
		         s->interfaces, ow_plural(s->interfaces, "", "s"), s->segments,
		         ow_plural(s->segments, "", "s"));
		ow_means(f, "Read and understood; the files that it names are there.");
	} else if (s->denied) {
		ow_found(f, OW_VERDICT_NOTE, "%s", s->error);
		ow_means(f, "This user may not read or write what the point will; the rest was not looked at.");
		ow_fix(f, "sudo oneway doctor -c %s", s->path);
	} else {
		ow_found(f, OW_VERDICT_PROBLEM, "%s", s->error);
		ow_means(f, "The point does not start.");
		ow_fix(f, "oneway point --check-config -c %s", s->path);
	}
}

void ow_judge_absent(struct ow_diagnoses *findings, const char *name, const char *near)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, name, "interface");
	ow_found(f, OW_VERDICT_PROBLEM, "not on this host%s", near);
	ow_means(f, "Nothing can be captured there; the point does not start.");
	ow_fix(f, "# 'name:' of the interface in the configuration");
}

void ow_judge_store(struct ow_diagnoses *findings, const struct ow_store_facts *s)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "store");
	double days = s->day_bytes ? (double)s->free_bytes / (double)s->day_bytes : 1e9;
	if (s->error) {
		bool denied = s->error == EACCES;
		ow_found(f, denied ? OW_VERDICT_WARNING : OW_VERDICT_PROBLEM, "%s: %s", s->path, strerror(s->error));
		ow_means(f, denied ? "This user cannot store results there; the point's may."
		                   : "Results would not be stored.");
		ow_fix(f, "ls -ld %s  # folder and rights", s->path);
		return;
	}
	bool full = s->free_bytes < STORE_BYTES_MIN;
	ow_found(f,
	         full                     ? OW_VERDICT_PROBLEM
	         : days < STORE_DAYS_GOOD ? OW_VERDICT_WARNING
	                                  : OW_VERDICT_OK,
	         "%.0f MiB free, a day takes %.4g MiB: room for %.3g days", (double)s->free_bytes / MIB,
	         (double)s->day_bytes / MIB, days);
	ow_means(f, "When the disk is full the measurement goes on, but results are not stored.");
	if (full || days < STORE_DAYS_GOOD)
		ow_fix(f, "df -h %s  # more room, a longer 'interval:', fewer classes", s->path);
}

void ow_judge_history(struct ow_diagnoses *findings, const struct ow_history_facts *h)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "history");
	bool cut = h->most_bytes && h->all_bytes > h->most_bytes;
	double all = 0;
	for (int p = 0; p < OW_PERIODS; p++)
		all += (double)h->bytes[p] / MIB;
	ow_found(f, cut ? OW_VERDICT_NOTE : OW_VERDICT_OK,
	         "%s: a year takes %.3g MiB: %.3g days of intervals %.3g, %.3g of minutes %.3g, %.3g of hours %.3g, "
	         "%.3g "
	         "of days %.4g",
	         h->segment, all, h->days[OW_PERIOD_INTERVAL], (double)h->bytes[OW_PERIOD_INTERVAL] / MIB,
	         h->days[OW_PERIOD_MINUTE], (double)h->bytes[OW_PERIOD_MINUTE] / MIB, h->days[OW_PERIOD_HOUR],
	         (double)h->bytes[OW_PERIOD_HOUR] / MIB, h->days[OW_PERIOD_DAY], (double)h->bytes[OW_PERIOD_DAY] / MIB);
	if (!cut) {
		ow_means(f, "So much of the disk, and within the limit of the store.");
		return;
	}
	ow_means(f, "All segments together are more than store_max: the oldest rows are deleted earlier.");
	ow_fix(f, "# store_max: %.0fMiB, a shorter retention, or a longer interval", ceil((double)h->all_bytes / MIB));
}

void ow_judge_peer(struct ow_diagnoses *findings, const struct ow_peer_facts *p)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "peer");
	char took[OW_DURATION_TEXT];
	/* A time below a millisecond depends on this host only. */
	int64_t took_ms = p->took_ns / OW_NS_PER_MS;
	if (took_ms < 1)
		snprintf(took, sizeof took, "less than 1 ms");
	else
		ow_duration_text((double)(took_ms * OW_NS_PER_MS), took);
	if (p->error[0]) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s: %s", p->peer, p->error);
		ow_means(f, "Nothing is measured with it until it can be reached; the point keeps trying.");
		ow_fix(f, "# there: oneway point runs and listens? on the way: a firewall?");
	} else {
		ow_found(f, p->took_ns > CONNECT_GOOD_NS ? OW_VERDICT_WARNING : OW_VERDICT_OK,
		         "%s: %s accepts connections, in %s", p->peer, p->address, took);
		ow_means(f, "A TCP connection can be made; TLS checks the identity of the point when they measure.");
		if (p->took_ns > CONNECT_GOOD_NS)
			ow_fix(f, "mtr -T %s", p->address);
	}
}

void ow_judge_listen(struct ow_diagnoses *findings, const struct ow_listen_facts *l)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "listen");
	if (l->code == EADDRINUSE) {
		ow_found(f, OW_VERDICT_NOTE, "%s: a program listens there already", l->address);
		ow_means(f, "The point itself, if it runs. Otherwise it cannot start.");
		ow_fix(f, "ss -ltnp");
	} else if (l->code) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s", l->error);
		ow_means(f, "The point cannot start.");
		ow_fix(f, "ip -brief address  # 'listen:' needs an address of this host");
	} else {
		ow_found(f, OW_VERDICT_OK, "%s is free", l->address);
		ow_means(f, "Peers can connect once the point runs, if no firewall is in the way.");
	}
}

void ow_judge_certificate(struct ow_diagnoses *findings, const struct ow_certificate_facts *c)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, POINT, "certificate");
	const char *renew =
		c->renewed ? "oneway fleet enroll NAME  # where the fleet's folder is; a new token for this point"
			   : "oneway point keygen --folder DIR NAME  # where ca.key is";
	if (c->error[0]) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s: %s", c->path, c->error);
		ow_means(f, "The point cannot start.");
		ow_fix(f, "openssl x509 -noout -text -in %s", c->path);
	} else if (c->days_until > 0) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s: valid only in %.3g days", c->path, c->days_until);
		ow_means(f, "Peers refuse it. This host's clock may be wrong.");
		ow_fix(f, "date -u; openssl x509 -noout -dates -in %s", c->path);
	} else if (c->days_left < 0) {
		ow_found(f, OW_VERDICT_PROBLEM, "%s: expired %.3g days ago", c->path, -c->days_left);
		ow_means(f, "Peers refuse it: nothing is measured.");
		ow_fix(f, "%s", renew);
	} else if (c->days_left < CERTIFICATE_DAYS_GOOD && !c->renewed) {
		ow_found(f, OW_VERDICT_WARNING, "%s: expires in %.3g days", c->path, c->days_left);
		ow_means(f, "Then peers refuse it and nothing is measured.");
		ow_fix(f, "%s", renew);
	} else {
		ow_found(f, OW_VERDICT_OK, "%s: valid for %.0f days", c->path, c->days_left);
		ow_means(f, "Peers can check the identity of this point.");
	}
}
