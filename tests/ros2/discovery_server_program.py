"""A Fast DDS discovery server in the form of a node: ``python discovery_server_program.py DOMAIN PORT FOLDER``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import rclpy

SERVER = """<?xml version="1.0" encoding="UTF-8" ?>
<profiles xmlns="http://www.eprosima.com">
  <participant profile_name="server" is_default_profile="true"><rtps>
    <prefix>44.53.00.5f.45.50.52.4f.53.49.4d.41</prefix>
    <builtin><discovery_config><discoveryProtocol>SERVER</discoveryProtocol></discovery_config>
      <metatrafficUnicastLocatorList><locator><udpv4><address>127.0.0.1</address><port>{port}</port></udpv4></locator>
      </metatrafficUnicastLocatorList>
    </builtin>
  </rtps></participant>
</profiles>
"""

domain, port, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
profile = folder / "server.xml"
profile.write_text(SERVER.format(port=port), encoding="utf-8")
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(profile)
rclpy.init(domain_id=domain)
node = rclpy.create_node("server", start_parameter_services=False, enable_rosout=False)
print("ready", flush=True)
sys.stdin.read()
