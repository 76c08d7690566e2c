/* SPDX-License-Identifier: Apache-2.0 */
/* A sender and reflectors on loopback, in one process: both modes, both families, both kinds, and reflectors that lie.
 */
#include "active/prober.h"
#include "active/reflector.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/time.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define SEED     862
#define RATE_PPS 200
#define RUN_NS   (600 * OW_NS_PER_MS)

static const uint8_t secret[16] = {7}, another[16] = {8};
static const struct ow_stamp_key key = {secret, sizeof secret}, wrong = {another, sizeof another};

struct seen {
	unsigned results;
	uint64_t sent[3], lost[3], matched[3];
};

static void keep(void *arg, const struct ow_interval_result *r)
{
	struct seen *seen = arg;
	unsigned lane = seen->results++ % 3;
	assert_true(r->sent == r->matched + r->late + r->lost + r->pending);
	assert_true(r->received == r->matched + r->late_received + r->extra && r->active);
	seen->sent[lane] += r->sent;
	seen->lost[lane] += r->lost;
	seen->matched[lane] += r->matched;
}

static struct ow_reflector *reflector_at(const char *listen, const struct ow_stamp_key *with, bool stateless, bool ptp,
                                         char address[80])
{
	struct ow_reflector_options o = {
		.listen = listen, .key = with, .stateless = stateless, .ptp = ptp, .total_pps = 1e6, .source_pps = 1e6};
	struct ow_reflector *f = NULL;
	struct ow_error err;
	char text[OW_REFLECTOR_TEXT];
	if (ow_reflector_create(&o, &f, &err) < 0) {
		print_message("%s\n", err.text);
		return NULL;
	}
	ow_reflector_text(f, text);
	snprintf(address, 80, "%.79s", text);
	return f;
}

