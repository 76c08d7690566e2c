/* SPDX-License-Identifier: Apache-2.0 */
/* Sets users and capabilities by system calls: glibc has no functions for capabilities. */
#include "sandbox/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_BITS     64
#define PASSWD_BYTES 16384

struct account {
	uid_t uid;
	gid_t gid;
};

static int find_user(const char *user, struct account *ret_account)
{
	struct passwd entry, *found = NULL;
	char *bytes = malloc(PASSWD_BYTES);
	int r = bytes ? getpwnam_r(user, &entry, bytes, PASSWD_BYTES, &found) : ENOMEM;
	if (found)
		*ret_account = (struct account){.uid = found->pw_uid, .gid = found->pw_gid};
	free(bytes);
	return found ? 0 : r ? -r : -ENOENT;
}

bool ow_user_exists(const char *user)
{
	struct account account;
	return find_user(user, &account) == 0;
}

static int get_permitted(uint64_t *ret_permitted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret_permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

/* Sets permitted and effective capabilities; none are inherited. */
static int set_capabilities(uint64_t set)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{.permitted = (uint32_t)set, .effective = (uint32_t)set},
		{.permitted = (uint32_t)(set >> 32), .effective = (uint32_t)(set >> 32)},
	};
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Drops the capabilities that an executed program could regain. Only root can do this; for other users no_new_privs has
 * the same effect. */
static void empty_bounds(void)
{
	for (unsigned long cap = 0; cap < CAP_BITS; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int become(const char *user, struct ow_error *err)
{
	struct account account = {0, 0};
	int r = find_user(user, &account);
	if (r < 0)
		return ow_error_set(err, -r, "user '%.60s': %s", user, r == -ENOENT ? "does not exist" : strerror(-r));
	if (getuid() == account.uid && geteuid() == account.uid)
		return 0;
	if (geteuid() != 0)
		return ow_error_set(err, EPERM, "user '%.60s': only root can change the user", user);
	/* Without KEEPCAPS, changing the user would clear the capabilities. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(account.gid, account.gid, account.gid) < 0 ||
	    setresuid(account.uid, account.uid, account.uid) < 0)
		return ow_error_set(err, errno, "cannot become user '%.60s': %s", user, strerror(errno));
	(void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	/* The kernel gave /proc/self to root when the user changed; this gives it back to the new user. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return 0;
}

int ow_privileges_reduce(const char *user, unsigned also, struct ow_error *err)
{
	uint64_t wanted = UINT64_C(1) << CAP_NET_RAW, permitted = 0;
	if (also & OW_PRIVILEGES_STAMPS)
		wanted |= UINT64_C(1) << CAP_NET_ADMIN;
	if (also & OW_PRIVILEGES_KERNEL)
		wanted |= UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_PERFMON;
	empty_bounds();
	int r = user ? become(user, err) : 0;
	if (r < 0)
		return r;
	r = get_permitted(&permitted);
	if (r == 0)
		r = set_capabilities(permitted & wanted);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? ow_error_set(err, -r, "cannot give up privileges: %s", strerror(-r)) : 0;
}

int ow_privileges_drop(struct ow_error *err)
{
	int r = set_capabilities(0);
	return r < 0 ? ow_error_set(err, -r, "cannot give up privileges: %s", strerror(-r)) : 0;
}
