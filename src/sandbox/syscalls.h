/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SANDBOX_SYSCALLS_H
#define OW_SANDBOX_SYSCALLS_H

#include <stdbool.h>

/*
 * Installs the seccomp filter. log: the kernel logs and allows forbidden calls. -ENOSYS if the kernel has no seccomp.
 */
int ow_syscalls_restrict(bool log);

#endif
