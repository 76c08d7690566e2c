/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/load.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "fleet/agent.h"
#include "fleet/outbox.h"
#include "fleet/positions.h"
#include "fleet/result_batch.h"
#include "fleet/spool.h"
#include "store/store.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 256
/* Different results; their counts differ between rows, their delays do not. */
#define SHAPES 64
/* Results become final after the waiting time, in the order in which they were made. */
#define SAMPLES 64
/* Rows of all points of a process that are read from the store at a time. */
#define ROWS_AT_ONCE 20000
/* How long to wait for something to do. */
#define WAIT_MS 20

/* What a process tells, in memory that all share. */
struct told {
	_Atomic uint64_t made, minutes, arrived, messages, bytes, repeated, distrusted, behind;
	_Atomic bool done;
};

struct process {
	const struct ow_load_options *options;
	struct told *told;
	unsigned index, first, points; /* its points */
	int64_t begin_ns, steady_ns;   /* of results, and when the first one was made */
	struct ow_store *store;
	struct ow_spool *spool;
	struct ow_positions *positions;
	struct ow_bus *bus;
	struct ow_outbox *outbox[2];   /* of intervals and of minutes */
	int64_t place[2];              /* rows up to here are messages */
	int64_t read_ns;               /* when the store is read next */
	struct ow_result_batch *batch; /* of each point */
	struct ow_interval_result shape[SHAPES];
	uint64_t arrived, rows_sent; /* by this process */
};

/* -- results ------------------------------------------------------------------------------------------------------ */

static void make_shape(struct ow_interval_result *r, unsigned number)
{
	struct ow_random random;
	int64_t delay[SAMPLES];
	ow_random_seed(&random, number);
	ow_result_blank(0, 0, OW_NS_PER_S, r);
	r->status = OW_RESULT_MEASURED;
	r->final = true;
	r->coverage = 1;
	r->samples = SAMPLES;
	for (unsigned i = 0; i < SAMPLES; i++)
		delay[i] = 200000 + i * 1000 + (int64_t)ow_random_below(&random, 900);
	ow_delay_histogram_sample(delay, SAMPLES, 1000, &r->delays);
	r->mean_ns = (struct ow_value){OW_VALUE_ESTIMATED, 232000 + number, 231000, 233500, OW_NO_REASON};
	r->stddev_ns = (struct ow_value){OW_VALUE_ESTIMATED, 18000 + number, 17000, 19500, OW_NO_REASON};
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] =
			ow_delay_histogram_quantile(&r->delays, (const double[]){.5, .9, .95, .99, .999}[q], 0);
	snprintf(r->synopsis, sizeof r->synopsis, "fold 4 x 1024");
	snprintf(r->clock_method, sizeof r->clock_method, "trusted");
	r->clock_from = r->clock_to = (struct ow_clock_state){true, 50000};
}

/* Lane `lane` of a point, interval `number`: the same numbers whoever asks. */
static struct ow_interval_result result_of(const struct process *p, unsigned point, unsigned lane, int64_t number)
{
	uint64_t mixed = ((uint64_t)point * 1000003 + lane) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number;
	struct ow_random random;
	ow_random_seed(&random, mixed);
	struct ow_interval_result r = p->shape[ow_random_below(&random, SHAPES)];
	snprintf(r.segment, sizeof r.segment, "s%u", point);
	snprintf(r.class_name, sizeof r.class_name, "c%u", lane);
	snprintf(r.from, sizeof r.from, "p%u", point);
	snprintf(r.to, sizeof r.to, "q%u", point);
	r.start_ns = p->begin_ns + number * OW_NS_PER_S;
	r.interval = r.start_ns / OW_NS_PER_S;
	r.lost = ow_random_below(&random, 3);
	r.matched = r.received = 1000;
	r.sent = r.matched + r.lost;
	r.total_sent = r.sent;
	r.total_received = r.received;
	r.bytes = r.sent * 800;
	r.loss_ratio = ow_value_exact((double)r.lost / (double)r.sent);
	return r;
}

static int make_results(struct process *p, int64_t number, struct ow_error *err)
{
	int r = 0;
	for (unsigned point = p->first; r == 0 && point < p->first + p->points; point++) {
		for (unsigned lane = 0; r == 0 && lane < p->options->lanes; lane++) {
			struct ow_interval_result result = result_of(p, point, lane, number);
			r = ow_store_add(p->store, &result, err);
		}
	}
	return r < 0 ? r : ow_store_commit(p->store, err);
}

/* -- messages ----------------------------------------------------------------------------------------------------- */

