/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets with timestamps of the kernel, by SO_TIMESTAMPING. */
#include "active/stamp_socket.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define CONTROL  512
#define TAI_S    37 /* since 2017-01-01 */
#define DSCP_MAX 63
#define UDP_HEAD 8
/*
 * Bytes before the datagram in what the kernel returns: IP and UDP at least; link, tags and IP with extensions at most.
 */
#define HEADS_MIN 28
#define HEADS_MAX 128

static int socket_error(const char *what, struct ow_error *err)
{
	return ow_error_set(err, errno, "%s: %s", what, strerror(errno));
}

static bool set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/* A card that does not support it, or that is already set up, keeps its setting. */
static void set_up_card(int fd, const char *interface)
{
	struct hwtstamp_config config = {.tx_type = HWTSTAMP_TX_ON, .rx_filter = HWTSTAMP_FILTER_ALL};
	struct ifreq request = {.ifr_data = (char *)&config};
	memcpy(request.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
	(void)ioctl(fd, SIOCSHWTSTAMP, &request);
}

static int set_options(int fd, const struct ow_stamp_socket_options *o, int family, struct ow_error *err)
{
	int stamps = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE;
	bool six = family == AF_INET6;
	if (o->hardware) {
		set_up_card(fd, o->hardware);
		stamps |= SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_TX_HARDWARE;
	}
	if (!set(fd, SOL_SOCKET, SO_TIMESTAMPING, stamps))
		return socket_error("kernel timestamps", err);
	if (o->dscp > DSCP_MAX)
		return ow_error_set(err, EINVAL, "a DSCP is 0 to %d", DSCP_MAX);
	bool done = six ? set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
	                            set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, OW_STAMP_TTL) &&
	                            set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
	                            set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
	                            set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) &&
	                            set(fd, IPPROTO_IPV6, IPV6_TCLASS, o->dscp << 2)
	                : set(fd, IPPROTO_IP, IP_TTL, OW_STAMP_TTL) && set(fd, IPPROTO_IP, IP_RECVTTL, 1) &&
	                            set(fd, IPPROTO_IP, IP_RECVTOS, 1) && set(fd, IPPROTO_IP, IP_PKTINFO, 1) &&
	                            set(fd, IPPROTO_IP, IP_TOS, o->dscp << 2);
	return done ? 0 : socket_error("socket options", err);
}

static socklen_t size_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int ow_stamp_socket_open(const struct ow_stamp_socket_options *options, int *ret_fd, struct ow_error *err)
{
	const struct ow_stamp_socket_options *o = options;
	int family = o->peer.ss_family ? o->peer.ss_family : o->local.ss_family;
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return socket_error("UDP socket", err);
	int r = set_options(fd, o, family, err);
	if (r == 0 && o->local.ss_family && bind(fd, (const struct sockaddr *)&o->local, size_of(&o->local)) < 0)
		r = socket_error("cannot bind the address", err);
	if (r == 0 && o->peer.ss_family && connect(fd, (const struct sockaddr *)&o->peer, size_of(&o->peer)) < 0)
		r = socket_error("cannot connect", err);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

/* -- receiving ---------------------------------------------------------------------------------------------------- */

static int64_t ns_of(const struct timespec *ts)
{
	return ts->tv_sec * OW_NS_PER_S + ts->tv_nsec;
}

/* Software timestamps come first, the card's last; a time of 0 means none. */
static int64_t stamp_of(const struct cmsghdr *c, bool *ret_by_card)
{
	struct timespec ts[3];
	if (c->cmsg_len < CMSG_LEN(sizeof ts))
		return 0;
	memcpy(ts, CMSG_DATA(c), sizeof ts);
	*ret_by_card = ts[2].tv_sec != 0;
	int64_t ns = ns_of(*ret_by_card ? &ts[2] : &ts[0]);
	return ns ? ow_clock_stamp_ns(ns) : 0;
}

static uint8_t small_of(const struct cmsghdr *c)
{
	int value = 0;
	size_t size = c->cmsg_len - CMSG_LEN(0);
	memcpy(&value, CMSG_DATA(c), size < sizeof value ? size : sizeof value);
	return (uint8_t)value;
}

/* The address that the probe was sent to becomes the source of the reply, on whatever interface. */
static void take_local(const struct cmsghdr *c, struct ow_stamp_datagram *d)
{
	struct cmsghdr *to = (struct cmsghdr *)(void *)d->local;
	_Static_assert(CMSG_SPACE(sizeof(struct in6_pktinfo)) <= sizeof d->local, "it has room");
	if (c->cmsg_level == IPPROTO_IP) {
		struct in_pktinfo info;
		memcpy(&info, CMSG_DATA(c), sizeof info);
		struct in_pktinfo from = {.ipi_spec_dst = info.ipi_addr};
		*to = (struct cmsghdr){
			.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof from)};
		memcpy(CMSG_DATA(to), &from, sizeof from);
		d->local_size = CMSG_SPACE(sizeof from);
	} else {
		struct in6_pktinfo info;
		memcpy(&info, CMSG_DATA(c), sizeof info);
		/* A link-local address is valid only on its link. */
		if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
			info.ipi6_ifindex = 0;
		*to = (struct cmsghdr){
			.cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
		memcpy(CMSG_DATA(to), &info, sizeof info);
		d->local_size = CMSG_SPACE(sizeof info);
	}
}

static void take_control(struct msghdr *message, struct ow_stamp_datagram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		int level = c->cmsg_level, type = c->cmsg_type;
		if (level == SOL_SOCKET && type == SCM_TIMESTAMPING) {
			int64_t ns = stamp_of(c, &d->by_card);
			d->stamped = ns != 0;
			d->received_ns = ns ? ns : d->received_ns;
		} else if ((level == IPPROTO_IP && type == IP_TTL) ||
		           (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT)) {
			d->ttl = small_of(c);
		} else if ((level == IPPROTO_IP && type == IP_TOS) || (level == IPPROTO_IPV6 && type == IPV6_TCLASS)) {
			d->tos = small_of(c);
		} else if ((level == IPPROTO_IP && type == IP_PKTINFO) ||
		           (level == IPPROTO_IPV6 && type == IPV6_PKTINFO)) {
			take_local(c, d);
		}
	}
}

