"""The ledger of the service in SQL. The interface of the library's ledgers is `evenhand.events`."""
