/* SPDX-License-Identifier: Apache-2.0 */
/* The notations of models on the command line: weibull:20us,0.6 and the like. */
#include "base/time.h"
#include "sim/sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX 64

/* Copies up to the separator (or the end). Returns what follows the separator, or NULL. */
static const char *take(const char *text, char separator, char piece[PIECE_MAX])
{
	const char *end = strchr(text, separator);
	size_t len = end ? (size_t)(end - text) : strlen(text);
	if (len >= PIECE_MAX)
		len = PIECE_MAX - 1;
	memcpy(piece, text, len);
	piece[len] = '\0';
	return end ? end + 1 : NULL;
}

static int number(const char *text, double min, double max, double *ret_value, struct ow_error *err)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number", text);
	if (value < min || value > max)
		return ow_error_set(err, EINVAL, "'%.40s' is not in %g .. %g", text, min, max);
	*ret_value = value;
	return 0;
}

static int duration(const char *text, double *ret_ns, struct ow_error *err)
{
	int64_t ns;
	int r = ow_duration_parse(text, &ns, err);
	if (r < 0)
		return r;
	if (ns < 0)
		return ow_error_set(err, EINVAL, "'%.40s' is negative", text);
	*ret_ns = (double)ns;
	return 0;
}

/* "10G", "1.5Mbit", "9600": bits (or bytes) with a decimal prefix. */
static int scaled(const char *text, double min, double max, double *ret_value, struct ow_error *err)
{
	static const char prefix[] = "kMGT";
	char *end;
	double value = strtod(text, &end);
	if (end == text || !isfinite(value) || value <= 0)
		return ow_error_set(err, EINVAL, "'%.40s' is not a positive quantity (examples: 10G, 100M, 64k)", text);
	const char *found = *end ? strchr(prefix, *end == 'K' ? 'k' : *end) : NULL;
	if (found) {
		value *= pow(1000, (double)(found - prefix + 1));
		end++;
	}
	if (*end && strcmp(end, "bit") != 0 && strcmp(end, "bps") != 0 && strcmp(end, "B") != 0)
		return ow_error_set(err, EINVAL, "'%.40s' is not a quantity (examples: 10G, 100M, 64k)", text);
	if (value < min || value > max)
		return ow_error_set(err, EINVAL, "'%.40s' is not in %g .. %g", text, min, max);
	*ret_value = value;
	return 0;
}

/* The slowest link: the largest packet takes nine minutes. */
#define RATE_MIN 1000

/* The two parameters of each model: t a time, n a positive number, r a rate, b a size that may be missing. */
static const struct kind {
	const char *name, *parameters, *example;
	enum ow_sim_delay_kind kind;
} kinds[] = {
	{"constant", "t", "constant:50us", OW_SIM_CONSTANT},   {"normal", "tt", "normal:50us,5us", OW_SIM_NORMAL},
	{"weibull", "tn", "weibull:20us,0.6", OW_SIM_WEIBULL}, {"pareto", "tn", "pareto:10us,3", OW_SIM_PARETO},
	{"fifo", "rb", "fifo:1G,512k", OW_SIM_FIFO},           {"red", "r", "red:100M", OW_SIM_RED},
};

static int parameter(char type, const char *text, double *ret_value, struct ow_error *err)
{
	switch (type) {
	case 't':
		return duration(text, ret_value, err);
	case 'n':
		return number(text, 0.01, 1000, ret_value, err);
	default:
		return scaled(text, type == 'r' ? RATE_MIN : 1, 1e13, ret_value, err);
	}
}

