"""Commands that score and compare logs."""
