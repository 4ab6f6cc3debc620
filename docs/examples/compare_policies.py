"""Run two policies on the same episodes and compare their SPL, episode by episode."""

import robot_runtime as rr

task, scene = rr.load_task("pointnav_quick"), rr.load_scene("arena")
episodes = rr.generate_episodes(scene, task, count=3, seed=5)
spl = {}
with (
    rr.load_robot("sim", rr.RobotContext.of(task, scene, episodes, seed=5)) as robot,
    rr.Env(robot, task, scene) as env,
):
    for name in ("oracle", "goal-follower"):
        policy = rr.load_policy(name)
        spl[name] = [run.metrics["spl"] for run in rr.run_episodes(env, policy, episodes, seed=5)]
for episode, oracle, follower in zip(episodes, *spl.values(), strict=True):
    print(f"{episode.id}: oracle {oracle:.2f}, goal follower {follower:.2f}")
