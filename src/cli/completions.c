/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions for shells. Every command is asked for its --help while a listener takes the tables of options and parts that it
 * would print; a setter is asked for an impossible value, and names its choices. The writers of the three shells only
 * differ in how they write the same list.
 */
#include "cli/completions.h"

#include "base/array.h"
#include "cli/cli.h"
#include "cli/options.h"
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Twice as much as the arguments of any command take; pages that nothing writes to cost nothing. */
#define TARGET_SIZE (1 << 20)

/* A command or a part: "match", "plane probe". */
struct entry {
	char path[64];
	const char *job;
	int (*run)(int argc, char **argv);
	bool has_parts;
	size_t first, count; /* rows in list.options */
};

struct list {
	struct entry *entries;
	size_t entry_count, entry_space;
	struct ow_option *options;
	size_t option_count, option_space;
	size_t current; /* the entry whose tables are taken */
	/* The choices of the option that was asked last. */
	const char *const *names;
	size_t name_count;
	bool failed;
};

enum value {
	VALUE_NONE, /* the option takes none */
	VALUE_CHOICE,
	VALUE_FILE,
	VALUE_FOLDER,
	VALUE_OTHER,
};

static void add_entry(struct list *l, const char *above, const struct ow_cli_part *part)
{
	if (OW_GROW(l->entries, l->entry_space, l->entry_count + 1) < 0) {
		l->failed = true;
		return;
	}
	struct entry *e = &l->entries[l->entry_count++];
	*e = (struct entry){.job = part->job, .run = part->run};
	snprintf(e->path, sizeof e->path, "%s%s%s", above, *above ? " " : "", part->name);
}

static void take_parts(void *arg, const struct ow_cli_part *parts)
{
	struct list *l = arg;
	l->entries[l->current].has_parts = true;
	char above[sizeof l->entries->path];
	memcpy(above, l->entries[l->current].path, sizeof above);
	for (; parts->name; parts++)
		add_entry(l, above, parts);
}

static void take_table(void *arg, const struct ow_option *table)
{
	struct list *l = arg;
	for (; table->name || table->help; table++) {
		if (!table->name)
			continue;
		if (OW_GROW(l->options, l->option_space, l->option_count + 1) < 0) {
			l->failed = true;
			return;
		}
		l->options[l->option_count++] = *table;
		l->entries[l->current].count++;
	}
}

static void take_choices(void *arg, const char *const *names, size_t count)
{
	struct list *l = arg;
	l->names = names;
	l->name_count = count;
}

/* Asks the setter of the option; names and name_count get its choices. */
static void ask_choices(struct list *l, const struct ow_option *o)
{
	static const char *key_names[64];
	struct ow_error err;
	l->name_count = 0;
	if (!o->argument)
		return;
	const struct ow_key *key = o->set ? NULL : ow_key_find(o->keys, o->name);
	if (o->set) {
		/* Stands for the arguments of a command. No setter accepts the value, except as a text. */
		char *target = calloc(1, TARGET_SIZE);
		assert(o->offset < TARGET_SIZE / 2);
		l->failed |= !target;
		if (target)
			o->set(target + o->offset, "\001", &err);
		free(target);
	} else if (key && key->choices) {
		l->names = key_names;
		for (const struct ow_choice *c = key->choices; c->name && l->name_count < 64; c++)
			key_names[l->name_count++] = c->name;
	}
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words;
}

static enum value value_of(struct list *l, const struct ow_option *o)
{
	/* Names of arguments in the tables. */
	static const char *const files[] = {"FILE", "CAPTURE", NULL};
	static const char *const folders[] = {"DIR", NULL};
	ask_choices(l, o);
	if (!o->argument)
		return VALUE_NONE;
	if (l->name_count)
		return VALUE_CHOICE;
	return is_one_of(o->argument, files)     ? VALUE_FILE
	       : is_one_of(o->argument, folders) ? VALUE_FOLDER
	                                         : VALUE_OTHER;
}

static void print_names(const struct list *l, FILE *out)
{
	for (size_t i = 0; i < l->name_count; i++)
		fprintf(out, "%s%s", i ? " " : "", l->names[i]);
}

