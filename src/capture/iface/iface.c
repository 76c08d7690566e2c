/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of live sources have in common. */
#include "capture/iface/iface.h"

#include "base/clock.h"
#include "base/time.h"
#include "capture/iface/iface_ops.h"
#include "capture/iface/kernel_layout.h"
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int ow_iface_init(struct ow_iface *live, const struct ow_iface_ops *ops, const char *name, struct ow_error *err)
{
	live->ops = ops;
	live->passed_ns = INT64_MIN;
	live->known_ns = INT64_MAX;
	live->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (live->event_fd < 0)
		return ow_error_set(err, errno, "%s: cannot make an event descriptor: %s", name, strerror(errno));
	live->name = strdup(name);
	return live->name ? 0 : ow_error_set(err, ENOMEM, "%s: out of memory", name);
}

void ow_iface_done(struct ow_iface *live)
{
	if (live->event_fd >= 0)
		close(live->event_fd);
	free(live->name);
}

size_t ow_iface_ring_bytes(uint64_t speed, unsigned threads, uint64_t memory)
{
	unsigned parts = threads ? threads : 1;
	uint64_t wanted = speed / 8 * 2 / (OW_NS_PER_S / OW_IFACE_RING_NS) / parts;
	uint64_t most = memory / OW_IFACE_RING_SHARE / parts, bytes = OW_IFACE_RING_BYTES;
	most = most < OW_IFACE_RING_MAX ? most : OW_IFACE_RING_MAX;
	while (bytes < wanted && 2 * bytes <= most)
		bytes *= 2;
	return bytes;
}

static uint64_t speed_of(int fd, struct ifreq *request)
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_cmd link = {.cmd = ETHTOOL_GSET};
	request->ifr_data = (char *)&driver;
	if (ioctl(fd, SIOCETHTOOL, request) == 0 && strcmp(driver.driver, "veth") == 0)
		return 0;
	request->ifr_data = (char *)&link;
	if (ioctl(fd, SIOCETHTOOL, request) < 0)
		return 0;
	uint32_t megabits = ethtool_cmd_speed(&link);
	return megabits > INT32_MAX ? 0 : megabits * UINT64_C(1000000);
}

uint64_t ow_iface_speed(const char *name)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	uint64_t speed = 0;
	if (strlen(name) < sizeof request.ifr_name) {
		memcpy(request.ifr_name, name, strlen(name));
		speed = speed_of(fd, &request);
	}
	close(fd);
	return speed;
}

size_t ow_iface_usual_ring(const char *name, unsigned threads)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	return ow_iface_ring_bytes(ow_iface_speed(name), threads, memory);
}

const char *ow_iface_needs_ring(const struct ow_iface_options *options)
{
	return options->filter                           ? "filters of an interface need a ring"
	       : options->fanout || options->threads > 1 ? "several threads need a ring"
	       : options->hardware_stamps                ? "hardware timestamps need a ring"
	       : options->snaplen                        ? "snapshot lengths need a ring"
	                                                 : NULL;
}

/* The verifier allows offsets below 512 MiB. */
#define KERNEL_RING_MAX (256u << 20)

size_t ow_iface_kernel_ring(size_t bytes, unsigned processors, uint64_t memory)
{
	uint64_t most = memory / OW_IFACE_RING_SHARE, size = OW_IFACE_KERNEL_LEAST;
	uint64_t all = bytes > OW_IFACE_KERNEL_BYTES ? bytes : OW_IFACE_KERNEL_BYTES;
	most = most < all ? most : all;
	while (2 * size <= bytes && 2 * size * processors <= most && 2 * size <= KERNEL_RING_MAX)
		size *= 2;
	return size;
}

size_t ow_iface_kernel_ring_here(size_t bytes, uint64_t *ret_all)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned processors = (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	size_t ring = ow_iface_kernel_ring(bytes, processors, memory);
	if (ret_all)
		*ret_all = (uint64_t)processors * (ring + OW_KERNEL_ROOM);
	return ring;
}

void ow_iface_close(struct ow_iface *live)
{
	if (live)
		live->ops->free(live);
}

const char *ow_iface_kind_name(const struct ow_iface *live)
{
	return live->ops->name;
}

const char *ow_iface_name(const struct ow_iface *live)
{
	return live->name;
}

uint16_t ow_iface_linktype(const struct ow_iface *live)
{
	return live->linktype;
}

const char *ow_iface_note(const struct ow_iface *live)
{
	return live->note;
}

int64_t ow_iface_lead_ns(const struct ow_iface *live)
{
	return live->lead_ns;
}

bool ow_iface_tells_heading(const struct ow_iface *live)
{
	return live->tells_heading;
}

/* Empties the event descriptor. An interrupt may write to it shortly after its flag was seen. */
static void drain(struct ow_iface *live)
{
	uint64_t value;
	while (read(live->event_fd, &value, sizeof value) < 0 && errno == EINTR)
		;
}

