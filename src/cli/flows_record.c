/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows record CAPTURE: the packets of a capture into a file of epochs. */
#include "cli/flows.h"

#include "base/time.h"
#include "base/word.h"
#include "capture/file/reader.h"
#include "cli/captures.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "config/config.h"
#include "flows/flow_recorder.h"
#include "flows/flow_stamper.h"
#include "flows/epochs.h"
#include "base/json_writer.h"
#include "base/format.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND "flows record"
/* Bytes of a packet that its id takes: headers and some payload, so that also cut captures can be recorded. */
#define ID_BYTES 64
#define WIRE_MAX 1500 /* IP packets that are longer were not on most wires */
#define WARNINGS 8

/* Columns of what stands before a line's text. */
#define LABEL 12

struct arguments {
	const char *out, *filter;
	bool append, no_counts, inner, any_ip_id, json, quiet, help, version;
	enum ow_level level;
	struct ow_flow_select select;
	const char *class_filter[OW_FLOW_CLASSES_MAX];
	struct ow_colate_plan plan;
	uint64_t stddev, stddev_spread, counters, spread, vectors, bits, check_bits, count_bits, seed, id_bytes,
		segment_bytes, threshold, flows_max;
	int64_t interval_ns, unit_ns;
	const char *path;
};

#define FIELD(name) offsetof(struct arguments, name)

static int set_key(void *field, const char *value, struct ow_error *err)
{
	struct ow_flow_select *select = field, parsed;
	int r = ow_flow_select_parse(value, &parsed, err);
	if (r < 0)
		return r;
	/* Classes may have been named before. */
	select->by = parsed.by;
	select->prefix4 = parsed.prefix4;
	select->prefix6 = parsed.prefix6;
	return 0;
}

/* NAME=FILTER, or NAME alone for all the rest. */
static int set_class(void *field, const char *value, struct ow_error *err)
{
	struct arguments *args = field;
	struct ow_flow_select *select = &args->select;
	const char *equals = strchr(value, '=');
	size_t length = equals ? (size_t)(equals - value) : strlen(value);
	if (select->classes == OW_FLOW_CLASSES_MAX)
		return ow_error_set(err, EINVAL, "more than %d classes", OW_FLOW_CLASSES_MAX);
	if (!length || length >= OW_FLOW_CLASS_NAME || (equals && !equals[1]))
		return ow_error_set(err, EINVAL, "'%.60s' is not NAME=FILTER", value);
	memcpy(select->class_name[select->classes], value, length);
	args->class_filter[select->classes++] = equals ? equals + 1 : NULL;
	return 0;
}

static int set_form(void *field, const char *value, struct ow_error *err)
{
	return ow_colate_form_parse(value, field, err);
}

static int set_level(void *field, const char *value, struct ow_error *err)
{
	enum ow_level level = OW_LEVEL_AUTO;
	int r = ow_option_level(&level, value, err);
	if (r == 0 && level == OW_LEVEL_AUTO)
		return ow_error_set(err, EINVAL, "one capture alone does not show which: ip, nat or frame");
	if (r == 0)
		*(enum ow_level *)field = level;
	return r;
}

