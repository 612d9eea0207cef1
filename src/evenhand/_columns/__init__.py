"""What people have in tables: files, missing values, categories, rewards in words, identifiers."""
