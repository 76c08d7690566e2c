/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of an interface that a program in the kernel records (kernel.bpf.c): the same frames as a ring has, for less of
 * the time of the processors that receive and send them. Nothing wakes the reader: it looks every OW_IFACE_BLOCK_MS.
 *
 * It reads in rounds. A round has all records that are there when it begins, of all processors, in the order of their
 * times. At the end of a round all frames before its begin were returned.
 */
#include "base/clock.h"
#include "base/steps.h"
#include "base/time.h"
#include "capture/filter.h"
#include "capture/iface/iface_ops.h"
#include "capture/iface/interface.h"
#include "capture/iface/kernel_load.h"
#include "capture/ip_id.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bits of gso_type in struct skb_shared_info. */
#define GSO_TCP4    (1u << 0)
#define GSO_TCP_ECN (1u << 2)
#define GSO_TCP6    (1u << 4)
#define GSO_UDP     (1u << 17)

#define CLOCKS_NS INT64_C(80) /* how exactly the two clocks are compared, if that is possible soon */

_Static_assert(sizeof(struct ow_kernel_record) == OW_KERNEL_RECORD, "as the program writes it");
_Static_assert(OW_KERNEL_TCP_BYTES == OW_FILTER_TCP_BYTES, "TCP is cut as in rings");

/* What is read of a processor: records from `next` to `end`. */
struct part {
	uint64_t next, end;
};

struct source {
	struct ow_iface live;
	struct ow_kernel kernel;
	struct ow_interface interface;
	struct part *part;
	int64_t low_ns, high_ns; /* real time less monotonic time is between them */
	int64_t round_ns;        /* when the round began, monotonic time */
	int64_t next_ns;         /* when the next one begins */
	uint64_t lost;           /* that were counted */
	int64_t latest_ns;       /* see ow_iface_set_back */
	struct ow_ip_ids ip_ids;
};

/* -- the clock ----------------------------------------------------------------------------------------------------- */

/*
 * The difference of the clocks is constant until real time is set (base/steps.h), so each reading makes it more exact.
 * What was recorded before the clock was set gets times of the clock as it is now.
 */
static void compare_clocks(struct source *s)
{
	struct ow_steps_reading r;
	ow_steps_read(CLOCKS_NS, &r);
	int64_t low = r.low_ns > s->low_ns ? r.low_ns : s->low_ns;
	int64_t high = r.high_ns < s->high_ns ? r.high_ns : s->high_ns;
	bool set = low > high;
	s->low_ns = set ? r.low_ns : low;
	s->high_ns = set ? r.high_ns : high;
}

static int64_t real_of(const struct source *s, int64_t monotonic_ns)
{
	return monotonic_ns + s->low_ns + (s->high_ns - s->low_ns) / 2;
}

/* -- records ------------------------------------------------------------------------------------------------------- */

static struct ow_kernel_record *record_at(const struct source *s, unsigned processor, uint64_t position)
{
	uint8_t *ring = s->kernel.memory + processor * s->kernel.stride;
	return (struct ow_kernel_record *)(ring + (position & (s->kernel.ring_bytes - 1)));
}

static bool fill_gso(struct source *s, const struct ow_kernel_record *record, struct ow_iface_frame *frame)
{
	const struct ow_frame *f = &frame->frame;
	if (record->gso_size == 0)
		return true;
	frame->gso = record->gso_type & GSO_TCP4   ? OW_GSO_TCP4
	             : record->gso_type & GSO_TCP6 ? OW_GSO_TCP6
	             : record->gso_type & GSO_UDP  ? OW_GSO_UDP
	                                           : OW_GSO_NONE;
	if (frame->gso == OW_GSO_NONE)
		return false;
	frame->gso_size = record->gso_size;
	frame->cwr_on_all = !(record->gso_type & GSO_TCP_ECN);
	if (frame->gso == OW_GSO_TCP4) {
		uint32_t ip = ow_interface_header(f->data, f->caplen);
		if (f->caplen > ip)
			frame->fixed_ip_id = ow_ip_id_fixed(&s->ip_ids, f->data + ip, f->caplen - ip, frame->heading);
	}
	return true;
}

