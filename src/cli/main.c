/* SPDX-License-Identifier: Apache-2.0 */
#include <oneway/oneway.h>
#include <stdio.h>

int main(void)
{
	printf("oneway %s\n", ow_version());
	return 0;
}