static const struct ow_option options[] = {
	{"out", 'o', "FILE", ow_option_output, FIELD(out), "The file of epochs (needed)."},
	{"append", 0, NULL, ow_option_flag, FIELD(append), "Continue FILE, if it is there; else it is replaced."},

	{NULL, 0, NULL, NULL, 0, "What is recorded; all points that are compared do the same:"},
	{"key", 0, "KEY", set_key, FIELD(select),
         "What a flow is: five-tuple (default), addresses, prefix:24,48 (of IPv4, IPv6) or class."},
	{"class", 0, "NAME=FILTER", set_class, 0,
         "With --key class, in this order: a class and its packets (pcap-filter(7)); NAME alone takes the rest."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter),
         "Only packets of this filter: those that pass both points, in one direction."},
	{"level", 0, "LEVEL", set_level, FIELD(level), "What counts as the same packet: ip (default), nat or frame."},
	{"inner", 0, NULL, ow_option_flag, FIELD(inner), "Enter tunnels (GRE, VXLAN, Geneve, GTP-U, IP in IP)."},
	{"any-ip-id", 0, NULL, ow_option_flag, FIELD(any_ip_id),
         "The IPv4 identification is rewritten on the way: leave it out."},
	{"id-bytes", 0, "N", ow_option_count, FIELD(id_bytes),
         "Bytes from the IP header on that tell packets apart (default 64); captures cut shorter need less."},
	{"segment-size", 0, "N", ow_option_count, FIELD(segment_bytes),
         "Cut TCP superframes of a host's own capture into segments with N bytes of payload, as the wire has them."},

	{NULL, 0, NULL, NULL, 0, "How:"},
	{"counters", 'n', "N", ow_option_count, FIELD(counters),
         "In all, whatever the number of banks (default 65536)."},
	{"form", 0, "FORM", set_form, FIELD(plan.form),
         "banks (default), colate, or colate-random, which is COLATE as printed."},
	{"banks", 'k', "K", ow_option_count, FIELD(spread), "Banks, each with a counter of every flow (default 3)."},
	{"spread", 'm', "M", ow_option_count, FIELD(spread), "With colate: counters a flow (default 20)."},
	{"bits", 0, "B", ow_option_count, FIELD(bits), "Of a counter, 8 to 64 (default 48)."},
	{"check-bits", 0, "B", ow_option_count, FIELD(check_bits),
         "Of each counter's check, which shows that it lost a packet, 0 to 32 (default 16)."},
	{"count-bits", 0, "B", ow_option_count, FIELD(count_bits),
         "Of each counter's packet count, 0 to 32 (default 0)."},
	{"vectors", 0, "V", ow_option_count, FIELD(vectors),
         "Divide the counters among V vectors that take a half, a quarter, ... of the packets, against losses."},
	{"stddev", 0, "N", ow_option_count, FIELD(stddev),
         "N more counters in COLATE's form, with packet counts, for the deviation within flows."},
	{"stddev-spread", 0, "M", ow_option_count, FIELD(stddev_spread), "Of these, M a flow (default 16)."},
	{"unit", 0, "D", ow_option_positive_duration, FIELD(unit_ns), "Unit of time (default 1ns)."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Of all hashes (default 1)."},

	{NULL, 0, NULL, NULL, 0, "Epochs; without these, one:"},
	{"interval", 0, "D", ow_option_positive_duration, FIELD(interval_ns), "End at multiples of D of Unix time."},
	{"threshold", 'T', "T", ow_option_count, FIELD(threshold),
         "End when the sum of times since an epoch's start, in units, reaches T ('oneway flows size' gives it)."},

	{NULL, 0, NULL, NULL, 0, "Flow counts:"},
	{"no-counts", 0, NULL, ow_option_flag, FIELD(no_counts),
         "Do not count packets of flows; a query then needs counts from elsewhere."},
	{"flows-max", 0, "N", ow_option_count, FIELD(flows_max),
         "Most flows that are counted in an epoch (default 67108864)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "A JSON object instead of text."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "No text, only errors."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway flows record [OPTION]... -o FILE CAPTURE\n"
	      "\n"
	      "Adds the time of every packet to a few of the counters that all flows share, and\n"
	      "counts the packets of each flow. Two such files of the same packets, recorded at\n"
	      "two points, tell how long each flow's packets took between them ('oneway flows\n"
	      "query').\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway flows record a.pcap -o a.epochs --counters 50k\n"
	      "  oneway flows record b.pcapng.gz -o b.epochs --counters 50k --interval 60s\n"
	      "  oneway flows record a.pcap -o a.epochs --filter 'src net 10.1.0.0/16'\n"
	      "  oneway flows record a.pcap -o a.epochs --key class \\\n"
	      "      --class voice='udp port 5060' --class rest\n"
	      "  oneway flows record a.pcap -o a.epochs --form colate --spread 20 --bits 40\n",
	      stdout);
}

/* -- arguments -----------------------------------------------------------------------------------------------------
 */

static int within(const char *option, uint64_t value, uint64_t most, struct ow_error *err)
{
	if (value > most)
		return ow_error_set(err, EINVAL, "--%s: %" PRIu64 " is more than %" PRIu64, option, value, most);
	return 0;
}

