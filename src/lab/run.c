/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the lab: namespaces, a relay between them, a point in each, generators. This process receives the results of the
 * points and the reports of the relay. Traffic begins when the points measure and ends before they stop, so that both
 * sides count the same packets. All other processes are children of this one and end with it.
 */
#include "base/clock.h"
#include "base/time.h"
#include "lab/run_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The points must agree and begin within this time and two intervals. */
#define AGREE_NS (15 * OW_NS_PER_S)
/* While the points agree, their log is read this often. Traffic begins this long after the first interval. */
#define LOOK_NS (50 * OW_NS_PER_MS)
/* A point that is told to stop gives up a current interval that is longer than this: then its end is waited for. */
#define LONG_NS (2 * OW_NS_PER_S)
/* The time that a point may need for its last results, beyond the current interval and the waiting time. */
#define CLOSE_NS (10 * OW_NS_PER_S)
/* A line of a point is far shorter. */
#define LINE_MAX_BYTES (1 << 20)
#define LINE_ROOM      16384
#define EXEC_FAILED    127

/*
 * The phases after the traffic. An interrupted TCP connection would continue for seconds with identical repeated
 * segments and resets. Therefore the hosts lose their routes, so that they send nothing new. Packets on their way still
 * arrive.
 */
static int fade(struct ow_lab *lab, struct ow_error *err)
{
	ow_lab_signal(lab, SOURCE_A, SIGTERM);
	ow_lab_signal(lab, SOURCE_B, SIGTERM);
	int r = ow_labnet_silence(&lab->net, err);
	int64_t fade_ns = lab->options->wait_ns, length_ns = lab->options->interval_ns;
	if (length_ns > LONG_NS) {
		int64_t end_ns = ow_clock_real_ns() + fade_ns;
		fade_ns += length_ns - end_ns % length_ns + LOOK_NS;
	}
	lab->client_ns = INT64_MAX;
	lab->phase = FADING;
	lab->deadline_ns = ow_clock_steady_ns() + fade_ns;
	return r;
}

static void close_points(struct ow_lab *lab)
{
	ow_lab_signal(lab, POINT_A, SIGTERM);
	ow_lab_signal(lab, POINT_B, SIGTERM);
	lab->phase = CLOSING;
	lab->deadline_ns = ow_clock_steady_ns() + lab->options->interval_ns + lab->options->wait_ns + CLOSE_NS;
}

static void end_relay(struct ow_lab *lab)
{
	(void)!send(lab->control, "", 1, MSG_NOSIGNAL);
	lab->phase = ENDING;
	lab->deadline_ns = ow_clock_steady_ns() + (OW_RELAY_DRAIN_S + 2) * OW_NS_PER_S;
}

/* When the intervals of both directions have begun, by the log of point A; INT64_MAX if it does not say. */
static int64_t begin_of(struct ow_lab *lab)
{
	static const char before[] = ": intervals of ", at[] = " from ";
	char text[8192];
	ssize_t length = pread(lab->point[OW_SIDE_A].log, text, sizeof text - 1, 0);
	text[length > 0 ? length : 0] = 0;
	int64_t latest_ns = 0;
	unsigned count = 0;
	for (const char *p = text; (p = strstr(p, before)); p++) {
		const char *from = strstr(p, at);
		struct tm tm = {0};
		const char *rest = from ? strptime(from + sizeof at - 1, "%Y-%m-%dT%H:%M:%S.", &tm) : NULL;
		if (!rest)
			continue;
		int64_t begin_ns = timegm(&tm) * OW_NS_PER_S + strtol(rest, NULL, 10) * OW_NS_PER_MS;
		latest_ns = begin_ns > latest_ns ? begin_ns : latest_ns;
		count++;
	}
	return count >= OW_DIRECTIONS ? latest_ns : INT64_MAX;
}

/* A point that is not recorded in the kernel as it should be says so in its log. */
static void warn_not_recorded(const struct ow_lab *lab)
{
	static const char sign[] = "not recorded in the kernel: ";
	char text[8192], line[512];
	for (int i = 0; i < OW_SIDES; i++) {
		ssize_t length = pread(lab->point[i].log, text, sizeof text - 1, 0);
		text[length > 0 ? length : 0] = 0;
		const char *why = strstr(text, sign);
		if (!why)
			continue;
		snprintf(line, sizeof line, "point %c: %.*s", i == OW_SIDE_A ? 'a' : 'b', (int)strcspn(why, "\n"), why);
		lab->options->warn(line);
	}
}

