/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet map: the network that packets show. */
#include "base/array.h"
#include "base/clock.h"
#include "base/word.h"
#include "cli/fleet.h"
#include "cli/output.h"
#include "cli/plane.h"
#include "cli/terminal.h"
#include "discovery/join.h"
#include "discovery/sample_file.h"
#include "fleet/discover.h"
#include "report/map.h"
#include "store/stored_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND          "fleet map"
#define CAPTURE_EPOCH_NS INT64_C(1000000000) /* captures are often short */
#define SAMPLES_MAX      1000000             /* messages at once */

struct arguments {
	const char *dir, *topology, *svg, *dot;
	int64_t epoch_ns, default_cost;
	uint64_t records;
	bool json, all, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)
static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"all", 'a', NULL, ow_option_flag, FIELD(all), "Print all pairs of vantages, not only neighbours."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text (docs/json.md)."},
	{"svg", 0, "FILE", ow_option_output, FIELD(svg), "Also draw the network (SVG); - is standard output."},
	{"dot", 0, "FILE", ow_option_output, FIELD(dot), "The same for Graphviz (DOT)."},
	{NULL, 0, NULL, NULL, 0, "Input:"},
	OW_OPTION_DIR(struct arguments),
	{"topology", 't', "FILE", ow_option_text, FIELD(topology),
         "Compare with this network, as 'oneway plane plan' reads it (OSPF's database, GraphML, GML, DOT, Rocketfuel). "
         "Points have the names of its routers."},
	{"default-cost", 0, "N", ow_option_cost, FIELD(default_cost),
         "Cost of links that have none in the topology (default: such links are an error)."},
	{"epoch", 0, "D", ow_option_seconds, FIELD(epoch_ns),
         "Length of the epochs of captures, 0.1 s to 17 s (default 1s). Clocks may differ by less than that."},
	{"records", 'k', "N", ow_option_count, FIELD(records),
         "Packets of each epoch that are sampled from a capture, 16 to 4096 (default 4096)."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway fleet map: the network that packets show\n"
	      "\n"
	      "usage: oneway fleet map [OPTION]...\n"
	      "       oneway fleet map [OPTION]... [NAME=]FILE...\n"
	      "\n"
	      "Prints which points are neighbours, in which order packets pass them, how many\n"
	      "routers lie between, and share of traffic, delay and loss with 95 % intervals.\n"
	      "docs/discovery.md explains it. Without FILE, the samples are those that the\n"
	      "fleet's points have published. Each FILE has the samples of a point (a store, or\n"
	      "messages), or is a capture; NAME is the point of a capture (default: the file's\n"
	      "name).\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "examples:\n"
	      "  oneway fleet map --topology network.dot\n"
	      "  oneway fleet map london.db paris.db rome.db --svg network.svg\n"
	      "  oneway fleet map a=a.pcap b=b.pcap c=c.pcap --epoch 2\n",
	      stdout);
}

/* -- samples -------------------------------------------------------------------------------------------------------- */

struct samples {
	struct ow_vantage_sample *sample;
	size_t count, room;
};

static void samples_done(struct samples *samples)
{
	for (size_t i = 0; i < samples->count; i++)
		ow_vantage_sample_done(&samples->sample[i]);
	free(samples->sample);
}

static int keep(void *arg, struct ow_vantage_sample *sample, struct ow_error *err)
{
	struct samples *samples = arg;
	if (samples->count == SAMPLES_MAX)
		return ow_error_set(err, E2BIG, "more than %d samples", SAMPLES_MAX);
	if (OW_GROW(samples->sample, samples->room, samples->count + 1) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	samples->sample[samples->count++] = *sample;
	sample->record = NULL;
	return 0;
}

static int keep_bytes(void *arg, const uint8_t *bytes, size_t size, struct ow_error *err)
{
	struct ow_vantage_sample sample;
	int r = ow_vantage_sample_decode(bytes, size, &sample, err);
	if (r < 0)
		return r;
	r = keep(arg, &sample, err);
	ow_vantage_sample_done(&sample);
	return r;
}

/* Whether it is SQLite's: a store. */
static bool is_store(const char *path)
{
	static const char magic[16] = "SQLite format 3";
	char head[16] = {0};
	FILE *file = fopen(path, "rb");
	bool is = file && fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof magic) == 0;
	if (file)
		fclose(file);
	return is;
}

