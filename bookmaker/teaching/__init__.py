"""What a teacher hands out: copies without solutions, and a check that every solution runs."""
