/* SPDX-License-Identifier: Apache-2.0 */
/* Every verdict of the checks, from synthetic facts. */
#include "base/time.h"
#include "doctor/host_facts.h"
#include "doctor/host_judge.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <net/if_arp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char *const verdicts[] = {"ok", "note", "warning", "problem"};

/* A host without fault. */
static struct ow_clock_facts good_clock(void)
{
	return (struct ow_clock_facts){
		.kernel = {.synchronised = true, .error_ns = 200 * OW_NS_PER_US},
		.estimated_ns = 3 * OW_NS_PER_US,
		.rate_ppm = -12.5,
		.tai_s = OW_TAI_UTC_S,
		.chrony = true,
		.chrony_state = {.synchronised = true, .error_ns = 5728},
		.programs = OW_PROGRAM_CHRONYD,
		.source = "tsc",
		.alternatives = "tsc hpet acpi_pm",
	};
}

static struct ow_host_facts good_host(void)
{
	return (struct ow_host_facts){
		.kernel_major = 6,
		.kernel_minor = 2,
		.kernel = "6.2.0-test",
		.net_raw = true,
		.net_admin = true,
		.wanted_memory = 256u << 20,
		.wanted_ring = 64u << 20,
		.memory_available = INT64_C(1) << 30,
		.memory_limit = INT64_MAX,
		.cpus = 4,
		.wanted_threads = 1,
		.files = 1024,
		.wanted_files = 40,
		.stamp_early = 1,
	};
}

static struct ow_link_facts good_link(void)
{
	return (struct ow_link_facts){
		.name = "eth7",
		.hardware = ARPHRD_ETHER,
		.up = true,
		.carrier = true,
		.mtu = 1500,
		.gso_max = 65536,
		.counters = {.in = 1000000, .out = 1000000},
		.detailed = true,
		.driver = "igb",
		.speed_mbps = 10000,
		.full_duplex = 1,
		.changeable = {[OW_FEATURE_LRO] = true, [OW_FEATURE_GRO_HW] = true},
		.ring_in = 4096,
		.ring_in_max = 4096,
		.ring_out = 4096,
		.ring_out_max = 4096,
		.phc = -1,
		.queues = 4,
		.irqs = 5,
		.irq_cpus = 4,
	};
}

static void print(const struct ow_diagnoses *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct ow_diagnosis *f = &findings->list[i];
		print_message("%s %s %s: %s | %s | %s\n", f->about, f->name, verdicts[f->verdict], f->found, f->means,
		              f->fix);
	}
}

/* What holds for each of them. */
static void check_all(const struct ow_diagnoses *findings)
{
	assert_int_equal(findings->error, 0);
	for (size_t i = 0; i < findings->count; i++) {
		const struct ow_diagnosis *f = &findings->list[i];
		/* Said, and not cut. */
		assert_in_range(strlen(f->found), 1, sizeof f->found - 2);
		assert_in_range(strlen(f->means), 1, sizeof f->means - 2);
		assert_true(strlen(f->fix) < sizeof f->fix - 1);
		assert_int_equal(f->means[strlen(f->means) - 1], '.');
		if (f->verdict >= OW_VERDICT_WARNING && !f->fix[0])
			fail_msg("%s: no way out", f->name);
		for (size_t k = 0; k < i; k++)
			assert_false(strcmp(f->name, findings->list[k].name) == 0 &&
			             strcmp(f->about, findings->list[k].about) == 0);
	}
}

static const struct ow_diagnosis *find(const struct ow_diagnoses *findings, const char *name)
{
	for (size_t i = 0; i < findings->count; i++) {
		if (strcmp(findings->list[i].name, name) == 0)
			return &findings->list[i];
	}
	return NULL;
}

/* The finding has this verdict, what was found contains `found`, and the fix `fix` (NULL: there is none). */
static void expect(struct ow_diagnoses *findings, const char *name, enum ow_diagnosis_verdict verdict,
                   const char *found, const char *fix)
{
	const struct ow_diagnosis *f = find(findings, name);
	check_all(findings);
	if (!f || f->verdict != verdict || !strstr(f->found, found) ||
	    (fix ? !strstr(f->fix, fix) : f->fix[0] != '\0')) {
		print(findings);
		fail_msg("%s: expected %s '%s', fix '%s'", name, verdicts[verdict], found, fix ? fix : "");
	}
	ow_diagnoses_done(findings);
}

static void expect_none(struct ow_diagnoses *findings, const char *name)
{
	check_all(findings);
	assert_null(find(findings, name));
	ow_diagnoses_done(findings);
}

#define OK      OW_VERDICT_OK
#define NOTE    OW_VERDICT_NOTE
#define WARNING OW_VERDICT_WARNING
#define PROBLEM OW_VERDICT_PROBLEM

static void clock_is(const struct ow_clock_facts *facts, const char *name, enum ow_diagnosis_verdict verdict,
                     const char *found, const char *fix)
{
	struct ow_diagnoses findings = {0};
	ow_judge_clock(&findings, facts);
	expect(&findings, name, verdict, found, fix);
}

static void host_is(const struct ow_host_facts *facts, const char *name, enum ow_diagnosis_verdict verdict,
                    const char *found, const char *fix)
{
	struct ow_diagnoses findings = {0};
	ow_judge_host(&findings, facts);
	expect(&findings, name, verdict, found, fix);
}

