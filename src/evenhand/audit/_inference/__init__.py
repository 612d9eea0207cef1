"""From sums to errors: robust, by cluster, by time window, against true rewards."""
