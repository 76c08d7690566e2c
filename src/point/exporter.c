/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP pages of a point for Prometheus. */
#include "point/exporter.h"

#include "point/http.h"
#include "point/process.h"
#include "report/metrics.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ow_exporter {
	pthread_mutex_t lock; /* protects the metrics and the process */
	struct ow_metrics *metrics;
	struct ow_process *process;
	struct ow_http *http;
};

static int metrics_page(struct ow_exporter *e, const char *accept, struct ow_http_page *page)
{
	enum ow_metrics_format format = ow_metrics_format(accept);
	struct ow_metrics_process process;
	FILE *out = open_memstream(&page->body, &page->size);
	if (!out)
		return -ENOMEM;
	pthread_mutex_lock(&e->lock);
	ow_process_look(e->process, &process);
	ow_metrics_render(e->metrics, &process, format, out);
	pthread_mutex_unlock(&e->lock);
	/* If memory ran out, a page that looks complete must not be sent. */
	bool bad = ferror(out);
	bad |= fclose(out) != 0;
	if (bad) {
		free(page->body);
		return -ENOMEM;
	}
	page->type = ow_metrics_type[format];
	return 0;
}

static int health_page(struct ow_exporter *e, struct ow_http_page *page)
{
	char why[OW_METRICS_WHY];
	pthread_mutex_lock(&e->lock);
	bool healthy = ow_metrics_healthy(e->metrics, ow_clock_steady_ns(), why);
	pthread_mutex_unlock(&e->lock);
	int size = asprintf(&page->body, "%s\n", why);
	if (size < 0)
		return -ENOMEM;
	page->size = (size_t)size;
	page->status = healthy ? 200 : 503;
	page->type = "text/plain; charset=utf-8";
	return 0;
}

static int on_page(void *arg, const char *path, const char *accept, struct ow_http_page *page)
{
	if (strcmp(path, "/metrics") == 0)
		return metrics_page(arg, accept, page);
	if (strcmp(path, "/healthz") == 0)
		return health_page(arg, page);
	return -ENOENT;
}

int ow_exporter_create(const struct ow_config *config, struct ow_exporter **ret_exporter, struct ow_error *err)
{
	*ret_exporter = NULL;
	if (!config->metrics)
		return 0;
	struct ow_exporter *e = calloc(1, sizeof *e);
	if (!e)
		return ow_error_set(err, ENOMEM, "not enough memory");
	pthread_mutex_init(&e->lock, NULL);
	int r = ow_metrics_create(config->point, &e->metrics);
	if (r == 0)
		r = ow_process_create(&e->process);
	if (r < 0)
		ow_error_set(err, -r, "%s", strerror(-r));
	for (unsigned i = 0; r == 0 && i < config->segment_count; i++)
		ow_metrics_peer(e->metrics, config->segments[i].peer, false);
	if (r == 0) {
		struct ow_error why;
		r = ow_http_create(&(struct ow_http_options){config->metrics, on_page, e}, &e->http, &why);
		if (r < 0)
			ow_error_set(err, -r, "metrics: %.400s", why.text);
	}
	if (r < 0) {
		ow_exporter_free(e);
		return r;
	}
	*ret_exporter = e;
	return 0;
}

int ow_exporter_start(struct ow_exporter *e, struct ow_error *err)
{
	return e ? ow_http_start(e->http, err) : 0;
}

void ow_exporter_free(struct ow_exporter *e)
{
	if (!e)
		return;
	ow_http_free(e->http);
	ow_process_free(e->process);
	ow_metrics_free(e->metrics);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

const char *ow_exporter_address(const struct ow_exporter *e)
{
	return e ? ow_http_address(e->http) : NULL;
}

void ow_exporter_result(struct ow_exporter *e, const struct ow_interval_result *result)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	ow_metrics_add(e->metrics, result, ow_clock_steady_ns());
	pthread_mutex_unlock(&e->lock);
}

void ow_exporter_peer(struct ow_exporter *e, const char *peer, bool connected)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	ow_metrics_peer(e->metrics, peer, connected);
	pthread_mutex_unlock(&e->lock);
}

void ow_exporter_certificate(struct ow_exporter *e, int64_t expiry_s)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	ow_metrics_certificate(e->metrics, expiry_s);
	pthread_mutex_unlock(&e->lock);
}

void ow_exporter_store(struct ow_exporter *e, uint64_t lost, uint64_t waiting)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	ow_metrics_store(e->metrics, lost, waiting);
	pthread_mutex_unlock(&e->lock);
}

void ow_exporter_refused(struct ow_exporter *e, enum ow_refused what, const char *peer)
{
	static const enum ow_metrics_refused why[OW_REFUSALS] = {
		[OW_REFUSED_IDENTITY] = OW_METRICS_IDENTITY, [OW_REFUSED_PROTOCOL] = OW_METRICS_PROTOCOL,
		[OW_REFUSED_TIMEOUT] = OW_METRICS_TIMEOUT,   [OW_REFUSED_CLOSED] = OW_METRICS_CLOSED,
		[OW_REFUSED_BUSY] = OW_METRICS_BUSY,
	};
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	if (what != OW_REFUSED_MESSAGE)
		ow_metrics_refused(e->metrics, why[what]);
	else if (peer)
		ow_metrics_message(e->metrics, peer);
	pthread_mutex_unlock(&e->lock);
}
