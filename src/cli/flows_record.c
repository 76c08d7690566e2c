/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows record CAPTURE: records the packets of a capture into a file of epochs. */
#include "cli/flows.h"

#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "config/config.h"
#include "report/epochs.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define COMMAND "flows record"
/* Bytes of a packet that enter its id: headers and some payload, so that truncated captures can be recorded as well. */
#define ID_BYTES 64

struct arguments {
	const char *out, *filter;
	bool append, no_counts, inner, any_ip_id, json, quiet, help, version;
	enum ow_level level;
	struct ow_flow_select select;
	const char *class_filter[OW_FLOW_CLASSES_MAX];
	struct ow_colate_plan plan;
	uint64_t stddev, stddev_spread, counters, spread, vectors, bits, check_bits, count_bits, seed, id_bytes,
		segment_bytes, threshold, flows_max, repair;
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
	/* The classes may have been given before the key. */
	select->by = parsed.by;
	select->prefix4 = parsed.prefix4;
	select->prefix6 = parsed.prefix6;
	return 0;
}

/* NAME=FILTER, or NAME alone for all other packets. */
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
		return ow_error_set(err, EINVAL, "one capture does not show which level fits: give ip, nat or frame");
	if (r == 0)
		*(enum ow_level *)field = level;
	return r;
}

