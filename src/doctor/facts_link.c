/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of interfaces from rtnetlink. It answers for the network namespace of this process, while /sys may show another
 * one. facts_card.c reads what the driver knows.
 */
#include "doctor/host_facts.h"
#include "base/array.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES (64u << 10) /* the kernel fills at most 32 KiB */
#define LINKS_MAX    65536
#define WAIT_S       2

struct links {
	struct ow_link_facts *list;
	size_t count, room;
};

static int ask(struct ow_error *err)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} question = {
		.header = {.nlmsg_len = sizeof question,
	                   .nlmsg_type = RTM_GETLINK,
	                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.info = {.ifi_family = AF_UNSPEC},
	};
	struct timeval patience = {.tv_sec = WAIT_S};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return ow_error_set(err, errno, "interfaces: netlink socket: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
	    send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question)
		return fd;
	int code = errno;
	close(fd);
	return ow_error_set(err, code, "interfaces: netlink: %s", strerror(code));
}

static void take_text(const struct rtattr *a, char *text, size_t size)
{
	size_t length = strnlen(RTA_DATA(a), RTA_PAYLOAD(a));
	if (length >= size)
		length = size - 1;
	memcpy(text, RTA_DATA(a), length);
	text[length] = '\0';
}

static uint32_t take_number(const struct rtattr *a)
{
	uint32_t value = 0;
	if (RTA_PAYLOAD(a) >= sizeof value)
		memcpy(&value, RTA_DATA(a), sizeof value);
	return value;
}

/* Older kernels have fewer counters; missing ones are 0. */
static void take_counters(const struct rtattr *a, struct ow_link_counters *c)
{
	struct rtnl_link_stats64 s = {0};
	memcpy(&s, RTA_DATA(a), RTA_PAYLOAD(a) < sizeof s ? RTA_PAYLOAD(a) : sizeof s);
	*c = (struct ow_link_counters){
		.in = s.rx_packets,
		.out = s.tx_packets,
		/* Drivers use one of the three; some count the same packets in two of them. */
		.missed = s.rx_missed_errors > s.rx_fifo_errors ? s.rx_missed_errors : s.rx_fifo_errors,
		.in_dropped = s.rx_dropped,
		.in_errors = s.rx_crc_errors + s.rx_frame_errors,
		.out_dropped = s.tx_dropped,
		.out_errors = s.tx_errors,
	};
}

static void take_info(const struct rtattr *info, struct ow_link_facts *link)
{
	unsigned left = RTA_PAYLOAD(info);
	for (const struct rtattr *a = RTA_DATA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_INFO_KIND)
			take_text(a, link->kind, sizeof link->kind);
		else if (a->rta_type == IFLA_INFO_SLAVE_KIND)
			take_text(a, link->master_kind, sizeof link->master_kind);
	}
}

static void take_xdp(const struct rtattr *xdp, struct ow_link_facts *link)
{
	unsigned left = RTA_PAYLOAD(xdp);
	for (const struct rtattr *a = RTA_DATA(xdp); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_XDP_ATTACHED && RTA_PAYLOAD(a) >= 1)
			link->xdp = *(const uint8_t *)RTA_DATA(a) != XDP_ATTACHED_NONE;
	}
}

static void take_attribute(const struct rtattr *a, struct ow_link_facts *link)
{
	switch (a->rta_type & NLA_TYPE_MASK) {
	case IFLA_IFNAME:
		take_text(a, link->name, sizeof link->name);
		break;
	case IFLA_QDISC:
		take_text(a, link->qdisc, sizeof link->qdisc);
		break;
	case IFLA_MTU:
		link->mtu = take_number(a);
		break;
	case IFLA_MASTER:
		link->master_index = take_number(a);
		break;
	case IFLA_LINK:
		link->parent_index = take_number(a);
		break;
	case IFLA_LINK_NETNSID: /* the parent is in another namespace */
		link->foreign = true;
		break;
	case IFLA_CARRIER: /* IFF_RUNNING follows it up to a second later */
		link->carrier = RTA_PAYLOAD(a) >= 1 && *(const uint8_t *)RTA_DATA(a);
		break;
	case IFLA_PROMISCUITY:
		link->promiscuous = take_number(a) > 0;
		break;
	case IFLA_GSO_MAX_SIZE:
		link->gso_max = take_number(a);
		break;
	case IFLA_STATS64:
		take_counters(a, &link->counters);
		break;
	case IFLA_LINKINFO:
		take_info(a, link);
		break;
	case IFLA_XDP:
		take_xdp(a, link);
		break;
	default:
		break;
	}
}

static int take_link(struct links *links, const struct nlmsghdr *message)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	if (message->nlmsg_len < NLMSG_LENGTH(sizeof *info) || links->count == LINKS_MAX)
		return 0;
	if (OW_GROW(links->list, links->room, links->count + 1) < 0)
		return -ENOMEM;
	struct ow_link_facts *link = &links->list[links->count++];
	*link = (struct ow_link_facts){
		.index = (unsigned)info->ifi_index,
		.hardware = info->ifi_type,
		.up = info->ifi_flags & IFF_UP,
		.carrier = info->ifi_flags & IFF_RUNNING,
		.loopback = info->ifi_flags & IFF_LOOPBACK,
		.speed_mbps = -1,
		.full_duplex = -1,
		.phc = -1,
	};
	unsigned left = message->nlmsg_len - NLMSG_LENGTH(sizeof *info);
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		take_attribute(a, link);
	return 0;
}

/* Returns 1 if more messages follow. */
static int take_answer(struct links *links, const void *answer, size_t size)
{
	unsigned left = (unsigned)size;
	for (const struct nlmsghdr *m = answer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		if (m->nlmsg_type == NLMSG_DONE)
			return 0;
		if (m->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		int r = m->nlmsg_type == RTM_NEWLINK ? take_link(links, m) : 0;
		if (r < 0)
			return r;
	}
	return 1;
}

static const struct ow_link_facts *find(const struct links *links, unsigned index)
{
	for (size_t i = 0; index && i < links->count; i++) {
		if (links->list[i].index == index)
			return &links->list[i];
	}
	return NULL;
}

static void name_relations(struct links *links)
{
	for (size_t i = 0; i < links->count; i++) {
		struct ow_link_facts *l = &links->list[i];
		const struct ow_link_facts *master = find(links, l->master_index);
		const struct ow_link_facts *parent = l->foreign ? NULL : find(links, l->parent_index);
		if (master) {
			memcpy(l->master, master->name, sizeof l->master);
			if (l->master_kind[0] == '\0')
				memcpy(l->master_kind, master->kind, sizeof l->master_kind);
		}
		if (parent && parent != l)
			memcpy(l->parent, parent->name, sizeof l->parent);
	}
}

int ow_facts_links(struct ow_link_facts **ret_links, size_t *ret_count, struct ow_error *err)
{
	struct links links = {0};
	int r = 1, fd = ask(err);
	if (fd < 0)
		return fd;
	char *answer = malloc(ANSWER_BYTES);
	if (!answer)
		r = -ENOMEM;
	while (r > 0) {
		ssize_t n = recv(fd, answer, ANSWER_BYTES, 0);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : take_answer(&links, answer, (size_t)n);
	}
	free(answer);
	close(fd);
	if (r < 0) {
		free(links.list);
		return ow_error_set(err, -r, "interfaces: netlink: %s", strerror(-r));
	}
	name_relations(&links);
	*ret_links = links.list;
	*ret_count = links.count;
	return 0;
}
