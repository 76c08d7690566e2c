/* SPDX-License-Identifier: Apache-2.0 */
#include "netns.h"

#include "base/bytes.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void skip(const char *why)
{
	printf("skipped: %s\n", why);
	exit(77);
}

void netns_enter(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		skip("network namespaces need root");
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		skip("packet sockets are not permitted");
	close(fd);
	if (system("ip link set lo up") != 0)
		skip("no ip command, or interfaces cannot be set up");
	if (access("/proc/sys/net/ipv6", F_OK) == 0) {
		netns_run("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6");
		netns_run("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6");
	}
}

void netns_run(const char *format, ...)
{
	char command[512];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(command, sizeof command, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof command || system(command) != 0) {
		fprintf(stderr, "failed: %s\n", command);
		abort();
	}
}

void netns_veth(void)
{
	netns_run("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
	netns_wait_for_veth();
}

void netns_wait_for_veth(void)
{
	netns_run("until ip link show v0 | grep -q 'state UP' && ip link show v1 | grep -q 'state UP'; do sleep 0.01; "
	          "done");
}

void netns_veth_remove(void)
{
	netns_run("ip link del v0 2>/dev/null || true"); /* a test that failed may have left none */
}

int netns_veth_setup(void **state)
{
	(void)state;
	netns_veth();
	return 0;
}

int netns_veth_teardown(void **state)
{
	(void)state;
	netns_veth_remove();
	return 0;
}

int netns_sender(const char *interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		abort();
	return fd;
}

void netns_send(int sender, const uint8_t *frame, size_t size)
{
	ssize_t n;
	do
		n = send(sender, frame, size, 0);
	while (n < 0 && (errno == ENOBUFS || errno == EINTR));
	if (n != (ssize_t)size) {
		perror("send");
		abort();
	}
}

static void finish_checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	for (int i = 0; i < 20; i += 2)
		sum += ow_load_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	ow_store_be16(ip + 10, (uint16_t)~sum);
}

size_t netns_frame(uint8_t *frame, size_t size, uint32_t number, uint32_t flows)
{
	static const uint8_t start[] = {2, 0, 0, 0, 0, 1,  2,  0, 0, 0,  0, 2, 8, 0,  0x45, 0, 0,
	                                0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9,    0, 2};
	assert(size >= NETNS_PAYLOAD + 4);
	memset(frame, (int)(number & 0xff), size);
	memcpy(frame, start, sizeof start);
	ow_store_be16(frame + 16, (uint16_t)(size - 14));
	ow_store_be16(frame + 18, (uint16_t)number);
	ow_store_be16(frame + 34, (uint16_t)(1024 + (flows > 1 ? number % flows : 0)));
	ow_store_be16(frame + 36, 7);
	ow_store_be16(frame + 38, (uint16_t)(size - 34));
	ow_store_be16(frame + 40, 0);
	ow_store_be32(frame + NETNS_PAYLOAD, number);
	finish_checksum(frame + 14);
	return size;
}
