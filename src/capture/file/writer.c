/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pcap and pcapng. Layouts, all fields in the byte order of the options:
 *
 *     pcap    magic 4 | 2 2 | 4 2 | zone 4 | accuracy 4 | snaplen 4 | linktype 4
 *             record: seconds 4 | sub-seconds 4 | caplen 4 | len 4 | bytes
 *     pcapng  section:   0a0d0d0a | 28 | 1a2b3c4d | 1 2 | 0 2 | -1 8 | 28
 *             interface: 1 | length | linktype 2 | 0 2 | snaplen 4 | if_tsresol | if_tsoffset if any | end | length
 *             packet:    6 | length | interface 4 | ticks high 4 | low 4 | caplen 4 | len 4 | padded bytes | length
 */
#include "capture/file/writer.h"

#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/sink.h"
#include "capture/file/capture_format.h"
#include "capture/file/pcapng.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SNAPLEN_DEFAULT 262144U /* tcpdump's */
#define INTERFACES_MAX  65536U  /* in a file that we write; more is a mistake of the caller */
#define PACKET_BYTES    32U     /* of a pcapng packet block without the packet */
#define TSRESOL_BINARY  0x80
#define DECIMAL_MAX     18 /* 10^-18 s: 64 bits of it are 18 seconds; readers accept at most 19 */
#define BINARY_MAX      63

struct ow_writer {
	struct ow_sink *sink;
	char *path;
	struct ow_writer_options options;
	uint64_t number; /* frames written */
};

static int write_pcap_header(struct ow_writer *w, struct ow_error *err)
{
	const struct ow_writer_options *o = &w->options;
	uint8_t *p;
	int r = ow_sink_room(w->sink, OW_PCAP_HEADER_BYTES, &p, err);

	if (r < 0)
		return r;
	ow_store32(p, o->nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, o->big_endian);
	ow_store16(p + 4, 2, o->big_endian);
	ow_store16(p + 6, 4, o->big_endian);
	ow_store64(p + 8, 0, o->big_endian);
	ow_store32(p + 16, o->snaplen, o->big_endian);
	ow_store32(p + 20, o->linktype, o->big_endian);
	ow_sink_add(w->sink, OW_PCAP_HEADER_BYTES);
	return 0;
}

static int write_section(struct ow_writer *w, struct ow_error *err)
{
	bool big = w->options.big_endian;
	uint8_t *p;
	int r = ow_sink_room(w->sink, 28, &p, err);

	if (r < 0)
		return r;
	ow_store32(p, OW_PCAPNG_SECTION, big);
	ow_store32(p + 4, 28, big);
	ow_store32(p + 8, OW_PCAPNG_ORDER_MAGIC, big);
	ow_store16(p + 12, 1, big);
	ow_store16(p + 14, 0, big);
	ow_store64(p + 16, UINT64_MAX, big); /* section length: unknown */
	ow_store32(p + 24, 28, big);
	ow_sink_add(w->sink, 28);
	return 0;
}

static int write_interface(struct ow_writer *w, struct ow_error *err)
{
	const struct ow_writer_options *o = &w->options;
	bool big = o->big_endian;
	uint32_t length = 32 + (o->tsoffset_s ? 12 : 0);
	uint8_t *p;
	int r = ow_sink_room(w->sink, length, &p, err);

	if (r < 0)
		return r;
	memset(p, 0, length);
	ow_store32(p, 1, big);
	ow_store32(p + 4, length, big);
	ow_store16(p + 8, o->linktype, big);
	ow_store32(p + 12, o->snaplen, big);
	ow_store16(p + 16, 9, big); /* if_tsresol */
	ow_store16(p + 18, 1, big);
	p[20] = (uint8_t)o->tsresol;
	if (o->tsoffset_s) {
		ow_store16(p + 24, 14, big); /* if_tsoffset */
		ow_store16(p + 26, 8, big);
		ow_store64(p + 28, (uint64_t)o->tsoffset_s, big);
	}
	ow_store32(p + length - 4, length, big);
	ow_sink_add(w->sink, length);
	return 0;
}

static int write_header(struct ow_writer *w, struct ow_error *err)
{
	int r;

	if (w->options.format == OW_FILE_PCAP)
		return write_pcap_header(w, err);
	r = write_section(w, err);
	for (unsigned i = 0; i < w->options.interfaces && r == 0; i++)
		r = write_interface(w, err);
	return r;
}

/* Fills in defaults. */
static int settle_options(struct ow_writer *w, const char *path, struct ow_error *err)
{
	struct ow_writer_options *o = &w->options;
	int n;

	if (o->snaplen == 0)
		o->snaplen = SNAPLEN_DEFAULT;
	if (o->snaplen > OW_CAPTURE_CAPLEN_MAX)
		return ow_error_set(err, EINVAL, "%s: a snaplen of %u is more than %u", path, o->snaplen,
		                    OW_CAPTURE_CAPLEN_MAX);
	if (o->interfaces == 0)
		o->interfaces = 1;
	if (o->interfaces > INTERFACES_MAX)
		return ow_error_set(err, EINVAL, "%s: %u interfaces are more than %u", path, o->interfaces,
		                    INTERFACES_MAX);
	if (o->tsresol == 0)
		o->tsresol = o->nanoseconds ? 9 : 6;
	n = o->tsresol & ~TSRESOL_BINARY;
	if (n < 0 || n > (o->tsresol & TSRESOL_BINARY ? BINARY_MAX : DECIMAL_MAX))
		return ow_error_set(err, EINVAL, "%s: a time resolution byte of %d is not possible", path, o->tsresol);
	return 0;
}

