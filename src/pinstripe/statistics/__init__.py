"""What raw values say, and how sure that is. Pure functions."""

from pinstripe.statistics.percentiles import count_outliers, percentile, percentile_rank_bound

__all__ = ["count_outliers", "percentile", "percentile_rank_bound"]
