/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <sys/types.h>

/*
 * Serves a store in a process of its own, beside a point or a lab, at an address of this host. The store may not exist yet.
 * The process has the lowest priority, is started again if it ends, and ends with this one. *ret_pid: for
 * ow_cli_web_end(). ret_url: where it is. truth: a file of the lab's, NULL: none.
 */
#define OW_WEB_URL 96
int ow_cli_web_beside(const char *address, const char *store, const char *truth, pid_t *ret_pid,
                      char ret_url[OW_WEB_URL], struct ow_error *err);
/* 0: there is none. */
void ow_cli_web_end(pid_t pid);
