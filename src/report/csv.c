/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CSV row for each packet, as docs/csv.md describes it. Written without printf: a row costs about as much as
 * matching its packet, and with printf ten times that.
 */
#include "estimate/packet_event.h"
#include "base/format.h"
#include "base/time.h"
#include "packet/flow.h"
#include "path/path.h"
#include "report/report.h"

#include <arpa/inet.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Longest row: 15 numbers of up to 21 digits, two IPv6 addresses, two times, names, commas: below 500 bytes. */
#define ROW_MAX        512
#define NAME_MAX_BYTES 64
#define NAME_ROOM      (NAME_MAX_BYTES + 4) /* with a place */
/* Of a path: two numbers and two times for each point, and the name of one. */
#define PATH_ROW_MAX (ROW_MAX + NAME_ROOM + OW_PATH_POINTS * 100)

static char *put_text(char *p, const char *text)
{
	return mempcpy(p, text, strlen(text));
}

static char *put_number(char *p, uint64_t value)
{
	char digits[20];
	int n = 0;
	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static char *put_signed(char *p, int64_t value)
{
	if (value >= 0)
		return put_number(p, (uint64_t)value);
	*p++ = '-';
	return put_number(p, -(uint64_t)value);
}

static char *put_mac(char *p, const uint8_t *mac)
{
	static const char hex[] = "0123456789abcdef";
	for (int i = 0; i < 6; i++) {
		if (i)
			*p++ = ':';
		*p++ = hex[mac[i] >> 4];
		*p++ = hex[mac[i] & 15];
	}
	return p;
}

static char *put_address(char *p, const struct ow_flow_key *flow, const uint8_t *address)
{
	char text[INET6_ADDRSTRLEN];
	switch (flow->version) {
	case 4:
		for (int i = 0; i < 4; i++) {
			if (i)
				*p++ = '.';
			p = put_number(p, address[i]);
		}
		return p;
	case 6:
		return put_text(p, inet_ntop(AF_INET6, address, text, sizeof text) ? text : "");
	default:
		return put_mac(p, address);
	}
}

/* proto,src,sport,dst,dport: the IP protocol number, or 0x and the EtherType for frames that are not IP. */
static char *put_flow(char *p, const struct ow_flow_key *flow)
{
	static const char hex[] = "0123456789abcdef";
	if (flow->version) {
		p = put_number(p, flow->proto);
	} else {
		p = put_text(p, "0x");
		for (int shift = 12; shift >= 0; shift -= 4)
			*p++ = hex[flow->ethertype >> shift & 15];
	}
	*p++ = ',';
	p = put_address(p, flow, flow->src);
	*p++ = ',';
	p = put_number(p, flow->sport);
	*p++ = ',';
	p = put_address(p, flow, flow->dst);
	*p++ = ',';
	return put_number(p, flow->dport);
}

void ow_report_csv_header(FILE *out)
{
	fputs("fate,direction,ambiguous,number_a,number_b,time_a_ns,time_b_ns,delay_ns,packets,bytes,proto,src,sport,"
	      "dst,dport,delay_least_ns,delay_most_ns,protocol_name,time_a_utc,time_b_utc,after_a_s,after_b_s,"
	      "resends\n",
	      out);
}

/* The same as a name; the number if it has none. */
static char *put_protocol(char *p, const struct ow_flow_key *flow)
{
	char name[OW_PROTOCOL_TEXT];
	return put_text(p, ow_flow_protocol_text(flow, name));
}

static char *put_digits(char *p, uint32_t value, unsigned digits)
{
	for (unsigned i = digits; i-- > 0; value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + digits;
}

/* 2023-11-14T22:13:20.000000000 (ISO 8601): spreadsheets take it for a date, but with a Z for a text. */
static char *put_time(char *p, int64_t time_ns)
{
	time_t seconds = (time_t)ow_floor_div(time_ns, OW_NS_PER_S);
	struct tm tm;
	if (!gmtime_r(&seconds, &tm))
		return p;
	const struct {
		int value, digits;
		char end;
	} parts[] = {{tm.tm_year + 1900, 4, '-'}, {tm.tm_mon + 1, 2, '-'}, {tm.tm_mday, 2, 'T'},
	             {tm.tm_hour, 2, ':'},        {tm.tm_min, 2, ':'},     {tm.tm_sec, 2, '.'}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		p = put_digits(p, (uint32_t)parts[i].value, (unsigned)parts[i].digits);
		*p++ = parts[i].end;
	}
	return put_digits(p, (uint32_t)((uint64_t)time_ns - (uint64_t)seconds * (uint64_t)OW_NS_PER_S), 9);
}

/* Seconds with nine decimals. */
static char *put_seconds(char *p, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	if (ns < 0)
		*p++ = '-';
	p = put_number(p, size / (uint64_t)OW_NS_PER_S);
	*p++ = '.';
	return put_digits(p, (uint32_t)(size % (uint64_t)OW_NS_PER_S), 9);
}

/* Times for people and spreadsheets: with a date, and after the first row. */
static char *put_times(char *p, const struct ow_packet_event *event, int64_t from_ns)
{
	for (int side = 0; side < OW_SIDES; side++) {
		*p++ = ',';
		if (event->number[side])
			p = put_time(p, event->time_ns[side]);
	}
	for (int side = 0; side < OW_SIDES; side++) {
		*p++ = ',';
		if (event->number[side])
			p = put_seconds(p, (int64_t)((uint64_t)event->time_ns[side] - (uint64_t)from_ns));
	}
	return p;
}

void ow_report_csv_packet(FILE *out, const struct ow_packet_event *event, int64_t from_ns)
{
	char row[ROW_MAX], *p = row;
	p = put_text(p, ow_fate_name[event->fate]);
	*p++ = ',';
	if (event->fate != OW_FATE_UNCLASSIFIED && event->direction < OW_DIRECTIONS)
		p = put_text(p, ow_direction_name[event->direction]);
	*p++ = ',';
	*p++ = event->ambiguous ? '1' : '0';
	for (int side = 0; side < OW_SIDES; side++) {
		*p++ = ',';
		if (event->number[side])
			p = put_number(p, event->number[side]);
	}
	for (int side = 0; side < OW_SIDES; side++) {
		*p++ = ',';
		if (event->number[side])
			p = put_signed(p, event->time_ns[side]);
	}
	*p++ = ',';
	int64_t delay;
	bool known = ow_event_delay(event, &delay);
	if (known)
		p = put_signed(p, delay);
	*p++ = ',';
	p = put_number(p, event->packets);
	*p++ = ',';
	p = put_number(p, event->bytes);
	*p++ = ',';
	p = event->flow ? put_flow(p, event->flow) : put_text(p, ",,,,");
	*p++ = ',';
	if (known)
		p = put_signed(p, (int64_t)((uint64_t)delay - (uint64_t)event->less_ns));
	*p++ = ',';
	if (known)
		p = put_signed(p, (int64_t)((uint64_t)delay + (uint64_t)event->more_ns));
	*p++ = ',';
	if (event->flow)
		p = put_protocol(p, event->flow);
	p = put_times(p, event, from_ns);
	*p++ = ',';
	if (event->resends)
		p = put_number(p, event->resends);
	*p++ = '\n';
	fwrite(row, 1, (size_t)(p - row), out);
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

/* Fields are never quoted: other letters of a name become _. */
static char letter_of(char c)
{
	bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("-.:_", c);
	return plain ? c : '_';
}

static bool same_letters(const char *a, const char *b)
{
	int i = 0;
	while (i < NAME_MAX_BYTES && a[i] && b[i] && letter_of(a[i]) == letter_of(b[i]))
		i++;
	return i == NAME_MAX_BYTES || (!a[i] && !b[i]);
}

/* The name of a point; with its place, if the name of an earlier one has the same letters. */
static char *put_name(char *p, const struct ow_path_report *path, unsigned point)
{
	const char *name = path->point[point].name;
	unsigned before = 0;
	for (int i = 0; i < NAME_MAX_BYTES && name[i]; i++)
		*p++ = letter_of(name[i]);
	while (before < point && !same_letters(path->point[before].name, name))
		before++;
	if (before == point)
		return p;
	*p++ = ':';
	return put_number(p, point + 1);
}

void ow_report_csv_path_header(FILE *out, const struct ow_path_report *path)
{
	char name[NAME_ROOM];
	fputs("fate,direction,ambiguous,last_seen,delay_ns,packets,bytes,proto,src,sport,dst,dport", out);
	for (unsigned i = 0; i < path->points; i++) {
		*put_name(name, path, i) = 0;
		fprintf(out, ",number_%s,time_%s_ns", name, name);
	}
	fputs(",protocol_name", out);
	for (unsigned i = 0; i < path->points; i++) {
		*put_name(name, path, i) = 0;
		fprintf(out, ",time_%s_utc", name);
	}
	for (unsigned i = 0; i < path->points; i++) {
		*put_name(name, path, i) = 0;
		fprintf(out, ",after_%s_s", name);
	}
	fputc('\n', out);
}

void ow_report_csv_path_packet(FILE *out, const struct ow_path_report *path, const struct ow_path_packet *packet,
                               int64_t from_ns)
{
	char row[PATH_ROW_MAX], *p = row;
	unsigned last = path->points - 1;
	uint32_t both = UINT32_C(1) << last | 1;
	p = put_text(p, ow_fate_name[packet->fate]);
	*p++ = ',';
	if (packet->direction < OW_DIRECTIONS)
		p = put_text(p, ow_direction_name[packet->direction]);
	*p++ = ',';
	*p++ = packet->ambiguous ? '1' : '0';
	*p++ = ',';
	if (ow_path_last_seen(packet) >= 0)
		p = put_name(p, path, (unsigned)ow_path_last_seen(packet));
	*p++ = ',';
	if (packet->fate == OW_FATE_MATCHED && (packet->seen & both) == both) {
		uint64_t delay = (uint64_t)packet->time_ns[last] - (uint64_t)packet->time_ns[0];
		p = put_signed(p, (int64_t)(packet->direction == OW_B_TO_A ? -delay : delay));
	}
	*p++ = ',';
	p = put_number(p, packet->packets);
	*p++ = ',';
	p = put_number(p, packet->bytes);
	*p++ = ',';
	p = put_flow(p, packet->flow);
	for (unsigned i = 0; i < path->points; i++) {
		bool seen = packet->seen >> i & 1;
		*p++ = ',';
		if (seen)
			p = put_number(p, packet->number[i]);
		*p++ = ',';
		if (seen)
			p = put_signed(p, packet->time_ns[i]);
	}
	*p++ = ',';
	p = put_protocol(p, packet->flow);
	for (unsigned i = 0; i < path->points; i++) {
		*p++ = ',';
		if (packet->seen >> i & 1)
			p = put_time(p, packet->time_ns[i]);
	}
	for (unsigned i = 0; i < path->points; i++) {
		*p++ = ',';
		if (packet->seen >> i & 1)
			p = put_seconds(p, (int64_t)((uint64_t)packet->time_ns[i] - (uint64_t)from_ns));
	}
	*p++ = '\n';
	fwrite(row, 1, (size_t)(p - row), out);
}

/* -- intervals ---------------------------------------------------------------------------------------------------- */

static void put_interval(FILE *out, const struct ow_match_report *report, size_t number, enum ow_direction direction)
{
	const struct ow_interval *interval = &report->interval[number];
	int64_t from_ns = report->interval[0].start_ns;
	const struct ow_percentile *percentile =
		report->interval_percentile
			? &report->interval_percentile[(number * OW_DIRECTIONS + direction) * report->percentiles]
			: NULL;
	const struct ow_result *r = &interval->direction[direction];
	const struct ow_delay *delay = &r->delay;
	const uint64_t counts[] = {r->sent,       r->received,  r->matched,   r->lost,       r->extra,
	                           r->duplicated, r->ambiguous, r->reordered, delay->samples};
	char row[ROW_MAX], *p = put_time(row, interval->start_ns);
	*p++ = ',';
	p = put_signed(p, interval->start_ns);
	*p++ = ',';
	p = put_seconds(p, interval->start_ns - from_ns);
	*p++ = ',';
	p = put_text(p, ow_direction_name[direction]);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		*p++ = ',';
		p = put_number(p, counts[i]);
	}
	fwrite(row, 1, (size_t)(p - row), out);
	const double numbers[] = {r->sent ? (double)r->lost / (double)r->sent : NAN, delay->mean_ns, delay->stddev_ns,
	                          (double)delay->min_ns, (double)delay->max_ns};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		fputc(',', out);
		ow_format_csv_number(out, i == 0 || delay->samples ? numbers[i] : NAN);
	}
	for (int i = 0; i < OW_QUANTILES; i++) {
		fputc(',', out);
		ow_format_csv_number(out, delay->samples ? delay->quantile_ns[i] : NAN);
	}
	for (unsigned i = 0; percentile && i < report->percentiles; i++) {
		fputc(',', out);
		ow_format_csv_number(out, delay->samples ? percentile[i].delay_ns : NAN);
	}
	fputc('\n', out);
}

void ow_report_csv_intervals(FILE *out, const struct ow_match_report *report)
{
	fputs("start_utc,start_ns,after_s,direction,sent,received,matched,lost,extra,duplicated,ambiguous,reordered,"
	      "samples,"
	      "loss_ratio,mean_ns,stddev_ns,min_ns,max_ns,p50_ns,p90_ns,p95_ns,p99_ns,p999_ns",
	      out);
	char number[OW_FORMAT];
	for (unsigned i = 0; report->interval_percentile && i < report->percentiles; i++)
		fprintf(out, ",percentile_%s_ns", ow_format_number(report->interval_percentile[i].percent, number));
	fputc('\n', out);
	for (size_t i = 0; i < report->intervals; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			if (report->has_direction[d])
				put_interval(out, report, i, d);
		}
	}
}
