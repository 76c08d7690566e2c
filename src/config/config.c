/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of keys of a point's configuration, and the readers of its lists. config_check.c checks that the entries
 * fit each other and this host.
 */
#include "config/config.h"
#include "result/group_results.h"

#include "base/time.h"
#include "capture/iface/iface.h"
#include "config/config_check.h"
#include "config/config_fleet.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB(n) ((uint64_t)(n) << 20)
#define DAY_NS (UINT64_C(86400) * OW_NS_PER_S)

static struct ow_config *config_of(const struct ow_key_reader *r)
{
	return r->context;
}

/* -- interfaces ---------------------------------------------------------------------------------------------------- */

static const struct ow_choice captures[] = {{"auto", OW_IFACE_AUTO}, {"kernel", OW_IFACE_KERNEL}, {0}};

#define INTERFACE(member) offsetof(struct ow_config_interface, member)
const struct ow_key ow_interface_keys[] = {
	{"name", OW_KEY_NAME, INTERFACE(name), NULL,
         "The name of the interface. With `file`, any name: segments refer to the file by it."},
	{"file", OW_KEY_PATH, INTERFACE(file), NULL,
         "A capture file that the point replays as if it were an interface. Without `name`, its name is the last "
         "part of the path."},
	{"speed", OW_KEY_REAL, INTERFACE(speed), "1",
         "The speed of the replay, up to 1000: 1 replays the capture in its own time, 10 ten times as fast.",
         .most = 1000},
	{"threads", OW_KEY_COUNT, INTERFACE(threads), "1",
         "The number of capture threads, 1 to 64. They share the frames of the interface by flow.", .least = 1,
         .most = 64},
	{"ring", OW_KEY_SIZE, INTERFACE(ring_bytes), NULL,
         "The size of the ring buffer of each thread, 1 MiB to 2 GiB. By default it is 64 MiB or more, as the speed "
         "of the link asks for ([capture.md](capture.md)).",
         .least = MIB(1), .most = OW_IFACE_RING_MAX},
	{"capture", OW_KEY_CHOICE, INTERFACE(capture), "auto",
         "How packets are recorded: `auto` through a ring, or libpcap where there is none; `kernel` by programs in the "
         "kernel, which costs a busy router less ([capture.md](capture.md#recording-in-the-kernel)). With `threads`, "
         "`filter` or "
         "`hardware_timestamps` a ring takes its place, and the log says why.",
         .choices = captures},
	{"hardware_timestamps", OW_KEY_BOOL, INTERFACE(hardware_stamps), "false",
         "Whether the point asks the interface for hardware timestamps."},
	{"filter", OW_KEY_FILTER, INTERFACE(filter), NULL,
         "The point captures only the packets that match this filter. With a ring, the kernel drops most others."},
	{0},
};

/*
 * A file without a name is named by the last part of its path. The tree owns this text, as the key of the list entry,
 * which has none.
 */
static int name_file(struct ow_key_reader *r, struct ow_yaml *entry, struct ow_config_interface *i)
{
	if (!i->file || i->name)
		return 0;
	const char *slash = strrchr(i->file, '/');
	entry->key = strdup(slash ? slash + 1 : i->file);
	i->name = entry->key;
	return i->name ? 0 : ow_key_no_memory(r);
}

static int read_interface(struct ow_key_reader *r, struct ow_yaml *entry, void *field)
{
	struct ow_config_interface *i = field;
	i->line = entry->line;
	ow_keys_enter(r, "interface", entry, ow_yaml_entry(entry, "name") ? "name" : "file");
	int code = ow_keys_read(r, entry, ow_interface_keys, i, NULL);
	return code < 0 ? code : name_file(r, entry, i);
}

static int read_interfaces(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config *c = config_of(r);
	(void)field;
	return ow_keys_read_list(r, node, OW_SOURCES_MAX, sizeof *c->interfaces, (void **)&c->interfaces,
	                         &c->interface_count, read_interface);
}

/* -- classes ------------------------------------------------------------------------------------------------------- */

#define CLASS(member) offsetof(struct ow_config_class, member)
static const struct ow_key class_keys[] = {
	{"name", OW_KEY_NAME, CLASS(name), NULL, "The name of the class."},
	{"filter", OW_KEY_FILTER, CLASS(filter), NULL, "The packets that match this filter belong to the class."},
	{"exact", OW_KEY_BOOL, CLASS(exact), NULL,
         "Whether the points exchange the times of all packets of the class; without it, as the segment says. Not "
         "for recordings of flows.",
         .bit = OW_STATED_EXACT},
	{0},
};

static int read_class(struct ow_key_reader *r, struct ow_yaml *entry, void *field)
{
	struct ow_config_class *class = field;
	class->line = entry->line;
	ow_keys_enter(r, "class", entry, "name");
	return ow_keys_read(r, entry, class_keys, class, &class->stated);
}

