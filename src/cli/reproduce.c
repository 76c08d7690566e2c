/* SPDX-License-Identifier: Apache-2.0 */
/* oneway reproduce: recomputes the papers' figures. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "papers/figure_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct arguments {
	bool quick, json, check, no_plots, help, version;
	const char *directory, *traces, *topologies;
	uint64_t seed;
};

/* Environment variables: the folders of traces and of maps. */
#define TRACES     "ONEWAY_TRACES"
#define TOPOLOGIES "ONEWAY_TOPOLOGIES"

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"quick", 0, NULL, ow_option_flag, FIELD(quick),
         "Use fewer runs and smaller streams: seconds instead of minutes."},
	{"output", 'o', "DIR", ow_option_text, FIELD(directory),
         "Folder of NAME.csv and NAME.svg; it is created if it does not exist (default: figures)."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Another seed gives another sample (default: 1)."},
	{"traces", 0, "DIR", ow_option_text, FIELD(traces),
         "Captures that COLATE's figures take besides made traffic (default: $" TRACES ", if it is set)."},
	{"topologies", 0, "DIR", ow_option_text, FIELD(topologies),
         "Rocketfuel's maps, rocketfuel-AS.weights.intra, that MPLANE's figures take (default: $" TOPOLOGIES
         ", if it is set)."},
	{"no-plots", 0, NULL, ow_option_flag, FIELD(no_plots), "Write only CSV: gnuplot is not needed."},
	{"check", 0, NULL, ow_option_flag, FIELD(check), "Exit code 3 when a number does not agree with the paper's."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway reproduce [OPTION]... [FIGURE|PAPER|all]...\n"
	      "\n"
	      "Recomputes figures and tables of the papers on LDA, FineComb, RDA, COLATE and\n"
	      "MPLANE, and prints what the paper says beside our number. Without a figure,\n"
	      "lists them. PAPER: lda, finecomb, rda, colate, mplane.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway reproduce                     which figures there are\n"
	      "  oneway reproduce lda-4a              one figure, into figures/\n"
	      "  oneway reproduce all --quick -o /tmp/figures\n"
	      "  oneway reproduce rda --check || echo a claim of the paper does not hold\n",
	      stdout);
}

struct job {
	const struct arguments *args;
	struct ow_json json;
	bool disagrees, no_gnuplot;
};

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int draw(struct job *job, const struct ow_figure_run *run, const char *path, struct ow_figure_outcome *outcome,
                struct ow_error *err)
{
	if (job->args->no_plots || job->no_gnuplot || !ow_figure_points(run))
		return 0;
	int r = ow_figure_write_plot(run, path, err);
	if (r == -ENOENT) {
		/* The numbers are the main result: print one warning about the missing plots and continue. */
		ow_cli_say("oneway reproduce: warning: %s", err->text);
		job->no_gnuplot = true;
		return 0;
	}
	if (r == 0)
		outcome->plot = path;
	return r;
}

static int one(struct job *job, const struct ow_figure *figure, struct ow_error *err)
{
	const struct arguments *args = job->args;
	struct ow_progress progress;
	ow_progress_init(&progress, figure->name);
	struct ow_figure_options o = {args->quick, args->seed,   ow_progress_show,
	                              &progress,   args->traces, args->topologies};
	struct ow_figure_run *run;
	double start_s = now_s();
	int r = ow_figure_compute(figure, &o, &run, err);
	ow_progress_done(&progress);
	if (r < 0)
		return r;
	char csv[4200], plot[4200];
	snprintf(csv, sizeof csv, "%s/%s.csv", args->directory, figure->name);
	snprintf(plot, sizeof plot, "%s/%s.svg", args->directory, figure->name);
	struct ow_figure_outcome outcome = {figure, run, now_s() - start_s, csv, NULL};
	r = ow_figure_write_csv(run, csv, err);
	if (r == 0)
		r = draw(job, run, plot, &outcome, err);
	if (r == 0) {
		size_t claims;
		const struct ow_figure_claim *claim = ow_figure_claims(run, &claims);
		for (size_t i = 0; i < claims; i++)
			job->disagrees |= !claim[i].agrees;
		if (args->json)
			ow_report_figure_json(&job->json, &outcome);
		else
			ow_report_figure_text(stdout, &outcome, ow_terminal_width(stdout));
		fflush(stdout);
	}
	ow_figure_free(run);
	return r;
}

static int reproduce(struct job *job, char **word, int words, struct ow_error *err)
{
	const char *directory = job->args->directory;
	if (strlen(directory) > 4000)
		return ow_error_set(err, ENAMETOOLONG, "%.60s...: %s", directory, strerror(ENAMETOOLONG));
	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		return ow_error_set(err, errno, "%s: %s", directory, strerror(errno));
	int r = 0;
	if (job->args->json)
		ow_report_figures_begin(stdout, &job->json, job->args->seed, job->args->quick);
	for (const struct ow_figure *const *set = ow_figure_sets; *set && r == 0; set++) {
		for (const struct ow_figure *f = *set; f->name && r == 0; f++) {
			if (ow_figure_chosen(f, word, words))
				r = one(job, f, err);
		}
	}
	if (job->args->json && r == 0)
		ow_report_figures_end(&job->json);
	else if (r == 0 && job->disagrees)
		fputs("'ours !' marks what does not agree with the paper; docs/reproduction.md explains each case\n",
		      stdout);
	return r;
}

int ow_cli_reproduce(int argc, char **argv)
{
	struct arguments args = {
		.directory = "figures", .traces = getenv(TRACES), .topologies = getenv(TOPOLOGIES), .seed = 1};
	struct ow_error err;
	int words = ow_options_parse(options, argc, argv, &args, &err);
	if (words >= 0 && ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (words > 0 && ow_figure_check_words(argv + 1, words, &err) < 0)
		words = -EINVAL;
	if (words < 0)
		return ow_cli_refused("reproduce", words, &err);
	if (words == 0) {
		(args.json ? ow_report_figures_json : ow_report_figures_text)(stdout);
		return OW_EXIT_OK;
	}
	struct job job = {.args = &args};
	if (reproduce(&job, argv + 1, words, &err) < 0)
		return ow_cli_failed("reproduce", &err);
	return args.check && job.disagrees ? OW_EXIT_CROSSED : OW_EXIT_OK;
}
