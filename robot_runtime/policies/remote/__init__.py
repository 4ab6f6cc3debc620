"""Policies on another machine: the protocol and the client. The server is ``robot_runtime.servers.policy``.

The framing is openpi's (Physical-Intelligence/openpi, ``packages/openpi-client``): a websocket; the server
first sends a dictionary about itself; then each dictionary of observations is answered by a dictionary of actions. All
are msgpack with numpy arrays; text in place of bytes is an error. A client of openpi can therefore use this runtime's
server, and a server of openpi can drive this runtime's robots.

This runtime's client and server add the key ``robot_runtime`` to each message:

=====================  =================================================================================================
first message          ``protocol`` (1), ``policy``, ``needs``, ``task`` (the one that it was trained for, or None)
request                ``type`` (``reset`` or ``act``), ``session``, ``sequence``; with ``reset``: ``task``, ``seed``
answer                 ``sequence`` of the request; ``error`` (``message``, ``remedy``) if there is one
=====================  =================================================================================================

An answer with the number of another request is ignored. A request that is repeated after a lost link gets its earlier
answer, and the policy does not decide twice. A session is one episode of a client.
"""
