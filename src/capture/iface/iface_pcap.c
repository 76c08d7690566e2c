/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of an interface through libpcap, where the ring cannot be used. libpcap does not report the direction of a
 * frame (except on cooked links), whether it is a superframe, or which clock timestamped it (we request only the
 * kernel's). Frames are copied, because libpcap holds one at a time.
 */
#include "base/clock.h"
#include "base/time.h"
#include "capture/filter.h"
#include "capture/iface/iface_ops.h"
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define ARENA_BYTES ((size_t)1 << 20) /* frames of one call; holds the longest frame */
#define BUFFER_MAX  ((size_t)1 << 30)
/* How long libpcap may delay a frame: its timeout, which the kernel rounds coarsely, and a margin. */
#define HOLD_BACK_NS (4 * OW_IFACE_BLOCK_MS * OW_NS_PER_MS + OW_IFACE_SLACK_NS)
/* How often the state of an interface without traffic is checked. */
#define LOOK_MS 10
/* At most this many errors of libpcap in a row while the interface is up. */
#define FAILURES_MAX 100

#define LINKTYPE_LINUX_SLL  113
#define LINKTYPE_LINUX_SLL2 276

_Static_assert(ARENA_BYTES >= OW_IFACE_SNAPLEN_MAX, "the longest frame fits");

struct fallback {
	struct ow_iface live;
	pcap_t *pcap;
	int fd;
	int ifindex;
	unsigned failures; /* in a row */
	bool nano;
	bool pending; /* header and data hold a frame that did not fit the last call */
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int64_t latest_ns;
	uint32_t drops_seen; /* libpcap's counter, which wraps */
	uint8_t arena[ARENA_BYTES];
};

/* Cooked links have the kernel's packet type in the frame. */
static bool is_cooked(uint16_t linktype)
{
	return linktype == LINKTYPE_LINUX_SLL || linktype == LINKTYPE_LINUX_SLL2;
}

static int refuse(const struct fallback *f, int status, struct ow_error *err)
{
	const char *name = f->live.name, *text = pcap_geterr(f->pcap);
	switch (status) {
	case PCAP_ERROR_NO_SUCH_DEVICE:
		return ow_error_set(err, ENODEV, "%s: no such interface", name);
	case PCAP_ERROR_PERM_DENIED:
		return ow_error_set(err, EPERM, "%s: capturing needs root or CAP_NET_RAW", name);
	case PCAP_ERROR_IFACE_NOT_UP:
		return ow_error_set(err, ENETDOWN, "%s: the interface is down", name);
	default:
		return ow_error_set(err, EIO, "%s: libpcap: %s", name, *text ? text : pcap_statustostr(status));
	}
}

static int start(struct fallback *f, const struct ow_iface_options *options, struct ow_error *err)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	size_t bytes = options->ring_bytes ? options->ring_bytes : OW_IFACE_RING_BYTES;
	f->pcap = pcap_create(f->live.name, text);
	if (!f->pcap)
		return ow_error_set(err, ENODEV, "%s: libpcap: %s", f->live.name, text);
	pcap_set_snaplen(f->pcap, (int)(options->snaplen ? options->snaplen : OW_IFACE_SNAPLEN_MAX));
	pcap_set_promisc(f->pcap, 1);
	pcap_set_timeout(f->pcap, OW_IFACE_BLOCK_MS);
	pcap_set_buffer_size(f->pcap, (int)(bytes < BUFFER_MAX ? bytes : BUFFER_MAX));
	f->nano = pcap_set_tstamp_precision(f->pcap, PCAP_TSTAMP_PRECISION_NANO) == 0;
	int r = pcap_activate(f->pcap);
	if (r < 0)
		return refuse(f, r, err);
	f->fd = pcap_get_selectable_fd(f->pcap);
	if (f->fd < 0 || pcap_setnonblock(f->pcap, 1, text) < 0)
		return ow_error_set(err, ENOTSUP, "%s: libpcap has no descriptor to wait for here", f->live.name);
	f->live.linktype = ow_linktype_of_dlt(pcap_datalink(f->pcap));
	f->live.tells_heading = is_cooked(f->live.linktype);
	f->ifindex = (int)if_nametoindex(f->live.name);
	return 0;
}

static enum ow_heading heading_of(const struct ow_frame *frame)
{
	uint32_t offset = frame->linktype == LINKTYPE_LINUX_SLL ? 1 : 10;
	if (!is_cooked(frame->linktype) || frame->caplen <= offset)
		return OW_HEADING_UNKNOWN;
	return frame->data[offset] == 4 ? OW_HEADING_OUT : OW_HEADING_IN;
}

static void fill(struct fallback *f, const uint8_t *data, struct ow_iface_frame *frame)
{
	struct ow_iface *live = &f->live;
	const struct pcap_pkthdr *header = f->header;
	*frame = (struct ow_iface_frame){
		.frame =
			{
				.time_ns = ow_clock_stamp_ns(header->ts.tv_sec * OW_NS_PER_S +
	                                                     header->ts.tv_usec * (f->nano ? 1 : OW_NS_PER_US)),
				.data = data,
				.caplen = header->caplen,
				.len = header->len < header->caplen ? header->caplen : header->len,
				.number = ++live->counts.frames,
				.linktype = live->linktype,
			},
		.stamped_by = OW_STAMPED_BY_KERNEL,
	};
	frame->heading = heading_of(&frame->frame);
	live->counts.stamped[OW_STAMPED_BY_KERNEL]++;
	if (frame->frame.time_ns > f->latest_ns)
		f->latest_ns = frame->frame.time_ns;
}

