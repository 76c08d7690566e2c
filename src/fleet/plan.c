/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/plan.h"

#include "base/time.h"
#include "config/config.h"
#include "fleet/folder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What fleet.yaml says of a point, or of a group of points. The nodes are keys of a configuration. */
struct entry {
	const char *name, *group, *address;
	const struct ow_yaml *listen, *memory, *retention, *store_max, *metrics, *output, *interfaces;
	unsigned line;
	FILE *segments; /* text of its desired state */
	char *text;
	size_t size;
};

struct segment {
	const char *name;
	const struct ow_yaml *between, *ends, *classes;
	const struct ow_yaml *node;
	const char *end[2];
	const struct ow_discovered_end *found[2]; /* or NULL: it was given */
	unsigned line;
};

struct source {
	struct ow_yaml *tree, *groups_node, *points_node, *segments_node, *classes, *discovery;
	double canary;
	int64_t wait_ns;
	struct entry *points, *groups;
	unsigned point_count, group_count;
	struct segment *segments;
	unsigned segment_count;
	bool discover;
	bool samples; /* by the fleet's key */
	const struct ow_fleet_plan_options *options;
	struct ow_key_reader *reader;
};

/* -- reading ------------------------------------------------------------------------------------------------------- */

static int keep(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	(void)r;
	*(const struct ow_yaml **)field = node;
	return 0;
}

#define ENTRY(member) offsetof(struct entry, member)
#define AS_IN_CONFIG(key)                                                                                 \
	{                                                                                                 \
#key, OW_KEY_OTHER, ENTRY(key), NULL, "As in the configuration of a point.", .read = keep \
	}
const struct ow_key ow_fleet_plan_point_keys[] = {
	{"name", OW_KEY_POINT, ENTRY(name), NULL, "The name of the point, or of the group.", .needed = true},
	{"group", OW_KEY_NAME, ENTRY(group), NULL,
         "The group that the point belongs to: what the point does not say, the group does."},
	{"address", OW_KEY_PEER, ENTRY(address), NULL,
         "`host:port` at which its peers reach the point. It listens there, at all addresses, unless `listen` says "
         "otherwise. Of the two points of a segment, one needs an address."},
	AS_IN_CONFIG(listen),
	AS_IN_CONFIG(interfaces),
	AS_IN_CONFIG(memory),
	AS_IN_CONFIG(retention),
	AS_IN_CONFIG(store_max),
	AS_IN_CONFIG(metrics),
	AS_IN_CONFIG(output),
	{0},
};

#define SEGMENT(member) offsetof(struct segment, member)
#define SEGMENT_KEY(key)                                                                                    \
	{                                                                                                   \
		key, OW_KEY_OTHER, SEGMENT(node), NULL, "As in the configuration of a point.", .read = keep \
	}
const struct ow_key ow_fleet_plan_segment_keys[] = {
	{"name", OW_KEY_NAME, SEGMENT(name), NULL,
         "The name of the segment. By default the two names with `-` between."},
	{"between", OW_KEY_OTHER, SEGMENT(between), NULL,
         "The names of the two points. The first connects to the second, if that has an `address`.", .read = keep,
         .needed = true},
	{"ends", OW_KEY_OTHER, SEGMENT(ends), NULL,
         "What differs at the two ends: `{london: {interfaces: [eth1], facing: away}}`.", .read = keep},
	{"classes", OW_KEY_OTHER, SEGMENT(classes), NULL, "Instead of the `classes` of all segments.", .read = keep},
	SEGMENT_KEY("interval"),
	SEGMENT_KEY("wait"),
	SEGMENT_KEY("method"),
	SEGMENT_KEY("identity"),
	SEGMENT_KEY("scope"),
	SEGMENT_KEY("inner"),
	SEGMENT_KEY("exact"),
	SEGMENT_KEY("clock"),
	{0},
};

static int read_segments(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct source *s = r->context;
	s->discover = node->kind == OW_YAML_TEXT && strcmp(node->text, "discover") == 0;
	if (node->kind == OW_YAML_TEXT && !s->discover)
		return ow_key_fail(r, node, "must be a list, or 'discover'");
	*(const struct ow_yaml **)field = node;
	return 0;
}

