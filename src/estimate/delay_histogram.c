/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A distribution of delays as bytes. The code of the buckets, from the lowest to the highest:
 *
 *     delta(packets), then for each further bucket: gamma(distance from the one before), delta(packets)
 *
 * gamma and delta are Elias' codes: gamma(n) has floor(log2 n) zeros and then n in binary, delta(n) has gamma of the
 * number of binary digits of n and then these without the first. The lowest bucket is that of the least delay. To add a
 * packet makes a count greater, or splits a distance d in two of which one is d / 2 or more: the code does not become
 * shorter by it.
 */
#include "estimate/delay_histogram.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/coder.h"
#include "estimate/sample.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSION  1
#define BITS     OW_DELAY_HISTOGRAM_BITS
#define BITS_MIN (-6) /* three buckets: they always fit */
#define CODE_MAX (8u * OW_DELAY_HISTOGRAM_CODE)
/* No code has more buckets: a bucket takes two bits at least. */
#define MOST ((CODE_MAX + 1) / 2)
/* More samples make the interval only slightly narrower, and their ranks take time to compute. */
#define SAMPLES_MAX 1e6

/* -- buckets ------------------------------------------------------------------------------------------------------ */

/* Buckets one by one, in the order of their keys. */
struct buckets {
	int bits;
	unsigned count;
	struct ow_delay_bucket bucket[2 * MOST];
};

static uint64_t magnitude(int64_t delay_ns)
{
	return delay_ns < 0 ? -(uint64_t)delay_ns : (uint64_t)delay_ns;
}

static int32_t distance(uint64_t m, int bits)
{
	assert(bits <= BITS);
	int octave = m ? 64 - __builtin_clzll(m) : 0; /* 1: of 1, 2: from 2 on, 3: from 4 on */
	if (bits < 0)
		return octave >> -bits;
	int shift = octave > bits + 1 ? octave - bits - 1 : 0;
	return (shift << bits) + (int32_t)(m >> shift);
}

static int32_t key_of(int64_t delay_ns, int bits)
{
	int32_t d = distance(magnitude(delay_ns), bits);
	return delay_ns < 0 ? -d : d;
}

/* The least and the greatest magnitude at this distance. */
static void ends_of(int32_t d, int bits, uint64_t *ret_low, uint64_t *ret_high)
{
	if (bits < 0) {
		int first = d << -bits, last = ((d + 1) << -bits) - 1;
		*ret_low = first ? UINT64_C(1) << (first - 1) : 0;
		*ret_high = last < 64 ? (UINT64_C(1) << last) - 1 : UINT64_MAX;
		return;
	}
	int shift = d < 2 << bits ? 0 : (d >> bits) - 1;
	*ret_low = (uint64_t)(d - (shift << bits)) << shift;
	*ret_high = *ret_low + ((UINT64_C(1) << shift) - 1);
}

static void range_of(int32_t key, int bits, double *ret_low_ns, double *ret_high_ns)
{
	uint64_t low, high;
	ends_of(abs(key), bits, &low, &high);
	*ret_low_ns = key > 0 ? (double)low : -(double)high;
	*ret_high_ns = key < 0 ? -(double)low : (double)high;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The key at a lower resolution. */
static int32_t coarser_key(int32_t key, int bits, int coarser)
{
	uint64_t low, high;
	ends_of(abs(key), bits, &low, &high);
	int32_t d = distance(low, coarser);
	return key < 0 ? -d : d;
}

/* Joins buckets, so that there are 2^coarser an octave. Returns how many are left. */
static unsigned join(struct ow_delay_bucket *bucket, unsigned count, int bits, int coarser)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		int32_t key = coarser_key(bucket[i].key, bits, coarser);
		if (kept && bucket[kept - 1].key == key)
			bucket[kept - 1].packets = add(bucket[kept - 1].packets, bucket[i].packets);
		else
			bucket[kept++] = (struct ow_delay_bucket){key, bucket[i].packets};
	}
	return kept;
}

static void coarsen(struct buckets *b, int bits)
{
	b->count = join(b->bucket, b->count, b->bits, bits);
	b->bits = bits;
}

