/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a socket for each reflector, a timer for the next probe, and one epoll for all. */
#include "active/prober.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"
#include "exchange/session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Works at least this often, because intervals end without packets, too. */
#define TICK_NS (100 * OW_NS_PER_MS)
/* If readings of two clocks differ by more than this, which is more than any daemon slews, one of them was set. */
#define STEP_NS (5 * OW_NS_PER_MS)
#define SLEW    1e-3
/* Events of an epoll call, and datagrams of a socket in a row. */
#define EVENTS 64
#define BATCH  64
/* After a longer stall the missed probes are not sent in a burst. */
#define STALL_NS OW_NS_PER_S
#define HEADS_4  28
#define HEADS_6  48
#define TIMER    UINT32_MAX

struct session {
	int fd;
	struct ow_probes *probes;
	uint64_t *echo; /* T1 in the packet, by sequence number; a reply must repeat it */
	uint32_t echoes;
	uint16_t id;
	uint32_t heads; /* bytes of the IP and UDP headers */
	struct ow_random random;
	int64_t due_ns; /* steady */
	struct ow_prober_counts counts;
};

struct ow_prober {
	struct ow_prober_options options;
	struct ow_stamp_key key;
	struct session *session;
	unsigned sessions;
	int epoll, timer;
	struct ow_clock_state clock;
	int tai_s;
	int64_t end_ns;     /* no more probes after this; steady */
	int64_t close_ns;   /* no more waiting after this; INT64_MAX: not known yet */
	int64_t offset_ns;  /* real less steady */
	int64_t checked_ns; /* when offset_ns was read, steady */
	bool stopped, over;
	uint8_t buffer[OW_STAMP_PACKET_MAX + 256], packet[OW_STAMP_PACKET_MAX];
};

/* -- opening ------------------------------------------------------------------------------------------------------ */

static int check_options(const struct ow_prober_options *o, struct ow_error *err)
{
	size_t base = o->key ? OW_STAMP_BASE_KEYED : OW_STAMP_BASE;
	if (!o->targets || o->targets > OW_PROBER_TARGETS_MAX)
		return ow_error_set(err, EINVAL, "there can be 1 to %d reflectors", OW_PROBER_TARGETS_MAX);
	if (!(o->rate_pps >= OW_PROBER_RATE_MIN && o->rate_pps <= OW_PROBER_RATE_MAX))
		return ow_error_set(err, EINVAL, "probes are sparse: one an hour to %.0f a second to each reflector",
		                    OW_PROBER_RATE_MAX);
	if (o->rate_pps * o->targets > OW_PROBER_TOTAL_MAX)
		return ow_error_set(err, EINVAL, "%.0f probes a second to %u reflectors are more than %.0f in all",
		                    o->rate_pps, o->targets, OW_PROBER_TOTAL_MAX);
	if (o->length_ns < 100 * OW_NS_PER_MS || o->length_ns > OW_PROBER_LENGTH_MAX)
		return ow_error_set(err, EINVAL, "an interval has 100ms to 5min");
	if (o->wait_ns <= 0 || o->wait_ns > OW_PROBER_WAIT_MAX)
		return ow_error_set(err, EINVAL, "the waiting time is at most 1min");
	if (o->size && o->size != base && (o->size < base + OW_STAMP_TLV_HEAD || o->size > OW_STAMP_PACKET_MAX))
		return ow_error_set(err, EINVAL, "a probe has %zu octets, or %zu to %d", base, base + OW_STAMP_TLV_HEAD,
		                    OW_STAMP_PACKET_MAX);
	return 0;
}

/* Exponentially distributed: the gaps of a Poisson process. */
static int64_t gap_ns(struct session *s, double rate_pps)
{
	return (int64_t)(-log1p(-ow_random_unit(&s->random)) / rate_pps * (double)OW_NS_PER_S);
}

