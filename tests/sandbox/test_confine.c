/* SPDX-License-Identifier: Apache-2.0 */
/* Children drop their privileges and then try things: what measuring needs works, everything else fails or is fatal. */
#include "sandbox/confine.h"

#include "sandbox/privileges.h"
#include "store/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#ifdef OW_SANITIZED
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define KILLED (-SIGSYS)

struct folders {
	char read[64], write[64], other[64];
};

static void make(char path[64])
{
	snprintf(path, 64, "/tmp/oneway-confine-XXXXXX");
	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0777), 0);
}

static int setup(void **state)
{
	struct folders *f = calloc(1, sizeof *f);
	assert_non_null(f);
	make(f->read);
	make(f->write);
	make(f->other);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct folders *f = *state;
	char command[300];
	snprintf(command, sizeof command, "rm -rf %s %s %s", f->read, f->write, f->other);
	int r = system(command);
	free(f);
	return r;
}

typedef int (*deed)(const struct folders *f);

static int confine(const struct folders *f, enum ow_sandbox sandbox)
{
	struct ow_confine_options options = {.sandbox = sandbox, .read = {f->read}, .write = {f->write}};
	char text[OW_CONFINE_TEXT];
	bool whole;
	struct ow_error err;
	int r = ow_privileges_drop(&err);
	return r < 0 ? r : ow_confine(&options, text, &whole, &err);
}

/* What a child that is confined (if confined) says of a deed: 0 to 255, or less the signal that ended it. */
static int child(const struct folders *f, deed tries, bool confined)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (confined && confine(f, OW_SANDBOX_ON) < 0)
			_exit(254);
		_exit(tries(f));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, flags | O_CLOEXEC, 0666);
	return fd < 0 ? errno : 0;
}

/* Deeds: 0 when done, an errno when not. */

static int executes(const struct folders *f)
{
	(void)f;
	execl("/bin/true", "true", (char *)NULL);
	return errno;
}
static int forks(const struct folders *f)
{
	(void)f;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : 0;
}
static int traces(const struct folders *f)
{
	(void)f;
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0;
}
static int opens_packet_socket(const struct folders *f)
{
	(void)f;
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
}
static int opens_raw_socket(const struct folders *f)
{
	(void)f;
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 ? errno : 0;
}
static int opens_local_socket(const struct folders *f)
{
	(void)f;
	return socket(AF_UNIX, SOCK_DGRAM, 0) < 0 ? errno : 0;
}
static int maps_code(const struct folders *f)
{
	(void)f;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? errno : 0;
}
static int kills_others(const struct folders *f)
{
	(void)f;
	return kill(getppid(), 0) < 0 ? errno : 0;
}
static int mounts(const struct folders *f)
{
	return syscall(SYS_mount, "none", f->write, "tmpfs", 0, NULL) < 0 ? errno : 0;
}
static int reads_passwords(const struct folders *f)
{
	(void)f;
	return open_in("/etc", "passwd", O_RDONLY);
}
static int reads_elsewhere(const struct folders *f)
{
	return open_in(f->other, "x", O_RDONLY);
}
static int writes_elsewhere(const struct folders *f)
{
	return open_in(f->other, "y", O_WRONLY | O_CREAT);
}
static int writes_what_is_read(const struct folders *f)
{
	return open_in(f->read, "x", O_WRONLY);
}

static void *nothing(void *arg)
{
	return arg;
}

