/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: what is accepted, and that everything else is refused with the line and the reason. */
#include "config/config.h"
#include "config/yaml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define TOP "point: london\npsk: p\ninterfaces:\n  - name: lo\n"
#define SEG "segments:\n  - name: x\n    peer: paris\n    connect: 192.0.2.7:8620\n"

static const char full[] = "point: london\n"
			   "listen: 0.0.0.0:8620\n"
			   "certificate: tls/london.pem\n"
			   "key: /etc/oneway/london.key\n"
			   "ca: ca.pem\n"
			   "memory: 1GB\n"
			   "store: results.db\n"
			   "retention: 30d\n"
			   "store_max: 2GiB\n"
			   "metrics: 127.0.0.1:9620\n"
			   "output: json\n"
			   "segments:\n"
			   "  - name: london-paris\n"
			   "    peer: paris\n"
			   "    connect: 192.0.2.7:8620\n"
			   "    interfaces: [eth1, tap]\n"
			   "    to_peer: \"src net 10.1.0.0/16\"\n"
			   "    interval: 100ms\n"
			   "    wait: 250ms\n"
			   "    method: rda\n"
			   "    identity: nat\n"
			   "    inner: true\n"
			   "    classes: [ {name: web, filter: \"tcp port 443\"}, {name: rest} ]\n"
			   "  - name: london-oslo\n"
			   "    peer: oslo\n"
			   "    facing: away\n"
			   "    interfaces: [eth0]\n"
			   "    wait: 3s\n"
			   "interfaces:\n"
			   "  - name: eth0\n"
			   "    threads: 2\n"
			   "    ring: 128MiB\n"
			   "    hardware_timestamps: true\n"
			   "    filter: ip\n"
			   "  - name: eth1\n"
			   "  - name: tap\n"
			   "    file: a.pcap\n"
			   "    speed: 2.5\n"
			   "  - file: traces/b.pcap\n";

static struct ow_config *parse(const char *text, struct ow_error *err)
{
	struct ow_config *config = NULL;
	err->text[0] = 0;
	int r = ow_config_parse("conf/t.yaml", text, strlen(text), &config, err);
	assert_int_equal(r < 0, config == NULL);
	assert_int_equal(r < 0, err->text[0] != 0);
	return config;
}

static struct ow_config *good(const char *text)
{
	struct ow_error err;
	struct ow_config *config = parse(text, &err);
	if (!config)
		fail_msg("refused: %s\n%s", err.text, text);
	return config;
}

static void reads_the_point(void **state)
{
	(void)state;
	struct ow_config *c = good(full);
	assert_string_equal(c->point, "london");
	assert_string_equal(c->listen, "0.0.0.0:8620");
	assert_string_equal(c->certificate, "conf/tls/london.pem");
	assert_string_equal(c->key, "/etc/oneway/london.key");
	assert_null(c->psk);
	assert_int_equal(c->memory, 1000000000);
	assert_int_equal(c->output, OW_OUTPUT_JSON);
	assert_string_equal(c->store, "conf/results.db");
	assert_int_equal(c->retention_ns[OW_PERIOD_INTERVAL], INT64_C(30) * 86400 * 1000000000);
	assert_int_equal(c->store_max, UINT64_C(2) << 30);
	assert_string_equal(c->metrics, "127.0.0.1:9620");
	assert_int_equal(c->interface_count, 4);
	assert_int_equal(c->interfaces[0].threads, 2);
	assert_int_equal(c->interfaces[0].ring_bytes, 128 << 20);
	assert_true(c->interfaces[0].hardware_stamps);
	assert_string_equal(c->interfaces[0].filter, "ip");
	assert_string_equal(c->interfaces[2].file, "conf/a.pcap");
	assert_true(c->interfaces[2].speed == 2.5);
	assert_string_equal(c->interfaces[3].name, "b.pcap");
	ow_config_free(c);
}