static int model_parse(const char *text, struct ow_sim_model *ret_model, struct ow_error *err)
{
	char name[PIECE_MAX], piece[PIECE_MAX];
	const char *rest = take(text, ':', name);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct kind *kind = &kinds[i];
		if (strcmp(name, kind->name) != 0)
			continue;
		struct ow_sim_model model = {.kind = kind->kind, .weight = 1};
		for (size_t k = 0; kind->parameters[k]; k++) {
			if (!rest && kind->parameters[k] == 'b')
				break;
			if (!rest)
				return ow_error_set(err, EINVAL, "'%.60s' lacks a parameter (example: %s)", text,
				                    kind->example);
			rest = take(rest, ',', piece);
			int r = parameter(kind->parameters[k], piece, k ? &model.b : &model.a, err);
			if (r < 0)
				return r;
		}
		if (rest)
			return ow_error_set(err, EINVAL, "'%.60s' has too many parameters (example: %s)", text,
			                    kind->example);
		if ((model.kind == OW_SIM_WEIBULL || model.kind == OW_SIM_PARETO) && model.a <= 0)
			return ow_error_set(err, EINVAL, "'%.60s' needs a scale above 0", text);
		*ret_model = model;
		return 0;
	}
	return ow_error_set(err, EINVAL,
	                    "'%.40s' is not a delay model: constant, normal, weibull, pareto, fifo, red, paths or ecmp",
	                    name);
}

/* 0.9,constant:50us;0.1,constant:80us */
static int paths_parse(const char *text, struct ow_sim_delay *delay, struct ow_error *err)
{
	double sum = 0;
	while (text) {
		char item[PIECE_MAX], weight[PIECE_MAX];
		text = take(text, ';', item);
		const char *model = take(item, ',', weight);
		if (!model)
			return ow_error_set(err, EINVAL,
			                    "'%s' is not a path (example: 0.9,constant:50us;0.1,constant:80us)", item);
		if (delay->paths == OW_SIM_PATHS)
			return ow_error_set(err, EINVAL, "more than %d paths", OW_SIM_PATHS);
		struct ow_sim_model *path = &delay->path[delay->paths];
		int r = model_parse(model, path, err);
		if (r >= 0)
			r = number(weight, 0, 1e9, &path->weight, err);
		if (r < 0)
			return r;
		sum += path->weight;
		delay->paths++;
	}
	if (sum <= 0)
		return ow_error_set(err, EINVAL, "the weights of the paths are all 0");
	for (unsigned i = 0; i < delay->paths; i++)
		delay->path[i].weight /= sum;
	return 0;
}

int ow_sim_delay_parse(const char *text, struct ow_sim_delay *ret_delay, struct ow_error *err)
{
	struct ow_sim_delay delay = {.paths = 0};
	char name[PIECE_MAX];
	const char *rest = take(text, ':', name);
	delay.by_flow = strcmp(name, "ecmp") == 0;
	int r;
	if (rest && (delay.by_flow || strcmp(name, "paths") == 0)) {
		r = paths_parse(rest, &delay, err);
	} else {
		r = model_parse(text, &delay.path[0], err);
		delay.paths = 1;
	}
	if (r >= 0)
		*ret_delay = delay;
	return r;
}

/* 0.01 or 1% */
static int share(const char *text, double *ret_share, struct ow_error *err)
{
	char *end;
	double x = strtod(text, &end);
	if (end != text && strcmp(end, "%") == 0) {
		x /= 100;
		end++;
	}
	if (end == text || *end || !(x >= 0 && x <= 1))
		return ow_error_set(err, EINVAL, "'%.40s' is not a share (examples: 0.01, 1%%)", text);
	*ret_share = x;
	return 0;
}

/* 0.01, 1%, episodes:0.01,100 */
int ow_sim_loss_parse(const char *text, struct ow_sim_loss *ret_loss, struct ow_error *err)
{
	struct ow_sim_loss loss = {0};
	char piece[PIECE_MAX];
	int r;
	if (strncmp(text, "episodes:", 9) == 0) {
		const char *length = take(text + 9, ',', piece);
		if (!length)
			return ow_error_set(err, EINVAL, "'%.60s' lacks a length (example: episodes:0.01,100)", text);
		r = number(length, 1, 1e9, &loss.episode, err);
		if (r < 0)
			return r;
	} else {
		take(text, '\0', piece);
	}
	r = share(piece, &loss.ratio, err);
	if (r >= 0)
		*ret_loss = loss;
	return r;
}

/* The largest IP packet; jumbo frames are below it. */
#define SIZE_MAX_BYTES 65535
#define SIZE_MIN_BYTES 20

