/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CSV row for each packet, as docs/csv.md describes it. Written without printf: a row costs about as much as
 * matching its packet, and with printf ten times that.
 */
#include "estimate/packet_event.h"
#include "path/path.h"
#include "report/report.h"

#include <arpa/inet.h>
#include <string.h>

/* Longest row: 12 numbers of up to 20 digits, two IPv6 addresses, names, commas: below 400 bytes. */
#define ROW_MAX        512
#define NAME_MAX_BYTES 64
/* Of a path: two numbers for each point, and the name of one. */
#define PATH_ROW_MAX (ROW_MAX + NAME_MAX_BYTES + OW_PATH_POINTS * 44)

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

/* protocol,src,sport,dst,dport: the IP protocol number, or 0x and the EtherType for frames that are not IP. */
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
	fputs("fate,direction,ambiguous,number_a,number_b,time_a_ns,time_b_ns,delay_ns,packets,bytes,protocol,src,"
	      "sport,"
	      "dst,dport,delay_least_ns,delay_most_ns\n",
	      out);
}

void ow_report_csv_packet(FILE *out, const struct ow_packet_event *event)
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
	*p++ = '\n';
	fwrite(row, 1, (size_t)(p - row), out);
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

/* Fields are never quoted: other letters of a name become _. */
static char *put_name(char *p, const char *name)
{
	for (int i = 0; i < NAME_MAX_BYTES && name[i]; i++) {
		bool plain = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'A' && name[i] <= 'Z') ||
		             (name[i] >= 'a' && name[i] <= 'z') || strchr("-.:_", name[i]);
		*p++ = plain ? name[i] : '_';
	}
	return p;
}

void ow_report_csv_path_header(FILE *out, const struct ow_path_report *path)
{
	char name[NAME_MAX_BYTES + 1];
	fputs("fate,direction,ambiguous,last_seen,delay_ns,packets,bytes,protocol,src,sport,dst,dport", out);
	for (unsigned i = 0; i < path->points; i++) {
		*put_name(name, path->point[i].name) = 0;
		fprintf(out, ",number_%s,time_%s_ns", name, name);
	}
	fputc('\n', out);
}

/* The last point on the way of the packet that shows it; -1 if its direction is not known. */
static int last_seen(const struct ow_path_report *path, const struct ow_path_packet *packet)
{
	if (packet->direction == OW_A_TO_B)
		return 31 - __builtin_clz(packet->seen);
	return packet->direction == OW_B_TO_A && path->points ? __builtin_ctz(packet->seen) : -1;
}

void ow_report_csv_path_packet(FILE *out, const struct ow_path_report *path, const struct ow_path_packet *packet)
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
	if (last_seen(path, packet) >= 0)
		p = put_name(p, path->point[last_seen(path, packet)].name);
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
	*p++ = '\n';
	fwrite(row, 1, (size_t)(p - row), out);
}
