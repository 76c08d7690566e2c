/* SPDX-License-Identifier: Apache-2.0 */
/* The framework of the figures: collects points and claims of a run, and writes them. */
#include "papers/figure.h"

#include "base/array.h"
#include "report/curves.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ow_figure_run {
	const struct ow_figure *figure;
	struct ow_figure_options options;
	struct ow_curves curves;
	struct ow_figure_claim *claim;
	size_t claims, claims_room;
};

uint64_t ow_figure_seed(const struct ow_figure_run *run)
{
	return run->options.seed;
}

int ow_figure_part(const struct ow_figure_run *run)
{
	return run->figure->part;
}

bool ow_figure_quick(const struct ow_figure_run *run)
{
	return run->options.quick;
}

const char *ow_figure_traces(const struct ow_figure_run *run)
{
	return run->options.traces;
}

const char *ow_figure_topologies(const struct ow_figure_run *run)
{
	return run->options.topologies;
}

int ow_figure_point(struct ow_figure_run *run, const char *series, double x, double y, double low, double high)
{
	return ow_curves_add(&run->curves, series, x, y, low, high);
}

int ow_figure_claim(struct ow_figure_run *run, const char *paper, bool agrees, const char *ours, ...)
{
	va_list args;
	if (OW_GROW(run->claim, run->claims_room, run->claims + 1) < 0)
		return -ENOMEM;
	struct ow_figure_claim *claim = run->claim + run->claims;
	*claim = (struct ow_figure_claim){.paper = strdup(paper), .agrees = agrees};
	va_start(args, ours);
	int length = claim->paper ? vasprintf(&claim->ours, ours, args) : -1;
	va_end(args);
	if (length < 0) {
		free(claim->paper);
		return -ENOMEM;
	}
	run->claims++;
	return 0;
}

void ow_figure_progress(struct ow_figure_run *run, double done)
{
	if (run->options.on_progress)
		run->options.on_progress(run->options.arg, done);
}

int ow_figure_compute(const struct ow_figure *figure, const struct ow_figure_options *options,
                      struct ow_figure_run **ret_run, struct ow_error *err)
{
	struct ow_figure_run *run = calloc(1, sizeof *run);
	if (!run)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", figure->name);
	run->figure = figure;
	run->options = *options;
	run->curves = (struct ow_curves){.title = figure->title,
	                                 .x_label = figure->x_label,
	                                 .y_label = figure->y_label,
	                                 .log_x = figure->log_x,
	                                 .log_y = figure->log_y};
	struct ow_error reason = {"no reason given"};
	int r = figure->run(run, &reason);
	if (r < 0) {
		ow_figure_free(run);
		return ow_error_set(err, -r, "%s: %.400s", figure->name,
		                    r == -ENOMEM ? "not enough memory" : reason.text);
	}
	*ret_run = run;
	return 0;
}

void ow_figure_free(struct ow_figure_run *run)
{
	if (!run)
		return;
	ow_curves_done(&run->curves);
	for (size_t i = 0; i < run->claims; i++) {
		free(run->claim[i].paper);
		free(run->claim[i].ours);
	}
	free(run->claim);
	free(run);
}

const struct ow_figure_claim *ow_figure_claims(const struct ow_figure_run *run, size_t *ret_count)
{
	*ret_count = run->claims;
	return run->claim;
}

size_t ow_figure_points(const struct ow_figure_run *run)
{
	return run->curves.points;
}

int ow_figure_write_csv(const struct ow_figure_run *run, const char *path, struct ow_error *err)
{
	FILE *out = fopen(path, "we");
	if (!out)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	ow_curves_csv(out, &run->curves);
	bool failed = ferror(out);
	if (fclose(out) != 0 || failed) {
		int code = errno ? errno : EIO;
		unlink(path);
		return ow_error_set(err, code, "%s: %s", path, strerror(code));
	}
	return 0;
}

int ow_figure_write_plot(const struct ow_figure_run *run, const char *path, struct ow_error *err)
{
	return ow_curves_draw(&run->curves, path, err);
}
