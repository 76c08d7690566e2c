/* SPDX-License-Identifier: Apache-2.0 */
/* The same network in each format, and what each format refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "plane/topology.h"
#include <errno.h>
#include "network.h"

static const char rocketfuel[] = "A B 2.5\nB A 2.5\nB C 3\nC B 3\n";
static const char dot[] =
	"/* c */ strict graph \"my net\" {\n  edge [cost=3, color=\"red\"]; node [shape=box]\n  label = x\n"
	"  A -- B [weight=7, metric=2.5] // metric is nearer to a cost than weight\n"
	"  subgraph s { \"B\":p:n -- C }\n}\n";
static const char digraph[] = "digraph { A -> B -> A [cost=2.5]; B -> C -> B [cost = \"3\", latency=\"4ms\"] # end\n}";
static const char gml[] =
	"Creator \"x\"\ngraph [ directed 0\n edge [ source 1 target 2 weight 2.5 ]\n"
	" node [ id 1 label \"A\" graphics [ x 1 ] ] node [ id 2 label \"B\" ] node [ id 3 label \"C\" ]\n"
	" edge [ source 3 target 2 cost 3 ] ]\n";
static const char graphml[] =
	"<?xml version='1.0'?><graphml xmlns='http://graphml.graphdrawing.org/xmlns'>"
	"<key id='d0' for='edge' attr.name='weight'/><key id='d1' for='node' attr.name='label'/>"
	"<graph edgedefault='undirected'><edge source='n0' target='n1'><data key='d0'>2.5</data></edge>"
	"<node id='n0'><data key='d1'>A</data></node><node id='n1'><data key='d1'>B</data></node>"
	"<node id='n2'><data key='d1'>C</data></node>"
	"<edge source='n1' target='n2' directed='true'><data key='d0'>3</data></edge>"
	"<edge source='n2' target='n1' directed='true'><data key='d0'>3</data></edge></graph></graphml>";

static struct ow_topology *parse(const char *text, enum ow_topology_format expected)
{
	struct ow_topology *topology = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_topology_guess(text, strlen(text)), expected);
	if (ow_topology_parse(OW_TOPOLOGY_AUTO, "text", text, strlen(text), 0, &topology, &err) < 0)
		fail_msg("%s", err.text);
	return topology;
}

static void all_the_same(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum ow_topology_format format;
	} some[] = {{dot, OW_TOPOLOGY_DOT},
	            {digraph, OW_TOPOLOGY_DOT},
	            {gml, OW_TOPOLOGY_GML},
	            {graphml, OW_TOPOLOGY_GRAPHML}};
	struct ow_topology *first = parse(rocketfuel, OW_TOPOLOGY_ROCKETFUEL);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		struct ow_topology *other = parse(some[i].text, some[i].format);
		if (!ow_topology_same(first, other))
			fail_msg("differs: %s", some[i].text);
		ow_topology_free(other);
	}
	ow_topology_free(first);
	struct ow_topology *timed = parse(digraph, OW_TOPOLOGY_DOT);
	assert_true(ow_topology_link(timed, 1, 2)->latency_ns == 4e6);
	ow_topology_free(timed);
}

