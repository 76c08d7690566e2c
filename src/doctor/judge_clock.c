/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what the state of this host's clock means for delays. */
#include "base/time.h"
#include "doctor/host_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HOST "host"

/* Limits of the clock error for a good and for a usable clock: for paths within a city, and across a continent. */
#define GOOD_NS   OW_NS_PER_MS
#define USABLE_NS (10 * OW_NS_PER_MS)
/* Oscillators of computers are off by up to 100 ppm. A larger value is a correction in progress, or a wrong clock. */
#define RATE_NONE_PPM  0.005
#define RATE_USUAL_PPM 200
#define RATE_MAX_PPM   500

/* Programs that set the system clock. */
#define SYSTEM_CLOCK (OW_PROGRAM_CHRONYD | OW_PROGRAM_NTPD | OW_PROGRAM_TIMESYNCD | OW_PROGRAM_PHC2SYS)

static const struct {
	unsigned program;
	const char *name, *ask; /* ask: the command that shows what it does */
} daemons[] = {
	{OW_PROGRAM_CHRONYD, "chronyd", "chronyc tracking; chronyc sources -v"},
	{OW_PROGRAM_NTPD, "ntpd", "ntpq -p"},
	{OW_PROGRAM_TIMESYNCD, "systemd-timesyncd", "timedatectl timesync-status"},
	{OW_PROGRAM_PHC2SYS, "phc2sys", "journalctl -u 'phc2sys*'"},
	{OW_PROGRAM_PTP4L, "ptp4l", "pmc -u -b 0 'GET TIME_STATUS_NP'"},
	{OW_PROGRAM_TS2PHC, "ts2phc", "journalctl -u 'ts2phc*'"},
};
#define DAEMONS (sizeof daemons / sizeof *daemons)

static void list(unsigned programs, char *text, size_t size)
{
	size_t n = 0;
	text[0] = '\0';
	for (size_t i = 0; i < DAEMONS; i++) {
		if ((programs & daemons[i].program) && n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", daemons[i].name);
	}
}

static void fix_unsynchronised(struct ow_diagnosis *f, const struct ow_clock_facts *facts)
{
	for (size_t i = 0; i < DAEMONS; i++) {
		if (facts->programs & daemons[i].program) {
			ow_fix(f, "%s", daemons[i].ask);
			return;
		}
	}
	ow_fix(f, "apt install chrony");
}

static void judge_synchronised(struct ow_diagnosis *f, const struct ow_clock_facts *facts,
                               const struct ow_clock_state *state)
{
	char error[OW_DURATION_TEXT], estimated[OW_DURATION_TEXT];
	ow_duration_text((double)state->error_ns, error);
	ow_duration_text((double)facts->estimated_ns, estimated);
	enum ow_diagnosis_verdict verdict = state->error_ns <= GOOD_NS     ? OW_VERDICT_OK
	                                    : state->error_ns <= USABLE_NS ? OW_VERDICT_NOTE
	                                                                   : OW_VERDICT_WARNING;
	if (!facts->chrony)
		ow_found(f, verdict, "synchronised; error at most %s, about %s, says the kernel", error, estimated);
	else
		ow_found(f, verdict, "synchronised; error at most %s, says chrony", error);
	/* phc2sys sets the kernel's bound to 0 and lets it grow: the bound only shows how long ago that was. */
	if (!facts->chrony && (facts->programs & OW_PROGRAM_PHC2SYS))
		ow_means(f, "Delays to another host are wrong by both clocks' errors. phc2sys does not tell the kernel "
		            "how large this one's is: see its log. Loss is not affected.");
	else
		ow_means(f, "Delays to another host can be wrong by this and by the other clock's error; results say "
		            "so. Loss is not affected, nor is oneway live: it has one clock.");
	if (verdict != OW_VERDICT_OK)
		fix_unsynchronised(f, facts);
}

static void judge_error(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "clock");
	const struct ow_clock_state *state = facts->chrony ? &facts->chrony_state : &facts->kernel;
	if (facts->error && !facts->chrony) {
		ow_found(f, OW_VERDICT_NOTE, "cannot be read: adjtimex: %s", strerror(facts->error));
		ow_means(f, "How well the clock is set is not known here, nor will results know it.");
		ow_fix(f, "# run it outside of this container or sandbox");
	} else if (state->synchronised) {
		judge_synchronised(f, facts, state);
	} else {
		ow_found(f, OW_VERDICT_PROBLEM, "not synchronised, says %s", facts->chrony ? "chrony" : "the kernel");
		ow_means(f, "Delays to another host are wrong by an unknown amount. Loss is right as long as both "
		            "clocks differ by less than 'wait'. oneway live is not affected: it has one clock.");
		fix_unsynchronised(f, facts);
	}
}