static int open_session(struct ow_prober *p, unsigned i, struct ow_error *err)
{
	const struct ow_prober_options *o = &p->options;
	const struct ow_prober_target *target = &o->target[i];
	struct session *s = &p->session[i];
	struct ow_stamp_socket_options so = {.dscp = o->dscp, .hardware = o->hardware};
	/* Room for five times the average number, and a constant. */
	double seconds = (double)(o->length_ns + o->wait_ns) / (double)OW_NS_PER_S;
	double room = 5 * o->rate_pps * seconds + 100;
	s->echoes = 1;
	while (s->echoes < room && s->echoes < OW_PROBES_WINDOW_MAX)
		s->echoes *= 2;
	struct ow_probes_options po = {.segment = target->segment,
	                               .class_name = target->class_name,
	                               .from = target->from,
	                               .to = target->to,
	                               .method = o->key ? "STAMP authenticated" : "STAMP",
	                               .length_ns = o->length_ns,
	                               .wait_ns = o->wait_ns,
	                               .window = s->echoes,
	                               .sink = o->sink,
	                               .arg = o->arg};
	struct ow_error why;
	int r = ow_address_find(target->address, OW_STAMP_PORT, o->family, false, &so.peer, err);
	if (r < 0)
		return r;
	r = ow_stamp_socket_open(&so, &s->fd, &why);
	if (r < 0)
		return ow_error_set(err, -r, "%.80s: %.300s", target->address, why.text);
	s->heads = so.peer.ss_family == AF_INET6 ? HEADS_6 : HEADS_4;
	r = ow_probes_create(&po, &s->probes);
	if (r == -ENAMETOOLONG)
		return ow_error_set(err, EINVAL, "%.80s: names have at most %d bytes", target->segment,
		                    OW_RESULT_NAME - 1);
	s->echo = calloc(s->echoes, sizeof *s->echo);
	if (r < 0 || !s->echo)
		return ow_error_set(err, ENOMEM, "out of memory");
	ow_random_seed(&s->random, o->seed + i);
	s->id = (uint16_t)(1 + ow_random_below(&s->random, UINT16_MAX));
	s->due_ns = ow_clock_steady_ns() + gap_ns(s, o->rate_pps);
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
	if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, s->fd, &event) < 0)
		return ow_error_set(err, errno, "epoll: %s", strerror(errno));
	return 0;
}