/* Returns false for a superframe that cannot be described, which a ring does not have either. */
static bool fill(struct source *s, struct ow_kernel_record *record, struct ow_iface_frame *frame)
{
	*frame = (struct ow_iface_frame){
		.frame =
			{
				.time_ns = real_of(s, (int64_t)record->time_ns),
				.data = (const uint8_t *)record + OW_KERNEL_RECORD,
				.caplen = record->caplen,
				.len = record->len,
				.linktype = s->live.linktype,
			},
		.heading = record->out ? OW_HEADING_OUT : OW_HEADING_IN,
		.stamped_by = OW_STAMPED_BY_KERNEL,
	};
	if (!fill_gso(s, record, frame)) {
		s->live.counts.dropped++;
		return false;
	}
	/* The last bytes of the record, which are not used, make room for the tag. */
	if (record->tag_type || record->tag)
		ow_interface_put_tag(record->tag_type, htons(record->tag), &frame->frame);
	frame->frame.number = ++s->live.counts.frames;
	s->live.counts.stamped[OW_STAMPED_BY_KERNEL]++;
	return true;
}

/* The processor with the earliest record that was not returned, or NULL. ret_until_ns: the earliest of the others. */
static struct part *find_earliest(struct source *s, uint64_t *ret_until_ns)
{
	struct part *earliest = NULL;
	uint64_t earliest_ns = UINT64_MAX;
	*ret_until_ns = UINT64_MAX;
	for (unsigned i = 0; i < s->kernel.processors; i++) {
		if (s->part[i].next == s->part[i].end)
			continue;
		uint64_t time_ns = record_at(s, i, s->part[i].next)->time_ns;
		if (!earliest || time_ns < earliest_ns) {
			*ret_until_ns = earliest_ns;
			earliest = &s->part[i];
			earliest_ns = time_ns;
		} else if (time_ns < *ret_until_ns) {
			*ret_until_ns = time_ns;
		}
	}
	return earliest;
}

/* Returns frames of the round. */
static int take(struct source *s, struct ow_iface_frame *frames, size_t room)
{
	size_t n = 0;
	int64_t last_ns = s->round_ns;
	while (n < room) {
		uint64_t until_ns;
		struct part *part = find_earliest(s, &until_ns);
		if (!part)
			return (int)n;
		unsigned processor = (unsigned)(part - s->part);
		while (n < room && part->next != part->end) {
			struct ow_kernel_record *record = record_at(s, processor, part->next);
			if (record->time_ns > until_ns)
				break;
			last_ns = (int64_t)record->time_ns;
			part->next = ow_kernel_next(part->next, record->caplen);
			n += fill(s, record, &frames[n]);
		}
	}
	/* More of this round may follow. */
	ow_iface_pass(&s->live, real_of(s, last_ns) - OW_IFACE_SLACK_NS);
	return (int)n;
}

