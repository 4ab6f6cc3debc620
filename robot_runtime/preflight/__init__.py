"""Before the first episode: is this robot, as calibrated and as it sees, the one that the policy was trained on?"""