static void judge_many(struct ow_diagnosis *f, const char *names)
{
	ow_found(f, OW_VERDICT_WARNING, "%s: several set the clock", names);
	ow_means(f, "If these programs work against each other, the clock and all delays move back and forth.");
	ow_fix(f, "systemctl disable --now UNIT  # of all but one");
}

static void judge_daemon(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "time_daemon");
	unsigned setting = facts->programs & SYSTEM_CLOCK;
	char names[96];
	list(facts->programs, names, sizeof names);
	if (setting & (setting - 1)) {
		judge_many(f, names);
	} else if (setting == OW_PROGRAM_TIMESYNCD) {
		ow_found(f, OW_VERDICT_WARNING, "%s", names);
		ow_means(f,
		         "It asks one server, seldom, and does not judge its answers: expect errors of milliseconds.");
		ow_fix(f, "apt install chrony  # replaces it");
	} else if (setting) {
		ow_found(f, OW_VERDICT_OK, "%s", names);
		ow_means(f, "A program sets the clock.");
	} else if (facts->programs & OW_PROGRAM_PTP4L) {
		ow_found(f, OW_VERDICT_WARNING, "%s without phc2sys", names);
		ow_means(f, "With hardware timestamping ptp4l sets the card's clock only; packets that the kernel "
		            "stamps, all that go out among them, have this host's clock, which nobody sets.");
		ow_fix(f, "phc2sys -a -r  # as a service: phc2sys@IF");
	} else if (facts->chrony) {
		ow_found(f, OW_VERDICT_OK, "chronyd answers; its process is not visible from here");
		ow_means(f, "A program sets the clock.");
	} else if (facts->programs_hidden) {
		ow_found(f, OW_VERDICT_NOTE, "none visible; other users' processes are hidden");
		ow_means(f, "Whether a program sets the clock is not known; the line above says whether it is "
		            "synchronised.");
		ow_fix(f, "sudo oneway doctor");
	} else if (facts->kernel.synchronised && !facts->error) {
		ow_found(f, OW_VERDICT_NOTE, "no known program");
		ow_means(f, "Something else sets the clock: the hypervisor, or a daemon in another container.");
	} else {
		ow_found(f, OW_VERDICT_WARNING, "none");
		ow_means(f, "No program sets the clock: it drifts by seconds a day.");
		ow_fix(f, "apt install chrony");
	}
}

static void judge_rate(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	double ppm = fabs(facts->rate_ppm);
	if (facts->error)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "clock_rate");
	if (ppm < RATE_NONE_PPM) {
		ow_found(f, OW_VERDICT_OK, "not corrected");
		ow_means(f, facts->kernel.synchronised
		                    ? "The time daemon has not found an error of the rate yet, or the hypervisor "
		                      "corrects it."
		                    : "No program corrects the clock: it runs at the rate of its oscillator.");
	} else if (ppm <= RATE_USUAL_PPM) {
		ow_found(f, OW_VERDICT_OK, "corrected by %+.2f ppm", facts->rate_ppm);
		ow_means(f, "Usual: oscillators of computers are off by tens of ppm.");
	} else if (ppm < RATE_MAX_PPM) {
		ow_found(f, OW_VERDICT_NOTE, "corrected by %+.2f ppm", facts->rate_ppm);
		ow_means(f, "More than most oscillators need: the clock source may be badly calibrated.");
		ow_fix(f, "dmesg | grep -i -e tsc -e clocksource");
	} else {
		ow_found(f, OW_VERDICT_WARNING, "corrected by %+.2f ppm", facts->rate_ppm);
		ow_means(f,
		         "The clock is being moved, or is at the limit of what can be corrected: delays drift by up to "
		         "%.3g us each second.",
		         ppm);
		fix_unsynchronised(f, facts);
	}
}

