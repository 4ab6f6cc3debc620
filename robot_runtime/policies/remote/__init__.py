"""Policies that run on another machine: the protocol and the robot's end. The other end: ``servers.policy``.

The framing is openpi's (Physical-Intelligence/openpi, ``packages/openpi-client``): a websocket; the server speaks
first, with a dictionary about itself; then one dictionary of observations is answered by one dictionary of actions. All
are msgpack with numpy arrays; text in place of bytes is an error. So a client of openpi can ask our server, and a
server written with openpi's can drive our robot.

Between our own two ends the key ``robot_runtime`` is added to each message:

=====================  =================================================================================================
first message          ``protocol`` (1), ``policy``, ``needs``, ``task`` (the one that it was trained for, or None)
request                ``type`` (``reset`` or ``act``), ``session``, ``sequence``; with ``reset``: ``task``, ``seed``
answer                 ``sequence`` of the request that it answers; ``error`` (``message``, ``remedy``) if there is one
=====================  =================================================================================================

An answer to a request with another number is none. A request that is repeated after the link was lost gets the answer
that it had, and the policy does not decide twice. A session is one episode and belongs to one client.
"""
