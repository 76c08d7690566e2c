/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of this host compared with other sources of them, and what a configuration needs. */
#include "doctor/host_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <cmocka.h>

static void this_host(void **state)
{
	(void)state;
	struct ow_host_facts facts;
	struct utsname name;
	struct rlimit files;
	assert_int_equal(uname(&name), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	ow_facts_host(NULL, &facts);
	assert_int_equal(strncmp(facts.kernel, name.release, strlen(facts.kernel)), 0);
	char version[32];
	snprintf(version, sizeof version, "%u.%u", facts.kernel_major, facts.kernel_minor);
	assert_int_equal(strncmp(name.release, version, strlen(version)), 0);
	assert_true(facts.cpus >= 1 && facts.cpus <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	assert_true(facts.files == files.rlim_cur || files.rlim_cur == RLIM_INFINITY);
	assert_true(facts.memory_available > 0);
	assert_true(facts.memory_limit != 0 && facts.cpu_quota >= 0);
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_int_equal(facts.packet_error == 0, fd >= 0);
	if (fd >= 0)
		close(fd);
}

static void wishes(const char *text, struct ow_host_facts *ret_facts)
{
	struct ow_config *config;
	struct ow_error err;
	if (ow_config_parse("t.yaml", text, strlen(text), &config, &err) < 0)
		fail_msg("%s", err.text);
	ow_facts_host(config, ret_facts);
	ow_config_free(config);
}

#define SEG "segments: [ {name: x, peer: paris, connect: \"192.0.2.7:1\", to_peer: ip} ]\n"

static void needs_of_a_configuration(void **state)
{
	(void)state;
	struct ow_host_facts none, one, more, file;
	ow_facts_host(NULL, &none);
	assert_true(none.wanted_memory > 0 && none.wanted_ring > 0);
	assert_int_equal(none.wanted_threads, 1);
	wishes("point: a\npsk: p\nmemory: 300MiB\ninterfaces: [ {name: lo, ring: 32MiB} ]\n" SEG, &one);
	assert_int_equal(one.wanted_memory, 300u << 20);
	assert_int_equal(one.wanted_ring, 32u << 20);
	assert_int_equal(one.wanted_threads, 1);
	assert_false(one.wants_net_admin);
	/* A ring, a thread and descriptors for each thread of an interface. */
	wishes("point: a\npsk: p\nmemory: 300MiB\n"
	       "interfaces: [ {name: lo, ring: 32MiB}, {name: eth9, ring: 64MiB, threads: 3, "
	       "hardware_timestamps: true} ]\n" SEG,
	       &more);
	assert_int_equal(more.wanted_ring, (32u + 3 * 64) << 20);
	assert_int_equal(more.wanted_threads, 4);
	assert_true(more.wanted_files > one.wanted_files);
	assert_true(more.wants_net_admin);
	/* A file has no ring. */
	wishes("point: a\npsk: p\ninterfaces: [ {file: a.pcap} ]\n" SEG, &file);
	assert_int_equal(file.wanted_ring, 0);
	assert_int_equal(file.wanted_threads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_host),
		cmocka_unit_test(needs_of_a_configuration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