static struct ow_prober *prober_to(struct ow_prober_options o, const char *const *address, unsigned count,
                                   struct seen *seen)
{
	static struct ow_prober_target target[8];
	static char name[8][16];
	struct ow_prober *p;
	struct ow_error err;
	for (unsigned i = 0; i < count; i++) {
		snprintf(name[i], sizeof name[i], "s%u", i);
		target[i] = (struct ow_prober_target){address[i], name[i], "all", "a", "b"};
	}
	o.target = target;
	o.targets = count;
	o.rate_pps = RATE_PPS;
	o.length_ns = 200 * OW_NS_PER_MS;
	o.wait_ns = 300 * OW_NS_PER_MS;
	o.run_ns = RUN_NS;
	o.seed = SEED;
	o.sink = keep;
	o.arg = seen;
	if (ow_prober_create(&o, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void run(struct ow_prober *p, struct ow_reflector *const *f, unsigned count)
{
	struct pollfd fds[9] = {{.fd = ow_prober_fd(p), .events = POLLIN}};
	struct ow_error err;
	const struct ow_clock_state clock = {true, 1000};
	int r;
	for (unsigned i = 0; i < count; i++) {
		fds[i + 1] = (struct pollfd){.fd = ow_reflector_fd(f[i]), .events = POLLIN};
		ow_reflector_clock(f[i], &clock);
	}
	ow_prober_clock(p, &clock);
	while ((r = ow_prober_work(p, &err)) == 0) {
		assert_true(poll(fds, 1 + count, 1000) >= 0);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(ow_reflector_work(f[i], &err), 0);
	}
	assert_int_equal(r, 1);
}

static void check_session(const struct ow_prober *p, unsigned i, const struct ow_reflector *f, bool stateless)
{
	struct ow_prober_counts n;
	struct ow_reflector_counts m;
	struct ow_interval_result total;
	ow_prober_counts(p, i, &n);
	ow_reflector_counts(f, &m);
	/* 5 standard deviations of a Poisson process; on a loaded machine it sends less. */
	assert_true(n.sent > 5 && n.sent < 120 + 5 * 11);
	assert_true(n.verdict[OW_PROBES_ANSWER] == n.sent && n.replies == n.sent && m.answered == n.sent);
	assert_true(n.hops_there == 0 && n.hops_back == 0 && n.ttl_there && n.ttl_back);
	/* The kernel stamps all that loopback carries. */
	assert_true(n.received_by_kernel == n.sent && n.sent_by_kernel == n.sent && m.gaps > 0);
	for (int lane = 0; lane < OW_PROBES_LANES; lane++) {
		ow_prober_total(p, i, lane, &total);
		assert_true(total.sent == n.sent && total.samples == n.sent && total.status == OW_RESULT_MEASURED);
		assert_true(total.mean_ns.value > 0 && total.mean_ns.value < 1e9);
		assert_true(total.clock_to.synchronised);
		assert_non_null(strstr(total.synopsis, stateless ? "stateless" : "stateful"));
	}
}

/* IPv4 and IPv6, NTP and PTP, stateful and stateless, at the same time. */
static void test_all_kinds(void **state)
{
	(void)state;
	for (int keyed = 0; keyed < 2; keyed++) {
		const struct ow_stamp_key *with = keyed ? &key : NULL;
		char address[4][80];
		struct ow_reflector *f[4];
		const char *at[4];
		struct seen seen = {0};
		unsigned count = 0;
		for (unsigned i = 0; i < 4; i++) {
			f[count] = reflector_at(i & 1 ? "[::1]:0" : "127.0.0.1:0", with, i & 2, i & 1, address[count]);
			if (!f[count]) {
				assert_int_equal(i & 1, 1);
				continue; /* a host without IPv6 */
			}
			at[count] = address[count];
			count++;
		}
		struct ow_prober *p = prober_to(
			(struct ow_prober_options){.key = with, .dscp = 46, .size = keyed ? 200 : 0}, at, count, &seen);
		run(p, f, count);
		for (unsigned i = 0; i < count; i++)
			check_session(p, i, f[i], count == 4 ? i & 2 : i & 1);
		assert_true(seen.sent[0] == seen.matched[0] && seen.sent[2] == seen.matched[2]);
		ow_prober_free(p);
		for (unsigned i = 0; i < count; i++)
			ow_reflector_free(f[i]);
	}
}

/* Another key, or none: not answered, and answers not believed. */
static void test_wrong_key(void **state)
{
	(void)state;
	const struct ow_stamp_key *const keys[][2] = {{&key, &wrong}, {&key, NULL}, {NULL, &key}};
	for (unsigned i = 0; i < 3; i++) {
		char address[80];
		const char *at = address;
		struct seen seen = {0};
		struct ow_reflector *f = reflector_at("127.0.0.1:0", keys[i][0], false, false, address);
		assert_non_null(f);
		struct ow_prober *p = prober_to((struct ow_prober_options){.key = keys[i][1]}, &at, 1, &seen);
		run(p, &f, 1);
		struct ow_prober_counts n;
		struct ow_reflector_counts m;
		ow_prober_counts(p, 0, &n);
		ow_reflector_counts(f, &m);
		assert_true(n.sent > 5 && n.verdict[OW_PROBES_ANSWER] == 0);
		assert_true(m.received == n.sent);
		/* 44 octets are too short to carry a key; a reflector without answers, which the sender refuses. */
		if (i == 0)
			assert_true(m.refused == n.sent && n.replies == 0);
		else if (i == 1)
			assert_true(m.malformed == n.sent && n.replies == 0);
		else
			assert_true(m.answered == n.sent && n.refused == n.sent);
		assert_true(seen.lost[2] == n.sent && seen.matched[2] == 0);
		ow_prober_free(p);
		ow_reflector_free(f);
	}
}

/* A reflector of ill will: every reply is changed somewhere, repeated, cut, sent for other probes. */
static void test_liar(void **state)
{
	(void)state;
	struct ow_random random;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof any;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char address[40];
	const char *at = address;
	struct seen seen = {0};
	struct ow_error err;
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&any, size) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &size), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(any.sin_port));
	struct ow_prober *p = prober_to((struct ow_prober_options){0}, &at, 1, &seen);
	struct pollfd fds[] = {{.fd = ow_prober_fd(p), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	ow_random_seed(&random, SEED);
	while (ow_prober_work(p, &err) == 0) {
		uint8_t request[OW_STAMP_BASE], reply[OW_STAMP_BASE];
		struct sockaddr_in peer;
		socklen_t length = sizeof peer;
		assert_true(poll(fds, 2, 1000) >= 0);
		while (recvfrom(fd, request, sizeof request, 0, (struct sockaddr *)&peer, &length) == sizeof request) {
			for (int i = 0; i < 8; i++) {
				struct ow_stamp_probe probe;
				assert_int_equal(ow_stamp_probe_read(request, sizeof request, NULL, &probe), 0);
				struct ow_stamp_reply r = {.sequence = (uint32_t)ow_random_u64(&random),
				                           .sent = ow_random_u64(&random),
				                           .received = ow_random_u64(&random),
				                           .error = (uint16_t)ow_random_u64(&random),
				                           .session = probe.session,
				                           .probe = probe};
				r.probe.sent += ow_random_below(&random, 2);
				r.probe.sequence -= (uint32_t)ow_random_below(&random, 3);
				assert_int_equal(ow_stamp_reply_write(request, sizeof request, &r, NULL, reply), 0);
				(void)!sendto(fd, reply, ow_random_below(&random, 5) ? sizeof reply : 20, 0,
				              (struct sockaddr *)&peer, length);
			}
			length = sizeof peer;
		}
	}
	struct ow_prober_counts n;
	ow_prober_counts(p, 0, &n);
	uint64_t sum = n.malformed + n.refused;
	for (int i = 0; i < OW_PROBES_VERDICTS; i++)
		sum += n.verdict[i];
	assert_true(n.replies == sum && n.malformed > 0 && n.verdict[OW_PROBES_UNASKED] > 0);
	ow_prober_free(p);
	close(fd);
}

/* Nobody there: ICMP says so, and all are lost. */
static void test_nobody(void **state)
{
	(void)state;
	char address[80];
	const char *at = address;
	struct seen seen = {0};
	struct ow_reflector *f = reflector_at("127.0.0.1:0", NULL, false, false, address);
	assert_non_null(f);
	ow_reflector_free(f);
	struct ow_prober *p = prober_to((struct ow_prober_options){0}, &at, 1, &seen);
	run(p, NULL, 0);
	struct ow_prober_counts n;
	ow_prober_counts(p, 0, &n);
	assert_true(n.sent > 5 && n.unreachable > 0 && seen.lost[2] == n.sent);
	ow_prober_free(p);
}

static void test_options(void **state)
{
	(void)state;
	const struct ow_prober_target target = {"127.0.0.1:9", "x", "all", "a", "b"};
	const struct ow_prober_options good = {.target = &target,
	                                       .targets = 1,
	                                       .rate_pps = 1,
	                                       .length_ns = OW_NS_PER_S,
	                                       .wait_ns = OW_NS_PER_S},
				       cases[] = {
					       {.targets = 0},
					       {.rate_pps = 0},
					       {.rate_pps = 1001},
					       {.length_ns = 1},
					       {.wait_ns = 100 * OW_NS_PER_S},
					       {.size = 45},
					       {.size = 10000},
				       };
	struct ow_error err;
	struct ow_prober *p = NULL;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_prober_options o = good;
		o.targets = i == 0 ? 0 : 1;
		o.rate_pps = i == 1 || i == 2 ? cases[i].rate_pps : 1;
		o.length_ns = i == 3 ? cases[i].length_ns : OW_NS_PER_S;
		o.wait_ns = i == 4 ? cases[i].wait_ns : OW_NS_PER_S;
		o.size = cases[i].size;
		assert_int_equal(ow_prober_create(&o, &p, &err), -EINVAL);
	}
	assert_int_equal(ow_prober_create(&good, &p, &err), 0);
	ow_prober_free(p);
	ow_prober_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_wrong_key), cmocka_unit_test(test_liar),
		cmocka_unit_test(test_nobody),    cmocka_unit_test(test_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