static const char *const names[2] = {"result", "minute"};
static const enum ow_period periods[2] = {OW_PERIOD_INTERVAL, OW_PERIOD_MINUTE};

struct feed {
	struct process *process;
	int kind;
	unsigned rows, point; /* rows that were read, and the point of the last one */
	int64_t place;        /* of the last one */
	struct ow_error *err;
};

/* What is waiting of a point becomes a message. All rows up to `place` are then in messages. */
static int flush(struct feed *feed, unsigned point, int64_t place)
{
	struct process *p = feed->process;
	struct ow_result_batch *batch = &p->batch[point];
	const uint8_t *bytes = NULL;
	char subject[OW_RESULT_NAME + 8];
	size_t size = 0;
	p->rows_sent += batch->rows;
	int r = ow_result_batch_encode(batch, &bytes, &size, feed->err);
	snprintf(subject, sizeof subject, "ow.r.p%u", p->first + point);
	return r < 0 ? r : ow_outbox_add_to(p->outbox[feed->kind], subject, bytes, size, place, feed->err);
}

static int feed_row(void *arg, int64_t number, int64_t lane, const struct ow_interval_result *result)
{
	struct feed *feed = arg;
	struct process *p = feed->process;
	unsigned long point = strtoul(result->from + 1, NULL, 10) - p->first;
	(void)lane;
	if (point >= p->points)
		return ow_error_set(feed->err, EUCLEAN, "a store with rows of point %.60s", result->from);
	int r = ow_result_batch_add(&p->batch[point], periods[feed->kind], result, feed->err);
	if (r == -ENOSPC && (r = flush(feed, (unsigned)point, p->place[feed->kind])) == 0)
		r = ow_result_batch_add(&p->batch[point], periods[feed->kind], result, feed->err);
	feed->rows++;
	feed->point = (unsigned)point;
	feed->place = number;
	return r;
}

/* The point of the last row is the last one: when its message has arrived, all have. */
static int flush_all(struct feed *feed)
{
	struct process *p = feed->process;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < p->points; i++) {
		if (i != feed->point && p->batch[i].rows)
			r = flush(feed, i, p->place[feed->kind]);
	}
	return r < 0 ? r : flush(feed, feed->point, feed->place);
}

/* Makes messages of new rows as long as there is room: one for each point. */
static int send_rows(struct process *p, int kind, struct ow_error *err)
{
	int r = 0;
	bool more = true;
	while (r == 0 && more && ow_outbox_has_room(p->outbox[kind])) {
		struct feed feed = {.process = p, .kind = kind, .place = p->place[kind], .err = err};
		r = ow_spool_new(p->spool, periods[kind], p->place[kind], ROWS_AT_ONCE, feed_row, &feed, err);
		if (r == 0 && feed.rows)
			r = flush_all(&feed);
		p->place[kind] = feed.place;
		more = feed.rows == ROWS_AT_ONCE;
	}
	return r;
}

/* As often as agents do. */
static int read_store(struct process *p, struct ow_error *err)
{
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns < p->read_ns)
		return 0;
	int r = send_rows(p, 0, err);
	if (r == 0)
		r = send_rows(p, 1, err);
	bool full = !ow_outbox_has_room(p->outbox[0]) || !ow_outbox_has_room(p->outbox[1]);
	p->read_ns = full ? now_ns : p->read_ns + OW_AGENT_READ_NS;
	return r;
}

static void on_results(void *arg, int64_t place)
{
	ow_positions_set(((struct process *)arg)->positions, names[0], place);
}

static void on_minutes(void *arg, int64_t place)
{
	ow_positions_set(((struct process *)arg)->positions, names[1], place);
}

/* Rows of the stores that the stream has not acknowledged. */
static int count_behind(struct process *p, uint64_t *ret_behind, struct ow_error *err)
{
	uint64_t behind = 0;
	int r = 0;
	for (int kind = 0; r == 0 && kind < 2; kind++) {
		int64_t last = 0;
		r = ow_spool_last(p->spool, periods[kind], &last, err);
		atomic_store(kind ? &p->told->minutes : &p->told->made, (uint64_t)last);
		behind += (uint64_t)(last - ow_positions_get(p->positions, names[kind], 0));
	}
	*ret_behind = behind;
	return r;
}

static int tell(struct process *p, struct ow_error *err)
{
	const struct ow_outbox_counts *c[2] = {ow_outbox_counts(p->outbox[0]), ow_outbox_counts(p->outbox[1])};
	uint64_t behind = 0;
	int r = ow_positions_save(p->positions, err);
	if (r == 0)
		r = count_behind(p, &behind, err);
	atomic_store(&p->told->messages, c[0]->sent + c[1]->sent);
	atomic_store(&p->told->bytes, c[0]->bytes + c[1]->bytes);
	atomic_store(&p->told->repeated, c[0]->repeated + c[1]->repeated);
	atomic_store(&p->told->distrusted, c[0]->distrusted + c[1]->distrusted);
	atomic_store(&p->told->arrived, p->rows_sent);
	atomic_store(&p->told->behind, behind);
	return r;
}

