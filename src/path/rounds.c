/* SPDX-License-Identifier: Apache-2.0 */
#include "path/rounds.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum state { RUNNING, WANTS_PASS, HAS_PASS, ENDED };

struct driver {
	struct rounds *rounds;
	struct ow_rounds_pair *pair;
	pthread_t thread;
	enum state state;
	struct ow_match_pass *pass;
	struct ow_error *err;
	int result; /* of the pass */
};

struct rounds {
	pthread_mutex_t baton; /* held by the thread that runs */
	pthread_cond_t passed;
	struct driver *driver;
	unsigned drivers;
	unsigned *round;
};

static bool all_want(const struct rounds *r)
{
	bool any = false;
	for (unsigned i = 0; i < r->drivers; i++) {
		if (r->driver[i].state == RUNNING || r->driver[i].state == HAS_PASS)
			return false;
		any |= r->driver[i].state == WANTS_PASS;
	}
	return any;
}

static struct driver *driver_of(struct rounds *r, const struct ow_match_pass *pass)
{
	struct driver *d = r->driver;
	while (d->pass != pass || d->state != WANTS_PASS)
		d++;
	return d;
}

/* round: 0 = not a joint pass. One that only counts intervals has the plan of the one before, and so its log. */
static void end_pass(struct driver *d, int result, unsigned round)
{
	d->result = result;
	d->state = HAS_PASS;
	if (!d->pass->intervals)
		d->pair->round = round;
}

static void run_round(struct rounds *r)
{
	struct ow_joint_pass set = {.passes = 0};
	struct ow_error err;
	for (unsigned i = 0; i < r->drivers; i++) {
		if (r->driver[i].state != WANTS_PASS)
			continue;
		set.pair[set.passes] = r->driver[i].pair->place;
		set.pass[set.passes++] = r->driver[i].pass;
	}
	unsigned all = set.passes, joint = ow_joint_pass_select(&set);
	++*r->round;
	set.passes = joint;
	for (unsigned k = 0; k < joint; k++) {
		set.pass[k]->log = &driver_of(r, set.pass[k])->pair->log;
		set.pass[k]->log->notes = 0;
		set.pass[k]->log->full = false;
	}
	int result = joint ? ow_joint_pass_run(&set, &err) : -EAGAIN;
	for (unsigned k = 0; k < joint; k++)
		set.pass[k]->log = NULL;
	for (unsigned k = 0; k < all; k++) {
		struct driver *d = driver_of(r, set.pass[k]);
		if (k < joint && result != -EAGAIN) {
			if (result < 0)
				*d->err = err;
			end_pass(d, result, *r->round);
		} else {
			end_pass(d, ow_match_pass_run(d->pass, d->err), 0);
		}
	}
	pthread_cond_broadcast(&r->passed);
}

/* Waits for the pass that it wants. Called with the baton. */
static int run_pass(void *arg, struct ow_match_pass *pass, struct ow_error *err)
{
	struct driver *d = arg;
	struct rounds *r = d->rounds;
	struct ow_error unused = {""};
	d->pass = pass;
	d->err = err ? err : &unused;
	d->state = WANTS_PASS;
	if (all_want(r))
		run_round(r);
	while (d->state != HAS_PASS)
		pthread_cond_wait(&r->passed, &r->baton);
	d->state = RUNNING;
	return d->result;
}

static void *drive(void *arg)
{
	struct driver *d = arg;
	struct rounds *r = d->rounds;
	struct ow_rounds_pair *pair = d->pair;
	pthread_mutex_lock(&r->baton);
	const struct ow_match_host host = {.run_pass = run_pass,
	                                   .arg = d,
	                                   .reader = {pair->reader[OW_SIDE_A], pair->reader[OW_SIDE_B]},
	                                   .estimates = pair->estimates};
	pair->result = ow_match_files_hosted(pair->path[OW_SIDE_A], pair->path[OW_SIDE_B], &pair->options, &host,
	                                     &pair->match, &pair->err);
	d->state = ENDED;
	if (all_want(r))
		run_round(r);
	pthread_mutex_unlock(&r->baton);
	return NULL;
}

int ow_rounds_run(struct ow_rounds_pair *pair, unsigned pairs, unsigned *round)
{
	struct rounds r = {.drivers = pairs, .round = round, .driver = calloc(pairs, sizeof *r.driver)};
	for (unsigned i = 0; i < pairs && !r.driver; i++)
		pair[i].result = -ENOMEM;
	if (!r.driver)
		return -ENOMEM;
	pthread_mutex_init(&r.baton, NULL);
	pthread_cond_init(&r.passed, NULL);
	unsigned started = 0;
	int result = 0;
	pthread_mutex_lock(&r.baton);
	for (unsigned i = 0; i < pairs; i++)
		r.driver[i] = (struct driver){.rounds = &r, .pair = &pair[i]};
	while (started < pairs && result == 0) {
		result = -pthread_create(&r.driver[started].thread, NULL, drive, &r.driver[started]);
		started += result == 0;
	}
	/* Those that could not be started do not take part. */
	for (unsigned i = started; i < pairs; i++) {
		r.driver[i].state = ENDED;
		pair[i].result = result;
	}
	pthread_mutex_unlock(&r.baton);
	for (unsigned i = 0; i < started; i++)
		pthread_join(r.driver[i].thread, NULL);
	pthread_cond_destroy(&r.passed);
	pthread_mutex_destroy(&r.baton);
	free(r.driver);
	return result;
}
