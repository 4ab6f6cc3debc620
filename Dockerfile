# Debian 12 with the runtime, ROS 1 and the guard, for computers with another system:
#   git archive HEAD | docker build -t robot_runtime -
# drivers/ros_locobot/README.md says which computer needs it, and how it is run.
FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv
COPY . /opt/robot_runtime
RUN bash /opt/robot_runtime/.ci/setup dev
ENV PATH=/opt/robot_runtime/.venv/bin:$PATH
# The groups own serial ports, cameras and sound in Debian; nothing in the image needs root.
RUN useradd --create-home --groups dialout,plugdev,video robot
USER robot
WORKDIR /home/robot
ENTRYPOINT ["/bin/bash", "-c", "source /opt/robot_runtime/ros_ws/devel/setup.bash && exec \"$@\"", "robot_runtime"]
CMD ["bash"]
