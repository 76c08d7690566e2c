/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulate_points.h"

#include "cli/options.h"
#include "cli/shared_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16
#define WORD_MAX  1200

const char ow_simulate_points_help[] =
	"A path of several points is --point, --hop, --point, ... in the order of the\n"
	"path; points without a --hop between them are on links in parallel.\n"
	"  --point 'NAME=FILE [share=S] [offset=D] [drift=RATE] [drop=S] [skip=D]\n"
	"      [early=D] [snaplen=N]': share of the flows that take its link (without\n"
	"      one: an equal part), clock, share of packets that its capture misses,\n"
	"      start and end.\n"
	"  --hop '[delay=MODEL] [base-delay=D] [loss=LOSS] [in-order] [routers=N] [nat]\n"
	"      [spray]': as the options of the same names, which are the defaults.\n"
	"      Routers decrement the TTL; with spray, packets (not flows) choose a link\n"
	"      behind it.\n";

int ow_option_drift(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double x = strtod(value, &end);
	double unit = strcmp(end, "ppm") == 0 ? 1000 : strcmp(end, "ppb") == 0 ? 1 : 0;
	if (end == value || !isfinite(x) || unit == 0)
		return ow_error_set(err, EINVAL, "'%.40s' is not a drift (examples: 20ppm, -500ppb)", value);
	if (fabs(x * unit) > 1e6)
		return ow_error_set(err, EINVAL, "more than 1000 ppm");
	*(double *)field = x * unit;
	return 0;
}

static int set_u32(void *field, const char *value, struct ow_error *err)
{
	uint64_t count = 0;
	int r = ow_option_count(&count, value, err);
	if (r >= 0 && count > UINT32_MAX)
		r = ow_error_set(err, EINVAL, "'%.40s' is too large", value);
	if (r >= 0)
		*(uint32_t *)field = (uint32_t)count;
	return r;
}

/* Not negative. */
static int set_time(void *field, const char *value, struct ow_error *err)
{
	int64_t ns = 0;
	int r = ow_option_duration(&ns, value, err);
	if (r >= 0 && ns < 0)
		r = ow_error_set(err, EINVAL, "must not be negative");
	if (r >= 0)
		*(int64_t *)field = ns;
	return r;
}

#define POINT(member) offsetof(struct ow_sim_point, member)
static const struct ow_option point_table[] = {
	{"share", 0, "S", ow_option_share, POINT(share), ""},
	{"drop", 0, "S", ow_option_share, POINT(drop), ""},
	{"offset", 0, "D", ow_option_duration, POINT(offset_ns), ""},
	{"drift", 0, "RATE", ow_option_drift, POINT(drift_ppb), ""},
	{"skip", 0, "D", set_time, POINT(skip_ns), ""},
	{"early", 0, "D", set_time, POINT(early_ns), ""},
	{"snaplen", 0, "N", set_u32, POINT(snaplen), ""},
	{.name = NULL},
};

#define HOP(member) offsetof(struct ow_sim_hop, member)
static const struct ow_option hop_table[] = {
	{"delay", 0, "MODEL", ow_option_delay_model, HOP(delay), ""},
	{"base-delay", 0, "D", set_time, HOP(base_delay_ns), ""},
	{"loss", 0, "LOSS", ow_option_loss_model, HOP(loss), ""},
	{"in-order", 0, NULL, ow_option_flag, HOP(in_order), ""},
	{"routers", 0, "N", set_u32, HOP(routers), ""},
	{"nat", 0, NULL, ow_option_flag, HOP(nat), ""},
	{"spray", 0, NULL, ow_option_flag, HOP(spray), ""},
	{.name = NULL},
};

static int add(struct ow_simulate_places *places, bool hop, const char *value, struct ow_error *err)
{
	if (places->count == OW_PLACES_MAX)
		return ow_error_set(err, EINVAL, "at most %u points are possible", OW_SIM_POINTS);
	places->place[places->count++] = (struct ow_simulate_place){hop, value};
	return 0;
}