static int read_discovery(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct source *s = r->context;
	static const struct ow_key flag = {.name = "discovery", .type = OW_KEY_BOOL};
	if (node->kind == OW_YAML_TEXT)
		return ow_key_read_value(r, &flag, node, &s->samples);
	s->samples = false;
	*(struct ow_yaml **)field = node;
	return 0;
}

#define SOURCE(member) offsetof(struct source, member)
const struct ow_key ow_fleet_plan_keys[] = {
	{"canary", OW_KEY_SHARE, SOURCE(canary), "10%",
         "The share of the points that get a change first: one at least. If all goes well, twice as many follow, and "
         "so "
         "on."},
	{"wait", OW_KEY_DURATION, SOURCE(wait_ns), "1min",
         "How long to wait for the reports of these points. A point that refuses, or falls silent, ends the change, "
         "and "
         "what was changed is changed back.",
         .least = OW_NS_PER_S, .most = 3600 * OW_NS_PER_S},
	{"classes", OW_KEY_OTHER, SOURCE(classes), "one, `all`", "The classes of all segments.", .read = keep},
	{"groups", OW_KEY_OTHER, SOURCE(groups_node), NULL, "The list of groups of points.", .read = keep},
	{"points", OW_KEY_OTHER, SOURCE(points_node), NULL, "The list of points.", .read = keep, .needed = true},
	{"segments", OW_KEY_OTHER, SOURCE(segments_node), NULL,
         "The list of segments; or `discover`: pairs of neighbouring points that share traffic.",
         .read = read_segments},
	{"discovery", OW_KEY_OTHER, SOURCE(discovery), "`true`",
         "Samples of packets at all points, for `oneway fleet map` and `segments: discover`: `true`, by a key that the "
         "fleet has; `false`; or as in the configuration of a point. They take about a kilobyte a second for each "
         "interface and direction.",
         .read = read_discovery},
	{0},
};

static int read_entry(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct entry *entry = field;
	entry->line = node->line;
	ow_keys_enter(r, "point", node, "name");
	return ow_keys_read(r, node, ow_fleet_plan_point_keys, entry, NULL);
}

static int read_group(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct entry *entry = field;
	entry->line = node->line;
	ow_keys_enter(r, "group", node, "name");
	int code = ow_keys_read(r, node, ow_fleet_plan_point_keys, entry, NULL);
	if (code == 0 && (entry->group || entry->address))
		code = ow_key_fail(r, node, "a group has no address, and no group of its own");
	return code;
}

static const struct entry *find(const struct entry *entries, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(entries[i].name, name) == 0)
			return &entries[i];
	}
	return NULL;
}

static int read_segment(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct segment *segment = field;
	const struct source *s = r->context;
	segment->line = node->line;
	ow_keys_enter(r, "segment", node, "name");
	int code = ow_keys_read(r, node, ow_fleet_plan_segment_keys, segment, NULL);
	if (code < 0)
		return code;
	segment->node = node;
	const struct ow_yaml *between = segment->between;
	if (between->kind != OW_YAML_SEQUENCE || between->count != 2)
		return ow_key_fail(r, between, "must be a list of two points");
	for (unsigned i = 0; i < 2; i++) {
		const struct ow_yaml *end = i == 0 ? between->first : between->first->next;
		segment->end[i] = end->text;
		if (!end->text || !find(s->points, s->point_count, end->text))
			return ow_error_set(r->err, EINVAL, "%s:%u: between%s: there is no point '%.60s'", r->path,
			                    end->line, r->where, end->text ? end->text : "");
	}
	if (strcmp(segment->end[0], segment->end[1]) == 0)
		return ow_key_fail(r, between, "must be two different points");
	for (const struct ow_yaml *end = segment->ends ? segment->ends->first : NULL; end; end = end->next) {
		if (end->kind != OW_YAML_MAPPING || !end->key ||
		    (strcmp(end->key, segment->end[0]) != 0 && strcmp(end->key, segment->end[1]) != 0))
			return ow_key_fail(r, segment->ends,
			                   "must have the names of the two points, with keys below them");
	}
	return 0;
}

