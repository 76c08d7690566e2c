/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include "base/table.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static char *page;

static const char *html_of(const char *text)
{
	size_t size;
	free(page);
	FILE *out = open_memstream(&page, &size);
	ow_html_text(out, text);
	fclose(out);
	return page;
}

#define T OW_MARK_TITLE
#define L OW_MARK_LEFT
#define R OW_MARK_RIGHT

static void lines(void **state)
{
	(void)state;
	assert_string_equal(html_of(""), "");
	assert_string_equal(html_of("\n\n"), "");
	assert_string_equal(html_of("\n\033[1mA to B\033[0m\n  plain \033[31mred\033[0m text"),
	                    "<h2>A to B</h2>\n<p>plain red text</p>\n");
	assert_string_equal(html_of("\033[1mA\033[0m is not a heading"), "<p>A is not a heading</p>\n");
}

static void rows(void **state)
{
	(void)state;
	assert_string_equal(
		html_of("  sent " R "  17" L "\n\033[31m  lost " R "  3" L " 18 %\033[0m\n"),
		"<div class=\"wide\"><table>\n"
		"<tr><th class=\"x\">sent</th><td class=\"n\">17</td><td colspan=\"9\" class=\"x\"></td></tr>\n"
		"<tr><th class=\"x bad\">lost</th><td class=\"n bad\">3</td>"
		"<td colspan=\"9\" class=\"x bad\">18 %</td></tr>\n</table></div>\n");
	/* A colour that begins before the mark belongs to the cell behind it. */
	assert_non_null(strstr(html_of("a" R " 1\033[31m" R " 2\033[0m" R " 3\n"),
	                       "<td class=\"n\">1</td><td class=\"n bad\">2</td><td class=\"n\">3</td>"));
	/* Facts and numbers are different tables; with titles, everything is one. */
	html_of("clock" L "trusted\nsent" R "1\n");
	assert_non_null(strstr(
		page, "trusted</td></tr>\n</table></div>\n<div class=\"wide\"><table>\n<tr><th class=\"x\">sent"));
	html_of("start" T "sent" L "flow\n10:00" R "5" L "f\n10:01" L "nothing\n\n10:02" R "6" L "g\n");
	assert_non_null(strstr(page, "<tr class=\"t\"><th class=\"x\">start</th><th class=\"n\">sent</th>"));
	assert_non_null(strstr(page, "f</td></tr>\n<tr><th class=\"x\">10:01</th>"));
	assert_non_null(strstr(page, "</table></div>\n<div class=\"wide\"><table>\n<tr><th class=\"x\">10:02"));
}

static void hostile(void **state)
{
	(void)state;
	assert_string_equal(html_of("<script>alert(\"1\" & '2')</script>\n"),
	                    "<p>&#60;script&#62;alert(&#34;1&#34; &#38; &#39;2&#39;)&#60;/script&#62;</p>\n");
	/* Not UTF-8, a control character, a change of direction, an endless sequence. */
	assert_string_equal(html_of("a\xff\x01\xe2\x80\xae"
	                            "b\033[9999"),
	                    "<p>a???b</p>\n");
	assert_string_equal(html_of("\xc3\xa4\xc3"), "<p>\xc3\xa4?</p>\n");
	html_of(R R R "\n" T "\n" L L "\033[\n\033\n\033[31m" R);
	assert_null(strchr(page, '\033'));
	for (const char *c = page; *c; c++)
		assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
}

static void pictures(void **state)
{
	(void)state;
	static const char *const text[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
	static const char *const coded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	for (unsigned i = 0; i < 7; i++) {
		char expected[200];
		size_t size;
		int fd = memfd_create("picture", MFD_CLOEXEC);
		assert_int_equal(write(fd, text[i], i), i);
		free(page);
		FILE *out = open_memstream(&page, &size);
		assert_int_equal(ow_html_picture(out, "<A>", fd), 0);
		fclose(out);
		close(fd);
		snprintf(expected, sizeof expected,
		         "<figure><img alt=\"&#60;A&#62;\" src=\"data:image/svg+xml;base64,%s\"></figure>\n", coded[i]);
		assert_string_equal(page, expected);
	}
	FILE *out = fopen("/dev/null", "w");
	assert_true(ow_html_picture(out, "", -1) < 0);
	fclose(out);
}

static void frame(void **state)
{
	(void)state;
	size_t size;
	free(page);
	FILE *out = open_memstream(&page, &size);
	ow_html_begin(out, "</title><b>");
	ow_html_warning(out, "<w>");
	ow_html_note(out, "<n>");
	ow_html_end(out);
	fclose(out);
	assert_null(strstr(page, "<b>"));
	assert_null(strstr(page, "<w>"));
	assert_null(strstr(page, "<n>"));
	assert_non_null(strstr(page, "default-src 'none'"));
	free(page);
	page = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),    cmocka_unit_test(rows),  cmocka_unit_test(hostile),
		cmocka_unit_test(pictures), cmocka_unit_test(frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
