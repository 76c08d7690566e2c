/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the entries of a configuration fit each other and this host. */
#include "config/config_check.h"

#include "packet/packet_filter.h"
#include "config/memory_budget.h"
#include "sandbox/privileges.h"
#include "reconcile/late_packets.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t ow_config_horizon(int64_t wait_ns, int64_t interval_ns)
{
	int64_t intervals = wait_ns / interval_ns + (wait_ns % interval_ns != 0);
	return intervals < 1 ? 1 : intervals > UINT32_MAX ? UINT32_MAX : (uint32_t)intervals;
}

static int check_keys(const struct ow_config *c, struct ow_error *err)
{
	const char *const key[] = {c->certificate, c->key, c->ca};
	static const char *const name[] = {"certificate", "key", "ca"};
	unsigned given = 0, missing = 0;
	for (unsigned i = 0; i < 3; i++) {
		given += key[i] != NULL;
		missing = key[i] ? missing : i;
	}
	if (c->psk && given > 0)
		return ow_error_set(err, EINVAL, "%s: psk and certificate exclude each other", c->path);
	if (!c->psk && given == 0)
		return ow_error_set(err, EINVAL, "%s: needs certificate, key and ca, or psk", c->path);
	if (given > 0 && given < 3)
		return ow_error_set(err, EINVAL, "%s: certificate, key and ca belong together: no %s", c->path,
		                    name[missing]);
	return 0;
}

static int check_interface(const struct ow_config *c, unsigned n, struct ow_error *err)
{
	const struct ow_config_interface *i = &c->interfaces[n];
	if (!i->name)
		return ow_error_set(err, EINVAL, "%s:%u: interface %u has neither name nor file", c->path, i->line,
		                    n + 1);
	if (!i->file && strlen(i->name) >= IF_NAMESIZE)
		return ow_error_set(err, EINVAL, "%s:%u: name of interface '%s': longer than %d characters", c->path,
		                    i->line, i->name, IF_NAMESIZE - 1);
	if (!i->file && i->speed != 1)
		return ow_error_set(err, EINVAL, "%s:%u: speed of interface '%s': only a file has one", c->path,
		                    i->line, i->name);
	if (i->file && (i->threads != 1 || i->ring_bytes || i->hardware_stamps || i->capture != OW_IFACE_AUTO))
		return ow_error_set(
			err, EINVAL,
			"%s:%u: interface '%.60s': a file has no threads, ring, capture or hardware_timestamps",
			c->path, i->line, i->name);
	for (unsigned k = 0; k < n; k++) {
		if (strcmp(c->interfaces[k].name, i->name) == 0)
			return ow_error_set(err, EINVAL, "%s:%u: interface '%.60s' is in line %u already", c->path,
			                    i->line, i->name, c->interfaces[k].line);
	}
	return 0;
}

int ow_config_check_top(const struct ow_config *c, bool has_segments, bool has_flows, struct ow_error *err)
{
	if (!c->point[0])
		return ow_error_set(err, EINVAL, "%s: has no 'point', the name of this point", c->path);
	/* A point of a fleet may have nothing to measure until the fleet says what. */
	if (c->interface_count == 0 && !c->fleet.waits)
		return ow_error_set(err, EINVAL, "%s: has no 'interfaces' to watch", c->path);
	if (!has_segments && !has_flows && !c->discovery.key && !c->fleet.waits)
		return ow_error_set(err, EINVAL, "%s: has no 'segments' to measure, nor 'flows' to record", c->path);
	if (c->discovery.key && !c->store)
		return ow_error_set(err, EINVAL, "%s: 'discovery' needs a 'store' for its samples", c->path);
	/* Without segments the point has no peers. */
	int r = has_segments || c->listen || c->certificate || c->key || c->ca || c->psk ? check_keys(c, err) : 0;
	for (unsigned i = 0; r == 0 && i < c->interface_count; i++)
		r = check_interface(c, i, err);
	return r;
}

static int check_classes(const struct ow_config *c, const struct ow_config_segment *s, struct ow_error *err)
{
	for (unsigned i = 0; i < s->class_count; i++) {
		const struct ow_config_class *class = &s->classes[i];
		if (!class->name)
			return ow_error_set(err, EINVAL, "%s:%u: class %u of segment '%s' has no name", c->path,
			                    class->line, i + 1, s->name);
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(s->classes[k].name, class->name) == 0)
				return ow_error_set(err, EINVAL,
				                    "%s:%u: class '%s' of segment '%s' is in line %u already", c->path,
				                    class->line, class->name, s->name, s->classes[k].line);
		}
	}
	return 0;
}