static void judge_link(struct ow_diagnoses *findings, const struct ow_link_facts *link)
{
	struct ow_host_facts host = good_host();
	struct ow_clock_facts clock = good_clock();
	ow_judge_link(findings, link, &host, &clock);
}

static void link_is(const struct ow_link_facts *link, const char *name, enum ow_diagnosis_verdict verdict,
                    const char *found, const char *fix)
{
	struct ow_diagnoses findings = {0};
	judge_link(&findings, link);
	expect(&findings, name, verdict, found, fix);
}

static void test_nothing_wrong(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_clock_facts clock = good_clock();
	struct ow_host_facts host = good_host();
	struct ow_link_facts link = good_link();
	ow_judge_clock(&findings, &clock);
	ow_judge_host(&findings, &host);
	ow_judge_link(&findings, &link, &host, &clock);
	check_all(&findings);
	if (ow_diagnoses_count(&findings, OK) != findings.count)
		print(&findings);
	assert_int_equal(ow_diagnoses_count(&findings, OK), findings.count);
	assert_true(findings.count > 20);
	ow_diagnoses_done(&findings);
}

static void test_clock_error(void **state)
{
	(void)state;
	struct ow_clock_facts c = good_clock();
	clock_is(&c, "clock", OK, "5.728 us, says chrony", NULL);
	c.chrony_state.error_ns = 3 * OW_NS_PER_MS;
	clock_is(&c, "clock", NOTE, "3 ms", "chronyc");
	c.chrony_state.error_ns = 11 * OW_NS_PER_MS;
	clock_is(&c, "clock", WARNING, "11 ms", "chronyc");
	c.chrony_state = (struct ow_clock_state){.error_ns = OW_CLOCK_UNKNOWN};
	clock_is(&c, "clock", PROBLEM, "not synchronised, says chrony", "chronyc sources");

	/* Without chronyd the kernel is believed. */
	c = good_clock();
	c.chrony = false;
	c.programs = OW_PROGRAM_PHC2SYS | OW_PROGRAM_PTP4L;
	clock_is(&c, "clock", OK, "200 us, about 3 us, says the kernel", NULL);
	c.kernel = (struct ow_clock_state){.error_ns = OW_CLOCK_UNKNOWN};
	clock_is(&c, "clock", PROBLEM, "says the kernel", "phc2sys");
	c.programs = OW_PROGRAM_NTPD;
	clock_is(&c, "clock", PROBLEM, "not synchronised", "ntpq -p");
	c.programs = OW_PROGRAM_TIMESYNCD;
	clock_is(&c, "clock", PROBLEM, "not synchronised", "timedatectl");
	c.programs = 0;
	clock_is(&c, "clock", PROBLEM, "not synchronised", "apt install chrony");
	c.error = EPERM;
	clock_is(&c, "clock", NOTE, "cannot be read", "#");
}

static void test_time_daemon(void **state)
{
	(void)state;
	struct ow_clock_facts c = good_clock();
	clock_is(&c, "time_daemon", OK, "chronyd", NULL);
	c.programs = OW_PROGRAM_CHRONYD | OW_PROGRAM_NTPD;
	clock_is(&c, "time_daemon", WARNING, "chronyd, ntpd: several", "systemctl disable");
	c.programs = OW_PROGRAM_CHRONYD | OW_PROGRAM_PHC2SYS | OW_PROGRAM_PTP4L;
	clock_is(&c, "time_daemon", WARNING, "several", "systemctl");
	c.programs = OW_PROGRAM_PHC2SYS | OW_PROGRAM_PTP4L;
	clock_is(&c, "time_daemon", OK, "phc2sys, ptp4l", NULL);
	c.programs = OW_PROGRAM_PTP4L;
	clock_is(&c, "time_daemon", WARNING, "without phc2sys", "phc2sys -a -r");
	c.programs = OW_PROGRAM_TIMESYNCD;
	clock_is(&c, "time_daemon", WARNING, "systemd-timesyncd", "apt install chrony");
	c.programs = OW_PROGRAM_IRQBALANCE;
	clock_is(&c, "time_daemon", OK, "chronyd answers", NULL);
	c.chrony = false;
	clock_is(&c, "time_daemon", NOTE, "no known program", NULL);
	c.programs_hidden = true;
	clock_is(&c, "time_daemon", NOTE, "hidden", "sudo");
	c.programs_hidden = false;
	c.kernel.synchronised = false;
	clock_is(&c, "time_daemon", WARNING, "none", "apt install chrony");
}

static void test_rate_and_leap(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_clock_facts c = good_clock();
	clock_is(&c, "clock_rate", OK, "-12.50 ppm", NULL);
	c.rate_ppm = 0;
	clock_is(&c, "clock_rate", OK, "not corrected", NULL);
	c.rate_ppm = 300;
	clock_is(&c, "clock_rate", NOTE, "+300.00 ppm", "dmesg");
	c.rate_ppm = -500;
	clock_is(&c, "clock_rate", WARNING, "-500.00 ppm", "chronyc");
	ow_judge_clock(&findings, &c);
	expect_none(&findings, "leap_second");
	c.leap = 1;
	clock_is(&c, "leap_second", WARNING, "inserted", "leapsecmode");
	c.leap = -1;
	clock_is(&c, "leap_second", WARNING, "deleted", "leapsecmode");
	c.error = EPERM;
	ow_judge_clock(&findings, &c);
	expect_none(&findings, "clock_rate");
}

