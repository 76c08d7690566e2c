/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, links between them, and children inside. */
#include "lab/labnet.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAC_A "02:00:00:00:00:0a"
#define MAC_B "02:00:00:00:00:0b"
/* Enough for the commands below. */
#define BATCH_BYTES     2048
#define COMPLAINT_BYTES 256
#define EXEC_FAILED     127
/* The shortest frame of an Ethernet, of a type that IEEE 802 leaves to everyone for experiments. */
#define MARK_BYTES 60
#define MARK_TYPE  0x88b5

static int open_ns(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* Makes the namespaces by entering each; always returns to the first. */
static int make_namespaces(struct ow_labnet *net, struct ow_error *err)
{
	int home = open_ns(), r = 0;
	if (home < 0)
		return ow_error_set(err, errno, "no network namespaces here: /proc/self/ns/net: %s", strerror(errno));
	for (int i = 0; r == 0 && i < OW_LABNET_NODES; i++) {
		if (unshare(CLONE_NEWNET) < 0 || (net->ns[i] = open_ns()) < 0)
			r = ow_error_set(err, errno, "cannot make a network namespace: %s%s", strerror(errno),
			                 errno == EPERM ? " (the lab must run as root)" : "");
	}
	if (setns(home, CLONE_NEWNET) < 0 && r == 0)
		r = ow_error_set(err, errno, "cannot leave a network namespace: %s", strerror(errno));
	close(home);
	return r;
}

static bool kept(const struct ow_labnet_files *files, int fd)
{
	for (unsigned i = 0; i < files->keeps; i++) {
		if (files->keep[i] == fd)
			return true;
	}
	return false;
}

/* Closes all files that the child does not need: a pipe whose other end another child holds open would never end. */
static void arrange_files(const struct ow_labnet_files *files)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int standard[3] = {files->in, files->out, files->err};
	for (int i = 0; i < 3; i++)
		dup2(standard[i] >= 0 ? standard[i] : null, i);
	int limit = (int)sysconf(_SC_OPEN_MAX);
	int highest = 2;
	for (unsigned i = 0; i < files->keeps; i++) {
		if (files->keep[i] > highest)
			highest = files->keep[i];
		fcntl(files->keep[i], F_SETFD, 0);
	}
	for (int fd = 3; fd <= highest && fd < limit; fd++) {
		if (!kept(files, fd))
			close(fd);
	}
	close_range((unsigned)highest + 1, ~0u, 0);
}

/* In the child. */
static void settle_in(const struct ow_labnet *net, enum ow_labnet_node node, const struct ow_labnet_files *files,
                      pid_t parent)
{
	sigset_t none;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || setns(net->ns[node], CLONE_NEWNET) < 0)
		_exit(EXEC_FAILED);
	setpgid(0, 0);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	arrange_files(files);
}

pid_t ow_labnet_fork(const struct ow_labnet *net, enum ow_labnet_node node, const struct ow_labnet_files *files,
                     int (*main)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		settle_in(net, node, files, parent);
		_exit(main(arg));
	}
	return pid;
}

static int run_program(void *arg)
{
	char *const *argv = arg;
	execvp(argv[0], argv);
	return EXEC_FAILED;
}

pid_t ow_labnet_spawn(const struct ow_labnet *net, enum ow_labnet_node node, const struct ow_labnet_files *files,
                      char *const argv[])
{
	return ow_labnet_fork(net, node, files, run_program, (void *)(uintptr_t)argv);
}

