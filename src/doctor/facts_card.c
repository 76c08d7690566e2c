/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of an interface from its driver: the same questions as ethtool(8) asks. None of them needs a privilege. */
#include "base/time.h"
#include "doctor/host_facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FEATURES_MAX 1024 /* names; current kernels have about 60 */
#define CPUS_MAX     1024
#define PATH         320

static const char *const feature_name[OW_FEATURES] = {
	[OW_FEATURE_TSO4] = "tx-tcp-segmentation",
	[OW_FEATURE_TSO6] = "tx-tcp6-segmentation",
	[OW_FEATURE_GSO] = "tx-generic-segmentation",
	[OW_FEATURE_GRO] = "rx-gro",
	[OW_FEATURE_GRO_HW] = "rx-gro-hw",
	[OW_FEATURE_LRO] = "rx-lro",
	[OW_FEATURE_UDP_SEGMENTS] = "tx-udp-segmentation",
	[OW_FEATURE_UDP_GRO] = "rx-udp-gro-forwarding",
	[OW_FEATURE_GRO_LIST] = "rx-gro-list",
	[OW_FEATURE_SCTP_SEGMENTS] = "tx-sctp-segmentation",
	[OW_FEATURE_VLAN] = "rx-vlan-hw-parse",
	[OW_FEATURE_RX_CHECKSUM] = "rx-checksum",
	[OW_FEATURE_RX_ALL] = "rx-all",
};

struct card {
	int fd;
	struct ow_link_facts *link;
};

/* 0 or errno. */
static int ask(const struct card *card, unsigned long request, void *question)
{
	struct ifreq r = {.ifr_data = question};
	memcpy(r.ifr_name, card->link->name, sizeof r.ifr_name);
	return ioctl(card->fd, request, &r) < 0 ? errno : 0;
}

static int ask_ethtool(const struct card *card, void *question)
{
	return ask(card, SIOCETHTOOL, question);
}

/* The number of feature names, or -errno. */
static int count_features(const struct card *card)
{
	union {
		struct ethtool_sset_info head;
		uint32_t words[sizeof(struct ethtool_sset_info) / 4 + 1];
	} info = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_FEATURES}};
	int code = ask_ethtool(card, &info);
	if (code)
		return -code;
	uint32_t count = info.words[sizeof info.head / 4];
	return info.head.sset_mask == 0 || count > FEATURES_MAX ? -EOPNOTSUPP : (int)count;
}

static void take_features(struct ow_link_facts *link, const struct ethtool_gstrings *names,
                          const struct ethtool_gfeatures *features)
{
	for (uint32_t i = 0; i < names->len && i / 32 < features->size; i++) {
		const char *name = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;
		const struct ethtool_get_features_block *block = &features->features[i / 32];
		for (unsigned k = 0; k < OW_FEATURES; k++) {
			if (strncmp(name, feature_name[k], ETH_GSTRING_LEN) != 0)
				continue;
			link->feature[k] = block->active >> i % 32 & 1;
			link->changeable[k] = block->available >> i % 32 & 1;
		}
	}
}

static int read_features(const struct card *card)
{
	int count = count_features(card);
	if (count < 0)
		return -count;
	uint32_t blocks = ((uint32_t)count + 31) / 32;
	struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)count * ETH_GSTRING_LEN);
	struct ethtool_gfeatures *features = calloc(1, sizeof *features + blocks * sizeof features->features[0]);
	int code = names && features ? 0 : ENOMEM;
	if (code == 0) {
		*names = (struct ethtool_gstrings){
			.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = (uint32_t)count};
		*features = (struct ethtool_gfeatures){.cmd = ETHTOOL_GFEATURES, .size = blocks};
		code = ask_ethtool(card, names);
	}
	if (code == 0)
		code = ask_ethtool(card, features);
	/* Both answers have a count; use no more than there is room for. */
	if (code == 0 && names->len <= (uint32_t)count && features->size <= blocks)
		take_features(card->link, names, features);
	free(names);
	free(features);
	return code;
}

static void read_rings(const struct card *card)
{
	struct ow_link_facts *l = card->link;
	struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool_coalesce coalesce = {.cmd = ETHTOOL_GCOALESCE};
	l->ring_error = ask_ethtool(card, &ring);
	if (!l->ring_error) {
		l->ring_in = ring.rx_pending;
		l->ring_in_max = ring.rx_max_pending;
		l->ring_out = ring.tx_pending;
		l->ring_out_max = ring.tx_max_pending;
	}
	l->coalesce_error = ask_ethtool(card, &coalesce);
	if (!l->coalesce_error) {
		l->coalesce_us = coalesce.rx_coalesce_usecs;
		l->coalesce_adaptive = coalesce.use_adaptive_rx_coalesce;
	}
}