static int read_class_list(struct ow_key_reader *r, struct ow_yaml *node, struct ow_config_class **classes,
                           unsigned *count)
{
	return ow_keys_read_list(r, node, OW_CONFIG_CLASSES_MAX, sizeof **classes, (void **)classes, count, read_class);
}

/* -- segments ------------------------------------------------------------------------------------------------------ */

static int read_classes(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_segment *s = field;
	return read_class_list(r, node, &s->classes, &s->class_count);
}

/*
 * Names of interfaces. The interfaces may come later in the file, so the names are looked up after everything is read.
 */
static int read_watched(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	if (node->kind != OW_YAML_SEQUENCE || node->count == 0)
		return ow_key_fail(r, node, "must be a list of at least one entry");
	int code = node->count > OW_SOURCES_MAX ? ow_key_fail(r, node, "has too many entries") : 0;
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next)
		code = ow_key_check_text(r, entry);
	*(struct ow_yaml **)field = node;
	return code;
}

struct segment_target {
	struct ow_config_segment segment;
	struct ow_yaml *watched;
};

static const struct ow_key point_key = {"peers", OW_KEY_POINT, 0, NULL, NULL};
static const struct ow_key address_key = {"connect", OW_KEY_PEER, 0, NULL, NULL};

_Static_assert(OW_GROUP_MEMBERS_MAX == 16, "as an error says");

/* Names of several peers. */
static int read_peers(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_segment *s = field;
	if (node->kind != OW_YAML_SEQUENCE || node->count < 2 || node->count > OW_GROUP_MEMBERS_MAX)
		return ow_key_fail(r, node, "must be a list of 2 to 16 names");
	for (struct ow_yaml *entry = node->first; entry; entry = entry->next) {
		const char *name;
		int code = ow_key_read_value(r, &point_key, entry, &name);
		if (code < 0)
			return code;
		for (const struct ow_yaml *k = node->first; k != entry; k = k->next) {
			if (strcmp(k->text, name) == 0)
				return ow_error_set(r->err, EINVAL, "%s:%u: peers%s: '%.60s' is in the list twice",
				                    r->path, entry->line, r->where, name);
		}
		size_t used = strlen(s->group);
		int n = snprintf(s->group + used, sizeof s->group - used, "%s%s", used ? "+" : "", name);
		if (n >= (int)(sizeof s->group - used))
			return ow_key_fail(r, node, "the names are together longer than 63 characters");
	}
	s->peers = node;
	return 0;
}

/* The address of the peer, or of each of several. */
static int read_connect(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_segment *s = field;
	if (node->kind != OW_YAML_MAPPING)
		return ow_key_read_value(r, &address_key, node, &s->connect);
	int code = 0;
	for (struct ow_yaml *entry = node->first; code == 0 && entry; entry = entry->next)
		code = ow_key_read_value(r, &address_key, entry, &s->connect);
	s->connect = NULL;
	s->connects = node;
	return code;
}

static const struct ow_choice facings[] = {{"peer", OW_FACING_PEER}, {"away", OW_FACING_AWAY}, {0}};
static const struct ow_choice methods[] = {{"fold", OW_METHOD_FOLD}, {"rda", OW_METHOD_RDA}, {0}};
static const struct ow_choice scopes[] = {{"shared", OW_SCOPE_OF_SHARED}, {"all", OW_SCOPE_OF_ALL}, {0}};
static const struct ow_choice clocks[] = {
	{"auto", OW_CLOCK_AUTO}, {"trusted", OW_CLOCK_TRUSTED}, {"relative", OW_CLOCK_RELATIVE}, {0}};
static const struct ow_choice levels[] = {{"ip", OW_LEVEL_IP}, {"nat", OW_LEVEL_NAT}, {0}};
static const struct ow_choice identities[] = {{"auto", OW_LEVEL_AUTO}, {"ip", OW_LEVEL_IP}, {"nat", OW_LEVEL_NAT}, {0}};

