/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pcapng and rare pcap variants with libpcap and nanosecond times. libpcap reads from a FILE on top of our
 * source, so compression and rewinding work. The FILE never gets bytes beyond the block that libpcap is reading. So the
 * follower is at the block of the packet that libpcap returns or rejects.
 *
 * libpcap reuses its buffer, so frames are copied to an arena that holds one batch.
 */
#include "capture/file/capture_format.h"

#include "base/bytes.h"
#include "base/time.h"
#include "capture/filter.h"
#include "capture/file/follow.h"
#include "capture/file/pcapng.h"
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#define FEED_BYTES  ((size_t)256 << 10) /* bytes of the file per read */
#define STDIO_BYTES ((size_t)64 << 10)  /* holds most blocks, so that a packet costs one call of feed_read() */
#define ARENA_BYTES ((size_t)256 << 10) /* frames of a batch; a longer frame is a batch of its own */

struct foreign {
	struct ow_file_cursor walk;
	pcap_t *pcap;
	bool pcapng;
	bool pending; /* header and data hold a frame that did not fit the last batch */
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int stopped;             /* result of libpcap when it stopped; it must not be called again */
	struct ow_error trouble; /* a read error of the system */
	int trouble_code;
	size_t feed_next, feed_end;
	uint64_t consumed; /* bytes that libpcap has read */
	bool joined;       /* a file header was found where a record or a block should begin */
	char stdio[STDIO_BYTES];
	uint8_t feed[FEED_BYTES];
	uint8_t arena[ARENA_BYTES];
	struct ow_follow follow;
};

/* Reads more of the file into the empty feed; at the end of the file the feed stays empty. */
static int refill(struct foreign *f)
{
	int r;

	f->feed_next = f->feed_end = 0;
	r = ow_source_read(f->walk.source, f->feed, FEED_BYTES, &f->feed_end, &f->trouble);
	if (r < 0)
		f->trouble_code = r;
	return r;
}

/* The read function for fopencookie(): returns bytes of the file; for pcapng at most to the end of a block. */
static ssize_t feed_read(void *cookie, char *buffer, size_t size)
{
	struct foreign *f = cookie;
	size_t done = 0;

	do {
		size_t n = size - done;
		if (f->feed_next == f->feed_end && refill(f) < 0) {
			errno = -f->trouble_code;
			return -1;
		}
		if (n > f->feed_end - f->feed_next)
			n = f->feed_end - f->feed_next;
		if (n == 0)
			break;
		if (f->pcapng)
			n = ow_follow_feed(&f->follow, f->feed + f->feed_next, n);
		memcpy(buffer + done, f->feed + f->feed_next, n);
		f->feed_next += n;
		done += n;
	} while (done < size && f->pcapng && f->follow.pos && !f->follow.lost);
	f->consumed += done;
	return (ssize_t)done;
}

/* If the follower has found something that libpcap cannot read, sets an error with a remedy; otherwise 0. */
static int refuse(const struct foreign *f, struct ow_error *err)
{
	const char *name = ow_source_name(f->walk.source);

	if (f->follow.mixed_order)
		return ow_error_set(err, ENOTSUP,
		                    "%s: sections of different byte order; convert it: tshark -r FILE -w OUT", name);
	if (f->joined && f->pcapng)
		return ow_error_set(
			err, ENOTSUP,
			"%s: another capture file, in another format (pcap), begins at offset %llu: split it "
			"there, and convert the parts to one format",
			name, (unsigned long long)f->follow.block_offset);
	if (f->joined)
		return ow_error_set(err, ENOTSUP,
		                    "%s: another capture file begins behind record %llu: split it there, and convert "
		                    "the parts: tshark -r FILE -w OUT",
		                    name, (unsigned long long)f->walk.number);
	if (f->follow.too_fine)
		return ow_error_set(err, ENOTSUP,
		                    "%s: time resolution finer than 2^-34 s cannot be read; convert it: "
		                    "tshark -r FILE -F nsecpcap -w OUT",
		                    name);
	return 0;
}

