/* SPDX-License-Identifier: Apache-2.0 */
/* Names of routers in files that identify them by ids. */
#include "plane/graph_build.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_graph_names_add(struct ow_graph_build *build, struct ow_graph_names *names, const char *id, const char *label,
                       unsigned line, struct ow_error *err)
{
	if (names->count == OW_TOPOLOGY_NODES_MAX)
		return ow_error_set(err, E2BIG, "%s:%u: more than %u routers", build->name, line,
		                    OW_TOPOLOGY_NODES_MAX);
	if (OW_GROW(names->name, names->room, names->count + 1) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", build->name);
	struct ow_graph_name name = {strdup(id), label && *label ? strdup(label) : NULL, line, (unsigned)names->count};
	if (!name.id || (label && *label && !name.label)) {
		free(name.id);
		free(name.label);
		return ow_error_set(err, ENOMEM, "%s: out of memory", build->name);
	}
	names->name[names->count++] = name;
	return 0;
}

static int by_label(const void *pa, const void *pb)
{
	const struct ow_graph_name *a = pa, *b = pb;
	if (!a->label || !b->label)
		return (a->label != NULL) - (b->label != NULL);
	return strcmp(a->label, b->label);
}

static int by_id(const void *pa, const void *pb)
{
	const struct ow_graph_name *a = pa, *b = pb;
	return strcmp(a->id, b->id);
}

static int by_order(const void *pa, const void *pb)
{
	const struct ow_graph_name *a = pa, *b = pb;
	return (a->order > b->order) - (a->order < b->order);
}

/* A label that two routers have is not used for either. */
static void drop_shared_labels(struct ow_graph_names *names)
{
	qsort(names->name, names->count, sizeof(*names->name), by_label);
	for (size_t i = 0, next; i < names->count; i = next) {
		for (next = i + 1; next < names->count && by_label(&names->name[i], &names->name[next]) == 0; next++)
			;
		for (size_t n = i; next - i > 1 && n < next; n++) {
			free(names->name[n].label);
			names->name[n].label = NULL;
		}
	}
}

static const char *shown(const struct ow_graph_name *name)
{
	return name->label ? name->label : name->id;
}

int ow_graph_names_enter(struct ow_graph_build *build, struct ow_graph_names *names, struct ow_error *err)
{
	if (!names->count)
		return 0;
	drop_shared_labels(names);
	qsort(names->name, names->count, sizeof(*names->name), by_order);
	for (size_t i = 0; i < names->count; i++) {
		uint32_t number;
		int r = ow_graph_node(build, shown(&names->name[i]), names->name[i].line, &number, err);
		if (r < 0)
			return r;
		if (number != i)
			return ow_error_set(err, EINVAL, "%s:%u: two routers have the name %.100s", build->name,
			                    names->name[i].line, shown(&names->name[i]));
	}
	qsort(names->name, names->count, sizeof(*names->name), by_id);
	return 0;
}

const char *ow_graph_names_find(struct ow_graph_build *build, const struct ow_graph_names *names, const char *id,
                                unsigned line, struct ow_error *err)
{
	struct ow_graph_name key = {.id = (char *)id};
	const struct ow_graph_name *name =
		names->count ? bsearch(&key, names->name, names->count, sizeof(key), by_id) : NULL;
	if (name)
		return shown(name);
	ow_error_set(err, EINVAL, "%s:%u: an edge to %s%.100s, which does not exist", build->name, line,
	             *id ? "node " : "nowhere", id);
	return NULL;
}

void ow_graph_names_done(struct ow_graph_names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		free(names->name[i].id);
		free(names->name[i].label);
	}
	free(names->name);
	*names = (struct ow_graph_names){0};
}
