/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "capture/frame.h"
#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Live frames: from an interface through a TPACKET_V3 ring (or libpcap where there is no ring), from a capture file
 * that is replayed at its own speed, or from a capture that is still being written (capture/iface/stream.h). One thread uses a source; several sources of one interface share its frames by
 * flow (fanout).
 */

/* The direction of the frame according to the kernel; unknown for files and mirror ports. */
enum ow_heading { OW_HEADING_UNKNOWN, OW_HEADING_IN, OW_HEADING_OUT };

/* Which clock made the frame's timestamp. It is determined for each frame, never assumed. */
enum ow_stamped_by { OW_STAMPED_BY_KERNEL, OW_STAMPED_BY_NIC, OW_STAMPED_BY_FILE, OW_STAMPERS };

enum ow_gso { OW_GSO_NONE, OW_GSO_TCP4, OW_GSO_TCP6, OW_GSO_UDP /* UDP_SEGMENT */ };

struct ow_iface_frame {
	struct ow_frame frame; /* number: counts the frames of this source from 1 */
	enum ow_heading heading;
	enum ow_stamped_by stamped_by;
	enum ow_gso gso;
	uint16_t gso_size; /* payload bytes of each packet on the wire, if gso is not NONE */
	bool fixed_ip_id;  /* a superframe whose packets all have its IPv4 identification */
	bool cwr_on_all;   /* a superframe whose packets all have its CWR flag (accurate ECN), not only the first */
};

enum ow_iface_kind {
	OW_IFACE_AUTO, /* a capture file if there is one of this name, else the ring, else libpcap */
	OW_IFACE_RING,
	OW_IFACE_LIBPCAP,
	OW_IFACE_KERNEL, /* a program in the kernel records the frames; where they cannot, as AUTO: see ow_iface_note */
	OW_IFACE_FILE,
	OW_IFACE_STREAM, /* `stream` is it */
};

/*
 * The kernel applies the filter (pcap-filter(7)) of a ring to keep out most unwanted frames. The other kinds ignore it,
 * and the kernel does not see frames as they were on the wire, so the caller must still filter what it gets
 * (packet/packet_filter.h).
 */
struct ow_iface_options {
	enum ow_iface_kind kind;
	const char *name;     /* of the interface, or path of the file */
	const char *filter;   /* see above; NULL = all frames */
	uint32_t snaplen;     /* 0 = whole frames */
	bool cut_tcp;         /* see ow_iface_cut_tcp */
	size_t ring_bytes;    /* 0 = ow_iface_usual_ring */
	unsigned threads;     /* that share the interface, for ring_bytes = 0; 0 = 1 */
	uint16_t fanout;      /* sources with the same number (not 0) share the frames of the interface */
	bool hardware_stamps; /* request timestamps of the card; each frame says whether it has one */
	bool wait; /* wait for an interface that goes away, see ow_iface_outage; otherwise that is an error */
	struct ow_kernel
		*kernel; /* shared by interfaces that are recorded in the kernel; NULL = it has programs of its own */
	struct ow_iface *stream; /* belongs to whom opens it */
	double speed;            /* for files: 1 = original speed, 10 = ten times as fast, 0 = as fast as possible */
};

#define OW_OUTAGE_CAUSE     78
#define OW_IFACE_RING_BYTES (64u << 20)
#define OW_IFACE_RING_MAX   ((size_t)2 << 30)
/* A ring delivers frames after this time at the latest, even if there are few. */
#define OW_IFACE_BLOCK_MS 5

/*
 * The usual size of a ring: what OW_IFACE_RING_NS of a link at full rate take in both directions, shared by the threads
 * of the interface, but at least OW_IFACE_RING_BYTES and, all rings of the interface, at most a sixteenth of the memory
 * of the host. speed: bit/s, 0 = unknown.
 */
#define OW_IFACE_RING_NS    100000000u
#define OW_IFACE_RING_SHARE 16u
size_t ow_iface_ring_bytes(uint64_t speed, unsigned threads, uint64_t memory);
/* The same for an interface of this host. */
size_t ow_iface_usual_ring(const char *name, unsigned threads);
/*
 * The ring of each processor, if an interface is recorded in the kernel with rings of `bytes`: a power of two. All of them
 * together get at most OW_IFACE_KERNEL_BYTES (or `bytes`, if that is more), and a sixteenth of the memory of the host.
 */