static int start(struct foreign *f, struct ow_error *err)
{
	static const cookie_io_functions_t io = {.read = feed_read};
	char text[PCAP_ERRBUF_SIZE] = "";
	FILE *file;
	int r;

	f->pending = false;
	f->stopped = 0;
	f->feed_next = f->feed_end = 0;
	f->consumed = 0;
	f->joined = false;
	f->trouble_code = 0;
	ow_follow_reset(&f->follow);
	file = fopencookie(f, "rb", io);
	if (!file)
		return ow_error_set(err, errno, "%s: out of memory", ow_source_name(f->walk.source));
	setvbuf(file, f->stdio, _IOFBF, sizeof f->stdio);
	f->pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, text);
	if (f->pcap)
		return 0;
	fclose(file);
	r = refuse(f, err);
	if (r < 0)
		return r;
	if (f->trouble_code < 0)
		return ow_error_set(err, -f->trouble_code, "%s", f->trouble.text);
	return ow_error_set(err, EINVAL, "%s: cannot be read as a capture file: %s", ow_source_name(f->walk.source),
	                    text);
}

/* 0, no time, if it is absurd and would overflow: libpcap computes seconds from 64 bits of the file. */
static int64_t to_ns(const struct timeval *ts)
{
	const int64_t max_s = OW_CAPTURE_TIME_MAX_NS / OW_NS_PER_S - 4; /* the sub-seconds are below 2^32 */
	int64_t s = ts->tv_sec, ns = ts->tv_usec;

	if (s > max_s || ns > UINT32_MAX || s < -max_s || ns < 0)
		return 0;
	return s * OW_NS_PER_S + ns;
}

/* Handles that libpcap has stopped: the end, an error, or damage. Returns 0 or an error. */
static int note_end(struct foreign *f, struct ow_error *err)
{
	const char *name = ow_source_name(f->walk.source), *packed = ow_source_damage(f->walk.source);
	unsigned long long records = f->walk.number;
	const char *text;
	int r;

	if (f->trouble_code < 0)
		return ow_error_set(err, -f->trouble_code, "%s", f->trouble.text);
	if (packed) {
		ow_error_set(&f->walk.damage, EINVAL, "%s: %s, after %llu whole records", name, packed, records);
		return 0;
	}
	if (f->stopped == PCAP_ERROR_BREAK)
		return 0;
	r = refuse(f, err);
	if (r < 0)
		return r;
	text = pcap_geterr(f->pcap);
	ow_error_set(&f->walk.damage, EINVAL, "%s: damaged or cut off in record %llu at offset %llu (%s)", name,
	             records + 1, (unsigned long long)(f->pcapng ? f->follow.block_offset : f->consumed),
	             *text ? text : "impossible length");
	return 0;
}

/* Whether libpcap has read or rejected a file header: that of a pcap variant looks like an empty record. */
static bool is_joined(const struct foreign *f, int state)
{
	uint8_t seconds[4];

	if (f->pcapng) {
		enum ow_file_kind kind = ow_file_kind(f->follow.kept, 8);
		return state == PCAP_ERROR && (kind == OW_FILE_KIND_CLASSIC || kind == OW_FILE_KIND_VARIANT);
	}
	if (state != 1 || f->header->caplen != 0 || f->header->len != 0)
		return false;
	memcpy(seconds, &(uint32_t){(uint32_t)f->header->ts.tv_sec}, sizeof seconds);
	return ow_file_kind(seconds, sizeof seconds) != OW_FILE_KIND_NONE;
}

/*
 * Reads one packet. Afterwards libpcap and the follower must be at the same end of a block. If they are not, or if the
 * follower has found something that libpcap reads wrongly, it counts as an error of libpcap.
 */
static int next(struct foreign *f)
{
	int state = pcap_next_ex(f->pcap, &f->header, &f->data);

	f->joined = is_joined(f, state);
	if (f->joined)
		return PCAP_ERROR;
	if (state != 1)
		return state;
	if (f->pcapng && (f->follow.lost || f->follow.pos || f->follow.mixed_order || f->follow.too_fine))
		return PCAP_ERROR;
	if (f->header->caplen > OW_CAPTURE_CAPLEN_MAX)
		return PCAP_ERROR;
	return 1;
}