static void reads_segments(void **state)
{
	(void)state;
	struct ow_config *c = good(full);
	assert_int_equal(c->segment_count, 2);
	const struct ow_config_segment *s = &c->segments[0];
	assert_string_equal(s->peer, "paris");
	assert_int_equal(s->interfaces, 2 | 4);
	assert_string_equal(s->to_peer, "src net 10.1.0.0/16");
	assert_int_equal(s->interval_ns, 100000000);
	assert_int_equal(ow_config_horizon(s->wait_ns, s->interval_ns), 3);
	assert_int_equal(s->method, OW_METHOD_RDA);
	assert_int_equal(s->level, OW_LEVEL_NAT);
	assert_true(s->inner);
	assert_int_equal(s->stated, OW_STATED_ALL);
	assert_int_equal(s->class_count, 2);
	assert_string_equal(s->classes[0].filter, "tcp port 443");
	assert_null(s->classes[1].filter);
	s = &c->segments[1];
	assert_true(s->facing == OW_FACING_AWAY);
	assert_null(s->connect);
	assert_int_equal(s->interfaces, 1);
	assert_int_equal(s->stated, OW_STATED_WAIT);
	assert_int_equal(s->class_count, 0);
	ow_config_free(c);
}

static void defaults(void **state)
{
	(void)state;
	struct ow_config *c = good(TOP SEG);
	const struct ow_config_segment *s = &c->segments[0];
	assert_int_equal(c->memory, 256 << 20);
	assert_int_equal(c->retention_ns[OW_PERIOD_INTERVAL], INT64_C(7) * 86400 * 1000000000);
	assert_int_equal(c->store_max, 1 << 30);
	assert_int_equal(c->output, OW_OUTPUT_TEXT);
	assert_int_equal(s->interfaces, 1);
	assert_false(s->facing == OW_FACING_AWAY);
	assert_int_equal(s->interval_ns, 1000000000);
	assert_int_equal(s->wait_ns, 2000000000);
	assert_int_equal(s->class_count, 1);
	assert_string_equal(s->classes[0].name, "all");
	assert_null(s->classes[0].filter);
	ow_config_free(c);
}

/* A segment with several peers is one with each of them. */
static void several_peers(void **state)
{
	(void)state;
	struct ow_config *c = good(TOP "listen: :8620\nsegments:\n  - {name: one, peer: oslo}\n"
	                               "  - name: ways\n    peers: [b1, b2]\n    connect: {b2: 192.0.2.8:1}\n"
	                               "    classes: [{name: web, filter: tcp}]\n  - {name: two, peer: b1}\n");
	assert_int_equal(c->segment_count, 4);
	const struct ow_config_segment *s = ow_config_segment_find(c, "ways", "b1");
	assert_non_null(s);
	assert_null(s->connect);
	assert_true(s->leads);
	assert_string_equal(s->group, "b1+b2");
	assert_int_equal(s->stated & OW_STATED_INTERVAL, OW_STATED_INTERVAL);
	assert_int_equal(ow_config_lanes(s), 3);
	s = ow_config_segment_find(c, "ways", "b2");
	assert_string_equal(s->connect, "192.0.2.8:1");
	assert_false(s->leads);
	assert_string_equal(s->classes[0].name, "web");
	assert_int_equal(ow_config_lanes(s), 2);
	assert_null(ow_config_segment_find(c, "ways", "oslo"));
	assert_null(ow_config_segment_find(c, "one", "oslo")->peers);
	ow_config_free(c);
}

#define WAYS "listen: :8620\nsegments:\n  - name: x\n"

