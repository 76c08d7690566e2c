/* SPDX-License-Identifier: Apache-2.0 */
/* Live results to standard output and to a store. */
#include "report/show.h"

#include "base/hash.h"
#include "report/interval_render.h"
#include "result/result_json.h"
#include "store/store.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lanes that had packets, by hash; with more lanes, all are shown. */
#define LANES_MAX 1024

struct ow_show {
	struct ow_show_options options;
	struct ow_render_text text;
	struct ow_render_table *table;
	struct ow_store *store;
	uint64_t busy[LANES_MAX];
	size_t busies;
	bool news;
	int failed;
	struct ow_error err;
};

int ow_show_create(const struct ow_show_options *options, struct ow_show **ret_show, struct ow_error *err)
{
	struct ow_show *show = calloc(1, sizeof *show);
	if (!show)
		return ow_error_set(err, ENOMEM, "out of memory");
	show->options = *options;
	show->text = (struct ow_render_text){.out = stdout, .colour = options->style.colour};
	int r = 0;
	if (options->style.moves && !options->json && !options->lines) {
		r = ow_render_table_create(stdout, &show->table);
		if (r < 0)
			ow_error_set(err, -r, "out of memory");
		else
			ow_render_table_style(show->table, options->style.utf8, options->style.colour);
	}
	if (r == 0 && options->store)
		r = ow_store_open(options->store, &show->store, err);
	if (r < 0) {
		ow_show_free(show);
		return r;
	}
	*ret_show = show;
	return 0;
}

void ow_show_free(struct ow_show *show)
{
	if (!show)
		return;
	ow_render_table_free(show->table);
	ow_store_close(show->store);
	free(show);
}

static uint64_t lane_hash(const struct ow_interval_result *r)
{
	uint64_t hash = 0;
	const char *const names[] = {r->segment, r->class_name, r->from, r->to};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (const char *c = names[i]; *c; c++)
			hash = ow_mix64(hash ^ (unsigned char)*c);
		hash = ow_mix64(hash ^ 0x100);
	}
	return hash;
}

/* A lane without a packet so far, usually a direction without traffic. Lines about it would be noise. */
static bool never_used(struct ow_show *show, const struct ow_interval_result *r)
{
	uint64_t hash = lane_hash(r);
	for (size_t i = 0; i < show->busies; i++) {
		if (show->busy[i] == hash)
			return false;
	}
	if (!r->total_sent && !r->total_received && r->status == OW_RESULT_MEASURED)
		return show->busies < LANES_MAX;
	if (show->busies < LANES_MAX)
		show->busy[show->busies++] = hash;
	return false;
}

void ow_show_result(void *arg, const struct ow_interval_result *result)
{
	struct ow_show *show = arg;
	unsigned height;
	show->news = true;
	if (show->store && !show->failed)
		show->failed = ow_store_add(show->store, result, &show->err);
	if (show->options.json) {
		ow_result_json(stdout, result);
	} else if (never_used(show, result)) {
		return;
	} else if (show->table) {
		ow_render_table_add(show->table, result); /* if there is no memory, the lane is missing on the screen */
	} else if (result->final || show->options.provisional) {
		if (show->options.style.terminal)
			show->options.style.size(&show->text.width, &height);
		ow_render_text(&show->text, result);
	}
}

void ow_show_event(void *arg, const struct ow_flow_event *event)
{
	struct ow_show *show = arg;
	unsigned height;
	show->news = true;
	if (show->store && !show->failed)
		show->failed = ow_store_add_event(show->store, event, &show->err);
	if (show->options.json) {
		ow_flow_event_json(stdout, event);
	} else if (show->table) {
		ow_render_table_event(show->table, event);
	} else {
		if (show->options.style.terminal)
			show->options.style.size(&show->text.width, &height);
		ow_render_event(&show->text, event);
	}
}

int ow_show_flush(struct ow_show *show, struct ow_error *err)
{
	unsigned width, height;
	if (show->news && show->table) {
		show->options.style.size(&width, &height);
		ow_render_table_draw(show->table, width, height);
	}
	if (show->news && show->store && !show->failed)
		show->failed = ow_store_commit(show->store, &show->err);
	if (show->news && (fflush(stdout) != 0 || ferror(stdout)) && !show->failed)
		show->failed = ow_error_set(&show->err, errno, "standard output: %s", strerror(errno));
	show->news = false;
	if (show->failed < 0)
		*err = show->err;
	return show->failed;
}

void ow_show_summary(struct ow_show *show, const struct ow_interval_result *total)
{
	if (show->options.json) {
		ow_result_json_summary(stdout, total);
		return;
	}
	putchar('\n');
	ow_render_summary(stdout, total);
}
