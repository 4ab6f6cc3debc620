"""Run a policy of your own for two episodes, log them, and print their scores."""

import robot_runtime as rr


class TurnUntilFree(rr.Policy):
    """Drive while the center of the depth image is far away, else turn; stop after 30 actions."""

    name = "turn-until-free"
    needs = ("depth",)

    def reset(self, task, seed, world=None):
        self.steps = 0

    def act(self, observation):
        self.steps += 1
        if self.steps > 30:
            return rr.Action.STOP
        height, width, _ = observation["depth"].shape
        center = observation["depth"][height // 3 : 2 * height // 3, width // 3 : 2 * width // 3, 0]
        return rr.Action.MOVE_FORWARD if center.min() > 0.05 else rr.Action.TURN_LEFT  # normalized: 0.05 is 0.5 m


task, scene = rr.load_task("pointnav_gps_compass"), rr.load_scene("apartment")
episodes = rr.generate_episodes(scene, task, count=2, seed=3)
with (
    rr.load_robot("sim-noisy", rr.RobotContext.of(task, scene, episodes, seed=3)) as robot,
    rr.Recorder("logs/own_policy") as recorder,
    rr.Env(robot, task, scene, [recorder]) as env,
):
    for run in rr.run_episodes(env, TurnUntilFree(), episodes, seed=3):
        print(run.episode.id, run.end.reason.value, run.metrics["distance_to_goal"])