/* The limits are those of a recording in a configuration. */
static int check_numbers(const struct arguments *args, struct ow_error *err)
{
	const struct {
		const char *option, *key;
		uint64_t value;
	} numbers[] = {
		{"counters", "counters", args->counters},
		{args->plan.form == OW_COLATE_BANKS ? "banks" : "spread", "spread", args->spread},
		{"vectors", "vectors", args->vectors},
		{"stddev", "stddev", args->stddev},
		{"stddev-spread", "stddev_spread", args->stddev_spread},
		{"bits", "bits", args->bits},
		{"check-bits", "check_bits", args->check_bits},
		{"count-bits", "count_bits", args->count_bits},
		{"id-bytes", "id_bytes", args->id_bytes},
		{"flows-max", "flows_max", args->flows_max},
	};
	int r = within("segment-size", args->segment_bytes, UINT16_MAX, err);
	if (r == 0)
		r = within("unit", (uint64_t)args->unit_ns, UINT32_MAX, err);
	for (size_t i = 0; r == 0 && i < sizeof numbers / sizeof *numbers; i++)
		r = within(numbers[i].option, numbers[i].value, ow_key_find(ow_flows_keys, numbers[i].key)->most, err);
	return r;
}

static int make_info(struct arguments *args, struct ow_epoch_info *ret_info, struct ow_error *err)
{
	struct ow_colate_plan *plan = &args->plan;
	int r = check_numbers(args, err);
	if (r < 0)
		return r;
	plan->counters = (uint32_t)args->counters;
	plan->spread = (uint32_t)args->spread;
	plan->vectors = (uint32_t)args->vectors;
	plan->stddev_counters = (uint32_t)args->stddev;
	plan->stddev_spread = (uint32_t)args->stddev_spread;
	plan->bits = (uint8_t)args->bits;
	plan->check_bits = (uint8_t)args->check_bits;
	plan->count_bits = (uint8_t)args->count_bits;
	plan->unit_ns = (uint32_t)args->unit_ns;
	plan->seed = args->seed;
	*ret_info = (struct ow_epoch_info){
		.select = args->select,
		.level = args->level,
		.inner = args->inner,
		.any_ip_id = args->any_ip_id,
		.id_bytes = (uint32_t)args->id_bytes,
		.interval_ns = args->interval_ns,
		.counts = !args->no_counts,
	};
	r = ow_colate_plan_params(plan, &ret_info->params, err);
	return r < 0 ? r : ow_epoch_info_check(ret_info, err);
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_epoch_info *ret_info,
                          struct ow_error *err)
{
	*args = (struct arguments){.level = OW_LEVEL_IP, .id_bytes = ID_BYTES, .select.by = OW_FLOW_BY_FIVE_TUPLE};
	struct ow_colate_plan *plan = &args->plan;
	ow_colate_plan_defaults(plan);
	args->counters = plan->counters;
	args->vectors = plan->vectors;
	args->bits = plan->bits;
	args->check_bits = plan->check_bits;
	args->unit_ns = plan->unit_ns;
	args->seed = plan->seed;
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands != 1)
		return ow_error_set(err, EINVAL, "needs one capture, got %d", operands);
	args->path = argv[1];
	if (!args->out)
		return ow_error_set(err, EINVAL, "needs --out FILE");
	if (ow_same_file(args->out, args->path))
		return ow_error_set(err, EINVAL, "--out %.200s would overwrite the capture", args->out);
	if (args->select.classes && args->select.by != OW_FLOW_BY_CLASS)
		return ow_error_set(err, EINVAL, "--class needs --key class");
	return make_info(args, ret_info, err);
}

/* -- recording -----------------------------------------------------------------------------------------------------
 */

struct record {
	struct arguments args;
	struct ow_epoch_info info;
	struct ow_reader *reader;
	struct ow_flow_stamper *stamper;
	struct ow_flow_recorder *recorder;
	struct ow_epochs_writer *writer;
	struct ow_progress progress;
	uint64_t epochs, packets, flows_most, uncounted;
	int64_t first_ns, last_ns;
	uint64_t counter_bytes, count_bytes;
	struct ow_error warning[WARNINGS];
	unsigned warnings;
};