#define OW_IFACE_KERNEL_BYTES ((size_t)512 << 20)
#define OW_IFACE_KERNEL_LEAST ((size_t)1 << 20)
size_t ow_iface_kernel_ring(size_t bytes, unsigned processors, uint64_t memory);
/* The same on this host. ret_all: the memory of all of them; may be NULL. */
size_t ow_iface_kernel_ring_here(size_t bytes, uint64_t *ret_all);
/* Bit/s of a link; 0 = unknown. What a veth claims is the speed of no link. */
uint64_t ow_iface_speed(const char *name);

struct ow_iface_counts {
	uint64_t frames;  /* returned */
	uint64_t dropped; /* by the kernel, because the ring was full; not measured */
	uint64_t stamped[OW_STAMPERS];
};

/* A time when the interface was down or removed, or a stream had not come: frames from from_ns to until_ns may be missing. */
struct ow_outage {
	int64_t from_ns, until_ns;
	bool over;                   /* the interface is back */
	char cause[OW_OUTAGE_CAUSE]; /* "eth0 was down" */
};

struct ow_iface;

int ow_iface_open(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err);
void ow_iface_close(struct ow_iface *live);

/* Whether AUTO treats the name as a file. A name with a slash is a file; other names are interfaces if such an
 * interface exists. */
bool ow_iface_is_file(const char *name);
/* The kind that was chosen: "ring", "libpcap", "kernel", "file". LINKTYPE_ of its frames. */
const char *ow_iface_kind_name(const struct ow_iface *live);
uint16_t ow_iface_linktype(const struct ow_iface *live);
/* Of the interface, file or stream, for messages. */
const char *ow_iface_name(const struct ow_iface *live);
/* Why an interface that was to be recorded in the kernel is not; "" = it is, or was not to be. */
#define OW_IFACE_NOTE 256
const char *ow_iface_note(const struct ow_iface *live);

/* What of these options needs a ring in place of recording in the kernel: "filters of an interface need a ring"; NULL = nothing. */
const char *ow_iface_needs_ring(const struct ow_iface_options *options);
/*
 * Whether this host can record interfaces in the kernel (kernel.c). Opening a source needs CAP_BPF, CAP_PERFMON and
 * CAP_NET_RAW, reading it nothing. 0; -ENOTSUP: not with this kernel or build; or another negative errno.
 */
int ow_iface_kernel_possible(struct ow_error *err);
/* The version of the library that it needs; NULL: it cannot be loaded, or this build does without. */
const char *ow_iface_kernel_library(struct ow_error *err);

/*
 * How far it may be read ahead of the other sources, because what is not read waits: INT64_MAX = some intervals (files). 0 =
 * it is always read: a ring does not wait.
 */
int64_t ow_iface_lead_ns(const struct ow_iface *live);
/* Whether its frames have a direction. Those of files do not, nor those of most links through libpcap. */
bool ow_iface_tells_heading(const struct ow_iface *live);

/*
 * Returns up to `room` frames, valid until the next call; waits up to timeout_ms for the first. Returns the number of
 * frames, 0 after the timeout, -ENODATA at the end of a file, -EINTR after ow_iface_interrupt, else -errno (interface
 * gone: -ENODEV).
 */
int ow_iface_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                  struct ow_error *err);
/* Interrupts a waiting read, from any thread or a signal handler. */
void ow_iface_interrupt(struct ow_iface *live);

/*
 * Whether TCP packets are cut behind their headers (ow_filter_cut_tcp), so that a ring holds many more of them; the
 * length on the wire stays known. For frames that are timestamped from now on, and for rings only: other kinds deliver
 * whole frames. From any thread.
 */
int ow_iface_cut_tcp(struct ow_iface *live, bool cut, struct ow_error *err);

/* The current time of the clock that timestamps the frames: real time; for files, the position of the replay. */
int64_t ow_iface_now_ns(const struct ow_iface *live);
/*
 * All frames with earlier timestamps have been returned. The time comes from the last frames or, if there are none, it
 * is the current time less what a ring may hold back. INT64_MAX after the end of a file. For the reading thread only.
 */
int64_t ow_iface_passed_ns(const struct ow_iface *live);
/*
 * Returns the outage since the last call, if there was one. While it lasts, every call returns it with the current end,
 * and ow_iface_passed_ns() continues to advance, but never beyond the time for which outages are known. The interface
 * is back when an interface of its name exists again, or the same one under another name, and it is up. For the reading
 * thread only.
 */
bool ow_iface_outage(struct ow_iface *live, struct ow_outage *ret_outage);
/* For the reading thread only, because it queries the kernel. */
void ow_iface_counts(struct ow_iface *live, struct ow_iface_counts *ret_counts);
