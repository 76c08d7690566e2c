/* SPDX-License-Identifier: Apache-2.0 */
/* Judges whether a point can work on this host: kernel, privileges, memory, processors, limits. */
#include "doctor/host_judge.h"

#include <errno.h>
#include <string.h>

#define HOST "host"
#define MIB  ((double)(1 << 20))

/* Open files that a process needs besides captures and peers. */
#define CPUS_GOOD  2
#define FILES_GOOD 256

static bool before(const struct ow_host_facts *facts, unsigned major, unsigned minor)
{
	return facts->kernel_major < major || (facts->kernel_major == major && facts->kernel_minor < minor);
}

static void judge_kernel(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "kernel");
	if (facts->kernel_major == 0) {
		ow_found(f, OW_VERDICT_NOTE, "version not known: '%.40s'", facts->kernel);
		ow_means(f, "Live capture needs Linux 4.6, and 6.2 for UDP superframes.");
	} else if (before(facts, 4, 6)) {
		ow_found(f, OW_VERDICT_PROBLEM, "Linux %s", facts->kernel);
		ow_means(f, "Its capture rings do not mark superframes: with offloads, packets do not match.");
		ow_fix(f, "apt full-upgrade  # to Linux 4.6 or later; 6.2 is better");
	} else if (before(facts, 6, 2)) {
		ow_found(f, OW_VERDICT_NOTE, "Linux %s", facts->kernel);
		ow_means(f, "It cannot describe UDP superframes: where an interface has them they are missed, and "
		            "counted as drops of the ring.");
		ow_fix(f, "ethtool -K IF tx-udp-segmentation off  # or Linux 6.2");
	} else {
		ow_found(f, OW_VERDICT_OK, "Linux %s", facts->kernel);
		ow_means(f, "Rings with superframes of TCP and UDP.");
	}
}

static void judge_capture(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "privileges");
	bool denied = facts->packet_error == EPERM || facts->packet_error == EACCES;
	if (facts->packet_error && !denied) {
		ow_found(f, OW_VERDICT_PROBLEM, "no packet sockets: %s", strerror(facts->packet_error));
		ow_means(f, "Nothing can be captured on this host.");
		ow_fix(f, "modprobe af_packet");
	} else if (facts->packet_error) {
		ow_found(f, OW_VERDICT_WARNING, "%s",
		         facts->net_raw ? "CAP_NET_RAW, but not for this network namespace" : "no CAP_NET_RAW");
		ow_means(f, "This user cannot capture. Reading captures, and this check-up, need no privileges.");
		ow_fix(f, "setcap cap_net_raw+ep $(command -v oneway)  # or run as root");
	} else if (!facts->net_admin) {
		ow_found(f, facts->wants_net_admin ? OW_VERDICT_WARNING : OW_VERDICT_NOTE,
		         "CAP_NET_RAW, no CAP_NET_ADMIN");
		ow_means(f, "Enough to capture. The card's own timestamps cannot be turned on%s.",
		         facts->wants_net_admin ? ", which the configuration asks for" : "; nothing else needs it");
		ow_fix(f, "setcap cap_net_raw,cap_net_admin+ep $(command -v oneway)");
	} else {
		ow_found(f, OW_VERDICT_OK, "CAP_NET_RAW, CAP_NET_ADMIN");
		ow_means(f, "Captures, and turns on the card's timestamps if asked to.");
	}
}

static void judge_kernel_capture(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "kernel_capture");
	if (!facts->no_kernel[0]) {
		ow_found(f, OW_VERDICT_OK, "possible");
		ow_means(f, "'capture: kernel' of an interface makes measuring a busy router cheaper.");
		return;
	}
	ow_found(f, facts->wants_kernel ? OW_VERDICT_WARNING : OW_VERDICT_NOTE, "not possible: %s", facts->no_kernel);
	ow_means(f, facts->wants_kernel ? "The configuration asks for it; a ring takes its place."
	                                : "A ring needs none of it.");
	ow_fix(f, "# docs/capture.md, recording in the kernel, says what it needs");
}

static void judge_memory(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "memory");
	double wanted = (double)(facts->wanted_memory + facts->wanted_ring);
	bool limited = facts->memory_limit >= 0 && facts->memory_limit != INT64_MAX;
	/* The kernel charges the rings of processors to the cgroup, and those of packet sockets to nobody. */
	double charged = (double)(facts->wanted_memory + facts->wanted_charged);
	if (limited && (double)facts->memory_limit < charged) {
		ow_found(f, OW_VERDICT_PROBLEM,
		         "the cgroup has %.0f MiB, the interval packets of a point%s take %.0f MiB",
		         (double)facts->memory_limit / MIB, facts->wanted_charged ? " and its rings in the kernel" : "",
		         charged / MIB);
		ow_means(f, "The kernel kills the point when traffic fills them.");
		ow_fix(f, "systemctl set-property UNIT MemoryMax=%.0fM  # or 'memory:' in the configuration",
		       1.5 * charged / MIB);
		return;
	}
	if (facts->memory_available < 0) {
		ow_found(f, OW_VERDICT_NOTE, "how much is free cannot be read");
		ow_means(f, "A point takes up to %.0f MiB for interval packets and rings.", wanted / MIB);
	} else if ((double)facts->memory_available < wanted) {
		ow_found(f, OW_VERDICT_WARNING, "%.0f MiB available, interval packets and rings take %.0f MiB",
		         (double)facts->memory_available / MIB, wanted / MIB);
		ow_means(f, "The host may swap, or kill the point: packets are missed meanwhile.");
		ow_fix(f, "# a smaller 'memory:' or 'ring:' in the configuration");
	} else {
		ow_found(f, OW_VERDICT_OK, "%.0f MiB available, %s; interval packets and rings take up to %.0f MiB",
		         (double)facts->memory_available / MIB,
		         limited                   ? "limit of the cgroup large enough"
		         : facts->memory_limit < 0 ? "limit of the cgroup not known"
		                                   : "no limit of the cgroup",
		         wanted / MIB);
		ow_means(f, "Enough. The limit of locked memory (ulimit -l) does not matter.");
	}
}

