/* SPDX-License-Identifier: Apache-2.0 */
/* The program as users run it: arguments, outputs, exit codes. The program's path is in ONEWAY. */
#include "capture/file/reader.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "shell.h"

static char folder[] = "/tmp/oneway-match-XXXXXX";

static void expect(const char *command, int code)
{
	int got = run(command);
	if (got != code)
		print_error("%s: exit code %d\n%s%s", command, got, out, err);
	assert_int_equal(got, code);
}

static void expect_error(const char *command, int code, const char *text)
{
	expect(command, code);
	if (!strstr(err, text))
		print_error("%s:\n%s", command, err);
	assert_non_null(strstr(err, text));
	/* One line. */
	assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
}

static bool exists(const char *name)
{
	return access(name, F_OK) == 0;
}

/* A path such as "a_to_b.lost". */
static json_t *member(json_t *root, const char *path)
{
	char name[100];
	while (root && *path) {
		size_t length = strcspn(path, ".");
		snprintf(name, sizeof name, "%.*s", (int)length, path);
		root = json_object_get(root, name);
		path += length + (path[length] == '.');
	}
	assert_non_null(root);
	return root;
}

static json_int_t count_of(json_t *root, const char *path)
{
	return json_integer_value(member(root, path));
}

static int rows_with(const char *file, const char *word)
{
	char command[200];
	snprintf(command, sizeof command, "grep -c '%s' %s", word, file);
	run(command);
	return (int)strtol(out, NULL, 10);
}

static int frames_in(const char *name)
{
	struct ow_reader *reader;
	struct ow_frame frame[64];
	int total = 0, n;
	int64_t last = INT64_MIN;
	assert_int_equal(ow_reader_open(name, &reader, NULL), 0);
	while ((n = ow_reader_read(reader, frame, 64, NULL)) > 0) {
		for (int i = 0; i < n; i++) {
			assert_true(frame[i].time_ns >= last);
			last = frame[i].time_ns;
		}
		total += n;
	}
	assert_int_equal(n, 0);
	assert_int_equal(ow_reader_info(reader)->resolution_ns, 1);
	ow_reader_close(reader);
	return total;
}

/* Both directions, with loss and duplicates: the JSON is the truth, and every file agrees with it. */
static void outputs_agree(void **state)
{
	(void)state;
	expect("$ONEWAY match a.pcap b.pcap --json --csv c.csv --lost lost.pcap --extra extra.pcap", 0);
	json_t *result = json_loads(out, 0, NULL), *truth = json_load_file("truth.json", 0, NULL);
	assert_non_null(result);
	static const char *const names[] = {"sent", "received", "matched", "lost", "extra", "duplicated", "delay_ns"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_true(json_equal(member(member(result, "a_to_b"), names[i]), member(truth, names[i])));
		assert_true(json_equal(member(member(result, "b_to_a"), names[i]),
		                       member(member(truth, "reverse"), names[i])));
	}
	json_int_t lost = count_of(result, "a_to_b.lost") + count_of(result, "b_to_a.lost");
	json_int_t extra = count_of(result, "a_to_b.extra") + count_of(result, "b_to_a.extra");
	assert_true(lost > 0 && extra > 0);
	assert_int_equal(rows_with("c.csv", "^matched,a_to_b,"), count_of(result, "a_to_b.matched"));
	assert_int_equal(rows_with("c.csv", "^matched,b_to_a,"), count_of(result, "b_to_a.matched"));
	assert_int_equal(rows_with("c.csv", "^lost,"), lost);
	assert_int_equal(rows_with("c.csv", "^duplicated,"),
	                 count_of(result, "a_to_b.duplicated") + count_of(result, "b_to_a.duplicated"));
	assert_int_equal(frames_in("lost.pcap"), lost);
	assert_int_equal(frames_in("extra.pcap"), extra);
	json_decref(result);
	json_decref(truth);
	/* Nothing lost among the lost: taken from A and B, they match nothing at the other point. */
	expect("$ONEWAY match a.pcap b.pcap --csv - 2>/dev/null | cmp - c.csv", 0);
	expect("$ONEWAY match a.pcap b.pcap --threads 1 >one && $ONEWAY match a.pcap b.pcap --threads 2 | cmp - one",
	       0);
	expect("$ONEWAY match - b.pcap <a.pcap | tail -n +4 >piped && $ONEWAY match a.pcap b.pcap | tail -n +4 | cmp - "
	       "piped",
	       0);
}