/*
 * Checks whether the interface exists, because libpcap does not report it. To be called before the watermark advances
 * without frames. Capturing continues by itself when the interface is up again; an interface that was removed cannot be
 * opened again here, because the privileges are gone.
 */
static void check_interface(struct fallback *f)
{
	struct ow_iface *live = &f->live;
	struct ifreq request = {0};
	size_t length = strlen(live->name);
	if (length >= sizeof request.ifr_name)
		return; /* not a plain interface */
	memcpy(request.ifr_name, live->name, length);
	if (ioctl(f->fd, SIOCGIFINDEX, &request) < 0 || request.ifr_ifindex != f->ifindex) {
		ow_iface_lose(live, "was removed, and cannot be opened again without a restart");
		return;
	}
	memcpy(request.ifr_name, live->name, length);
	if (ioctl(f->fd, SIOCGIFFLAGS, &request) < 0 || !(request.ifr_flags & IFF_UP))
		ow_iface_lose(live, "was down");
	else if (live->away)
		ow_iface_regain(live);
}

/* Returns what libpcap has without waiting. ret_empty: nothing is left. */
static int take(struct fallback *f, struct ow_iface_frame *frames, size_t room, bool *ret_empty, struct ow_error *err)
{
	size_t used = 0;
	int n = 0;
	*ret_empty = false;
	while ((size_t)n < room) {
		int r = f->pending ? 1 : pcap_next_ex(f->pcap, &f->header, &f->data);
		if (r < 0 && n == 0)
			return refuse(f, r, err);
		*ret_empty = r == 0;
		if (r != 1)
			break;
		/* libpcap respects its snapshot length, so a frame always fits into the empty arena. */
		f->pending = f->header->caplen > ARENA_BYTES - used;
		if (f->pending)
			break;
		fill(f, memcpy(f->arena + used, f->data, f->header->caplen), &frames[n++]);
		used += f->header->caplen;
	}
	int64_t now = n > 0 ? ow_clock_real_ns() : 0;
	if (n > 0)
		check_interface(f);
	if (n > 0 && f->latest_ns > now + OW_IFACE_SLACK_NS)
		n = ow_iface_leave_out(&f->live, frames, n);
	if (n > 0 && !ow_iface_set_back(&f->live, now, &f->latest_ns))
		ow_iface_pass(&f->live, f->latest_ns - OW_IFACE_SLACK_NS);
	return n;
}

/* Handles that no frames are left to read. */
static int pass_silence(struct fallback *f, int64_t now_ns, bool empty, struct ow_error *err)
{
	check_interface(f);
	if (empty || f->live.away)
		ow_iface_pass(&f->live, now_ns - HOLD_BACK_NS);
	if (f->live.away && !f->live.wait)
		return ow_error_set(err, ENODEV, "%s: the interface %s", f->live.name, f->live.why);
	return 0;
}

static int fallback_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                         struct ow_error *err)
{
	struct fallback *f = (struct fallback *)live;
	int64_t until = ow_iface_deadline(timeout_ms);
	for (bool over = false;;) {
		int64_t now = ow_clock_real_ns(), look = ow_iface_deadline(LOOK_MS);
		bool empty = true;
		ow_iface_set_back(live, now, &f->latest_ns);
		int r = live->away ? 0 : take(f, frames, room, &empty, err);
		if (r > 0)
			return r;
		f->failures = r < 0 ? f->failures + 1 : 0;
		if (f->failures > FAILURES_MAX)
			return r;
		/* Usually the interface went down; it may come back. */
		if (r < 0)
			ow_iface_lose(live, "was down");
		r = pass_silence(f, now, empty, err);
		if (r < 0 || over)
			return r;
		r = ow_iface_wait(live, live->away ? -1 : f->fd, look < until ? look : until);
		over = r == 0 && ow_clock_steady_ns() >= until;
		if (r < 0)
			return r;
	}
}

static void fallback_count(struct ow_iface *live)
{
	struct fallback *f = (struct fallback *)live;
	struct pcap_stat stats;
	if (pcap_stats(f->pcap, &stats) < 0)
		return;
	live->counts.dropped += stats.ps_drop - f->drops_seen;
	f->drops_seen = stats.ps_drop;
}

static void fallback_free(struct ow_iface *live)
{
	struct fallback *f = (struct fallback *)live;
	if (f->pcap)
		pcap_close(f->pcap);
	ow_iface_done(live);
	free(f);
}

int ow_iface_open_libpcap(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	static const struct ow_iface_ops ops = {
		.name = "libpcap",
		.read = fallback_read,
		.count = fallback_count,
		.free = fallback_free,
	};
	if (options->fanout)
		return ow_error_set(err, ENOTSUP, "%s: libpcap cannot share an interface between threads",
		                    options->name);
	struct fallback *f = calloc(1, sizeof *f);
	if (!f)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->name);
	f->latest_ns = INT64_MIN;
	int r = ow_iface_init(&f->live, &ops, options->name, err);
	if (r == 0)
		r = start(f, options, err);
	if (r < 0) {
		fallback_free(&f->live);
		return r;
	}
	*ret_live = &f->live;
	return 0;
}