static int check_entries(const struct source *s, const struct entry *entries, unsigned count, const char *kind,
                         struct ow_error *err)
{
	for (unsigned i = 0; i < count; i++) {
		const struct entry *e = &entries[i];
		if (!ow_fleet_name_valid(e->name))
			return ow_error_set(err, EINVAL, "%s:%u: '%s' is not a name for a %s of a fleet",
			                    s->reader->path, e->line, e->name, kind);
		if (find(entries, i, e->name))
			return ow_error_set(err, EINVAL, "%s:%u: %s '%s' is there twice", s->reader->path, e->line,
			                    kind, e->name);
		if (e->group && !find(s->groups, s->group_count, e->group))
			return ow_error_set(err, EINVAL, "%s:%u: %s '%s': there is no group '%.60s'", s->reader->path,
			                    e->line, kind, e->name, e->group);
	}
	return 0;
}

static int read_source(struct ow_key_reader *r, struct source *s)
{
	int code = ow_keys_read(r, s->tree, ow_fleet_plan_keys, s, NULL);
	if (code == 0 && s->groups_node)
		code = ow_keys_read_list(r, s->groups_node, OW_FLEET_PLAN_POINTS_MAX, sizeof *s->groups,
		                         (void **)&s->groups, &s->group_count, read_group);
	if (code == 0)
		code = ow_keys_read_list(r, s->points_node, OW_FLEET_PLAN_POINTS_MAX, sizeof *s->points,
		                         (void **)&s->points, &s->point_count, read_entry);
	if (code == 0)
		code = check_entries(s, s->groups, s->group_count, "group", r->err);
	if (code == 0)
		code = check_entries(s, s->points, s->point_count, "point", r->err);
	if (code == 0 && s->segments_node && !s->discover)
		code = ow_keys_read_list(r, s->segments_node, OW_FLEET_PLAN_SEGMENTS_MAX, sizeof *s->segments,
		                         (void **)&s->segments, &s->segment_count, read_segment);
	s->samples = s->samples && s->options->sample_key;
	if (code == 0 && s->discover && !s->discovery && !s->samples)
		code = ow_key_fail(r, s->segments_node, "need 'discovery' to be found");
	return code;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		if ((unsigned char)*text < ' ')
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			putc(*text, out);
	}
	putc('"', out);
}

/* A value of YAML on one line. */
static void put_node(FILE *out, const struct ow_yaml *node)
{
	bool list = node->kind == OW_YAML_SEQUENCE;
	if (node->kind == OW_YAML_TEXT) {
		put_text(out, node->text);
		return;
	}
	putc(list ? '[' : '{', out);
	for (const struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		if (!list) {
			put_text(out, entry->key);
			fputs(": ", out);
		}
		put_node(out, entry);
		if (entry->next)
			fputs(", ", out);
	}
	putc(list ? ']' : '}', out);
}

static void put_key(FILE *out, const char *key, const struct ow_yaml *own, const struct ow_yaml *of_group)
{
	if (!own && !of_group)
		return;
	fprintf(out, "%s: ", key);
	put_node(out, own ? own : of_group);
	putc('\n', out);
}

static const struct ow_yaml *end_of(const struct segment *segment, const char *point)
{
	return segment->ends ? ow_yaml_entry(segment->ends, point) : NULL;
}

static const struct ow_yaml *interfaces_of(const struct source *s, const char *point)
{
	const struct entry *p = find(s->points, s->point_count, point);
	const struct entry *group = p->group ? find(s->groups, s->group_count, p->group) : NULL;
	return p->interfaces ? p->interfaces : group ? group->interfaces : NULL;
}

/* Whether the point watches it. If the file does not say what it watches, its samples do. */
static bool has_interface(const struct source *s, const char *point, const char *interface)
{
	const struct ow_yaml *list = interfaces_of(s, point);
	for (const struct ow_yaml *one = list ? list->first : NULL; one; one = one->next) {
		const struct ow_yaml *name = one->kind == OW_YAML_MAPPING ? ow_yaml_entry(one, "name") : NULL;
		if (name && name->text && strcmp(name->text, interface) == 0)
			return true;
	}
	return !list;
}

static bool has_found(const struct source *s, const struct ow_discovered_end *found)
{
	for (unsigned i = 0; i < found->interfaces; i++) {
		if (has_interface(s, found->point, found->interface[i]))
			return true;
	}
	return false;
}

