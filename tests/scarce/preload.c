/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded into a program: runs it again and again, each time with another failing allocation, and judges how it
 * ends. Before main() the process forks a child for each run, so that loading is done once. SCARCE=FIRST:LAST:STEP
 * selects the allocations that fail; with SCARCE_ON=1 all later ones fail as well. In the first run none fails, and its
 * standard output is what the others must print if they end with 0; if numbers differ from run to run, SCARCE_FOLDER
 * gets what each of those printed (NUMBER.out; 0.out is the first), for other programs to judge. A run that ends
 * otherwise must give the reason in one line (SCARCE_LOG=1: in its log). FIRST = LAST is this one run, in this process;
 * with SCARCE_COUNT it reports at its end how many allocations there were. No run may crash or hang.
 * tests/system/test_scarce.py has the commands.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pcap/pcap.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_SECONDS 30
#define SHOWN        20 /* of the runs that failed */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong *calls; /* shared with the parent: allocations of the child, and how many of them failed */
static unsigned long fails_at;
static bool fails_on, has_log, counts;
static const char *folder;
static __thread unsigned spared; /* this thread is in a library whose allocations do not fail */

/* A place for a breakpoint. */
static __attribute__((noinline)) bool scarce_fail_here(void)
{
	atomic_fetch_add(&calls[1], 1);
	errno = ENOMEM;
	return true;
}

static bool fails(void)
{
	if (!calls || spared)
		return false;
	unsigned long n = atomic_fetch_add(&calls[0], 1) + 1;
	return fails_at && (n == fails_at || (fails_on && n > fails_at)) && scarce_fail_here();
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
	return fails() ? NULL : __libc_realloc(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes) || fails())
		return NULL;
	return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *block = fails() ? NULL : __libc_memalign(alignment, size);
	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

/*
 * Libraries that do not survive such failures, whoever calls them: the optimiser of libpcap 1.10 and the name services
 * of glibc 2.36 use memory that they did not get, and libseccomp 2.5 loads an incomplete filter. Their own allocations
 * always succeed.
 */
int seccomp_load(const scmp_filter_ctx context)
{
	int (*real)(const scmp_filter_ctx) = dlsym(RTLD_NEXT, "seccomp_load");
	spared++;
	int r = real(context);
	spared--;
	return r;
}

int pcap_compile(pcap_t *pcap, struct bpf_program *program, const char *filter, int optimise, bpf_u_int32 mask)
{
	int (*real)(pcap_t *, struct bpf_program *, const char *, int, bpf_u_int32) = dlsym(RTLD_NEXT, "pcap_compile");
	spared++;
	int r = real(pcap, program, filter, optimise, mask);
	spared--;
	return r;
}

struct servent *getservbyname(const char *name, const char *protocol)
{
	struct servent *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "getservbyname");
	spared++;
	struct servent *entry = real(name, protocol);
	spared--;
	return entry;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		dlsym(RTLD_NEXT, "getaddrinfo");
	spared++;
	int r = real(host, port, hints, ret);
	spared--;
	return r;
}

/* -- runs --------------------------------------------------------------------------------------------------------- */

struct run {
	int status, out, err;
};

static struct {
	unsigned long refused, went_on, failed;
} sum;

/* Everything in a file, which ends with 0. Read by the parent, whose own allocations always succeed. */
static char *text_of(int fd)
{
	struct stat st;
	fstat(fd, &st);
	char *text = calloc(1, (size_t)st.st_size + 1);
	return text && pread(fd, text, (size_t)st.st_size, 0) == st.st_size ? text : NULL;
}

/* True in the child. */
static bool run(unsigned long n, struct run *r)
{
	r->out = memfd_create("out", MFD_CLOEXEC);
	r->err = memfd_create("err", MFD_CLOEXEC);
	atomic_store(&calls[0], 0);
	atomic_store(&calls[1], 0);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		dup2(r->out, STDOUT_FILENO);
		dup2(r->err, STDERR_FILENO);
		atomic_store(&calls[0], 0);
		fails_at = n;
		alarm(HANG_SECONDS);
		return true;
	}
	waitpid(child, &r->status, 0);
	return false;
}

/* Keeps what a run has printed. */
static bool keep(unsigned long n, const char *printed)
{
	char path[300];
	if (!folder)
		return false;
	snprintf(path, sizeof path, "%s/%lu.out", folder, n);
	FILE *file = fopen(path, "w");
	return file && fputs(printed, file) >= 0 && fclose(file) == 0;
}

/* NULL, or what is wrong with this end. */
static const char *wrong(unsigned long n, const struct run *r, const char *expected)
{
	static char text[80];
	const char *said = text_of(r->err), *printed = text_of(r->out);
	if (WIFSIGNALED(r->status)) {
		snprintf(text, sizeof text, WTERMSIG(r->status) == SIGALRM ? "hangs" : "dies of signal %d",
		         WTERMSIG(r->status));
		return text;
	}
	if (WEXITSTATUS(r->status) == 0)
		return strcmp(printed, expected) == 0 || keep(n, printed) ? NULL
		                                                          : "ends with 0 and prints something else";
	const char *end = strchr(said, '\n');
	return !end || end == said  ? "fails and does not say why"
	       : end[1] && !has_log ? "says more than one line"
	                            : NULL;
}

static void judge(unsigned long n, const struct run *r, const char *expected)
{
	const char *what = wrong(n, r, expected);
	if (what) {
		if (sum.failed++ < SHOWN)
			fprintf(stderr, "allocation %lu: %s\n%s", n, what, text_of(r->err));
	} else if (WEXITSTATUS(r->status) == 0) {
		sum.went_on++;
	} else {
		sum.refused++;
	}
	close(r->out);
	close(r->err);
}

static __attribute__((constructor)) void play(void)
{
	unsigned long first = 0, last = 0, step = 1, total = 0, played = 0;
	const char *which = getenv("SCARCE");
	if (!which || sscanf(which, "%lu:%lu:%lu", &first, &last, &step) != 3 || step == 0)
		return;
	fails_on = getenv("SCARCE_ON") != NULL;
	folder = getenv("SCARCE_FOLDER");
	has_log = getenv("SCARCE_LOG") != NULL;
	unsetenv("SCARCE");
	unsetenv("LD_PRELOAD");
	atomic_ulong *shared = mmap(NULL, sizeof *calls * 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		_exit(99);
	struct run reference, r;
	calls = shared;
	if (first == last) { /* for a debugger, or for others to judge: no other run */
		fails_at = first;
		counts = getenv("SCARCE_COUNT") != NULL;
		return;
	}
	if (run(0, &reference))
		return;
	total = atomic_load(&calls[0]);
	const char *expected = text_of(reference.out);
	if (reference.status != 0) {
		fprintf(stderr, "fails with all the memory it wants: %s", text_of(reference.err));
		_exit(99);
	}
	(void)keep(0, expected);
	for (unsigned long n = first; n <= last && n <= total; n += step, played++) {
		if (run(n, &r))
			return;
		judge(n, &r, expected);
	}
	printf("%lu allocations, %lu of them failed: %lu refused, %lu went on, %lu WRONG\n", total, played, sum.refused,
	       sum.went_on, sum.failed);
	fflush(stdout);
	_exit(sum.failed > 0);
}

static __attribute__((destructor)) void tell(void)
{
	if (counts)
		dprintf(STDERR_FILENO, "%lu allocations, %lu of them failed\n", atomic_load(&calls[0]),
		        atomic_load(&calls[1]));
}
