/* SPDX-License-Identifier: Apache-2.0 */
/* Filter expressions into programs, by libpcap. */
#include "capture/filter.h"

#include <errno.h>

/* Below 104 some DLT_ values differ from the LINKTYPE_ values in files. */
static const struct {
	int dlt;
	uint16_t linktype;
} differing[] = {
	{DLT_ATM_RFC1483, 100},
	{DLT_RAW, 101},
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

int ow_dlt_of_linktype(uint16_t linktype)
{
	for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
		if (differing[i].linktype == linktype)
			return differing[i].dlt;
	}
	return linktype;
}

static int compile(pcap_t *pcap, const char *name, const char *expression, struct bpf_program *ret_program,
                   struct ow_error *err)
{
	if (pcap_compile(pcap, ret_program, expression ? expression : "", 1, PCAP_NETMASK_UNKNOWN) == 0)
		return 0;
	return ow_error_set(err, EINVAL, "%s: filter \"%s\": %s", name, expression ? expression : "",
	                    pcap_geterr(pcap));
}

int ow_filter_compile(const char *name, uint16_t linktype, uint32_t snaplen, const char *expression,
                      struct bpf_program *ret_program, struct ow_error *err)
{
	pcap_t *pcap = pcap_open_dead(ow_dlt_of_linktype(linktype), (int)snaplen);
	int r = pcap ? compile(pcap, name, expression, ret_program, err)
	             : ow_error_set(err, ENOMEM, "%s: out of memory", name);
	if (pcap)
		pcap_close(pcap);
	return r;
}

/* A handle that captures for the moment of compiling: libpcap then knows what the kernel does to frames. */
static pcap_t *activate(const char *interface, uint32_t snaplen)
{
	char text[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_create(interface, text);
	if (!pcap)
		return NULL;
	pcap_set_snaplen(pcap, (int)snaplen);
	pcap_set_buffer_size(pcap, 1 << 20);
	if (pcap_activate(pcap) >= 0)
		return pcap;
	pcap_close(pcap);
	return NULL;
}

int ow_filter_compile_live(const char *interface, uint16_t linktype, uint32_t snaplen, const char *expression,
                           struct bpf_program *ret_program, struct ow_error *err)
{
	pcap_t *pcap = expression ? activate(interface, snaplen) : NULL;
	int r;
	if (pcap && ow_linktype_of_dlt(pcap_datalink(pcap)) == linktype)
		r = compile(pcap, interface, expression, ret_program, err);
	else
		r = ow_filter_compile(interface, linktype, snaplen, expression, ret_program, err);
	if (pcap)
		pcap_close(pcap);
	return r;
}
