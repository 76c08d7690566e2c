/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles filter expressions to BPF programs with libpcap. */
#include "capture/filter.h"

#include "capture/frame.h"
#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

/* Below 104 some DLT_ values differ from the LINKTYPE_ values in files. */
static const struct {
	int dlt;
	uint16_t linktype;
} differing[] = {
	{DLT_ATM_RFC1483, 100},
	{DLT_RAW, OW_LINKTYPE_RAW},
	{DLT_SLIP_BSDOS, 102},
	{DLT_PPP_BSDOS, 103},
};

uint16_t ow_linktype_of_dlt(int dlt)
{
	for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
		if (differing[i].dlt == dlt)
			return differing[i].linktype;
	}
	return (uint16_t)dlt;
}

static int dlt_of_linktype(uint16_t linktype)
{
	for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
		if (differing[i].linktype == linktype)
			return differing[i].dlt;
	}
	return linktype;
}

/* Words that refer to the link layer. Other words may do so too, but then the filter does not compile for raw IP. */
static const char *const link_words[] = {"ether", "link", "vlan", "mpls", "pppoes", "pppoed",
                                         "fddi",  "tr",   "wlan", "ppp",  "slip"};

static bool is_link_word(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof link_words / sizeof *link_words; i++) {
		if (strlen(link_words[i]) == length && strncmp(link_words[i], word, length) == 0)
			return true;
	}
	return false;
}

bool ow_filter_names_link(const char *expression)
{
	for (const char *c = expression; *c;) {
		size_t length = 0;
		while (isalnum((unsigned char)c[length]) || strchr("._-:", c[length] ? c[length] : ' '))
			length++;
		if (is_link_word(c, length))
			return true;
		c += length ? length : 1;
	}
	return false;
}

/* Whether the program loads kernel metadata, which is not part of the frame. */
static bool asks_kernel(const struct bpf_program *program)
{
	for (u_int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];
		if (BPF_CLASS(insn->code) == BPF_LD && BPF_MODE(insn->code) == BPF_ABS &&
		    insn->k >= (bpf_u_int32)SKF_AD_OFF)
			return true;
	}
	return false;
}

static bool asks_length(const struct bpf_program *program)
{
	for (u_int i = 0; i < program->bf_len; i++) {
		u_int class = BPF_CLASS(program->bf_insns[i].code), mode = BPF_MODE(program->bf_insns[i].code);
		if ((class == BPF_LD || class == BPF_LDX) && mode == BPF_LEN)
			return true;
	}
	return false;
}

#define HEADER_MAX 60u /* of IPv4: the length that BPF_MSH loads */

static uint32_t size_of(u_int code)
{
	return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

uint32_t ow_filter_reach(const struct bpf_program *program)
{
	uint64_t reach = 0, index = 0;
	bool any = false;
	for (u_int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];
		u_int class = BPF_CLASS(insn->code), mode = BPF_MODE(insn->code);
		uint64_t end = (uint64_t)insn->k + size_of(insn->code);
		if (class == BPF_LD && mode == BPF_ABS)
			reach = end > reach ? end : reach;
		else if (class == BPF_LD && mode == BPF_IND)
			index = end > index ? end : index;
		else if (class == BPF_LDX && mode == BPF_MSH)
			reach = (uint64_t)insn->k + 1 > reach ? (uint64_t)insn->k + 1 : reach;
		else if (class == BPF_LDX || (class == BPF_MISC && BPF_MISCOP(insn->code) == BPF_TAX))
			any = true;
	}
	if (index && any)
		return UINT32_MAX;
	index = index ? index + HEADER_MAX : 0;
	reach = index > reach ? index : reach;
	return reach < UINT32_MAX ? (uint32_t)reach : UINT32_MAX;
}

static int refuse(int code, const char *name, const char *expression, const char *why, struct ow_error *err)
{
	if (!name)
		return ow_error_set(err, code, "%.300s", why);
	return ow_error_set(err, code, "%s: filter \"%s\": %.300s", name, expression, why);
}

static int compile(pcap_t *pcap, const char *name, const char *expression, struct bpf_program *ret_program,
                   struct ow_error *err)
{
	if (pcap_compile(pcap, ret_program, expression, 1, PCAP_NETMASK_UNKNOWN) < 0)
		return refuse(EINVAL, name, expression, pcap_geterr(pcap), err);
	if (!asks_kernel(ret_program))
		return 0;
	pcap_freecode(ret_program);
	return refuse(ENOTSUP, name, expression, "filters do not know the direction or the interface of a frame", err);
}

int ow_filter_compile(const char *name, uint16_t linktype, uint32_t snaplen, const char *expression,
                      struct bpf_program *ret_program, struct ow_error *err)
{
	pcap_t *pcap = pcap_open_dead(dlt_of_linktype(linktype), (int)snaplen);
	int r = pcap ? compile(pcap, name, expression ? expression : "", ret_program, err)
	             : ow_error_set(err, ENOMEM, "out of memory");
	if (pcap)
		pcap_close(pcap);
	return r;
}