#define SEGMENT(member) offsetof(struct segment_target, segment.member)
const struct ow_key ow_segment_keys[] = {
	{"name", OW_KEY_NAME, SEGMENT(name), NULL,
         "The name of the segment, and the name of the point at its other end."},
	{"peer", OW_KEY_POINT, SEGMENT(peer), NULL, NULL},
	{"peers", OW_KEY_OTHER, offsetof(struct segment_target, segment), NULL,
         "Instead of `peer`: the names of several points among which the packets to the other end are divided, by "
         "flow or by packet ([point.md](point.md#several-peers)).",
         .read = read_peers},
	{"connect", OW_KEY_OTHER, offsetof(struct segment_target, segment), NULL,
         "The address `host:port` at which the peer listens. Without it, the peer connects to this point. With "
         "`peers`, the addresses of those that this point connects to: `{b1: host:port, b2: host:port}`.",
         .read = read_connect},
	{"interfaces", OW_KEY_OTHER, offsetof(struct segment_target, watched), "all",
         "The names of the interfaces whose packets belong to the segment.", .read = read_watched},
	{"facing", OW_KEY_CHOICE, SEGMENT(facing), "peer",
         "With `peer`, outgoing packets go to the peer and incoming packets come from it. With `away` it is the "
         "reverse: use this for the inner side of a router.",
         .choices = facings},
	{"to_peer", OW_KEY_FILTER, SEGMENT(to_peer), NULL,
         "Use this instead of `facing` where the kernel does not know the direction (taps, files). Packets that "
         "match this filter go to the peer; all others come from it."},
	{"interval", OW_KEY_DURATION, SEGMENT(interval_ns), "1s",
         "The length of the measuring intervals, 1 ms to 5 min.", .least = OW_INTERVAL_MIN_NS,
         .most = OW_INTERVAL_MAX_NS, .bit = OW_STATED_INTERVAL},
	{"wait", OW_KEY_DURATION, SEGMENT(wait_ns), "2s",
         "The waiting time: a packet that has not arrived after it is lost. It is rounded up to whole intervals, at "
         "most 1024.",
         .least = OW_NS_PER_US, .most = DAY_NS, .bit = OW_STATED_WAIT},
	{"method", OW_KEY_CHOICE, SEGMENT(method), "fold",
         "The synopsis that the points compare. `rda` is RDA as published: it gives no quantiles, and if its "
         "differences cannot be decoded, the interval is unknown; with `scope: all` it is partial, and late packets "
         "count as lost.",
         .choices = methods, .bit = OW_STATED_METHOD},
	{"identity", OW_KEY_CHOICE, SEGMENT(level), "auto",
         "What makes a packet the same at both points. With `auto`, the points begin with `ip`. If results show "
         "packets at each point that the other does not have, they compare samples under `ip`, `nat`, both without "
         "the IPv4 identification, and each of these inside of tunnels, and take the first that clearly matches "
         "more. `ip` and `nat` (without addresses and ports) are fixed.",
         .choices = identities, .bit = OW_STATED_IDENTITY},
	{"scope", OW_KEY_CHOICE, SEGMENT(scope), "shared",
         "Which packets are compared. With `shared`, only packets of flows that pass both points can be lost; the "
         "others are counted as unshared. Use `all` for the two ends of a wire, where every packet must arrive.",
         .choices = scopes, .bit = OW_STATED_SCOPE},
	{"inner", OW_KEY_BOOL, SEGMENT(inner), "false",
         "Whether the points compare the packets inside of tunnels. With `identity: auto` they find out, unless it "
         "is given.",
         .bit = OW_STATED_INNER},
	{"exact", OW_KEY_BOOL, SEGMENT(exact), "false",
         "Whether the points exchange the times of all packets. Then minimum, maximum, quantiles and reordering are "
         "exact, for some 3 bytes a packet ([point.md](point.md#exact)). Needs method `fold`. A class may say "
         "otherwise.",
         .bit = OW_STATED_EXACT},
	{"clock", OW_KEY_CHOICE, SEGMENT(clock), "auto",
         "What is done about clocks that are apart. With `trusted`, a delay is the difference of both clocks as they "
         "are. With `relative`, their difference is estimated from the packets of both directions and taken off. "
         "With `auto`, clocks are trusted whose error is at most a tenth of the delay; else `relative`. Each point "
         "decides for what it sends, and its results say what was done.",
         .choices = clocks},
	{"classes", OW_KEY_OTHER, offsetof(struct segment_target, segment), "one, `all`",
         "A list of classes, each with `name` and `filter`, and possibly `exact`. A class without `filter` has all "
         "IP packets except those of the TCP connection between the two points "
         "([point.md](point.md#the-points-own-session)). Every class is measured on its own, in both directions. A "
         "packet may belong to several classes.",
         .read = read_classes, .bit = OW_STATED_CLASSES},
	{0},
};