static void judge_leap(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	if (facts->error || facts->leap == 0)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "leap_second");
	ow_found(f, OW_VERDICT_WARNING, "one is %s at the end of this UTC day",
	         facts->leap > 0 ? "inserted" : "deleted");
	ow_means(f, "The clock steps by a second then, or is slewed for hours: delays of that time are off, unless "
	            "both hosts do exactly the same.");
	ow_fix(f, "# the same 'leapsecmode' in chrony.conf of all points");
}

static void judge_tai(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	bool ptp = facts->programs & (OW_PROGRAM_PTP4L | OW_PROGRAM_PHC2SYS | OW_PROGRAM_TS2PHC);
	if (facts->error)
		return;
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "tai_offset");
	if (facts->tai_s == OW_TAI_UTC_S) {
		ow_found(f, OW_VERDICT_OK, "%d s", facts->tai_s);
		ow_means(f, "TAI, which PTP uses, and UTC, which the kernel stamps with, can be told apart.");
		return;
	}
	enum ow_diagnosis_verdict bad = ptp ? OW_VERDICT_WARNING : OW_VERDICT_NOTE;
	if (facts->tai_s == 0)
		ow_found(f, bad, "not set: the kernel assumes that TAI equals UTC");
	else
		ow_found(f, OW_VERDICT_WARNING, "%d s, but TAI is %d s ahead of UTC since 2017", facts->tai_s,
		         OW_TAI_UTC_S);
	ow_means(f, "%s Packets that the kernel stamps are not affected.",
	         ptp ? "A clock that PTP sets can be off by this many or by 37 seconds; delays then are off by them."
	             : "Matters only with PTP, whose clocks then can be off by 37 seconds.");
	ow_fix(f, "echo 'leapsectz right/UTC' >>/etc/chrony/chrony.conf; systemctl restart chrony");
}

static bool one_of(const char *word, const char *const *words)
{
	for (; *words; words++) {
		if (strcmp(word, *words) == 0)
			return true;
	}
	return false;
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = text; (at = strstr(at, word)); at += length) {
		if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	}
	return false;
}

static void judge_source(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	/* These can be read in tens of nanoseconds without a system call. */
	static const char *const fast[] = {
		"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase", "riscv_clocksource",
		NULL};
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", NULL};
	struct ow_diagnosis *f = ow_diagnoses_add(findings, HOST, "clock_source");
	if (facts->source[0] == '\0') {
		ow_found(f, OW_VERDICT_NOTE, "cannot be read");
		ow_means(f, "Slow clock sources cost time with every packet; whether this one is, is not known.");
	} else if (one_of(facts->source, fast)) {
		ow_found(f, OW_VERDICT_OK, "%s", facts->source);
		ow_means(f, "Fast and fine enough to stamp every packet.");
	} else if (one_of(facts->source, slow)) {
		ow_found(f, OW_VERDICT_WARNING, "%s", facts->source);
		ow_means(f, "Each stamp takes about a microsecond, with jiffies it is coarse by milliseconds: delays "
		            "get noisy and packets may be dropped at high rates.");
		if (has_word(facts->alternatives, "tsc"))
			ow_fix(f, "echo tsc >/sys/devices/system/clocksource/clocksource0/current_clocksource");
		else
			ow_fix(f, "dmesg | grep -i tsc  # why the kernel does not use it");
	} else {
		ow_found(f, OW_VERDICT_NOTE, "%s", facts->source);
		ow_means(f, "Not known here. Slow clock sources cost time with every packet.");
	}
}

void ow_judge_clock(struct ow_diagnoses *findings, const struct ow_clock_facts *facts)
{
	judge_error(findings, facts);
	judge_daemon(findings, facts);
	judge_rate(findings, facts);
	judge_leap(findings, facts);
	judge_tai(findings, facts);
	judge_source(findings, facts);
}
