/* SPDX-License-Identifier: Apache-2.0 */
/* Answers probes, on up to two sockets (IPv4 and IPv6). */
#include "active/reflector.h"

#include "base/bytes.h"
#include "base/time.h"
#include "exchange/client_table.h"
#include "exchange/session.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SOCKETS 2
/* The most sources and sessions that are remembered. */
#define PLACES 8192
/* A session without traffic for this long may be replaced by another (RFC 5357's REFWAIT is 900 s, for sessions that
 * are not replaced). */
#define IDLE_NS (30 * OW_NS_PER_S)
/* Datagrams of one socket in a row. */
#define BATCH 256

struct ow_reflector {
	struct ow_reflector_options options;
	struct ow_stamp_key key;
	int epoll, fd[SOCKETS];
	unsigned sockets;
	struct ow_client_table *session, *source;
	double tokens; /* for all sources */
	int64_t tokens_ns;
	uint16_t error; /* the error estimate in replies */
	int tai_s;
	struct ow_reflector_counts counts;
	uint8_t request[OW_STAMP_PACKET_MAX + 1], reply[OW_STAMP_PACKET_MAX + 256];
};

/* -- opening ------------------------------------------------------------------------------------------------------ */

static int listen_at(struct ow_reflector *f, const char *address, int family, struct ow_error *err)
{
	struct ow_stamp_socket_options o = {.hardware = f->options.hardware};
	struct ow_error why;
	int fd = -1, r = ow_address_find(address, OW_STAMP_PORT, family, true, &o.local, err);
	if (r < 0)
		return r;
	r = ow_stamp_socket_open(&o, &fd, &why);
	if (r < 0)
		return ow_error_set(err, -r, "%.80s: %.300s", address, why.text);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd);
		return ow_error_set(err, errno, "%.80s: %s", address, strerror(errno));
	}
	f->fd[f->sockets++] = fd;
	return 0;
}

/* Without an address it opens both families; a host may have only one of them. */
static int open_sockets(struct ow_reflector *f, struct ow_error *err)
{
	const char *address = f->options.listen ? f->options.listen : ":" OW_STAMP_PORT;
	if (address[0] != ':')
		return listen_at(f, address, AF_UNSPEC, err);
	int r = listen_at(f, address, AF_INET, err), r6 = listen_at(f, address, AF_INET6, r < 0 ? NULL : err);
	return f->sockets ? 0 : r < 0 ? r : r6;
}

int ow_reflector_create(const struct ow_reflector_options *options, struct ow_reflector **ret_reflector,
                        struct ow_error *err)
{
	struct ow_reflector *f = calloc(1, sizeof *f);
	if (!f)
		return ow_error_set(err, ENOMEM, "out of memory");
	f->options = *options;
	f->options.key = options->key ? &f->key : NULL;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	int r = f->epoll < 0 ? ow_error_set(err, errno, "epoll: %s", strerror(errno)) : 0;
	if (r == 0 && (ow_stamp_key_copy(options->key, &f->key) < 0 ||
	               ow_client_table_create(PLACES, IDLE_NS, options->seed, &f->session) < 0 ||
	               ow_client_table_create(PLACES, IDLE_NS, ~options->seed, &f->source) < 0))
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = open_sockets(f, err);
	if (r < 0) {
		ow_reflector_free(f);
		return r;
	}
	f->tokens = options->total_pps;
	f->tokens_ns = ow_clock_steady_ns();
	f->tai_s = ow_stamp_tai_s();
	ow_reflector_clock(f, &(struct ow_clock_state){false, OW_CLOCK_UNKNOWN});
	*ret_reflector = f;
	return 0;
}

void ow_reflector_free(struct ow_reflector *reflector)
{
	if (!reflector)
		return;
	for (unsigned i = 0; i < reflector->sockets; i++)
		close(reflector->fd[i]);
	if (reflector->epoll >= 0)
		close(reflector->epoll);
	ow_client_table_free(reflector->session);
	ow_client_table_free(reflector->source);
	ow_stamp_key_done(&reflector->key);
	free(reflector);
}