/* 500, imix, uniform:64,1500 */
int ow_sim_size_parse(const char *text, struct ow_sim_size *ret_size, struct ow_error *err)
{
	if (strcmp(text, "imix") == 0) {
		*ret_size = (struct ow_sim_size){.kind = OW_SIM_SIZE_IMIX};
		return 0;
	}
	char piece[PIECE_MAX];
	double min = 0, max = 0;
	bool uniform = strncmp(text, "uniform:", 8) == 0;
	const char *rest = take(uniform ? text + 8 : text, ',', piece);
	if (uniform != (rest != NULL))
		return ow_error_set(err, EINVAL, "'%.40s' is not a packet size (examples: 500, imix, uniform:64,1500)",
		                    text);
	int r = number(piece, SIZE_MIN_BYTES, SIZE_MAX_BYTES, &min, err);
	if (r >= 0)
		r = number(uniform ? rest : piece, min, SIZE_MAX_BYTES, &max, err);
	if (r < 0)
		return r;
	*ret_size = (struct ow_sim_size){uniform ? OW_SIM_SIZE_UNIFORM : OW_SIM_SIZE_CONSTANT, (uint32_t)min,
	                                 (uint32_t)max};
	return 0;
}

int ow_sim_link_parse(const char *text, enum ow_sim_link *ret_link, struct ow_error *err)
{
	static const char *const names[OW_SIM_LINKS] = {"",    "ethernet", "raw",  "sll",     "sll2",
	                                                "ppp", "null",     "loop", "radiotap"};
	for (int i = OW_SIM_ETHERNET; i < OW_SIM_LINKS; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_link = (enum ow_sim_link)i;
			return 0;
		}
	}
	return ow_error_set(err, EINVAL,
	                    "'%.40s' is not a link type: ethernet, raw, sll, sll2, ppp, null, loop or radiotap", text);
}

static const struct encap_name {
	const char *name;
	uint32_t standard, max; /* id if none is given, largest id */
} encaps[OW_SIM_ENCAPS] = {
	[OW_SIM_VLAN] = {"vlan", 10, 4094},
	[OW_SIM_QINQ] = {"qinq", 10, 4093},
	[OW_SIM_MPLS] = {"mpls", 100, 0xfffff},
	[OW_SIM_PPPOE] = {"pppoe", 1, 0xffff},
	[OW_SIM_VXLAN] = {"vxlan", 42, 0xffffff},
	[OW_SIM_GENEVE] = {"geneve", 42, 0xffffff},
	[OW_SIM_GRE] = {"gre", 0, 0},
	[OW_SIM_IPIP] = {"ipip", 0, 0},
	[OW_SIM_GTPU] = {"gtpu", 1, 0xffffffff},
};

static int encap_parse(const char *text, struct ow_sim_encap *ret_encap, struct ow_error *err)
{
	char name[PIECE_MAX];
	const char *id = take(text, ':', name);
	for (int i = 0; i < OW_SIM_ENCAPS; i++) {
		if (strcmp(name, encaps[i].name) != 0)
			continue;
		double value = encaps[i].standard;
		int r = id ? number(id, 0, encaps[i].max, &value, err) : 0;
		if (r >= 0)
			*ret_encap = (struct ow_sim_encap){(enum ow_sim_encap_kind)i, (uint32_t)value};
		return r;
	}
	return ow_error_set(err, EINVAL,
	                    "'%s' is not an encapsulation: vlan, qinq, mpls, pppoe, vxlan, geneve, gre, ipip or gtpu",
	                    name);
}

int ow_sim_encap_parse(const char *text, struct ow_sim_side *side, struct ow_error *err)
{
	struct ow_sim_encap list[OW_SIM_ENCAP_MAX] = {0};
	unsigned count = 0;
	while (text) {
		char item[PIECE_MAX];
		text = take(text, ',', item);
		if (count == OW_SIM_ENCAP_MAX)
			return ow_error_set(err, EINVAL, "more than %d encapsulations", OW_SIM_ENCAP_MAX);
		int r = encap_parse(item, &list[count], err);
		if (r < 0)
			return r;
		count++;
	}
	memcpy(side->encap, list, sizeof list);
	side->encaps = count;
	return 0;
}