static int check_wait(const struct ow_config *c, const struct ow_config_segment *s, struct ow_error *err)
{
	uint32_t horizon = ow_config_horizon(s->wait_ns, s->interval_ns);
	/* If the peer states one of the two values, they are checked when the points make the agreement. */
	bool both = (s->stated & OW_STATED_WAIT) && (s->stated & OW_STATED_INTERVAL);
	if (both && horizon > OW_LATE_PACKETS_HORIZON_MAX)
		return ow_error_set(err, EINVAL, "%s:%u: segment '%s': wait is %u intervals, at most %d are possible",
		                    c->path, s->line, s->name, horizon, OW_LATE_PACKETS_HORIZON_MAX);
	return 0;
}

static int check_exact(const struct ow_config *c, const struct ow_config_segment *s, struct ow_error *err)
{
	bool exact = s->exact;
	for (unsigned i = 0; i < s->class_count; i++)
		exact |= s->classes[i].exact;
	if (exact && s->method == OW_METHOD_RDA)
		return ow_error_set(err, EINVAL, "%s:%u: segment '%s': exact needs method fold", c->path, s->line,
		                    s->name);
	return 0;
}

static int check_segment(const struct ow_config *c, unsigned n, struct ow_error *err)
{
	const struct ow_config_segment *s = &c->segments[n];
	if (!s->name || !s->peer)
		return ow_error_set(err, EINVAL, "%s:%u: segment %u has no %s", c->path, s->line, n + 1,
		                    s->name ? "peer" : "name");
	if (strcmp(s->peer, c->point) == 0)
		return ow_error_set(err, EINVAL, "%s:%u: peer of segment '%s' is this point itself", c->path, s->line,
		                    s->name);
	if (!s->connect && !c->listen)
		return ow_error_set(err, EINVAL,
		                    "%s:%u: segment '%s' has no 'connect', and this point does not 'listen' either",
		                    c->path, s->line, s->name);
	int r = check_wait(c, s, err);
	if (r == 0)
		r = check_exact(c, s, err);
	return r < 0 ? r : check_classes(c, s, err);
}

/* One connection is used for all segments with a peer. */
static int check_pair(const struct ow_config *c, const struct ow_config_segment *s, const struct ow_config_segment *t,
                      struct ow_error *err)
{
	bool together = s->peers && s->peers == t->peers;
	if (strcmp(s->name, t->name) == 0 && !together)
		return ow_error_set(err, EINVAL, "%s:%u: segment '%s' is in line %u already", c->path, t->line, t->name,
		                    s->line);
	if (strcmp(s->peer, t->peer) != 0)
		return 0;
	if (s->peers && t->peers)
		return ow_error_set(err, EINVAL, "%s:%u: '%s' is one of the peers of two segments, '%s' and '%s'",
		                    c->path, t->line, t->peer, s->name, t->name);
	if (!s->connect != !t->connect || (s->connect && strcmp(s->connect, t->connect) != 0))
		return ow_error_set(err, EINVAL,
		                    "%s:%u: segments '%s' and '%s' have the same peer but differ in 'connect'", c->path,
		                    t->line, s->name, t->name);
	return 0;
}

int ow_config_check_segments(const struct ow_config *c, struct ow_error *err)
{
	unsigned lanes = 0;
	for (unsigned i = 0; i < c->segment_count; i++) {
		int r = check_segment(c, i, err);
		for (unsigned k = 0; r == 0 && k < i; k++)
			r = check_pair(c, &c->segments[k], &c->segments[i], err);
		if (r < 0)
			return r;
		lanes += 2 * c->segments[i].class_count;
	}
	if (lanes > OW_LANES_MAX)
		return ow_error_set(err, EINVAL, "%s: %u classes in two directions, at most %d are possible", c->path,
		                    lanes / 2, OW_LANES_MAX / 2);
	uint64_t needed = ow_agree_needed(c, &lanes);
	if (needed > c->memory)
		return ow_error_set(err, EINVAL,
		                    "%s: memory: %.4g MiB, but %u lanes (each class in two directions) need at least "
		                    "%.4g MiB; with longer intervals they need less",
		                    c->path, (double)c->memory / (1 << 20), lanes, (double)needed / (1 << 20));
	return 0;
}

int ow_config_filter(const char *filter, struct ow_error *err)
{
	struct ow_packet_filter compiled;
	int r = ow_packet_filter_compile(NULL, OW_LINKTYPE_ETHERNET, filter, &compiled, err);
	if (r == 0)
		ow_packet_filter_done(&compiled);
	return r;
}