/* Once the points measure both directions, they see every packet. Their log shows this first; a result proves it. */
static bool points_measure(struct ow_lab *lab)
{
	return lab->measuring == (1u << OW_DIRECTIONS) - 1 || ow_clock_real_ns() - LOOK_NS > begin_of(lab);
}

/* Both points have every result. The sending point computes it, so its output is used. */
static int take_line(struct ow_lab *lab, enum ow_side side, const char *line, struct ow_error *err)
{
	struct ow_lab_measured measured;
	int kind = ow_lab_parse(line, &measured, err);
	if (kind <= OW_LAB_OTHER)
		return kind;
	enum ow_direction way = measured.direction;
	if ((way == OW_A_TO_B) != (side == OW_SIDE_A)) {
		free(measured.text);
		return 0;
	}
	if (kind == OW_LAB_TOTAL) {
		if (lab->has_total[way])
			free(lab->total[way].text);
		lab->total[way] = measured;
		lab->has_total[way] = true;
		lab->end.measured[way] = &lab->total[way];
		return 0;
	}
	lab->measuring |= 1u << way;
	int r = ow_lab_results_measured(lab->results, &measured);
	return r < 0 ? ow_error_set(err, -r, "out of memory") : 0;
}

/* Passes on the complete lines. */
static int take_lines(struct ow_lab *lab, enum ow_side side, struct ow_error *err)
{
	struct ow_lab_point *point = &lab->point[side];
	char *from = point->line, *end;
	int r = 0;
	while (r >= 0 && (end = strchr(from, '\n'))) {
		*end = 0;
		r = *from ? take_line(lab, side, from, err) : 0;
		from = end + 1;
	}
	point->length -= (size_t)(from - point->line);
	memmove(point->line, from, point->length + 1);
	return r;
}

/* Reads the output of a point and closes the file at its end. If the end comes too early, the exit code says why. */
static int read_point(struct ow_lab *lab, enum ow_side side, struct ow_error *err)
{
	struct ow_lab_point *point = &lab->point[side];
	for (;;) {
		if (point->size - point->length < LINE_ROOM) {
			size_t size = point->size ? 2 * point->size : 4 * LINE_ROOM;
			char *grown = size > LINE_MAX_BYTES ? NULL : realloc(point->line, size);
			if (!grown)
				return ow_error_set(err, EPROTO, "a point wrote a line of more than %zu bytes",
				                    point->size);
			point->line = grown;
			point->size = size;
		}
		ssize_t n = read(point->out, point->line + point->length, point->size - point->length - 1);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			close(point->out);
			point->out = -1;
			return 0;
		}
		point->length += (size_t)n;
		point->line[point->length] = 0;
		int r = take_lines(lab, side, err);
		if (r < 0)
			return r;
	}
}

/* Reads the relay's reports. Returns 1 after the last one. */
static int read_relay(struct ow_lab *lab, struct ow_error *err)
{
	struct ow_relay_report report;
	ssize_t n;
	while ((n = recv(lab->control, &report, sizeof report, MSG_DONTWAIT)) == sizeof report) {
		if (report.total) {
			lab->end.total[report.direction] = report;
			lab->relay_totals++;
			continue;
		}
		if (lab->truth)
			ow_truth_file_add(lab->truth, report.direction, &report.truth);
		if (ow_lab_results_truth(lab->results, report.direction, &report.truth) < 0)
			return ow_error_set(err, ENOMEM, "too many intervals wait for results");
	}
	return n == 0 || lab->relay_totals == OW_DIRECTIONS;
}

static int complain(struct ow_lab *lab, enum ow_lab_child child, int status, struct ow_error *err)
{
	char said[OW_LAB_TAIL] = "";
	if (child == POINT_A || child == POINT_B)
		ow_lab_tail(lab->point[child == POINT_A ? OW_SIDE_A : OW_SIDE_B].log, said);
	if (WIFSIGNALED(status))
		return ow_error_set(err, EIO, "%s was killed by signal %d%s%s", ow_lab_child_name[child],
		                    WTERMSIG(status), *said ? ": " : "", said);
	return ow_error_set(err, EIO, "%s ended with exit code %d%s%s", ow_lab_child_name[child], WEXITSTATUS(status),
	                    *said ? ": " : "", said);
}

