/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/file/mapping.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAPPINGS    64                 /* per process; further files are read with read(2) */
#define PASS_BYTES  ((size_t)4 << 20)  /* released at once: large enough to cost no time, small enough to hold */
#define STEP_BYTES  ((size_t)64 << 10) /* the kernel maps this much at once around a page fault */
#define AHEAD_STEPS 8                  /* prefetching works only for pages that are present */

struct ow_mapping {
	unsigned slot;
	uint8_t *start;    /* of the first page */
	size_t size, head; /* bytes of all pages; offset of the first byte in the first page */
	size_t released, touched;
};

/*
 * For the signal handler, which knows only an address. A slot is valid while `size` is not 0; `start` is set before
 * `size`. This is the library's only process-wide state.
 */
static struct {
	atomic_bool taken, broken;
	atomic_uintptr_t start;
	atomic_size_t size;
} slots[MAPPINGS];
static struct sigaction before;
static atomic_bool allowed;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	int saved = errno;
	uintptr_t address = (uintptr_t)info->si_addr, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (unsigned i = 0; i < MAPPINGS; i++) {
		uintptr_t start = atomic_load(&slots[i].start);
		if (address - start >= atomic_load(&slots[i].size))
			continue;
		atomic_store(&slots[i].broken, true);
		void *zeros =
			mmap((void *)(address & ~(page - 1)), page, PROT_READ, // NOLINT(performance-no-int-to-ptr)
		             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		errno = saved;
		if (zeros != MAP_FAILED)
			return;
	}
	/* The address is not ours: restore the former handler. It runs when the instruction is repeated, or by raise()
	 * if a process sent the signal. */
	sigaction(number, &before, NULL);
	if (info->si_code <= 0)
		raise(number);
	errno = saved;
}

void ow_mapping_allow(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, was;
	if (sigaction(SIGBUS, &action, &was) < 0)
		return;
	if (was.sa_sigaction != on_bus_error)
		before = was;
	atomic_store(&allowed, true);
}

static unsigned take_slot(void)
{
	unsigned i = 0;
	while (i < MAPPINGS && atomic_exchange(&slots[i].taken, true))
		i++;
	return i;
}

struct ow_mapping *ow_mapping_open(int fd, uint64_t offset, uint64_t size)
{
	size_t head = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
	if (!atomic_load(&allowed) || size == 0 || size > SIZE_MAX / 2)
		return NULL;
	struct ow_mapping *m = calloc(1, sizeof *m);
	unsigned slot = m ? take_slot() : MAPPINGS;
	if (slot == MAPPINGS) {
		free(m);
		return NULL;
	}
	*m = (struct ow_mapping){.slot = slot, .size = head + (size_t)size, .head = head};
	m->start = mmap(NULL, m->size, PROT_READ, MAP_SHARED, fd, (off_t)(offset - head));
	if (m->start == MAP_FAILED) {
		atomic_store(&slots[slot].taken, false);
		free(m);
		return NULL;
	}
	madvise(m->start, m->size, MADV_SEQUENTIAL); /* only advice: the result does not matter */
	atomic_store(&slots[slot].broken, false);
	atomic_store(&slots[slot].start, (uintptr_t)m->start);
	atomic_store(&slots[slot].size, m->size);
	return m;
}

void ow_mapping_close(struct ow_mapping *m)
{
	if (!m)
		return;
	atomic_store(&slots[m->slot].size, 0);
	munmap(m->start, m->size);
	atomic_store(&slots[m->slot].taken, false);
	free(m);
}

const uint8_t *ow_mapping_bytes(const struct ow_mapping *m)
{
	return m->start + m->head;
}

bool ow_mapping_broken(const struct ow_mapping *m)
{
	return atomic_load_explicit(&slots[m->slot].broken, memory_order_relaxed);
}

void ow_mapping_pass(struct ow_mapping *m, const uint8_t *place)
{
	size_t to = (size_t)(place - m->start);
	for (; m->touched < m->size && m->touched < to + AHEAD_STEPS * STEP_BYTES; m->touched += STEP_BYTES)
		(void)*(volatile const uint8_t *)(m->start + m->touched);
	if (to - m->released < PASS_BYTES)
		return;
	to -= to % PASS_BYTES;
	madvise(m->start + m->released, to - m->released, MADV_DONTNEED);
	m->released = to;
}

void ow_mapping_rewind(struct ow_mapping *m)
{
	m->released = m->touched = 0;
}