static const struct {
	const char *text, *error;
} bad[] = {
	{TOP WAYS "    peers: [b1]\n", "t.yaml:8: peers of segment 'x': must be a list of 2 to 16 names"},
	{TOP WAYS "    peers: b1\n", "peers of segment 'x': must be a list of 2 to 16 names"},
	{TOP WAYS "    peers: [b1, b2, b1]\n", "peers of segment 'x': 'b1' is in the list twice"},
	{TOP WAYS "    peers: [b1, b/2]\n", "a point's name has 1 to 63 letters"},
	{TOP WAYS "    peers: [b1, b2]\n    peer: b3\n", "peers of segment 'x': there is a 'peer' as well"},
	{TOP WAYS "    peers: [b1, b2]\n    connect: {b3: 192.0.2.7:1}\n",
         "connect of segment 'x': 'b3' is not one of the peers"},
	{TOP WAYS "    peers: [b1, b2]\n    connect: 192.0.2.7:1\n",
         "connect of segment 'x': must have the names of peers with their addresses"},
	{TOP WAYS "    peers: [b1, b2]\n    connect: {b1: here}\n", "b1 of segment 'x': is not an address"},
	{TOP WAYS "    peer: b1\n    connect: {b1: 192.0.2.7:1}\n",
         "connect of segment 'x': must be a single value, unless there are several 'peers'"},
	{TOP WAYS "    peers: [a-very-long-name-of-a-point-in-paris, another-long-name-of-a-point-in-paris]\n",
         "the names are together longer than 63 characters"},
	{TOP SEG "    intervall: 1s\n",
         "conf/t.yaml:9: unknown key 'intervall' in segment 'x', did you mean 'interval'?"},
	{"pont: london\n", "conf/t.yaml:1: unknown key 'pont', did you mean 'point'?"},
	{TOP SEG "    colour: red\n", "conf/t.yaml:9: unknown key 'colour' in segment 'x'"},
	{TOP SEG "    interval: 1s\n    interval: 2s\n", "conf/t.yaml:10: key 'interval' was given in line 9 already"},
	{TOP SEG "    interval: 1\n", "conf/t.yaml:9: interval of segment 'x': "},
	{TOP SEG "    interval: 1us\n", "conf/t.yaml:9: interval of segment 'x': '1us' is not in 1 ms .. "},
	{TOP SEG "    interval: [1s]\n", "must be a single value"},
	{TOP SEG "    interval:\n", "conf/t.yaml:9: no value"},
	{TOP SEG "    interval: 1ms\n    wait: 2s\n", "wait is 2000 intervals, at most 1024"},
	{TOP SEG "    method: folds\n", "method of segment 'x': 'folds' is not fold or rda"},
	{TOP SEG "    identity: frame\n", "'frame' is not auto, ip or nat"},
	{TOP SEG "    inner: maybe\n", "is not true or false"},
	{TOP SEG "    exact: true\n    method: rda\n", "segment 'x': exact needs method fold"},
	{TOP SEG "    method: rda\n    classes: [{name: web, exact: true}]\n", "segment 'x': exact needs method fold"},
	{TOP SEG "    facing: peer\n    to_peer: ip\n", "conf/t.yaml:9: facing of segment 'x': to_peer gives"},
	{TOP SEG "    interfaces: [eth7]\n",
         "conf/t.yaml:9: interfaces of segment 'x': this point has no interface 'eth7'"},
	{TOP SEG "    interfaces: []\n", "must be a list of at least one entry"},
	{TOP SEG "    classes: [{filter: ip}]\n", "class 1 of segment 'x' has no name"},
	{TOP SEG "    classes: [{name: a}, {name: a}]\n", "class 'a' of segment 'x' is in line 9 already"},
	{TOP SEG "    classes: [{name: a, filtre: ip}]\n", "unknown key 'filtre' in class 'a', did you mean 'filter'?"},
	{TOP SEG "    classes: [{name: 'a b'}]\n", "has a space, a slash or a character that is not printable ASCII"},
	{TOP SEG "    classes: [{name: 0123456789012345678901234567890123456789012345678901234567890123}]\n",
         "is longer than 63 characters"},
	{TOP SEG "  - name: x\n    peer: oslo\n    connect: a:1\n", "conf/t.yaml:9: segment 'x' is in line 6 already"},
	{TOP SEG "  - name: y\n    peer: paris\n    connect: a:1\n", "same peer but differ in 'connect'"},
	{TOP SEG "  - name: y\n", "conf/t.yaml:9: segment 2 has no peer"},
	{TOP SEG "  - name: y\n    peer: london\n    connect: a:1\n", "is this point itself"},
	{TOP "segments:\n  - name: x\n    peer: paris\n", "has no 'connect', and this point does not 'listen' either"},
	{TOP "segments:\n  - name: x\n    peer: paris\n    connect: paris\n", "is not an address"},
	{TOP "segments:\n  - name: x\n    peer: paris\n    connect: 'paris:'\n", "has no port"},
	{TOP "segments:\n  - name: x\n    peer: paris\n    connect: paris:70000\n", "has no port in 0 .. 65535"},
	{TOP "segments:\n  - name: x\n    peer: paris\n    connect: :8620\n", "names no host"},
	{"metrics: :9620\n" TOP SEG, "t.yaml:1: metrics: names no host"},
	{"metrics: 9620\n" TOP SEG, "t.yaml:1: metrics: is not an address"},
	{TOP "segments:\n  - name: x\n    peer: paris\n    connect: 2001:db8::1:8620\n", "write [address]:port"},
	{TOP "segments: x\n", "must be a list"},
	{TOP, "has no 'segments'"},
	{TOP "flows: x\n", "must be a list"},
	{TOP "flows: [{counters: 10}]\n", "has no 'file'"},
	{TOP "flows: [{file: f, count: 10}]\n", "unknown key 'count' in flows 'f', did you mean 'counts'?"},
	{TOP "flows: [{file: f, counters: 0}]\n", "counters of flows 'f': '0' is not a number in 1 .. "},
	{TOP "flows: [{file: f, key: five}]\n", "key of flows 'f': 'five' is not a flow key"},
	{TOP "flows: [{file: f, heading: up}]\n", "'up' is not both, in or out"},
	{TOP "flows: [{file: f, interval: 2d}]\n", "'2d' is not in 1 ms .. 86400 s"},
	{TOP "flows: [{file: f, form: rows}]\n", "'rows' is not a form"},
	{TOP "flows: [{file: f, key: class}]\n", "flows by class: 0 classes"},
	{TOP "flows: [{file: f, classes: [{name: a}]}]\n", "its key is not class"},
	{TOP "flows: [{file: f, interfaces: [x]}]\n", "no interface 'x'"},
	{TOP "flows: [{file: f}, {file: f}]\n", "another recording has this file already"},
	{"psk: p\n" SEG, "has no 'point'"},
	{"point: a\npsk: p\n" SEG, "has no 'interfaces'"},
	{"point: a/b\n", "point: a point's name has 1 to 63 letters"},
	{"point: 0123456789012345678901234567890123456789012345678901234567890123\n", "1 to 63 letters"},
	{"point: a\ninterfaces: [{name: lo}]\n" SEG, "needs certificate, key and ca, or psk"},
	{"point: a\ncertificate: c\nca: d\ninterfaces: [{name: lo}]\n" SEG, "belong together: no key"},
	{"point: a\npsk: p\nca: d\ninterfaces: [{name: lo}]\n" SEG, "exclude each other"},
	{"point: a\nmemory: 10\n", "memory: '10' is not in 1MiB .. "},
	{"point: a\nretention: 90\n", "retention: '90' needs a unit"},
	{"point: a\nretention: 1s\n", "retention: '1s' is not in 60 s .. "},
	{"point: a\nstore_max: 1000\n", "store_max: '1000' is not in 1MiB .. "},
	{"point: a\nmemory: lots\n", "'lots' is not a size"},
	{"point: a\noutput: xml\n", "'xml' is not text, json or none"},
	{"point: a\ninterfaces:\n  - name: lo\n    threads: 0\n",
         "threads of interface 'lo': '0' is not a number in 1 .. 64"},
	{"point: a\ninterfaces:\n  - name: lo\n    speed: -1\n",
         "speed of interface 'lo': '-1' is not a number above 0, up to 1000"},
	{"point: a\npsk: p\ninterfaces:\n  - threads: 1\n" SEG, "interface 1 has neither name nor file"},
	{"point: a\npsk: p\ninterfaces:\n  - name: lo\n    speed: 2\n" SEG, "only a file has one"},
	{"point: a\npsk: p\ninterfaces:\n  - file: f\n    threads: 2\n" SEG, "a file has no threads"},
	{"point: a\npsk: p\ninterfaces: [{name: lo}, {name: lo}]\n" SEG, "interface 'lo' is in line 3 already"},
	{"point: &a london\n", "conf/t.yaml:1: anchors (&) and aliases (*)"},
	{"point: *a\n", "conf/t.yaml:1: anchors (&) and aliases (*)"},
	{"point: !!str london\n", "tags (!)"},
	{"point: \"a\\0b\"\n", "control character"},
	{"a: [[[[[[[[[[1]]]]]]]]]]\n", "more than 8 levels deep"},
	{"point: a\n---\npoint: b\n", "a second document"},
	{"? [a]\n: b\n", "a key must be a plain word"},
	{"point: [\n", "conf/t.yaml:2: "},
	{"\tpoint: a\n", "conf/t.yaml:1: "},
	{"", "is empty"},
	{"# nothing\n", "is empty"},
	{"just a text\n", "must be keys with values"},
	{"point: \xff\xfe\n", "byte "},
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ow_error err;
		struct ow_config *config = parse(bad[i].text, &err);
		if (config || !strstr(err.text, bad[i].error) || strncmp(err.text, "conf/t.yaml:", 12) != 0)
			fail_msg("case %zu: '%s' instead of '%s'", i, config ? "accepted" : err.text, bad[i].error);
	}
}

