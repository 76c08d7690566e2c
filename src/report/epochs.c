/* SPDX-License-Identifier: Apache-2.0 */
/* A file of epochs: what was recorded, and what a file contains. */
#include "report/epochs.h"

#include "base/format.h"
#include "base/table.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "base/word.h"
#include "synopsis/colate_plan.h"
#include <inttypes.h>

/* Width of the label before the text of a line. */
#define LABEL 12

static void json_layers(struct ow_json *json, const struct ow_colate_params *params)
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

static double per_packet(const struct ow_capture_recorded *rec, uint64_t bytes)
{
	return rec->packets ? 8.0 * (double)bytes / (double)rec->packets : 0;
}

static uint64_t skipped(const struct ow_flow_decoder_counts *counts)
{
	return counts->not_ip + counts->too_short + counts->below_limit + counts->untimed;
}

void ow_report_recorded_text(FILE *out, const struct ow_capture_recording *how, const struct ow_capture_recorded *rec,
                             int width)
{
	const struct ow_flow_decoder_counts *counts = &rec->frames;
	char a[OW_FORMAT], b[OW_FORMAT], recording[OW_COLATE_TEXT], key[OW_FLOW_SELECT_TEXT], length[OW_DURATION_TEXT];
	ow_colate_params_text(&how->info.params, recording);
	ow_flow_select_text(&how->info.select, key);
	ow_duration_text((double)(rec->last_ns - rec->first_ns), length);
	fputs("recording   ", out);
	ow_format_wrap(out, recording, LABEL, width);
	fprintf(out, "flows       by %s", key);
	if (how->info.counts)
		fprintf(out, ", %s%s", rec->epochs > 1 ? "at most " : "", ow_format_count(rec->flows_most, a));
	fprintf(out, "%s\n", how->info.counts && rec->epochs > 1 ? " in an epoch" : "");
	fprintf(out, "packets     %s of %s %s", ow_format_count(rec->packets, a), ow_format_count(counts->frames, b),
	        ow_plural(counts->frames, "frame", "frames"));
	if (counts->pieces)
		fprintf(out, " (%s cut from superframes)", ow_format_count(counts->pieces, a));
	if (counts->filtered)
		fprintf(out, ", %s filtered", ow_format_count(counts->filtered, a));
	if (counts->unclassed)
		fprintf(out, ", %s in no class", ow_format_count(counts->unclassed, a));
	if (skipped(counts))
		fprintf(out, ", %s skipped", ow_format_count(skipped(counts), a));
	fprintf(out, "\n");
	if (rec->packets) {
		fprintf(out, "time        %s UTC, %s\n", ow_format_time(rec->first_ns, "%Y-%m-%d %H:%M:%S", a), length);
		fprintf(out, "epochs      %s\n", ow_format_count(rec->epochs, a));
		fprintf(out, "counters    %.3g bit/packet (%s bytes)\n", per_packet(rec, rec->counter_bytes),
		        ow_format_count(rec->counter_bytes, a));
	}
	if (rec->packets && how->info.counts)
		fprintf(out, "flow counts %.3g bit/packet (%s bytes)\n", per_packet(rec, rec->count_bytes),
		        ow_format_count(rec->count_bytes, a));
	for (unsigned i = 0; i < rec->warnings; i++)
		fprintf(out, "warning: %s\n", rec->warning[i].text);
}

static void json_packets(struct ow_json *json, const struct ow_capture_recorded *rec, bool counted)
{
	const struct ow_flow_decoder_counts *counts = &rec->frames;
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
	if (counted) {
		ow_json_count(json, "flows_in_epoch_max", rec->flows_most);
		ow_json_count(json, "uncounted", rec->uncounted);
	}
}

static void json_size(struct ow_json *json, const struct ow_capture_recorded *rec)
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

void ow_report_recorded_json(FILE *out, const struct ow_capture_recording *how, const struct ow_capture_recorded *rec)
{
	struct ow_json json = {.out = out, .indent = 1};
	char key[OW_FLOW_SELECT_TEXT];
	ow_flow_select_text(&how->info.select, key);
	ow_json_object(&json, NULL);
	ow_json_command(&json, "flows record");
	ow_json_line(&json);
	ow_json_string(&json, "input", how->path);
	ow_json_string(&json, "output", how->out);
	ow_json_line(&json);
	ow_json_string(&json, "key", key);
	ow_json_count(&json, "seed", how->info.params.seed);
	ow_json_count(&json, "unit_ns", how->info.params.unit_ns);
	json_layers(&json, &how->info.params);
	json_packets(&json, rec, how->info.counts);
	json_size(&json, rec);
	ow_json_line(&json);
	ow_json_array(&json, "warnings");
	for (unsigned i = 0; i < rec->warnings; i++)
		ow_json_string(&json, NULL, rec->warning[i].text);
	ow_json_end(&json);
	ow_json_end(&json);
}

enum { LENGTH, PACKETS, BYTES, COLUMNS };

