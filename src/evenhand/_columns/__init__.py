"""People's tables: files, missing values, categories, rewards in words, identifiers."""