/* The first sentence of the text, without characters that are special in quotes or in zsh's specifications. */
static void print_text(FILE *out, const char *text)
{
	const char *end = strstr(text, ". ");
	size_t length = end ? (size_t)(end - text) : strlen(text);
	if (length && text[length - 1] == '.')
		length--;
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		if (strchr("'\"`\\$[]:", c))
			fputc(c == '[' ? '(' : c == ']' ? ')' : c == ':' ? ',' : ' ', out);
		else
			fputc(c, out);
	}
}

/* The entries directly below a path; "" is the program. */
static const struct entry *next_below(const struct list *l, const char *path, const struct entry *after)
{
	size_t length = strlen(path);
	for (const struct entry *e = after ? after + 1 : l->entries; e < l->entries + l->entry_count; e++) {
		const char *name = e->path + (length ? length + 1 : 0);
		if ((!length || (strncmp(e->path, path, length) == 0 && e->path[length] == ' ')) && !strchr(name, ' '))
			return e;
	}
	return NULL;
}

static const char *last_word(const struct entry *e)
{
	const char *space = strrchr(e->path, ' ');
	return space ? space + 1 : e->path;
}

static void bash_values(struct list *l, const struct entry *e, FILE *out)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct ow_option *o = &l->options[e->first + i];
		enum value value = value_of(l, o);
		if (value == VALUE_NONE)
			continue;
		fprintf(out, "\t'%s:--%s'", e->path, o->name);
		if (o->letter)
			fprintf(out, " | '%s:-%c'", e->path, o->letter);
		fputs(") ", out);
		if (value == VALUE_CHOICE) {
			fputs("_oneway_words '", out);
			print_names(l, out);
			fputs("'", out);
		} else {
			fputs(value == VALUE_FILE     ? "_oneway_files -f"
			      : value == VALUE_FOLDER ? "_oneway_files -d"
			                              : ":",
			      out);
		}
		fputs("; return ;;\n", out);
	}
}

static void bash_words(const struct list *l, const struct entry *e, FILE *out)
{
	fprintf(out, "\t'%s') words='", e->path);
	for (const struct entry *part = next_below(l, e->path, NULL); part; part = next_below(l, e->path, part))
		fprintf(out, "%s ", last_word(part));
	fputs("' options='", out);
	for (size_t i = 0; i < e->count; i++)
		fprintf(out, "--%s ", l->options[e->first + i].name);
	fputs("' ;;\n", out);
}

static void write_bash(struct list *l, FILE *out)
{
	fputs("# bash completion of oneway, made by 'oneway completions bash'.\n"
	      "_oneway_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
	      "_oneway_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen \"$1\" -- "
	      "\"$current\"); }\n"
	      "_oneway() {\n"
	      "local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} path='' words='' "
	      "options=''\n"
	      "COMPREPLY=()\n"
	      "# --name=VALUE is three words.\n"
	      "if [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
	      "if [[ $current == '=' ]]; then current=''; fi\n"
	      "if ((COMP_CWORD > 1)); then path=${COMP_WORDS[1]}; fi\n"
	      "if ((COMP_CWORD > 2)); then\n"
	      "\tcase \"$path ${COMP_WORDS[2]}\" in\n\t",
	      out);
	const char * or = "";
	for (size_t i = 0; i < l->entry_count; i++) {
		if (strchr(l->entries[i].path, ' ')) {
			fprintf(out, "%s'%s'", or, l->entries[i].path);
			or = " | ";
		}
	}
	fputs(") path+=\" ${COMP_WORDS[2]}\" ;;\n\tesac\nfi\ncase \"$path:$before\" in\n", out);
	for (size_t i = 0; i < l->entry_count; i++)
		bash_values(l, &l->entries[i], out);
	fputs("esac\ncase $path in\n\t'') words='", out);
	for (const struct entry *e = next_below(l, "", NULL); e; e = next_below(l, "", e))
		fprintf(out, "%s ", e->path);
	fputs("help' options='--help --version' ;;\n\thelp) words='", out);
	for (const struct entry *e = next_below(l, "", NULL); e; e = next_below(l, "", e))
		fprintf(out, "%s ", e->path);
	fputs("' ;;\n", out);
	for (size_t i = 0; i < l->entry_count; i++)
		bash_words(l, &l->entries[i], out);
	fputs("esac\n"
	      "if [[ $current == -* ]]; then _oneway_words \"$options\"\n"
	      "elif [[ -n $words ]]; then _oneway_words \"$words\"\n"
	      "else _oneway_files -f\n"
	      "fi\n"
	      "}\n"
	      "complete -F _oneway oneway\n",
	      out);
}

