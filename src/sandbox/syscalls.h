/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Installs the seccomp filter. log: the kernel logs and allows forbidden calls. local: local stream sockets are allowed.
 * -ENOSYS if the kernel has no seccomp.
 */
int ow_syscalls_restrict(bool log, bool local);