static int work(struct process *p, int wait_ms, struct ow_error *err)
{
	int r = read_store(p, err);
	ow_outbox_send(p->outbox[0]);
	ow_outbox_send(p->outbox[1]);
	ow_bus_poll(p->bus, wait_ms);
	return r;
}

/* -- a process ---------------------------------------------------------------------------------------------------- */

static int open_process(struct process *p, struct ow_error *err)
{
	char path[4096], name[40];
	snprintf(path, sizeof path, "%s/load-%u.db", p->options->folder, p->index);
	snprintf(name, sizeof name, "load%u", p->index);
	int r = ow_store_open(path, &p->store, err);
	if (r == 0) {
		ow_store_since(p->store, p->begin_ns);
		r = ow_spool_open(path, &p->spool, err);
	}
	snprintf(path, sizeof path, "%s/load-%u.positions", p->options->folder, p->index);
	if (r == 0)
		r = ow_positions_open(path, &p->positions, err);
	struct ow_bus_options bus = {.urls = p->options->urls, .name = name};
	if (r == 0)
		r = ow_bus_create(&bus, &p->bus, err);
	struct ow_outbox_options o = {.bus = p->bus, .subject = "none", .arrived = on_results, .arg = p};
	if (r == 0)
		r = ow_outbox_create(&o, &p->outbox[0], err);
	o.arrived = on_minutes;
	if (r == 0)
		r = ow_outbox_create(&o, &p->outbox[1], err);
	if (r == 0 && !(p->batch = calloc(p->points, sizeof *p->batch)))
		r = ow_error_set(err, ENOMEM, "out of memory");
	/* Not all at once. */
	p->read_ns = ow_clock_steady_ns() + OW_AGENT_READ_NS * p->index / p->options->processes;
	for (int kind = 0; r == 0 && kind < 2; kind++)
		p->place[kind] = ow_positions_get(p->positions, names[kind], 0);
	return r;
}

static void close_process(struct process *p)
{
	ow_bus_free(p->bus);
	ow_outbox_free(p->outbox[0]);
	ow_outbox_free(p->outbox[1]);
	ow_positions_close(p->positions);
	ow_spool_close(p->spool);
	ow_store_close(p->store);
	for (unsigned i = 0; p->batch && i < p->points; i++)
		ow_result_batch_done(&p->batch[i]);
	free(p->batch);
}

static int run_process(struct process *p, struct ow_error *err)
{
	const struct ow_load_options *o = p->options;
	double each_ns = OW_NS_PER_S / o->speed;
	int64_t intervals = (int64_t)((double)o->run_ns / each_ns), told_ns = 0;
	/* A process that was killed does not make up for the time: a point that is off measures nothing. */
	int64_t number = (int64_t)((double)(ow_clock_steady_ns() - p->steady_ns) / each_ns) + 1;
	int r = open_process(p, err);
	uint64_t behind = 1;
	int64_t end_ns = p->steady_ns + o->run_ns + o->drain_ns;
	while (r == 0 && (number < intervals || behind) && ow_clock_steady_ns() < end_ns) {
		int64_t now_ns = ow_clock_steady_ns();
		if (number < intervals && now_ns >= p->steady_ns + (int64_t)((double)number * each_ns)) {
			r = make_results(p, number++, err);
			behind = 1;
		}
		bool late = number < intervals &&
		            ow_clock_steady_ns() >= p->steady_ns + (int64_t)((double)number * each_ns);
		if (r == 0)
			r = work(p, late ? 0 : WAIT_MS, err);
		if (r == 0 && now_ns >= told_ns) {
			told_ns = now_ns + OW_NS_PER_S / 2;
			r = tell(p, err);
			behind = atomic_load(&p->told->behind);
		}
	}
	if (r == 0)
		r = tell(p, err);
	close_process(p);
	atomic_store(&p->told->done, r == 0);
	return r < 0 ? r : behind ? -ETIMEDOUT : 0;
}