static void test_tai(void **state)
{
	(void)state;
	struct ow_clock_facts c = good_clock();
	clock_is(&c, "tai_offset", OK, "37 s", NULL);
	c.tai_s = 0;
	clock_is(&c, "tai_offset", NOTE, "not set", "leapsectz");
	c.programs |= OW_PROGRAM_PTP4L;
	clock_is(&c, "tai_offset", WARNING, "not set", "leapsectz");
	c.tai_s = 36;
	clock_is(&c, "tai_offset", WARNING, "36 s, but TAI is 37 s", "leapsectz");
}

static void test_clock_source(void **state)
{
	(void)state;
	static const char *const fast[] = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"};
	struct ow_clock_facts c = good_clock();
	for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) {
		snprintf(c.source, sizeof c.source, "%s", fast[i]);
		clock_is(&c, "clock_source", OK, fast[i], NULL);
	}
	snprintf(c.source, sizeof c.source, "hpet");
	clock_is(&c, "clock_source", WARNING, "hpet", "echo tsc");
	snprintf(c.alternatives, sizeof c.alternatives, "hpet hyperv_clocksource_tsc_page tsc-early");
	clock_is(&c, "clock_source", WARNING, "hpet", "dmesg");
	snprintf(c.source, sizeof c.source, "sundial");
	clock_is(&c, "clock_source", NOTE, "sundial", NULL);
	c.source[0] = '\0';
	clock_is(&c, "clock_source", NOTE, "cannot be read", NULL);
}

static void test_kernel(void **state)
{
	(void)state;
	struct ow_host_facts h = good_host();
	host_is(&h, "kernel", OK, "6.2.0-test", NULL);
	h.kernel_minor = 1;
	host_is(&h, "kernel", NOTE, "Linux", "tx-udp-segmentation off");
	h.kernel_major = 4;
	h.kernel_minor = 6;
	host_is(&h, "kernel", NOTE, "Linux", "tx-udp-segmentation off");
	h.kernel_minor = 5;
	host_is(&h, "kernel", PROBLEM, "Linux", "full-upgrade");
	h.kernel_major = h.kernel_minor = 0;
	host_is(&h, "kernel", NOTE, "not known", NULL);
}

static void test_privileges(void **state)
{
	(void)state;
	struct ow_host_facts h = good_host();
	host_is(&h, "privileges", OK, "CAP_NET_RAW, CAP_NET_ADMIN", NULL);
	h.net_admin = false;
	host_is(&h, "privileges", NOTE, "no CAP_NET_ADMIN", "setcap");
	h.wants_net_admin = true;
	host_is(&h, "privileges", WARNING, "no CAP_NET_ADMIN", "cap_net_admin");
	h.packet_error = EPERM;
	host_is(&h, "privileges", WARNING, "not for this network namespace", "setcap");
	h.net_raw = false;
	host_is(&h, "privileges", WARNING, "no CAP_NET_RAW", "setcap");
	h.packet_error = EAFNOSUPPORT;
	host_is(&h, "privileges", PROBLEM, "no packet sockets", "modprobe");
}

static void test_kernel_capture(void **state)
{
	(void)state;
	struct ow_host_facts h = good_host();
	host_is(&h, "kernel_capture", OK, "possible", NULL);
	snprintf(h.no_kernel, sizeof h.no_kernel, "it needs Linux 6.12 or later");
	host_is(&h, "kernel_capture", NOTE, "not possible: it needs Linux 6.12", "docs/capture.md");
	h.wants_kernel = true;
	host_is(&h, "kernel_capture", WARNING, "not possible: it needs Linux 6.12", "docs/capture.md");
}

static void test_memory(void **state)
{
	(void)state;
	struct ow_host_facts h = good_host();
	host_is(&h, "memory", OK, "1024 MiB available, no limit", NULL);
	h.memory_limit = 300 << 20; /* rings are not charged */
	host_is(&h, "memory", OK, "large enough", NULL);
	h.memory_limit = -1;
	host_is(&h, "memory", OK, "not known", NULL);
	h.memory_limit = 255 << 20;
	host_is(&h, "memory", PROBLEM, "cgroup has 255 MiB", "MemoryMax=384M");
	h.memory_limit = 300 << 20;
	h.wanted_ring = h.wanted_charged = 128u << 20; /* those of processors are */
	host_is(&h, "memory", PROBLEM, "and its rings in the kernel take 384 MiB", "MemoryMax=576M");
	h.wanted_ring = 64u << 20;
	h.wanted_charged = 0;
	h.memory_limit = INT64_MAX;
	h.memory_available = 319 << 20;
	host_is(&h, "memory", WARNING, "319 MiB available, interval packets and rings take 320 MiB", "# a smaller");
	h.memory_available = -1;
	host_is(&h, "memory", NOTE, "cannot be read", NULL);
}