/* NAME=FILE; without NAME the last part of the path, without what follows its first dot. */
static const char *split(const char *argument, char name[OW_SAMPLE_NAME])
{
	const char *equals = strchr(argument, '='), *slash = strchr(argument, '/');
	if (equals && equals > argument && (!slash || equals < slash)) {
		snprintf(name, OW_SAMPLE_NAME, "%.*s", (int)(equals - argument), argument);
		return equals + 1;
	}
	slash = strrchr(argument, '/');
	const char *last = slash ? slash + 1 : argument;
	size_t length = strcspn(last + (*last == '.'), ".") + (*last == '.');
	snprintf(name, OW_SAMPLE_NAME, "%.*s", (int)length, last);
	return argument;
}

static int read_one(const struct arguments *args, const char *argument, struct samples *samples, struct ow_error *err)
{
	char name[OW_SAMPLE_NAME];
	const char *path = split(argument, name);
	if (is_store(path))
		return ow_stored_samples_read(path, keep_bytes, samples, err);
	if (ow_sample_file_is(path))
		return ow_sample_file_read(path, keep, samples, err);
	struct ow_sample_capture capture = {
		.path = path, .point = name, .records = (uint32_t)args->records, .epoch_ns = args->epoch_ns};
	int r = ow_sample_capture_read(&capture, keep, samples, err);
	if (r > 0)
		ow_cli_say("oneway " COMMAND ": warning: %s", err->text);
	return r < 0 ? r : 0;
}

static int by_epoch(const void *a, const void *b)
{
	const struct ow_vantage_sample *x = a, *y = b;
	return x->epoch < y->epoch ? -1 : x->epoch > y->epoch;
}

static int join_all(struct samples *samples, struct ow_join **ret_join, struct ow_error *err)
{
	struct ow_join *join;
	int64_t epoch_ns = samples->sample[0].epoch_ns;
	qsort(samples->sample, samples->count, sizeof *samples->sample, by_epoch);
	int r = ow_join_create(epoch_ns, &join);
	for (size_t i = 0; i < samples->count && r == 0; i++) {
		struct ow_vantage_sample *sample = &samples->sample[i];
		if (sample->epoch_ns != epoch_ns) {
			ow_join_free(join);
			return ow_error_set(err, EINVAL,
			                    "samples have epochs of different lengths: they cannot be joined");
		}
		r = ow_join_add(join, sample);
		if (r == 0 && (i + 1 == samples->count || samples->sample[i + 1].epoch != sample->epoch))
			r = ow_join_settle(join, sample->epoch);
	}
	if (r < 0) {
		if (r != -EINVAL)
			ow_join_free(join);
		return ow_error_set(err, -r, "%s", r == -ENOMEM ? "out of memory" : "samples cannot be joined");
	}
	*ret_join = join;
	return 0;
}

/* -- output --------------------------------------------------------------------------------------------------------- */

static int draw(const struct ow_map_view *view, const char *path, bool svg, struct ow_error *err)
{
	struct ow_output output = {0};
	int r = ow_output_open(&output, path, err);
	if (r < 0)
		return r;
	if (!svg)
		ow_report_map_dot(output.stream, view);
	else if (ow_report_map_svg(output.stream, view) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0)
		return ow_output_close(&output, err);
	ow_output_abort(&output);
	return r;
}

static int compare(const struct arguments *args, struct ow_map_view *view, struct ow_disagreement **ret_list,
                   struct ow_error *err)
{
	struct ow_topology *topology;
	int r = ow_topology_read(args->topology, args->default_cost, &topology, err);
	if (r < 0)
		return r;
	r = ow_point_map_compare(view->points, topology, ret_list, &view->disagreements);
	view->disagreement = *ret_list;
	view->compared = true;
	ow_topology_free(topology);
	return r < 0 ? ow_error_set(err, ENOMEM, "out of memory") : 0;
}