/* The frames that were returned are not used any more. */
static void give_back(struct source *s)
{
	for (unsigned i = 0; i < s->kernel.processors; i++)
		__atomic_store_n(&s->kernel.positions[i].tail, s->part[i].next, __ATOMIC_RELEASE);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static void begin_round(struct source *s)
{
	s->round_ns = ow_clock_steady_ns();
	s->next_ns = s->round_ns + OW_IFACE_BLOCK_MS * OW_NS_PER_MS;
	for (unsigned i = 0; i < s->kernel.processors; i++)
		s->part[i].end = __atomic_load_n(&s->kernel.positions[i].head, __ATOMIC_ACQUIRE);
	compare_clocks(s);
	ow_iface_set_back(&s->live, ow_clock_real_ns(), &s->latest_ns);
}

static bool is_round_over(const struct source *s)
{
	for (unsigned i = 0; i < s->kernel.processors; i++) {
		if (s->part[i].next != s->part[i].end)
			return false;
	}
	return true;
}

static int end_round(struct source *s, struct ow_error *err)
{
	int r = ow_interface_check(&s->interface, &s->live, err);
	if (r < 0)
		return r;
	ow_iface_pass(&s->live, real_of(s, s->round_ns) - OW_IFACE_SLACK_NS);
	if (s->live.away && !s->live.wait)
		return ow_error_set(err, ENODEV, "%s: the interface %s", s->live.name, s->live.why);
	return 0;
}

static int kernel_read(struct ow_iface *live, int timeout_ms, struct ow_iface_frame *frames, size_t room,
                       struct ow_error *err)
{
	struct source *s = (struct source *)live;
	int64_t until = ow_iface_deadline(timeout_ms);
	bool over = false;
	give_back(s);
	while (!over) {
		if (is_round_over(s)) {
			int r = ow_iface_wait(live, -1, until < s->next_ns ? until : s->next_ns);
			if (r < 0)
				return r;
			over = ow_clock_steady_ns() >= until;
			begin_round(s);
		}
		int n = take(s, frames, room), r = is_round_over(s) ? end_round(s, err) : 0;
		if (n > 0 || r < 0)
			return n > 0 ? n : r;
		give_back(s);
	}
	return 0;
}

static void kernel_count(struct ow_iface *live)
{
	struct source *s = (struct source *)live;
	uint64_t lost = 0;
	for (unsigned i = 0; i < s->kernel.processors; i++)
		lost += __atomic_load_n(&s->kernel.positions[i].lost, __ATOMIC_RELAXED);
	live->counts.dropped += lost - s->lost;
	s->lost = lost;
}

static int kernel_cut_tcp(struct ow_iface *live, bool cut, struct ow_error *err)
{
	struct source *s = (struct source *)live;
	(void)err;
	for (unsigned i = 0; i < s->kernel.processors; i++)
		__atomic_store_n(&s->kernel.positions[i].cut_tcp, cut, __ATOMIC_RELAXED);
	return 0;
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

static void kernel_free(struct ow_iface *live)
{
	struct source *s = (struct source *)live;
	ow_interface_close(&s->interface);
	ow_kernel_unload(&s->kernel);
	free(s->part);
	ow_iface_done(live);
	free(s);
}

static int start(struct source *s, const struct ow_iface_options *options, struct ow_error *err)
{
	struct ow_iface *live = &s->live;
	const char *excluded = ow_iface_needs_ring(options);
	if (excluded)
		return ow_error_set(err, ENOTSUP, "%s: %s", live->name, excluded);
	int r = ow_interface_open(&s->interface, live, err);
	if (r == 0 && live->linktype != OW_LINKTYPE_ETHERNET)
		r = ow_error_set(err, ENOTSUP, "%s: only Ethernet is recorded in the kernel", live->name);
	if (r < 0)
		return r;
	struct ow_error why = {""};
	r = ow_kernel_load(options->ring_bytes ? options->ring_bytes : ow_iface_usual_ring(live->name, 1), &s->kernel,
	                   &why);
	if (r < 0)
		return ow_error_set(err, -r, "%s: %s", live->name, why.text);
	s->part = calloc(s->kernel.processors, sizeof *s->part);
	if (!s->part)
		return ow_error_set(err, ENOMEM, "%s: out of memory", live->name);
	kernel_cut_tcp(live, options->cut_tcp, err);
	return ow_interface_record(&s->interface, live, s->kernel.program, err);
}

int ow_iface_open_kernel(const struct ow_iface_options *options, struct ow_iface **ret_live, struct ow_error *err)
{
	static const struct ow_iface_ops ops = {
		.name = "kernel",
		.read = kernel_read,
		.count = kernel_count,
		.cut_tcp = kernel_cut_tcp,
		.free = kernel_free,
	};
	struct source *s = calloc(1, sizeof *s);
	if (!s)
		return ow_error_set(err, ENOMEM, "%s: out of memory", options->name);
	s->interface.fd = -1;
	s->low_ns = s->latest_ns = INT64_MIN;
	s->high_ns = INT64_MAX;
	int r = ow_iface_init(&s->live, &ops, options->name, err);
	if (r == 0)
		r = start(s, options, err);
	if (r < 0) {
		kernel_free(&s->live);
		return r;
	}
	*ret_live = &s->live;
	return 0;
}