/* Adds packets of the last bucket, or of one behind it. */
static void append(struct buckets *b, int64_t delay_ns, uint64_t packets)
{
	int32_t key = key_of(delay_ns, b->bits);
	if (b->count && b->bucket[b->count - 1].key == key) {
		b->bucket[b->count - 1].packets = add(b->bucket[b->count - 1].packets, packets);
		return;
	}
	b->bucket[b->count++] = (struct ow_delay_bucket){key, packets};
	while (b->count > MOST)
		coarsen(b, b->bits - 1);
}

/* -- the code of the buckets -------------------------------------------------------------------------------------- */

static unsigned digits(uint64_t n)
{
	return 64 - (unsigned)__builtin_clzll(n);
}

static unsigned gamma_bits(uint64_t n)
{
	return 2 * digits(n) - 1;
}

static unsigned delta_bits(uint64_t n)
{
	return gamma_bits(digits(n)) + digits(n) - 1;
}

static unsigned code_bits(const struct buckets *b)
{
	unsigned bits = 0;
	for (unsigned i = 0; i < b->count; i++) {
		bits += delta_bits(b->bucket[i].packets);
		if (i)
			bits += gamma_bits((uint64_t)(b->bucket[i].key - b->bucket[i - 1].key));
	}
	return bits;
}

/* Bits of a code, the first one is the highest of its byte. */
struct bits {
	const uint8_t *from;
	uint8_t *to;
	unsigned at, size;
	uint64_t part;       /* its last bits are those that are not written yet */
	int32_t first, last; /* keys of the least and the greatest delay */
	bool failed;
};

/* At most 57 bits; the value has no others. Whole bytes are written when they are complete. */
static void put(struct bits *bits, uint64_t value, unsigned count)
{
	unsigned filled = bits->at % 8 + count;
	bits->part = bits->part << count | value;
	bits->at += count;
	for (uint8_t *to = bits->to + (bits->at - filled) / 8; filled >= 8; filled -= 8)
		*to++ = (uint8_t)(bits->part >> (filled - 8));
}

/* The last byte, with zeros behind the code. */
static void put_end(struct bits *bits)
{
	if (bits->at % 8)
		put(bits, 0, 8 - bits->at % 8);
}

static void put_delta(struct bits *bits, uint64_t n)
{
	unsigned rest = digits(n) - 1, low = rest < 32 ? rest : 32;
	uint64_t bare = n ^ UINT64_C(1) << rest;
	put(bits, digits(n), gamma_bits(digits(n)));
	put(bits, low < rest ? bare >> 32 : 0, rest - low);
	put(bits, bare & ((UINT64_C(1) << low) - 1), low);
}

/* The next 57 bits or more, from the highest bit on; zeros behind the end. */
static uint64_t ahead(const struct bits *bits)
{
	unsigned byte = bits->at / 8, bytes = bits->size / 8;
	uint64_t window = 0;
	if (byte + 8 <= bytes)
		window = (uint64_t)ow_load_be32(bits->from + byte) << 32 | ow_load_be32(bits->from + byte + 4);
	else
		for (unsigned i = byte; i < bytes; i++)
			window |= (uint64_t)bits->from[i] << (56 - 8 * (i - byte));
	return window << bits->at % 8;
}

/* At most 57 bits. */
static uint64_t get(struct bits *bits, unsigned count)
{
	uint64_t value = count ? ahead(bits) >> (64 - count) : 0;
	bits->at += count;
	bits->failed |= bits->at > bits->size;
	return value;
}

/* No number of a code has more than 29 digits. */
static uint64_t get_gamma(struct bits *bits)
{
	uint64_t window = ahead(bits);
	unsigned zeros = window ? (unsigned)__builtin_clzll(window) : 64;
	if (zeros > 28) {
		bits->failed = true;
		return 1;
	}
	return get(bits, 2 * zeros + 1);
}

static uint64_t get_delta(struct bits *bits)
{
	uint64_t count = get_gamma(bits);
	if (count > 64)
		bits->failed = true;
	if (bits->failed)
		return 1;
	unsigned rest = (unsigned)count - 1, first = rest > 32 ? rest - 32 : 0;
	uint64_t value = UINT64_C(1) << first | get(bits, first);
	return value << (rest - first) | get(bits, rest - first);
}