/* Packets of the segment leave a router in the other direction at its other side: that is not watched. */
static void put_found(FILE *out, const struct source *s, const struct ow_discovered_end *found)
{
	const char *before = ", interfaces: [";
	for (unsigned i = 0; i < found->interfaces; i++) {
		if (!has_interface(s, found->point, found->interface[i]))
			continue;
		fputs(before, out);
		put_text(out, found->interface[i]);
		before = ", ";
	}
	fputs(found->away ? "], facing: away" : "]", out);
}

/* One end of a segment: its own keys, then those of both ends that it does not have. */
static void put_segment(FILE *out, const struct source *s, const struct segment *segment, unsigned here,
                        const char *connect)
{
	static const char *const ours[] = {"name", "between", "ends", "classes"};
	const struct ow_yaml *end = end_of(segment, segment->end[here]);
	const struct ow_yaml *classes = segment->classes ? segment->classes : s->classes;
	fputs("  - {name: ", out);
	put_text(out, segment->name);
	fprintf(out, ", peer: %s", segment->end[!here]);
	if (connect) {
		fputs(", connect: ", out);
		put_text(out, connect);
	}
	if (segment->found[here])
		put_found(out, s, segment->found[here]);
	for (const struct ow_yaml *key = end ? end->first : NULL; key; key = key->next) {
		fprintf(out, ", %s: ", key->key);
		put_node(out, key);
	}
	for (const struct ow_yaml *key = segment->node ? segment->node->first : NULL; key; key = key->next) {
		bool own = end && ow_yaml_entry(end, key->key);
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
			own |= strcmp(key->key, ours[i]) == 0;
		if (own)
			continue;
		fprintf(out, ", %s: ", key->key);
		put_node(out, key);
	}
	if (classes && !(end && ow_yaml_entry(end, "classes"))) {
		fputs(", classes: ", out);
		put_node(out, classes);
	}
	fputs("}\n", out);
}

/* The first connects to the second, unless only the first can be reached. */
static int add_segment(struct source *s, const struct segment *segment, struct ow_error *err)
{
	struct entry *ends[2];
	for (unsigned i = 0; i < 2; i++)
		ends[i] = (struct entry *)find(s->points, s->point_count, segment->end[i]);
	if (!ends[0]->address && !ends[1]->address)
		return ow_error_set(err, EINVAL, "%s:%u: segment '%s': neither %s nor %s has an address",
		                    s->reader->path, segment->line, segment->name, ends[0]->name, ends[1]->name);
	unsigned listens = ends[1]->address ? 1 : 0;
	put_segment(ends[!listens]->segments, s, segment, !listens, ends[listens]->address);
	put_segment(ends[listens]->segments, s, segment, listens, NULL);
	return 0;
}

/* Of a segment without a name. */
static void default_name(const struct segment *segment, char name[2 * OW_POINT_NAME])
{
	snprintf(name, 2 * OW_POINT_NAME, "%.31s-%.31s", segment->end[0], segment->end[1]);
}

/* A point knows its segments by their names. */
static int check_name(const struct source *s, const struct segment *segment, struct ow_error *err)
{
	char name[2 * OW_POINT_NAME], other_name[2 * OW_POINT_NAME];
	default_name(segment, name);
	for (const struct segment *other = s->segments; other < segment; other++) {
		bool common = false;
		for (unsigned i = 0; i < 4; i++)
			common |= strcmp(other->end[i / 2], segment->end[i % 2]) == 0;
		default_name(other, other_name);
		if (common && strcmp(segment->name ? segment->name : name, other->name ? other->name : other_name) == 0)
			return ow_error_set(err, EINVAL, "%s:%u: segment '%.100s' is in line %u already",
			                    s->reader->path, segment->line, segment->name ? segment->name : name,
			                    other->line);
	}
	return 0;
}

/* Packets that pass a router come in at one side and leave at the other: a segment that watches both sides would count
 * them in both directions. */
static void note_sides(const struct source *s, const struct segment *segment, FILE *notes)
{
	static const char *const keys[] = {"interfaces", "facing", "to_peer"};
	for (unsigned i = 0; i < 2; i++) {
		const struct ow_yaml *end = end_of(segment, segment->end[i]), *list = interfaces_of(s, segment->end[i]);
		bool said = !list || list->count < 2;
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
			said |= end && ow_yaml_entry(end, keys[k]);
		if (!said)
			fprintf(notes,
			        "%s:%u: all %zu interfaces of %s are watched for %s: if packets of the segment come in "
			        "at "
			        "one and leave at another, name those that lead to %s: ends: {%s: {interfaces: "
			        "[...]}}\n",
			        s->reader->path, segment->line, (size_t)list->count, segment->end[i], segment->end[!i],
			        segment->end[!i], segment->end[i]);
	}
}