/* Whether there was an interrupt; clears it. */
static bool was_interrupted(struct ow_iface *live)
{
	if (!atomic_load_explicit(&live->interrupted, memory_order_relaxed))
		return false;
	atomic_store(&live->interrupted, false);
	drain(live);
	return true;
}

int ow_iface_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                  struct ow_error *err)
{
	if (was_interrupted(live))
		return -EINTR;
	return room ? live->ops->read(live, timeout_ms, frames, room, err) : 0;
}

void ow_iface_interrupt(struct ow_iface *live)
{
	static const uint64_t one = 1;
	int saved = errno;
	atomic_store(&live->interrupted, true);
	/* The write fails only if the counter is full; then the descriptor is readable, too. */
	if (write(live->event_fd, &one, sizeof one) < 0)
		errno = saved;
}

int ow_iface_cut_tcp(struct ow_iface *live, bool cut, struct ow_error *err)
{
	return live->ops->cut_tcp ? live->ops->cut_tcp(live, cut, err) : 0;
}

int64_t ow_iface_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX : ow_clock_steady_ns() + timeout_ms * OW_NS_PER_MS;
}

int ow_iface_wait(struct ow_iface *live, int fd, int64_t until_ns)
{
	struct pollfd fds[2] = {{.fd = live->event_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	for (;;) {
		int64_t left_ns = until_ns == INT64_MAX ? INT64_MAX : until_ns - ow_clock_steady_ns();
		struct timespec left = {.tv_sec = left_ns / OW_NS_PER_S, .tv_nsec = left_ns % OW_NS_PER_S};
		if (left_ns < 0)
			left = (struct timespec){0};
		int n = ppoll(fds, 2, &left, NULL);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (was_interrupted(live))
			return -EINTR;
		if (n > 0 && fds[1].revents)
			return fds[1].revents;
		if (n == 0 || left_ns <= 0)
			return 0;
		if (n > 0)
			drain(live);
	}
}

int64_t ow_iface_now_ns(const struct ow_iface *live)
{
	return live->ops->now_ns ? live->ops->now_ns(live) : ow_clock_real_ns();
}

int64_t ow_iface_passed_ns(const struct ow_iface *live)
{
	return live->passed_ns;
}

void ow_iface_pass(struct ow_iface *live, int64_t time_ns)
{
	if (time_ns > live->passed_ns)
		live->passed_ns = time_ns;
}

/* A card's timestamps come from its own clock, which may always be ahead of the system clock. */
static bool stamps_are_ours(const struct ow_iface *live)
{
	return live->counts.stamped[OW_STAMPED_BY_NIC] == 0;
}

bool ow_iface_set_back(struct ow_iface *live, int64_t now_ns, int64_t *latest_ns)
{
	bool ahead = *latest_ns > now_ns + OW_IFACE_SLACK_NS || live->passed_ns > now_ns;
	if (!ahead || !stamps_are_ours(live))
		return false;
	*latest_ns = live->passed_ns = INT64_MIN;
	return true;
}

int ow_iface_leave_out(struct ow_iface *live, struct ow_iface_frame *frames, int count)
{
	int64_t limit_ns = ow_clock_real_ns() + OW_IFACE_SLACK_NS;
	int kept = 0;
	for (int i = 0; i < count; i++) {
		frames[kept] = frames[i];
		kept += frames[i].frame.time_ns <= limit_ns || frames[i].stamped_by == OW_STAMPED_BY_NIC;
	}
	live->counts.dropped += (uint64_t)(count - kept);
	return kept;
}

/* The longest time from the moment that an interface is flagged as up until our socket gets its first frame. */
#define BACK_NS (10 * OW_NS_PER_MS)

void ow_iface_lose(struct ow_iface *live, const char *why)
{
	if (!live->outage)
		live->outage_ns = live->passed_ns == INT64_MIN ? ow_clock_real_ns() : live->passed_ns;
	live->outage = live->away = true;
	live->why = why;
}

void ow_iface_regain(struct ow_iface *live)
{
	live->away = false;
	live->back_ns = ow_clock_real_ns() + BACK_NS;
}

bool ow_iface_outage(struct ow_iface *live, struct ow_outage *ret_outage)
{
	if (!live->outage)
		return false;
	int64_t now_ns = live->known_ns == INT64_MAX ? ow_clock_real_ns() : live->known_ns;
	struct ow_outage outage = {
		.from_ns = live->outage_ns, .until_ns = live->away ? now_ns : live->back_ns, .over = !live->away};
	/* The clock was set back. */
	if (outage.from_ns > outage.until_ns)
		outage.from_ns = outage.until_ns;
	snprintf(outage.cause, sizeof outage.cause, "%.40s %s", live->name, live->why);
	live->outage = live->away;
	live->outage_ns = live->passed_ns < now_ns && live->passed_ns != INT64_MIN ? live->passed_ns : now_ns;
	*ret_outage = outage;
	return true;
}

void ow_iface_counts(struct ow_iface *live, struct ow_iface_counts *ret_counts)
{
	if (live->ops->count)
		live->ops->count(live);
	*ret_counts = live->counts;
}
