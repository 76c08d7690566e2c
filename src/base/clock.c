/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of this host, and the kernel's bound on the error of CLOCK_REALTIME. */
#include "base/clock.h"

#include "base/hash.h"
#include "base/time.h"
#include <stdio.h>
#include <sys/timex.h>
#include <time.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts); /* cannot fail for these clocks */
	return ts.tv_sec * OW_NS_PER_S + ts.tv_nsec;
}

int64_t ow_clock_real_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

int64_t ow_clock_steady_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* Containers share it with their host; virtual machines have their own kernel and clock. */
uint64_t ow_clock_identity(void)
{
	char text[64];
	uint64_t identity = 0;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t size = file ? fread(text, 1, sizeof text, file) : 0;
	for (size_t i = 0; i < size; i++)
		identity = ow_mix64(identity ^ (unsigned char)text[i]) + 1;
	if (file)
		fclose(file);
	return identity;
}

int64_t ow_clock_stamp_ns(int64_t kernel_ns)
{
	return kernel_ns;
}

/* NTP and PTP daemons set maxerror, in microseconds; the kernel lets it grow by 500 ppm until they set it again.
 * phc2sys sets it to 0; because of the unit, that can only mean less than 1 us. */
void ow_clock_state(struct ow_clock_state *ret_state)
{
	struct timex timex = {0};
	int state = adjtimex(&timex);
	bool synchronised = state >= 0 && state != TIME_ERROR && !(timex.status & STA_UNSYNC) && timex.maxerror >= 0;
	*ret_state = (struct ow_clock_state){
		.synchronised = synchronised,
		.error_ns = !synchronised    ? OW_CLOCK_UNKNOWN
	                    : timex.maxerror ? timex.maxerror * OW_NS_PER_US
	                                     : OW_NS_PER_US,
	};
}
