/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

/* Starts a thread that handles no signals: they are for the threads of the caller. 0 or a negative errno. */
int ow_thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg);
