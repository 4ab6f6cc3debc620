"""Commands that show logs and write them in other formats."""