static void test_cpus(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_host_facts h = good_host();
	host_is(&h, "cpus", OK, "4", NULL);
	snprintf(h.isolated, sizeof h.isolated, "2-3");
	host_is(&h, "cpus", OK, "pinned programs: 2-3", NULL);
	h.cpu_quota = 0.5;
	host_is(&h, "cpus", WARNING, "time of 0.5", "CPUQuota");
	h.cpu_quota = 2;
	h.wanted_threads = 5;
	host_is(&h, "cpus", WARNING, "4 for 5 capturing threads", "at most 4");
	h.wanted_threads = h.cpus = 1;
	host_is(&h, "cpus", NOTE, "1", "second CPU");
	h.cpus = 0;
	host_is(&h, "cpus", NOTE, "cannot be read", NULL);

	ow_judge_host(&findings, &h);
	expect_none(&findings, "cpu_power");
	snprintf(h.governor, sizeof h.governor, "powersave");
	host_is(&h, "cpu_power", NOTE, "powersave", "cpupower");
	snprintf(h.governor, sizeof h.governor, "performance");
	host_is(&h, "cpu_power", OK, "performance", NULL);
}

static void test_limits_and_backlog(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_host_facts h = good_host();
	host_is(&h, "open_files", OK, "1024", NULL);
	h.files = 255;
	host_is(&h, "open_files", WARNING, "255", "ulimit -n 256");
	h.wanted_files = 2000;
	host_is(&h, "open_files", PROBLEM, "255, 2000 are needed", "ulimit -n 2000");
	h.files = 0;
	host_is(&h, "open_files", NOTE, "cannot be read", NULL);

	host_is(&h, "backlog", OK, "no packet dropped", NULL);
	h.backlog_dropped = 17;
	host_is(&h, "backlog", WARNING, "17 packets", "netdev_max_backlog");
	h.backlog_dropped = -1;
	host_is(&h, "backlog", NOTE, "cannot be read", NULL);
	ow_judge_host(&findings, &h);
	expect_none(&findings, "stamp_order");
	h.stamp_early = 0;
	host_is(&h, "stamp_order", NOTE, "another CPU", "netdev_tstamp_prequeue=1");
}

static void test_kinds(void **state)
{
	(void)state;
	static const struct {
		const char *kind;
		enum ow_diagnosis_verdict verdict;
		const char *found, *fix;
	} kinds[] = {
		{"", OK, "driver igb", NULL},
		{"veth", NOTE, "the other is eth0", NULL},
		{"bridge", WARNING, "bridge", "eth7"},
		{"bond", OK, "bond", NULL},
		{"team", OK, "team", NULL},
		{"vlan", OK, "VLAN on eth0", NULL},
		{"dummy", WARNING, "dummy", "oneway doctor"},
		{"vxlan", NOTE, "tunnel (vxlan)", NULL},
		{"wireguard", NOTE, "tunnel", NULL},
		{"macvlan", NOTE, "macvlan on eth0", NULL},
	};
	struct ow_link_facts l = good_link();
	snprintf(l.parent, sizeof l.parent, "eth0");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		snprintf(l.kind, sizeof l.kind, "%s", kinds[i].kind);
		link_is(&l, "interface", kinds[i].verdict, kinds[i].found, kinds[i].fix);
	}
	l = good_link();
	snprintf(l.kind, sizeof l.kind, "veth");
	link_is(&l, "interface", NOTE, "in another namespace", NULL);
	l.loopback = true;
	link_is(&l, "interface", NOTE, "loopback", NULL);
}

static void test_members(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	judge_link(&findings, &l);
	expect_none(&findings, "member");
	snprintf(l.master, sizeof l.master, "bond0");
	snprintf(l.master_kind, sizeof l.master_kind, "bond");
	link_is(&l, "member", WARNING, "member of the bond bond0", "oneway doctor bond0");
	snprintf(l.master_kind, sizeof l.master_kind, "bridge");
	link_is(&l, "member", OK, "member of bridge bond0", NULL);
	l.master_kind[0] = '\0';
	link_is(&l, "member", OK, "member of bond0", NULL);
}

static void test_link_state(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	link_is(&l, "link", OK, "10000 Mb/s, full duplex", NULL);
	l.full_duplex = 0;
	link_is(&l, "link", WARNING, "half duplex", "autoneg on");
	l.full_duplex = -1;
	l.speed_mbps = -1;
	link_is(&l, "link", OK, "speed not known", NULL);
	l.carrier = false;
	link_is(&l, "link", PROBLEM, "no carrier", "cable");
	snprintf(l.kind, sizeof l.kind, "veth");
	link_is(&l, "link", PROBLEM, "no carrier", "other end of the pair");
	l.up = false;
	link_is(&l, "link", PROBLEM, "down", "ip link set eth7 up");

	l = good_link();
	judge_link(&findings, &l);
	expect_none(&findings, "link_layer");
	l.hardware = ARPHRD_INFINIBAND;
	link_is(&l, "link_layer", WARNING, "number 32", "to_peer");
	judge_link(&findings, &l);
	expect_none(&findings, "xdp");
	l.xdp = true;
	link_is(&l, "xdp", WARNING, "attached", "xdp off");
}

static void test_mtu(void **state)
{
	(void)state;
	struct ow_link_facts l = good_link();
	link_is(&l, "mtu", OK, "1500", NULL);
	l.mtu = 9000;
	link_is(&l, "mtu", OK, "9000, jumbo frames", NULL);
	l.gso_max = 200000;
	link_is(&l, "mtu", OK, "BIG TCP", NULL);
	l.mtu = 576;
	link_is(&l, "mtu", WARNING, "576", "mtu 1500");
	link_is(&l, "promiscuous", OK, "off", NULL);
	l.promiscuous = true;
	link_is(&l, "promiscuous", OK, "on", NULL);
}

