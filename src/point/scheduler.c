/* SPDX-License-Identifier: Apache-2.0 */
#include "point/scheduler.h"

#include "base/time.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int control(struct ow_scheduler *s, int operation, struct ow_watch *watch)
{
	struct epoll_event event = {.data.ptr = watch};
	event.events = (watch->events & POLLIN ? EPOLLIN : 0u) | (watch->events & POLLOUT ? EPOLLOUT : 0u);
	return watch->fd < 0 || epoll_ctl(s->epoll_fd, operation, watch->fd, &event) == 0 ? 0 : -errno;
}

int ow_scheduler_open(struct ow_scheduler *s, int64_t tick_ns, int (*tick)(void *arg, struct ow_error *err), void *arg,
                      struct ow_error *err)
{
	struct timespec period = {tick_ns / OW_NS_PER_S, tick_ns % OW_NS_PER_S};
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->timer = (struct ow_watch){tick, arg, timer_fd, POLLIN};
	if (s->epoll_fd < 0 || timer_fd < 0 ||
	    timerfd_settime(timer_fd, 0, &(struct itimerspec){period, period}, NULL) < 0)
		return ow_error_set(err, errno, "epoll or timerfd: %s", strerror(errno));
	return ow_scheduler_add(s, &s->timer, err);
}

void ow_scheduler_close(struct ow_scheduler *s)
{
	if (s->timer.fd >= 0)
		close(s->timer.fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
}

int ow_scheduler_add(struct ow_scheduler *s, struct ow_watch *watch, struct ow_error *err)
{
	int r = control(s, EPOLL_CTL_ADD, watch);
	return r < 0 ? ow_error_set(err, -r, "epoll: %s", strerror(-r)) : 0;
}

int ow_scheduler_change(struct ow_scheduler *s, struct ow_watch *watch, short events)
{
	if (events == watch->events)
		return 0;
	watch->events = events;
	return control(s, EPOLL_CTL_MOD, watch);
}

void ow_scheduler_remove(struct ow_scheduler *s, struct ow_watch *watch)
{
	(void)control(s, EPOLL_CTL_DEL, watch);
}

int ow_scheduler_wait(struct ow_scheduler *s, bool at_once, struct ow_watch **ret_ready, struct ow_error *err)
{
	struct epoll_event event;
	uint64_t ticks;
	*ret_ready = NULL;
	int n = epoll_wait(s->epoll_fd, &event, 1, at_once ? 0 : -1);
	if (n < 0 && errno != EINTR)
		return ow_error_set(err, errno, "epoll: %s", strerror(errno));
	if (n == 1)
		*ret_ready = event.data.ptr;
	if (*ret_ready == &s->timer && read(s->timer.fd, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
		return ow_error_set(err, errno, "timerfd: %s", strerror(errno));
	return 0;
}
