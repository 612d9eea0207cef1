"""What an audit says: tables, sentences, method and page."""