static void text_for_people(void **state)
{
	(void)state;
	expect("$ONEWAY match a.pcap b.pcap --interval 100ms", 0);
	assert_non_null(strstr(out, "A  a.pcap\n"));
	assert_non_null(strstr(out, "\nA to B\n  sent"));
	assert_non_null(strstr(out, "\nB to A\n  sent"));
	assert_non_null(strstr(out, "interval by interval"));
	/* No terminal: no escapes, no progress. */
	assert_null(strchr(out, '\033'));
	assert_string_equal(err, "");
	/* One-way traffic, given the other way round. */
	expect("$ONEWAY match clean-b.pcap clean-a.pcap", 0);
	assert_non_null(strstr(out, "\nno packets from A to B\n\nB to A\n  sent        1,000\n"));
}

static void thresholds(void **state)
{
	(void)state;
	expect("$ONEWAY match a.pcap b.pcap --max-loss 50% --max-delay-p99 10s", 0);
	expect("$ONEWAY match a.pcap b.pcap --max-loss 0.1% --max-delay-p99 1ns", 3);
	assert_non_null(strstr(out, "A to B"));
	assert_non_null(strstr(err, "oneway match: A to B: loss of "));
	assert_non_null(strstr(err, "oneway match: B to A: loss of "));
	assert_non_null(strstr(err, "oneway match: A to B: p99 delay of "));
	expect("$ONEWAY match --max-loss=0 clean-a.pcap clean-b.pcap", 0);
	expect("$ONEWAY match --max-delay-p99 -1s clean-a.pcap clean-b.pcap", 3);
}

static void usage(void **state)
{
	(void)state;
	expect("$ONEWAY --help", 0);
	assert_non_null(strstr(out, "match"));
	expect("$ONEWAY match --help", 0);
	assert_non_null(strstr(out, "Examples:"));
	assert_non_null(strstr(out, "--max-delay-p99"));
	expect("$ONEWAY --version", 0);
	expect("$ONEWAY match --version", 0);
	expect("$ONEWAY", 2);
	expect_error("$ONEWAY mtach a b", 2, "unknown command 'mtach', did you mean 'match'?");
	expect_error("$ONEWAY --vresion", 2, "unknown option '--vresion'");
	expect_error("$ONEWAY match a.pcap", 2, "needs two captures, A and B, got 1");
	expect_error("$ONEWAY match a b c", 1, "a: cannot open");
	expect_error("$ONEWAY match --levle ip a b", 2, "unknown option --levle, did you mean --level?");
	expect_error("$ONEWAY match --level tcp a b", 2, "--level: 'tcp' is not one of auto, ip, nat or frame");
	expect_error("$ONEWAY match --window 5 a b", 2, "--window: '5' needs a unit");
	expect_error("$ONEWAY match --plot x.pdf a b", 2, "--plot: 'x.pdf' does not end in .svg or .png");
	expect_error("$ONEWAY match - - <a.pcap", 2, "only one of A and B");
	expect_error("$ONEWAY match --lost x - b.pcap <a.pcap", 2, "not standard input");
	expect_error("$ONEWAY match --json --csv - a.pcap b.pcap", 2, "cannot both use standard output");
}

/* No input is touched, and nothing incomplete stays. */
static void files_are_safe(void **state)
{
	(void)state;
	expect("cp a.pcap keep && ln a.pcap hard.pcap && ln -s b.pcap soft.pcap", 0);
	expect_error("$ONEWAY match a.pcap b.pcap --csv a.pcap", 2, "--csv a.pcap would overwrite the input a.pcap");
	expect_error("$ONEWAY match a.pcap b.pcap --lost hard.pcap", 2, "would overwrite the input a.pcap");
	expect_error("$ONEWAY match a.pcap b.pcap --extra soft.pcap", 2, "would overwrite the input b.pcap");
	expect_error("$ONEWAY match a.pcap b.pcap --csv x --lost x", 2, "--csv and --lost are both x");
	expect("cmp a.pcap keep", 0);

	expect_error("$ONEWAY match a.pcap missing.pcap --csv x.csv", 1, "missing.pcap");
	assert_false(exists("x.csv"));
	expect_error("$ONEWAY match a.pcap b.pcap --csv none/x.csv", 1,
	             "none/x.csv: the folder none: No such file or directory");
	expect_error("$ONEWAY match a.pcap other-b.pcap --csv x.csv --lost x.pcap", 1, "nothing in common");
	assert_false(exists("x.csv") || exists("x.pcap"));
	expect_error("$ONEWAY match a.pcap b.pcap --csv /dev/full", 1, "/dev/full: No space left on device");
	expect_error("$ONEWAY match a.pcap b.pcap --lost /dev/full", 1, "/dev/full");
	assert_non_null(strstr(out, "A to B"));
	expect_error("$ONEWAY match a.pcap b.pcap --json >/dev/full", 1, "standard output: No space left on device");
	/* A limit on file sizes plays a disk that fills up half way. */
	expect_error("ulimit -f 1; trap '' XFSZ; $ONEWAY match a.pcap b.pcap --csv x.csv", 1, "x.csv: File too large");
	assert_false(exists("x.csv"));
	expect_error("ulimit -f 1; trap '' XFSZ; $ONEWAY match a.pcap b.pcap --extra x.pcap >/dev/null", 1, "x.pcap");
	assert_false(exists("x.pcap"));
}

