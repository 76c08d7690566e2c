/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of sets of keys: key_sketch.h has the method. */
#include "reconcile/key_sketch.h"

#include <stdbool.h>
#include <stddef.h>

#define BITS  40
#define MASK  ((UINT64_C(1) << BITS) - 1)
#define TERMS (OW_KEY_SKETCH_MAX + 1) /* of a polynomial */

/* -- the field ---------------------------------------------------------------------------------------------------- */

/* Products with one factor. */
struct factor {
	uint64_t times[16]; /* with each number of 4 bits, not reduced */
};

static struct factor factor_of(uint64_t a)
{
	struct factor f = {{0}};
	for (unsigned i = 1; i < 16; i++)
		f.times[i] = i & 1 ? f.times[i - 1] ^ a : f.times[i / 2] << 1;
	return f;
}

/* x^40 = x^5 + x^4 + x^3 + 1; at most 23 bits above. */
static uint64_t reduce(uint64_t x)
{
	uint64_t high = x >> BITS;
	x = (x & MASK) ^ high ^ high << 3 ^ high << 4 ^ high << 5;
	return x >> BITS ? reduce(x) : x;
}

static uint64_t times(const struct factor *f, uint64_t b)
{
	uint64_t product = 0;
	for (int shift = BITS - 4; shift >= 0; shift -= 4)
		product = reduce(product << 4 ^ f->times[b >> shift & 15]);
	return product;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	struct factor f = factor_of(a);
	return times(&f, b);
}

/* a^(2^40 - 2) */
static uint64_t inverse(uint64_t a)
{
	uint64_t result = 1, power = a;
	for (unsigned i = 1; i < BITS; i++) {
		power = multiply(power, power);
		result = multiply(result, power);
	}
	return result;
}

/* -- sketches ----------------------------------------------------------------------------------------------------- */

void ow_key_sketch_toggle(struct ow_key_sketch *sketch, uint64_t key)
{
	uint64_t power = key & MASK;
	struct factor square = factor_of(multiply(power, power));
	for (unsigned i = 0; i < sketch->capacity; i++) {
		sketch->sum[i] ^= power;
		power = times(&square, power);
	}
}

/* -- polynomials: the lowest term first ----------------------------------------------------------------------------- */

struct poly {
	int degree; /* -1: it is 0 */
	uint64_t term[2 * TERMS];
};

static void trim(struct poly *p)
{
	while (p->degree >= 0 && !p->term[p->degree])
		p->degree--;
}

/* p modulo m, whose highest term is 1; optionally the quotient. */
static void divide(struct poly *p, const struct poly *m, struct poly *ret_quotient)
{
	if (ret_quotient)
		*ret_quotient = (struct poly){.degree = p->degree - m->degree};
	for (int i = p->degree - m->degree; i >= 0; i--) {
		uint64_t top = p->term[i + m->degree];
		if (ret_quotient)
			ret_quotient->term[i] = top;
		if (!top)
			continue;
		struct factor f = factor_of(top);
		for (int k = 0; k <= m->degree; k++)
			p->term[i + k] ^= times(&f, m->term[k]);
	}
	if (p->degree >= m->degree)
		p->degree = m->degree - 1;
	trim(p);
}

static void make_monic(struct poly *p)
{
	struct factor f = factor_of(inverse(p->term[p->degree]));
	for (int i = 0; i <= p->degree; i++)
		p->term[i] = times(&f, p->term[i]);
}

/* p = p^2 modulo m */
static void square(struct poly *p, const struct poly *m)
{
	struct poly wide = {.degree = 2 * p->degree};
	for (int i = 0; i <= p->degree; i++)
		wide.term[2 * i] = multiply(p->term[i], p->term[i]);
	divide(&wide, m, NULL);
	*p = wide;
}

static void add(struct poly *p, const struct poly *q)
{
	for (int i = p->degree + 1; i <= q->degree; i++)
		p->term[i] = 0;
	p->degree = p->degree > q->degree ? p->degree : q->degree;
	for (int i = 0; i <= q->degree; i++)
		p->term[i] ^= q->term[i];
	trim(p);
}