static void refuses_bombs(void **state)
{
	(void)state;
	struct ow_error err;
	struct ow_config *config = NULL;
	size_t size = OW_YAML_BYTES_MAX + 1;
	char *text = malloc(size + 1);
	assert_non_null(text);
	memset(text, '[', size);
	assert_int_equal(ow_config_parse("t", text, size, &config, &err), -EINVAL);
	assert_int_equal(ow_config_parse("t", text, 100000, &config, &err), -EINVAL);
	size_t n = 0;
	for (unsigned i = 0; n + 12 < size; i++)
		n += (size_t)snprintf(text + n, size - n, "k%x: 1\n", i);
	assert_int_equal(ow_config_parse("t", text, n, &config, &err), -EINVAL);
	free(text);
}

/* A folder with a secret and a configuration that is right; each test spoils one thing. */
struct host {
	char folder[64], secret[80], text[1000];
};

static void make_host(struct host *h)
{
	snprintf(h->folder, sizeof h->folder, "/tmp/oneway-config-XXXXXX");
	assert_non_null(mkdtemp(h->folder));
	snprintf(h->secret, sizeof h->secret, "%s/p", h->folder);
	FILE *f = fopen(h->secret, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(h->secret, 0600), 0);
}

static void remove_host(const struct host *h)
{
	unlink(h->secret);
	assert_int_equal(rmdir(h->folder), 0);
}

