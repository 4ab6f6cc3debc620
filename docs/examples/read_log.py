"""Record an episode, then read its log: header, steps, images, end."""

from pathlib import Path

import robot_runtime as rr

task, scene = rr.load_task("pointnav_gps_compass"), rr.load_scene("apartment")
episode = rr.generate_episodes(scene, task, count=1, seed=1)[0]
with (
    rr.load_robot("sim", rr.RobotContext.of(task, scene, [episode], seed=1)) as robot,
    rr.Recorder(Path("logs/read_log")) as recorder,
    rr.Env(robot, task, scene, [recorder]) as env,
):
    rr.run_episode(env, rr.load_policy("pointnav-depth"), episode, seed=1)

with rr.read_log(recorder.path) as log:
    print(log.header.agent, log.header.task.name, log.header.scene.name)
    for record in log.steps():
        taken = "start" if record.action is None else f"{record.action.value}: {record.result.outcome.value}"
        print(record.index, taken, record.referee.pose, record.frame.rgb.shape)
    print(log.end.reason.value)
