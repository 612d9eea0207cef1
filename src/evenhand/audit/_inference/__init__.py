"""From sums to standard errors: robust, by cluster, by time window, against true rewards."""
