/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, processor time and descriptors of this process. */
#include "point/process.h"

#include "base/clock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct ow_process {
	int statm; /* -1 = not available */
	DIR *fds;  /* NULL = not available */
	double start_seconds;
};

int ow_process_create(struct ow_process **ret_process)
{
	struct ow_process *p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	p->fds = opendir("/proc/self/fd");
	p->start_seconds = (double)ow_clock_real_ns() / 1e9;
	*ret_process = p;
	return 0;
}

void ow_process_free(struct ow_process *p)
{
	if (!p)
		return;
	if (p->statm >= 0)
		close(p->statm);
	if (p->fds)
		closedir(p->fds);
	free(p);
}

/* "virtual resident ..." in pages */
static void look_memory(const struct ow_process *p, struct ow_metrics_process *facts)
{
	char text[128], *end;
	ssize_t size = p->statm < 0 ? -1 : pread(p->statm, text, sizeof text - 1, 0);
	long page = sysconf(_SC_PAGESIZE);
	if (size <= 0)
		return;
	text[size] = 0;
	facts->virtual_bytes = strtoll(text, &end, 10) * page;
	facts->resident_bytes = strtoll(end, NULL, 10) * page;
}

static void look_fds(const struct ow_process *p, struct ow_metrics_process *facts)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		facts->max_fds = limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
	if (!p->fds)
		return;
	rewinddir(p->fds);
	facts->open_fds = 0;
	for (const struct dirent *entry; (entry = readdir(p->fds));)
		facts->open_fds += entry->d_name[0] != '.';
}

void ow_process_look(struct ow_process *p, struct ow_metrics_process *ret_facts)
{
	struct timespec cpu;
	*ret_facts = (struct ow_metrics_process){-1, p->start_seconds, -1, -1, -1, -1, -1};
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
		ret_facts->cpu_seconds = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
	/* Of all arenas, and of large blocks with their own mappings. */
	struct mallinfo2 heap = mallinfo2();
	ret_facts->allocated_bytes = (int64_t)(heap.uordblks + heap.hblkhd);
	look_memory(p, ret_facts);
	look_fds(p, ret_facts);
}