/* A file in memory with this text, to be read from its start. */
static int text_file(const char *text)
{
	int fd = memfd_create("lab", MFD_CLOEXEC);
	size_t length = strlen(text);
	if (fd >= 0 && (write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void first_line(int fd, char text[COMPLAINT_BYTES])
{
	ssize_t length = fd < 0 ? 0 : pread(fd, text, COMPLAINT_BYTES - 1, 0);
	text[length > 0 ? length : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

/* Runs the commands of ip(8) in a namespace. keep: namespaces that the commands name by /proc/self/fd. */
static int run_ip(const struct ow_labnet *net, enum ow_labnet_node node, const char *commands, struct ow_error *err)
{
	char *argv[] = {"ip", "-batch", "-", NULL};
	char complaint[COMPLAINT_BYTES];
	int input = text_file(commands), said = text_file(""), status = 0;
	struct ow_labnet_files files = {input, -1, said, net->ns, OW_LABNET_NODES};
	pid_t pid = input < 0 || said < 0 ? -errno : ow_labnet_spawn(net, node, &files, argv);
	if (pid > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	first_line(said, complaint);
	if (input >= 0)
		close(input);
	if (said >= 0)
		close(said);
	if (pid < 0)
		return ow_error_set(err, (int)-pid, "cannot start ip: %s", strerror((int)-pid));
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED)
		return ow_error_set(err, ENOENT, "cannot start ip (Debian package iproute2)");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return ow_error_set(err, EPERM, "cannot set up the lab's network: ip: %s",
		                    *complaint ? complaint : "no reason given");
	return 0;
}

static int set_up_relay(const struct ow_labnet *net, struct ow_error *err)
{
	char commands[BATCH_BYTES];
	int a = net->ns[OW_LABNET_A], b = net->ns[OW_LABNET_B];
	snprintf(commands, sizeof commands,
	         "link add " OW_LABNET_TO_A " type veth peer name " OW_LABNET_WIRE " address " MAC_A
	         " netns /proc/self/fd/%d\n"
	         "link add " OW_LABNET_TO_B " type veth peer name " OW_LABNET_WIRE " address " MAC_B
	         " netns /proc/self/fd/%d\n"
	         "link set " OW_LABNET_TO_A " up\n"
	         "link set " OW_LABNET_TO_B " up\n",
	         a, b);
	return run_ip(net, OW_LABNET_RELAY, commands, err);
}

static int set_up_host(const struct ow_labnet *net, enum ow_labnet_node node, struct ow_error *err)
{
	bool a = node == OW_LABNET_A;
	char commands[BATCH_BYTES], link[BATCH_BYTES / 8] = "";
	if (a)
		snprintf(link, sizeof link, "link add mgmt0 type veth peer name mgmt0 netns /proc/self/fd/%d\n",
		         net->ns[OW_LABNET_B]);
	snprintf(commands, sizeof commands,
	         "%s"
	         "link set lo up\n"
	         "address add %s/24 dev mgmt0\n"
	         "link set mgmt0 up\n"
	         "address add %s/24 dev " OW_LABNET_WIRE "\n"
	         "link set " OW_LABNET_WIRE " arp off up\n"
	         "neighbour add %s lladdr %s nud permanent dev " OW_LABNET_WIRE "\n",
	         link, a ? OW_LABNET_POINT_A : OW_LABNET_POINT_B, a ? OW_LABNET_ADDRESS_A : OW_LABNET_ADDRESS_B,
	         a ? OW_LABNET_ADDRESS_B : OW_LABNET_ADDRESS_A, a ? MAC_B : MAC_A);
	int r = run_ip(net, node, commands, err);
	if (r < 0 || a)
		return r;
	return run_ip(net, node,
	              "neighbour add " OW_LABNET_ADDRESS_NAT " lladdr " MAC_A " nud permanent dev " OW_LABNET_WIRE "\n"
	              "route add " OW_LABNET_ADDRESS_NAT "/32 dev " OW_LABNET_WIRE "\n",
	              err);
}

/* Otherwise router solicitations and the like would be measured. Without IPv6 there is nothing to do. */
static int without_ipv6(void *arg)
{
	(void)arg;
	static const char *const files[] = {"/proc/sys/net/ipv6/conf/default/disable_ipv6",
	                                    "/proc/sys/net/ipv6/conf/all/disable_ipv6"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		int fd = open(files[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!write(fd, "1", 1);
			close(fd);
		}
	}
	return 0;
}

static int disable_ipv6(const struct ow_labnet *net)
{
	struct ow_labnet_files files = {-1, -1, -1, NULL, 0};
	for (int i = 0; i < OW_LABNET_NODES; i++) {
		pid_t pid = ow_labnet_fork(net, (enum ow_labnet_node)i, &files, without_ipv6, NULL);
		if (pid < 0)
			return (int)pid;
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return 0;
}

int ow_labnet_create(struct ow_labnet *net, struct ow_error *err)
{
	for (int i = 0; i < OW_LABNET_NODES; i++)
		net->ns[i] = -1;
	int r = make_namespaces(net, err);
	if (r >= 0) {
		r = disable_ipv6(net);
		if (r < 0)
			ow_error_set(err, -r, "cannot start a process: %s", strerror(-r));
	}
	if (r >= 0)
		r = set_up_relay(net, err);
	if (r >= 0)
		r = set_up_host(net, OW_LABNET_A, err);
	if (r >= 0)
		r = set_up_host(net, OW_LABNET_B, err);
	if (r < 0)
		ow_labnet_done(net);
	return r;
}

int ow_labnet_silence(const struct ow_labnet *net, struct ow_error *err)
{
	int r = run_ip(net, OW_LABNET_A, "route replace blackhole " OW_LABNET_ADDRESS_B "/32\n", err);
	if (r < 0)
		return r;
	return run_ip(net, OW_LABNET_B,
	              "route replace blackhole " OW_LABNET_ADDRESS_A "/32\n"
	              "route replace blackhole " OW_LABNET_ADDRESS_NAT "/32\n",
	              err);
}

void ow_labnet_done(struct ow_labnet *net)
{
	for (int i = 0; i < OW_LABNET_NODES; i++) {
		if (net->ns[i] >= 0)
			close(net->ns[i]);
		net->ns[i] = -1;
	}
}

static int drops_here(const char *interface, uint64_t *ret_drops)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) < 0)
		return -errno;
	int r = -ENODEV;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET || strcmp(i->ifa_name, interface) != 0 ||
		    !i->ifa_data)
			continue;
		struct rtnl_link_stats stats;
		memcpy(&stats, i->ifa_data, sizeof stats);
		*ret_drops = (uint64_t)stats.rx_dropped + stats.tx_dropped;
		r = 0;
	}
	freeifaddrs(list);
	return r;
}

static int mark_here(const char *interface)
{
	uint8_t frame[MARK_BYTES] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = MARK_TYPE >> 8, [13] = MARK_TYPE & 0xff};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), r = 0;
	if (fd < 0)
		return -errno;
	if (sendto(fd, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Enters the namespace, calls one of the functions above, and returns. */
static int visit(const struct ow_labnet *net, enum ow_labnet_node node, int *ret_home)
{
	*ret_home = open_ns();
	return *ret_home < 0 || setns(net->ns[node], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int leave(int home, int r)
{
	if (home >= 0 && setns(home, CLONE_NEWNET) < 0 && r == 0)
		r = -errno;
	if (home >= 0)
		close(home);
	return r;
}

int ow_labnet_mark(const struct ow_labnet *net, enum ow_labnet_node node, const char *interface)
{
	int home, r = visit(net, node, &home);
	return leave(home, r < 0 ? r : mark_here(interface));
}

int ow_labnet_drops(const struct ow_labnet *net, enum ow_labnet_node node, const char *interface, uint64_t *ret_drops)
{
	int home, r = visit(net, node, &home);
	return leave(home, r < 0 ? r : drops_here(interface, ret_drops));
}
