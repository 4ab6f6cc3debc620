"""Commands of campaigns, except the one that runs a campaign with its console."""