/* At the resolution at which it fits. The other members of *h are set. */
static void encode_buckets(struct buckets *b, struct ow_delay_histogram *h)
{
	unsigned size;
	while ((size = code_bits(b)) > CODE_MAX)
		coarsen(b, b->bits - 1);
	struct bits bits = {.to = h->code};
	h->bits = (int16_t)b->bits;
	h->used = (uint8_t)((size + 7) / 8);
	for (unsigned i = 0; i < b->count; i++) {
		uint64_t gap = i ? (uint64_t)(b->bucket[i].key - b->bucket[i - 1].key) : 0;
		put(&bits, gap, i ? gamma_bits(gap) : 0);
		put_delta(&bits, b->bucket[i].packets);
		h->packets = add(h->packets, b->bucket[i].packets);
	}
	put_end(&bits);
}

/* Whether there is another bucket: what is left of the last byte is 0. */
static bool has_more(const struct bits *bits)
{
	if (bits->at + 8 <= bits->size)
		return true;
	return bits->at < bits->size && (uint8_t)(bits->from[bits->at / 8] << bits->at % 8);
}

/*
 * The numbers of the next bucket, if the bits ahead have all of it: most buckets are some bits long. Otherwise nothing is
 * taken.
 */
static bool get_short(struct bits *bits, uint64_t *ret_gap, uint64_t *ret_packets)
{
	uint64_t window = ahead(bits), gap = 0;
	unsigned used = 0;
	if (bits->at) {
		unsigned zeros = window ? (unsigned)__builtin_clzll(window) : 64;
		if (zeros > 14)
			return false;
		used = 2 * zeros + 1;
		gap = window >> (64 - used);
	}
	uint64_t rest = window << used;
	unsigned zeros = rest ? (unsigned)__builtin_clzll(rest) : 64;
	if (zeros > 4)
		return false;
	unsigned count = (unsigned)(rest >> (63 - 2 * zeros)), size = used + 2 * zeros + count;
	/* 57 bits are ahead. */
	if (size > 57 || bits->at + size > bits->size)
		return false;
	*ret_gap = gap;
	/* The first digit, which is 1, takes the place of the last one of the count. */
	*ret_packets = (rest << 2 * zeros | UINT64_C(1) << 63) >> (64 - count);
	bits->at += size;
	return true;
}

/* The next bucket; false: there are no more, or it is not a code. The first one begins with the key of the minimum. */
static bool next_bucket(struct bits *bits, struct ow_delay_bucket *bucket)
{
	uint64_t gap = 0;
	if (!has_more(bits))
		return false;
	if (!get_short(bits, &gap, &bucket->packets)) {
		gap = bits->at ? get_gamma(bits) : 0;
		if (bits->failed)
			return false;
		bucket->packets = get_delta(bits);
	}
	bucket->key = gap ? bucket->key + (int32_t)gap : bits->first;
	/* No delay is beyond the bucket of the maximum. */
	bits->failed |= bucket->key > bits->last;
	return !bits->failed;
}

static struct bits code_of(const struct ow_delay_histogram *h)
{
	return (struct bits){.from = h->code,
	                     .size = 8u * h->used,
	                     .first = key_of(h->min_ns, h->bits),
	                     .last = key_of(h->max_ns, h->bits)};
}

static void decode_buckets(const struct ow_delay_histogram *h, struct buckets *b)
{
	struct bits bits = code_of(h);
	struct ow_delay_bucket bucket = {0};
	b->bits = h->bits;
	b->count = 0;
	while (b->count < MOST && next_bucket(&bits, &bucket))
		b->bucket[b->count++] = bucket;
}

/* -- building ----------------------------------------------------------------------------------------------------- */

struct building {
	struct buckets *buckets;
	const struct ow_delay_histogram *histogram;
};