static int foreign_read(struct ow_file_cursor *walk, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	struct foreign *f = (struct foreign *)walk;
	size_t used = 0;
	int n = 0;

	while ((size_t)n < max && n < INT32_MAX) {
		if (!f->pending) {
			int state = f->stopped ? f->stopped : next(f);
			walk->info->dropped = f->follow.dropped;
			if (state != 1) {
				f->stopped = state;
				return n ? n : note_end(f, err);
			}
		}
		uint32_t caplen = f->header->caplen;
		if (f->follow.resolution_ns > walk->info->resolution_ns)
			walk->info->resolution_ns = f->follow.resolution_ns;
		f->pending = caplen > ARENA_BYTES - used && n > 0;
		if (f->pending)
			return n;
		const uint8_t *data = f->data;
		if (caplen <= ARENA_BYTES - used) {
			data = memcpy(f->arena + used, f->data, caplen);
			used += caplen;
		} else {
			max = 1; /* the frame stays in libpcap's buffer until the next call */
		}
		frames[n++] = (struct ow_frame){
			.time_ns = to_ns(&f->header->ts),
			.data = data,
			.caplen = caplen,
			.len = f->header->len < caplen ? caplen : f->header->len,
			.number = ++walk->number,
			.linktype = f->pcapng ? f->follow.packet_linktype : walk->info->linktype,
		};
	}
	return n;
}

static int foreign_rewind(struct ow_file_cursor *walk, struct ow_error *err)
{
	struct foreign *f = (struct foreign *)walk;

	if (f->pcap)
		pcap_close(f->pcap);
	f->pcap = NULL;
	return start(f, err);
}

static void foreign_free(struct ow_file_cursor *walk)
{
	struct foreign *f = (struct foreign *)walk;

	if (f->pcap)
		pcap_close(f->pcap);
	ow_follow_reset(&f->follow);
	free(f);
}

static const struct ow_file_cursor_ops foreign_ops = {
	.read = foreign_read,
	.rewind = foreign_rewind,
	.free = foreign_free,
};

/*
 * Usually all interfaces are described before the first packet, but libpcap reads only the first of them when it opens
 * the file. Read the others here, so that info is complete from the start and an unreadable file is rejected at once.
 */
static int look_ahead(struct foreign *f, struct ow_error *err)
{
	uint32_t magic;
	size_t got;
	int r = ow_source_read(f->walk.source, f->feed, FEED_BYTES, &got, err);

	if (r < 0)
		return r;
	magic = got >= 4 ? ow_load_le32(f->feed) : 0;
	f->pcapng = magic == OW_PCAPNG_SECTION;
	f->walk.info->resolution_ns = magic == 0xa1b23c4d || magic == 0x4d3cb2a1 ? 1 : OW_NS_PER_US;
	if (f->pcapng) {
		ow_follow_reset(&f->follow);
		for (size_t i = 0; i < got;)
			i += ow_follow_feed(&f->follow, f->feed + i, got - i);
		f->walk.info->resolution_ns = f->follow.resolution_ns;
		r = refuse(f, err);
		if (r < 0)
			return r;
	}
	return ow_source_rewind(f->walk.source, err);
}

int ow_file_cursor_foreign(struct ow_source *source, struct ow_reader_info *info, struct ow_file_cursor **ret_walk,
                           struct ow_error *err)
{
	struct foreign *f = calloc(1, sizeof *f);
	int r;

	if (!f)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_source_name(source));
	f->walk = (struct ow_file_cursor){.ops = &foreign_ops, .source = source, .info = info};
	r = look_ahead(f, err);
	if (r == 0)
		r = start(f, err);
	if (r < 0) {
		foreign_free(&f->walk);
		return r;
	}
	info->format = f->pcapng ? "pcapng" : "pcap (variant)";
	info->snaplen = f->pcapng ? f->follow.snaplen : (uint32_t)pcap_snapshot(f->pcap);
	info->linktype = f->pcapng ? f->follow.linktype : ow_linktype_of_dlt(pcap_datalink(f->pcap));
	if (f->follow.resolution_ns > info->resolution_ns)
		info->resolution_ns = f->follow.resolution_ns;
	if (info->resolution_ns == 0) /* damaged before the first interface */
		info->resolution_ns = OW_NS_PER_US;
	*ret_walk = &f->walk;
	return 0;
}
