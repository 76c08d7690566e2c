/* SPDX-License-Identifier: Apache-2.0 */
#include <oneway/oneway.h>

const char *ow_version(void)
{
	return OW_VERSION;
}