static int on_epoch(void *arg, struct ow_epoch *epoch, struct ow_error *err)
{
	struct record *rec = arg;
	struct ow_epoch_cost cost;
	int r = ow_epochs_append(rec->writer, epoch, &cost, err);
	if (r < 0)
		return r;
	int64_t first = ow_colate_first_ns(epoch->colate), last = ow_colate_last_ns(epoch->colate);
	rec->first_ns = !rec->epochs || first < rec->first_ns ? first : rec->first_ns;
	rec->last_ns = !rec->epochs || last > rec->last_ns ? last : rec->last_ns;
	rec->epochs++;
	rec->packets += ow_colate_packets(epoch->colate);
	rec->counter_bytes += cost.counter_bytes;
	rec->count_bytes += cost.count_bytes;
	if (epoch->counts) {
		size_t flows = ow_flow_counts_flows(epoch->counts);
		rec->flows_most = flows > rec->flows_most ? flows : rec->flows_most;
		rec->uncounted += ow_flow_counts_uncounted(epoch->counts);
	}
	return 0;
}

static int record_frames(struct record *rec, const struct ow_frame *frames, int count, struct ow_error *err)
{
	struct ow_flow_stamps stamps;
	int r = ow_flow_stamper_load(rec->stamper, frames, (size_t)count, err);
	while (r == 0) {
		r = ow_flow_stamper_next(rec->stamper, &stamps, err);
		if (r < 0 || !stamps.count)
			break;
		r = ow_flow_recorder_add(rec->recorder, stamps.stamp, stamps.key, stamps.count, err);
	}
	return r;
}

static int record_all(struct record *rec, struct ow_error *err)
{
	struct ow_frame frame[OW_FLOW_STAMPS];
	uint64_t size = ow_reader_info(rec->reader)->size_bytes;
	int r = 0, count = 1;
	for (unsigned batches = 0; r == 0 && !ow_interrupted; batches++) {
		count = ow_reader_read(rec->reader, frame, OW_FLOW_STAMPS, err);
		if (count <= 0)
			break;
		r = record_frames(rec, frame, count, err);
		if (batches % 256 == 0 && size)
			ow_progress_show(&rec->progress, (double)ow_reader_position(rec->reader) / (double)size);
	}
	if (r == 0 && count < 0)
		r = count;
	return r < 0 ? r : ow_flow_recorder_cut(rec->recorder, err);
}

static int open_all(struct record *rec, struct ow_error *err)
{
	const struct arguments *args = &rec->args;
	struct ow_flow_stamper_options stamper = {
		.info = &rec->info, .filter = args->filter, .segment_bytes = (uint32_t)args->segment_bytes};
	struct ow_flow_recorder_options recorder = {
		.info = rec->info,
		.threshold = args->threshold,
		.flows_max = args->flows_max,
		.on_epoch = on_epoch,
		.arg = rec,
	};
	memcpy(stamper.class_filter, args->class_filter, sizeof stamper.class_filter);
	int r = ow_reader_open(args->path, &rec->reader, err);
	if (r == 0)
		r = ow_flow_stamper_create(args->path, &stamper, &rec->stamper, err);
	if (r == 0)
		r = ow_flow_recorder_create(&recorder, &rec->recorder, err);
	/* Last: a file that is there is replaced only if all else is well. */
	return r < 0 ? r : ow_epochs_create(args->out, &rec->info, args->append, &rec->writer, err);
}

static void close_all(struct record *rec)
{
	ow_flow_recorder_free(rec->recorder);
	ow_flow_stamper_free(rec->stamper);
	ow_epochs_writer_free(rec->writer);
	ow_reader_close(rec->reader);
}

/* -- what to say ---------------------------------------------------------------------------------------------------
 */

