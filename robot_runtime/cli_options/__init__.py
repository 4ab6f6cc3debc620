"""Options that commands share, below the features whose commands use them."""
