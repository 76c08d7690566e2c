/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a point as messages: sample_collector.h. */
#include "point/sample_collector.h"

#include "base/clock.h"
#include "base/hash.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Samples that wait for those of other threads: two epochs, two directions, all interfaces. */
#define WAITING_MAX (4 * OW_SOURCES_MAX)

struct waiting {
	bool used;
	unsigned source, threads; /* threads whose samples are in it */
	struct ow_vantage_sample sample;
};

struct ow_sample_collector {
	char point[OW_SAMPLE_NAME], interface[OW_SOURCES_MAX][OW_SAMPLE_NAME];
	uint64_t threads[OW_SOURCES_MAX]; /* of each interface */
	struct ow_sampler_options options;
	ow_sample_message_handler *handler;
	void *arg;
	uint64_t instance; /* the first clock generation: no two processes have the same */
	pthread_mutex_t lock;
	struct waiting waiting[WAITING_MAX];
};

void ow_sample_collector_free(struct ow_sample_collector *collector)
{
	if (!collector)
		return;
	for (unsigned i = 0; i < WAITING_MAX; i++)
		ow_vantage_sample_done(&collector->waiting[i].sample);
	pthread_mutex_destroy(&collector->lock);
	free(collector);
}

static void send(struct ow_sample_collector *c, unsigned source, struct ow_vantage_sample *sample)
{
	uint8_t *bytes;
	size_t size;
	memcpy(sample->point, c->point, sizeof sample->point);
	memcpy(sample->interface, c->interface[source], sizeof sample->interface);
	sample->clock_generation += c->instance;
	/* Out of memory: as if the message were lost. */
	if (ow_vantage_sample_encode(sample, &bytes, &size, NULL) < 0)
		return;
	c->handler(c->arg, sample->epoch * sample->epoch_ns, bytes, size);
	free(bytes);
}

/* The one that this sample belongs to, or a place for it: a free one, or that of an epoch for which a thread has given
 * nothing for long. */
static struct waiting *find(struct ow_sample_collector *c, unsigned source, const struct ow_vantage_sample *sample)
{
	struct waiting *place = NULL;
	for (unsigned i = 0; i < WAITING_MAX; i++) {
		struct waiting *w = &c->waiting[i];
		if (w->used && w->source == source && w->sample.kind == sample->kind &&
		    w->sample.epoch == sample->epoch && w->sample.clock_generation == sample->clock_generation)
			return w;
		if (!place || !w->used || (place->used && w->sample.epoch < place->sample.epoch))
			place = w;
	}
	ow_vantage_sample_done(&place->sample);
	*place = (struct waiting){.used = true, .source = source};
	return place;
}

static void join_threads(struct ow_sample_collector *c, unsigned source, struct ow_vantage_sample *sample)
{
	struct waiting *w = find(c, source, sample);
	if (w->threads == 0) {
		w->sample = *sample;
		sample->record = NULL;
	} else if (ow_vantage_sample_merge(&w->sample, sample, c->options.records) < 0) {
		return; /* it stays, and is never complete */
	}
	if (++w->threads < c->threads[source])
		return;
	send(c, source, &w->sample);
	ow_vantage_sample_done(&w->sample);
	w->used = false;
}

static void on_sample(void *arg, unsigned source, struct ow_vantage_sample *sample)
{
	struct ow_sample_collector *c = arg;
	pthread_mutex_lock(&c->lock);
	if (c->threads[source] > 1)
		join_threads(c, source, sample);
	else
		send(c, source, sample);
	pthread_mutex_unlock(&c->lock);
}

static uint64_t hash_of(const char *key)
{
	uint64_t hash = strlen(key);
	for (; *key; key++)
		hash = ow_mix64(hash ^ (uint8_t)*key) + UINT64_C(0x9e3779b97f4a7c15);
	return hash;
}

int ow_sample_collector_create(const struct ow_config *config, ow_sample_message_handler *handler, void *arg,
                               struct ow_sample_collector **ret_collector, struct ow_error *err)
{
	struct ow_sample_collector *collector = calloc(1, sizeof *collector);
	if (!collector)
		return ow_error_set(err, ENOMEM, "not enough memory for samples");
	snprintf(collector->point, sizeof collector->point, "%s", config->point);
	for (unsigned i = 0; i < config->interface_count && i < OW_SOURCES_MAX; i++) {
		snprintf(collector->interface[i], OW_SAMPLE_NAME, "%s", config->interfaces[i].name);
		collector->threads[i] = config->interfaces[i].threads;
	}
	uint64_t key = hash_of(config->discovery.key);
	collector->options = (struct ow_sampler_options){.key = key,
	                                                 .key_generation = (uint32_t)(ow_mix64(key ^ 1) >> 32),
	                                                 .records = (uint32_t)config->discovery.records,
	                                                 .epoch_ns = config->discovery.epoch_ns,
	                                                 .on_sample = on_sample,
	                                                 .arg = collector};
	collector->handler = handler;
	collector->arg = arg;
	collector->instance = (uint64_t)ow_clock_real_ns();
	pthread_mutex_init(&collector->lock, NULL);
	*ret_collector = collector;
	return 0;
}

void ow_sample_collector_options(const struct ow_sample_collector *c, struct ow_sampler_options *ret_options)
{
	*ret_options = c->options;
}