static void zsh_option(struct list *l, const struct ow_option *o, FILE *out)
{
	enum value value = value_of(l, o);
	const char *equals = value == VALUE_NONE ? "" : "=";
	fputs(" \\\n\t\t\t", out);
	if (o->letter)
		fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
		        value == VALUE_NONE ? "" : "+", o->name, equals);
	else
		fprintf(out, "'--%s%s[", o->name, equals);
	print_text(out, o->help);
	fputs("]", out);
	if (value != VALUE_NONE) {
		fputs(":", out);
		print_text(out, o->argument);
		fputs(":", out);
	}
	if (value == VALUE_CHOICE) {
		fputs("(", out);
		print_names(l, out);
		fputs(")", out);
	} else if (value == VALUE_FILE || value == VALUE_FOLDER) {
		fputs(value == VALUE_FILE ? "_files" : "_files -/", out);
	} else if (value == VALUE_OTHER) {
		fputs(" ", out);
	}
	fputs("'", out);
}

static void zsh_names(const struct list *l, const char *path, FILE *out)
{
	fprintf(out, "\t\t_values '%s'", *path ? "part" : "command");
	for (const struct entry *e = next_below(l, path, NULL); e; e = next_below(l, path, e)) {
		fprintf(out, " '%s[", last_word(e));
		print_text(out, e->job);
		fputs("]'", out);
	}
	fputs("\n", out);
}

static void write_zsh(struct list *l, FILE *out)
{
	fputs("#compdef oneway\n"
	      "# zsh completion of oneway, made by 'oneway completions zsh'.\n"
	      "_oneway() {\n"
	      "\tlocal at=''\n"
	      "\tif (( CURRENT > 2 )); then at=$words[2]; shift words; (( CURRENT-- )); fi\n"
	      "\tif (( CURRENT > 2 )); then\n"
	      "\t\tcase \"$at $words[2]\" in\n",
	      out);
	for (size_t i = 0; i < l->entry_count; i++) {
		if (strchr(l->entries[i].path, ' '))
			fprintf(out, "\t\t'%s') at='%s'; shift words; (( CURRENT-- )) ;;\n", l->entries[i].path,
			        l->entries[i].path);
	}
	fputs("\t\tesac\n\tfi\n\tcase $at in\n\t'' | help)\n", out);
	zsh_names(l, "", out);
	fputs("\t\t;;\n", out);
	for (const struct entry *e = l->entries; e < l->entries + l->entry_count; e++) {
		fprintf(out, "\t'%s')\n", e->path);
		if (e->has_parts) {
			fputs("\t\tif (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then\n\t", out);
			zsh_names(l, e->path, out);
			fputs("\t\tfi\n", out);
		}
		if (e->count)
			fputs("\t\t_arguments -s", out);
		for (size_t i = 0; i < e->count; i++)
			zsh_option(l, &l->options[e->first + i], out);
		fputs(e->has_parts ? "\n\t\t;;\n" : " \\\n\t\t\t'*:file:_files'\n\t\t;;\n", out);
	}
	fputs("\tesac\n}\n"
	      "if [[ $funcstack[1] == _oneway ]]; then _oneway \"$@\"; else compdef _oneway oneway; fi\n",
	      out);
}