static int find_interface(struct ow_key_reader *r, const struct ow_yaml *name, unsigned *ret_index)
{
	const struct ow_config *c = config_of(r);
	for (unsigned i = 0; i < c->interface_count; i++) {
		if (strcmp(c->interfaces[i].name, name->text) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	return ow_error_set(r->err, EINVAL, "%s:%u: interfaces%s: this point has no interface '%.60s'", c->path,
	                    name->line, r->where, name->text);
}

static int watch(struct ow_key_reader *r, const struct ow_yaml *watched, uint32_t *ret_interfaces)
{
	uint32_t all = (uint32_t)((UINT64_C(1) << config_of(r)->interface_count) - 1), set = 0;
	for (const struct ow_yaml *name = watched ? watched->first : NULL; name; name = name->next) {
		unsigned i = 0;
		int code = find_interface(r, name, &i);
		if (code < 0)
			return code;
		set |= UINT32_C(1) << i;
	}
	*ret_interfaces = watched ? set : all;
	return 0;
}

/* The connecting point states every value, and so does one with several peers, because all must agree. */
static int complete(struct ow_key_reader *r, struct ow_config_segment *s)
{
	if (!s->connect && !s->peers)
		return 0;
	if (!(s->stated & OW_STATED_CLASSES)) {
		s->classes = calloc(1, sizeof *s->classes);
		if (!s->classes)
			return ow_key_no_memory(r);
		s->classes[0] = (struct ow_config_class){.name = "all", .line = s->line};
		s->class_count = 1;
	}
	/* It finds out whether to enter tunnels. */
	bool open = s->level == OW_LEVEL_AUTO && !(s->stated & OW_STATED_INNER);
	s->stated = open ? OW_STATED_ALL & ~(unsigned)OW_STATED_INNER : OW_STATED_ALL;
	return 0;
}

static int check_peers(struct ow_key_reader *r, const struct ow_yaml *entry, const struct ow_config_segment *s)
{
	const struct ow_yaml *connect = ow_yaml_entry(entry, "connect");
	if (s->peers && s->peer)
		return ow_key_fail(r, s->peers, "there is a 'peer' as well");
	if (s->peers && s->connect)
		return ow_key_fail(r, connect, "must have the names of peers with their addresses");
	if (s->connects && !s->peers)
		return ow_key_fail(r, connect, "must be a single value, unless there are several 'peers'");
	for (const struct ow_yaml *to = s->connects ? s->connects->first : NULL; to; to = to->next) {
		const struct ow_yaml *name = s->peers->first;
		while (name && strcmp(name->text, to->key) != 0)
			name = name->next;
		if (!name)
			return ow_error_set(r->err, EINVAL, "%s:%u: connect%s: '%.60s' is not one of the peers",
			                    r->path, to->line, r->where, to->key);
	}
	return 0;
}

static int read_segment(struct ow_key_reader *r, struct ow_yaml *entry, void *field)
{
	struct segment_target t = {.segment = {.line = entry->line}};
	ow_keys_enter(r, "segment", entry, "name");
	int code = ow_keys_read(r, entry, ow_segment_keys, &t, &t.segment.stated);
	if (code == 0)
		code = check_peers(r, entry, &t.segment);
	if (code == 0)
		code = watch(r, t.watched, &t.segment.interfaces);
	if (code == 0 && ow_yaml_entry(entry, "facing") && t.segment.to_peer)
		code = ow_key_fail(r, ow_yaml_entry(entry, "facing"), "to_peer gives the direction already");
	if (code == 0)
		code = complete(r, &t.segment);
	*(struct ow_config_segment *)field = t.segment;
	return code;
}

/* The segment with the nth of its peers. Each has classes of its own. */
static int copy_segment(const struct ow_config_segment *s, const struct ow_yaml *peer, struct ow_config_segment *copy)
{
	const struct ow_yaml *address = s->connects ? ow_yaml_entry(s->connects, peer->text) : NULL;
	*copy = *s;
	copy->peer = peer->text;
	copy->connect = address ? address->text : NULL;
	copy->leads = peer == s->peers->first;
	copy->classes = malloc((s->class_count + 1) * sizeof *copy->classes);
	if (!copy->classes)
		return -ENOMEM;
	memcpy(copy->classes, s->classes, s->class_count * sizeof *copy->classes);
	return 0;
}

/* Replaces each segment with several peers by one for each of them. */
static int expand_groups(struct ow_key_reader *r, struct ow_config *c)
{
	unsigned count = 0, made = 0;
	for (unsigned i = 0; i < c->segment_count; i++)
		count += c->segments[i].peers ? c->segments[i].peers->count : 1;
	if (count == c->segment_count)
		return 0;
	if (count > OW_CONFIG_SEGMENTS_MAX)
		return ow_error_set(r->err, EINVAL, "%s: segments: %u with all their peers, at most %d are possible",
		                    r->path, count, OW_CONFIG_SEGMENTS_MAX);
	struct ow_config_segment *all = calloc(count, sizeof *all);
	int code = all ? 0 : -ENOMEM;
	for (unsigned i = 0; code == 0 && i < c->segment_count; i++) {
		struct ow_config_segment *s = &c->segments[i];
		if (!s->peers) {
			all[made++] = *s;
			s->classes = NULL;
		}
		for (const struct ow_yaml *peer = s->peers ? s->peers->first : NULL; code == 0 && peer;
		     peer = peer->next)
			code = copy_segment(s, peer, &all[made++]);
	}
	for (unsigned i = 0; i < c->segment_count; i++)
		free(c->segments[i].classes);
	free(c->segments);
	c->segments = all;
	c->segment_count = made;
	return code < 0 ? ow_key_no_memory(r) : 0;
}

const struct ow_config_segment *ow_config_segment_find(const struct ow_config *config, const char *name,
                                                       const char *peer)
{
	for (unsigned i = 0; i < config->segment_count; i++) {
		const struct ow_config_segment *s = &config->segments[i];
		if (strcmp(s->name, name) == 0 && strcmp(s->peer, peer) == 0)
			return s;
	}
	return NULL;
}

/* -- recordings of flows ------------------------------------------------------------------------------------------- */

static int read_flow_classes(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_flows *flows = field;
	int code = read_class_list(r, node, &flows->classes, &flows->class_count);
	for (unsigned i = 0; code == 0 && i < flows->class_count; i++) {
		if (flows->classes[i].stated & OW_STATED_EXACT)
			code = ow_key_fail(r, node, "exact is for classes of segments");
	}
	return code;
}

static int read_form(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = ow_key_check_text(r, node);
	if (code == 0 && ow_colate_form_parse(node->text, field, &why) < 0)
		code = ow_key_fail(r, node, why.text);
	return code;
}

static int read_flow_key(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_error why;
	int code = ow_key_check_text(r, node);
	if (code == 0 && ow_flow_select_parse(node->text, field, &why) < 0)
		code = ow_key_fail(r, node, why.text);
	return code;
}

static const struct ow_choice headings[] = {
	{"both", OW_HEADING_UNKNOWN}, {"in", OW_HEADING_IN}, {"out", OW_HEADING_OUT}, {0}};

struct flows_target {
	struct ow_config_flows flows;
	struct ow_yaml *watched;
};

#define FLOWS(member) offsetof(struct flows_target, flows.member)
const struct ow_key ow_flows_keys[] = {
	{"file", OW_KEY_PATH, FLOWS(file), NULL,
         "The file to which the point appends epochs. The point refuses a file of another recording."},
	{"from", OW_KEY_PATH, FLOWS(from), NULL,
         "A file of epochs of the point that the packets pass before; it may be another recording of this point. After "
         "each interval the log names the flow that was certainly the slowest, and JSON has the worst three, when the "
         "next interval is over; of intervals of less than a second only the last ones."},
	{"interfaces", OW_KEY_OTHER, offsetof(struct flows_target, watched), "all",
         "The names of the interfaces whose packets are recorded.", .read = read_watched},
	{"heading", OW_KEY_CHOICE, FLOWS(heading), "both",
         "With `in`, the packets that the interface receives are recorded; with `out`, those that it sends.",
         .choices = headings},
	{"filter", OW_KEY_FILTER, FLOWS(filter), NULL, "Only the packets that match this filter are recorded."},
	{"peer", OW_KEY_POINT, FLOWS(peer), NULL,
         "The peer of a segment that records the same packets and names this point: each point gets the epochs of the "
         "other, and appends them to `FILE.PEER`."},
	{"interval", OW_KEY_DURATION, FLOWS(info.interval_ns), "60s",
         "Epochs end at multiples of this time, 1 ms to 1 d.", .least = OW_INTERVAL_MIN_NS, .most = DAY_NS},
	{"key", OW_KEY_OTHER, FLOWS(info.select), "`five-tuple`",
         "The fields that define a flow: `five-tuple`, `addresses`, `prefix:24,48` (bits of IPv4 and IPv6 addresses) "
         "or `class`.",
         .read = read_flow_key},
	{"classes", OW_KEY_OTHER, offsetof(struct flows_target, flows), NULL,
         "With `key: class`, a list of classes, each with `name` and `filter`. A packet belongs to the first class "
         "that matches. A class without `filter` matches all packets.",
         .read = read_flow_classes},
	{"counters", OW_KEY_COUNT, FLOWS(counters), "65536", "The number of counters of all banks together.",
         .least = 1, .most = OW_COLATE_COUNTERS_MAX},
	{"form", OW_KEY_OTHER, FLOWS(form), "`banks`",
         "The form of the counters: `banks`, `colate` or `colate-random`.", .read = read_form},
	{"banks", OW_KEY_COUNT, FLOWS(spread), NULL,
         "The number of banks (default 3), or with the other forms the counters of each flow (default 20).", .least = 1,
         .most = OW_COLATE_SPREAD_MAX},
	{"spread", OW_KEY_COUNT, FLOWS(spread), NULL, NULL, .least = 1, .most = OW_COLATE_SPREAD_MAX},
	{"bits", OW_KEY_COUNT, FLOWS(bits), "48", "The bits of a counter, of its check, and of its packet count.",
         .least = 8, .most = 64},
	{"check_bits", OW_KEY_COUNT, FLOWS(check_bits), "16", NULL, .least = 0, .most = 32},
	{"count_bits", OW_KEY_COUNT, FLOWS(count_bits), "0", NULL, .least = 0, .most = 32},
	{"vectors", OW_KEY_COUNT, FLOWS(vectors), "1", "The number of vectors that divide the packets among them.",
         .least = 1, .most = OW_COLATE_LAYERS_MAX},
	{"stddev", OW_KEY_COUNT, FLOWS(stddev), "0",
         "Additional counters for the standard deviation within flows, and how many of them each flow uses (default "
         "16).",
         .least = 0, .most = OW_COLATE_COUNTERS_MAX},
	{"stddev_spread", OW_KEY_COUNT, FLOWS(stddev_spread), NULL, NULL, .least = 1, .most = OW_COLATE_SPREAD_MAX},
	{"repair", OW_KEY_COUNT, FLOWS(repair), "8192",
         "So many lost packets of an epoch can be taken out of the counters when they are compared; 23 bytes each, "
         "with one counter more for 4 of them (banks).",
         .least = 0, .most = OW_COLATE_REPAIR_MAX},
	{"seed", OW_KEY_COUNT, FLOWS(seed), "1", "The seed of all hashes.", .least = 0, .most = UINT64_MAX},
	{"identity", OW_KEY_CHOICE, FLOWS(info.level), "ip", "These keys have the same meaning as in a segment.",
         .choices = levels},
	{"inner", OW_KEY_BOOL, FLOWS(info.inner), "false", NULL},
	{"id_bytes", OW_KEY_COUNT, FLOWS(id_bytes), "64",
         "How many bytes from the IP header on enter the identity of a packet.", .least = 1, .most = UINT32_MAX},
	{"counts", OW_KEY_BOOL, FLOWS(info.counts), "true", "Whether the point counts the packets of each flow."},
	{"flows_max", OW_KEY_COUNT, FLOWS(flows_max), "1048576",
         "The largest number of flows that each thread counts in an epoch. A flow needs about 100 bytes.", .least = 1,
         .most = OW_FLOW_COUNTS_MAX},
	{0},
};

static bool is_peer(const struct ow_config *c, const char *name)
{
	for (unsigned i = 0; i < c->segment_count; i++) {
		if (strcmp(c->segments[i].peer, name) == 0)
			return true;
	}
	return false;
}

static int read_recording(struct ow_key_reader *r, struct ow_yaml *entry, void *field)
{
	const struct ow_config *c = config_of(r);
	struct flows_target t = {.flows = {.form = OW_COLATE_BANKS, .line = entry->line}};
	struct ow_error why;
	t.flows.info.select.by = OW_FLOW_BY_FIVE_TUPLE;
	ow_keys_enter(r, "flows", entry, "file");
	int code = ow_keys_read(r, entry, ow_flows_keys, &t, NULL);
	if (code == 0)
		code = watch(r, t.watched, &t.flows.interfaces);
	if (code == 0 && ow_config_flows_complete(&t.flows, &why) < 0)
		code = ow_key_fail(r, entry, why.text);
	*(struct ow_config_flows *)field = t.flows;
	if (code == 0 && t.flows.peer && !is_peer(c, t.flows.peer))
		code = ow_key_fail(r, entry, "its peer is in no segment");
	for (unsigned i = 0; code == 0 && i + 1 < c->flows_count; i++) {
		if (strcmp(c->flows[i].file, t.flows.file) == 0)
			code = ow_key_fail(r, entry, "another recording has this file already");
		else if (t.flows.peer && c->flows[i].peer && strcmp(c->flows[i].peer, t.flows.peer) == 0 &&
		         c->flows[i].heading == t.flows.heading &&
		         ow_epoch_info_comparable(&c->flows[i].info, &t.flows.info, NULL) == 0)
			code = ow_key_fail(
				r, entry,
				"another recording with this peer and heading is the same: it needs another seed");
	}
	return code;
}

/* -- the point ----------------------------------------------------------------------------------------------------- */

static int read_point(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	static const struct ow_key key = {.name = "point", .type = OW_KEY_POINT};
	const char *name;
	struct ow_error why;
	int code = ow_key_check_text(r, node);
	if (code == 0 && ow_key_set(&key, node->text, &name, &why) < 0)
		return ow_key_fail(r, node, why.text);
	if (code == 0)
		snprintf(field, OW_RESULT_NAME, "%s", name);
	return code;
}

/* They refer to interfaces, so they are read last. */
static int keep(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	(void)r;
	*(struct ow_yaml **)field = node;
	return 0;
}

static const struct ow_choice outputs[] = {
	{"text", OW_OUTPUT_TEXT}, {"json", OW_OUTPUT_JSON}, {"none", OW_OUTPUT_NONE}, {0}};
static const struct ow_choice sandboxes[] = {
	{"true", OW_SANDBOX_ON}, {"false", OW_SANDBOX_OFF}, {"log", OW_SANDBOX_LOG}, {0}};

struct config_target {
	struct ow_config config;
	struct ow_yaml *segments, *flows;
};

#define CONFIG(member)    offsetof(struct config_target, config.member)
#define DISCOVERY(member) offsetof(struct ow_config_discovery, member)
const struct ow_key ow_discovery_keys[] = {
	{"key", OW_KEY_TEXT, DISCOVERY(key), NULL,
         "A secret of at least 16 characters, the same at all points: it decides which packets are sampled. Who knows "
         "it "
         "can make packets that are sampled.",
         .needed = true},
	{"epoch", OW_KEY_DURATION, DISCOVERY(epoch_ns), "10s",
         "The length of an epoch, 100 ms to 17 s, the same at all points.", .least = 100 * OW_NS_PER_MS,
         .most = 17 * OW_NS_PER_S},
	{"records", OW_KEY_COUNT, DISCOVERY(records), "512",
         "Packets in the sample of an epoch, for each interface and direction, 16 to 4096; 17 bytes each.", .least = 16,
         .most = 4096},
	{0},
};

#define DISCOVERY_KEY_MIN 16

static int read_discovery(struct ow_key_reader *r, struct ow_yaml *node, void *field)
{
	struct ow_config_discovery *discovery = field;
	int code = ow_keys_read(r, node, ow_discovery_keys, discovery, NULL);
	if (code == 0 && strlen(discovery->key) < DISCOVERY_KEY_MIN)
		code = ow_key_fail(r, node, "has a key of fewer than 16 characters");
	return code;
}

const struct ow_key ow_config_keys[] = {
	{"point", OW_KEY_OTHER, CONFIG(point), NULL,
         "The name of this point. With certificates it must be the name in the certificate.", .read = read_point},
	{"listen", OW_KEY_ADDRESS, CONFIG(listen), NULL,
         "The `address:port` at which peers connect. `:8620` means all addresses, `[::1]:8620` is IPv6. With port 0 "
         "the kernel chooses a port, and the log shows it."},
	{"certificate", OW_KEY_PATH, CONFIG(certificate), NULL,
         "PEM files: the point's certificate, its private key, and the certificate of the CA. All three are needed."},
	{"key", OW_KEY_PATH, CONFIG(key), NULL, NULL},
	{"ca", OW_KEY_PATH, CONFIG(ca), NULL, NULL},
	{"psk", OW_KEY_PATH, CONFIG(psk), NULL,
         "A file with a shared key of at least 32 hex digits. It replaces the certificates in a lab."},
	{"memory", OW_KEY_SIZE, CONFIG(memory), "256MiB",
         "The memory for the packets of all lanes, 1 MiB to 1 TiB: see [point.md](point.md#memory).", .least = MIB(1),
         .most = MIB(1 << 20)},
	{"store", OW_KEY_PATH, CONFIG(store), NULL,
         "The point also writes results into this SQLite file ([store.md](store.md))."},
	{"retention", OW_KEY_DURATION, CONFIG(retention_ns[OW_PERIOD_INTERVAL]), "7d",
         "The point deletes results of intervals that are older than this from the store. With `0` it keeps them.",
         .least = 60 * OW_NS_PER_S, .most = 36500 * DAY_NS, .or_zero = true},
	{"retention_minutes", OW_KEY_DURATION, CONFIG(retention_ns[OW_PERIOD_MINUTE]), "90d",
         "The same for the minutes, hours and days to which results are added up "
         "([store.md](store.md#minutes-hours-and-days)).",
         .least = 60 * OW_NS_PER_S, .most = 36500 * DAY_NS, .or_zero = true},
	{"retention_hours", OW_KEY_DURATION, CONFIG(retention_ns[OW_PERIOD_HOUR]), "730d", NULL,
         .least = 60 * OW_NS_PER_S, .most = 36500 * DAY_NS, .or_zero = true},
	{"retention_days", OW_KEY_DURATION, CONFIG(retention_ns[OW_PERIOD_DAY]), "0", NULL, .least = 60 * OW_NS_PER_S,
         .most = 36500 * DAY_NS, .or_zero = true},
	{"store_max", OW_KEY_SIZE, CONFIG(store_max), "1GiB",
         "If the store is larger than this (1 MiB to 64 TiB), the point deletes the oldest rows, of each kind in "
         "proportion to how long it is kept. `0` means no "
         "limit.",
         .least = MIB(1), .most = MIB(1 << 26), .or_zero = true},
	{"metrics", OW_KEY_HOST, CONFIG(metrics), NULL,
         "The `address:port` at which Prometheus reads `/metrics` ([metrics.md](metrics.md)), for example "
         "`127.0.0.1:9620`. At `0.0.0.0:9620` everybody can read it. With port 0 the kernel chooses a port, and the "
         "log shows it."},
	{"web", OW_KEY_HOST, CONFIG(web), NULL,
         "The `address:port` of this host at which a [page](web.md) shows the store, for example `127.0.0.1:8080`. A "
         "process of its own serves it, with the lowest priority. `oneway web` serves it for other hosts."},
	{"output", OW_KEY_CHOICE, CONFIG(output), "text",
         "What the point writes to standard output for each result: a line of `text`, a line of `json`, or `none`. "
         "The options `--json`, `--text` and `--quiet` override this key.",
         .choices = outputs},
	{"user", OW_KEY_TEXT, CONFIG(user), NULL,
         "If root starts the point, it becomes this user, without supplementary groups, before it opens any file "
         "except the configuration. This user must be able to read the keys and to write to the folder of the store."},
	{"sandbox", OW_KEY_CHOICE, CONFIG(sandbox), "true",
         "Whether seccomp and landlock confine the point once everything is open. With `log`, seccomp only logs the "
         "system calls that it would otherwise kill the point for: see [service.md](service.md#privileges).",
         .choices = sandboxes},
	{"interfaces", OW_KEY_OTHER, 0, NULL, "The list of interfaces that the point watches.",
         .read = read_interfaces},
	{"segments", OW_KEY_OTHER, offsetof(struct config_target, segments), NULL,
         "The list of segments that the point measures.", .read = keep},
	{"flows", OW_KEY_OTHER, offsetof(struct config_target, flows), NULL,
         "The list of recordings for per-flow latency. With it, `segments` and the keys can be omitted.", .read = keep},
	{"fleet", OW_KEY_OTHER, CONFIG(fleet), NULL,
         "The fleet that the point belongs to ([fleet.md](fleet.md)). What this file does not say comes from there.",
         .read = ow_config_read_fleet},
	{"discovery", OW_KEY_OTHER, CONFIG(discovery), NULL,
         "Samples of packets, for the map of the network ([discovery.md](discovery.md)). It needs `store`; with it, "
         "`segments` and the keys can be omitted.",
         .read = read_discovery},
	{0},
};

static int read_config(struct config_target *t, struct ow_error *err)
{
	struct ow_config *c = &t->config;
	struct ow_key_reader r = {.path = c->path, .context = c, .err = err};
	int code = ow_keys_read(&r, c->tree, ow_config_keys, t, NULL);
	if (code == 0)
		code = ow_config_complete_fleet(&r, c, t->segments || t->flows || c->discovery.key);
	if (code == 0)
		code = ow_config_check_top(c, t->segments != NULL, t->flows != NULL, err);
	if (code == 0 && t->segments)
		code = ow_keys_read_list(&r, t->segments, OW_CONFIG_SEGMENTS_MAX, sizeof *c->segments,
		                         (void **)&c->segments, &c->segment_count, read_segment);
	if (code == 0)
		code = expand_groups(&r, c);
	if (code == 0 && t->flows)
		code = ow_keys_read_list(&r, t->flows, OW_CONFIG_FLOWS_MAX, sizeof *c->flows, (void **)&c->flows,
		                         &c->flows_count, read_recording);
	return code < 0 ? code : ow_config_check_segments(c, err);
}

static void done(struct ow_config *config)
{
	for (unsigned i = 0; i < config->segment_count; i++)
		free(config->segments[i].classes);
	free(config->segments);
	for (unsigned i = 0; i < config->flows_count; i++)
		free(config->flows[i].classes);
	free(config->flows);
	free(config->interfaces);
	ow_yaml_free(config->tree);
	free(config->path);
}

int ow_config_parse_with(const char *path, const char *bytes, size_t size, const char *desired, size_t desired_size,
                         struct ow_config **ret_config, struct ow_error *err)
{
	struct config_target t = {0};
	int r = ow_yaml_parse(path, bytes, size, &t.config.tree, err);
	if (r == 0 && desired)
		r = ow_config_merge(t.config.tree, desired, desired_size, &t.config.fleet, err);
	struct ow_config *config = malloc(sizeof *config);
	t.config.path = strdup(path);
	if (r == 0)
		r = config && t.config.path ? read_config(&t, err)
		                            : ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	if (r < 0 || !config) {
		done(&t.config);
		free(config);
		return r;
	}
	*config = t.config;
	*ret_config = config;
	return 0;
}

int ow_config_parse(const char *path, const char *bytes, size_t size, struct ow_config **ret_config,
                    struct ow_error *err)
{
	return ow_config_parse_with(path, bytes, size, NULL, 0, ret_config, err);
}

void ow_config_free(struct ow_config *config)
{
	if (!config)
		return;
	done(config);
	free(config);
}
