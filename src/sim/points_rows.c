/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/points_rows.h"

#include "base/array.h"
#include "packet/flow.h"
#include "packet/packet.h"
#include "sim/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ow_sim_rows {
	const struct ow_sim_points *points;
	FILE *out; /* NULL: not wanted */
	const char *path;
	struct ow_sim_row *row;
	size_t rows, room;
	uint32_t *free;
	size_t frees, free_room;
};

static void put_header(FILE *out, const struct ow_sim_points *points)
{
	fputs("number,direction,sent_ns,lost_hop,flow", out);
	for (unsigned i = 0; i < points->points; i++)
		fprintf(out, ",number_%s,time_%s_ns", points->point[i].name, points->point[i].name);
	fputc('\n', out);
}

int ow_sim_rows_open(const char *path, const struct ow_sim_points *points, struct ow_sim_rows **ret_rows,
                     struct ow_error *err)
{
	struct ow_sim_rows *rows = calloc(1, sizeof *rows);
	if (!rows)
		return ow_error_set(err, ENOMEM, "out of memory");
	rows->points = points;
	rows->path = path;
	int r = path ? ow_sim_output_open(path, &rows->out, err) : 0;
	if (r < 0) {
		free(rows);
		return r;
	}
	if (rows->out)
		put_header(rows->out, points);
	*ret_rows = rows;
	return 0;
}

/* Of the packet as it was sent. */
static void find_flow(const struct ow_wire *wire, struct ow_flow_key *ret_flow)
{
	struct ow_frame frame = {
		.data = wire->head, .caplen = wire->head_len, .len = ow_wire_len(wire), .linktype = OW_LINKTYPE_RAW};
	struct ow_packet packet;
	*ret_flow = (struct ow_flow_key){0};
	if (!wire->frame && ow_packet_decode(&frame, false, &packet) == OW_DECODE_IP)
		ow_flow_key_of_packet(&packet, ret_flow);
}

struct ow_sim_row *ow_sim_rows_begin(struct ow_sim_rows *rows, struct ow_wire *wire)
{
	if (rows->frees) {
		wire->row = rows->free[--rows->frees];
	} else {
		/* A free list with room for all: a row can always be given back. */
		if (OW_GROW(rows->row, rows->room, rows->rows + 1) < 0 ||
		    OW_GROW(rows->free, rows->free_room, rows->rows + 1) < 0)
			return NULL;
		wire->row = (uint32_t)rows->rows++;
	}
	struct ow_sim_row *row = &rows->row[wire->row];
	*row = (struct ow_sim_row){.number = wire->number, .sent_ns = wire->time_ns, .direction = wire->direction};
	memset(row->point, OW_SIM_NO_POINT, sizeof row->point);
	if (rows->out)
		find_flow(wire, &row->flow);
	return row;
}

struct ow_sim_row *ow_sim_rows_of(struct ow_sim_rows *rows, const struct ow_wire *wire)
{
	return &rows->row[wire->row];
}

static void put_row(const struct ow_sim_rows *rows, const struct ow_sim_row *row)
{
	char flow[OW_FLOW_TEXT];
	ow_flow_key_text(&row->flow, flow);
	fprintf(rows->out, "%" PRIu64 ",%s,%" PRId64 ",", row->number,
	        row->direction == OW_A_TO_B ? "a_to_b" : "b_to_a", row->sent_ns);
	if (row->lost_hop)
		fprintf(rows->out, "%u", row->lost_hop);
	fprintf(rows->out, ",%s", flow);
	for (unsigned i = 0; i < rows->points->points; i++) {
		unsigned place = rows->points->point[i].place;
		bool passed = row->point[place] == i;
		fputc(',', rows->out);
		if (passed && row->record[place])
			fprintf(rows->out, "%" PRIu64, row->record[place]);
		fputc(',', rows->out);
		if (passed)
			fprintf(rows->out, "%" PRId64, row->time_ns[place]);
	}
	fputc('\n', rows->out);
}

void ow_sim_rows_end(struct ow_sim_rows *rows, const struct ow_wire *wire)
{
	if (rows->out)
		put_row(rows, &rows->row[wire->row]);
	rows->free[rows->frees++] = wire->row;
}

void ow_sim_rows_abort(struct ow_sim_rows *rows)
{
	if (!rows)
		return;
	ow_sim_output_close(rows->path, rows->out, NULL);
	free(rows->row);
	free(rows->free);
	free(rows);
}

int ow_sim_rows_close(struct ow_sim_rows *rows, struct ow_error *err)
{
	int r = rows ? ow_sim_output_close(rows->path, rows->out, err) : 0;
	if (rows)
		rows->out = NULL;
	ow_sim_rows_abort(rows);
	return r;
}
