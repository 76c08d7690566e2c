/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the estimator for a kind of synopsis. */
#include "estimate/estimate.h"

#include "estimate/bottomk_estimate.h"
#include "estimate/finecomb_estimate.h"
#include "estimate/fold_estimate.h"
#include "estimate/lda_estimate.h"
#include "estimate/moments_estimate.h"
#include "estimate/rda_estimate.h"
#include <errno.h>
#include <string.h>

/* One line for each structure with an estimator: its kind and its default estimator (corrected and centred). */
static const struct estimator {
	enum ow_synopsis_kind kind;
	int (*estimate)(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
} estimators[] = {
	{OW_SYNOPSIS_LDA, ow_lda_estimate},         {OW_SYNOPSIS_FINECOMB, ow_finecomb_estimate},
	{OW_SYNOPSIS_SRDA, ow_rda_estimate},        {OW_SYNOPSIS_RDA, ow_rda_estimate},
	{OW_SYNOPSIS_FOLD, ow_fold_estimate},       {OW_SYNOPSIS_BOTTOMK, ow_bottomk_estimate},
	{OW_SYNOPSIS_MOMENTS, ow_moments_estimate},
};

int ow_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate,
                struct ow_error *err)
{
	int r = ow_synopsis_comparable(a->synopsis, b->synopsis, err);
	if (r < 0)
		return r;
	const struct ow_synopsis_ops *ops = a->synopsis->ops;
	for (size_t i = 0; i < sizeof estimators / sizeof *estimators; i++) {
		if (!estimators[i].estimate || estimators[i].kind != ops->kind)
			continue;
		r = estimators[i].estimate(a, b, ret_estimate);
		return r < 0 ? ow_error_set(err, -r, "%s: %s", ops->name, strerror(-r)) : 0;
	}
	return ow_error_set(err, EINVAL, "%s: has no estimator", ops->name);
}