static void test_ring_and_drops(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	link_is(&l, "card_ring", OK, "4096 packets in", NULL);
	l.ring_in = 256;
	link_is(&l, "card_ring", NOTE, "256 packets in", "ethtool -G eth7 rx 4096");
	link_is(&l, "drops_in", OK, "none of 1000000", NULL);
	l.counters.in_dropped = 5;
	link_is(&l, "drops_in", NOTE, "5 of 1000000 packets dropped", "ip -s -s link");
	l.counters.in_errors = 6;
	link_is(&l, "drops_in", WARNING, "6 of 1000006 packets damaged", "ethtool -S eth7");
	l.counters.missed = 7;
	link_is(&l, "card_ring", WARNING, "256", "ethtool -G eth7 rx 4096");
	link_is(&l, "drops_in", WARNING, "missed 7 of 1000007", "ethtool -G eth7 rx 4096");
	l.ring_in = 4096;
	link_is(&l, "drops_in", WARNING, "missed 7", "ethtool -S eth7");
	l.counters.in = UINT64_C(8000000);
	link_is(&l, "drops_in", NOTE, "missed 7", "ethtool -S eth7");
	l.ring_error = EOPNOTSUPP;
	judge_link(&findings, &l);
	expect_none(&findings, "card_ring");

	link_is(&l, "drops_out", OK, "none of 1000000", NULL);
	l.counters.out_dropped = 3;
	link_is(&l, "drops_out", WARNING, "3 dropped, 0 failed", "tc -s qdisc");
	l.counters = (struct ow_link_counters){.out_errors = 4};
	link_is(&l, "drops_out", WARNING, "0 dropped, 4 failed", "tc -s qdisc");
}

static void test_capture_ring(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	judge_link(&findings, &l);
	expect_none(&findings, "ring");
	l.capture_ring = l.capture_ring_usual = 256u << 20;
	l.capture_speed = UINT64_C(10000000000);
	link_is(&l, "ring", OK, "256 MiB, 107 ms of 10000 Mb/s each way", NULL);
	l.capture_ring = 16u << 20;
	link_is(&l, "ring", WARNING, "16 MiB, 7 ms of 10000 Mb/s", "'ring: 256MiB'");
	l.capture_speed = 0;
	link_is(&l, "ring", NOTE, "16 MiB, real speed not known", "'ring: 256MiB'");
}

static void test_capture_kind(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	judge_link(&findings, &l);
	expect_none(&findings, "capture");
	l.needs_ring = "several threads need a ring";
	link_is(&l, "capture", WARNING, "through a ring: several threads", "# no 'capture: kernel'");
	l.mixed_with = "eth8";
	link_is(&l, "capture", WARNING, "recorded through a ring, and eth8 of the same segment in the kernel; several",
	        "# the same 'capture:'");
	l.needs_ring = NULL;
	l.wants_kernel = true;
	link_is(&l, "capture", WARNING, "recorded in the kernel, and eth8 of the same segment through a ring",
	        "# the same 'capture:'");
}

static void test_queue(void **state)
{
	(void)state;
	static const char *const none[] = {"", "noqueue", "noop"};
	struct ow_link_facts l = good_link();
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		struct ow_diagnoses findings = {0};
		snprintf(l.qdisc, sizeof l.qdisc, "%s", none[i]);
		judge_link(&findings, &l);
		expect_none(&findings, "queue");
	}
	snprintf(l.qdisc, sizeof l.qdisc, "fq_codel");
	link_is(&l, "queue", NOTE, "fq_codel", "facing: away");
	snprintf(l.qdisc, sizeof l.qdisc, "tbf");
	link_is(&l, "queue", WARNING, "tbf", "facing: away");
	l.faces_away = true;
	link_is(&l, "queue", OK, "tbf, 'facing: away'", NULL);
}

static void test_interrupts(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_host_facts host = good_host();
	struct ow_clock_facts clock = good_clock();
	struct ow_link_facts l = good_link();
	link_is(&l, "interrupts", OK, "4 queues, 5 interrupts on 4 CPUs", NULL);
	l.irq_cpus = 1;
	link_is(&l, "interrupts", NOTE, "on 1 CPU", "irqbalance");
	clock.programs |= OW_PROGRAM_IRQBALANCE;
	ow_judge_link(&findings, &l, &host, &clock);
	expect(&findings, "interrupts", NOTE, "irqbalance runs", "smp_affinity_list");
	l.queues = 1;
	link_is(&l, "interrupts", OK, "1 queue, 5", NULL);
	l.queues = 0;
	judge_link(&findings, &l);
	expect_none(&findings, "interrupts");
}

