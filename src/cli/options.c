/* SPDX-License-Identifier: Apache-2.0 */
/* The option parser. getopt_long would need the same names in three places: its table, a switch and the help. */
#include "cli/options.h"

#include "base/size.h"
#include "base/time.h"
#include "cli/terminal.h"
#include "base/format.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HELP_WIDTH  80
#define HELP_COLUMN 26
/* The column where help texts begin if options and texts do not fit side by side. */
#define HELP_COLUMN_NARROW 10

static const struct ow_options_listener *heard_by;

void ow_options_listen(const struct ow_options_listener *listener)
{
	heard_by = listener;
}

static bool is_end(const struct ow_option *option)
{
	return !option->name && !option->help;
}

static const struct ow_option *find_name(const struct ow_option *table, const char *name, size_t length)
{
	for (; !is_end(table); table++) {
		if (table->name && strlen(table->name) == length && strncmp(table->name, name, length) == 0)
			return table;
	}
	return NULL;
}

static const struct ow_option *find_letter(const struct ow_option *table, char letter)
{
	for (; !is_end(table); table++) {
		if (table->letter && table->letter == letter)
			return table;
	}
	return NULL;
}

static int unknown(const struct ow_option *table, const char *argument, size_t length, struct ow_error *err)
{
	char word[OW_WORD_MAX + 1];
	struct ow_word_guess guess = {.written = word};
	snprintf(word, sizeof word, "%.*s", (int)length, argument + 2);
	for (; !is_end(table); table++) {
		if (table->name)
			ow_word_offer(&guess, table->name);
	}
	if (guess.best)
		return ow_error_set(err, EINVAL, "unknown option %.60s, did you mean --%s?", argument, guess.best);
	return ow_error_set(err, EINVAL, "unknown option %.60s", argument);
}

static int set_option(const struct ow_option *option, const char *value, void *target, struct ow_error *err)
{
	struct ow_error reason;
	void *field = (char *)target + option->offset;
	int r = option->set ? option->set(field, value, &reason)
	                    : ow_key_set(ow_key_find(option->keys, option->name), value, field, &reason);
	return r < 0 ? ow_error_set(err, -r, "--%s: %.450s", option->name, reason.text) : 0;
}

/* Reads the option at argv[*i], and its value; afterwards *i is the last argument used. */
static int take_option(const struct ow_option *table, int argc, char **argv, int *i, void *target, struct ow_error *err)
{
	const char *argument = argv[*i], *value = NULL;
	const struct ow_option *option;
	if (argument[1] == '-') {
		size_t length = strcspn(argument + 2, "=");
		option = find_name(table, argument + 2, length);
		if (!option)
			return unknown(table, argument, length, err);
		if (argument[2 + length])
			value = argument + 2 + length + 1;
	} else {
		option = find_letter(table, argument[1]);
		if (!option)
			return ow_error_set(err, EINVAL, "unknown option %.60s", argument);
		if (argument[2])
			value = argument + 2;
	}
	if (!option->argument && value)
		return ow_error_set(err, EINVAL, "%.60s: --%s takes no value", argument, option->name);
	if (option->argument && !value) {
		if (*i + 1 >= argc)
			return ow_error_set(err, EINVAL, "--%s needs a value: %s", option->name, option->argument);
		value = argv[++*i];
	}
	return set_option(option, value, target, err);
}

int ow_options_parse(const struct ow_option *table, int argc, char **argv, void *target, struct ow_error *err)
{
	int operands = 0;
	bool options = true;
	for (int i = 1; i < argc; i++) {
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			int r = take_option(table, argc, argv, &i, target, err);
			if (r < 0)
				return r;
		} else {
			argv[++operands] = argv[i];
		}
	}
	return operands;
}

void ow_options_help(FILE *out, const struct ow_option *table)
{
	if (heard_by) {
		heard_by->table(heard_by->arg, table);
		return;
	}
	int width = ow_terminal_width(out), column = HELP_COLUMN;
	if (width > HELP_WIDTH)
		width = HELP_WIDTH;
	if (width < 2 * HELP_COLUMN)
		column = HELP_COLUMN_NARROW;
	for (; !is_end(table); table++) {
		if (!table->name) {
			fprintf(out, "\n%s\n", table->help);
			continue;
		}
		char letter[5] = "    ";
		if (table->letter)
			snprintf(letter, sizeof letter, "-%c, ", table->letter);
		int used = fprintf(out, "  %s--%s%s%s", letter, table->name, table->argument ? " " : "",
		                   table->argument ? table->argument : "");
		if (used > column - 2)
			fprintf(out, "\n%*s", column, "");
		else
			fprintf(out, "%*s", column - used, "");
		ow_format_wrap(out, table->help, column, width);
	}
}

int ow_option_flag(void *field, const char *value, struct ow_error *err)
{
	(void)value;
	(void)err;
	*(bool *)field = true;
	return 0;
}

int ow_option_text(void *field, const char *value, struct ow_error *err)
{
	if (!*value)
		return ow_error_set(err, EINVAL, "is empty");
	*(const char **)field = value;
	return 0;
}

int ow_option_duration(void *field, const char *value, struct ow_error *err)
{
	return ow_duration_parse(value, field, err);
}

int ow_option_positive_duration(void *field, const char *value, struct ow_error *err)
{
	int64_t ns;
	int r = ow_duration_parse(value, &ns, err);
	if (r < 0)
		return r;
	if (ns <= 0)
		return ow_error_set(err, EINVAL, "'%.40s' must be above 0", value);
	*(int64_t *)field = ns;
	return 0;
}

int ow_option_size(void *field, const char *value, struct ow_error *err)
{
	return ow_size_parse(value, field, err);
}

int ow_option_seconds(void *field, const char *value, struct ow_error *err)
{
	char *end, text[64];
	double seconds = strtod(value, &end);
	if (end != value && !*end && seconds > 0 && seconds < 1e9) {
		snprintf(text, sizeof text, "%ss", value);
		value = text;
	}
	return ow_option_positive_duration(field, value, err);
}

int ow_option_count(void *field, const char *value, struct ow_error *err)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
	char *end;
	double number = strtod(value, &end);
	for (size_t i = 0; end != value && i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		number *= units[i].factor;
		/* Above 2^53 a double cannot represent all integers. */
		if (!(number >= 0 && number <= 0x1p53 && number == floor(number)))
			break;
		*(uint64_t *)field = (uint64_t)number;
		return 0;
	}
	return ow_error_set(err, EINVAL, "'%.40s' is not a count (examples: 1000, 1e6, 10k, 5M)", value);
}

int ow_option_share(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double share = strtod(value, &end);
	if (end != value && strcmp(end, "%") == 0) {
		share /= 100;
		end++;
	}
	if (end == value || *end || !(share >= 0 && share <= 1))
		return ow_error_set(err, EINVAL, "'%.40s' is not a share (examples: 0.01, 1%%)", value);
	*(double *)field = share;
	return 0;
}

int ow_option_choice(const char *const *names, size_t count, const char *value, size_t *ret_index, struct ow_error *err)
{
	char list[200] = "";
	size_t length = 0;
	if (heard_by)
		heard_by->choices(heard_by->arg, names, count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], value) == 0) {
			*ret_index = i;
			return 0;
		}
		const char *join = i == 0 ? "" : i + 1 < count ? ", " : " or ";
		if (length < sizeof list)
			length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", join, names[i]);
	}
	return ow_error_set(err, EINVAL, "'%.40s' is not one of %s", value, list);
}