int ow_option_sim_point(void *field, const char *value, struct ow_error *err)
{
	return add(field, false, value, err);
}

int ow_option_sim_hop(void *field, const char *value, struct ow_error *err)
{
	return add(field, true, value, err);
}

/* Words of the text, as options: "loss=1%" is read as --loss=1%. */
static int parse_words(const struct ow_option *table, char *text, void *target, struct ow_error *err)
{
	char word[WORDS_MAX][WORD_MAX], *argv[WORDS_MAX + 2] = {(char[]){""}};
	int count = 1;
	char *state = NULL;
	for (char *w = strtok_r(text, " \t\n", &state); w; w = strtok_r(NULL, " \t\n", &state)) {
		if (count > WORDS_MAX || strlen(w) + 3 > WORD_MAX)
			return ow_error_set(err, EINVAL, "'%.40s': more than is expected", w);
		snprintf(word[count - 1], WORD_MAX, "--%s", w);
		argv[count] = word[count - 1];
		count++;
	}
	int r = ow_options_parse(table, count, argv, target, err);
	return r > 0 ? ow_error_set(err, EINVAL, "unexpected '%.40s'", argv[1]) : r;
}

static bool is_name(const char *text, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
	return len > 0 && len <= OW_SIM_POINT_NAME && strspn(text, letters) >= len;
}

static int add_point(struct ow_sim_points *points, const char *text, struct ow_error *err)
{
	if (points->points == OW_SIM_POINTS)
		return ow_error_set(err, EINVAL, "at most %u points are possible", OW_SIM_POINTS);
	size_t name = strcspn(text, "= "), all = strcspn(text, " \t\n");
	if (text[name] != '=' || !is_name(text, name) || name + 1 == all)
		return ow_error_set(err, EINVAL, "'%.60s' does not begin with NAME=FILE", text);
	struct ow_sim_point *point = &points->point[points->points];
	*point = (struct ow_sim_point){.place = points->hops, .share = -1};
	memcpy(point->name, text, name);
	char *rest = strdup(text + all);
	point->path = strndup(text + name + 1, all - name - 1);
	points->points++;
	int r = rest && point->path ? parse_words(point_table, rest, point, err)
	                            : ow_error_set(err, ENOMEM, "out of memory");
	free(rest);
	return r;
}

static int add_hop(struct ow_sim_points *points, const char *text, const struct ow_sim_options *options,
                   struct ow_error *err)
{
	if (points->hops == OW_SIM_POINTS - 1)
		return ow_error_set(err, EINVAL, "at most %u points are possible", OW_SIM_POINTS);
	struct ow_sim_hop *hop = &points->hop[points->hops++];
	*hop = (struct ow_sim_hop){.delay = options->delay,
	                           .loss = options->loss,
	                           .base_delay_ns = options->base_delay_ns,
	                           .in_order = options->in_order,
	                           .routers = options->router};
	char *words = strdup(text);
	int r = words ? parse_words(hop_table, words, hop, err) : ow_error_set(err, ENOMEM, "out of memory");
	free(words);
	return r;
}

int ow_simulate_points(const struct ow_simulate_places *places, const struct ow_sim_options *options,
                       struct ow_sim_points *ret_points, struct ow_error *err)
{
	*ret_points = (struct ow_sim_points){0};
	int r = 0;
	for (unsigned i = 0; i < places->count && r >= 0; i++) {
		const struct ow_simulate_place *place = &places->place[i];
		struct ow_error why;
		r = place->hop ? add_hop(ret_points, place->text, options, &why)
		               : add_point(ret_points, place->text, &why);
		if (r < 0)
			ow_error_set(err, -r, "--%s: %s", place->hop ? "hop" : "point", why.text);
	}
	if (r >= 0)
		r = ow_sim_points_check(ret_points, options, err);
	if (r < 0)
		ow_sim_points_done(ret_points);
	return r;
}
