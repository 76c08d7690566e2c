/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks chronyd for what `chronyc tracking` shows. The part of its protocol (version 6, since chrony 1.27) that is used
 * here, all big-endian:
 *
 *   question  104 bytes (as long as the answer): version 6, type 1, 0, 0, command 33 (2), attempt (2),
 *             sequence (4), 0...
 *   answer    version 6, type 2, 0, 0, command 33 (2), reply 5 (2), status 0 (2), 0 (6), sequence (4), 0 (8);
 *             from 28: reference id (4), address (20), stratum (2), leap (2), reference time (12), then floats of
 *             4 bytes: offset, last offset, rms offset, frequency, residual frequency, skew (ppm), root delay,
 *             root dispersion, interval
 *   float     exponent (7 bits, signed), coefficient (25 bits, signed): coefficient * 2^(exponent - 25)
 */
#include "doctor/chrony.h"

#include "base/bytes.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_NS   (10 * OW_NS_PER_S)
#define STALE_NS (3 * ASK_NS) /* an older answer is not used */

#define ANSWERS_MAX 8 /* answers read in one call; there is one, unless somebody sends false ones */
#define MESSAGE     104
#define VERSION     6
#define TRACKING    33
#define REPLY       5
#define LOCAL       0x7f7f0101u /* "local" in chrony.conf: its own clock, which is no reference */
#define STRATUM_MAX 15
#define LEAP_UNSYNC 3
#define DRIFT_PPM   1.0 /* chrony's maxclockerror: how much a clock's rate may change between two updates */
#define ERROR_MAX_S 1e6 /* with a larger error the clock counts as not known */

enum { AT_SEQUENCE = 16, AT_REFERENCE = 28, AT_STRATUM = 52, AT_LEAP = 54, AT_FLOATS = 68 };
enum { OFFSET = 0, RESIDUAL = 4, SKEW = 5, DELAY = 6, DISPERSION = 7 };

struct ow_clocks {
	int fd; /* -1 = none */
	uint32_t sequence;
	bool asked, told;
	int64_t asked_ns, told_ns;
	bool synchronised;
	double error_ns, growth_ppm; /* error at the time of the answer, and its growth from then on */
};

int ow_clocks_create(uint16_t chrony_port, struct ow_clocks **ret_clocks)
{
	struct ow_clocks *clocks = calloc(1, sizeof *clocks);
	if (!clocks)
		return -ENOMEM;
	struct sockaddr_in chronyd = {
		.sin_family = AF_INET, .sin_port = htons(chrony_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	clocks->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (clocks->fd >= 0 && connect(clocks->fd, (struct sockaddr *)&chronyd, sizeof chronyd) < 0) {
		close(clocks->fd);
		clocks->fd = -1;
	}
	*ret_clocks = clocks;
	return 0;
}

void ow_clocks_free(struct ow_clocks *clocks)
{
	if (clocks && clocks->fd >= 0)
		close(clocks->fd);
	free(clocks);
}

static double number(const uint8_t *answer, unsigned which)
{
	uint32_t bits = ow_load_be32(answer + AT_FLOATS + 4 * which);
	int32_t exponent = (int32_t)bits >> 25, coefficient = (int32_t)(bits << 7) >> 7;
	return ldexp(coefficient, exponent - 25);
}

static bool is_answer(const struct ow_clocks *clocks, const uint8_t *m, size_t size)
{
	return size >= MESSAGE && m[0] == VERSION && m[1] == 2 && ow_load_be16(m + 4) == TRACKING &&
	       ow_load_be16(m + 6) == REPLY && ow_load_be16(m + 8) == 0 &&
	       ow_load_be32(m + AT_SEQUENCE) == clocks->sequence;
}

static void take(struct ow_clocks *clocks, const uint8_t *answer, int64_t now_ns)
{
	unsigned stratum = ow_load_be16(answer + AT_STRATUM), leap = ow_load_be16(answer + AT_LEAP);
	double error_s =
		fabs(number(answer, OFFSET)) + fabs(number(answer, DISPERSION)) + fabs(number(answer, DELAY)) / 2;
	clocks->told = true;
	clocks->told_ns = now_ns;
	clocks->error_ns = error_s * 1e9;
	clocks->growth_ppm = fabs(number(answer, RESIDUAL)) + fabs(number(answer, SKEW)) + DRIFT_PPM;
	clocks->synchronised = leap != LEAP_UNSYNC && stratum > 0 && stratum <= STRATUM_MAX && error_s < ERROR_MAX_S &&
	                       ow_load_be32(answer + AT_REFERENCE) != LOCAL;
}

static void ask(struct ow_clocks *clocks, int64_t now_ns)
{
	uint8_t question[MESSAGE] = {VERSION, 1};
	clocks->sequence++;
	clocks->asked = true;
	clocks->asked_ns = now_ns;
	ow_store_be16(question + 4, TRACKING);
	ow_store_be32(question + 8, clocks->sequence);
	/* chronyd does not run: use the kernel's values now, and ask chronyd again next time. */
	(void)send(clocks->fd, question, sizeof question, MSG_NOSIGNAL);
}

void ow_clocks_tick(struct ow_clocks *clocks, int64_t now_ns)
{
	if (clocks->fd < 0)
		return;
	/* An ICMP refusal shows that no program listens. The socket reports it before later answers. */
	for (unsigned i = 0; i < ANSWERS_MAX; i++) {
		uint8_t message[MESSAGE];
		ssize_t n = recv(clocks->fd, message, sizeof message, 0);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n > 0 && is_answer(clocks, message, (size_t)n))
			take(clocks, message, now_ns);
	}
	if (!clocks->asked || now_ns - clocks->asked_ns >= ASK_NS)
		ask(clocks, now_ns);
}

static bool told(const struct ow_clocks *clocks, int64_t now_ns)
{
	return clocks->told && now_ns - clocks->told_ns < STALE_NS;
}

void ow_clocks_state(const struct ow_clocks *clocks, int64_t now_ns, struct ow_clock_state *ret_state)
{
	if (!told(clocks, now_ns)) {
		ow_clock_state(ret_state);
		return;
	}
	double age_ns = (double)(now_ns - clocks->told_ns);
	double error_ns = ceil(clocks->error_ns + age_ns * clocks->growth_ppm * 1e-6);
	*ret_state = (struct ow_clock_state){.error_ns = OW_CLOCK_UNKNOWN};
	/* The answer may contain any rate, also one that overflows an int64_t after some seconds. */
	if (clocks->synchronised && error_ns < ERROR_MAX_S * 1e9)
		*ret_state = (struct ow_clock_state){true, (int64_t)error_ns};
}

const char *ow_clocks_source(const struct ow_clocks *clocks, int64_t now_ns)
{
	return told(clocks, now_ns) ? "chrony" : "kernel";
}