int ow_stamp_socket_receive(int fd, uint8_t *buffer, size_t room, struct ow_stamp_datagram *ret_datagram)
{
	struct ow_stamp_datagram *d = ret_datagram;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL];
	struct iovec part = {buffer, room};
	*d = (struct ow_stamp_datagram){0};
	struct msghdr message = {.msg_name = &d->peer,
	                         .msg_namelen = sizeof d->peer,
	                         .msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof control};
	ssize_t n = recvmsg(fd, &message, 0);
	if (n < 0)
		return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
	d->size = (size_t)n;
	d->cut = message.msg_flags & MSG_TRUNC;
	d->received_ns = ow_clock_real_ns();
	take_control(&message, d);
	return 0;
}

/* -- sending ------------------------------------------------------------------------------------------------------ */

int ow_stamp_socket_send(int fd, const uint8_t *bytes, size_t size)
{
	return send(fd, bytes, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int ow_stamp_socket_answer(int fd, const struct ow_stamp_datagram *to, const uint8_t *bytes, size_t size)
{
	_Alignas(struct cmsghdr) uint8_t control[sizeof to->local + CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(void *)bytes, size};
	bool six = to->peer.ss_family == AF_INET6;
	memcpy(control, to->local, to->local_size);
	struct cmsghdr *c = (struct cmsghdr *)(void *)(control + to->local_size);
	/* The ECN bits belong to the packet that arrived. */
	int tos = to->tos & ~3;
	*c = (struct cmsghdr){.cmsg_level = six ? IPPROTO_IPV6 : IPPROTO_IP,
	                      .cmsg_type = six ? IPV6_TCLASS : IP_TOS,
	                      .cmsg_len = CMSG_LEN(sizeof tos)};
	memcpy(CMSG_DATA(c), &tos, sizeof tos);
	struct sockaddr_storage peer = to->peer;
	struct msghdr message = {.msg_name = &peer,
	                         .msg_namelen = size_of(&peer),
	                         .msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = to->local_size + CMSG_SPACE(sizeof tos)};
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The returned packet begins with the header of the link or of IP; the UDP header has the length of the rest. */
static bool find_datagram(const uint8_t *frame, size_t size, struct ow_stamp_sent *sent)
{
	for (size_t head = HEADS_MIN; head <= HEADS_MAX && head <= size; head += 2) {
		const uint8_t *udp = frame + head - UDP_HEAD;
		if (ow_load_be16(udp + 4) != size - head + UDP_HEAD)
			continue;
		sent->bytes = frame + head;
		sent->size = size - head;
		return true;
	}
	return false;
}

int ow_stamp_socket_sent(int fd, uint8_t *buffer, size_t room, struct ow_stamp_sent *ret_sent)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL];
	struct iovec part = {buffer, room};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(fd, &message, MSG_ERRQUEUE);
	if (n < 0)
		return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
	*ret_sent = (struct ow_stamp_sent){0};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING)
			ret_sent->sent_ns = stamp_of(c, &ret_sent->by_card);
	}
	return ret_sent->sent_ns && find_datagram(buffer, (size_t)n, ret_sent) ? 0 : 1;
}

int ow_stamp_tai_s(void)
{
	struct timex timex = {0};
	return adjtimex(&timex) >= 0 && timex.tai > 0 ? timex.tai : TAI_S;
}
