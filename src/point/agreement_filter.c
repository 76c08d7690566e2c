/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that peers send: limits on their cost. */
#include "capture/filter.h"
#include "point/agreement.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The words of pcap-filter(7). Any other word may be a name. */
static const char *const words[] = {
	"action",  "addr1",     "addr2",     "addr3",    "addr4",   "ah",          "aarp",       "and",
	"arp",     "assocreq",  "atalk",     "atm",      "ata",     "auth",        "beacon",     "broadcast",
	"byte",    "carp",      "clnp",      "code",     "csh",     "csum",        "ctl",        "data",
	"deauth",  "decnet",    "dir",       "disassoc", "dpc",     "dst",         "encap",      "es-is",
	"esh",     "esis",      "esp",       "ether",    "fddi",    "fisu",        "gateway",    "geneve",
	"greater", "hdpc",      "hfisu",     "hlssu",    "hmsu",    "hopc",        "host",       "hsio",
	"hsls",    "icmp",      "icmp6",     "ifindex",  "ifname",  "igmp",        "igrp",       "iih",
	"ilmic",   "in",        "inbound",   "ip",       "ip6",     "ipx",         "is-is",      "isis",
	"iso",     "l1",        "l2",        "lane",     "lat",     "len",         "less",       "link",
	"llc",     "lsp",       "lssu",      "mask",     "metac",   "metaconnect", "mopdl",      "moprc",
	"mpls",    "msu",       "multicast", "net",      "netbeui", "not",         "oam",        "oamf4",
	"oamf4ec", "oamf4sc",   "on",        "opc",      "or",      "out",         "outbound",   "pim",
	"port",    "portrange", "ppp",       "pppoed",   "pppoes",  "proto",       "protochain", "psnp",
	"ra",      "radio",     "rarp",      "reason",   "rnr",     "rset",        "sc",         "sca",
	"sctp",    "sio",       "slip",      "sls",      "snp",     "src",         "stp",        "subtype",
	"ta",      "tcp",       "tr",        "type",     "udp",     "vci",         "vlan",       "vpi",
	"vrrp",    "wlan",      "xid",
};

static bool is_word(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0)
			return true;
	}
	return false;
}

/* icmp-echo, tcp-syn, ...: names of numbers. */
static bool is_field(const char *text, size_t length)
{
	static const char *const prefix[] = {"icmp-",    "icmp6-",    "icmptype", "icmp6type",
	                                     "icmpcode", "icmp6code", "tcp-",     "tcpflags"};
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++) {
		if (strncasecmp(prefix[i], text, strlen(prefix[i])) == 0 && !memchr(text, '.', length))
			return true;
	}
	return false;
}

/* Whether it has only these characters. */
static bool consists_of(const char *text, const char *characters)
{
	return strspn(text, characters) == strlen(text);
}

/* A number or an address. Any other text of digits, dots and dashes could be a name. */
static bool is_number(const char *text, size_t length)
{
	char copy[64] = "";
	struct in6_addr address;
	unsigned byte[6];
	char more;
	if (length >= sizeof copy)
		return false;
	memcpy(copy, text, length);
	if (consists_of(copy, "0123456789.:/-"))
		return true;
	if (copy[0] == '0' && (copy[1] == 'x' || copy[1] == 'X'))
		return copy[2] && consists_of(copy + 2, "0123456789abcdefABCDEF");
	if (sscanf(copy, "%2x:%2x:%2x:%2x:%2x:%2x%c", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
	           &more) == 6)
		return true;
	copy[strcspn(copy, "/")] = 0;
	return inet_pton(AF_INET6, copy, &address) == 1;
}

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || strchr("._-:/\\", c) || (unsigned char)c >= 0x80;
}

static bool joins(const char *text, size_t length)
{
	return (length == 3 && strncasecmp(text, "and", 3) == 0) || (length == 2 && strncasecmp(text, "or", 2) == 0) ||
	       (length == 3 && strncasecmp(text, "not", 3) == 0);
}

static unsigned terms_of(const char *text, size_t length)
{
	if (joins(text, length))
		return 0;
	if (is_word(text, length) || is_field(text, length))
		return 1;
	return memchr(text, '-', length) ? 4 : 2;
}

static int check_words(const char *filter, struct ow_error *err)
{
	bool local = false; /* names of ports and protocols are looked up in files */
	unsigned terms = 0;
	for (const char *c = filter; *c;) {
		if (!is_part(*c)) {
			c++;
			continue;
		}
		const char *begin = c;
		while (*c && is_part(*c))
			c++;
		size_t length = (size_t)(c - begin);
		if (!local && !is_word(begin, length) && !is_field(begin, length) && !is_number(begin, length))
			return ow_error_set(err, EINVAL,
			                    "'%.*s' may be a name, and names from a peer are not looked up",
			                    length < 40 ? (int)length : 40, begin);
		local = strncasecmp(begin, "port", 4) == 0 || strncasecmp(begin, "proto", 5) == 0;
		terms += terms_of(begin, length);
	}
	if (terms > OW_AGREE_TERMS_MAX)
		return ow_error_set(err, EINVAL, "%u terms, at most %d from a peer: write the class in both files",
		                    terms, OW_AGREE_TERMS_MAX);
	return 0;
}

int ow_agree_filter(const char *filter, unsigned *ret_instructions, struct ow_error *err)
{
	struct bpf_program program;
	int r = check_words(filter, err);
	if (r < 0)
		return r;
	/* Some expressions are valid only on Ethernet, some only without it. */
	r = ow_filter_compile("filter", DLT_EN10MB, UINT16_MAX, filter, &program, err);
	if (r < 0 && ow_filter_compile("filter", ow_linktype_of_dlt(DLT_RAW), UINT16_MAX, filter, &program, NULL) == 0)
		r = 0;
	if (r < 0)
		return r;
	*ret_instructions = program.bf_len;
	pcap_freecode(&program);
	if (*ret_instructions > OW_AGREE_FILTER_MAX)
		return ow_error_set(err, EINVAL, "%u instructions, at most %d", *ret_instructions, OW_AGREE_FILTER_MAX);
	return 0;
}
