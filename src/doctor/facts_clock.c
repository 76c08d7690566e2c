/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of this host's clock: adjtimex, chronyd, the programs that set clocks, the clock source. */
#include "base/time.h"
#include "doctor/chrony.h"
#include "doctor/host_facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define CHRONY_WAIT_NS (250 * OW_NS_PER_MS)
#define CHRONY_LOOK_NS (2 * OW_NS_PER_MS)
#define CLOCKSOURCE    "/sys/devices/system/clocksource/clocksource0/"
#define USUAL_TICK_US  10000 /* length of a tick of 10 ms */

int ow_facts_line(const char *path, char *ret_line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, ret_line, size - 1);
	int r = n < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return r;
	ret_line[n] = '\0';
	size_t length = strcspn(ret_line, "\n");
	while (length > 0 && isspace((unsigned char)ret_line[length - 1]))
		length--;
	ret_line[length] = '\0';
	return 0;
}

static void ask_kernel(struct ow_clock_facts *facts)
{
	struct timex timex = {0};
	int state = adjtimex(&timex);
	if (state < 0) {
		facts->error = errno;
		return;
	}
	ow_clock_state(&facts->kernel);
	facts->estimated_ns = timex.esterror * OW_NS_PER_US;
	/* freq is in units of 2^-16 ppm; a microsecond in 10 ms is 100 ppm. */
	facts->rate_ppm = (double)timex.freq / 65536 + (double)(timex.tick - USUAL_TICK_US) * 100;
	facts->leap = state == TIME_INS ? 1 : state == TIME_DEL ? -1 : 0;
	facts->tai_s = timex.tai;
}

static void ask_chrony(uint16_t port, struct ow_clock_facts *facts)
{
	struct ow_clocks *clocks;
	if (ow_clocks_create(port, &clocks) < 0)
		return;
	int64_t start = ow_clock_steady_ns(), now = start;
	while (!facts->chrony && now - start < CHRONY_WAIT_NS) {
		struct timespec pause = {.tv_nsec = CHRONY_LOOK_NS};
		ow_clocks_tick(clocks, now);
		nanosleep(&pause, NULL);
		now = ow_clock_steady_ns();
		facts->chrony = strcmp(ow_clocks_source(clocks, now), "chrony") == 0;
	}
	if (facts->chrony)
		ow_clocks_state(clocks, now, &facts->chrony_state);
	ow_clocks_free(clocks);
}

/* The kernel shows the first 15 characters of a program's name. */
static unsigned program_of(const char *comm)
{
	static const struct {
		const char *comm;
		unsigned program;
	} known[] = {
		{"chronyd", OW_PROGRAM_CHRONYD}, {"ntpd", OW_PROGRAM_NTPD},
		{"ntpsec", OW_PROGRAM_NTPD},     {"systemd-timesyn", OW_PROGRAM_TIMESYNCD},
		{"ptp4l", OW_PROGRAM_PTP4L},     {"phc2sys", OW_PROGRAM_PHC2SYS},
		{"ts2phc", OW_PROGRAM_TS2PHC},   {"irqbalance", OW_PROGRAM_IRQBALANCE},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(comm, known[i].comm) == 0)
			return known[i].program;
	}
	return 0;
}

static void find_programs(struct ow_clock_facts *facts)
{
	char path[300], comm[32];
	DIR *proc = opendir("/proc");
	facts->programs_hidden = !proc || ow_facts_line("/proc/1/comm", comm, sizeof comm) < 0;
	if (!proc)
		return;
	for (struct dirent *entry; (entry = readdir(proc));) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
		if (ow_facts_line(path, comm, sizeof comm) == 0)
			facts->programs |= program_of(comm);
	}
	closedir(proc);
}

void ow_facts_clock(uint16_t chrony_port, struct ow_clock_facts *ret_facts)
{
	*ret_facts = (struct ow_clock_facts){0};
	ask_kernel(ret_facts);
	ask_chrony(chrony_port, ret_facts);
	find_programs(ret_facts);
	if (ow_facts_line(CLOCKSOURCE "current_clocksource", ret_facts->source, sizeof ret_facts->source) < 0)
		ret_facts->source[0] = '\0';
	if (ow_facts_line(CLOCKSOURCE "available_clocksource", ret_facts->alternatives,
	                  sizeof ret_facts->alternatives) < 0)
		ret_facts->alternatives[0] = '\0';
}