static void captures_of_two_kinds(void **state)
{
	(void)state;
	expect("$ONEWAY simulate --packets 2000 --reverse 0.5 --loss 0.05 --seed 3 --b-link raw -a e.pcap -b r.pcap -t "
	       "t",
	       0);
	expect_error("$ONEWAY match e.pcap r.pcap --lost x.pcap", 1,
	             "x.pcap cannot hold both link types, RAW and EN10MB");
	assert_false(exists("x.pcap"));
	assert_non_null(strstr(out, "A to B"));
	/* With one direction only, the lost are all from one side. */
	expect("$ONEWAY simulate --packets 2000 --loss 0.05 --seed 3 --b-link raw -a e.pcap -b r.pcap -t t", 0);
	expect("$ONEWAY match e.pcap r.pcap --lost x.pcap --extra none.pcap", 0);
	/* The name chooses the format. */
	expect("$ONEWAY match e.pcap r.pcap --lost x.pcapng.gz --extra none.pcapng", 0);
	expect("gzip -dc x.pcapng.gz | head -c 4 | od -An -tx1 | grep -q '0a 0d 0d 0a'", 0);
	expect("head -c 4 none.pcapng | od -An -tx1 | grep -q '0a 0d 0d 0a'", 0);
	assert_int_equal(frames_in("x.pcapng.gz"), frames_in("x.pcap"));
	assert_true(frames_in("x.pcap") > 50);
	assert_int_equal(frames_in("none.pcap"), 0);
}

/* The first bytes tell the compression, not the name. */
static void compressed_captures(void **state)
{
	static const char *const commands[] = {"gzip -c", "zstd -qc", "lz4 -qcB4", "xz -0c", "bzip2 -1c"};
	char command[256], plain[sizeof out];

	(void)state;
	expect("$ONEWAY match a.pcap b.pcap --json", 0);
	memcpy(plain, out, sizeof plain);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		snprintf(command, sizeof command,
		         "mkdir -p packed && %s <a.pcap >packed/a.pcap && %s <b.pcap >packed/b.pcap", commands[i],
		         commands[i]);
		expect(command, 0);
		expect("cd packed && $ONEWAY match a.pcap b.pcap --json", 0);
		assert_string_equal(out, plain);
		/* cut: what is there is used, with a warning */
		expect("cd packed && head -c $(($(stat -c %s a.pcap) - 50)) a.pcap >cut.pcap && $ONEWAY match cut.pcap "
		       "b.pcap",
		       0);
		assert_non_null(strstr(out, " data cut off at offset "));
	}
}

static void plot(void **state)
{
	(void)state;
	if (run("gnuplot --version") != 0) {
		print_message("skipped: gnuplot is not installed\n");
		skip();
	}
	expect("$ONEWAY match a.pcap b.pcap --plot p.svg && tail -c 10 p.svg | grep -q '</svg>'", 0);
	expect("$ONEWAY match a.pcap b.pcap --plot p.png && head -c 4 p.png | grep -q PNG", 0);
	expect_error("mkdir -p empty; PATH=$PWD/empty $ONEWAY match a.pcap b.pcap --plot q.svg", 1,
	             "Debian package gnuplot-nox");
	assert_non_null(strstr(out, "A to B"));
	assert_false(exists("q.svg"));
}

static int set_up(void **state)
{
	(void)state;
	if (!getenv("ONEWAY") || !mkdtemp(folder) || chdir(folder) != 0)
		return -1;
	return run("$ONEWAY simulate --packets 5000 --rate 10k --flows 20 --reverse 0.4 --loss 0.02 --duplicate 0.01"
	           " --delay constant:250us --seed 7 -a a.pcap -b b.pcap -t truth.json"
	           " && $ONEWAY simulate --packets 1000 --seed 8 -a clean-a.pcap -b clean-b.pcap -t t.json"
	           " && $ONEWAY simulate --packets 1000 --seed 9 -a other-a.pcap -b other-b.pcap -t t.json");
}

static int tear_down(void **state)
{
	(void)state;
	/* By its name: if set_up failed, the present folder is not the test's own. */
	char line[sizeof folder + 10];
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	return chdir("/") == 0 && system(line) == 0 ? 0 : -1; /* NOLINT(cert-env33-c) */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outputs_agree),       cmocka_unit_test(text_for_people),
		cmocka_unit_test(thresholds),          cmocka_unit_test(usage),
		cmocka_unit_test(files_are_safe),      cmocka_unit_test(captures_of_two_kinds),
		cmocka_unit_test(compressed_captures), cmocka_unit_test(plot),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