static void add_slot(void *arg, double delay_ns, uint64_t samples)
{
	const struct building *building = arg;
	const struct ow_delay_histogram *h = building->histogram;
	uint64_t packets;
	if (__builtin_mul_overflow(samples, h->weight, &packets))
		packets = UINT64_MAX;
	/* At the ends of the range, rounding would overflow. */
	int64_t delay = delay_ns <= (double)h->min_ns   ? h->min_ns
	                : delay_ns >= (double)h->max_ns ? h->max_ns
	                                                : llrint(delay_ns);
	append(building->buckets, delay, packets);
}

void ow_delay_histogram_of(const struct ow_delays *delays, uint64_t weight, struct ow_delay_histogram *ret_histogram)
{
	struct buckets buckets = {.bits = BITS, .count = 0};
	struct building building = {&buckets, ret_histogram};
	*ret_histogram = (struct ow_delay_histogram){.samples = ow_delays_samples(delays), .weight = weight};
	if (!ret_histogram->samples)
		return;
	ow_delays_range(delays, &ret_histogram->min_ns, &ret_histogram->max_ns);
	ow_delays_each(delays, add_slot, &building);
	encode_buckets(&buckets, ret_histogram);
}

/* Rounds the sum up to each bucket: errors do not add up, and the last sum is all packets. */
static void scale(struct buckets *b, size_t count, uint64_t packets)
{
	uint64_t below = 0, given = 0;
	for (unsigned i = 0; i < b->count; i++) {
		below += b->bucket[i].packets;
		uint64_t upto = (uint64_t)((unsigned __int128)packets * below / count);
		b->bucket[i].packets = upto - given;
		given = upto;
	}
}

void ow_delay_histogram_sample(const int64_t *delay_ns, size_t count, uint64_t packets,
                               struct ow_delay_histogram *ret_histogram)
{
	struct buckets buckets = {.bits = BITS, .count = 0};
	*ret_histogram = (struct ow_delay_histogram){.samples = count};
	if (!count)
		return;
	packets = packets < count ? count : packets;
	ret_histogram->weight = packets / count + (packets % count > 0);
	ret_histogram->min_ns = delay_ns[0];
	ret_histogram->max_ns = delay_ns[count - 1];
	for (size_t i = 0; i < count; i++)
		append(&buckets, delay_ns[i], 1);
	scale(&buckets, count, packets);
	encode_buckets(&buckets, ret_histogram);
}

/* All buckets of both, in order. */
static void unite(const struct buckets *a, const struct buckets *b, struct buckets *ret_all)
{
	unsigned i = 0, k = 0;
	ret_all->bits = a->bits;
	ret_all->count = 0;
	while (i < a->count || k < b->count) {
		struct ow_delay_bucket *to = &ret_all->bucket[ret_all->count++];
		bool from_a = i < a->count && (k == b->count || a->bucket[i].key <= b->bucket[k].key);
		*to = from_a ? a->bucket[i++] : b->bucket[k++];
		if (from_a && k < b->count && b->bucket[k].key == to->key)
			to->packets = add(to->packets, b->bucket[k++].packets);
	}
}

