/* SPDX-License-Identifier: Apache-2.0 */
/* oneway --version: the version; with --json also the libraries as they are on this machine, and what they make possible. */
#include "cli/version.h"

#include "base/json_writer.h"
#include "base/library.h"
#include "capture/iface/iface.h"
#include "cli/cli.h"
#include "store/libpq.h"
#include <bzlib.h>
#include <expat.h>
#include <jansson.h>
#include <linux/landlock.h>
#include <lz4.h>
#include <lzma.h>
#include <nats/nats.h>
#include <oneway/oneway.h>
#include <openssl/crypto.h>
#include <pcap/pcap.h>
#include <seccomp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

static void write_library(struct ow_json *json, const char *name, const char *version)
{
	ow_json_row(json);
	ow_json_string(json, "name", name);
	ow_json_string(json, "version", version);
	ow_json_end(json);
}

/* A library that is loaded when it is used; err is set if it cannot be. */
static void write_loaded(struct ow_json *json, const char *name, const char *version, const char *use,
                         const struct ow_error *err)
{
	ow_json_row(json);
	ow_json_string(json, "name", name);
	ow_json_string(json, "version", version);
	ow_json_string(json, "loaded_for", use);
	if (!version)
		ow_json_string(json, "missing", err->text);
	ow_json_end(json);
}

/* MAJOR * 10000 + MINOR * 100 + RELEASE */
static const char *decimal_version(unsigned number, char *text, size_t size)
{
	snprintf(text, size, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
	return text;
}

/* libpcap has its version in a sentence: "libpcap version 1.10.3 (with TPACKET_V3)". */
static const char *pcap_version(char *text, size_t size)
{
	const char *sentence = pcap_lib_version(), *number = strpbrk(sentence, "0123456789");
	snprintf(text, size, "%.*s", number ? (int)strcspn(number, " ") : 0, number ? number : "");
	return text;
}

static const char *seccomp_text(char *text, size_t size)
{
	const struct scmp_version *v = seccomp_version();
	snprintf(text, size, "%u.%u.%u", v->major, v->minor, v->micro);
	return text;
}

struct loaded {
	const char *mhd; /* version; NULL: cannot be loaded */
	bool pq;
	const char *bpf;
};

static struct loaded write_libraries(struct ow_json *json)
{
	char text[64];
	const char *(*mhd_version)(void) = NULL;
	const struct ow_library_function function = {"MHD_get_version", &mhd_version};
	struct ow_error err;
	struct loaded loaded = {0};
	ow_json_rows(json, "libraries");
	write_library(json, "libpcap", pcap_version(text, sizeof text));
	write_library(json, "xxhash", decimal_version(XXH_versionNumber(), text, sizeof text));
	write_library(json, "zlib", zlibVersion());
	write_library(json, "zstd", ZSTD_versionString());
	write_library(json, "lz4", LZ4_versionString());
	write_library(json, "lzma", lzma_version_string());
	snprintf(text, sizeof text, "%.*s", (int)strcspn(BZ2_bzlibVersion(), ","), BZ2_bzlibVersion());
	write_library(json, "bzip2", text);
	write_library(json, "openssl", OpenSSL_version(OPENSSL_VERSION_STRING));
	write_library(json, "sqlite", sqlite3_libversion());
	write_library(json, "libyaml", yaml_get_version_string());
	write_library(json, "jansson", jansson_version_str());
	write_library(json, "expat", strpbrk(XML_ExpatVersion(), "0123456789"));
	write_library(json, "libseccomp", seccomp_text(text, sizeof text));
	write_library(json, "nats", nats_GetVersion());
	if (ow_library_load("libmicrohttpd.so.12", &function, 1, &err) == 0)
		loaded.mhd = mhd_version();
	write_loaded(json, "libmicrohttpd", loaded.mhd, "metrics, page", &err);
	loaded.pq = ow_libpq_load(&err) == 0;
	unsigned pq = loaded.pq ? (unsigned)ow_pq.PQlibVersion() : 0;
	snprintf(text, sizeof text, "%u.%u", pq / 10000, pq % 10000);
	write_loaded(json, "libpq", loaded.pq ? text : NULL, "postgresql", &err);
	loaded.bpf = ow_iface_kernel_library(&err);
	write_loaded(json, "libbpf", loaded.bpf, "kernel_capture", &err);
	ow_json_end(json);
	return loaded;
}

/* The version of the kernel's landlock; 0: it has none, or it is switched off. */
static unsigned landlock_version(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return r > 0 ? (unsigned)r : 0;
}

static void write_json(void)
{
	struct ow_json json = {.out = stdout, .indent = 2};
	ow_json_object(&json, NULL);
	ow_json_style(&json, OW_JSON_LINES);
	ow_json_string(&json, "tool", "oneway");
	ow_json_string(&json, "version", ow_version());
	struct loaded loaded = write_libraries(&json);
	ow_json_object(&json, "features");
	ow_json_flag(&json, "metrics", loaded.mhd);
	ow_json_flag(&json, "page", loaded.mhd);
	ow_json_flag(&json, "postgresql", loaded.pq);
	ow_json_flag(&json, "kernel_capture", loaded.bpf);
	ow_json_flag(&json, "seccomp", seccomp_api_get() > 0);
	ow_json_count(&json, "landlock", landlock_version());
#ifdef OW_HAVE_XXH_DISPATCH
	ow_json_flag(&json, "vector_hash", true);
#else
	ow_json_flag(&json, "vector_hash", false);
#endif
#ifdef OW_SANITIZED
	ow_json_flag(&json, "sanitized", true);
#else
	ow_json_flag(&json, "sanitized", false);
#endif
	ow_json_end(&json);
	ow_json_end(&json);
}

int ow_cli_version(int argc, char **argv)
{
	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0)) {
		ow_cli_say("oneway: --version: unexpected '%.60s' (see 'oneway --help')", argv[argc - 1]);
		return OW_EXIT_USAGE;
	}
	if (argc == 2)
		write_json();
	else
		printf("oneway %s\n", ow_version());
	return OW_EXIT_OK;
}
