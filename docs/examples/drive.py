"""Drive a simulated LoCoBot with discrete actions, and print how each action ended."""

import robot_runtime as rr

task, scene = rr.load_task("pointnav_gps_compass"), rr.load_scene("apartment")
episode = rr.generate_episodes(scene, task, count=1, seed=1)[0]
with (
    rr.load_robot("sim", rr.RobotContext.of(task, scene, [episode], seed=1)) as robot,
    rr.Env(robot, task, scene) as env,
):
    observation = env.reset(episode)
    print("goal: distance and direction", observation["pointgoal"])
    for action in (rr.Action.TURN_LEFT, rr.Action.MOVE_FORWARD, rr.Action.MOVE_FORWARD, rr.Action.STOP):
        observation = env.step(action)
        result = env.record.result
        print(action.value, result.outcome.value, result.measured, "collided" if result.contact else "")
    print(env.end.reason.value, env.get_metrics())