static void note_warnings(struct record *rec)
{
	const struct ow_flow_stamper_counts *counts = ow_flow_stamper_counts(rec->stamper);
	struct ow_error *next = rec->warning;
	char number[OW_FORMAT];
	if (ow_reader_damage(rec->reader))
		ow_error_set(next++, EIO, "%s", ow_reader_damage(rec->reader));
	if (ow_interrupted)
		ow_error_set(next++, EINTR, "interrupted: the rest of the capture was not read");
	if (counts->below_limit)
		ow_error_set(next++, EINVAL,
		             "%s %s captured too short for an id of %u bytes: use a smaller --id-bytes at "
		             "all points",
		             ow_format_count(counts->below_limit, number),
		             ow_plural(counts->below_limit, "packet was", "packets were"), rec->info.id_bytes);
	if (counts->longest_tcp > WIRE_MAX)
		ow_error_set(
			next++, EINVAL,
			"TCP packets of up to %u bytes: if these are superframes of a host's own capture, "
			"--segment-size cuts them as the wire did (an MTU of 1500 bytes with TCP timestamps: 1448)",
			counts->longest_tcp);
	if (counts->untimed)
		ow_error_set(next++, EINVAL, "%s %s without a time left out", ow_format_count(counts->untimed, number),
		             ow_plural(counts->untimed, "frame", "frames"));
	if (rec->uncounted)
		ow_error_set(next++, ENOSPC, "%s %s of flows beyond --flows-max not counted",
		             ow_format_count(rec->uncounted, number), ow_plural(rec->uncounted, "packet", "packets"));
	rec->warnings = (unsigned)(next - rec->warning);
}

static double per_packet(const struct record *rec, uint64_t bytes)
{
	return rec->packets ? 8.0 * (double)bytes / (double)rec->packets : 0;
}

static uint64_t skipped(const struct ow_flow_stamper_counts *counts)
{
	return counts->not_ip + counts->too_short + counts->below_limit + counts->untimed;
}

static void print_text(const struct record *rec)
{
	const struct ow_flow_stamper_counts *counts = ow_flow_stamper_counts(rec->stamper);
	char a[OW_FORMAT], b[OW_FORMAT], recording[OW_COLATE_TEXT], key[OW_FLOW_SELECT_TEXT], length[OW_DURATION_TEXT];
	ow_colate_params_text(&rec->info.params, recording);
	ow_flow_select_text(&rec->info.select, key);
	ow_duration_text((double)(rec->last_ns - rec->first_ns), length);
	fputs("recording   ", stdout);
	ow_format_wrap(stdout, recording, LABEL, ow_terminal_width(stdout));
	printf("flows       by %s", key);
	if (rec->info.counts)
		printf(", %s%s", rec->epochs > 1 ? "at most " : "", ow_format_count(rec->flows_most, a));
	printf("%s\n", rec->info.counts && rec->epochs > 1 ? " in an epoch" : "");
	printf("packets     %s of %s %s", ow_format_count(rec->packets, a), ow_format_count(counts->frames, b),
	       ow_plural(counts->frames, "frame", "frames"));
	if (counts->pieces)
		printf(" (%s cut from superframes)", ow_format_count(counts->pieces, a));
	if (counts->filtered)
		printf(", %s filtered", ow_format_count(counts->filtered, a));
	if (counts->unclassed)
		printf(", %s in no class", ow_format_count(counts->unclassed, a));
	if (skipped(counts))
		printf(", %s skipped", ow_format_count(skipped(counts), a));
	printf("\n");
	if (rec->packets) {
		printf("time        %s UTC, %s\n", ow_format_time(rec->first_ns, "%Y-%m-%d %H:%M:%S", a), length);
		printf("epochs      %s\n", ow_format_count(rec->epochs, a));
		printf("counters    %.3g bit/packet (%s bytes)\n", per_packet(rec, rec->counter_bytes),
		       ow_format_count(rec->counter_bytes, a));
	}
	if (rec->packets && rec->info.counts)
		printf("flow counts %.3g bit/packet (%s bytes)\n", per_packet(rec, rec->count_bytes),
		       ow_format_count(rec->count_bytes, a));
	for (unsigned i = 0; i < rec->warnings; i++)
		printf("warning: %s\n", rec->warning[i].text);
}

void ow_cli_flows_layers(struct ow_json *json, const struct ow_colate_params *params)
{
	ow_json_array(json, "layers");
	for (uint32_t i = 0; i < params->layers; i++) {
		const struct ow_colate_layer *layer = &params->layer[i];
		ow_json_object(json, NULL);
		ow_json_string(json, "form", ow_colate_form_name(layer->form));
		ow_json_count(json, "counters", layer->counters);
		ow_json_count(json, "spread", layer->spread);
		ow_json_count(json, "bits", layer->bits);
		ow_json_count(json, "check_bits", layer->check_bits);
		ow_json_count(json, "count_bits", layer->count_bits);
		ow_json_flag(json, "signed", layer->is_signed);
		ow_json_number(json, "share", (double)(layer->last - layer->first) / OW_COLATE_SHARE);
		ow_json_end(json);
	}
	ow_json_end(json);
}

