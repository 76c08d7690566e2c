/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet counts from CSV: counts_csv.h. The reader is strict: anything that it does not understand is an error that
 * names the line, because the packets of an ignored row would become noise in the estimates of other flows.
 */
#include "flows/counts_csv.h"

#include "packet/flow.h"
#include "packet/flow_parse.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum column { SRC, DST, SPORT, DPORT, PROTO, PACKETS, FIRST_NS, LAST_NS, CLASS, REVERSE, COLUMNS };

/* Names of the columns: ours, those of nfdump up to 1.7.4, and those of nfdump from 1.7.5 on. */
static const struct {
	const char *name;
	enum column column;
} names[] = {
	{"src", SRC},         {"sa", SRC},        {"srcAddr", SRC},        {"dst", DST},           {"da", DST},
	{"dstAddr", DST},     {"sport", SPORT},   {"sp", SPORT},           {"srcPort", SPORT},     {"dport", DPORT},
	{"dp", DPORT},        {"dstPort", DPORT}, {"proto", PROTO},        {"pr", PROTO},          {"protocol", PROTO},
	{"packets", PACKETS}, {"ipkt", PACKETS},  {"inPackets", PACKETS},  {"first_ns", FIRST_NS}, {"last_ns", LAST_NS},
	{"class", CLASS},     {"opkt", REVERSE},  {"outPackets", REVERSE},
};
static const char *const column_name[COLUMNS] = {"src",     "dst",      "sport",   "dport", "proto",
                                                 "packets", "first_ns", "last_ns", "class", "opkt"};

struct reader {
	FILE *in;
	const char *name;
	const struct ow_flow_select *select;
	uint64_t seed, line;
	int place[COLUMNS]; /* index of the column in a row; -1 = missing */
	unsigned columns;   /* number of columns of a row */
	bool nfdump;        /* a summary follows the rows */
	char text[OW_COUNTS_CSV_LINE + 2];
	char *field[OW_COUNTS_CSV_COLUMNS];
	struct ow_error *err;
};

static int wrong(const struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wrong(const struct reader *r, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return ow_error_set(r->err, EINVAL, "%.100s:%llu: %s", r->name, (unsigned long long)r->line, text);
}

/* Reads the next line without its end. Returns 1, 0 at the end of the file, or an error. */
static int read_line(struct reader *r)
{
	errno = 0;
	size_t length = 0;
	for (int c; (c = getc_unlocked(r->in)) != '\n'; r->text[length++] = (char)c) {
		if (c == EOF && ferror(r->in))
			return ow_error_set(r->err, errno ? errno : EIO, "%.100s: %s", r->name,
			                    strerror(errno ? errno : EIO));
		if (c == EOF && !length)
			return 0;
		if (c == EOF)
			break;
		if (c == 0 || length == OW_COUNTS_CSV_LINE) {
			r->line++;
			return c ? wrong(r, "longer than %u bytes: this is not CSV", OW_COUNTS_CSV_LINE)
			         : wrong(r, "has a zero byte: this is not CSV");
		}
	}
	r->line++;
	if (length && r->text[length - 1] == '\r')
		length--;
	r->text[length] = 0;
	return 1;
}

/* Removes spaces around a field. */
static char *trim(char *text, char *end)
{
	while (*text == ' ' || *text == '\t')
		text++;
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = 0;
	return text;
}

/*
 * Reads a field in quotes (RFC 4180), in place; *text moves to the comma or the end behind it. NULL: the closing quote
 * is missing.
 */
static char *unquote(char **text)
{
	char *start = *text + 1, *to = start, *from = start;
	for (; *from != '"' || from[1] == '"'; from++) {
		if (!*from)
			return NULL;
		from += *from == '"';
		*to++ = *from;
	}
	from++;
	from += strspn(from, " \t");
	*text = from;
	*to = 0;
	return *from && *from != ',' ? NULL : start;
}

/* Splits the line into r->field. Returns the number of fields, or an error. */
static int split(struct reader *r)
{
	unsigned count = 0;
	char *p = r->text;
	for (;;) {
		if (count == OW_COUNTS_CSV_COLUMNS)
			return wrong(r, "more than %u columns", OW_COUNTS_CSV_COLUMNS);
		p += strspn(p, " \t");
		char *field = p, *end;
		if (*p == '"') {
			field = unquote(&p);
			if (!field)
				return wrong(r, "a closing quote is missing, or text follows it");
			end = p;
		} else {
			end = p + strcspn(p, ",");
		}
		bool last = *end == 0;
		if (field == p)
			field = trim(p, end);
		r->field[count++] = field;
		if (last)
			return (int)count;
		p = end + 1;
	}
}

static int note_column(struct reader *r, unsigned place)
{
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		if (strcasecmp(r->field[place], names[k].name) != 0)
			continue;
		enum column column = names[k].column;
		if (r->place[column] >= 0)
			return wrong(r, "two columns for %s: %.20s and %.20s", column_name[column],
			             r->field[r->place[column]], r->field[place]);
		r->place[column] = (int)place;
	}
	return 0;
}

