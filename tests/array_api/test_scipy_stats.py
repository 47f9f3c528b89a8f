"""`scipy.stats` on tensors: every function that SciPy lists for any namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import SINGLE, check, lines

stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
special = pytest.importorskip("scipy.special", reason="SciPy is not installed")

CALLS = """
alexandergovern(v, w, v + 1)
ansari(v, w)
bartlett(v, w, v * 2)
bootstrap((v,), mean, rng=1, n_resamples=99)
bootstrap((v, w), statistic, rng=1, n_resamples=99, paired=True, method="percentile")
boxcox_llf(1.5, v**2)
chatterjeexi(v, w)
chisquare(p)
circmean(x, axis=0)
circstd(x, axis=0)
circvar(x, axis=0)
combine_pvalues(u)
combine_pvalues(u, method="stouffer")
cramervonmises(v, ndtr)
cramervonmises_2samp(v, w)
describe(x)
differential_entropy(v)
directional_stats(x)
entropy(p)
entropy(p, q)
epps_singleton_2samp(v, w)
f_oneway(v, w, v + 1)
false_discovery_control(u)
fligner(v, w, v * 2)
friedmanchisquare(v, w, v + 1)
gmean(x**2, axis=0)
gstd(x**2, axis=0)
gzscore(x**2, axis=0)
hmean(x**2, axis=0)
iqr(v)
iqr(x, axis=0)
jarque_bera(v)
kruskal(v, w, v + 1)
ks_1samp(v, ndtr)
kstat(v, 3)
kstatvar(v, 2)
kurtosis(x)
kurtosistest(v)
levene(v, w, v * 2)
lmoment(v)
mannwhitneyu(v, w)
median_abs_deviation(x, axis=0)
mode(labels)
moment(x, 3)
monte_carlo_test(v, draws, mean, n_resamples=99)
mood(v, w)
normaltest(v)
pearsonr(v, w)
pearsonr(v, w).confidence_interval()
permutation_test((v, w), statistic, n_resamples=99, rng=1)
pmean(x**2, 2.5)
power(p_value, (draws, draws), (arr([8]), arr([9])), n_resamples=20)
power_divergence(p, lambda_="log-likelihood")
quantile(v, arr([0.25, 0.5]))
quantile(x, 0.3, axis=0)
sem(x, axis=0)
sigmaclip(v, 1.5, 1.5)
skew(x)
skewtest(v)
spearmanrho(v, w)
tmax(v, 1.0)
tmean(v, (-1.0, 1.0))
tmin(v, -1.0)
trim_mean(x, 0.1)
tsem(v, (-1.0, 1.0))
tstd(v, (-1.0, 1.0))
ttest_1samp(x, 0.1)
ttest_ind(x, y)
ttest_ind(v, w, equal_var=False)
ttest_ind_from_stats(p, q, 8, p + 0.5, q, 9)
ttest_rel(v, w)
tvar(v, (-1.0, 1.0))
variation(x, axis=0)
wilcoxon(v, w)
yeojohnson_llf(1.5, v)
zmap(v, w)
zscore(x)
"""
# Ranks are floats of the default dtype, which is float64 in NumPy.
RANKS = """
brunnermunzel(v, w)
rankdata(labels)
rankdata(v)
rankdata(labels, method="min")
"""


def names(given: dict[str, Any]) -> dict[str, Any]:
    """What the calls name besides samples: functions of samples."""
    xp, draw = given["xp"], np.random.default_rng(0)
    return {
        "ndtr": special.ndtr,
        "mean": lambda one, axis=-1: xp.mean(one, axis=axis),
        "statistic": lambda one, other, axis=-1: xp.mean(one * one - other, axis=axis),
        "p_value": lambda one, other, axis=-1: stats.ttest_ind(one, other, axis=axis).pvalue,
        "draws": lambda size: given["arr"](draw.standard_normal(size)),
    }


@pytest.mark.parametrize("call", lines(CALLS))
def test_call(call: str) -> None:
    check(call, stats, names=names)


@pytest.mark.parametrize("call", lines(RANKS))
def test_ranks(call: str) -> None:
    check(call, stats, SINGLE)
