"""What makes the book: the runner, the site, sweeps, and copies for courses. No chapter imports it."""
