/* SPDX-License-Identifier: Apache-2.0 */
/* Packet sockets of the relay. A ring would hold frames back for a millisecond (V3); batches of recvmmsg do not. */
#include "lab/relay_port.h"

#include "base/time.h"
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Room for what arrives while the relay does not run: 64 MiB are 50 ms of small packets at 300,000 a second. */
#define ROOM_BYTES (64 << 20)

static int fail(struct ow_error *err, const char *interface, const char *what)
{
	int code = errno;
	return ow_error_set(err, code, "%s: %s: %s", interface, what, strerror(code));
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value);
}

static int prepare(int fd, const char *interface, struct ow_error *err)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	address.sll_ifindex = (int)if_nametoindex(interface);
	if (!address.sll_ifindex)
		return fail(err, interface, "no such interface");
	if (set(fd, SOL_PACKET, PACKET_VNET_HDR, 1) < 0)
		return fail(err, interface, "offload headers (PACKET_VNET_HDR)");
	if (set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) < 0)
		return fail(err, interface, "PACKET_IGNORE_OUTGOING");
	if (set(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) < 0)
		return fail(err, interface, "timestamps (SO_TIMESTAMPNS)");
	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES) < 0 && set(fd, SOL_SOCKET, SO_RCVBUF, ROOM_BYTES) < 0)
		return fail(err, interface, "receive buffer");
	/* No queue of the kernel between the relay and the wire. Only speed depends on it. */
	set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
	struct packet_mreq promiscuous = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0)
		return fail(err, interface, "promiscuous mode");
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return fail(err, interface, "bind");
	return 0;
}

int ow_relay_port_open(struct ow_relay_port *port, const char *interface, struct ow_error *err)
{
	*port = (struct ow_relay_port){.fd = -1};
	port->storage = malloc((size_t)OW_RELAY_BATCH * OW_OFFLOAD_FRAME_MAX);
	if (!port->storage)
		return ow_error_set(err, ENOMEM, "%s: out of memory", interface);
	for (size_t i = 0; i < OW_RELAY_BATCH; i++)
		port->received[i].frame = port->storage + i * OW_OFFLOAD_FRAME_MAX;
	/* Protocol 0: nothing is received before the socket is set up. */
	port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = port->fd < 0 ? fail(err, interface, "packet socket") : prepare(port->fd, interface, err);
	if (r < 0)
		ow_relay_port_close(port);
	return r;
}

void ow_relay_port_close(struct ow_relay_port *port)
{
	if (port->fd >= 0)
		close(port->fd);
	free(port->storage);
	*port = (struct ow_relay_port){.fd = -1};
}

static int64_t stamp_of(struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			struct timespec time;
			memcpy(&time, CMSG_DATA(c), sizeof time);
			return time.tv_sec * OW_NS_PER_S + time.tv_nsec;
		}
	}
	return 0;
}

int ow_relay_port_receive(struct ow_relay_port *port)
{
	struct mmsghdr message[OW_RELAY_BATCH];
	struct iovec piece[OW_RELAY_BATCH][2];
	_Alignas(struct cmsghdr) char control[OW_RELAY_BATCH][CMSG_SPACE(sizeof(struct timespec))];
	for (size_t i = 0; i < OW_RELAY_BATCH; i++) {
		struct received *received = &port->received[i];
		piece[i][0] = (struct iovec){&received->header, sizeof received->header};
		piece[i][1] = (struct iovec){received->frame, OW_OFFLOAD_FRAME_MAX};
		message[i].msg_hdr = (struct msghdr){.msg_iov = piece[i],
		                                     .msg_iovlen = 2,
		                                     .msg_control = control[i],
		                                     .msg_controllen = sizeof control[i]};
	}
	int count = recvmmsg(port->fd, message, OW_RELAY_BATCH, MSG_DONTWAIT, NULL);
	if (count < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		struct received *received = &port->received[i];
		size_t len = message[i].msg_len;
		received->len = len > sizeof received->header ? (uint32_t)(len - sizeof received->header) : 0;
		received->time_ns = stamp_of(&message[i].msg_hdr);
	}
	return count;
}

int ow_relay_port_send(struct ow_relay_port *port, const uint8_t *head, size_t head_len, const uint8_t *body,
                       size_t body_len)
{
	struct virtio_net_hdr header = {.gso_type = VIRTIO_NET_HDR_GSO_NONE};
	struct iovec piece[3] = {
		{&header, sizeof header},
		{(void *)(uintptr_t)head, head_len},
		{(void *)(uintptr_t)body, body_len},
	};
	struct msghdr message = {.msg_iov = piece, .msg_iovlen = 3};
	return sendmsg(port->fd, &message, MSG_DONTWAIT) < 0 ? -errno : 0;
}

void ow_relay_port_count(struct ow_relay_port *port)
{
	struct tpacket_stats stats;
	socklen_t size = sizeof stats;
	/* The kernel counts from the last call on. */
	if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
		port->missed += stats.tp_drops;
}