static void test_offloads(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	link_is(&l, "lro", OK, "off", NULL);
	l.feature[OW_FEATURE_LRO] = true;
	link_is(&l, "lro", PROBLEM, "on", "ethtool -K eth7 lro off");
	l.changeable[OW_FEATURE_LRO] = false;
	link_is(&l, "lro", PROBLEM, "on", "another interface");

	link_is(&l, "segmentation", OK, "TSO off, GSO off", NULL);
	l.feature[OW_FEATURE_GSO] = true;
	link_is(&l, "segmentation", OK, "TSO off, GSO on", NULL);
	l.feature[OW_FEATURE_TSO6] = true;
	link_is(&l, "segmentation", NOTE, "TSO on, UDP off, GSO on", "ethtool -K eth7 tso off  #");
	l.feature[OW_FEATURE_UDP_SEGMENTS] = true;
	link_is(&l, "segmentation", NOTE, "UDP on", "tso off tx-udp-segmentation off");

	link_is(&l, "gro", OK, "off", NULL);
	l.feature[OW_FEATURE_GRO] = true;
	link_is(&l, "gro", NOTE, "on", "ethtool -K eth7 gro off  #");
	l.feature[OW_FEATURE_GRO_HW] = true;
	link_is(&l, "gro", NOTE, "also in the card", "gro off rx-gro-hw off");
	/* 65,536 bytes at 10 Gb/s. */
	judge_link(&findings, &l);
	assert_non_null(strstr(find(&findings, "gro")->means, "52.43 us"));
	ow_diagnoses_done(&findings);

	link_is(&l, "vlan_tags", OK, "left in", NULL);
	l.feature[OW_FEATURE_VLAN] = true;
	link_is(&l, "vlan_tags", OK, "taken out", NULL);
	link_is(&l, "checksums", OK, "not checked", NULL);
	l.feature[OW_FEATURE_RX_CHECKSUM] = true;
	link_is(&l, "checksums", OK, "checked", NULL);
	l.feature[OW_FEATURE_RX_ALL] = true;
	link_is(&l, "damaged_frames", WARNING, "rx-all", "rx-all off");
	l.feature_error = EOPNOTSUPP;
	link_is(&l, "offloads", NOTE, "cannot be read", "ethtool -k eth7");
}

static void test_udp_superframes(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_host_facts old = good_host();
	struct ow_link_facts l = good_link();
	old.kernel_minor = 1;
	link_is(&l, "udp_superframes", OK, "none", NULL);
	ow_judge_offloads(&findings, &l, &old);
	expect(&findings, "udp_superframes", OK, "none", NULL);
	l.feature[OW_FEATURE_UDP_SEGMENTS] = true;
	link_is(&l, "udp_superframes", OK, "can be described", NULL);
	ow_judge_offloads(&findings, &l, &old);
	expect(&findings, "udp_superframes", WARNING, "Linux 6.1", "ethtool -K eth7 tx-udp-segmentation off");
	l.feature[OW_FEATURE_UDP_GRO] = true;
	link_is(&l, "udp_superframes", WARNING, "joined", "ethtool -K eth7 rx-udp-gro-forwarding off");
	l.feature[OW_FEATURE_GRO_LIST] = true;
	ow_judge_offloads(&findings, &l, &old);
	expect(&findings, "udp_superframes", WARNING, "Linux 6.1",
	       "tx-udp-segmentation off rx-udp-gro-forwarding off rx-gro-list off");
}

static void test_stamps(void **state)
{
	(void)state;
	struct ow_link_facts l = good_link();
	link_is(&l, "timestamps", OK, "by the kernel", NULL);
	l.wants_hardware = true;
	link_is(&l, "timestamps", WARNING, "has none", "hardware_timestamps: false");
	l.stamp_flags = SOF_TIMESTAMPING_RX_HARDWARE;
	l.phc = 3;
	l.stamp_filters = 1u << HWTSTAMP_FILTER_PTP_V2_EVENT;
	link_is(&l, "timestamps", WARNING, "PTP only", "hardware_timestamps: false");
	l.wants_hardware = false;
	link_is(&l, "timestamps", OK, "the card can stamp PTP only", NULL);
	l.stamp_filters |= 1u << HWTSTAMP_FILTER_ALL;
	link_is(&l, "timestamps", OK, "every packet that comes in (PHC 3)", NULL);
	l.stamp_active = true;
	link_is(&l, "timestamps", OK, "and does", NULL);
	l.stamp_error = EOPNOTSUPP;
	link_is(&l, "timestamps", NOTE, "cannot be read", NULL);
}

static void test_card_clock(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_host_facts host = good_host();
	struct ow_clock_facts clock = good_clock();
	struct ow_link_facts l = good_link();
	judge_link(&findings, &l);
	expect_none(&findings, "card_clock");
	l.phc = 0;
	l.phc_ahead_ns = -99 * OW_NS_PER_US;
	link_is(&l, "card_clock", OK, "-99 us", NULL);
	l.phc_ahead_ns = OW_TAI_UTC_S * OW_NS_PER_S + 2000;
	link_is(&l, "card_clock", NOTE, "it is TAI", "phc2sys -s CLOCK_REALTIME -c eth7 -O 0");
	l.wants_hardware = true;
	link_is(&l, "card_clock", PROBLEM, "it is TAI", "phc2sys");
	link_is(&l, "card_clock_daemon", WARNING, "no phc2sys", "phc2sys");
	clock.programs = OW_PROGRAM_PTP4L | OW_PROGRAM_PHC2SYS;
	ow_judge_link(&findings, &l, &host, &clock);
	expect(&findings, "card_clock", PROBLEM, "it is TAI", "hardware_timestamps: false");
	ow_judge_link(&findings, &l, &host, &clock);
	expect_none(&findings, "card_clock_daemon");
	l.phc_ahead_ns = -1000 * OW_NS_PER_S;
	link_is(&l, "card_clock", PROBLEM, "-1000 s ahead", "phc2sys");
	l.wants_hardware = false;
	link_is(&l, "card_clock", NOTE, "-1000 s ahead", "phc2sys");
	l.phc_error = EACCES;
	link_is(&l, "card_clock", NOTE, "/dev/ptp0 cannot be read", "sudo");
}

