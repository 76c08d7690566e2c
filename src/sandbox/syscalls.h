/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SANDBOX_SYSCALLS_H
#define OW_SANDBOX_SYSCALLS_H

#include <stdbool.h>

/* Installs the filter of system calls. log: what is not allowed is logged by the kernel and done. -ENOSYS without
 * seccomp in the kernel. */
int ow_syscalls_restrict(bool log);

#endif