int ow_reflector_fd(const struct ow_reflector *reflector)
{
	return reflector->epoll;
}

/* A reply leaves later than its T3. The largest difference measured so far is part of its error. */
void ow_reflector_clock(struct ow_reflector *reflector, const struct ow_clock_state *clock)
{
	struct ow_clock_state stated = *clock;
	if (clock->synchronised && clock->error_ns < INT64_MAX / 2)
		stated.error_ns +=
			reflector->counts.gaps ? reflector->counts.gap_sum_ns / (int64_t)reflector->counts.gaps : 0;
	reflector->error = ow_stamp_error_write(&stated, reflector->options.ptp);
	reflector->tai_s = ow_stamp_tai_s();
}

void ow_reflector_counts(const struct ow_reflector *reflector, struct ow_reflector_counts *ret_counts)
{
	*ret_counts = reflector->counts;
}

void ow_reflector_text(const struct ow_reflector *reflector, char text[OW_REFLECTOR_TEXT])
{
	size_t used = 0;
	text[0] = '\0';
	for (unsigned i = 0; i < reflector->sockets; i++) {
		struct sockaddr_storage address = {0};
		socklen_t size = sizeof address;
		char host[80], port[8];
		if (getsockname(reflector->fd[i], (struct sockaddr *)&address, &size) < 0 ||
		    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
		                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
			continue;
		bool six = address.ss_family == AF_INET6;
		int n = snprintf(text + used, OW_REFLECTOR_TEXT - used, "%s%s%s%s:%s", used ? " " : "", six ? "[" : "",
		                 host, six ? "]" : "", port);
		used = n > 0 && used + (size_t)n < OW_REFLECTOR_TEXT ? used + (size_t)n : used;
	}
}

/* -- limits ------------------------------------------------------------------------------------------------------- */

/* A token bucket that fills at `rate` a second and holds the tokens of one second. */
static bool take_token(double *tokens, int64_t *last_ns, int64_t now_ns, double rate)
{
	double more = (double)(now_ns - *last_ns) / (double)OW_NS_PER_S * rate, most = rate > 1 ? rate : 1;
	*tokens = *tokens + more < most ? *tokens + more : most;
	*last_ns = now_ns;
	if (*tokens < 1)
		return false;
	*tokens -= 1;
	return true;
}

/* Checks the limit of the source first, so that a source above its limit does not use the common tokens. */
static bool admit(struct ow_reflector *f, const struct sockaddr_storage *peer, int64_t now_ns)
{
	uint8_t key[20];
	ow_client_source(peer, key);
	struct ow_client *v = ow_client_table_find(f->source, key, now_ns, f->options.source_pps);
	if (!v) {
		f->counts.crowded++;
		return false;
	}
	if (take_token(&v->tokens, &v->last_ns, now_ns, f->options.source_pps) &&
	    take_token(&f->tokens, &f->tokens_ns, now_ns, f->options.total_pps))
		return true;
	f->counts.limited++;
	return false;
}

/* Assigns the number of the reply. */
static bool count_reply(struct ow_reflector *f, const struct sockaddr_storage *peer, const struct ow_stamp_probe *probe,
                        int64_t now_ns, uint32_t *ret_number)
{
	uint8_t key[20];
	*ret_number = probe->sequence;
	if (f->options.stateless)
		return true;
	ow_client_session(peer, probe->session, key);
	struct ow_client *v = ow_client_table_find(f->session, key, now_ns, 0);
	if (!v) {
		f->counts.crowded++;
		return false;
	}
	v->last_ns = now_ns;
	*ret_number = v->number++;
	return true;
}

/* -- answering ---------------------------------------------------------------------------------------------------- */

int ow_reflector_answer(struct ow_reflector *reflector, const struct ow_stamp_datagram *datagram,
                        const uint8_t *request, int64_t now_ns, int64_t sent_ns, uint8_t *reply)
{
	struct ow_reflector *f = reflector;
	struct ow_reflector_counts *n = &f->counts;
	struct ow_stamp_probe probe;
	size_t size = datagram->size;
	n->received++;
	n->unstamped += !datagram->stamped;
	int r = datagram->cut ? -EMSGSIZE : ow_stamp_probe_read(request, size, f->options.key, &probe);
	if (r < 0) {
		n->malformed += r == -EMSGSIZE;
		n->refused += r == -EBADMSG;
		return 0;
	}
	if (size < OW_STAMP_REPLY_MIN) {
		n->small++;
		return 0;
	}
	if (ow_stamp_is_reply(request, size, f->options.key)) {
		n->replies++;
		return 0;
	}
	struct ow_stamp_reply answer = {.error = f->error,
	                                .session = probe.session,
	                                .received =
	                                        ow_stamp_time_write(datagram->received_ns, f->options.ptp, f->tai_s),
	                                .sent = ow_stamp_time_write(sent_ns, f->options.ptp, f->tai_s),
	                                .probe = probe,
	                                .probe_ttl = datagram->ttl};
	/* Assigned last, because an unused number would look like a lost reply. */
	if (!admit(f, &datagram->peer, now_ns) || !count_reply(f, &datagram->peer, &probe, now_ns, &answer.sequence))
		return 0;
	return ow_stamp_reply_write(request, size, &answer, f->options.key, reply) == 0;
}

/* Measures how long after its T3 a reply has left. */
static void take_sent(struct ow_reflector *f, int fd)
{
	struct ow_stamp_sent sent;
	struct ow_stamp_reply reply;
	int r, left = BATCH;
	int64_t t3_ns;
	while (left-- && (r = ow_stamp_socket_sent(fd, f->reply, sizeof f->reply, &sent)) != -EAGAIN) {
		/* Other errors of the queue also end the loop: only a statistic is lost. */
		if (r < 0)
			return;
		if (r > 0 || ow_stamp_reply_read(sent.bytes, sent.size, f->options.key, &reply) < 0 ||
		    ow_stamp_time_read(reply.sent, f->options.ptp, f->tai_s, sent.sent_ns, &t3_ns) < 0)
			continue;
		int64_t gap_ns = sent.sent_ns - t3_ns;
		if (gap_ns < 0 || gap_ns > OW_NS_PER_S)
			continue; /* the clock was set in between */
		f->counts.gaps++;
		f->counts.gap_sum_ns += gap_ns;
		if (gap_ns > f->counts.gap_max_ns)
			f->counts.gap_max_ns = gap_ns;
	}
}

static void serve(struct ow_reflector *f, int fd)
{
	struct ow_stamp_datagram datagram;
	for (int left = BATCH; left > 0; left--) {
		int r = ow_stamp_socket_receive(fd, f->request, sizeof f->request, &datagram);
		if (r == -EAGAIN)
			return;
		/* An error of an earlier answer: the sender is gone. */
		if (r < 0)
			continue;
		/* T3 is read last: here, before the reply of a few hundred octets and its HMACs are computed. */
		if (ow_reflector_answer(f, &datagram, f->request, ow_clock_steady_ns(), ow_clock_real_ns(), f->reply) !=
		    1)
			continue;
		if (ow_stamp_socket_answer(fd, &datagram, f->reply, datagram.size) < 0)
			f->counts.failed++;
		else
			f->counts.answered++;
	}
}

int ow_reflector_work(struct ow_reflector *reflector, struct ow_error *err)
{
	struct epoll_event event[SOCKETS];
	int n = epoll_wait(reflector->epoll, event, SOCKETS, 0);
	if (n < 0 && errno != EINTR)
		return ow_error_set(err, errno, "epoll: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		if (event[i].events & EPOLLERR)
			take_sent(reflector, event[i].data.fd);
		serve(reflector, event[i].data.fd);
	}
	return 0;
}