/* The first answer of the driver is only the number of words, as a negative number. */
static void read_speed(const struct card *card)
{
	struct {
		struct ethtool_link_settings head;
		uint32_t words[3 * 127];
	} s = {.head = {.cmd = ETHTOOL_GLINKSETTINGS}};
	if (ask_ethtool(card, &s) || s.head.link_mode_masks_nwords >= 0)
		return;
	s.head = (struct ethtool_link_settings){.cmd = ETHTOOL_GLINKSETTINGS,
	                                        .link_mode_masks_nwords = (int8_t)-s.head.link_mode_masks_nwords};
	if (ask_ethtool(card, &s))
		return;
	if (s.head.speed != 0 && s.head.speed != (uint32_t)SPEED_UNKNOWN)
		card->link->speed_mbps = s.head.speed;
	if (s.head.duplex == DUPLEX_FULL || s.head.duplex == DUPLEX_HALF)
		card->link->full_duplex = s.head.duplex == DUPLEX_FULL;
}

/* Compares the card's clock with the host's, which is read before and after. */
static int compare_clocks(int phc, int64_t *ret_ahead_ns)
{
	char path[32];
	struct timespec card;
	snprintf(path, sizeof path, "/dev/ptp%d", phc);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	clockid_t clock = (clockid_t)(~(unsigned)fd << 3 | 3); /* FD_TO_CLOCKID of clock_gettime(2) */
	int64_t before = ow_clock_real_ns();
	int code = clock_gettime(clock, &card) < 0 ? errno : 0;
	int64_t after = ow_clock_real_ns();
	close(fd);
	if (code == 0)
		*ret_ahead_ns = card.tv_sec * OW_NS_PER_S + card.tv_nsec - (before + (after - before) / 2);
	return code;
}

static void read_stamps(const struct card *card)
{
	struct ow_link_facts *l = card->link;
	struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
	struct hwtstamp_config now = {0};
	l->stamp_error = ask_ethtool(card, &info);
	if (l->stamp_error)
		return;
	l->stamp_flags = info.so_timestamping;
	l->stamp_filters = info.rx_filters;
	l->phc = info.phc_index;
	if (ask(card, SIOCGHWTSTAMP, &now) == 0)
		l->stamp_active = now.rx_filter == HWTSTAMP_FILTER_ALL;
	if (l->phc >= 0)
		l->phc_error = compare_clocks(l->phc, &l->phc_ahead_ns);
}

static void read_driver(const struct card *card)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	if (ask_ethtool(card, &info) == 0)
		snprintf(card->link->driver, sizeof card->link->driver, "%.*s", (int)sizeof info.driver - 1,
		         info.driver);
}

/* /sys shows the namespace in which it was mounted. Checks that this is the same interface. */
static bool in_sys(const struct ow_link_facts *l)
{
	char path[PATH], line[64];
	snprintf(path, sizeof path, "/sys/class/net/%s/ifindex", l->name);
	return ow_facts_line(path, line, sizeof line) == 0 && strtoul(line, NULL, 10) == l->index;
}

static unsigned count_entries(const char *path, const char *prefix)
{
	unsigned n = 0;
	DIR *folder = opendir(path);
	for (struct dirent *e; folder && (e = readdir(folder));)
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0 && e->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return n;
}

/* One CPU that handles this interrupt, or -1. */
static int cpu_of(const char *irq)
{
	char path[PATH], line[64];
	snprintf(path, sizeof path, "/proc/irq/%.20s/effective_affinity_list", irq);
	if (ow_facts_line(path, line, sizeof line) < 0 || !isdigit((unsigned char)line[0]))
		return -1;
	long cpu = strtol(line, NULL, 10);
	return cpu < CPUS_MAX ? (int)cpu : -1;
}

static void read_interrupts(struct ow_link_facts *l)
{
	char path[PATH];
	bool seen[CPUS_MAX] = {false};
	snprintf(path, sizeof path, "/sys/class/net/%s/queues", l->name);
	l->queues = count_entries(path, "rx-");
	/* A virtio card's interrupts belong to its parent device. */
	snprintf(path, sizeof path, "/sys/class/net/%s/device/msi_irqs", l->name);
	DIR *folder = opendir(path);
	if (!folder) {
		snprintf(path, sizeof path, "/sys/class/net/%s/device/../msi_irqs", l->name);
		folder = opendir(path);
	}
	for (struct dirent *e; folder && (e = readdir(folder));) {
		int cpu = isdigit((unsigned char)e->d_name[0]) ? cpu_of(e->d_name) : -1;
		if (cpu < 0)
			continue;
		l->irqs++;
		l->irq_cpus += !seen[cpu];
		seen[cpu] = true;
	}
	if (folder)
		closedir(folder);
}

void ow_facts_link(struct ow_link_facts *link)
{
	struct card card = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), .link = link};
	link->detailed = true;
	if (card.fd < 0) {
		link->feature_error = link->ring_error = link->coalesce_error = link->stamp_error = errno;
		return;
	}
	read_driver(&card);
	read_speed(&card);
	link->feature_error = read_features(&card);
	read_rings(&card);
	read_stamps(&card);
	close(card.fd);
	if (in_sys(link))
		read_interrupts(link);
}