void ow_delay_histogram_merge(struct ow_delay_histogram *histogram, const struct ow_delay_histogram *other)
{
	struct buckets a, b, all;
	if (!other->packets)
		return;
	if (!histogram->packets) {
		*histogram = *other;
		return;
	}
	decode_buckets(histogram, &a);
	decode_buckets(other, &b);
	if (a.bits > b.bits)
		coarsen(&a, b.bits);
	else if (b.bits > a.bits)
		coarsen(&b, a.bits);
	unite(&a, &b, &all);
	struct ow_delay_histogram sum = {
		.samples = add(histogram->samples, other->samples),
		.weight = histogram->weight > other->weight ? histogram->weight : other->weight,
		.min_ns = histogram->min_ns < other->min_ns ? histogram->min_ns : other->min_ns,
		.max_ns = histogram->max_ns > other->max_ns ? histogram->max_ns : other->max_ns,
	};
	encode_buckets(&all, &sum);
	*histogram = sum;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

/* Minimum and maximum are exact. */
static void ends_in(const struct ow_delay_histogram *h, int32_t key, double *ret_low_ns, double *ret_high_ns)
{
	range_of(key, h->bits, ret_low_ns, ret_high_ns);
	*ret_low_ns = fmax(*ret_low_ns, (double)h->min_ns);
	*ret_high_ns = fmin(*ret_high_ns, (double)h->max_ns);
}

void ow_delay_histogram_each(const struct ow_delay_histogram *histogram, ow_delay_histogram_bucket bucket, void *arg)
{
	struct bits bits = code_of(histogram);
	struct ow_delay_bucket at = {0};
	while (next_bucket(&bits, &at)) {
		double low_ns, high_ns;
		ends_in(histogram, at.key, &low_ns, &high_ns);
		bucket(arg, low_ns, high_ns, at.packets);
	}
}

double ow_delay_histogram_error(const struct ow_delay_histogram *histogram)
{
	int bits = histogram->bits;
	/* An octave is from x to 2x: its middle is 1.5x, and x differs from it by half of itself. */
	return bits >= 0 ? ldexp(1, -bits - 1) : (ldexp(1, 1 << -bits) - 1) / 2;
}

/* The bucket of a rank, and the delay of that rank. */
struct finding {
	double low_ns, high_ns, value_ns;
};

static struct finding at_share(const struct ow_delay_histogram *h, double share)
{
	struct bits bits = code_of(h);
	struct ow_delay_bucket at = {0};
	struct finding f = {0};
	double n = (double)h->packets, below = 0, upto = 0;
	/* From 1. Tolerates rounding in the last digits: 0.9 of 10 is the ninth. */
	double rank = fmin(n, fmax(1, ceil(share * n * (1 - 1e-12))));
	while (upto < rank && next_bucket(&bits, &at)) {
		below = upto;
		upto += (double)at.packets;
	}
	ends_in(h, at.key, &f.low_ns, &f.high_ns);
	/* As if the packets of a bucket were equally far from each other. */
	f.value_ns = f.low_ns + (f.high_ns - f.low_ns) * fmin(1, fmax(0, (rank - below - .5) / (double)at.packets));
	return f;
}

static bool is_same(double a, double b)
{
	return !(a < b) && !(a > b);
}

/* The shares of the histogram's packets between which a share of all packets is. */
static void widen_by_sample(const struct ow_delay_histogram *h, double *low, double *high)
{
	double k = fmin(fmax(floor((double)h->packets / (double)(h->weight - 1)), 1), SAMPLES_MAX), below, above,
	       ignored;
	bool one = *low > 0 && *high < 1 && is_same(*low, *high);
	if (*low > 0) {
		ow_sample_ranks((size_t)k, fmin(*low, 1 - 1e-9), &below, &above);
		*low = below < 0 ? 0 : (below + 1) / k;
	}
	if (*high < 1) {
		/* It takes longer than all else. */
		if (!one)
			ow_sample_ranks((size_t)k, *high, &ignored, &above);
		*high = above >= k ? 2 : (above + 1) / k;
	} else {
		*high = 2; /* the greatest of a sample is not the greatest of all */
	}
}

struct ow_value ow_delay_histogram_quantile(const struct ow_delay_histogram *histogram, double q, uint64_t missing)
{
	double n = (double)histogram->packets, all = n + (double)missing;
	double low = (q * all - (double)missing) / n, high = q * all / n;
	if (!histogram->packets)
		return ow_value_none(missing ? OW_REASON_DELAYS_ELSEWHERE : OW_REASON_NO_KNOWN_DELAY);
	if (histogram->weight > 1)
		widen_by_sample(histogram, &low, &high);
	struct finding f = at_share(histogram, q);
	struct ow_value v = {OW_VALUE_ESTIMATED, f.value_ns, -INFINITY, INFINITY, OW_NO_REASON};
	/* Most often all delays are known, and it is the same bucket. */
	if (low > 0)
		v.low = fmin((is_same(low, q) ? f : at_share(histogram, low)).low_ns, v.value);
	if (high <= 1)
		v.high = fmax((is_same(high, q) ? f : at_share(histogram, high)).high_ns, v.value);
	if (missing && isinf(v.low) && isinf(v.high))
		return ow_value_none(OW_REASON_DELAYS_ELSEWHERE);
	v.status = v.low == v.high ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED;
	return v;
}

/* -- bytes -------------------------------------------------------------------------------------------------------- */

static void code_histogram(struct ow_coder *c, struct ow_delay_histogram *h)
{
	uint8_t version = VERSION, bits = (uint8_t)(h->bits - BITS_MIN);
	uint64_t range = (uint64_t)h->max_ns - (uint64_t)h->min_ns;
	ow_coder_u8(c, "version", &version, VERSION, VERSION);
	ow_coder_u8(c, "resolution", &bits, 0, BITS - BITS_MIN);
	ow_coder_varint(c, "samples", &h->samples, 1, UINT64_MAX);
	ow_coder_varint(c, "weight", &h->weight, 1, UINT64_MAX);
	ow_coder_signed(c, "least delay", &h->min_ns, INT64_MIN, INT64_MAX);
	ow_coder_varint(c, "range of delays", &range, 0, UINT64_MAX);
	h->bits = (int16_t)(bits + BITS_MIN);
	if (!c->failed && range > (uint64_t)INT64_MAX - (uint64_t)h->min_ns)
		ow_coder_fail(c, "range of delays", "is too large");
	h->max_ns = (int64_t)((uint64_t)h->min_ns + range);
}

size_t ow_delay_histogram_encode(const struct ow_delay_histogram *histogram,
                                 uint8_t ret_bytes[OW_DELAY_HISTOGRAM_BYTES])
{
	struct ow_delay_histogram h = *histogram;
	struct ow_coder coder = {
		.does = OW_CODER_WRITES, .to = ret_bytes, .size = OW_DELAY_HISTOGRAM_BYTES, .message = "histogram"};
	if (!h.packets)
		return 0;
	code_histogram(&coder, &h);
	for (unsigned i = 0; i < h.used; i++)
		ret_bytes[coder.at++] = h.code[i];
	return coder.at;
}

/* Counts the packets. The buckets begin with that of the minimum; they must end with that of the maximum. */
static bool read_buckets(struct ow_delay_histogram *h, struct buckets *b)
{
	struct bits bits = code_of(h);
	struct ow_delay_bucket bucket = {0};
	b->bits = h->bits;
	b->count = 0;
	while (b->count < MOST && next_bucket(&bits, &bucket)) {
		b->bucket[b->count++] = bucket;
		h->packets = add(h->packets, bucket.packets);
	}
	return !bits.failed && h->packets && bucket.key == bits.last && bits.at + 8 > bits.size && !has_more(&bits);
}

static bool stand_for_packets(const struct ow_delay_histogram *h)
{
	return h->samples <= h->packets && (unsigned __int128)h->samples * h->weight >= h->packets;
}

static int decode(const uint8_t *bytes, size_t size, struct ow_delay_histogram *h, struct buckets *b,
                  struct ow_error *err)
{
	struct ow_coder coder = {
		.does = OW_CODER_READS, .from = bytes, .size = size, .message = "histogram", .err = err};
	*h = (struct ow_delay_histogram){.packets = 0};
	if (!size)
		return 0;
	code_histogram(&coder, h);
	if (!coder.failed && size - coder.at > sizeof h->code)
		ow_coder_fail(&coder, "code", "is too long");
	for (; !coder.failed && coder.at < size; coder.at++)
		h->code[h->used++] = bytes[coder.at];
	if (!coder.failed && !read_buckets(h, b))
		ow_coder_fail(&coder, "code", "is not one of buckets");
	if (!coder.failed && !stand_for_packets(h))
		ow_coder_fail(&coder, "samples", "do not stand for the packets");
	if (coder.failed)
		*h = (struct ow_delay_histogram){.packets = 0};
	return coder.failed;
}

int ow_delay_histogram_decode(const uint8_t *bytes, size_t size, struct ow_delay_histogram *ret_histogram,
                              struct ow_error *err)
{
	struct buckets buckets;
	return decode(bytes, size, ret_histogram, &buckets, err);
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

static void coarsen_sum(struct ow_delay_histogram_sum *sum, int bits)
{
	sum->count = join(sum->bucket, sum->count, sum->bits, bits);
	sum->bits = bits;
}

/* Inserts buckets that the sum does not have. */
static int insert(struct ow_delay_histogram_sum *sum, const struct ow_delay_bucket *fresh, unsigned count)
{
	unsigned from = sum->count, to = sum->count + count;
	int r = OW_GROW(sum->bucket, sum->room, to);
	if (r < 0)
		return r;
	sum->count = to;
	while (count > 0) {
		bool is_fresh = !from || sum->bucket[from - 1].key < fresh[count - 1].key;
		sum->bucket[--to] = is_fresh ? fresh[--count] : sum->bucket[--from];
	}
	/* So many do not fit at this resolution. */
	while (sum->count > MOST)
		coarsen_sum(sum, sum->bits - 1);
	return 0;
}

/* Most of the buckets are usually there. Returns how many are not. */
static unsigned add_known(struct ow_delay_histogram_sum *sum, const struct buckets *b,
                          struct ow_delay_bucket ret_fresh[MOST])
{
	unsigned i = 0, count = 0;
	for (unsigned k = 0; k < b->count; k++) {
		int32_t key = b->bucket[k].key;
		while (i < sum->count && sum->bucket[i].key < key)
			i++;
		if (i < sum->count && sum->bucket[i].key == key)
			sum->bucket[i].packets = add(sum->bucket[i].packets, b->bucket[k].packets);
		else
			ret_fresh[count++] = b->bucket[k];
	}
	return count;
}

/* The code of a sum never becomes shorter: so it is enough to choose the resolution at its end. */
static int add_buckets(struct ow_delay_histogram_sum *sum, const struct ow_delay_histogram *h, struct buckets *b)
{
	struct ow_delay_bucket fresh[MOST];
	bool is_first = !sum->count;
	if (is_first)
		sum->bits = b->bits;
	else if (sum->bits > b->bits)
		coarsen_sum(sum, b->bits);
	else if (sum->bits < b->bits)
		coarsen(b, sum->bits);
	unsigned count = add_known(sum, b, fresh);
	int r = count ? insert(sum, fresh, count) : 0;
	sum->samples = add(is_first ? 0 : sum->samples, h->samples);
	sum->weight = is_first || h->weight > sum->weight ? h->weight : sum->weight;
	sum->min_ns = is_first || h->min_ns < sum->min_ns ? h->min_ns : sum->min_ns;
	sum->max_ns = is_first || h->max_ns > sum->max_ns ? h->max_ns : sum->max_ns;
	return r;
}

int ow_delay_histogram_sum_add(struct ow_delay_histogram_sum *sum, const uint8_t *bytes, size_t size)
{
	struct ow_delay_histogram h;
	struct buckets b;
	int r = decode(bytes, size, &h, &b, NULL);
	return r < 0 || !h.packets ? r : add_buckets(sum, &h, &b);
}

int ow_delay_histogram_sum_reserve(struct ow_delay_histogram_sum *sum)
{
	return OW_GROW(sum->bucket, sum->room, 2 * MOST);
}

int ow_delay_histogram_sum_merge(struct ow_delay_histogram_sum *sum, const struct ow_delay_histogram *other)
{
	struct buckets b;
	if (!other->packets)
		return 0;
	decode_buckets(other, &b);
	return add_buckets(sum, other, &b);
}

void ow_delay_histogram_sum_take(struct ow_delay_histogram_sum *sum, struct ow_delay_histogram *ret_histogram)
{
	struct buckets all;
	*ret_histogram = (struct ow_delay_histogram){.packets = 0};
	if (!sum->count)
		return;
	all.bits = sum->bits;
	all.count = sum->count;
	memcpy(all.bucket, sum->bucket, sum->count * sizeof *all.bucket);
	ret_histogram->samples = sum->samples;
	ret_histogram->weight = sum->weight;
	ret_histogram->min_ns = sum->min_ns;
	ret_histogram->max_ns = sum->max_ns;
	encode_buckets(&all, ret_histogram);
	sum->count = 0;
}

void ow_delay_histogram_sum_done(struct ow_delay_histogram_sum *sum)
{
	free(sum->bucket);
	*sum = (struct ow_delay_histogram_sum){0};
}