static void fish_option(struct list *l, const struct entry *e, const struct ow_option *o, FILE *out)
{
	enum value value = value_of(l, o);
	fprintf(out, "complete -c oneway -n \"__oneway_is '%s'\" -l %s", e->path, o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (value == VALUE_CHOICE) {
		fputs(" -x -a '", out);
		print_names(l, out);
		fputs("'", out);
	} else if (value != VALUE_NONE) {
		fputs(value == VALUE_FILE     ? " -r -F"
		      : value == VALUE_FOLDER ? " -x -a '(__fish_complete_directories)'"
		                              : " -x",
		      out);
	}
	fputs(" -d '", out);
	print_text(out, o->help);
	fputs("'\n", out);
}

static void fish_names(const struct list *l, const char *path, FILE *out)
{
	for (const struct entry *e = next_below(l, path, NULL); e; e = next_below(l, path, e)) {
		fprintf(out, "complete -c oneway -n \"__oneway_is '%s'\" -f -a %s -d '", path, last_word(e));
		print_text(out, e->job);
		fputs("'\n", out);
	}
}

static void write_fish(struct list *l, FILE *out)
{
	fputs("# fish completion of oneway, made by 'oneway completions fish'.\n"
	      "function __oneway_is\n"
	      "\tset -l tokens (commandline -opc)\n"
	      "\tset -l at \"$tokens[2]\"\n"
	      "\tif contains -- \"$at $tokens[3]\"",
	      out);
	for (size_t i = 0; i < l->entry_count; i++) {
		if (strchr(l->entries[i].path, ' '))
			fprintf(out, " '%s'", l->entries[i].path);
	}
	fputs("\n\t\tset at \"$at $tokens[3]\"\n\tend\n\ttest \"$at\" = \"$argv[1]\"\nend\n"
	      "complete -c oneway -n \"__oneway_is ''\" -f -l help -d 'Print this text'\n"
	      "complete -c oneway -n \"__oneway_is ''\" -f -l version -d 'Print the version'\n",
	      out);
	fish_names(l, "", out);
	for (const struct entry *e = l->entries; e < l->entries + l->entry_count; e++) {
		fish_names(l, e->path, out);
		for (size_t i = 0; i < e->count; i++)
			fish_option(l, e, &l->options[e->first + i], out);
	}
}

/* Fills the list: entries that are found on the way are visited in their turn. */
static int visit(struct list *l, const struct ow_cli_part *commands)
{
	FILE *usual = stdout, *nowhere = fopen("/dev/null", "w");
	if (!nowhere)
		return -errno;
	for (; commands->name; commands++)
		add_entry(l, "", commands);
	ow_cli_parts_listen(take_parts, l);
	stdout = nowhere;
	for (l->current = 0; l->current < l->entry_count && !l->failed; l->current++) {
		struct entry *e = &l->entries[l->current];
		char name[sizeof e->path], flag[] = "--help", *argv[] = {name, flag, NULL};
		snprintf(name, sizeof name, "%s", last_word(e));
		e->first = l->option_count;
		e->run(2, argv);
	}
	stdout = usual;
	ow_cli_parts_listen(NULL, NULL);
	fclose(nowhere);
	return l->failed ? -ENOMEM : 0;
}

int ow_cli_completions(const struct ow_cli_part *commands, int argc, char **argv)
{
	static const struct {
		const char *shell;
		void (*write)(struct list *l, FILE *out);
	} writers[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
	struct ow_error err;
	for (size_t i = 0; argc == 2 && i < sizeof writers / sizeof *writers; i++) {
		if (strcmp(argv[1], writers[i].shell) != 0)
			continue;
		struct list l = {0};
		struct ow_options_listener listener = {take_table, take_choices, &l};
		ow_options_listen(&listener);
		int r = visit(&l, commands);
		if (r == 0) {
			writers[i].write(&l, stdout);
			r = l.failed ? -ENOMEM : 0;
		}
		ow_options_listen(NULL);
		free(l.entries);
		free(l.options);
		if (r == 0)
			return OW_EXIT_OK;
		ow_error_set(&err, -r, "%s", strerror(-r));
		return ow_cli_failed("completions", &err);
	}
	ow_error_set(&err, EINVAL, "usage: oneway completions bash|zsh|fish");
	return ow_cli_misused("completions", &err);
}
