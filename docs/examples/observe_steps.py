"""Subscribe to an episode: a subscriber gets every record in order, as the logger does."""

import robot_runtime as rr


class ContactCounter(rr.Subscriber):
    """Count contacts and measure the path."""

    def on_episode_start(self, header):
        self.contacts, self.path_m, self.last = 0, 0.0, None

    def on_step(self, record):
        self.contacts += bool(record.result and record.result.contact)
        pose = record.referee.pose
        self.path_m += pose.distance_to(self.last) if self.last else 0.0
        self.last = pose

    def on_episode_end(self, end):
        print(f"{end.reason.value} after {end.steps} steps: {self.contacts} contacts, {self.path_m:.2f} m")


task, scene = rr.load_task("pointnav_quick"), rr.load_scene("arena")
episodes = rr.generate_episodes(scene, task, count=2, seed=5)
with (
    rr.load_robot("sim", rr.RobotContext.of(task, scene, episodes, seed=5)) as robot,
    rr.Env(robot, task, scene, [ContactCounter()]) as env,
):
    for _ in rr.run_episodes(env, rr.load_policy("goal-follower"), episodes, seed=5):
        pass