static int check_file(const struct ow_config *c, const char *key, const char *path, struct ow_error *err)
{
	struct stat st;
	if (!path)
		return 0;
	if (stat(path, &st) < 0 || access(path, R_OK) < 0)
		return ow_error_set(err, errno, "%s: %s: %s: %s", c->path, key, path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return ow_error_set(err, EISDIR, "%s: %s: %s: is a folder", c->path, key, path);
	return 0;
}

static int check_secret(const struct ow_config *c, const char *key, const char *path, struct ow_error *err)
{
	struct stat st;
	int r = check_file(c, key, path, err);
	if (r == 0 && path && stat(path, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)))
		r = ow_error_set(err, EACCES, "%s: %s: %s: others than its owner may use it; run: chmod 600 %s",
		                 c->path, key, path, path);
	return r;
}

static int check_filter(const struct ow_config *c, unsigned line, const char *what, const char *name,
                        const char *filter, struct ow_error *err)
{
	struct ow_error why;
	if (!filter || ow_config_filter(filter, &why) == 0)
		return 0;
	return ow_error_set(err, EINVAL, "%s:%u: %s '%.60s': filter '%.60s': %.200s", c->path, line, what, name, filter,
	                    why.text);
}

static int check_source(const struct ow_config *c, const struct ow_config_interface *i, struct ow_error *err)
{
	int r = check_file(c, "file", i->file, err);
	if (r < 0 || i->file || if_nametoindex(i->name) != 0)
		return r;
	if (c->fleet.interfaces)
		return ow_error_set(err, ENODEV, "desired state: interface '%s' is not on this host", i->name);
	return ow_error_set(err, ENODEV, "%s:%u: interface '%s' is not on this host", c->path, i->line, i->name);
}

static int check_store(const struct ow_config *c, struct ow_error *err)
{
	/*
	 * A disk that is read-only for now does not prevent the point from measuring: it tries to open the store again.
	 */
	if (!c->store || access(c->store, W_OK) == 0 || errno == EROFS)
		return 0;
	const char *slash = strrchr(c->store, '/');
	char folder[4097] = ".";
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == c->store ? 1 : (int)(slash - c->store), c->store);
	if (errno != ENOENT || (access(folder, W_OK) < 0 && errno != EROFS))
		return ow_error_set(err, errno, "%s: store: %s: %s", c->path, c->store, strerror(errno));
	return 0;
}

/* Capture files do not contain the direction of packets. */
static int check_direction(const struct ow_config *c, const struct ow_config_segment *s, struct ow_error *err)
{
	for (unsigned i = 0; i < c->interface_count && !s->to_peer; i++) {
		if (c->interfaces[i].file && s->interfaces >> i & 1)
			return ow_error_set(
				err, EINVAL,
				"%s:%u: segment '%s': file '%s' does not contain the direction of packets: set to_peer",
				c->path, s->line, s->name, c->interfaces[i].name);
	}
	return 0;
}

int ow_config_check_filters(const struct ow_config *c, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < c->interface_count; i++)
		r = check_filter(c, c->interfaces[i].line, "interface", c->interfaces[i].name, c->interfaces[i].filter,
		                 err);
	for (unsigned i = 0; r == 0 && i < c->segment_count; i++) {
		const struct ow_config_segment *s = &c->segments[i];
		r = check_direction(c, s, err);
		if (r == 0)
			r = check_filter(c, s->line, "to_peer of segment", s->name, s->to_peer, err);
		for (unsigned k = 0; r == 0 && k < s->class_count; k++)
			r = check_filter(c, s->classes[k].line, "class", s->classes[k].name, s->classes[k].filter, err);
	}
	for (unsigned i = 0; r == 0 && i < c->flows_count; i++) {
		const struct ow_config_flows *f = &c->flows[i];
		r = check_filter(c, f->line, "filter of flows", f->file, f->filter, err);
		for (unsigned k = 0; r == 0 && k < f->class_count; k++)
			r = check_filter(c, f->classes[k].line, "class", f->classes[k].name, f->classes[k].filter, err);
	}
	return r;
}

int ow_config_check_interfaces(const struct ow_config *c, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < c->interface_count; i++)
		r = check_source(c, &c->interfaces[i], err);
	return r;
}

int ow_config_check(const struct ow_config *c, struct ow_error *err)
{
	int r = check_file(c, "certificate", c->certificate, err);
	if (r == 0)
		r = check_file(c, "ca", c->ca, err);
	if (r == 0)
		r = check_secret(c, "key", c->key, err);
	if (r == 0)
		r = check_secret(c, "psk", c->psk, err);
	if (r == 0)
		r = check_store(c, err);
	if (r == 0 && c->user && !ow_user_exists(c->user))
		r = ow_error_set(err, ENOENT, "%s: user: '%.60s' does not exist", c->path, c->user);
	if (r == 0)
		r = ow_config_check_interfaces(c, err);
	return r < 0 ? r : ow_config_check_filters(c, err);
}
