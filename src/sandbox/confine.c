/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up landlock by its system calls (glibc has no functions for them), and reports which parts of the sandbox are in
 * force. The seccomp filter is in syscalls.c. */
#include "sandbox/confine.h"

#include "sandbox/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <netdb.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel headers of the build host may not have these yet. */
#define FS_REFER            (UINT64_C(1) << 13) /* since version 2 */
#define FS_TRUNCATE         (UINT64_C(1) << 14) /* 3 */
#define FS_IOCTL_DEV        (UINT64_C(1) << 15) /* 5 */
#define FS_FIRST            ((UINT64_C(1) << 13) - 1)
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0) /* 6 */
#define SCOPE_SIGNAL        (UINT64_C(1) << 1)

#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING                                                                                                   \
	(READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 FS_TRUNCATE)

struct ruleset {
	uint64_t fs, net, scoped;
};

/*
 * Public files that glibc reads: filters may contain "port http" or "host paris", and peers may have host names. SQLite
 * reads random numbers from the device.
 */
static const char *const public_files[] = {
	"/dev/urandom",       "/etc/services",    "/etc/protocols", "/etc/ethers",   "/etc/networks",
	"/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/hosts",     "/etc/gai.conf", "/etc/host.conf",
};

static int version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return v < 0 ? -errno : (int)v;
}

static int allow(int rules, const char *path, uint64_t access, struct ow_error *err)
{
	struct landlock_path_beneath_attr below = {.allowed_access = access,
	                                           .parent_fd = open(path, O_PATH | O_CLOEXEC)};
	/* A file that does not exist needs no permission. */
	if (below.parent_fd < 0 && (errno == ENOENT || errno == EACCES))
		return 0;
	if (below.parent_fd < 0)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	int r = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
	if (r < 0)
		r = ow_error_set(err, errno, "landlock: %s: %s", path, strerror(errno));
	close(below.parent_fd);
	return r;
}

static int restrict_files(const struct ow_confine_options *options, int abi, struct ow_error *err)
{
	struct ruleset attributes = {.fs = FS_FIRST};
	size_t size = abi < 4 ? 8 : abi < 6 ? 16 : sizeof attributes;
	if (abi >= 2)
		attributes.fs |= FS_REFER;
	if (abi >= 3)
		attributes.fs |= FS_TRUNCATE;
	if (abi >= 5)
		attributes.fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		attributes.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (rules < 0)
		return ow_error_set(err, errno, "landlock: %s", strerror(errno));
	int r = 0;
	for (unsigned i = 0; r == 0 && i < sizeof public_files / sizeof *public_files; i++)
		r = allow(rules, public_files[i], LANDLOCK_ACCESS_FS_READ_FILE, err);
	for (unsigned i = 0; r == 0 && i < OW_CONFINE_PATHS && options->read[i]; i++)
		r = allow(rules, options->read[i], READING & attributes.fs, err);
	for (unsigned i = 0; r == 0 && i < OW_CONFINE_PATHS && options->write[i]; i++)
		r = allow(rules, options->write[i], WRITING & attributes.fs, err);
	for (unsigned i = 0; r == 0 && i < OW_CONFINE_PATHS; i++) {
		if (options->file[i])
			r = allow(rules, options->file[i], LANDLOCK_ACCESS_FS_READ_FILE, err);
	}
	if (r == 0 && options->database)
		r = allow(rules, "/etc/passwd", LANDLOCK_ACCESS_FS_READ_FILE, err);
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = ow_error_set(err, errno, "landlock: %s", strerror(errno));
	close(rules);
	return r;
}

void ow_confine_folder(const char *path, char ret_folder[OW_CONFINE_FOLDER])
{
	const char *slash = strrchr(path, '/');
	int length = slash == path ? 1 : slash ? (int)(slash - path) : 0;
	snprintf(ret_folder, OW_CONFINE_FOLDER, "%.*s", length, length ? path : "");
	if (length == 0)
		snprintf(ret_folder, OW_CONFINE_FOLDER, ".");
}

int ow_confine(const struct ow_confine_options *options, char ret_text[OW_CONFINE_TEXT], bool *ret_whole,
               struct ow_error *err)
{
	const char *seccomp = "seccomp", *landlock = "landlock";
	*ret_whole = options->sandbox == OW_SANDBOX_OFF;
	if (options->sandbox == OW_SANDBOX_OFF) {
		snprintf(ret_text, OW_CONFINE_TEXT, "no sandbox, as configured");
		return 0;
	}
#ifdef OW_SANITIZED
	/* Sanitizers look for leaks with ptrace from another process, and read /proc. */
	snprintf(ret_text, OW_CONFINE_TEXT,
	         "no sandbox: built with a sanitizer, which needs calls that the sandbox forbids");
	return 0;
#endif
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (r < 0)
		return ow_error_set(err, -r, "no_new_privs: %s", strerror(-r));
	/* glibc loads the libraries that /etc/nsswitch.conf names at the first query; later the sandbox would prevent
	 * it. */
	(void)getservbyname("domain", "udp");
	if (options->database)
		(void)getpwuid(geteuid());
	int abi = version();
	*ret_whole = true;
	if (abi < 1) {
		landlock = abi == -EOPNOTSUPP ? "no landlock: switched off in this kernel"
		                              : "no landlock: not in this kernel";
		*ret_whole = false;
	} else {
		r = restrict_files(options, abi, err);
	}
	if (r < 0)
		return r;
	r = ow_syscalls_restrict(options->sandbox == OW_SANDBOX_LOG, options->database);
	if (r == -ENOSYS) {
		seccomp = "no seccomp: not in this kernel";
		*ret_whole = false;
	} else if (r < 0) {
		return ow_error_set(err, -r, "seccomp: %s", strerror(-r));
	} else if (options->sandbox == OW_SANDBOX_LOG) {
		seccomp = "seccomp that only logs";
		*ret_whole = false;
	}
	snprintf(ret_text, OW_CONFINE_TEXT, "%s, %s", seccomp, landlock);
	return 0;
}