static void check_fails(const struct host *h, const char *text, const char *error)
{
	struct ow_error err = {""};
	char path[100];
	struct ow_config *c = NULL;
	snprintf(path, sizeof path, "%s/t.yaml", h->folder);
	assert_int_equal(ow_config_parse(path, text, strlen(text), &c, &err), 0);
	int r = ow_config_check(c, &err);
	if (error ? r == 0 || !strstr(err.text, error) : r != 0)
		fail_msg("'%s' instead of '%s'", err.text, error ? error : "success");
	ow_config_free(c);
}

static void checks_the_host(void **state)
{
	(void)state;
	struct host h;
	make_host(&h);
	check_fails(&h, TOP SEG, NULL);
	check_fails(&h, TOP SEG "    to_peer: src net 10.0.0.0/8\n", NULL);
	check_fails(&h, TOP SEG "    to_peer: srk net 10.0.0.0/8\n", "to_peer of segment 'x': filter 'srk net");
	check_fails(&h, TOP SEG "    classes: [{name: a, filter: 'tcp prt 1'}]\n", "class 'a': filter 'tcp prt 1'");
	check_fails(&h, "store: nowhere/r.db\n" TOP SEG, "store: ");
	check_fails(&h, "store: r.db\n" TOP SEG, NULL);
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{name: nothere0}]\n" SEG, ":3: interface 'nothere0' is not on");
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{file: no.pcap}]\n" SEG, "no.pcap: No such file");
	/* Any file will do. */
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{file: p}]\n" SEG,
	            ":5: segment 'x': file 'p' does not contain the direction");
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{file: p}]\n" SEG "    to_peer: ip\n", NULL);
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{file: .}]\n" SEG, "is a folder");
	check_fails(&h, "point: a\npsk: p\ninterfaces: [{name: lo, filter: 'x y z'}]\n" SEG, "interface 'lo': filter");
	check_fails(&h, "point: a\npsk: q\ninterfaces: [{name: lo}]\n" SEG, "psk: ");
	assert_int_equal(chmod(h.secret, 0644), 0);
	check_fails(&h, TOP SEG, "others than its owner may use it");
	remove_host(&h);
}

static void loads_files(void **state)
{
	(void)state;
	struct ow_config *c = NULL;
	struct ow_error err;
	assert_int_equal(ow_config_load("/nonexistent/x.yaml", &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.yaml: No such file"));
	assert_int_equal(ow_config_load("/tmp", &c, &err), -EISDIR);
	assert_int_equal(ow_config_load("/dev/zero", &c, &err), -EINVAL);
	assert_null(c);
	ow_config_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_point), cmocka_unit_test(reads_segments), cmocka_unit_test(defaults),
		cmocka_unit_test(several_peers),   cmocka_unit_test(refuses),        cmocka_unit_test(refuses_bombs),
		cmocka_unit_test(checks_the_host), cmocka_unit_test(loads_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