/* Two routers with the same label, as in the Topology Zoo: their ids name them. */
static void shared_labels(void **state)
{
	(void)state;
	struct ow_topology *topology = parse(
		"graph [ node [ id 7 label \"?\" ] node [ id 8 label \"?\" ] edge [ source 7 target 8 weight 1 ] ]",
		OW_TOPOLOGY_GML);
	assert_int_equal(ow_topology_find(topology, "7"), 0);
	assert_int_equal(ow_topology_find(topology, "8"), 1);
	ow_topology_free(topology);
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} some[] = {
		{"graph {\n A -- B\n}",
	         "text:2: the edge A - B has no cost, metric or weight; --default-cost gives it one"},
		{"graph {\n A -- B [cost=-1]\n}", "text:2: \"-1\" is not a cost above 0"},
		{"graph {\n A -> B [cost=1]\n}", "text:2: edges of a graph are written --, not \"->\""},
		{"digraph { A -> { B C } [cost=1] }",
	         "text:1: expected the name of a router at the end of an edge, not \"{\""},
		{"graph { A -- B [cost=1]", "text:1: expected '}', but the file ends"},
		{"graph {\n \"A -- B\n }", "text:2: a quoted text has no end"},
		{"graph [ node [ id 1 ]\n edge [ source 1 target 2 weight 1 ] ]",
	         "text:2: an edge to node 2, which does not exist"},
		{"graph [ node [ id 1 ] node [ id 1 ] ]", "text:1: two routers have the name 1"},
		{"graph [ node [ label \"A\" ] ]", "text:1: a node without an id"},
		{"<graphml><graph>\n<node></graph></graphml>", "text:2: mismatched tag"},
		{"<html/>", "text: an XML file without <graphml>"},
		{"{ \"a\": 1 }",
	         "text: no routerLinkStates with areas: expected what 'show ip ospf database router json' prints"},
	};
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		struct ow_topology *topology = NULL;
		struct ow_error err = {""};
		assert_true(ow_topology_parse(OW_TOPOLOGY_AUTO, "text", some[i].text, strlen(some[i].text), 0,
		                              &topology, &err) < 0);
		assert_null(topology);
		assert_string_equal(err.text, some[i].says);
	}
	struct ow_topology *topology;
	assert_int_equal(
		ow_topology_parse(OW_TOPOLOGY_AUTO, "text", "graph { A -- B }", 16, OW_COST_ONE, &topology, NULL), 0);
	ow_topology_free(topology);
}

#define P2P(peer, metric)                                                                   \
	"{\"linkType\": \"another Router (point-to-point)\", \"neighborRouterId\": \"" peer \
	"\", \"tos0Metric\": " metric "}"
#define NET(dr, metric) \
	"{\"linkType\": \"a Transit Network\", \"designatedRouterAddress\": \"" dr "\", \"tos0Metric\": " metric "}"
#define LSA(id, links) "{\"advertisingRouter\": \"" id "\", \"routerLinks\": {" links "}}"
#define DATABASE(lsas) "{\"routerLinkStates\": {\"areas\": {\"0.0.0.0\": [" lsas "]}}}"

/* One-way links do not count; a shared network joins all its routers, each at its own cost. */
static void frr(void **state)
{
	(void)state;
	struct ow_topology *topology = parse(
		DATABASE(LSA("1.1.1.1", "\"link0\": " P2P("2.2.2.2", "10") ", \"link1\": " NET("9.0.0.1", "5")) "," LSA(
			"2.2.2.2", "\"link0\": " P2P("1.1.1.1", "20") ", \"link1\": " P2P(
					   "3.3.3.3", "1")) "," LSA("3.3.3.3", "\"link0\": " NET("9.0.0.1", "7"))),
		OW_TOPOLOGY_FRR);
	uint32_t one = ow_topology_find(topology, "1.1.1.1"), two = ow_topology_find(topology, "2.2.2.2"),
		 three = ow_topology_find(topology, "3.3.3.3");
	assert_int_equal(ow_topology_links(topology), 4);
	assert_int_equal(ow_topology_link(topology, one, two)->cost, 10 * OW_COST_ONE);
	assert_int_equal(ow_topology_link(topology, two, one)->cost, 20 * OW_COST_ONE);
	assert_int_equal(ow_topology_link(topology, one, three)->cost, 5 * OW_COST_ONE);
	assert_int_equal(ow_topology_link(topology, three, one)->cost, 7 * OW_COST_ONE);
	assert_null(ow_topology_link(topology, two, three));
	ow_topology_free(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_the_same), cmocka_unit_test(shared_labels),
	                                   cmocka_unit_test(refused), cmocka_unit_test(frr)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