static int add_given(struct source *s, struct segment *segment, struct ow_error *err)
{
	char name[2 * OW_POINT_NAME];
	default_name(segment, name);
	if (!segment->name)
		segment->name = name;
	int r = add_segment(s, segment, err);
	if (segment->name == name)
		segment->name = NULL;
	return r;
}

/* A segment of which one point is not in fleet.yaml, does not watch these interfaces any more, or which cannot connect, is
 * left out: nobody asked for it by name. */
static int add_found(struct source *s, const struct ow_discovered_segment *found, struct ow_error *err)
{
	struct segment segment = {.end = {found->a.point, found->b.point}, .found = {&found->a, &found->b}};
	const struct entry *a = find(s->points, s->point_count, found->a.point),
			   *b = find(s->points, s->point_count, found->b.point);
	if (!a || !b || a == b || (!a->address && !b->address) || !has_found(s, &found->a) || !has_found(s, &found->b))
		return 0;
	return add_given(s, &segment, err);
}

static void put_listen(FILE *out, const struct entry *point, const struct entry *group)
{
	const struct ow_yaml *listen = point->listen ? point->listen : group ? group->listen : NULL;
	if (listen)
		put_key(out, "listen", listen, NULL);
	else if (point->address)
		fprintf(out, "listen: \"%s\"\n", strrchr(point->address, ':'));
}

/* The desired state of a point, checked as the point will. */
static int make_body(const struct source *s, struct entry *p, char **ret_body, struct ow_error *err)
{
	static const struct {
		const char *key;
		size_t offset;
	} keys[] = {{"memory", ENTRY(memory)},   {"retention", ENTRY(retention)}, {"store_max", ENTRY(store_max)},
	            {"metrics", ENTRY(metrics)}, {"output", ENTRY(output)},       {"interfaces", ENTRY(interfaces)}};
	const struct entry *group = p->group ? find(s->groups, s->group_count, p->group) : NULL;
	char *body = NULL;
	size_t size;
	FILE *out = open_memstream(&body, &size);
	if (!out)
		return ow_error_set(err, ENOMEM, "not enough memory");
	put_listen(out, p, group);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		put_key(out, keys[i].key, *(const struct ow_yaml *const *)((const char *)p + keys[i].offset),
		        group ? *(const struct ow_yaml *const *)((const char *)group + keys[i].offset) : NULL);
	put_key(out, "discovery", s->discovery, NULL);
	if (s->samples && (p->interfaces || (group && group->interfaces)))
		fprintf(out, "discovery: {\"key\": \"%s\"}\n", s->options->sample_key);
	fflush(p->segments);
	if (p->size)
		fprintf(out, "segments:\n%s", p->text);
	if (fclose(out) != 0)
		return ow_error_set(err, ENOMEM, "not enough memory");
	if (size == 0) {
		free(body);
		body = strdup("{}\n");
	}
	*ret_body = body;
	return body ? 0 : ow_error_set(err, ENOMEM, "not enough memory");
}

/* Adds the interfaces of this end that are new. */
static unsigned add_names(const struct ow_discovered_end *end, const char *names[OW_SOURCES_MAX], unsigned count)
{
	for (unsigned i = 0; i < end->interfaces; i++) {
		unsigned k = 0;
		while (k < count && strcmp(names[k], end->interface[i]) != 0)
			k++;
		if (k == count && count < OW_SOURCES_MAX)
			names[count++] = end->interface[i];
	}
	return count;
}

/* What the point's own file says, as far as it is known: its interfaces are those of what was found. */
static char *own_file(const struct source *s, const struct entry *p)
{
	const char *names[OW_SOURCES_MAX];
	char *own = NULL;
	size_t size;
	unsigned count = 0;
	FILE *out = open_memstream(&own, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; !interfaces_of(s, p->name) && i < s->options->found_count; i++) {
		const struct ow_discovered_segment *found = &s->options->found[i];
		if (strcmp(found->a.point, p->name) == 0)
			count = add_names(&found->a, names, count);
		if (strcmp(found->b.point, p->name) == 0)
			count = add_names(&found->b, names, count);
	}
	fprintf(out, "fleet: {address: x, name: %s, state: /}\n%s", p->name, count ? "interfaces:\n" : "");
	for (unsigned i = 0; i < count; i++) {
		fputs("  - {name: ", out);
		put_text(out, names[i]);
		fputs("}\n", out);
	}
	return fclose(out) == 0 ? own : NULL;
}

