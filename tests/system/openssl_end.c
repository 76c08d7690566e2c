/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: tells if OpenSSL frees what it has when the process ends. */
#include <openssl/crypto.h>
#include <unistd.h>

static void tell(void)
{
	static const char text[] = "OpenSSL has ended\n";
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
}

__attribute__((constructor)) static void begin(void)
{
	OPENSSL_atexit(tell);
}
