/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines are printed once, which are counted, and their form. The test sets the time. */
#include "point/journal.h"

#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct stage {
	struct ow_journal *journal;
	FILE *out;
	char *text;
	size_t size;
};

static void begin(struct stage *s, bool journald)
{
	s->out = open_memstream(&s->text, &s->size);
	assert_non_null(s->out);
	assert_int_equal(ow_journal_create(s->out, "london", journald, &s->journal), 0);
}

static void end(struct stage *s)
{
	ow_journal_free(s->journal);
	fclose(s->out);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void test_forms(void **state)
{
	struct stage s;
	(void)state;
	begin(&s, true);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: refused", 0);
	ow_journal_line(s.journal, OW_EVENT_INFO, "paris: connected", 0);
	end(&s);
	assert_string_equal(s.text, "<4>paris: refused\n<6>paris: connected\n");
	free(s.text);
	begin(&s, false);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: refused", 0);
	end(&s);
	assert_string_equal(s.text + strlen("12:34:56.789"), " london: warning: paris: refused\n");
	free(s.text);
}

/* A refusal a second for 5 minutes, from ever new ports. */
static void test_repeated(void **state)
{
	struct stage s;
	char line[100];
	(void)state;
	begin(&s, true);
	for (int i = 0; i < 300; i++) {
		snprintf(line, sizeof line, "connection from 192.0.2.7:%d refused: no certificate, code %d", 40000 + i,
		         i);
		ow_journal_line(s.journal, OW_EVENT_WARNING, line, i * OW_NS_PER_S);
	}
	end(&s);
	/* At once, after a minute, after two more, and the rest at the end. */
	assert_int_equal(count(s.text, "\n"), 4);
	assert_int_equal(count(s.text, "<4>connection from 192.0.2.7:40000 refused: no certificate, code 0\n"), 1);
	assert_int_equal(count(s.text, "(59 more times in "), 1);
	assert_int_equal(count(s.text, "(120 more times in "), 2);
	free(s.text);
	begin(&s, true);
	for (int i = 0; i < 2; i++)
		ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: refused", i * OW_NS_PER_S);
	end(&s);
	assert_int_equal(count(s.text, "paris: refused (1 more time in "), 1);
	free(s.text);
}

/* Events at different times of day are different. */
static void test_times(void **state)
{
	struct stage s;
	(void)state;
	begin(&s, true);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: since 10:02:13 2 flows stopped", 0);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: since 10:02:33 2 flows stopped", 0);
	end(&s);
	assert_int_equal(count(s.text, "\n"), 2);
	free(s.text);
}

/* What has ended is forgotten: later it is news again. */
static void test_forgotten(void **state)
{
	struct stage s;
	(void)state;
	begin(&s, true);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: refused", 0);
	ow_journal_tick(s.journal, OW_JOURNAL_WINDOW_NS);
	ow_journal_line(s.journal, OW_EVENT_WARNING, "paris: refused", OW_JOURNAL_WINDOW_NS);
	end(&s);
	assert_string_equal(s.text, "<4>paris: refused\n<4>paris: refused\n");
	free(s.text);
}

static void test_flood(void **state)
{
	struct stage s;
	char line[100];
	(void)state;
	begin(&s, true);
	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof line, "connection from 10.0.%d.%d refused", i / 256, i % 256);
		ow_journal_line(s.journal, OW_EVENT_WARNING, line, 0);
	}
	/* What matters is said nevertheless. */
	ow_journal_line(s.journal, OW_EVENT_INFO, "paris: connected", 0);
	ow_journal_line(s.journal, OW_EVENT_ERROR, "eth0: the interface was removed", 0);
	end(&s);
	assert_int_equal(count(s.text, "\n"), OW_JOURNAL_KINDS + 3);
	assert_int_equal(count(s.text, "<4>936 further warnings of other kinds were not logged\n"), 1);
	assert_int_equal(count(s.text, "<6>paris: connected\n<3>eth0"), 1);
	free(s.text);
}

static void test_stream(void **state)
{
	struct stat st;
	char text[64];
	(void)state;
	assert_int_equal(fstat(STDIN_FILENO, &st), 0);
	snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	unsetenv("JOURNAL_STREAM");
	assert_false(ow_journal_is_stream(STDIN_FILENO));
	setenv("JOURNAL_STREAM", "1:2", 1);
	assert_false(ow_journal_is_stream(STDIN_FILENO));
	setenv("JOURNAL_STREAM", text, 1);
	assert_true(ow_journal_is_stream(STDIN_FILENO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),     cmocka_unit_test(test_repeated), cmocka_unit_test(test_times),
		cmocka_unit_test(test_forgotten), cmocka_unit_test(test_flood),    cmocka_unit_test(test_stream),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
