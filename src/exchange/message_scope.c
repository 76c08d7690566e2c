/* SPDX-License-Identifier: Apache-2.0 */
/* SCOPE and the answer to it, field by field, and their lists; docs/protocol.md draws them. */
#include "exchange/message_scope.h"

#include "base/hash.h"
#include "reconcile/key_list.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void code_sketch(struct ow_coder *c, struct ow_message_scope *m)
{
	ow_coder_varint32(c, "capacity", &m->sketch.capacity, 0, m->reset || m->keys_size ? 0 : OW_KEY_SKETCH_MAX);
	for (uint32_t i = 0; i < m->sketch.capacity && !c->failed; i++)
		ow_coder_uint(c, "sketch", OW_KEY_SKETCH_BYTES, &m->sketch.sum[i], 0, UINT64_MAX);
	if (m->sketch.capacity)
		ow_coder_u32(c, "check of keys", &m->check, 0, UINT32_MAX);
}

void ow_code_scope(struct ow_coder *c, struct ow_message_scope *m)
{
	uint64_t generation = m->generation;
	ow_coder_varint32(c, "idle intervals", &m->idle, 0, OW_MESSAGE_IDLE_MAX - 1);
	ow_coder_bool(c, "quiet", &m->quiet);
	ow_coder_uint(c, "generation", 2, &generation, 0, UINT16_MAX);
	m->generation = (uint16_t)generation;
	ow_coder_bool(c, "reset", &m->reset);
	ow_coder_varint32(c, "size of hot destinations", &m->hot_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_varint32(c, "size of fine pairs", &m->fine_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_varint32(c, "size of keys", &m->keys_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_uint(c, "digest", 8, &m->digest, 0, UINT64_MAX);
	code_sketch(c, m);
	if (m->idle && (m->reset || m->hot_size || m->fine_size || m->keys_size || m->sketch.capacity))
		ow_coder_fail(c, "idle intervals", "have something");
	ow_coder_bytes(c, "hot destinations", &m->hot, m->hot_size);
	ow_coder_bytes(c, "fine pairs", &m->fine, m->fine_size);
	ow_coder_bytes(c, "keys", &m->keys, m->keys_size);
}

void ow_code_scope_answer(struct ow_coder *c, struct ow_message_scope_answer *m)
{
	ow_coder_uint(c, "digest of keys seen", 8, &m->digest, 0, UINT64_MAX);
	ow_coder_varint32(c, "size of bits", &m->seen_size, 0, OW_SCOPE_UPDATE_MAX / 8);
	ow_coder_varint32(c, "size of late keys", &m->late_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_varint32(c, "size of wanted pairs", &m->fine_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_varint32(c, "size of rerouted pairs", &m->rerouted_size, 0, OW_MESSAGE_SCOPE_LIST_MAX);
	ow_coder_varint32(c, "TTL changes", &m->changes, 0, m->rerouted_size ? OW_SCOPE_LISTED_MAX : 0);
	ow_coder_varint32(c, "strange keys", &m->strange, 0, UINT32_MAX);
	ow_coder_bytes(c, "bits", &m->seen, m->seen_size);
	ow_coder_bytes(c, "late keys", &m->late, m->late_size);
	ow_coder_bytes(c, "wanted pairs", &m->fine, m->fine_size);
	ow_coder_bytes(c, "rerouted pairs", &m->rerouted, m->rerouted_size);
	ow_coder_bytes(c, "TTL changes", &m->change, m->changes);
}

/* -- lists --------------------------------------------------------------------------------------------------------- */

/* An empty list has no bytes. */
static uint32_t list_size(const struct ow_scope_list *list)
{
	return list->count ? (uint32_t)ow_key_list_size(OW_SCOPE_KEY_BITS, list->key, list->count) : 0;
}

static const uint8_t *put_list(uint8_t **at, const struct ow_scope_list *list)
{
	const uint8_t *bytes = *at;
	if (!list->count)
		return NULL;
	ow_key_list_encode(OW_SCOPE_KEY_BITS, list->key, list->count, *at);
	*at += list_size(list);
	return bytes;
}

static int get_list(const char *what, const uint8_t *bytes, uint32_t size, size_t most, struct ow_scope_list *ret_list,
                    struct ow_error *err)
{
	*ret_list = (struct ow_scope_list){0};
	if (!size)
		return 0;
	struct ow_error why = {""};
	int r = ow_key_list_decode(OW_SCOPE_KEY_BITS, bytes, size, &ret_list->key, &ret_list->count, &why);
	if (r == -ENOMEM)
		return ow_error_set(err, ENOMEM, "%s", why.text);
	if (r < 0)
		return ow_error_set(err, EPROTO, "%s: %s", what, why.text);
	if (!ret_list->count || ret_list->count > most)
		return ow_error_set(err, EPROTO, "%s: a list of %zu keys", what, ret_list->count);
	for (size_t k = 1; k < ret_list->count; k++) {
		if (ret_list->key[k] <= ret_list->key[k - 1])
			return ow_error_set(err, EPROTO, "%s: a key comes twice", what);
	}
	return 0;
}

uint32_t ow_scope_keys_check(const struct ow_scope_list *keys)
{
	uint64_t check = 0;
	for (size_t i = 0; i < keys->count; i++)
		check += ow_mix64(keys->key[i]);
	return (uint32_t)check;
}

int ow_message_of_scope_update(const struct ow_scope_update *update, struct ow_message_scope *ret_message,
                               uint8_t **ret_bytes)
{
	struct ow_message_scope m = {.generation = update->generation,
	                             .reset = update->reset,
	                             .digest = update->digest,
	                             .hot_size = list_size(&update->hot),
	                             .fine_size = list_size(&update->fine)};
	if (!update->capacity)
		m.keys_size = list_size(&update->keys);
	m.sketch.capacity = update->capacity;
	m.check = ow_scope_keys_check(&update->keys);
	for (size_t i = 0; update->capacity && i < update->keys.count; i++)
		ow_key_sketch_toggle(&m.sketch, update->keys.key[i]);
	uint8_t *bytes = malloc((size_t)m.hot_size + m.fine_size + m.keys_size + 1), *at = bytes;
	if (!bytes)
		return -ENOMEM;
	m.hot = put_list(&at, &update->hot);
	m.fine = put_list(&at, &update->fine);
	m.keys = m.keys_size ? put_list(&at, &update->keys) : NULL;
	*ret_message = m;
	*ret_bytes = bytes;
	return 0;
}

int ow_message_of_scope_answer(const struct ow_scope_answer *answer, struct ow_message_scope_answer *ret_message,
                               uint8_t **ret_bytes)
{
	struct ow_message_scope_answer m = {.there = true,
	                                    .digest = answer->digest,
	                                    .seen = answer->seen,
	                                    .seen_size = (uint32_t)answer->seen_bytes,
	                                    .change = (const uint8_t *)answer->ttl_change,
	                                    .changes = (uint32_t)answer->rerouted.count,
	                                    .strange = answer->strange,
	                                    .late_size = list_size(&answer->late),
	                                    .fine_size = list_size(&answer->fine),
	                                    .rerouted_size = list_size(&answer->rerouted)};
	uint8_t *bytes = malloc((size_t)m.late_size + m.fine_size + m.rerouted_size + 1), *at = bytes;
	if (!bytes)
		return -ENOMEM;
	m.late = put_list(&at, &answer->late);
	m.fine = put_list(&at, &answer->fine);
	m.rerouted = put_list(&at, &answer->rerouted);
	*ret_message = m;
	*ret_bytes = bytes;
	return 0;
}

int ow_scope_update_of_message(const struct ow_message_scope *m, struct ow_scope_update *ret_update,
                               struct ow_error *err)
{
	struct ow_scope_update update = {
		.generation = m->generation, .reset = m->reset, .digest = m->digest, .capacity = m->sketch.capacity};
	int r = get_list("hot destinations", m->hot, m->hot_size, OW_SCOPE_LISTED_MAX, &update.hot, err);
	if (r == 0)
		r = get_list("fine pairs", m->fine, m->fine_size, OW_SCOPE_LISTED_MAX, &update.fine, err);
	if (r == 0)
		r = get_list("flow keys", m->keys, m->keys_size, OW_SCOPE_UPDATE_MAX, &update.keys, err);
	if (r < 0)
		ow_scope_update_done(&update);
	*ret_update = update;
	return r;
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = calloc(1, size + 1);
	if (copy && size)
		memcpy(copy, bytes, size);
	return copy;
}

int ow_scope_answer_of_message(const struct ow_message_scope_answer *m, struct ow_scope_answer *ret_answer,
                               struct ow_error *err)
{
	struct ow_scope_answer answer = {.digest = m->digest, .seen_bytes = m->seen_size, .strange = m->strange};
	int r = get_list("late keys", m->late, m->late_size, OW_SCOPE_LIVE_MAX, &answer.late, err);
	if (r == 0)
		r = get_list("wanted pairs", m->fine, m->fine_size, OW_SCOPE_LISTED_MAX, &answer.fine, err);
	if (r == 0)
		r = get_list("rerouted pairs", m->rerouted, m->rerouted_size, OW_SCOPE_LISTED_MAX, &answer.rerouted,
		             err);
	if (r == 0 && answer.rerouted.count != m->changes)
		r = ow_error_set(err, EPROTO, "%u TTL changes of %zu pairs", m->changes, answer.rerouted.count);
	if (r == 0) {
		answer.seen = copy_of(m->seen, m->seen_size);
		answer.ttl_change = copy_of(m->change, m->changes);
		if (!answer.seen || !answer.ttl_change)
			r = ow_error_set(err, ENOMEM, "out of memory");
	}
	if (r < 0)
		ow_scope_answer_done(&answer);
	*ret_answer = answer;
	return r;
}
