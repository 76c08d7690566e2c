/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of this host: kernel, capabilities, memory, processors, limits. */
#include "doctor/host_facts.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PATH     4096
#define CPUS_MAX 8192
/* cgroup v1 represents "no limit" by a number larger than any memory. */
#define LIMIT_MAX ((int64_t)1 << 60)
/* File descriptors: standard streams, store, signals, libraries; per capture; per peer. */
#define FILES_BASE    32
#define FILES_CAPTURE 4
#define FILES_SHARED  12 /* with sockets in reserve, for an interface that is created again */
#define FILES_PEER    3

static void read_kernel(struct ow_host_facts *facts)
{
	struct utsname name;
	if (uname(&name) < 0)
		return;
	snprintf(facts->kernel, sizeof facts->kernel, "%.*s", (int)sizeof facts->kernel - 1, name.release);
	/* NOLINTNEXTLINE(cert-err34-c): two small numbers from the kernel; a number that does not fit stays 0 */
	if (sscanf(name.release, "%5u.%5u", &facts->kernel_major, &facts->kernel_minor) != 2)
		facts->kernel_major = facts->kernel_minor = 0;
}

static void read_capabilities(struct ow_host_facts *facts)
{
	char line[256];
	uint64_t effective = 0;
	FILE *status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof line, status)) {
		if (strncmp(line, "CapEff:", 7) == 0)
			effective = strtoull(line + 7, NULL, 16);
	}
	if (status)
		fclose(status);
	facts->net_raw = effective >> CAP_NET_RAW & 1;
	facts->net_admin = effective >> CAP_NET_ADMIN & 1;
	/*
	 * With protocol 0 the socket gets no packets. In a container the capability alone is not sufficient evidence.
	 */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	facts->packet_error = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
}

static int64_t read_number(const char *path)
{
	char line[64], *end;
	if (ow_facts_line(path, line, sizeof line) < 0)
		return -1;
	if (strcmp(line, "max") == 0)
		return INT64_MAX;
	errno = 0;
	int64_t value = strtoll(line, &end, 10);
	return end == line || errno || value < 0 ? -1 : value > LIMIT_MAX ? INT64_MAX : value;
}

/* "max 100000" or "50000 100000": CPUs, 0 = no limit. */
static double read_quota(const char *path)
{
	char line[64], *end;
	if (ow_facts_line(path, line, sizeof line) < 0 || strncmp(line, "max", 3) == 0)
		return 0;
	double quota = strtod(line, &end), period = strtod(end, NULL);
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* The limits of a cgroup and of its parents. */
static void read_cgroup(struct ow_host_facts *facts, const char *root, char *group, const char *memory, const char *cpu)
{
	char path[2 * PATH];
	for (;;) {
		snprintf(path, sizeof path, "%s%s/%s", root, group, memory);
		int64_t limit = read_number(path);
		if (limit >= 0 && (facts->memory_limit < 0 || limit < facts->memory_limit))
			facts->memory_limit = limit;
		snprintf(path, sizeof path, "%s%s/%s", root, group, cpu);
		double quota = read_quota(path);
		if (quota > 0 && (facts->cpu_quota == 0 || quota < facts->cpu_quota))
			facts->cpu_quota = quota;
		char *slash = strrchr(group, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* Lines "0::/GROUP" of version 2, "4:memory:/GROUP" of version 1. */
static void read_cgroups(struct ow_host_facts *facts)
{
	char line[PATH];
	FILE *file = fopen("/proc/self/cgroup", "re");
	facts->memory_limit = -1;
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		char *group = strstr(line, ":/");
		if (!group)
			continue;
		group++;
		if (strncmp(line, "0::", 3) == 0)
			read_cgroup(facts, "/sys/fs/cgroup", group, "memory.max", "cpu.max");
		else if (strstr(line, ":memory:"))
			read_cgroup(facts, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "cpu.max");
	}
	if (file) {
		fclose(file);
		/* The root group of version 2 has no such file: there is no limit. */
		if (facts->memory_limit < 0)
			facts->memory_limit = INT64_MAX;
	}
}

static void read_memory(struct ow_host_facts *facts)
{
	char line[256];
	FILE *file = fopen("/proc/meminfo", "re");
	facts->memory_available = -1;
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, "MemAvailable:", 13) == 0)
			facts->memory_available = strtoll(line + 13, NULL, 10) * 1024;
	}
	if (file)
		fclose(file);
	read_cgroups(facts);
}

