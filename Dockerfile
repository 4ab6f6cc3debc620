# Debian 12 with the runtime, ROS 1 and the guard, for computers with another system:
#   git archive HEAD | docker build -t robot_runtime -
#   docker run --rm -it --network host --device /dev/kobuki --device /dev/ttyDXL robot_runtime robot-runtime doctor
# drivers/ros_locobot/README.md says which computer needs it, and how it is run. A release is built from a digest of the base.
ARG BASE=debian:12
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv && rm -rf /var/lib/apt/lists/*
COPY . /opt/robot_runtime
RUN bash /opt/robot_runtime/.ci/setup dev
ENV PATH=/opt/robot_runtime/.venv/bin:$PATH
# The groups own serial ports, cameras and sound in Debian; nothing in the image needs root.
RUN useradd --create-home --groups dialout,plugdev,video robot
USER robot
WORKDIR /home/robot
ENTRYPOINT ["/bin/bash", "-c", "source /opt/robot_runtime/ros_ws/devel/setup.bash && exec \"$@\"", "robot_runtime"]
CMD ["bash"]