/* The greatest common divisor, monic; both are changed. */
static struct poly common_divisor(struct poly a, struct poly b)
{
	while (b.degree >= 0) {
		struct poly rest = a;
		make_monic(&b);
		divide(&rest, &b, NULL);
		a = b;
		b = rest;
	}
	return a;
}

/* The sum of (beta x)^(2^i) modulo m, i below 40. *ret_last: the next one. */
static struct poly trace(uint64_t beta, const struct poly *m, struct poly *ret_last)
{
	struct poly power = {.degree = 1, .term = {0, beta}}, sum = {.degree = -1};
	divide(&power, m, NULL);
	for (unsigned i = 0; i < BITS; i++) {
		add(&sum, &power);
		square(&power, m);
	}
	*ret_last = power;
	return sum;
}

/* Splits a monic polynomial whose roots are all in the field, and different. Traces of x times 1, z, z^2, ... tell any two
 * roots apart. */
static void find_roots(struct poly m, unsigned from, uint64_t *keys, int *count)
{
	if (m.degree == 1)
		keys[(*count)++] = m.term[0];
	for (unsigned i = from; i < BITS && m.degree > 1; i++) {
		struct poly last, sum = trace(UINT64_C(1) << i, &m, &last), quotient;
		if (sum.degree < 1)
			continue;
		struct poly part = common_divisor(m, sum);
		if (part.degree < 1 || part.degree == m.degree)
			continue;
		struct poly rest = m;
		divide(&rest, &part, &quotient);
		find_roots(part, i + 1, keys, count);
		find_roots(quotient, i + 1, keys, count);
		return;
	}
}

/* Whether x^(2^40) = x modulo m: all its roots are in the field, and different. */
static bool splits(const struct poly *m)
{
	struct poly last;
	(void)trace(1, m, &last);
	return last.degree == 1 && !last.term[0] && last.term[1] == 1;
}

/* -- solving ------------------------------------------------------------------------------------------------------ */

/* All sums of powers 1 .. 2c: those of even powers are squares. */
static void all_sums(const struct ow_key_sketch *s, uint64_t *sums)
{
	for (unsigned i = 0; i < s->capacity; i++) {
		sums[2 * i] = s->sum[i];
		sums[2 * i + 1] = multiply(sums[i], sums[i]);
	}
}

/* Berlekamp-Massey: the shortest recurrence of the sums. Returns its length. */
static int shortest(const uint64_t *sums, int count, struct poly *ret_poly)
{
	struct poly now = {.degree = 0, .term = {1}}, before = now;
	uint64_t before_error = 1;
	int length = 0, since = 1;
	for (int n = 0; n < count; n++, since++) {
		uint64_t error = sums[n];
		for (int i = 1; i <= length; i++)
			error ^= multiply(now.term[i], sums[n - i]);
		if (!error)
			continue;
		struct poly old = now;
		struct factor f = factor_of(multiply(error, inverse(before_error)));
		for (int i = 0; i + since < 2 * TERMS; i++)
			now.term[i + since] ^= times(&f, before.term[i]);
		if (2 * length > n)
			continue;
		length = n + 1 - length;
		before = old;
		before_error = error;
		since = 0;
	}
	*ret_poly = now;
	return length;
}

int ow_key_sketch_solve(const struct ow_key_sketch *sketch, uint64_t ret_keys[OW_KEY_SKETCH_MAX])
{
	uint64_t sums[2 * OW_KEY_SKETCH_MAX];
	struct poly recurrence, m;
	int count = 0;
	all_sums(sketch, sums);
	int length = shortest(sums, 2 * (int)sketch->capacity, &recurrence);
	if (length == 0)
		return 0;
	if (length > (int)sketch->capacity || !recurrence.term[length])
		return -1;
	/* Its roots are the inverses of the keys: the other way round, they are the keys. */
	m = (struct poly){.degree = length};
	for (int i = 0; i <= length; i++)
		m.term[i] = recurrence.term[length - i];
	if (length > 1 && !splits(&m))
		return -1;
	find_roots(m, 0, ret_keys, &count);
	return count == length ? count : -1;
}