static void test_coalescing(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_link_facts l = good_link();
	link_is(&l, "coalescing", OK, "off", NULL);
	l.coalesce_us = 50;
	link_is(&l, "coalescing", NOTE, "50 us", "ethtool -C eth7 rx-usecs 0");
	l.coalesce_adaptive = true;
	link_is(&l, "coalescing", NOTE, "adaptive", "adaptive-rx off rx-usecs 0");
	l.coalesce_error = EOPNOTSUPP;
	judge_link(&findings, &l);
	expect_none(&findings, "coalescing");
}

static void trial_is(const struct ow_link_facts *link, const struct ow_trial_facts *trial, const char *name,
                     enum ow_diagnosis_verdict verdict, const char *found, const char *fix)
{
	struct ow_diagnoses findings = {0};
	ow_judge_trial(&findings, link, trial);
	expect(&findings, name, verdict, found, fix);
}

static void test_trial(void **state)
{
	(void)state;
	struct ow_link_facts l = good_link();
	struct ow_trial_facts t = {.kind = "ring", .seconds = 1};
	trial_is(&l, &t, "trial", NOTE, "no frame in 1 s", NULL);
	trial_is(&l, &t, "trial_drops", OK, "none", NULL);
	t.in = 30;
	t.out = 70;
	t.superframes = 25;
	t.packets = 325;
	t.counts = (struct ow_iface_counts){.frames = 100, .stamped = {[OW_STAMPED_BY_KERNEL] = 100}};
	trial_is(&l, &t, "trial", OK, "30 frames in, 70 out in 1 s; 325 packets/s; superframes 25 %", NULL);
	trial_is(&l, &t, "trial_stamps", OK, "100 by the kernel, 0 by the card", NULL);
	l.wants_hardware = true;
	trial_is(&l, &t, "trial_stamps", WARNING, "though the card's", "ethtool -T eth7");
	t.counts.stamped[OW_STAMPED_BY_NIC] = 30;
	trial_is(&l, &t, "trial_stamps", OK, "30 by the card", NULL);
	t.stamp_ahead_ns = 37 * OW_NS_PER_S;
	trial_is(&l, &t, "trial_stamps", PROBLEM, "37 s ahead", "hardware_timestamps: false");
	t.stamp_ahead_ns = -OW_NS_PER_S;
	trial_is(&l, &t, "trial_stamps", PROBLEM, "-1 s ahead", "#");
	t.uncut = 2;
	trial_is(&l, &t, "trial_tunnels", WARNING, "2 superframes", "inner: true");
	t.counters.missed = 9;
	trial_is(&l, &t, "trial_drops", PROBLEM, "missed 9", "ethtool -S eth7");
	l.ring_in = 64;
	trial_is(&l, &t, "trial_drops", PROBLEM, "missed 9", "ethtool -G eth7 rx 4096");
	t.counts.dropped = 4;
	trial_is(&l, &t, "trial_drops", PROBLEM, "dropped 4 of 104", "threads: 2");
	t = (struct ow_trial_facts){.code = EPERM, .error = "eth7: capturing needs root or CAP_NET_RAW"};
	trial_is(&l, &t, "trial", NOTE, "needs root", "sudo oneway doctor --try eth7");
	t = (struct ow_trial_facts){.code = ENETDOWN, .error = "eth7: the interface is down"};
	struct ow_diagnoses findings = {0};
	ow_judge_trial(&findings, &l, &t);
	assert_int_equal(findings.count, 1);
	assert_int_equal(findings.list[0].verdict, PROBLEM);
	ow_diagnoses_done(&findings);
}

static void test_setup(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_setup_facts s = {.path = "x.yaml", .point = "london", .interfaces = 1, .segments = 2};
	ow_judge_setup(&findings, &s);
	expect(&findings, "configuration", OK, "point london, 1 interface, 2 segments", NULL);
	s.code = EACCES;
	snprintf(s.error, sizeof s.error, "x.yaml: key: no");
	ow_judge_setup(&findings, &s);
	expect(&findings, "configuration", PROBLEM, "key: no", "--check-config -c x.yaml");
	s.denied = true;
	ow_judge_setup(&findings, &s);
	expect(&findings, "configuration", NOTE, "key: no", "sudo");
	ow_judge_absent(&findings, "eth9", ", did you mean 'eth0'?");
	expect(&findings, "interface", PROBLEM, "did you mean 'eth0'?", "name:");
}

static void test_store(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_store_facts s = {.path = "r.db", .free_bytes = UINT64_C(800) << 20, .day_bytes = 100u << 20};
	ow_judge_store(&findings, &s);
	expect(&findings, "store", OK, "800 MiB free, a day takes 100 MiB: room for 8 days", NULL);
	s.free_bytes = UINT64_C(650) << 20;
	ow_judge_store(&findings, &s);
	expect(&findings, "store", WARNING, "6.5 days", "df -h r.db");
	s.free_bytes = 63 << 20;
	ow_judge_store(&findings, &s);
	expect(&findings, "store", PROBLEM, "63 MiB", "df -h r.db");
	s.error = EACCES;
	ow_judge_store(&findings, &s);
	expect(&findings, "store", WARNING, "Permission denied", "ls -ld");
	s.error = EROFS;
	ow_judge_store(&findings, &s);
	expect(&findings, "store", PROBLEM, "Read-only", "ls -ld");
}

