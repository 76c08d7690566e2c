/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that measuring needs: memory, threads, clocks, internet sockets, files (landlock decides which),
 * waiting. No other programs or processes, no sockets of other families (local ones for clients of PostgreSQL), no
 * executable memory.
 */
#include "sandbox/syscalls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const int allowed[] = {
	/* Open files. */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(_llseek),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(fstatfs),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(ftruncate64),
	SCMP_SYS(fallocate),
	SCMP_SYS(fadvise64),
	SCMP_SYS(fcntl),
	SCMP_SYS(fcntl64),
	SCMP_SYS(flock),
	SCMP_SYS(sendfile),
	SCMP_SYS(sendfile64),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchown),
	SCMP_SYS(dup),
	SCMP_SYS(dup3),
	/* Files by name, for SQLite and for reloading the configuration. */
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(stat),
	SCMP_SYS(stat64),
	SCMP_SYS(lstat),
	SCMP_SYS(lstat64),
	SCMP_SYS(newfstatat),
	SCMP_SYS(fstatat64),
	SCMP_SYS(statx),
	SCMP_SYS(statfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getcwd),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	/* Small files of state are replaced as a whole. */
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(utimensat),
	SCMP_SYS(getdents64),
	/* Memory; mmap and mprotect have their own rules. */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(msync),
	/* Threads and signals. */
	SCMP_SYS(futex),
	SCMP_SYS(futex_time64),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(membarrier),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(gettid),
	SCMP_SYS(getpid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getrusage),
	SCMP_SYS(getrlimit),
	SCMP_SYS(ugetrlimit),
	SCMP_SYS(getcpu),
	/* Clocks; adjtimex only reads without CAP_SYS_TIME. */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_gettime64),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_getres_time64),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(adjtimex),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(clock_adjtime64),
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(clock_nanosleep_time64),
	SCMP_SYS(getrandom),
	/* Waiting. */
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(ppoll_time64),
	SCMP_SYS(select),
	SCMP_SYS(_newselect),
	SCMP_SYS(pselect6),
	SCMP_SYS(pselect6_time64),
	SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_settime64),
	SCMP_SYS(signalfd4),
	SCMP_SYS(pipe2),
	/* Sockets; creating them has its own rule. */
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(send),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(recvmmsg_time64),
	SCMP_SYS(shutdown),
};

/*
 * TCGETS2, which newer versions of glibc use to check for a terminal. Its kernel header conflicts with glibc's headers.
 */
#define TERMINAL_STATE _IOC(_IOC_READ, 'T', 0x2a, 44)

/* Queries of a descriptor: whether it is a terminal, its width, waiting bytes. Queries of an interface: name, number,
 * type, state. */
static const unsigned long asked[] = {TCGETS,  TERMINAL_STATE, TIOCGWINSZ,   FIONREAD,      FIONBIO,
                                      FIOCLEX, SIOCGIFNAME,    SIOCGIFINDEX, SIOCGIFHWADDR, SIOCGIFFLAGS};

/*
 * glibc tries these for link-local addresses and for names of users, and works without them, so the call fails instead
 * of killing the process.
 */
static int refuse_sockets(scmp_filter_ctx filter, bool local)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK));
	if (r < 0 || !local)
		return r < 0 ? r
		             : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1,
		                                SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
	                     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
		                     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM));
	return r;
}

static int add(scmp_filter_ctx filter, int call)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
}

static int add_sockets(scmp_filter_ctx filter, bool local)
{
	static const unsigned families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
	int r = 0;
	for (unsigned i = 0; r == 0 && i < 4; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, families[i / 2]),
		                     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, types[i % 2]));
	return r < 0 ? r : refuse_sockets(filter, local);
}

static int add_memory(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect)};
	int r = 0;
	for (unsigned i = 0; r == 0 && i < sizeof calls / sizeof *calls; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return r;
}

/* Allows threads, but no processes; the name of a thread; and the end of this process by abort. */
static int add_threads(scmp_filter_ctx filter)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
	                         SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	/* A filter cannot read the structure that clone3 points to. If clone3 fails, glibc uses clone. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
		                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	/* Limits may be read, not set. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_EQ, 0),
		                     SCMP_A2(SCMP_CMP_EQ, 0));
	return r;
}

static int add_all(scmp_filter_ctx filter, bool local)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof allowed / sizeof *allowed; i++)
		r = add(filter, allowed[i]);
	for (size_t i = 0; r == 0 && i < sizeof asked / sizeof *asked; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
		                     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, asked[i]));
	if (r == 0)
		r = add_sockets(filter, local);
	if (r == 0)
		r = add_memory(filter);
	if (r == 0)
		r = add_threads(filter);
	return r;
}

int ow_syscalls_restrict(bool log, bool local)
{
	scmp_filter_ctx filter = seccomp_init(log ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	int r = add_all(filter, local);
	/* A message in the kernel's log is the only trace of a killed process. */
	if (r == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	/* The kernel has no seccomp. */
	return r == -EINVAL ? -ENOSYS : r;
}
