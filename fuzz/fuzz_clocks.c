/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as answers of chronyd: datagrams, each preceded by its length (1). If the highest bit of the length is set,
 * the sequence number of the question is inserted, so that the rest is parsed. Either the kernel's clock state is used,
 * or the resulting bound is valid: it is not negative and does not shrink with age.
 */
#include "base/bytes.h"
#include "base/time.h"
#include "doctor/chrony.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE     104
#define AT_SEQUENCE 16
#define ANSWERS     8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0);
	check(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static void answer(int fd, const uint8_t *data, size_t size)
{
	uint8_t question[MESSAGE], message[128];
	struct sockaddr_in from;
	socklen_t length = sizeof from;
	check(recvfrom(fd, question, sizeof question, 0, (struct sockaddr *)&from, &length) == MESSAGE);
	for (unsigned i = 0; i < ANSWERS && size > 0; i++) {
		size_t n = data[0] & 0x7f;
		n = n < size - 1 ? n : size - 1;
		memcpy(message, data + 1, n);
		if (data[0] & 0x80 && n >= AT_SEQUENCE + 4)
			memcpy(message + AT_SEQUENCE, question + 8, 4);
		check(sendto(fd, message, n, 0, (struct sockaddr *)&from, length) == (ssize_t)n);
		data += 1 + n;
		size -= 1 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t port;
	int fd = listen_here(&port);
	struct ow_clocks *clocks;
	check(ow_clocks_create(port, &clocks) == 0);
	ow_clocks_tick(clocks, 1);
	answer(fd, data, size);
	ow_clocks_tick(clocks, 2);
	int64_t last_ns = 0;
	for (int64_t now = 2; strcmp(ow_clocks_source(clocks, now), "chrony") == 0; now += 5 * OW_NS_PER_S) {
		struct ow_clock_state state;
		ow_clocks_state(clocks, now, &state);
		check(state.synchronised ? state.error_ns >= last_ns : state.error_ns == OW_CLOCK_UNKNOWN);
		last_ns = state.synchronised ? state.error_ns : INT64_MAX;
	}
	ow_clocks_free(clocks);
	close(fd);
	return 0;
}