static void judge_cpus(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "cpus");
	bool quota = facts->cpu_quota > 0;
	if (facts->cpus == 0) {
		ow_found(f, OW_VERDICT_NOTE, "cannot be read");
		ow_means(f, "How many captures can run in parallel is not known.");
	} else if (quota && facts->cpu_quota < 1) {
		ow_found(f, OW_VERDICT_WARNING, "%u, but the cgroup has the time of %.2g", facts->cpus,
		         facts->cpu_quota);
		ow_means(f, "When the CPU time is used up the point stops for up to 100 ms: rings may overflow, and "
		            "intervals are partial then.");
		ow_fix(f, "systemctl set-property UNIT CPUQuota=");
	} else if (facts->wanted_threads > facts->cpus) {
		ow_found(f, OW_VERDICT_WARNING, "%u for %u capturing threads", facts->cpus, facts->wanted_threads);
		ow_means(f, "More threads than CPUs capture less, not more.");
		ow_fix(f, "# 'threads:' of all interfaces together at most %u in the configuration", facts->cpus);
	} else if (facts->cpus < CPUS_GOOD) {
		ow_found(f, OW_VERDICT_NOTE, "1");
		ow_means(f,
		         "Capture, comparison and the traffic itself take turns: rings hold less time at high rates.");
		ow_fix(f, "# a second CPU, or 'ring: 256MiB' in the configuration");
	} else {
		ow_found(f, OW_VERDICT_OK, "%u%s%s", facts->cpus,
		         facts->isolated[0] ? ", kept for pinned programs: " : "", facts->isolated);
		if (facts->isolated[0])
			ow_means(f, "A point uses the isolated ones only if it is started there: taskset -c %s.",
			         facts->isolated);
		else
			ow_means(f, "Captures and comparison run in parallel.");
	}
}

static void judge_power(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	if (facts->governor[0] == '\0')
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "cpu_power");
	if (strcmp(facts->governor, "powersave") == 0) {
		ow_found(f, OW_VERDICT_NOTE, "governor powersave");
		ow_means(f, "A CPU that wakes up slowly stamps late, by tens of microseconds when there is little "
		            "traffic.");
		ow_fix(f, "cpupower frequency-set -g performance");
	} else {
		ow_found(f, OW_VERDICT_OK, "governor %s", facts->governor);
		ow_means(f, "The CPUs answer interrupts quickly.");
	}
}

static void judge_files(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "open_files");
	uint64_t wanted = facts->wanted_files > FILES_GOOD ? facts->wanted_files : FILES_GOOD;
	if (facts->files == 0) {
		ow_found(f, OW_VERDICT_NOTE, "limit cannot be read");
		ow_means(f, "A point with many peers needs some hundred.");
	} else if (facts->files < facts->wanted_files) {
		ow_found(f, OW_VERDICT_PROBLEM, "at most %ju, %ju are needed", (uintmax_t)facts->files,
		         (uintmax_t)facts->wanted_files);
		ow_means(f, "Some captures or connections to peers will fail.");
		ow_fix(f, "ulimit -n %ju  # LimitNOFILE= of a service", (uintmax_t)wanted);
	} else if (facts->files < wanted) {
		ow_found(f, OW_VERDICT_WARNING, "at most %ju", (uintmax_t)facts->files);
		ow_means(f, "Many peers that connect at once may be refused.");
		ow_fix(f, "ulimit -n %ju  # LimitNOFILE= of a service", (uintmax_t)wanted);
	} else {
		ow_found(f, OW_VERDICT_OK, "at most %ju", (uintmax_t)facts->files);
		ow_means(f, "Enough for captures and peers.");
	}
}

static void judge_backlog(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "backlog");
	if (facts->backlog_dropped < 0) {
		ow_found(f, OW_VERDICT_NOTE, "drops cannot be read");
		ow_means(f, "Whether CPUs were too slow to take packets from the cards is not known.");
	} else if (facts->backlog_dropped > 0) {
		ow_found(f, OW_VERDICT_WARNING, "%jd packets dropped since boot", (intmax_t)facts->backlog_dropped);
		ow_means(f, "CPUs could not take packets fast enough (veth, RPS). Such a packet has arrived but is "
		            "never seen here: the receiving point counts it as lost.");
		ow_fix(f, "sysctl -w net.core.netdev_max_backlog=10000");
	} else {
		ow_found(f, OW_VERDICT_OK, "no packet dropped since boot");
		ow_means(f, "CPUs take packets fast enough.");
	}
	if (facts->stamp_early != 0)
		return;
	f = ow_diagnoses_add(findings, HOST, "stamp_order");
	ow_found(f, OW_VERDICT_NOTE, "packets get their timestamp after they have been handed to another CPU");
	ow_means(f, "With RPS, the time in that queue counts as delay of the network.");
	ow_fix(f, "sysctl -w net.core.netdev_tstamp_prequeue=1");
}

void ow_judge_host(struct ow_diagnoses *findings, const struct ow_host_facts *facts)
{
	judge_kernel(findings, facts);
	judge_capture(findings, facts);
	judge_kernel_capture(findings, facts);
	judge_memory(findings, facts);
	judge_cpus(findings, facts);
	judge_power(findings, facts);
	judge_files(findings, facts);
	judge_backlog(findings, facts);
}
