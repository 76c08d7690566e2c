/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another clock for the program under test, in place of src/base/clock.c: that of the host, and an offset that a test
 * changes while the program runs. Readings step, and so do the kernel's stamps of packets, each by the offset of the
 * moment when it was taken. The steady clock stays as it is. The program that is installed does not contain this.
 *
 * The test makes a file and names it in ONEWAY_TEST_CLOCK. It is mapped at the start, before the sandbox closes:
 *
 *     uint64 sequence (odd while the test writes) | int64 state: error bound in ns, -1 = not synchronised
 *     | int64 at_ns: real time of the host at which the offset changes | int64 before_ns | int64 after_ns
 */
#include "base/clock.h"

#include "base/time.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct script {
	uint64_t sequence;
	int64_t error_ns, at_ns, before_ns, after_ns;
};

static volatile struct script *shared;

__attribute__((constructor)) static void map_script(void)
{
	const char *path = getenv("ONEWAY_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		abort();
	void *memory = mmap(NULL, sizeof(struct script), PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		abort();
	close(fd);
	shared = memory;
}

static struct script read_script(void)
{
	struct script s;
	do {
		s.sequence = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
		s.error_ns = __atomic_load_n(&shared->error_ns, __ATOMIC_RELAXED);
		s.at_ns = __atomic_load_n(&shared->at_ns, __ATOMIC_RELAXED);
		s.before_ns = __atomic_load_n(&shared->before_ns, __ATOMIC_RELAXED);
		s.after_ns = __atomic_load_n(&shared->after_ns, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (s.sequence % 2 || s.sequence != __atomic_load_n(&shared->sequence, __ATOMIC_RELAXED));
	return s;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec * OW_NS_PER_S + ts.tv_nsec;
}

int64_t ow_clock_stamp_ns(int64_t kernel_ns)
{
	struct script s = read_script();
	return kernel_ns + (kernel_ns < s.at_ns ? s.before_ns : s.after_ns);
}

/* Each point has a clock of its own. */
uint64_t ow_clock_identity(void)
{
	return 0;
}

int64_t ow_clock_real_ns(void)
{
	return ow_clock_stamp_ns(now_ns(CLOCK_REALTIME));
}

int64_t ow_clock_steady_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

void ow_clock_state(struct ow_clock_state *ret_state)
{
	int64_t error_ns = read_script().error_ns;
	*ret_state = (struct ow_clock_state){error_ns >= 0, error_ns >= 0 ? error_ns : OW_CLOCK_UNKNOWN};
}
