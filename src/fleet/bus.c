/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a bus, its subscriptions, and the loop that handles what arrives. */
#include "fleet/bus_private.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/state_file.h"
#include "base/time.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>

/* A server that is silent for this long, twice, is given up. */
#define PING_MS 2000
/* Attempts to connect: pauses grow from the first to the second. */
#define CONNECT_LEAST_NS (500 * OW_NS_PER_MS)
#define CONNECT_MOST_NS  (30 * OW_NS_PER_S)
#define CONNECT_WAIT_MS  3000
/* Servers in the list of URLs. */
#define URLS_MAX 16
/* Messages to streams that are on their way at first. */
#define WINDOW_FIRST 256
/* Requests that wait too long, and pulls, are looked at this often. */
#define TICK_MS 50

static void tell(const struct ow_bus *bus, const char *line)
{
	if (bus->options.news)
		bus->options.news(bus->options.arg, line);
}

/* -- libnats' threads --------------------------------------------------------------------------------------------- */

/* What a callback of libnats knows. Each is freed by the last callback that gets it. */
struct link {
	struct ow_bus_queue *queue;
	unsigned connection, subscription;
};

static struct link *new_link(struct ow_bus *bus, unsigned subscription)
{
	struct link *link = malloc(sizeof *link);
	if (link)
		*link = (struct link){ow_bus_queue_hold(bus->queue), bus->number, subscription};
	return link;
}

static void free_link(void *arg)
{
	struct link *link = arg;
	ow_bus_queue_release(link->queue);
	free(link);
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *arg)
{
	const struct link *link = arg;
	(void)connection, (void)subscription;
	ow_bus_queue_message(link->queue, link->connection, link->subscription, message);
}

static const char *last_error(natsConnection *connection)
{
	const char *text = NULL;
	natsConnection_GetLastError(connection, &text);
	return text ? text : "";
}

static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *arg)
{
	const struct link *link = arg;
	const char *text = last_error(connection);
	(void)subscription;
	ow_bus_queue_news(link->queue, link->connection, "error: ", *text ? text : natsStatus_GetText(status));
}

static void on_disconnected(natsConnection *connection, void *arg)
{
	const struct link *link = arg;
	const char *text = last_error(connection);
	ow_bus_queue_news(link->queue, link->connection, *text ? "connection lost: " : "connection lost", text);
}

static void on_reconnected(natsConnection *connection, void *arg)
{
	const struct link *link = arg;
	char url[120] = "";
	natsConnection_GetConnectedUrl(connection, url, sizeof url);
	ow_bus_hide_password(url);
	ow_bus_queue_news(link->queue, link->connection, "connected again to ", url);
}

/* The last callback of a connection. */
static void on_closed(natsConnection *connection, void *arg)
{
	const struct link *link = arg;
	(void)connection;
	ow_bus_queue_closed(link->queue, link->connection);
	free_link(arg);
}

/* -- connecting --------------------------------------------------------------------------------------------------- */

static natsStatus set_servers(natsOptions *options, const char *urls)
{
	char *copy = strdup(urls), *save = NULL;
	const char *url[URLS_MAX];
	int count = 0;
	if (!copy)
		return NATS_NO_MEMORY;
	for (char *at = strtok_r(copy, ", \n", &save); at && count < URLS_MAX; at = strtok_r(NULL, ", \n", &save))
		url[count++] = at;
	natsStatus s = count ? natsOptions_SetServers(options, url, count) : NATS_INVALID_ARG;
	free(copy);
	return s;
}

static natsStatus set_tls(natsOptions *options, const struct ow_bus_options *o)
{
	if (!o->ca && !o->certificate)
		return NATS_OK;
	natsStatus s = natsOptions_SetSecure(options, true);
	if (s == NATS_OK && o->ca)
		s = natsOptions_LoadCATrustedCertificates(options, o->ca);
	if (s == NATS_OK && o->server)
		s = natsOptions_SetExpectedHostname(options, o->server);
	if (s == NATS_OK && o->certificate)
		s = natsOptions_LoadCertificatesChain(options, o->certificate, o->key);
	return s;
}