static const struct ow_table_column columns[COLUMNS] = {
	[LENGTH] = {"length", 12, 1}, [PACKETS] = {"packets", 14, 0}, [BYTES] = {"bytes", 14, 2}};
/* Columns of the time when an epoch begins. */
#define BEGIN_MIN 23
#define BEGIN_MAX 27

static void put_epochs(FILE *out, const struct ow_epochs *epochs, int width)
{
	struct ow_table table = {out, columns, COLUMNS, .colour = false};
	unsigned begin = ow_table_fit_name(&table, (unsigned)width, 0, BEGIN_MIN, BEGIN_MAX);
	fprintf(out, "\n%-*s", (int)begin, "begin (UTC)");
	ow_table_titles(&table);
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		char time[OW_FORMAT];
		ow_table_cells cell;
		ow_duration_text((double)(span.end_ns - span.begin_ns), cell[LENGTH]);
		ow_format_count(span.packets, cell[PACKETS]);
		ow_format_count(span.bytes, cell[BYTES]);
		fprintf(out, "%-*s", (int)begin, ow_format_time(span.begin_ns, "%Y-%m-%d %H:%M:%S", time));
		ow_table_row(&table, cell, 0);
	}
}

static const char *level_name(enum ow_level level)
{
	return level == OW_LEVEL_NAT ? "nat" : level == OW_LEVEL_FRAME ? "frame" : "ip";
}

void ow_report_epochs_text(FILE *out, const struct ow_epochs *epochs, bool each, int width)
{
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	struct ow_epochs_span total = ow_epochs_whole(epochs);
	char recording[OW_COLATE_TEXT], key[OW_FLOW_SELECT_TEXT], length[OW_DURATION_TEXT], text[OW_FORMAT];
	ow_colate_params_text(&info->params, recording);
	ow_flow_select_text(&info->select, key);
	fputs("recording   ", out);
	ow_format_wrap(out, recording, LABEL, width);
	fprintf(out, "flows       by %s, %s\n", key, info->counts ? "counted" : "not counted");
	fprintf(out, "packets     by level %s%s%s, %u bytes of each, seed %" PRIu64 "\n", level_name(info->level),
	        info->inner ? ", inside tunnels" : "", info->any_ip_id ? ", any IP id" : "", info->id_bytes,
	        info->params.seed);
	fprintf(out, "epochs      %s", ow_format_count(ow_epochs_count(epochs), text));
	if (info->interval_ns) {
		ow_duration_text((double)info->interval_ns, length);
		fprintf(out, " of %s", length);
	}
	fprintf(out, ", %s %s", ow_format_count(total.packets, text), ow_plural(total.packets, "packet", "packets"));
	fprintf(out, ", %s bytes\n", ow_format_count(total.bytes, text));
	if (ow_epochs_count(epochs)) {
		ow_duration_text((double)(total.end_ns - total.begin_ns), length);
		fprintf(out, "time        %s UTC, %s\n", ow_format_time(total.begin_ns, "%Y-%m-%d %H:%M:%S", text),
		        length);
	}
	if (each && ow_epochs_count(epochs))
		put_epochs(out, epochs, width);
	if (ow_epochs_damage(epochs))
		fprintf(out, "warning: %s\n", ow_epochs_damage(epochs));
}

void ow_report_epochs_json(FILE *out, const struct ow_epochs *epochs)
{
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	struct ow_json json = {.out = out, .indent = 1};
	char key[OW_FLOW_SELECT_TEXT];
	struct ow_epochs_span total = ow_epochs_whole(epochs);
	ow_flow_select_text(&info->select, key);
	ow_json_object(&json, NULL);
	ow_json_command(&json, "flows list");
	ow_json_string(&json, "file", ow_epochs_path(epochs));
	ow_json_line(&json);
	ow_json_string(&json, "key", key);
	ow_json_string(&json, "level", level_name(info->level));
	ow_json_flag(&json, "inner", info->inner);
	ow_json_count(&json, "id_bytes", info->id_bytes);
	ow_json_count(&json, "seed", info->params.seed);
	ow_json_count(&json, "unit_ns", info->params.unit_ns);
	ow_json_integer(&json, "interval_ns", info->interval_ns);
	ow_json_flag(&json, "flow_counts", info->counts);
	ow_json_line(&json);
	json_layers(&json, &info->params);
	ow_json_line(&json);
	ow_json_count(&json, "packets", total.packets);
	ow_json_count(&json, "bytes", total.bytes);
	ow_json_string(&json, "damage", ow_epochs_damage(epochs));
	ow_json_line(&json);
	ow_json_array(&json, "epochs");
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		ow_json_line(&json);
		ow_json_object(&json, NULL);
		ow_json_integer(&json, "begin_ns", span.begin_ns);
		ow_json_integer(&json, "end_ns", span.end_ns);
		ow_json_count(&json, "packets", span.packets);
		ow_json_count(&json, "bytes", span.bytes);
		ow_json_end(&json);
	}
	ow_json_end(&json);
	ow_json_end(&json);
}