static const struct ow_option options[] = {
	{"out", 'o', "FILE", ow_option_output, FIELD(out), "The file of epochs (required)."},
	{"append", 0, NULL, ow_option_flag, FIELD(append),
         "Continue FILE if it exists. Without this option it is replaced."},

	{NULL, 0, NULL, NULL, 0, "What is recorded; points that are compared need the same values:"},
	{"key", 0, "KEY", set_key, FIELD(select),
         "What a flow is: five-tuple (default), addresses, prefix:24,48 (of IPv4, IPv6) or class."},
	{"class", 0, "NAME=FILTER", set_class, 0,
         "With --key class, in this order: a class and its packets (pcap-filter(7)); NAME alone matches all others."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter),
         "Record only packets that match this filter: those that pass both points, in one direction."},
	{"level", 0, "LEVEL", set_level, FIELD(level), "What counts as the same packet: ip (default), nat or frame."},
	{"inner", 0, NULL, ow_option_flag, FIELD(inner), "Enter tunnels (GRE, VXLAN, Geneve, GTP-U, IP in IP)."},
	{"any-ip-id", 0, NULL, ow_option_flag, FIELD(any_ip_id),
         "Leave the IPv4 identification out of the identity, because it is rewritten on the way."},
	{"id-bytes", 0, "N", ow_option_count, FIELD(id_bytes),
         "Bytes from the IP header on that tell packets apart (default 64); captures cut shorter need less."},
	{"segment-size", 0, "N", ow_option_count, FIELD(segment_bytes),
         "Cut TCP superframes of a host's own capture into segments with N bytes of payload, as the wire has them."},

	{NULL, 0, NULL, NULL, 0, "How:"},
	{"counters", 'n', "N", ow_option_count, FIELD(counters),
         "Number of counters of all banks together (default 65536)."},
	{"form", 0, "FORM", set_form, FIELD(plan.form),
         "banks (default), colate, or colate-random, which is COLATE as printed."},
	{"banks", 'k', "K", ow_option_count, FIELD(spread),
         "Number of banks; each flow has one counter in every bank (default 3)."},
	{"spread", 'm', "M", ow_option_count, FIELD(spread), "With colate: counters of each flow (default 20)."},
	{"bits", 0, "B", ow_option_count, FIELD(bits), "Of a counter, 8 to 64 (default 48)."},
	{"check-bits", 0, "B", ow_option_count, FIELD(check_bits),
         "Bits of each counter's check, which detects a lost packet, 0 to 32 (default 16)."},
	{"count-bits", 0, "B", ow_option_count, FIELD(count_bits),
         "Bits of each counter's packet count, 0 to 32 (default 0)."},
	{"vectors", 0, "V", ow_option_count, FIELD(vectors),
         "Divide the counters among V vectors that take a half, a quarter, ... of the packets, against losses."},
	{"stddev", 0, "N", ow_option_count, FIELD(stddev),
         "N more counters in COLATE's form, with packet counts, for the standard deviation within flows."},
	{"stddev-spread", 0, "M", ow_option_count, FIELD(stddev_spread),
         "Each flow uses M of these counters (default 16)."},
	{"repair", 0, "N", ow_option_count, FIELD(repair),
         "Up to N lost packets of an epoch can be taken out of the counters when they are compared (default 8192; 23 "
         "bytes each, with one counter more for 4 of them if there are banks; 0: none)."},
	{"unit", 0, "D", ow_option_positive_duration, FIELD(unit_ns), "Unit of time (default 1ns)."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Seed of all hashes (default 1)."},

	{NULL, 0, NULL, NULL, 0, "Epochs (default: one epoch):"},
	{"interval", 0, "D", ow_option_positive_duration, FIELD(interval_ns),
         "Epochs end at multiples of D of Unix time."},
	{"threshold", 'T', "T", ow_option_count, FIELD(threshold),
         "Epochs end when the sum of times since an epoch's start, in units, reaches T ('oneway flows size' gives "
         "it)."},

	{NULL, 0, NULL, NULL, 0, "Flow counts:"},
	{"no-counts", 0, NULL, ow_option_flag, FIELD(no_counts),
         "Do not count packets of flows; a query then needs counts from elsewhere."},
	{"flows-max", 0, "N", ow_option_count, FIELD(flows_max),
         "Largest number of flows that are counted in an epoch (default 67108864)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a JSON object instead of text."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Print only errors."},
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

static int within(const char *option, uint64_t value, uint64_t most, struct ow_error *err)
{
	if (value > most)
		return ow_error_set(err, EINVAL, "--%s: %" PRIu64 " is more than %" PRIu64, option, value, most);
	return 0;
}

/* The limits are the same as for a recording in a configuration. */
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
		{"repair", "repair", args->repair},
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
	plan->repair = (uint32_t)args->repair;
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
	args->repair = plan->repair;
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

static int run(const struct arguments *args, const struct ow_epoch_info *info)
{
	struct ow_error err = {"no reason given"};
	struct ow_progress progress;
	struct ow_capture_recorded recorded;
	struct ow_capture_recording how = {
		.path = args->path,
		.out = args->out,
		.append = args->append,
		.info = *info,
		.filter = args->filter,
		.segment_bytes = (uint32_t)args->segment_bytes,
		.threshold = args->threshold,
		.flows_max = args->flows_max,
		.on_opened = ow_interrupt_catch,
		.on_progress = ow_progress_show,
		.arg = &progress,
		.stop = &ow_interrupted,
	};
	memcpy(how.class_filter, args->class_filter, sizeof how.class_filter);
	ow_progress_init(&progress, "recording");
	int r = ow_capture_record(&how, &recorded, &err);
	ow_progress_done(&progress);
	if (r < 0)
		return ow_cli_failed(COMMAND, &err);
	if (args->json)
		ow_report_recorded_json(stdout, &how, &recorded);
	else if (!args->quiet)
		ow_report_recorded_text(stdout, &how, &recorded, ow_terminal_width(stdout));
	if (!recorded.packets) {
		ow_error_set(&err, ENOMSG, "%.200s: no packet was recorded", args->path);
		return ow_cli_failed(COMMAND, &err);
	}
	return OW_EXIT_OK;
}

int ow_cli_flows_record(int argc, char **argv)
{
	struct arguments args;
	struct ow_epoch_info info;
	struct ow_error err;
	int refused = read_arguments(argc, argv, &args, &info, &err);
	if (refused < 0)
		return ow_cli_refused(COMMAND, refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	return run(&args, &info);
}
