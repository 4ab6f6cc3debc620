"""Campaigns: test runs of policies on robots, blind if wanted, with people who help and judge.

==================  ===================================================================================================
``plan``            what is run, how it is compared and counted, and when it ends
``schedule``        order of the runs, a function of the plan
``opening``         check of a plan; begin or resume its ledger
``ledger``          what happened, chained by hash and signed; the only memory of a campaign
``state``           attempts and starts, folded from the ledger: what is to be run next
``facts``           how a run ended, from its log
``outcomes``        values of the runs, and the answer of the sequential test
``runner``          the loop: gives each robot its next run and writes the ledger
``robots``          the runner's side of a robot's process
``robot_process``   a process per robot, for its runs
``placing``         the way to the next start, by the robot or a person
``supervision``     limits and sealed name of a policy during a run
``messages``        calls for help; verdicts, answers and notes of people
``sealing``         sealed policies: commitments, servers, unblinding
``status``          progress, read from the ledger also while it is written
``verification``    check of a campaign from its folder alone
``report``          page and files for reviewers
``rehearsal``       complete campaign in simulation, killed and resumed on the way
``single_run``      the same ledger for one command ``run``, so that it can be resumed
==================  ===================================================================================================
"""