static natsStatus set_manner(natsOptions *options, struct link *link)
{
	natsStatus s = natsOptions_SetPingInterval(options, PING_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxPingsOut(options, 2);
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(options, CONNECT_WAIT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxReconnect(options, -1);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectWait(options, CONNECT_LEAST_NS / OW_NS_PER_MS);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectJitter(options, 500, 500);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(options, on_error, link);
	if (s == NATS_OK)
		s = natsOptions_SetDisconnectedCB(options, on_disconnected, link);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectedCB(options, on_reconnected, link);
	return s == NATS_OK ? natsOptions_SetClosedCB(options, on_closed, link) : s;
}

static natsStatus make_options(const struct ow_bus *bus, struct link *link, natsOptions **ret_options)
{
	natsStatus s = natsOptions_Create(ret_options);
	if (s == NATS_OK)
		s = set_servers(*ret_options, bus->options.urls);
	if (s == NATS_OK)
		s = set_tls(*ret_options, &bus->options);
	if (s == NATS_OK)
		s = natsOptions_SetName(*ret_options, bus->options.name);
	return s == NATS_OK ? set_manner(*ret_options, link) : s;
}

static natsStatus subscribe(struct ow_bus *bus, unsigned index)
{
	struct ow_bus_subscription *subscription = &bus->subscription[index];
	struct link *link = new_link(bus, subscription->id);
	if (!link)
		return NATS_NO_MEMORY;
	natsStatus s =
		natsConnection_Subscribe(&subscription->nats, bus->connection, subscription->subject, on_message, link);
	if (s != NATS_OK) {
		free_link(link);
		return s;
	}
	s = natsSubscription_SetOnCompleteCB(subscription->nats, free_link, link);
	/* The queue has a limit of its own. */
	return s == NATS_OK ? natsSubscription_SetPendingLimits(subscription->nats, -1, -1) : s;
}

static void disconnect(struct ow_bus *bus)
{
	for (size_t i = 0; i < bus->subscriptions; i++) {
		natsSubscription_Destroy(bus->subscription[i].nats);
		bus->subscription[i].nats = NULL;
	}
	natsConnection_Destroy(bus->connection);
	bus->connection = NULL;
	bus->connected = false;
	ow_bus_pulls_reset(bus);
}

static int fail_to_connect(const struct ow_bus *bus, natsStatus status, struct ow_error *err)
{
	char *urls = strdup(bus->options.urls);
	if (urls)
		ow_bus_hide_password(urls);
	int r = ow_bus_fail(status, urls ? urls : "bus", err);
	free(urls);
	return r;
}

static int try_to_connect(struct ow_bus *bus, struct ow_error *err)
{
	natsOptions *options = NULL;
	bus->number++;
	struct link *link = new_link(bus, 0);
	natsStatus s = link ? make_options(bus, link, &options) : NATS_NO_MEMORY;
	if (s == NATS_OK)
		s = natsConnection_Connect(&bus->connection, options);
	int r = s == NATS_OK ? 0 : fail_to_connect(bus, s, err);
	natsOptions_Destroy(options);
	if (r < 0) {
		/* Without a connection nobody calls on_closed. */
		if (link)
			free_link(link);
		bus->connection = NULL;
		return r;
	}
	for (unsigned i = 0; s == NATS_OK && i < bus->subscriptions; i++)
		s = subscribe(bus, i);
	if (s == NATS_OK)
		return 0;
	r = ow_bus_fail(s, "cannot subscribe", err);
	disconnect(bus);
	return r;
}

static void connect_if_due(struct ow_bus *bus, int64_t now_ns)
{
	char line[160], url[100] = "";
	struct ow_error why;
	if (bus->connection || now_ns < bus->connect_ns)
		return;
	if (try_to_connect(bus, &why) < 0) {
		bus->connect_ns = ow_bus_pause_until(&bus->connect_pause_ns, CONNECT_LEAST_NS, CONNECT_MOST_NS,
		                                     ow_clock_steady_ns());
		if (strcmp(why.text, bus->last.text) != 0)
			tell(bus, why.text);
		bus->last = why;
		return;
	}
	bus->last.text[0] = '\0';
	bus->connect_pause_ns = 0;
	natsConnection_GetConnectedUrl(bus->connection, url, sizeof url);
	ow_bus_hide_password(url);
	snprintf(line, sizeof line, "connected to %s", url);
	tell(bus, line);
}

/* -- polling ------------------------------------------------------------------------------------------------------ */

static int status_of(natsMsg *message)
{
	const char *text = NULL;
	if (natsMsg_GetDataLength(message) != 0 || natsMsgHeader_Get(message, "Status", &text) != NATS_OK || !text)
		return 0;
	long status = strtol(text, NULL, 10);
	return status > 0 && status < 1000 ? (int)status : 503;
}

/* "2026-11-15T10:02:30.123456789Z", of a stored message that was asked for; 0 = it has none. */
static int64_t stored_of(natsMsg *message)
{
	const char *text = NULL;
	struct tm tm = {0};
	if (natsMsgHeader_Get(message, "Nats-Time-Stamp", &text) != NATS_OK || !text)
		return 0;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	return end ? (int64_t)timegm(&tm) * OW_NS_PER_S : 0;
}

static uint64_t sequence_of(natsMsg *message)
{
	const char *text = NULL;
	return natsMsgHeader_Get(message, "Nats-Sequence", &text) == NATS_OK && text ? strtoull(text, NULL, 10) : 0;
}

static const struct ow_bus_subscription *subscription_of(const struct ow_bus *bus, unsigned id)
{
	for (size_t i = 0; i < bus->subscriptions; i++) {
		if (bus->subscription[i].id == id)
			return &bus->subscription[i];
	}
	return NULL;
}

static void handle_message(struct ow_bus *bus, unsigned id, natsMsg *from)
{
	const char *reply = natsMsg_GetReply(from);
	struct ow_bus_message message = {.subject = natsMsg_GetSubject(from),
	                                 .reply = reply ? reply : "",
	                                 .data = natsMsg_GetData(from),
	                                 .size = (size_t)natsMsg_GetDataLength(from),
	                                 .sequence = sequence_of(from),
	                                 .stored_ns = stored_of(from),
	                                 .status = status_of(from)};
	const struct ow_bus_subscription *subscription = subscription_of(bus, id);
	if (subscription)
		subscription->handler(subscription->arg, &message);
}

static void handle_closed(struct ow_bus *bus, unsigned number)
{
	if (number != bus->number || !bus->connection)
		return;
	disconnect(bus);
	bus->connect_ns =
		ow_bus_pause_until(&bus->connect_pause_ns, CONNECT_LEAST_NS, CONNECT_MOST_NS, ow_clock_steady_ns());
}

static void handle(struct ow_bus *bus, struct ow_bus_event *event)
{
	if (event->kind == OW_BUS_EVENT_MESSAGE)
		handle_message(bus, event->subscription, event->message);
	else if (event->kind == OW_BUS_EVENT_CLOSED)
		handle_closed(bus, event->connection);
	else if (event->kind == OW_BUS_EVENT_NEWS && event->connection == bus->number)
		tell(bus, event->text);
}

static void tick(struct ow_bus *bus)
{
	int64_t now_ns = ow_clock_steady_ns();
	connect_if_due(bus, now_ns);
	bool connected = bus->connection && natsConnection_Status(bus->connection) == NATS_CONN_STATUS_CONNECTED;
	if (connected && !bus->connected)
		ow_bus_flows_reset(bus, now_ns);
	bus->connected = connected;
	ow_bus_requests_tick(bus, now_ns);
	ow_bus_pulls_tick(bus, now_ns);
}

unsigned ow_bus_poll(struct ow_bus *bus, int wait_ms)
{
	unsigned handled = 0;
	int64_t until_ns = ow_clock_steady_ns() + wait_ms * OW_NS_PER_MS;
	do {
		tick(bus);
		/* Rounded up: less than a millisecond must not become many rounds without a pause. */
		int64_t left_ms = (until_ns - ow_clock_steady_ns() + OW_NS_PER_MS - 1) / OW_NS_PER_MS;
		int wait = left_ms < 0 ? 0 : left_ms < TICK_MS ? (int)left_ms : TICK_MS;
		for (struct ow_bus_event *event = ow_bus_queue_take(bus->queue, wait), *next; event; event = next) {
			next = event->next;
			handled += event->kind == OW_BUS_EVENT_MESSAGE;
			handle(bus, event);
			ow_bus_event_free(event);
		}
	} while (!handled && ow_clock_steady_ns() < until_ns);
	return handled;
}

bool ow_bus_connected(const struct ow_bus *bus)
{
	return bus->connected;
}

int ow_bus_wait(struct ow_bus *bus, int wait_ms, struct ow_error *err)
{
	int64_t until_ns = ow_clock_steady_ns() + wait_ms * OW_NS_PER_MS;
	ow_bus_poll(bus, 0);
	while (!bus->connected && ow_clock_steady_ns() < until_ns)
		ow_bus_poll(bus, TICK_MS);
	if (bus->connected)
		return 0;
	return ow_error_set(err, ETIMEDOUT, "%.480s",
	                    bus->last.text[0] ? bus->last.text : "the fleet's servers do not answer");
}

void ow_bus_reconnect(struct ow_bus *bus)
{
	if (bus->connection) {
		natsConnection_FlushTimeout(bus->connection, 1000);
		disconnect(bus);
	}
	bus->connect_ns = bus->connect_pause_ns = 0;
}

/* -- creation ----------------------------------------------------------------------------------------------------- */

int ow_bus_subscribe(struct ow_bus *bus, const char *subject, ow_bus_handler *handler, void *arg, struct ow_error *err)
{
	char *copy = strdup(subject);
	if (!copy || OW_GROW(bus->subscription, bus->subscriptions_room, bus->subscriptions + 1) < 0) {
		free(copy);
		return ow_error_set(err, ENOMEM, "%.100s: out of memory", subject);
	}
	unsigned index = (unsigned)bus->subscriptions++;
	bus->subscription[index] = (struct ow_bus_subscription){
		.id = ++bus->last_subscription, .subject = copy, .handler = handler, .arg = arg};
	natsStatus s = bus->connection ? subscribe(bus, index) : NATS_OK;
	return s == NATS_OK ? 0 : ow_bus_fail(s, subject, err);
}

void ow_bus_unsubscribe(struct ow_bus *bus)
{
	struct ow_bus_subscription *last = &bus->subscription[--bus->subscriptions];
	natsSubscription_Destroy(last->nats);
	free(last->subject);
}

static int copy_text(const char *from, const char **ret_text)
{
	*ret_text = from ? strdup(from) : NULL;
	return from && !*ret_text ? -ENOMEM : 0;
}

/* As the file `servers` has them, a line for each; messages are one line. */
static int copy_urls(const char *from, const char **ret_text)
{
	char *text = strdup(from);
	size_t size = text ? strlen(text) : 0;
	while (size && (text[size - 1] == '\n' || text[size - 1] == ' '))
		text[--size] = 0;
	for (char *at = text ? strchr(text, '\n') : NULL; at; at = strchr(at, '\n'))
		*at = ',';
	*ret_text = text;
	return text ? 0 : -ENOMEM;
}

static int copy_options(struct ow_bus *bus, const struct ow_bus_options *o)
{
	bus->options = (struct ow_bus_options){.news = o->news, .arg = o->arg};
	int r = copy_urls(o->urls, &bus->options.urls);
	if (r == 0)
		r = copy_text(o->server, &bus->options.server);
	if (r == 0)
		r = copy_text(o->ca, &bus->options.ca);
	if (r == 0)
		r = copy_text(o->certificate, &bus->options.certificate);
	if (r == 0)
		r = copy_text(o->key, &bus->options.key);
	return r < 0 ? r : copy_text(o->name, &bus->options.name);
}

static int name_inbox(struct ow_bus *bus, struct ow_error *err)
{
	uint64_t random[2];
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return ow_error_set(err, errno, "no random numbers: %s", strerror(errno));
	snprintf(bus->inbox, sizeof bus->inbox, "_IN.%s.%016jx%016jx", bus->options.name, (uintmax_t)random[0],
	         (uintmax_t)random[1]);
	bus->next_id = bus->oldest_id = 1;
	bus->window = WINDOW_FIRST;
	char all[sizeof bus->inbox + 2];
	snprintf(all, sizeof all, "%s.*", bus->inbox);
	return ow_bus_subscribe(bus, all, ow_bus_answer, bus, err);
}

/* libnats would wait for a pipe, for ever. A file that is not there yet may come. */
static int check_files(const struct ow_bus_options *options, struct ow_error *err)
{
	const char *const files[] = {options->ca, options->certificate, options->key};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		FILE *file = files[i] ? ow_state_open(files[i]) : NULL;
		if (files[i] && !file && errno == EINVAL)
			return ow_error_set(err, EINVAL, "%s: not a file", files[i]);
		if (file)
			fclose(file);
	}
	return 0;
}

static int check_options(const struct ow_bus_options *o, struct ow_error *err)
{
	if (!o->urls || !*o->urls)
		return ow_error_set(err, EINVAL, "the fleet has no address");
	if (!o->name || !*o->name || strlen(o->name) > OW_BUS_CLIENT_NAME || strpbrk(o->name, " \t\r\n*>"))
		return ow_error_set(err, EINVAL, "'%.80s' cannot be the name of a client", o->name ? o->name : "");
	if (!o->certificate != !o->key)
		return ow_error_set(err, EINVAL, "a certificate and a key belong together");
	return 0;
}

int ow_bus_create(const struct ow_bus_options *options, struct ow_bus **ret_bus, struct ow_error *err)
{
	int r = check_options(options, err);
	if (r == 0)
		r = check_files(options, err);
	if (r < 0)
		return r;
	struct ow_bus *bus = calloc(1, sizeof *bus);
	if (!bus || copy_options(bus, options) < 0 || !(bus->queue = ow_bus_queue_create()))
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = name_inbox(bus, err);
	if (r < 0) {
		ow_bus_free(bus);
		return r;
	}
	*ret_bus = bus;
	return 0;
}

void ow_bus_free(struct ow_bus *bus)
{
	if (!bus)
		return;
	if (bus->connection)
		natsConnection_FlushTimeout(bus->connection, 1000);
	disconnect(bus);
	ow_bus_queue_release(bus->queue);
	for (size_t i = 0; i < bus->subscriptions; i++)
		free(bus->subscription[i].subject);
	free(bus->subscription);
	free((char *)bus->options.urls);
	free((char *)bus->options.server);
	free((char *)bus->options.ca);
	free((char *)bus->options.certificate);
	free((char *)bus->options.key);
	free((char *)bus->options.name);
	free(bus);
}
