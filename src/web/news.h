/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/query.h"
#include "web/stores.h"
#include <sys/types.h>

/*
 * New results and events of flows as server-sent events, for many clients. One thread asks the store, as long as there is a
 * client. The newest events are kept: a client that comes back within that time misses nothing.
 */
#define OW_NEWS_CLIENTS 256
#define OW_NEWS_KEPT    4096

struct ow_news;
struct ow_news_client;

int ow_news_create(struct ow_stores *stores, struct ow_news **ret_news);
/* Starts the thread. */
int ow_news_start(struct ow_news *news, struct ow_error *err);
/* Ends all clients' streams; they must have left before ow_news_free. */
void ow_news_stop(struct ow_news *news);
void ow_news_free(struct ow_news *news);

/* last_id: the event that it had last; NULL: none. segment, class, from, to of the query select lanes. -EBUSY: too many. */
int ow_news_join(struct ow_news *news, const struct ow_query *query, const char *last_id,
                 struct ow_news_client **ret_client, struct ow_error *err);
void ow_news_leave(struct ow_news_client *client);
/* The next bytes; waits for them, at most 15 s. -1: the stream has ended. */
ssize_t ow_news_read(struct ow_news_client *client, char *bytes, size_t room);