/* Puts instructions in front of the program. Jumps are relative, so the program itself need not be changed. */
static int prepend(const struct bpf_insn *front, u_int count, struct bpf_program *program)
{
	struct bpf_insn *insns = malloc((count + program->bf_len) * sizeof *insns);
	if (!insns)
		return -ENOMEM;
	memcpy(insns, front, count * sizeof *insns);
	memcpy(insns + count, program->bf_insns, program->bf_len * sizeof *insns);
	free(program->bf_insns); /* as pcap_freecode() does */
	program->bf_insns = insns;
	program->bf_len += count;
	return 0;
}

/* Unfragmented TCP. Hop-by-hop options of eight bytes are those of superframes above 64 KB. */
#define TCP                                                                                           \
	"((ip[0] & 0xf0 = 0x40 and ip[9] = 6 and ip[6:2] & 0x3fff = 0) or (ip6[0] & 0xf0 = 0x60 and " \
	"(ip6[6] = 6 or (ip6[6] = 0 and ip6[40] = 6 and ip6[41] = 0))))"

/* Whether the instruction ends the program and accepts the frame, or rejects it. */
static bool returns(const struct bpf_insn *insn, bool accepts)
{
	return BPF_CLASS(insn->code) == BPF_RET && (insn->k != 0) == accepts;
}

/* Instructions that accept OW_FILTER_TCP_BYTES of a TCP packet, and snaplen bytes of any other frame. */
static int compile_cut(const char *interface, uint16_t linktype, uint32_t snaplen, struct bpf_program *ret_program,
                       struct ow_error *err)
{
	/* A load beyond the end of a frame would reject it, and a short frame need not be cut. */
	const struct bpf_insn is_long[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, OW_FILTER_TCP_BYTES, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, snaplen),
	};
	const char *tcp = linktype == OW_LINKTYPE_ETHERNET ? TCP " or (vlan and (" TCP " or (vlan and " TCP ")))" : TCP;
	int r = ow_filter_compile(interface, linktype, OW_FILTER_TCP_BYTES, tcp, ret_program, err);
	if (r < 0)
		return r;
	for (u_int i = 0; i < ret_program->bf_len; i++) {
		if (returns(&ret_program->bf_insns[i], false))
			ret_program->bf_insns[i].k = snaplen;
	}
	r = prepend(is_long, sizeof is_long / sizeof *is_long, ret_program);
	if (r == 0)
		return 0;
	pcap_freecode(ret_program);
	return ow_error_set(err, ENOMEM, "%s: out of memory", interface);
}

int ow_filter_cut_tcp(const char *interface, uint16_t linktype, uint32_t snaplen, struct bpf_program *program,
                      struct ow_error *err)
{
	struct bpf_program cut;
	if (snaplen <= OW_FILTER_TCP_BYTES)
		return 0;
	int r = compile_cut(interface, linktype, snaplen, &cut, err);
	if (r < 0)
		return r;
	/* Where the filter accepts a frame, it continues with the instructions behind it. */
	for (u_int i = 0; i < program->bf_len; i++) {
		struct bpf_insn *insn = &program->bf_insns[i];
		if (returns(insn, true))
			*insn = (struct bpf_insn)BPF_STMT(BPF_JMP | BPF_JA, program->bf_len - i - 1);
	}
	r = prepend(program->bf_insns, program->bf_len, &cut);
	if (r == 0) {
		pcap_freecode(program);
		*program = cut;
		return 0;
	}
	pcap_freecode(&cut);
	return ow_error_set(err, ENOMEM, "%s: out of memory", interface);
}

/* Uses the same rule as packet/packet_filter.c. */
static bool looks_at_frames(const char *expression)
{
	struct bpf_program program;
	if (ow_filter_names_link(expression) ||
	    ow_filter_compile(NULL, OW_LINKTYPE_RAW, UINT16_MAX, expression, &program, NULL) < 0)
		return true;
	pcap_freecode(&program);
	return false;
}

int ow_filter_compile_kernel(const char *interface, uint16_t linktype, uint32_t snaplen, const char *expression,
                             struct bpf_program *ret_program, struct ow_error *err)
{
	/* A frame that is not plain IP may contain IP behind a tag: accept it. */
	const struct bpf_insn plain_ip[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, snaplen),
	};
	/* The filter needs the tag inside the frame: accept frames whose tag is in the metadata. */
	const struct bpf_insn untagged[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (bpf_u_int32)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, snaplen),
	};
	int r = ow_filter_compile(interface, linktype, snaplen, expression, ret_program, err);
	if (r < 0 || !expression)
		return r;
	/*
	 * The filter compares the length without padding and tags, which the kernel does not know: accept all frames.
	 */
	if (asks_length(ret_program)) {
		pcap_freecode(ret_program);
		return ow_filter_compile(interface, linktype, snaplen, NULL, ret_program, err);
	}
	if (linktype != OW_LINKTYPE_ETHERNET)
		return 0;
	r = looks_at_frames(expression) ? prepend(untagged, sizeof untagged / sizeof *untagged, ret_program)
	                                : prepend(plain_ip, sizeof plain_ip / sizeof *plain_ip, ret_program);
	if (r < 0) {
		pcap_freecode(ret_program);
		return ow_error_set(err, ENOMEM, "%s: out of memory", interface);
	}
	return 0;
}