static int check_body(const struct source *s, const struct entry *p, const char *body, struct ow_error *err)
{
	char *own = own_file(s, p), *desired = NULL;
	struct ow_config *config = NULL;
	struct ow_error why;
	int n = own ? asprintf(&desired, "# oneway: desired state of %s, version 1, signature x\n%s", p->name, body)
	            : -1;
	if (n < 0) {
		free(own);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	int r = ow_config_parse_with(p->name, own, strlen(own), desired, (size_t)n, &config, &why);
	if (r == 0)
		r = ow_config_check_filters(config, &why);
	ow_config_free(config);
	free(desired);
	free(own);
	return r < 0 ? ow_error_set(err, -r, "%s:%u: point '%s': %.400s", s->reader->path, p->line, p->name, why.text)
	             : 0;
}

static int make_points(struct source *s, struct ow_fleet_plan *plan, struct ow_error *err)
{
	plan->points = calloc(s->point_count, sizeof *plan->points);
	if (!plan->points)
		return ow_error_set(err, ENOMEM, "not enough memory");
	int r = 0;
	for (unsigned i = 0; r == 0 && i < s->point_count; i++) {
		struct ow_fleet_plan_point *point = &plan->points[plan->count++];
		snprintf(point->name, sizeof point->name, "%s", s->points[i].name);
		r = make_body(s, &s->points[i], &point->body, err);
		if (r == 0)
			r = check_body(s, &s->points[i], point->body, err);
	}
	return r;
}

static int make(struct source *s, struct ow_fleet_plan *plan, struct ow_error *err)
{
	int r = 0;
	plan->canary = s->canary;
	plan->wait_ns = s->wait_ns;
	plan->discover = s->discover;
	for (unsigned i = 0; r == 0 && i < s->point_count; i++) {
		struct entry *p = &s->points[i];
		if (!(p->segments = open_memstream(&p->text, &p->size)))
			r = ow_error_set(err, ENOMEM, "not enough memory");
	}
	size_t size = 0;
	FILE *notes = open_memstream(&plan->notes, &size);
	if (r == 0 && !notes)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	for (unsigned i = 0; r == 0 && i < s->segment_count; i++) {
		r = check_name(s, &s->segments[i], err);
		if (r == 0)
			r = add_given(s, &s->segments[i], err);
		if (r == 0)
			note_sides(s, &s->segments[i], notes);
	}
	if (notes)
		fclose(notes);
	for (size_t i = 0; r == 0 && s->discover && i < s->options->found_count; i++)
		r = add_found(s, &s->options->found[i], err);
	return r < 0 ? r : make_points(s, plan, err);
}

static void done(struct source *s)
{
	for (unsigned i = 0; i < s->point_count; i++) {
		if (s->points[i].segments)
			fclose(s->points[i].segments);
		free(s->points[i].text);
	}
	free(s->points);
	free(s->groups);
	free(s->segments);
	ow_yaml_free(s->tree);
}

int ow_fleet_plan_make(const char *path, const char *bytes, size_t size, const struct ow_fleet_plan_options *options,
                       struct ow_fleet_plan **ret_plan, struct ow_error *err)
{
	struct source s = {.options = options, .samples = true};
	struct ow_key_reader reader = {.path = path, .context = &s, .err = err};
	struct ow_fleet_plan *plan = calloc(1, sizeof *plan);
	s.reader = &reader;
	int r = plan ? ow_yaml_parse(path, bytes, size, &s.tree, err) : ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = read_source(&reader, &s);
	if (r == 0)
		r = make(&s, plan, err);
	done(&s);
	if (r < 0) {
		ow_fleet_plan_free(plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

void ow_fleet_plan_free(struct ow_fleet_plan *plan)
{
	if (!plan)
		return;
	for (unsigned i = 0; i < plan->count; i++)
		free(plan->points[i].body);
	free(plan->points);
	free(plan->notes);
	free(plan);
}
