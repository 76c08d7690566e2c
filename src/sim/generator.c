/* SPDX-License-Identifier: Apache-2.0 */
/* The lab's UDP source and sink. */
#include "sim/generator.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"
#include "sim/models.h"
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADERS 28 /* IPv4 and UDP */
/* The largest datagram in an Ethernet frame: the lab sends only packets that fit a real wire. */
#define SIZE_MAX_BYTES 1500
/* The source sleeps at least this long: at high rates a few packets leave together, as they do from any host. */
#define NAP_NS (50 * OW_NS_PER_US)
/* A packet that is late by more than this is not sent. */
#define LAG_NS (20.0 * OW_NS_PER_MS)
/* How often the sink reads; its socket has room for far more. */
#define SINK_NAP_NS     (5 * OW_NS_PER_MS)
#define SINK_ROOM_BYTES (32 << 20)
#define SINK_BATCH      64

/* SIGTERM is blocked; each sleep checks whether it is pending. */
static void hold_stop(sigset_t *ret_stop)
{
	sigemptyset(ret_stop);
	sigaddset(ret_stop, SIGTERM);
	sigprocmask(SIG_BLOCK, ret_stop, NULL);
}

/* Returns true when it is time to stop. */
static bool sleep_for(int64_t ns, const sigset_t *stop)
{
	struct timespec time = {ns / OW_NS_PER_S, ns % OW_NS_PER_S};
	return sigtimedwait(stop, NULL, &time) > 0;
}

static void close_all(int *sockets, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		close(sockets[i]);
}

static int open_flows(const struct ow_generator_options *options, int *sockets, struct ow_error *err)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(options->port)};
	if (inet_pton(AF_INET, options->to, &to.sin_addr) != 1)
		return ow_error_set(err, EINVAL, "generator: '%s' is no IPv4 address", options->to);
	for (uint32_t i = 0; i < options->flows; i++) {
		sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (sockets[i] < 0 || connect(sockets[i], (struct sockaddr *)&to, sizeof to) < 0) {
			int code = errno;
			close_all(sockets, sockets[i] < 0 ? i : i + 1);
			return ow_error_set(err, code, "generator: %s: %s", options->to, strerror(code));
		}
	}
	return 0;
}

static void send_one(const struct ow_generator_options *options, const int *sockets, struct ow_random *random,
                     uint8_t *payload, struct ow_generator_counts *counts)
{
	uint32_t size = ow_size_sample(&options->size, random);
	if (size < OW_GENERATOR_SIZE_MIN)
		size = OW_GENERATOR_SIZE_MIN;
	if (size > SIZE_MAX_BYTES)
		size = SIZE_MAX_BYTES;
	uint64_t number = counts->packets + counts->refused;
	ow_store_be32(payload, (uint32_t)(number >> 32));
	ow_store_be32(payload + 4, (uint32_t)number);
	if (send(sockets[number % options->flows], payload, size - HEADERS, 0) < 0) {
		counts->refused++;
		return;
	}
	counts->packets++;
	counts->bytes += size;
}

static void send_all(const struct ow_generator_options *options, const int *sockets, const sigset_t *stop,
                     struct ow_generator_counts *counts)
{
	struct ow_random random;
	uint8_t payload[SIZE_MAX_BYTES];
	ow_random_seed(&random, options->seed);
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (uint8_t)ow_random_u64(&random);
	double gap_ns = 1e9 / options->rate_pps;
	int64_t start_ns = ow_clock_steady_ns(), now_ns = start_ns, sleep_ns;
	double due_ns = 0; /* after the start; a double is exact to the nanosecond for months */
	do {
		/*
		 * A source that did not run for a while skips the missed packets: otherwise it would send them as a
		 * burst.
		 */
		if ((double)(now_ns - start_ns) - due_ns > LAG_NS)
			due_ns = (double)(now_ns - start_ns);
		while ((double)(now_ns - start_ns) >= due_ns) {
			send_one(options, sockets, &random, payload, counts);
			due_ns += options->constant_rate ? gap_ns : gap_ns * ow_random_exponential(&random);
		}
		sleep_ns = start_ns + llrint(due_ns) - ow_clock_steady_ns();
		if (sleep_for(sleep_ns > NAP_NS ? sleep_ns : NAP_NS, stop))
			break;
		now_ns = ow_clock_steady_ns();
	} while (!options->length_ns || now_ns - start_ns < options->length_ns);
}

int ow_generator_source(const struct ow_generator_options *options, struct ow_generator_counts *ret_counts,
                        struct ow_error *err)
{
	int sockets[OW_GENERATOR_FLOWS] = {0};
	struct ow_generator_counts counts = {0};
	sigset_t stop;
	if (!options->flows || options->flows > OW_GENERATOR_FLOWS || !(options->rate_pps > 0))
		return ow_error_set(err, EINVAL, "generator: no rate, or not 1 .. %d flows", OW_GENERATOR_FLOWS);
	hold_stop(&stop);
	prctl(PR_SET_TIMERSLACK, 1);
	int r = open_flows(options, sockets, err);
	if (r < 0)
		return r;
	send_all(options, sockets, &stop, &counts);
	close_all(sockets, options->flows);
	*ret_counts = counts;
	return 0;
}

/* Reads the waiting packets; their bytes are not used. */
static void drain(int fd, struct ow_generator_counts *counts)
{
	struct mmsghdr message[SINK_BATCH];
	int count;
	do {
		memset(message, 0, sizeof message);
		count = recvmmsg(fd, message, SINK_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (int i = 0; i < count; i++)
			counts->bytes += message[i].msg_len + HEADERS;
		counts->packets += count > 0 ? (uint64_t)count : 0;
	} while (count == SINK_BATCH);
}

int ow_generator_sink(uint16_t port, int ready_fd, struct ow_generator_counts *ret_counts, struct ow_error *err)
{
	struct ow_generator_counts counts = {0};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int room = SINK_ROOM_BYTES, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sigset_t stop;
	hold_stop(&stop);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		int code = errno;
		if (fd >= 0)
			close(fd);
		return ow_error_set(err, code, "sink: port %u: %s", port, strerror(code));
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	if (ready_fd >= 0)
		(void)!write(ready_fd, "", 1);
	while (!sleep_for(SINK_NAP_NS, &stop))
		drain(fd, &counts);
	drain(fd, &counts);
	close(fd);
	*ret_counts = counts;
	return 0;
}
