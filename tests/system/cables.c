/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cables between pairs of interfaces of this namespace, each direction with a delay and a loss that can be changed.
 *
 *     cables A1,B1 A2,B2 ...
 *
 * Commands come in, a line each, until the end of the input: "INTERFACE DELAY_US LOSS" is for what comes in by that
 * interface from now on; "ready" is answered at the start, "ok" to each command. Delays vary by a tenth, in order, and
 * begin when the kernel got the frame. "late" is answered by how many us late the latest frame went on since the last
 * time: by so much the machine held the cables up.
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <arpa/inet.h>
#include <unistd.h>

#define ENDS_MAX  64
#define FRAME_MAX 9216
#define UNDER_WAY 4096

struct frame {
	int64_t due_ns;
	size_t size;
	unsigned char bytes[FRAME_MAX];
};

struct end {
	char name[IF_NAMESIZE];
	int fd;
	struct end *other;
	int64_t delay_ns;
	double loss;
	struct frame *frame; /* a ring */
	unsigned first, count;
};

static struct end ends[ENDS_MAX];
static int count;
static int64_t late_ns;

static void open_end(struct end *end, const char *name)
{
	snprintf(end->name, sizeof(end->name), "%s", name);
	end->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
	struct packet_mreq all = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	int one = 1;
	setsockopt(end->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	setsockopt(end->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	setsockopt(end->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
	if (bind(end->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror(name);
		exit(1);
	}
	end->frame = calloc(UNDER_WAY, sizeof(*end->frame));
	if (!end->frame)
		exit(1);
}

/* How long ago the kernel got the frame. */
static int64_t age_ns(struct msghdr *message)
{
	struct timespec at;
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
		return 0;
	memcpy(&at, CMSG_DATA(c), sizeof(at));
	int64_t age = ow_clock_real_ns() - (at.tv_sec * OW_NS_PER_S + at.tv_nsec);
	return age < 0 || age > OW_NS_PER_S ? 0 : age;
}

static void take_in(struct end *end, struct ow_random *random)
{
	for (;;) {
		unsigned last = (end->first + end->count) % UNDER_WAY;
		struct frame *frame = &end->frame[last];
		struct iovec bytes = {frame->bytes, sizeof(frame->bytes)};
		_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
		struct msghdr message = {
			.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
		ssize_t size = recvmsg(end->fd, &message, MSG_TRUNC);
		if (size <= 0)
			return;
		if (size > FRAME_MAX || end->count == UNDER_WAY - 1 || ow_random_unit(random) < end->loss)
			continue;
		double vary = 0.95 + 0.1 * ow_random_unit(random);
		frame->size = (size_t)size;
		frame->due_ns = ow_clock_steady_ns() - age_ns(&message) + (int64_t)((double)end->delay_ns * vary);
		int64_t before = end->count ? end->frame[(last + UNDER_WAY - 1) % UNDER_WAY].due_ns : 0;
		frame->due_ns = frame->due_ns > before ? frame->due_ns : before;
		end->count++;
	}
}

static void send_due(struct end *end, int64_t now_ns)
{
	while (end->count && end->frame[end->first].due_ns <= now_ns) {
		const struct frame *frame = &end->frame[end->first];
		if (send(end->other->fd, frame->bytes, frame->size, 0) < 0 && errno != ENETDOWN && errno != ENOBUFS)
			perror("send");
		late_ns = now_ns - frame->due_ns > late_ns ? now_ns - frame->due_ns : late_ns;
		end->first = (end->first + 1) % UNDER_WAY;
		end->count--;
	}
}

/* false at the end of the input. */
static bool command(void)
{
	char line[128], name[IF_NAMESIZE];
	double delay_us, loss;
	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (strcmp(line, "late\n") == 0) {
		printf("%lld\n", (long long)(late_ns / OW_NS_PER_US));
		fflush(stdout);
		late_ns = 0;
		return true;
	}
	if (sscanf(line, "%15s %lf %lf", name, &delay_us, &loss) != 3)
		exit(1);
	for (int i = 0; i < count; i++) {
		if (strcmp(ends[i].name, name) == 0) {
			ends[i].delay_ns = (int64_t)(delay_us * (double)OW_NS_PER_US);
			ends[i].loss = loss;
			puts("ok");
			fflush(stdout);
			return true;
		}
	}
	exit(1);
}

static void arm(int timer, int64_t due_ns)
{
	struct itimerspec at = {.it_value = {due_ns / OW_NS_PER_S, due_ns % OW_NS_PER_S}};
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

int main(int argc, char **argv)
{
	struct ow_random random;
	ow_random_seed(&random, 1);
	prctl(PR_SET_PDEATHSIG, 9);
	prctl(PR_SET_TIMERSLACK, 1);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (int i = 1; i < argc && count + 1 < ENDS_MAX; i++) {
		char *comma = strchr(argv[i], ',');
		if (!comma)
			return 1;
		*comma = 0;
		open_end(&ends[count], argv[i]);
		open_end(&ends[count + 1], comma + 1);
		ends[count].other = &ends[count + 1];
		ends[count + 1].other = &ends[count];
		count += 2;
	}
	puts("ready");
	fflush(stdout);
	struct pollfd ready[ENDS_MAX + 2];
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	for (int i = 0; i < count; i++)
		ready[i] = (struct pollfd){.fd = ends[i].fd, .events = POLLIN};
	ready[count] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	ready[count + 1] = (struct pollfd){.fd = timer, .events = POLLIN};
	for (;;) {
		int64_t now_ns = ow_clock_steady_ns(), next_ns = INT64_MAX;
		for (int i = 0; i < count; i++) {
			send_due(&ends[i], now_ns);
			if (ends[i].count && ends[i].frame[ends[i].first].due_ns < next_ns)
				next_ns = ends[i].frame[ends[i].first].due_ns;
		}
		arm(timer, next_ns == INT64_MAX ? 0 : next_ns);
		poll(ready, (nfds_t)count + 2, -1);
		for (int i = 0; i < count; i++)
			if (ready[i].revents)
				take_in(&ends[i], &random);
		uint64_t ticks;
		if (ready[count + 1].revents && read(timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
			return 1;
		if (ready[count].revents && !command())
			return 0;
	}
}