static void read_cpus(struct ow_host_facts *facts)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	if (set && sched_getaffinity(0, size, set) == 0)
		facts->cpus = (unsigned)CPU_COUNT_S(size, set);
	CPU_FREE(set);
	if (ow_facts_line("/sys/devices/system/cpu/isolated", facts->isolated, sizeof facts->isolated) < 0)
		facts->isolated[0] = '\0';
	if (ow_facts_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", facts->governor,
	                  sizeof facts->governor) < 0)
		facts->governor[0] = '\0';
}

/* One line per CPU, hexadecimal; the second number counts the packets dropped because the queue was full. */
static void read_backlog(struct ow_host_facts *facts)
{
	char line[512];
	FILE *file = fopen("/proc/net/softnet_stat", "re");
	facts->backlog_dropped = file ? 0 : -1;
	while (file && fgets(line, sizeof line, file)) {
		char *end;
		(void)strtoull(line, &end, 16);
		facts->backlog_dropped += (int64_t)(strtoull(end, NULL, 16) & INT64_MAX);
	}
	if (file)
		fclose(file);
	int64_t early = read_number("/proc/sys/net/core/netdev_tstamp_prequeue");
	facts->stamp_early = early < 0 ? -1 : early != 0;
}

const char *ow_facts_needs_ring(const struct ow_config_interface *in)
{
	const struct ow_iface_options options = {
		.filter = in->filter, .threads = (unsigned)in->threads, .hardware_stamps = in->hardware_stamps};
	return in->capture == OW_IFACE_KERNEL ? ow_iface_needs_ring(&options) : NULL;
}

static void read_wishes(const struct ow_config *config, struct ow_host_facts *facts)
{
	if (config)
		facts->wanted_memory = config->memory;
	else
		ow_key_default(ow_config_keys, "memory", &facts->wanted_memory);
	facts->wanted_ring = config ? 0 : OW_IFACE_RING_BYTES;
	facts->wanted_threads = config ? 0 : 1;
	facts->wanted_files = FILES_BASE + FILES_CAPTURE;
	for (unsigned i = 0; config && i < config->interface_count; i++) {
		const struct ow_config_interface *in = &config->interfaces[i];
		uint64_t ring = in->ring_bytes ? in->ring_bytes
		                : in->file     ? 0
		                               : ow_iface_usual_ring(in->name, (unsigned)in->threads);
		facts->wanted_files += in->threads * (in->threads > 1 ? FILES_SHARED : FILES_CAPTURE);
		facts->wants_net_admin |= in->hardware_stamps;
		facts->wants_kernel |= in->capture == OW_IFACE_KERNEL;
		if (in->file)
			continue;
		facts->wanted_threads += (unsigned)in->threads;
		if (in->capture == OW_IFACE_KERNEL && !facts->no_kernel[0] && !ow_facts_needs_ring(in)) {
			(void)ow_iface_kernel_ring_here(ring, &ring);
			facts->wanted_charged += ring;
		}
		facts->wanted_ring += in->threads * ring;
	}
	if (config)
		facts->wanted_files += FILES_PEER * (uint64_t)config->segment_count;
}

/* Tries it, with the smallest rings. */
static void try_kernel(struct ow_host_facts *facts)
{
	struct ow_error err = {""};
	if (ow_iface_kernel_possible(&err) < 0)
		snprintf(facts->no_kernel, sizeof facts->no_kernel, "%.*s", (int)sizeof facts->no_kernel - 1, err.text);
}

void ow_facts_host(const struct ow_config *config, struct ow_host_facts *ret_facts)
{
	struct rlimit files;
	*ret_facts = (struct ow_host_facts){0};
	read_kernel(ret_facts);
	read_capabilities(ret_facts);
	read_memory(ret_facts);
	read_cpus(ret_facts);
	read_backlog(ret_facts);
	try_kernel(ret_facts);
	read_wishes(config, ret_facts);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		ret_facts->files = files.rlim_cur == RLIM_INFINITY ? UINT64_MAX : files.rlim_cur;
}
