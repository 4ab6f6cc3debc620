"""Parallel work over processes or a Ray cluster, with ordered and resumable results.

===================  ==========================================================================================
``map``              :func:`map_in_order`, the one function that callers need, and :class:`Workers`, its options
``result_journal``   finished results in a file, from which a repeated command resumes
``scheduler``        batches of items for workers, ordered results, retries after a lost worker
``workers``          interface of workers and of the pools that start them
``process_pool``     pool of spawned processes on this machine
``ray_pool``         pool of actors on a Ray cluster
===================  ==========================================================================================
"""