/* All that a point does. */
static int measures(const struct folders *f)
{
	char path[128];
	struct ow_store *store;
	struct ow_error err;
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof here;
	pthread_t thread;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int bad = open_in(f->read, "x", O_RDONLY) != 0;
	bad |= (open_in(f->write, "new", O_RDWR | O_CREAT | O_TRUNC) != 0) << 1;
	bad |= (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0) << 2;
	int a = socket(AF_INET, SOCK_STREAM, 0), b = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bad |= (bind(a, (struct sockaddr *)&here, size) < 0 || listen(a, 1) < 0 ||
	        getsockname(a, (struct sockaddr *)&here, &size) < 0 || connect(b, (struct sockaddr *)&here, size) < 0)
	       << 3;
	bad |= (socket(AF_INET6, SOCK_DGRAM, 0) < 0 && errno != EAFNOSUPPORT) << 4;
	snprintf(path, sizeof path, "%s/results.db", f->write);
	bad |= (ow_store_open(path, &store, &err) < 0) << 5;
	if (!(bad & 1 << 5))
		ow_store_close(store);
	bad |= (!getservbyname("domain", "udp") && open_in("/etc", "services", O_RDONLY) == 0) << 6;
	if (getaddrinfo("localhost", "8620", &hints, &list) == 0)
		freeaddrinfo(list);
	return bad;
}

static void test_denied(void **state)
{
	static const struct {
		const char *name;
		deed deed;
		int unconfined, confined;
	} cases[] = {
		{"executes", executes, 0, KILLED},
		{"forks", forks, 0, KILLED},
		{"traces", traces, 0, KILLED},
		{"opens a packet socket", opens_packet_socket, 0, KILLED},
		{"opens a raw socket", opens_raw_socket, 0, KILLED},
		{"opens a local socket", opens_local_socket, 0, EACCES},
		{"maps code", maps_code, 0, KILLED},
		{"kills others", kills_others, 0, KILLED},
		{"mounts", mounts, -1, KILLED}, /* without confinement it might work: not tried */
		{"reads passwords", reads_passwords, 0, EACCES},
		{"reads elsewhere", reads_elsewhere, 0, EACCES},
		{"writes elsewhere", writes_elsewhere, 0, EACCES},
		{"writes what is read", writes_what_is_read, 0, EACCES},
		{"measures", measures, 0, 0},
	};
	const struct folders *f = *state;
	assert_int_equal(open_in(f->read, "x", O_WRONLY | O_CREAT), 0);
	assert_int_equal(open_in(f->other, "x", O_WRONLY | O_CREAT), 0);
	if (SANITIZED) {
		print_message("not confined: the sanitizer needs what is forbidden\n");
		skip();
	}
	bool landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1u) > 0;
	bool root = geteuid() == 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		print_message("%s\n", cases[i].name);
		if (cases[i].unconfined == 0 && (root || cases[i].confined != KILLED))
			assert_int_equal(child(f, cases[i].deed, false), 0);
		if (landlock || cases[i].confined != EACCES || cases[i].deed == opens_local_socket)
			assert_int_equal(child(f, cases[i].deed, true), cases[i].confined);
	}
	if (!landlock)
		print_message("no landlock in this kernel: files were not tried\n");
}

/* A client of PostgreSQL has local sockets and the files that it names, and nothing else of their folders. */
static int queries(const struct folders *f)
{
	char path[128], text[OW_CONFINE_TEXT];
	struct ow_confine_options options = {.file = {path}, .database = true};
	struct ow_error err;
	bool whole;
	snprintf(path, sizeof path, "%s/x", f->other);
	if (ow_privileges_drop(&err) < 0 || ow_confine(&options, text, &whole, &err) < 0)
		return 254;
	bool landlock = strstr(text, "no landlock") == NULL;
	int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un nobody = {.sun_family = AF_UNIX};
	snprintf(nobody.sun_path, sizeof nobody.sun_path, "%s/nobody", f->other);
	int bad = local < 0 || connect(local, (struct sockaddr *)&nobody, sizeof nobody) == 0 || errno != ENOENT;
	bad |= (opens_local_socket(f) != EACCES) << 1;
	bad |= (open_in(f->other, "x", O_RDONLY) != 0) << 2;
	bad |= (landlock && open_in(f->other, "y", O_RDONLY) != EACCES) << 3;
	bad |= (landlock && open_in(f->other, "x", O_WRONLY) != EACCES) << 4;
	bad |= (open_in("/etc", "passwd", O_RDONLY) == 0 && !getpwuid(geteuid())) << 5;
	return bad;
}