static bool needs(const struct ow_flow_select *select, enum column column)
{
	switch (column) {
	case PACKETS:
		return true;
	case SRC:
	case DST:
		return select->by != OW_FLOW_BY_CLASS;
	case SPORT:
	case DPORT:
	case PROTO:
		return select->by == OW_FLOW_BY_FIVE_TUPLE;
	case CLASS:
		return select->by == OW_FLOW_BY_CLASS;
	default:
		return false;
	}
}

static int read_header(struct reader *r)
{
	int got = read_line(r);
	if (got <= 0)
		return got < 0 ? got : ow_error_set(r->err, ENODATA, "%.100s: is empty", r->name);
	/* The byte order mark that some spreadsheets write at the start of a file. */
	if (memcmp(r->text, "\xef\xbb\xbf", 3) == 0)
		memmove(r->text, r->text + 3, strlen(r->text + 3) + 1);
	int fields = split(r);
	if (fields < 0)
		return fields;
	r->columns = (unsigned)fields;
	for (unsigned i = 0; i < COLUMNS; i++)
		r->place[i] = -1;
	for (unsigned i = 0; i < r->columns; i++) {
		int s = note_column(r, i);
		if (s < 0)
			return s;
	}
	/* The class may be in src, as in --flows-csv and --csv. */
	if (r->place[CLASS] < 0 && r->select->by == OW_FLOW_BY_CLASS)
		r->place[CLASS] = r->place[SRC];
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (needs(r->select, i) && r->place[i] < 0)
			return wrong(r,
			             "no column '%s' in the header: needs src, dst, sport, dport, proto and packets, "
			             "or what nfdump -o csv writes",
			             column_name[i]);
	}
	/* Only nfdump has sa, ipkt and firstSeen. */
	const char *first = r->field[0];
	r->nfdump = strcmp(first, "ts") == 0 || strcmp(first, "firstSeen") == 0;
	return 0;
}

static int read_u64(const struct reader *r, enum column column, uint64_t most, uint64_t *ret_value)
{
	const char *text = r->field[r->place[column]];
	size_t digits = strspn(text, "0123456789");
	if (!digits || text[digits] || digits > 19)
		return wrong(r, "%s: '%.40s' is not a number", column_name[column], text);
	*ret_value = strtoull(text, NULL, 10);
	if (*ret_value > most)
		return wrong(r, "%s: %.40s is more than %llu", column_name[column], text, (unsigned long long)most);
	return 0;
}

static int read_address(const struct reader *r, enum column column, uint8_t address[16], uint8_t *ret_version)
{
	struct ow_error why;
	int bits;
	if (ow_flow_parse_address(r->field[r->place[column]], address, ret_version, &bits, &why) < 0)
		return wrong(r, "%s: %.100s", column_name[column], why.text);
	int kept = *ret_version == 4 ? r->select->prefix4 : r->select->prefix6;
	if (bits >= 0 && (r->select->by != OW_FLOW_BY_PREFIX || bits != kept))
		return wrong(r, "%s: '%.50s' is a network, but flows are recorded by %s", column_name[column],
		             r->field[r->place[column]],
		             r->select->by == OW_FLOW_BY_PREFIX ? "other networks" : "addresses");
	return 0;
}

static int read_ports(const struct reader *r, struct ow_flow_key *key)
{
	struct ow_error why;
	if (ow_flow_parse_protocol(r->field[r->place[PROTO]], &key->proto, &why) < 0)
		return wrong(r, "proto: %.100s", why.text);
	/* For protocols without ports, nfdump shows the type and code of ICMP there. */
	if (!ow_flow_has_ports(key->proto))
		return 0;
	if (ow_flow_parse_port(r->field[r->place[SPORT]], &key->sport, &why) < 0)
		return wrong(r, "sport: %.100s", why.text);
	if (ow_flow_parse_port(r->field[r->place[DPORT]], &key->dport, &why) < 0)
		return wrong(r, "dport: %.100s", why.text);
	return 0;
}