static pid_t start(struct process *p)
{
	struct ow_error err = {"not all has arrived in time"};
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int r = run_process(p, &err);
	if (r < 0)
		fprintf(stderr, "oneway fleet load: process %u: %s\n", p->index, err.text);
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* -- all of them -------------------------------------------------------------------------------------------------- */

struct load {
	const struct ow_load_options *options;
	struct told *told;
	struct process *process;
	pid_t pid[PROCESSES_MAX]; /* 0 = has ended */
	unsigned restarts, failed;
};

static void sum_up(const struct load *load, struct ow_load_counts *ret_counts)
{
	struct ow_load_counts c = {.restarts = load->restarts};
	for (unsigned i = 0; i < load->options->processes; i++) {
		struct told *told = &load->told[i];
		c.made += atomic_load(&told->made);
		c.made_minutes += atomic_load(&told->minutes);
		c.arrived += atomic_load(&told->arrived);
		c.messages += atomic_load(&told->messages);
		c.bytes += atomic_load(&told->bytes);
		c.repeated += atomic_load(&told->repeated);
		c.distrusted += atomic_load(&told->distrusted);
		c.behind += atomic_load(&told->behind);
	}
	struct rusage used;
	if (getrusage(RUSAGE_CHILDREN, &used) == 0)
		c.cpu_seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	*ret_counts = c;
}

/* For tests that kill some of them. */
static void write_pids(const struct load *load)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/pids", load->options->folder);
	FILE *out = fopen(path, "w");
	if (!out)
		return;
	for (unsigned i = 0; i < load->options->processes; i++)
		fprintf(out, "%d\n", (int)load->pid[i]);
	fclose(out);
}

static void restart_killed(struct load *load)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		unsigned i = 0;
		while (i < load->options->processes && load->pid[i] != pid)
			i++;
		if (i == load->options->processes)
			continue;
		load->pid[i] = 0;
		load->failed += !WIFSIGNALED(status) && WEXITSTATUS(status) != EXIT_SUCCESS;
		if (WIFSIGNALED(status)) {
			load->restarts++;
			load->pid[i] = start(&load->process[i]);
			write_pids(load);
		}
	}
}

static bool any_runs(const struct load *load)
{
	for (unsigned i = 0; i < load->options->processes; i++) {
		if (load->pid[i] > 0)
			return true;
	}
	return false;
}

static void start_all(struct load *load)
{
	const struct ow_load_options *o = load->options;
	int64_t steady_ns = ow_clock_steady_ns();
	int64_t span_ns = (int64_t)((double)o->run_ns * o->speed);
	int64_t begin_ns = ow_clock_real_ns() - o->ago_ns - span_ns;
	for (unsigned i = 0; i < o->processes; i++) {
		struct process *p = &load->process[i];
		unsigned first = (unsigned)((uint64_t)o->points * i / o->processes),
			 next = (unsigned)((uint64_t)o->points * (i + 1) / o->processes);
		*p = (struct process){.options = o,
		                      .told = &load->told[i],
		                      .index = i,
		                      .first = first,
		                      .points = next - first,
		                      .begin_ns = begin_ns / OW_NS_PER_S * OW_NS_PER_S,
		                      .steady_ns = steady_ns};
		for (unsigned k = 0; k < SHAPES; k++)
			make_shape(&p->shape[k], k);
		load->pid[i] = start(p);
	}
	write_pids(load);
}

static int run_all(struct load *load, void (*each)(void *, const struct ow_load_counts *), void *arg,
                   struct ow_error *err)
{
	struct ow_load_counts counts;
	int64_t each_ns = ow_clock_steady_ns();
	start_all(load);
	while (any_runs(load)) {
		restart_killed(load);
		if (ow_clock_steady_ns() >= each_ns) {
			each_ns += OW_NS_PER_S;
			sum_up(load, &counts);
			each(arg, &counts);
		}
		usleep(20000);
	}
	sum_up(load, &counts);
	each(arg, &counts);
	return load->failed || counts.behind
	               ? ow_error_set(err, ETIMEDOUT, "not all results have arrived in the stream")
	               : 0;
}

int ow_load_run(const struct ow_load_options *options, void (*each)(void *arg, const struct ow_load_counts *counts),
                void *arg, struct ow_error *err)
{
	struct load load = {.options = options};
	if (options->processes == 0 || options->processes > PROCESSES_MAX || options->points < options->processes)
		return ow_error_set(err, EINVAL, "%u processes for %u points", options->processes, options->points);
	size_t size = options->processes * sizeof *load.told;
	load.told = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	load.process = calloc(options->processes, sizeof *load.process);
	int r = load.told == MAP_FAILED || !load.process ? ow_error_set(err, ENOMEM, "out of memory")
	                                                 : run_all(&load, each, arg, err);
	free(load.process);
	if (load.told != MAP_FAILED)
		munmap(load.told, size);
	return r;
}