/* Whether the first *length characters of the name end with the suffix; then removes it from *length. */
static bool ends_with(const char *name, const char *suffix, size_t *length)
{
	size_t n = strlen(suffix);

	if (*length < n || strncasecmp(name + *length - n, suffix, n) != 0)
		return false;
	*length -= n;
	return true;
}

void ow_writer_options_of_name(const char *path, enum ow_file_format *ret_format, bool *ret_gzip)
{
	size_t length = strlen(path);

	*ret_gzip = ends_with(path, ".gz", &length);
	*ret_format = ends_with(path, ".pcapng", &length) ? OW_FILE_PCAPNG : OW_FILE_PCAP;
}

int ow_writer_open(const char *path, const struct ow_writer_options *options, struct ow_writer **ret_writer,
                   struct ow_error *err)
{
	struct ow_writer *w = calloc(1, sizeof *w);
	int r;

	if (w)
		w->path = strdup(path);
	if (!w || !w->path) {
		ow_writer_abort(w);
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	}
	w->options = *options;
	r = settle_options(w, path, err);
	if (r == 0)
		r = ow_sink_open(path, options->gzip, &w->sink, err);
	if (r == 0)
		r = write_header(w, err);
	if (r < 0) {
		ow_writer_abort(w);
		return r;
	}
	*ret_writer = w;
	return 0;
}

static int refuse_time(const struct ow_writer *w, int64_t time_ns, struct ow_error *err)
{
	return ow_error_set(err, ERANGE, "%s: record %llu: the time %lld ns cannot be stored in this format", w->path,
	                    (unsigned long long)w->number + 1, (long long)time_ns);
}

static int write_pcap(struct ow_writer *w, const struct ow_frame *frame, uint32_t caplen, struct ow_error *err)
{
	bool big = w->options.big_endian;
	uint64_t s = (uint64_t)frame->time_ns / OW_NS_PER_S, ns = (uint64_t)frame->time_ns % OW_NS_PER_S;
	uint8_t *p;
	int r;

	if (frame->time_ns < 0 || s > UINT32_MAX)
		return refuse_time(w, frame->time_ns, err);
	r = ow_sink_room(w->sink, OW_PCAP_RECORD_BYTES + caplen, &p, err);
	if (r < 0)
		return r;
	ow_store32(p, (uint32_t)s, big);
	ow_store32(p + 4, (uint32_t)(w->options.nanoseconds ? ns : ns / OW_NS_PER_US), big);
	ow_store32(p + 8, caplen, big);
	ow_store32(p + 12, frame->len, big);
	if (caplen)
		memcpy(p + OW_PCAP_RECORD_BYTES, frame->data, caplen);
	ow_sink_add(w->sink, OW_PCAP_RECORD_BYTES + caplen);
	return 0;
}

/* Converts nanoseconds to ticks of the file. Coarse resolutions round down, as clocks do. Fine binary ones round up,
 * because readers round down and must get the same nanosecond. */
static int to_ticks(const struct ow_writer *w, int64_t time_ns, uint64_t *ret_ticks)
{
	__int128 ticks = (__int128)time_ns - (__int128)w->options.tsoffset_s * OW_NS_PER_S;
	int n = w->options.tsresol & ~TSRESOL_BINARY;

	if (ticks < 0 || ticks > (__int128)1 << 63)
		return -ERANGE;
	if (w->options.tsresol & TSRESOL_BINARY) {
		ticks = ((ticks << n) + (n >= 30 ? OW_NS_PER_S - 1 : 0)) / OW_NS_PER_S;
	} else {
		for (; n < 9; n++)
			ticks /= 10;
		for (; n > 9; n--)
			ticks *= 10;
	}
	if (ticks > UINT64_MAX)
		return -ERANGE;
	*ret_ticks = (uint64_t)ticks;
	return 0;
}

static int write_pcapng(struct ow_writer *w, const struct ow_frame *frame, uint32_t caplen, struct ow_error *err)
{
	bool big = w->options.big_endian;
	uint32_t padded = (caplen + 3) / 4 * 4, length = PACKET_BYTES + padded;
	uint64_t ticks;
	uint8_t *p;
	int r;

	if (to_ticks(w, frame->time_ns, &ticks) < 0)
		return refuse_time(w, frame->time_ns, err);
	r = ow_sink_room(w->sink, length, &p, err);
	if (r < 0)
		return r;
	ow_store32(p, 6, big);
	ow_store32(p + 4, length, big);
	ow_store32(p + 8, (uint32_t)(w->number % w->options.interfaces), big);
	ow_store32(p + 12, (uint32_t)(ticks >> 32), big);
	ow_store32(p + 16, (uint32_t)ticks, big);
	ow_store32(p + 20, caplen, big);
	ow_store32(p + 24, frame->len, big);
	if (caplen)
		memcpy(p + 28, frame->data, caplen);
	memset(p + 28 + caplen, 0, padded - caplen);
	ow_store32(p + length - 4, length, big);
	ow_sink_add(w->sink, length);
	return 0;
}

int ow_writer_write(struct ow_writer *w, const struct ow_frame *frame, struct ow_error *err)
{
	uint32_t caplen = frame->caplen < w->options.snaplen ? frame->caplen : w->options.snaplen;
	int r = w->options.format == OW_FILE_PCAP ? write_pcap(w, frame, caplen, err)
	                                          : write_pcapng(w, frame, caplen, err);

	if (r == 0)
		w->number++;
	return r;
}

static void destroy(struct ow_writer *w)
{
	free(w->path);
	free(w);
}

int ow_writer_close(struct ow_writer *w, struct ow_error *err)
{
	int r;

	if (!w)
		return 0;
	r = ow_sink_close(w->sink, err);
	destroy(w);
	return r;
}

void ow_writer_abort(struct ow_writer *w)
{
	if (!w)
		return;
	ow_sink_abort(w->sink);
	destroy(w);
}
