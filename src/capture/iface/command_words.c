/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command as a shell splits them: blanks, 'quotes', "quotes", and \ before a character. */
#include "capture/iface/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS "\t\n "
/* Without quotes these mean something to a shell. */
#define SHELL_ONLY "|&;<>()$`*?[]#~{}!"

/* Copies a word to *to, without its quotes. Returns where it ends, or NULL with err. */
static const char *take_word(const char *from, char **to, struct ow_error *err)
{
	char quote = 0;
	for (; *from && (quote || !strchr(BLANKS, *from)); from++) {
		if (quote ? *from == quote : *from == '\'' || *from == '"') {
			quote = quote ? 0 : *from;
			continue;
		}
		if (*from == '\\' && quote != '\'' && from[1] && (!quote || strchr("\"\\$`", from[1]))) {
			from++;
		} else if (quote != '\'' && strchr(quote ? "$`" : SHELL_ONLY, *from)) {
			ow_error_set(err, EINVAL,
			             "no shell runs the command, so '%c' has no meaning: quote it, or use exec:sh -c "
			             "'...'",
			             *from);
			return NULL;
		}
		*(*to)++ = *from;
	}
	if (quote)
		ow_error_set(err, EINVAL, "a quote (%c) is not closed in the command", quote);
	*(*to)++ = 0;
	return quote ? NULL : from;
}

int ow_feed_split(const char *command, char ***ret_words, struct ow_error *err)
{
	/* Each word needs its letters, a 0 and a pointer; there is a blank between two. */
	size_t length = strlen(command), most = length / 2 + 2;
	char **words = malloc(most * sizeof *words + length + 2);
	if (!words)
		return ow_error_set(err, ENOMEM, "out of memory");
	char *to = (char *)(words + most);
	size_t count = 0;
	command += strspn(command, BLANKS);
	while (*command) {
		words[count++] = to;
		command = take_word(command, &to, err);
		if (!command) {
			free(words);
			return -EINVAL;
		}
		command += strspn(command, BLANKS);
	}
	words[count] = NULL;
	if (count == 0) {
		free(words);
		return ow_error_set(err, EINVAL, "exec: without a command");
	}
	*ret_words = words;
	return 0;
}