static int open_all(struct ow_prober *p, struct ow_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = TIMER};
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->epoll < 0 || p->timer < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->timer, &event) < 0)
		return ow_error_set(err, errno, "epoll: %s", strerror(errno));
	for (unsigned i = 0; i < p->sessions; i++) {
		int r = open_session(p, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void set_timer(struct ow_prober *p, int64_t at_ns)
{
	struct itimerspec at = {.it_value = {at_ns / OW_NS_PER_S, at_ns % OW_NS_PER_S}};
	(void)timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

int ow_prober_create(const struct ow_prober_options *options, struct ow_prober **ret_prober, struct ow_error *err)
{
	int r = check_options(options, err);
	if (r < 0)
		return r;
	struct ow_prober *p = calloc(1, sizeof *p);
	if (!p || !(p->session = calloc(options->targets, sizeof *p->session))) {
		free(p);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	p->options = *options;
	p->options.size = options->size ? options->size : options->key ? OW_STAMP_BASE_KEYED : OW_STAMP_BASE;
	p->sessions = options->targets;
	p->epoll = p->timer = -1;
	for (unsigned i = 0; i < p->sessions; i++)
		p->session[i].fd = -1;
	p->options.key = options->key ? &p->key : NULL;
	r = ow_stamp_key_copy(options->key, &p->key) < 0 ? ow_error_set(err, ENOMEM, "out of memory")
	                                                 : open_all(p, err);
	if (r < 0) {
		ow_prober_free(p);
		return r;
	}
	int64_t now_ns = ow_clock_steady_ns();
	p->clock = (struct ow_clock_state){false, OW_CLOCK_UNKNOWN};
	p->tai_s = ow_stamp_tai_s();
	p->end_ns = options->run_ns ? now_ns + options->run_ns : INT64_MAX;
	p->close_ns = options->run_ns ? p->end_ns + options->wait_ns : INT64_MAX;
	p->offset_ns = ow_clock_real_ns() - now_ns;
	p->checked_ns = now_ns;
	set_timer(p, now_ns + 1);
	*ret_prober = p;
	return 0;
}

void ow_prober_free(struct ow_prober *prober)
{
	if (!prober)
		return;
	for (unsigned i = 0; i < prober->sessions; i++) {
		struct session *s = &prober->session[i];
		if (s->fd >= 0)
			close(s->fd);
		ow_probes_free(s->probes);
		free(s->echo);
	}
	if (prober->timer >= 0)
		close(prober->timer);
	if (prober->epoll >= 0)
		close(prober->epoll);
	ow_stamp_key_done(&prober->key);
	free(prober->session);
	free(prober);
}

int ow_prober_fd(const struct ow_prober *prober)
{
	return prober->epoll;
}

void ow_prober_clock(struct ow_prober *prober, const struct ow_clock_state *clock)
{
	prober->clock = *clock;
	prober->tai_s = ow_stamp_tai_s();
}

/* -- sending ------------------------------------------------------------------------------------------------------ */

static void send_probe(struct ow_prober *p, struct session *s)
{
	const struct ow_prober_options *o = &p->options;
	if (ow_probes_room(s->probes) < 0) {
		s->counts.failed++;
		return;
	}
	struct ow_stamp_probe probe = {.sequence = ow_probes_next(s->probes),
	                               .error = ow_stamp_error_write(&p->clock, o->ptp),
	                               .session = s->id};
	int64_t sent_ns = ow_clock_real_ns();
	probe.sent = ow_stamp_time_write(sent_ns, o->ptp, p->tai_s);
	ow_stamp_probe_write(&probe, o->key, p->packet, o->size);
	int r = ow_stamp_socket_send(s->fd, p->packet, o->size);
	/* The kernel reports the error of an earlier probe once, instead of sending this one. */
	if (r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ENETUNREACH) {
		s->counts.unreachable++;
		r = ow_stamp_socket_send(s->fd, p->packet, o->size);
	}
	if (r < 0) {
		s->counts.failed++;
		return;
	}
	s->echo[probe.sequence & (s->echoes - 1)] = probe.sent;
	s->counts.sent++;
	ow_probes_sent(s->probes, sent_ns, (uint32_t)o->size + s->heads);
}

static void send_due(struct ow_prober *p, struct session *s, int64_t now_ns)
{
	while (s->due_ns <= now_ns && s->due_ns < p->end_ns) {
		/* A probe that is far too late would be the first of a burst. */
		if (now_ns - s->due_ns > STALL_NS)
			s->due_ns = now_ns;
		else
			send_probe(p, s);
		s->due_ns += gap_ns(s, p->options.rate_pps) + 1;
	}
}

/* -- receiving ---------------------------------------------------------------------------------------------------- */

static void note_gap(struct ow_prober_counts *n, int64_t gap_ns)
{
	if (gap_ns < 0 || gap_ns > OW_NS_PER_S)
		return; /* the clock was set in between */
	n->gaps++;
	n->gap_sum_ns += gap_ns;
	if (gap_ns > n->gap_max_ns)
		n->gap_max_ns = gap_ns;
}

/* Reads the kernel's sending times, which are more exact than those in the packets. */
static void take_sent(struct ow_prober *p, struct session *s)
{
	struct ow_stamp_sent sent;
	struct ow_stamp_probe probe;
	int64_t t1_ns;
	int r, left = 2 * BATCH;
	while (left-- && (r = ow_stamp_socket_sent(s->fd, p->buffer, sizeof p->buffer, &sent)) >= 0) {
		if (r > 0 || sent.size != p->options.size ||
		    ow_stamp_probe_read(sent.bytes, sent.size, p->options.key, &probe) < 0 ||
		    !ow_probes_find(s->probes, probe.sequence, &t1_ns) ||
		    probe.sent != s->echo[probe.sequence & (s->echoes - 1)])
			continue;
		note_gap(&s->counts, sent.sent_ns - t1_ns);
		s->counts.sent_by_card += sent.by_card;
		s->counts.sent_by_kernel += !sent.by_card;
		ow_probes_stamped(s->probes, probe.sequence, sent.sent_ns);
	}
}

/* Reads the reflector's times. PTP times are TAI, but some reflectors use UTC: takes the one nearer to our sending
 * time. */
static bool read_times(const struct ow_prober *p, const struct ow_stamp_reply *reply, int64_t sent_ns,
                       struct ow_probes_reply *answer)
{
	bool ptp = ow_stamp_error_ptp(reply->error);
	int64_t utc_ns;
	int tai_s = p->tai_s;
	if (ow_stamp_time_read(reply->received, ptp, tai_s, sent_ns, &answer->t2_ns) < 0)
		return false;
	if (ptp && ow_stamp_time_read(reply->received, ptp, 0, sent_ns, &utc_ns) == 0 &&
	    llabs(utc_ns - sent_ns) < llabs(answer->t2_ns - sent_ns)) {
		answer->t2_ns = utc_ns;
		tai_s = 0;
	}
	return ow_stamp_time_read(reply->sent, ptp, tai_s, sent_ns, &answer->t3_ns) == 0;
}

static void note_hops(struct ow_prober_counts *n, const struct ow_stamp_reply *reply,
                      const struct ow_stamp_datagram *datagram)
{
	n->ttl_there = reply->probe_ttl != 0;
	n->hops_there = OW_STAMP_TTL - reply->probe_ttl;
	n->ttl_back = datagram->ttl != 0;
	n->hops_back = OW_STAMP_TTL - datagram->ttl;
}

static void take_reply(struct ow_prober *p, struct session *s, const struct ow_stamp_datagram *d)
{
	struct ow_prober_counts *n = &s->counts;
	struct ow_stamp_reply reply;
	int64_t sent_ns;
	n->replies++;
	int r = d->cut ? -EMSGSIZE : ow_stamp_reply_read(p->buffer, d->size, p->options.key, &reply);
	if (r < 0) {
		n->malformed += r == -EMSGSIZE;
		n->refused += r == -EBADMSG;
		return;
	}
	/* TWAMP Light reflectors omit the session. A reply that does not repeat our T1 is for another sender. */
	if (!ow_probes_find(s->probes, reply.probe.sequence, &sent_ns) || (reply.session && reply.session != s->id) ||
	    reply.probe.sent != s->echo[reply.probe.sequence & (s->echoes - 1)]) {
		n->verdict[OW_PROBES_UNASKED]++;
		return;
	}
	struct ow_probes_reply answer = {.sequence = reply.probe.sequence,
	                                 .number = reply.sequence,
	                                 .t4_ns = d->received_ns,
	                                 .bytes = (uint32_t)d->size + s->heads};
	answer.timed = read_times(p, &reply, sent_ns, &answer);
	ow_stamp_error_read(reply.error, &answer.far);
	enum ow_probes_verdict verdict = ow_probes_reply(s->probes, &answer);
	n->verdict[verdict]++;
	n->untimed += verdict == OW_PROBES_ANSWER && !answer.timed;
	n->received_by_card += d->by_card;
	n->received_by_kernel += d->stamped && !d->by_card;
	note_hops(n, &reply, d);
}

static void receive(struct ow_prober *p, struct session *s)
{
	struct ow_stamp_datagram datagram;
	for (int left = BATCH; left > 0; left--) {
		int r = ow_stamp_socket_receive(s->fd, p->buffer, OW_STAMP_PACKET_MAX + 1, &datagram);
		if (r == -EAGAIN)
			return;
		if (r < 0)
			s->counts.unreachable++;
		else
			take_reply(p, s, &datagram);
	}
}

/* -- time --------------------------------------------------------------------------------------------------------- */

static void close_all(struct ow_prober *p, const char *why)
{
	for (unsigned i = 0; i < p->sessions; i++)
		ow_probes_close(p->session[i].probes, ow_clock_real_ns(), &p->clock, why);
}

/* Times before and after a clock step cannot be compared. */
static void watch_clock(struct ow_prober *p, int64_t now_ns)
{
	int64_t offset_ns = ow_clock_real_ns() - now_ns;
	double moved = fabs((double)(offset_ns - p->offset_ns)), slewed = SLEW * (double)(now_ns - p->checked_ns);
	if (moved > (double)STEP_NS + slewed) {
		for (unsigned i = 0; i < p->sessions; i++)
			ow_probes_close(p->session[i].probes, now_ns + p->offset_ns, &p->clock, "the clock was set");
	}
	p->offset_ns = offset_ns;
	p->checked_ns = now_ns;
}

static int take_events(struct ow_prober *p, struct ow_error *err)
{
	struct epoll_event event[EVENTS];
	uint64_t ticks;
	int n = epoll_wait(p->epoll, event, EVENTS, 0);
	if (n < 0 && errno != EINTR)
		return ow_error_set(err, errno, "epoll: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		if (event[i].data.u32 == TIMER) {
			(void)!read(p->timer, &ticks, sizeof ticks);
			continue;
		}
		struct session *s = &p->session[event[i].data.u32];
		/* Read the sending time of a probe before its reply. */
		take_sent(p, s);
		receive(p, s);
	}
	return 0;
}

void ow_prober_stop(struct ow_prober *prober)
{
	int64_t now_ns = ow_clock_steady_ns();
	prober->close_ns = prober->stopped ? now_ns : now_ns + prober->options.wait_ns;
	prober->end_ns = now_ns;
	prober->stopped = true;
	set_timer(prober, now_ns + 1);
}

/* Whether all probes were answered, so that there is nothing to wait for. */
static bool all_answered(const struct ow_prober *p)
{
	for (unsigned i = 0; i < p->sessions; i++) {
		const struct ow_prober_counts *n = &p->session[i].counts;
		if (n->verdict[OW_PROBES_ANSWER] + n->verdict[OW_PROBES_LATE] < n->sent)
			return false;
	}
	return true;
}

int ow_prober_work(struct ow_prober *prober, struct ow_error *err)
{
	struct ow_prober *p = prober;
	if (p->over)
		return 1;
	int64_t now_ns = ow_clock_steady_ns();
	watch_clock(p, now_ns);
	int r = take_events(p, err);
	if (r < 0)
		return r;
	int64_t next_ns = now_ns + TICK_NS;
	for (unsigned i = 0; i < p->sessions; i++) {
		struct session *s = &p->session[i];
		send_due(p, s, now_ns);
		ow_probes_work(s->probes, ow_clock_real_ns(), &p->clock);
		if (s->due_ns < next_ns && s->due_ns < p->end_ns)
			next_ns = s->due_ns;
	}
	if (now_ns >= p->close_ns || (now_ns >= p->end_ns && all_answered(p))) {
		close_all(p, "the run ended");
		p->over = true;
		return 1;
	}
	set_timer(p, next_ns > now_ns ? next_ns : now_ns + 1);
	return 0;
}

void ow_prober_total(const struct ow_prober *prober, unsigned target, enum ow_probes_lane lane,
                     struct ow_interval_result *ret_total)
{
	ow_probes_total(prober->session[target].probes, lane, ret_total);
}

void ow_prober_counts(const struct ow_prober *prober, unsigned target, struct ow_prober_counts *ret_counts)
{
	*ret_counts = prober->session[target].counts;
}