/* A child has ended: expected or not. */
static int bury(struct ow_lab *lab, enum ow_lab_child child, int status, struct ow_error *err)
{
	lab->pid[child] = 0;
	bool client = child == CLIENT || child == CLIENT_REVERSE, server = child == SERVER || child == SERVER_REVERSE;
	if (client || server) {
		bool missing = WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED;
		if (missing && !lab->no_iperf)
			lab->options->warn("no TCP: iperf3 is not installed (Debian package iperf3)");
		lab->no_iperf |= missing;
		/* A wire with much loss can break even the handshake: try again. */
		if (client && lab->phase == RUNNING && !lab->no_iperf)
			lab->client_ns = ow_clock_steady_ns() + SERVER_NS;
		return 0;
	}
	if (child == RELAY)
		return lab->phase >= ENDING ? 0 : complain(lab, child, status, err);
	if (lab->phase >= CLOSING && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (lab->phase >= FADING && child > POINT_B)
		return 0;
	return complain(lab, child, status, err);
}

static int read_signals(struct ow_lab *lab, struct ow_error *err)
{
	struct signalfd_siginfo info;
	int r = 0;
	while (read(lab->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		/* The first signal ends the lab in order, the second at once. */
		if (lab->interrupted || lab->phase == AGREEING)
			return ow_error_set(err, EINTR, "interrupted");
		lab->interrupted = lab->end.interrupted = true;
		if (lab->phase == RUNNING) {
			lab->options->interrupted();
			r = fade(lab, err);
		}
	}
	int status;
	pid_t pid;
	while (r >= 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (int i = 0; i < CHILDREN; i++) {
			if (lab->pid[i] == pid)
				r = bury(lab, (enum ow_lab_child)i, status, err);
		}
	}
	return r;
}

/* The time of the phase is over. */
static int on_deadline(struct ow_lab *lab, struct ow_error *err)
{
	char said[OW_LAB_TAIL];
	switch (lab->phase) {
	case AGREEING:
		ow_lab_tail(lab->point[OW_SIDE_A].log, said);
		return ow_error_set(err, ETIMEDOUT, "the points gave no result%s%s", *said ? "; point A: " : "", said);
	case RUNNING:
		return fade(lab, err);
	case FADING:
		close_points(lab);
		return 0;
	case CLOSING:
		lab->options->warn("the points did not end in time; some results are missing");
		end_relay(lab);
		return 0;
	default:
		return ow_error_set(err, ETIMEDOUT, "the relay did not end in time");
	}
}

static int turn(struct ow_lab *lab, struct ow_error *err)
{
	int64_t now_ns = ow_clock_steady_ns(), until_ns = lab->deadline_ns;
	if (now_ns >= lab->client_ns) {
		int r = ow_lab_start_clients(lab, err);
		if (r < 0)
			return r;
	}
	if (lab->phase == AGREEING && points_measure(lab)) {
		warn_not_recorded(lab);
		int r = ow_lab_start_traffic(lab, err);
		if (r < 0)
			return r;
	}
	if (now_ns >= lab->deadline_ns)
		return on_deadline(lab, err);
	if (lab->client_ns < until_ns)
		until_ns = lab->client_ns;
	if (lab->phase == AGREEING && now_ns + LOOK_NS < until_ns)
		until_ns = now_ns + LOOK_NS;
	struct pollfd fds[] = {
		{.fd = lab->signals, .events = POLLIN},
		{.fd = lab->control, .events = POLLIN},
		{.fd = lab->point[OW_SIDE_A].out, .events = POLLIN},
		{.fd = lab->point[OW_SIDE_B].out, .events = POLLIN},
	};
	int timeout_ms = (int)((until_ns - now_ns + OW_NS_PER_MS - 1) / OW_NS_PER_MS);
	if (poll(fds, 4, timeout_ms) < 0)
		return errno == EINTR ? 0 : ow_error_set(err, errno, "poll: %s", strerror(errno));
	int r = 0;
	for (int i = 0; r >= 0 && i < OW_SIDES; i++) {
		if (fds[2 + i].revents)
			r = read_point(lab, (enum ow_side)i, err);
	}
	if (lab->phase == CLOSING && lab->point[OW_SIDE_A].out < 0 && lab->point[OW_SIDE_B].out < 0)
		end_relay(lab);
	if (r >= 0 && fds[1].revents) {
		r = read_relay(lab, err);
		if (r == 1 && lab->phase == ENDING)
			lab->phase = DONE;
	}
	if (r >= 0 && fds[0].revents)
		r = read_signals(lab, err);
	return r < 0 ? r : 0;
}

static uint64_t count_drops(const struct ow_lab *lab)
{
	static const struct {
		enum ow_labnet_node node;
		const char *interface;
	} ends[] = {{OW_LABNET_A, OW_LABNET_WIRE},
	            {OW_LABNET_B, OW_LABNET_WIRE},
	            {OW_LABNET_RELAY, OW_LABNET_TO_A},
	            {OW_LABNET_RELAY, OW_LABNET_TO_B}};
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		uint64_t drops = 0;
		if (ow_labnet_drops(&lab->net, ends[i].node, ends[i].interface, &drops) >= 0)
			sum += drops;
	}
	return sum;
}

static int set_up(struct ow_lab *lab, struct ow_error *err)
{
	const struct ow_lab_options *options = lab->options;
	sigset_t watched;
	sigemptyset(&watched);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGTERM);
	sigaddset(&watched, SIGHUP);
	sigaddset(&watched, SIGCHLD);
	sigprocmask(SIG_BLOCK, &watched, NULL);
	lab->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (lab->signals < 0)
		return ow_error_set(err, errno, "signals: %s", strerror(errno));
	if (ow_lab_show_create(options, &lab->show) < 0 ||
	    ow_lab_results_create(ow_lab_show_row, lab->show, &lab->results) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = options->store ? ow_truth_file_create(options->store, &lab->truth, err) : 0;
	if (r >= 0)
		r = ow_labnet_create(&lab->net, err);
	if (r >= 0)
		r = ow_lab_start_relay(lab, err);
	if (r >= 0 && options->captures)
		r = ow_lab_start_captures(lab, err);
	if (r >= 0)
		r = ow_lab_start_points(lab, err);
	lab->phase = AGREEING;
	lab->deadline_ns = ow_clock_steady_ns() + AGREE_NS + 2 * options->interval_ns;
	return r;
}

/* tcpdump writes its remaining frames; the others have no further output. */
static void stop_children(struct ow_lab *lab)
{
	for (int i = 0; i < CHILDREN; i++)
		ow_lab_signal(lab, (enum ow_lab_child)i, i == CAPTURE_A || i == CAPTURE_B ? SIGINT : SIGKILL);
	for (int i = 0; i < CHILDREN; i++) {
		while (lab->pid[i] && waitpid(lab->pid[i], NULL, 0) < 0 && errno == EINTR)
			;
		lab->pid[i] = 0;
	}
}

static void tear_down(struct ow_lab *lab)
{
	const int files[] = {lab->control, lab->signals, lab->capture[OW_SIDE_A], lab->capture[OW_SIDE_B]};
	stop_children(lab);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (files[i] >= 0)
			close(files[i]);
	}
	for (int i = 0; i < OW_SIDES; i++) {
		if (lab->point[i].out >= 0)
			close(lab->point[i].out);
		if (lab->point[i].log >= 0)
			close(lab->point[i].log);
		free(lab->point[i].line);
	}
	ow_labnet_done(&lab->net);
	for (int i = 0; i < OW_DIRECTIONS; i++) {
		if (lab->has_total[i])
			free(lab->total[i].text);
	}
	ow_truth_file_free(lab->truth);
	ow_lab_results_free(lab->results);
	ow_lab_show_free(lab->show);
}

int ow_lab_run(const struct ow_lab_options *options, struct ow_error *err)
{
	struct ow_lab lab = {.options = options,
	                     .control = -1,
	                     .point = {{.out = -1, .log = -1}, {.out = -1, .log = -1}},
	                     .capture = {-1, -1},
	                     .signals = -1};
	for (int i = 0; i < OW_LABNET_NODES; i++)
		lab.net.ns[i] = -1;
	lab.client_ns = INT64_MAX;
	int r = set_up(&lab, err);
	while (r >= 0 && lab.phase != DONE)
		r = turn(&lab, err);
	if (r >= 0) {
		lab.end.kernel_drops = count_drops(&lab);
		if (options->captures)
			ow_lab_end_captures(&lab);
		ow_lab_results_finish(lab.results);
		r = ow_lab_show_end(lab.show, &lab.end, err);
	}
	tear_down(&lab);
	return r < 0 ? r : 0;
}