static int show(const struct arguments *args, const struct ow_map *map, struct ow_error *err)
{
	struct ow_point_map points;
	struct ow_disagreement *list = NULL;
	if (ow_point_map_make(map, &points) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	struct ow_map_view view = {.map = map, .points = &points, .all = args->all};
	int r = args->topology ? compare(args, &view, &list, err) : 0;
	if (r == 0 && args->svg)
		r = draw(&view, args->svg, true, err);
	if (r == 0 && args->dot)
		r = draw(&view, args->dot, false, err);
	bool taken = ow_output_is_stdout(args->svg) || ow_output_is_stdout(args->dot);
	struct ow_style style = ow_terminal_style(stdout, false);
	if (r == 0 && args->json)
		ow_report_map_json(stdout, &view);
	else if (r == 0 && !taken)
		ow_report_map_text(stdout, &style, &view);
	free(list);
	ow_point_map_done(&points);
	return r;
}

static int map_files(const struct arguments *args, char **argument, int count, struct ow_map *ret_map,
                     struct ow_error *err)
{
	struct samples samples = {.sample = NULL};
	struct ow_join *join = NULL;
	int r = 0;
	for (int i = 0; i < count && r == 0; i++)
		r = read_one(args, argument[i], &samples, err);
	if (r == 0 && samples.count == 0)
		r = ow_error_set(err, ENOMSG, "there are no samples");
	if (r == 0)
		r = join_all(&samples, &join, err);
	samples_done(&samples);
	if (r < 0)
		return r;
	r = ow_join_map(join, ret_map);
	ow_join_free(join);
	return r < 0 ? ow_error_set(err, ENOMEM, "out of memory") : 0;
}

static int map_stream(const struct arguments *args, struct ow_map *ret_map, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_bus *bus = NULL;
	uint64_t wrong = 0;
	int r = ow_fleet_open(ow_cli_fleet_dir(args->dir), &fleet, err);
	if (r == 0)
		r = ow_control_open(fleet, "controller", &bus, err);
	ow_fleet_close(fleet); /* and its lock: others need not wait for the stream */
	if (r == 0)
		r = ow_fleet_map(bus, ow_clock_real_ns(), ret_map, &wrong, err);
	ow_bus_free(bus);
	if (wrong)
		ow_cli_say("oneway " COMMAND
		           ": warning: %ju %s left out: damaged, of a wrong time, of another point, or of other epochs",
		           (uintmax_t)wrong, ow_plural(wrong, "sample was", "samples were"));
	return r;
}

static int run(const struct arguments *args, char **argument, int count, struct ow_error *err)
{
	struct ow_map map;
	int r = count ? map_files(args, argument, count, &map, err) : map_stream(args, &map, err);
	if (r < 0)
		return r;
	r = show(args, &map, err);
	ow_map_done(&map);
	return r;
}

static int check(const struct arguments *args, int operands, struct ow_error *err)
{
	if (operands && args->dir)
		return ow_error_set(err, EINVAL, "--dir and FILE exclude each other");
	if (args->epoch_ns < OW_SAMPLE_EPOCH_MIN_NS || args->epoch_ns > OW_SAMPLE_EPOCH_MAX_NS)
		return ow_error_set(err, EINVAL, "--epoch is 0.1 s to 17 s");
	if (args->records < OW_SAMPLER_RECORDS_MIN || args->records > OW_SAMPLE_RECORDS_MAX)
		return ow_error_set(err, EINVAL, "--records is %d to %d", OW_SAMPLER_RECORDS_MIN,
		                    OW_SAMPLE_RECORDS_MAX);
	if ((args->json || ow_output_is_stdout(args->dot)) &&
	    (ow_output_is_stdout(args->svg) || (args->json && ow_output_is_stdout(args->dot))))
		return ow_error_set(err, EINVAL, "only one output can go to standard output");
	return 0;
}

int ow_cli_fleet_map(int argc, char **argv)
{
	struct arguments args = {.epoch_ns = CAPTURE_EPOCH_NS, .records = OW_SAMPLE_RECORDS_MAX};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (check(&args, operands, &err) < 0)
		return ow_cli_misused(COMMAND, &err);
	return run(&args, argv + 1, operands, &err) < 0 ? ow_cli_failed(COMMAND, &err) : OW_EXIT_OK;
}
