/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CAPTURE_IFACE_IFACE_H
#define OW_CAPTURE_IFACE_IFACE_H

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Frames as they pass: from an interface through a TPACKET_V3 ring (or libpcap where there is none), or from a capture
 * file that is replayed in its own time. One source is used by one thread; several sources of one interface share its
 * frames by flow (fanout).
 */

/* Where the frame went, as the kernel says; files and taps do not know. */
enum ow_heading { OW_HEADING_UNKNOWN, OW_HEADING_IN, OW_HEADING_OUT };

/* Who stamped the frame: looked up for each frame, never assumed. */
enum ow_stamped_by { OW_STAMPED_BY_KERNEL, OW_STAMPED_BY_NIC, OW_STAMPED_BY_FILE, OW_STAMPERS };

enum ow_gso { OW_GSO_NONE, OW_GSO_TCP4, OW_GSO_TCP6, OW_GSO_UDP /* UDP_SEGMENT */ };

struct ow_iface_frame {
	struct ow_frame frame; /* number: of the frame in this source, from 1 */
	enum ow_heading heading;
	enum ow_stamped_by stamped_by;
	enum ow_gso gso;
	uint16_t gso_size; /* bytes of payload of each packet of the wire, if gso is not NONE */
	bool fixed_ip_id;  /* a superframe whose packets all have its IPv4 identification */
	bool cwr_on_all;   /* a superframe whose packets all have its CWR flag (accurate ECN), not only the first */
};

enum ow_iface_kind {
	OW_IFACE_AUTO, /* a capture file if the name is that of one, else the ring, else libpcap */
	OW_IFACE_RING,
	OW_IFACE_LIBPCAP,
	OW_IFACE_FILE,
};

/*
 * The filter (pcap-filter(7)) spares a ring most of the frames that the caller does not want. The others have none, and
 * the kernel does not see a frame as it was on the wire: the caller filters what it gets (packet/packet_filter.h).
 */
struct ow_iface_options {
	enum ow_iface_kind kind;
	const char *name;     /* of the interface, or path of the file */
	const char *filter;   /* see below; NULL = all frames */
	uint32_t snaplen;     /* 0 = whole frames */
	size_t ring_bytes;    /* 0 = OW_IFACE_RING_BYTES */
	uint16_t fanout;      /* sources with the same number (not 0) share the frames of the interface */
	bool hardware_stamps; /* ask the interface for stamps of its own; frames tell whether they have one */
	bool wait;    /* an interface that goes away is waited for, see ow_iface_outage; else that is an error */
	double speed; /* files: 1 = in their own time, 10 = ten times as fast, 0 = as fast as possible */
};

#define OW_OUTAGE_CAUSE     78
#define OW_IFACE_RING_BYTES (64u << 20)
/* A ring hands frames over after this time at the latest, however few they are. */
#define OW_IFACE_BLOCK_MS 5

struct ow_iface_counts {
	uint64_t frames;  /* returned */
	uint64_t dropped; /* by the kernel, because the ring was full: the measurement missed them */
	uint64_t stamped[OW_STAMPERS];
};

/* Time in which the interface was down or not there: frames from from_ns to until_ns may be missing. */
struct ow_outage {
	int64_t from_ns, until_ns;
	bool over;                   /* it is back */
	char cause[OW_OUTAGE_CAUSE]; /* "eth0 was down" */
};

struct ow_iface;

int ow_iface_open(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
void ow_iface_close(struct ow_iface *live);

/* What AUTO takes a name for. One with a slash is a file, others are interfaces where there is such a one. */
bool ow_iface_is_file(const char *name);
/* What it is, after AUTO: "ring", "libpcap", "file". LINKTYPE_ of its frames. */
const char *ow_iface_kind_name(const struct ow_iface *live);
uint16_t ow_iface_linktype(const struct ow_iface *live);

/* Whether its frames tell where they went: neither those of files do, nor those of most links through libpcap. */
bool ow_iface_tells_heading(const struct ow_iface *live);

/*
 * Up to `room` frames, valid until the next call; waits up to timeout_ms for the first. Returns how many, 0 when the
 * time is over, -ENODATA at the end of a file, -EINTR after ow_iface_interrupt, else -errno (interface gone: -ENODEV).
 */
int ow_iface_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                  struct ow_error *err);
/* Ends a read that waits, from any thread or a signal handler. */
void ow_iface_interrupt(struct ow_iface *live);

/* The clock that stamps the frames, now: real time; for files, how far the replay is. */
int64_t ow_iface_now_ns(const struct ow_iface *live);
/*
 * All frames with earlier stamps have been returned: what the last frames say, or, where there are none, now less what
 * a ring may hold back. INT64_MAX after the end of a file. By the reading thread only.
 */
int64_t ow_iface_passed_ns(const struct ow_iface *live);
/*
 * The outage since the last call, if there was one. While it lasts every call tells how far it has come, and the time
 * passed goes on; it is never ahead of what was known about outages. The interface is back when there is one of its
 * name again, or the same one under another name, and it is up. By the reading thread only.
 */
bool ow_iface_outage(struct ow_iface *live, struct ow_outage *ret_outage);
/* By the reading thread only: it asks the kernel. */
void ow_iface_counts(struct ow_iface *live, struct ow_iface_counts *ret_counts);

#endif