static int read_key(const struct reader *r, struct ow_flow_key *ret_key)
{
	struct ow_flow_key key = {0};
	struct ow_error why;
	uint8_t version;
	if (r->select->by == OW_FLOW_BY_CLASS) {
		if (ow_flow_key_parse(r->field[r->place[CLASS]], r->select, ret_key, &why) < 0)
			return wrong(r, "%.150s", why.text);
		return 0;
	}
	int s = read_address(r, SRC, key.src, &key.version);
	if (s == 0)
		s = read_address(r, DST, key.dst, &version);
	if (s == 0 && version != key.version)
		return wrong(r, "one address is IPv4, the other IPv6");
	if (s == 0 && r->select->by == OW_FLOW_BY_FIVE_TUPLE)
		s = read_ports(r, &key);
	if (s == 0)
		ow_flow_select_key(r->select, &key, ret_key);
	return s;
}

static int read_times(const struct reader *r, struct ow_flow_count *count)
{
	/* The times are not known. */
	count->first_ns = INT64_MAX;
	count->last_ns = INT64_MIN;
	if (r->place[FIRST_NS] < 0 || r->place[LAST_NS] < 0)
		return 0;
	uint64_t first = 0, last = 0;
	int s = read_u64(r, FIRST_NS, INT64_MAX, &first);
	if (s == 0)
		s = read_u64(r, LAST_NS, INT64_MAX, &last);
	if (s < 0)
		return s;
	if (first > last)
		return wrong(r, "first_ns is after last_ns");
	count->first_ns = (int64_t)first;
	count->last_ns = (int64_t)last;
	return 0;
}

static int read_row(const struct reader *r, struct ow_flow_count *ret_count)
{
	struct ow_flow_count count = {0};
	uint64_t reverse = 0;
	int s = read_key(r, &count.key);
	if (s == 0)
		s = read_u64(r, PACKETS, OW_COUNTS_CSV_PACKETS, &count.packets);
	if (s == 0 && r->place[REVERSE] >= 0)
		s = read_u64(r, REVERSE, OW_COUNTS_CSV_PACKETS, &reverse);
	if (s == 0 && reverse)
		return wrong(r, "a flow of both directions: use nfdump without -b and -B");
	if (s == 0)
		s = read_times(r, &count);
	if (s < 0)
		return s;
	count.flow = ow_flow_hash(r->seed, &count.key);
	*ret_count = count;
	return 0;
}

/* Returns 1 if a row is in the fields, 0 if there are no more. */
static int next_row(struct reader *r)
{
	int s;
	while ((s = read_line(r)) > 0) {
		if (!*r->text)
			continue;
		if (r->nfdump && strncmp(r->text, "Summary", 7) == 0)
			return 0;
		int fields = split(r);
		if (fields >= 0 && (unsigned)fields != r->columns)
			return wrong(r, "%d columns, but the header has %u", fields, r->columns);
		return fields < 0 ? fields : 1;
	}
	return s;
}

static int read_rows(struct reader *r, struct ow_flow_counts *counts)
{
	struct ow_flow_count count = {0};
	int s = read_header(r);
	while (s == 0 && (s = next_row(r)) > 0) {
		s = read_row(r, &count);
		if (s == 0 && count.packets)
			s = ow_flow_counts_put(counts, &count, NULL, NULL);
		if (s == -ENOSPC)
			return ow_error_set(r->err, ENOSPC, "%.100s:%llu: more than %u flows", r->name,
			                    (unsigned long long)r->line, OW_FLOW_COUNTS_MAX);
		if (s == -ENOMEM)
			return ow_error_set(r->err, ENOMEM, "%.100s: not enough memory", r->name);
	}
	if (s == 0 && !ow_flow_counts_flows(counts))
		return ow_error_set(r->err, ENODATA, "%.100s: contains no flow", r->name);
	return s;
}

int ow_counts_csv_read(FILE *in, const char *name, const struct ow_flow_select *select, uint64_t seed,
                       struct ow_flow_counts **ret_counts, struct ow_error *err)
{
	const struct ow_colate_params no_layers = {.unit_ns = 1, .seed = seed};
	struct ow_flow_counts *counts = NULL;
	struct reader *r = calloc(1, sizeof *r);
	if (!r || ow_flow_counts_create(&no_layers, 0, &counts) < 0) {
		free(r);
		return ow_error_set(err, ENOMEM, "%.100s: not enough memory", name);
	}
	*r = (struct reader){.in = in, .name = name, .select = select, .seed = seed, .err = err};
	int s = read_rows(r, counts);
	free(r);
	if (s < 0) {
		ow_flow_counts_free(counts);
		return s;
	}
	*ret_counts = counts;
	return 0;
}