static void test_history(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_history_facts h = {.segment = "wan",
	                             .days = {7, 90, 365, 365},
	                             .bytes = {700u << 20, 160u << 20, 11u << 20, 1u << 20},
	                             .all_bytes = 872u << 20};
	ow_judge_history(&findings, &h);
	expect(&findings, "history", OK,
	       "wan: a year takes 872 MiB: 7 days of intervals 700, 90 of minutes 160, 365 of hours 11, 365 of days 1",
	       NULL);
	h.most_bytes = 800u << 20;
	ow_judge_history(&findings, &h);
	expect(&findings, "history", NOTE, "872 MiB", "store_max: 872MiB");
}

/* Seconds and two classes for a week, minutes of an interval of ten minutes are rows of ten minutes. */
static void test_history_facts(void **state)
{
	(void)state;
	struct ow_history_facts h;
	struct ow_config_segment segments[] = {{.name = "a", .interval_ns = 1000000000, .class_count = 2},
	                                       {.name = "b", .interval_ns = INT64_C(600000000000)}};
	struct ow_config c = {.segments = segments, .segment_count = 2, .store_max = 1};
	for (int p = 0; p < OW_PERIODS; p++)
		c.retention_ns[p] = ow_periods[p].retention_ns;
	ow_facts_history(&c, 0, &h);
	assert_string_equal(h.segment, "a");
	assert_true(h.days[OW_PERIOD_INTERVAL] == 7 && h.days[OW_PERIOD_DAY] == 365);
	assert_int_equal(h.bytes[OW_PERIOD_INTERVAL], 670 * 4 * 7 * 86400);
	assert_int_equal(h.bytes[OW_PERIOD_MINUTE], 670 * 4 * 90 * 1440);
	ow_facts_history(&c, 1, &h);
	assert_int_equal(h.bytes[OW_PERIOD_MINUTE], 670 * 2 * 90 * 144);
	assert_int_equal(h.bytes[OW_PERIOD_HOUR], 670 * 2 * 365 * 24);
	assert_true(h.all_bytes > h.bytes[OW_PERIOD_INTERVAL]);
}

static void test_peers(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_peer_facts p = {.peer = "paris", .address = "192.0.2.7:8620", .took_ns = 20 * OW_NS_PER_MS};
	ow_judge_peer(&findings, &p);
	expect(&findings, "peer", OK, "192.0.2.7:8620 accepts connections, in 20 ms", NULL);
	p.took_ns = 3156;
	ow_judge_peer(&findings, &p);
	expect(&findings, "peer", OK, "accepts connections, in less than 1 ms", NULL);
	p.took_ns = 600 * OW_NS_PER_MS;
	ow_judge_peer(&findings, &p);
	expect(&findings, "peer", WARNING, "600 ms", "mtr");
	snprintf(p.error, sizeof p.error, "Connection refused");
	ow_judge_peer(&findings, &p);
	expect(&findings, "peer", PROBLEM, "paris: Connection refused", "firewall");

	struct ow_listen_facts l = {.address = ":8620"};
	ow_judge_listen(&findings, &l);
	expect(&findings, "listen", OK, "free", NULL);
	l.code = EADDRINUSE;
	ow_judge_listen(&findings, &l);
	expect(&findings, "listen", NOTE, "already", "ss -ltnp");
	l.code = EADDRNOTAVAIL;
	snprintf(l.error, sizeof l.error, "cannot listen");
	ow_judge_listen(&findings, &l);
	expect(&findings, "listen", PROBLEM, "cannot listen", "ip -brief address");
}

static void test_certificate(void **state)
{
	(void)state;
	struct ow_diagnoses findings = {0};
	struct ow_certificate_facts c = {.path = "c.pem", .days_left = 400, .days_until = -1};
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", OK, "valid for 400 days", NULL);
	c.days_left = 29;
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", WARNING, "expires in 29 days", "keygen");
	c.renewed = true;
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", OK, "valid for 29 days", NULL);
	c.days_left = -2.5;
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", PROBLEM, "expired 2.5 days ago", "fleet enroll");
	c.renewed = false;
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", PROBLEM, "expired 2.5 days ago", "keygen");
	c.days_until = 3;
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", PROBLEM, "valid only in 3 days", "date -u");
	snprintf(c.error, sizeof c.error, "is not a certificate");
	ow_judge_certificate(&findings, &c);
	expect(&findings, "certificate", PROBLEM, "is not a certificate", "openssl x509");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong),
		cmocka_unit_test(test_clock_error),
		cmocka_unit_test(test_time_daemon),
		cmocka_unit_test(test_rate_and_leap),
		cmocka_unit_test(test_tai),
		cmocka_unit_test(test_clock_source),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_privileges),
		cmocka_unit_test(test_kernel_capture),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_limits_and_backlog),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_link_state),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_ring_and_drops),
		cmocka_unit_test(test_capture_ring),
		cmocka_unit_test(test_capture_kind),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_offloads),
		cmocka_unit_test(test_udp_superframes),
		cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_card_clock),
		cmocka_unit_test(test_coalescing),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_facts),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_certificate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