static void json_packets(struct ow_json *json, const struct record *rec)
{
	const struct ow_flow_stamper_counts *counts = ow_flow_stamper_counts(rec->stamper);
	ow_json_line(json);
	ow_json_count(json, "frames", counts->frames);
	ow_json_count(json, "packets", rec->packets);
	ow_json_count(json, "pieces", counts->pieces);
	ow_json_count(json, "filtered", counts->filtered);
	ow_json_count(json, "unclassified", counts->unclassed);
	ow_json_count(json, "skipped", skipped(counts));
	ow_json_count(json, "epochs", rec->epochs);
	ow_json_line(json);
	ow_json_integer_if(json, "first_ns", rec->packets, rec->first_ns);
	ow_json_integer_if(json, "last_ns", rec->packets, rec->last_ns);
	if (rec->info.counts) {
		ow_json_count(json, "flows_in_epoch_max", rec->flows_most);
		ow_json_count(json, "uncounted", rec->uncounted);
	}
}

static void json_size(struct ow_json *json, const struct record *rec)
{
	ow_json_line(json);
	ow_json_object(json, "bytes");
	ow_json_count(json, "counters", rec->counter_bytes);
	ow_json_count(json, "flow_counts", rec->count_bytes);
	ow_json_end(json);
	ow_json_object(json, "bits_per_packet");
	ow_json_number(json, "counters", per_packet(rec, rec->counter_bytes));
	ow_json_number(json, "flow_counts", per_packet(rec, rec->count_bytes));
	ow_json_end(json);
}

static void print_json(const struct record *rec)
{
	struct ow_json json = {.out = stdout, .indent = 1};
	char key[OW_FLOW_SELECT_TEXT];
	ow_flow_select_text(&rec->info.select, key);
	ow_json_object(&json, NULL);
	ow_json_command(&json, "flows record");
	ow_json_line(&json);
	ow_json_string(&json, "input", rec->args.path);
	ow_json_string(&json, "output", rec->args.out);
	ow_json_line(&json);
	ow_json_string(&json, "key", key);
	ow_json_count(&json, "seed", rec->info.params.seed);
	ow_json_count(&json, "unit_ns", rec->info.params.unit_ns);
	ow_cli_flows_layers(&json, &rec->info.params);
	json_packets(&json, rec);
	json_size(&json, rec);
	ow_json_line(&json);
	ow_json_array(&json, "warnings");
	for (unsigned i = 0; i < rec->warnings; i++)
		ow_json_string(&json, NULL, rec->warning[i].text);
	ow_json_end(&json);
	ow_json_end(&json);
}

static int run(struct record *rec)
{
	struct ow_error err = {"no reason given"};
	ow_progress_init(&rec->progress, "recording");
	int r = open_all(rec, &err);
	if (r == 0) {
		/* What has been read until then is written. */
		ow_interrupt_catch();
		r = record_all(rec, &err);
	}
	ow_progress_done(&rec->progress);
	if (r < 0)
		return ow_cli_failed(COMMAND, &err);
	note_warnings(rec);
	if (rec->args.json)
		print_json(rec);
	else if (!rec->args.quiet)
		print_text(rec);
	if (!rec->packets) {
		ow_error_set(&err, ENOMSG, "%.200s: no packet was recorded", rec->args.path);
		return ow_cli_failed(COMMAND, &err);
	}
	return OW_EXIT_OK;
}

int ow_cli_flows_record(int argc, char **argv)
{
	struct record *rec = calloc(1, sizeof *rec);
	struct ow_error err;
	if (!rec) {
		ow_error_set(&err, ENOMEM, "not enough memory");
		return ow_cli_failed(COMMAND, &err);
	}
	int code = OW_EXIT_OK, refused = read_arguments(argc, argv, &rec->args, &rec->info, &err);
	if (refused < 0)
		code = ow_cli_refused(COMMAND, refused, &err);
	else if (!ow_cli_answered(rec->args.help, rec->args.version, help)) {
		code = run(rec);
		close_all(rec);
	}
	free(rec);
	return code;
}
