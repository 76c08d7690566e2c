/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/iface/interface.h"

#include "base/bytes.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Not in the kernel headers of Debian 12: */
#define ARPHRD_RAW_IP  519
#define ARPHRD_IP6_GRE 823

#define TAG_BYTES 4u
#define ADDRESSES 12u
#define TAGS_MAX  2

int ow_interface_linktype(unsigned hardware)
{
	switch (hardware) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return OW_LINKTYPE_ETHERNET;
	case ARPHRD_NONE: /* tun, wireguard */
	case ARPHRD_PPP:  /* the kernel shows the inner packet */
	case ARPHRD_RAW_IP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6_GRE:
		return OW_LINKTYPE_RAW;
	default:
		return -ENOTSUP;
	}
}

unsigned ow_interface_index(int fd, const char *name)
{
	struct ifreq request = {0};
	if (strlen(name) >= sizeof request.ifr_name)
		return 0;
	memcpy(request.ifr_name, name, strlen(name));
	return ioctl(fd, SIOCGIFINDEX, &request) < 0 ? 0 : (unsigned)request.ifr_ifindex;
}

unsigned ow_interface_bound(int fd)
{
	struct sockaddr_ll address = {0};
	socklen_t size = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0 || address.sll_ifindex <= 0)
		return 0;
	return (unsigned)address.sll_ifindex;
}

const char *ow_interface_obstacle(int fd, unsigned ifindex, uint16_t linktype, struct ifreq *ret_request)
{
	*ret_request = (struct ifreq){.ifr_ifindex = (int)ifindex};
	if (ifindex == 0 || ioctl(fd, SIOCGIFNAME, ret_request) < 0)
		return "was removed";
	if (ioctl(fd, SIOCGIFHWADDR, ret_request) < 0)
		return "was down"; /* it was renamed a moment ago */
	if (ow_interface_linktype(ret_request->ifr_hwaddr.sa_family) != linktype)
		return "was replaced by an interface of another kind";
	return NULL;
}

void ow_interface_set_promiscuous(int fd, unsigned ifindex, bool on)
{
	struct packet_mreq promiscuous = {.mr_ifindex = (int)ifindex, .mr_type = PACKET_MR_PROMISC};
	(void)setsockopt(fd, SOL_PACKET, on ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP, &promiscuous,
	                 sizeof promiscuous);
}

int ow_interface_bind(int fd, unsigned ifindex)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)ifindex};
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	ow_interface_set_promiscuous(fd, ifindex, true);
	return 0;
}

void ow_interface_put_tag(uint16_t type, uint16_t tag, struct ow_frame *frame)
{
	uint16_t put[2] = {type ? type : htons(ETH_P_8021Q), tag};
	uint8_t *from = (uint8_t *)(uintptr_t)frame->data, *to = from - TAG_BYTES;
	_Static_assert(sizeof put == TAG_BYTES, "a tag");
	memmove(to, from, ADDRESSES);
	memcpy(to + ADDRESSES, put, sizeof put);
	frame->data = to;
	frame->caplen += TAG_BYTES;
	frame->len += TAG_BYTES;
}

uint32_t ow_interface_header(const uint8_t *frame, uint32_t caplen)
{
	uint32_t at = ADDRESSES;
	for (int i = 0; i < TAGS_MAX && at + 2 <= caplen; i++) {
		uint16_t type = ow_load_be16(frame + at);
		if (type != ETH_P_8021Q && type != 0x88a8 && type != 0x9100)
			break;
		at += TAG_BYTES;
	}
	return at + 2;
}

static int look_up(struct ow_interface *interface, struct ow_iface *live, struct ow_error *err)
{
	struct ifreq request = {0};
	interface->ifindex = ow_interface_index(interface->fd, live->name);
	if (!interface->ifindex)
		return ow_error_set(err, ENODEV, "%s: no such interface", live->name);
	memcpy(request.ifr_name, live->name, strlen(live->name));
	if (ioctl(interface->fd, SIOCGIFFLAGS, &request) < 0)
		return ow_error_set(err, errno, "%s: SIOCGIFFLAGS: %s", live->name, strerror(errno));
	if (!(request.ifr_flags & IFF_UP))
		return ow_error_set(err, ENETDOWN, "%s: the interface is down", live->name);
	if (ioctl(interface->fd, SIOCGIFHWADDR, &request) < 0)
		return ow_error_set(err, errno, "%s: SIOCGIFHWADDR: %s", live->name, strerror(errno));
	int linktype = ow_interface_linktype(request.ifr_hwaddr.sa_family);
	if (linktype < 0)
		return ow_error_set(err, ENOTSUP, "%s: link layer %u is not supported", live->name,
		                    request.ifr_hwaddr.sa_family);
	live->linktype = (uint16_t)linktype;
	live->tells_heading = true;
	return 0;
}

int ow_interface_open(struct ow_interface *interface, struct ow_iface *live, struct ow_error *err)
{
	interface->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: nothing comes until bind */
	if (interface->fd < 0)
		return ow_error_set(err, errno, "%s: %s", live->name,
		                    errno == EPERM ? "capturing needs root or CAP_NET_RAW" : strerror(errno));
	return look_up(interface, live, err);
}

int ow_interface_record(struct ow_interface *interface, const struct ow_iface *live, int program, struct ow_error *err)
{
	if (setsockopt(interface->fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof program) < 0)
		return ow_error_set(err, errno, "%s: cannot attach the program: %s", live->name, strerror(errno));
	int r = ow_interface_bind(interface->fd, interface->ifindex);
	return r < 0 ? ow_error_set(err, -r, "%s: bind: %s", live->name, strerror(-r)) : 0;
}

void ow_interface_close(struct ow_interface *interface)
{
	if (interface->fd >= 0)
		close(interface->fd);
	interface->fd = -1;
}

/* Why no frames come from this interface, or NULL. */
static const char *find_obstacle(struct ow_interface *interface, const struct ow_iface *live, unsigned ifindex)
{
	struct ifreq request;
	const char *obstacle = ow_interface_obstacle(interface->fd, ifindex, live->linktype, &request);
	if (obstacle)
		return obstacle;
	unsigned bound = ow_interface_bound(interface->fd);
	if (ifindex != bound) {
		if (bound)
			ow_interface_set_promiscuous(interface->fd, interface->ifindex, false);
		interface->ifindex = ifindex;
		if (ow_interface_bind(interface->fd, ifindex) < 0)
			return "was replaced, and cannot be opened again without a restart";
	}
	return ioctl(interface->fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_UP ? NULL : "was down";
}

int ow_interface_check(struct ow_interface *interface, struct ow_iface *live, struct ow_error *err)
{
	int code = 0;
	socklen_t size = sizeof code;
	if (getsockopt(interface->fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		code = errno;
	if (code != 0 && code != ENETDOWN)
		return ow_error_set(err, code, "%s: %s", live->name, strerror(code));
	unsigned named = ow_interface_index(interface->fd, live->name),
		 ifindex = named ? named : ow_interface_bound(interface->fd);
	if (!live->away && code == 0 && (named == 0 ? ifindex != 0 : named == interface->ifindex))
		return 0;
	const char *cause = code == 0 ? "was replaced" : "was down",
		   *obstacle = find_obstacle(interface, live, ifindex);
	if (obstacle || !live->away)
		ow_iface_lose(live, obstacle ? obstacle : cause);
	if (!obstacle)
		ow_iface_regain(live);
	return 0;
}
