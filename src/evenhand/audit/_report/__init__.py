"""The report of an audit: tables, sentences, method and page."""