static void test_database(void **state)
{
	const struct folders *f = *state;
	assert_int_equal(open_in(f->other, "x", O_WRONLY | O_CREAT), 0);
	assert_int_equal(open_in(f->other, "y", O_WRONLY | O_CREAT), 0);
	if (SANITIZED)
		skip();
	assert_int_equal(child(f, queries, false), 0);
}

/* A line of /proc/self/status, as the number that it is. */
static uint64_t status_of(const char *key, int base)
{
	char line[256];
	uint64_t value = UINT64_MAX;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoull(line + strlen(key), NULL, base);
	}
	if (file)
		fclose(file);
	return value;
}

static int keeps_one_capability(const struct folders *f)
{
	struct ow_error err;
	uint64_t before = status_of("CapPrm:", 16), raw = before & UINT64_C(1) << CAP_NET_RAW;
	(void)f;
	int bad = ow_privileges_reduce(NULL, 0, &err) < 0;
	bad |= (status_of("CapPrm:", 16) != raw || status_of("CapEff:", 16) != raw) << 1;
	bad |= (status_of("CapInh:", 16) != 0 || status_of("CapAmb:", 16) != 0) << 2;
	bad |= (status_of("NoNewPrivs:", 10) != 1) << 3;
	bad |= (geteuid() == 0 && before & 1u << CAP_SETPCAP && status_of("CapBnd:", 16) != 0) << 4;
	bad |= (raw && opens_packet_socket(f) != 0) << 5;
	bad |= (ow_privileges_drop(&err) < 0 || status_of("CapPrm:", 16) != 0 || status_of("CapEff:", 16) != 0) << 6;
	bad |= (opens_packet_socket(f) == 0) << 7;
	return bad;
}

static int becomes_nobody(const struct folders *f)
{
	struct ow_error err;
	int bad = ow_privileges_reduce("nobody", OW_PRIVILEGES_STAMPS, &err) < 0;
	bad |= (getuid() == 0 || geteuid() == 0 || getegid() == 0 || getgroups(0, NULL) != 0) << 1;
	bad |= (opens_packet_socket(f) != 0) << 2;
	bad |= (status_of("CapPrm:", 16) != (1u << CAP_NET_RAW | 1u << CAP_NET_ADMIN)) << 3;
	bad |= (setuid(0) == 0 || seteuid(0) == 0) << 4;
	/* It is that already. */
	bad |= (ow_privileges_reduce("nobody", 0, &err) < 0) << 5;
	bad |= (ow_privileges_reduce("root", 0, &err) != -EPERM) << 6;
	bad |= (opens_packet_socket(f) != 0 || ow_privileges_drop(&err) < 0 || opens_packet_socket(f) == 0) << 7;
	return bad;
}

static void test_privileges(void **state)
{
	struct ow_error err;
	assert_int_equal(child(*state, keeps_one_capability, false), 0);
	assert_false(ow_user_exists("nobody-of-this-name"));
	if (geteuid() != 0 || !ow_user_exists("nobody") || opens_packet_socket(*state) != 0) {
		print_message("not root with CAP_NET_RAW, or no user 'nobody': nobody becomes anybody\n");
		return;
	}
	assert_int_equal(child(*state, becomes_nobody, false), 0);
	assert_int_equal(ow_privileges_reduce("nobody-of-this-name", 0, &err), -ENOENT);
}

static void test_folder(void **state)
{
	char folder[OW_CONFINE_FOLDER];
	(void)state;
	ow_confine_folder("a.db", folder);
	assert_string_equal(folder, ".");
	ow_confine_folder("/a.db", folder);
	assert_string_equal(folder, "/");
	ow_confine_folder("/var/lib/a.db", folder);
	assert_string_equal(folder, "/var/lib");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database, setup, teardown),
		cmocka_unit_test_setup_teardown(test_privileges, setup, teardown),
		cmocka_unit_test(test_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
